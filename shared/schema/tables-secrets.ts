/**
 * Secrets and model connections. What people see of a secret is its name, scope and state; its value exists only sealed for one gateway
 * (`shared/domain/sealing.ts`), in a table that no browser ever reads.
 */
import { c, type Json, table } from './columns.ts'

const everyone = { browser: 'tenant', gateway: 'own' } as const

/**
 * What a secret is called and how it stands. Deleting it revokes it: the gateway takes the value away and says `revoked`.
 * `agent_id` null: for all agents of the gateway; for `category` model: for the gateway itself only.
 */
const secrets = table(
  'secrets',
  {
    group: 'core',
    visibility: everyone,
    write: { browser: 'admin', gateway: 'own' },
    unique: [
      { columns: ['gateway_id', 'agent_id', 'key'], where: 'deleted_at is null' },
      { columns: ['gateway_id', 'key'], where: 'agent_id is null and deleted_at is null' },
    ],
  },
  {
    gateway_id: c.uuid().references('gateways').merge('immutable'),
    agent_id: c.uuid().null().references('agents').merge('immutable'),
    category: c.enum('secret_category').default("'user'").merge('immutable'),
    /** Name of the environment variable. */
    key: c.text().merge('immutable'),
    name: c.text(),
    note: c.text().null(),
    /** Raised by one with each new value; the value itself is the `sealed_secrets` row of that version. */
    version: c.int().default('1').merge('strict'),
    created_by: c.uuid().null().merge('immutable'),
    /** The gateway's word: which version its agents have, since when, and what is wrong. */
    sync_status: c.enum('secret_sync_status').default("'pending'").merge('owner'),
    synced_version: c.int().null().merge('owner'),
    last_synced_at: c.time().null().merge('owner'),
    sync_error: c.text().null().merge('owner'),
  },
)

/** Ciphertext on its way to its gateway. Browsers write it and never read it; the gateway empties it when a newer version counts, or none. */
const sealedSecrets = table(
  'sealed_secrets',
  {
    group: 'core',
    visibility: { browser: 'none', gateway: 'own' },
    write: { browser: 'admin', gateway: 'own' },
    unique: [{ columns: ['secret_id', 'version'], where: 'deleted_at is null' }],
    indexes: [['secret_id', 'version']],
  },
  {
    gateway_id: c.uuid().references('gateways').merge('immutable'),
    secret_id: c.uuid().references('secrets').merge('immutable'),
    version: c.int().merge('immutable'),
    /** `last`: no loser of a conflict may be kept where browsers read. */
    sealed: c.text().merge('last'),
    /** The gateway's public key that it was sealed for. */
    public_key: c.text().merge('immutable'),
  },
)

/** Where a gateway finds a model. The key, if it takes one, is a secret of category `model`. */
const modelConnections = table(
  'model_connections',
  { group: 'core', visibility: everyone, write: { browser: 'admin', gateway: 'own' } },
  {
    gateway_id: c.uuid().references('gateways').merge('immutable'),
    label: c.text(),
    provider: c.enum('model_provider').merge('immutable'),
    /** Null: the provider's own address. */
    base_url: c.text().null(),
    default_model: c.text().null(),
    secret_id: c.uuid().null().references('secrets'),
    /** How people sign in instead of giving a key (`shared/domain/oauth-settings.ts`); null: by key, or without one. The tokens are on the gateway only. */
    oauth: c.json<Record<string, Json>>().null(),
    /** The newest of those with `is_default` is the one that agents use. */
    is_default: c.bool().default('true'),
    created_by: c.uuid().null().merge('immutable'),
    /** The gateway's word after asking the provider for its models. */
    status: c.enum('connection_status').default("'unchecked'").merge('owner'),
    status_detail: c.text().null().merge('owner'),
    checked_at: c.time().null().merge('owner'),
  },
)

export const secretTables = {
  secrets,
  sealed_secrets: sealedSecrets,
  model_connections: modelConnections,
} as const
