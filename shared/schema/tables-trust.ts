/**
 * What a person decides about an agent's means, and what is kept for the day a machine is lost.
 *
 * An approval is asked by a gateway and answered by a person, on any device, also later: `status` is strict, so that of two answers the first counts.
 */
import { c, table } from './columns.ts'

const everyone = { browser: 'tenant', gateway: 'own' } as const

/**
 * Something that a person must allow first. The gateway asks (`pending`), a person answers (`allowed`, `denied`), or nobody does (`expired`, `cancelled`: the
 * gateway's word). What it is about is shown in full and never holds a secret.
 */
const approvals = table(
  'approvals',
  {
    group: 'core',
    visibility: everyone,
    write: { browser: 'member', gateway: 'own' },
    indexes: [['gateway_id', 'status'], ['agent_id']],
  },
  {
    gateway_id: c.uuid().references('gateways').merge('immutable'),
    /** Null: about the gateway itself, such as a device that wants to pair. */
    agent_id: c.uuid().null().references('agents').merge('immutable'),
    run_id: c.uuid().null().merge('immutable'),
    task_id: c.uuid().null().merge('immutable'),
    kind: c.enum('approval_kind').merge('immutable'),
    /** The tool, the device: what a standing answer would be about. */
    subject: c.text().merge('immutable'),
    /** One line for people: "Run `git push` in agents/writer". */
    title: c.text().merge('immutable'),
    /** Arguments, as they will be used. */
    detail: c.json<Record<string, unknown>>().default("'{}'").merge('immutable'),
    expires_at: c.time().null().merge('immutable'),
    status: c.enum('approval_status').default("'pending'").merge('strict'),
    decided_by: c.uuid().null().references('people'),
    decided_at: c.time().null(),
    /** What the person said to it; the agent reads it. */
    note: c.text().null(),
    /** The gateway's word: it has acted on the answer. */
    applied_at: c.time().null().merge('owner'),
    error_message: c.text().null().merge('owner'),
  },
)

/** Encrypted copies of a gateway's state; the bytes are a blob of the server's. The key is not in any row. */
const backups = table(
  'backups',
  {
    group: 'core',
    visibility: everyone,
    write: { browser: 'none', gateway: 'own' },
    indexes: [['gateway_id', 'created_at']],
  },
  {
    gateway_id: c.uuid().references('gateways').merge('immutable'),
    reason: c.enum('backup_reason').merge('immutable'),
    status: c.enum('backup_status').default("'running'").merge('owner'),
    /** Of the encrypted file, in bytes. */
    size: c.bigint().null().merge('owner'),
    /** SHA-256 of the encrypted file, hexadecimal: also its name among the blobs. */
    sha256: c.text().null().merge('owner'),
    /** Which recovery key opens it: the first 16 hexadecimal digits of the key's SHA-256. */
    key_id: c.text().null().merge('owner'),
    /** What is in it: {agents, commits, files, hostname, version}. */
    contents: c.json<Record<string, unknown>>().default("'{}'").merge('owner'),
    finished_at: c.time().null().merge('owner'),
    error_message: c.text().null().merge('owner'),
  },
)

export const trustTables = { approvals, backups } as const
