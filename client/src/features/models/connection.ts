/**
 * Making, changing and removing a model connection, as statements of one local transaction. The key is sealed for its gateway before anything is written
 * (set-secret.ts); what is wrong with the input is said before that.
 */
import { type OauthSettings, oauthProblems } from '@hq/shared/domain/oauth-settings.ts'
import type { Enum } from '@hq/shared/schema/enums.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Statement } from '@hq/shared/sync/contract.ts'
import { addSecret, replaceSecret, revokeSecret } from '../secrets/set-secret.ts'

export type Provider = Enum<'model_provider'>

export interface ProviderFacts {
  readonly id: Provider
  readonly label: string
  /** Which key, and where to get it. */
  readonly keyHint: string
  readonly needsKey: boolean
  /** The address is asked for; otherwise it is an extra. */
  readonly asksAddress: boolean
  readonly address: string
  readonly exampleModel: string
  /** Takes the token of a sign-in as it takes a key. */
  readonly signsIn?: boolean
}

export const PROVIDERS: readonly ProviderFacts[] = [
  {
    id: 'anthropic',
    label: 'Anthropic',
    keyHint: 'A key from console.anthropic.com, beginning with sk-ant-',
    needsKey: true,
    asksAddress: false,
    address: 'https://api.anthropic.com/v1',
    exampleModel: 'claude-sonnet-4-5',
    signsIn: true,
  },
  {
    id: 'openai',
    label: 'OpenAI, or compatible',
    keyHint: 'A key from platform.openai.com, or of the compatible service; a local one may need none',
    needsKey: false,
    asksAddress: false,
    address: 'https://api.openai.com/v1',
    exampleModel: 'gpt-5-mini',
    signsIn: true,
  },
  {
    id: 'openrouter',
    label: 'OpenRouter',
    keyHint: 'A key from openrouter.ai/keys',
    needsKey: true,
    asksAddress: false,
    address: 'https://openrouter.ai/api/v1',
    exampleModel: 'anthropic/claude-sonnet-4.5',
  },
  {
    id: 'ollama',
    label: 'Ollama',
    keyHint: 'Ollama on your own machine needs no key',
    needsKey: false,
    asksAddress: true,
    address: 'http://127.0.0.1:11434',
    exampleModel: 'qwen3:8b',
  },
]

export const providerFacts = (id: Provider): ProviderFacts =>
  PROVIDERS.find((provider) => provider.id === id) ?? (PROVIDERS[0] as ProviderFacts)

export interface ConnectionInput {
  readonly provider: Provider
  readonly label: string
  /** Empty: the provider's own. */
  readonly baseUrl: string
  readonly model: string
  /** Empty: none. */
  readonly key: string
  /** People sign in instead of giving a key. */
  readonly oauth?: OauthSettings
}

/** By field; empty when all is well. */
export function inputProblems({
  provider,
  label,
  baseUrl,
  model,
  key,
  oauth,
}: ConnectionInput): Readonly<Record<string, string>> {
  const facts = providerFacts(provider)
  const problems: Record<string, string> = {}
  if (label.trim() === '') problems['label'] = 'Please give the connection a name.'
  const url = baseUrl.trim() === '' ? undefined : URL.parse(baseUrl.trim())
  if (url === null || (url && !/^https?:$/.test(url.protocol)))
    problems['baseUrl'] = 'An address begins with https:// or http://.'
  else if (url && (url.username || url.password || url.search))
    problems['baseUrl'] = 'Everybody here sees the address: take name, password and everything behind “?” out of it.'
  if (model.trim() === '') problems['model'] = `Please name a model, such as ${facts.exampleModel}.`
  if (oauth) Object.assign(problems, oauthProblems({ ...oauth }))
  else if (key.trim() === '' && (facts.needsKey || (provider === 'openai' && baseUrl.trim() === '')))
    problems['key'] = `${facts.label} needs a key.`
  return problems
}

export interface ConnectionIds {
  readonly connection: string
  readonly secret: string
  readonly sealed: string
}

export interface ConnectionPlace {
  readonly tenantId: string
  readonly gatewayId: string
  /** Of the gateway. */
  readonly publicKey: string
  readonly personId: string
}

/** A name of its own for each key: no agent ever sees it as a variable. */
export const keyName = (connectionId: string): string =>
  `MODEL_KEY_${connectionId.replaceAll('-', '').slice(-12).toUpperCase()}`

export async function addConnection(
  { provider, label, baseUrl, model, key, oauth }: ConnectionInput,
  { tenantId, gatewayId, publicKey, personId }: ConnectionPlace,
  ids: ConnectionIds,
): Promise<Statement[]> {
  const hasKey = !oauth && key.trim() !== ''
  const sealed = hasKey
    ? await addSecret(
        {
          id: ids.secret,
          tenant_id: tenantId,
          gateway_id: gatewayId,
          agent_id: null,
          category: 'model',
          key: keyName(ids.connection),
          name: `Key of ${label.trim()}`,
          note: null,
          created_by: personId,
        },
        ids.sealed,
        publicKey,
        key.trim(),
      )
    : []
  return [
    ...sealed,
    {
      sql: `insert into model_connections (id, tenant_id, gateway_id, label, provider, base_url, default_model, secret_id, created_by, oauth)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
      params: [
        ids.connection,
        tenantId,
        gatewayId,
        label.trim(),
        provider,
        baseUrl.trim() === '' ? null : baseUrl.trim(),
        model.trim(),
        hasKey ? ids.secret : null,
        personId,
        oauth ? JSON.stringify(oauth) : null,
      ],
    },
    ...makeDefault(gatewayId, ids.connection),
  ]
}

/** One of a gateway's connections is the one that its agents use. */
export const makeDefault = (gatewayId: string, id: string): Statement[] => [
  {
    sql: 'update model_connections set is_default = (id = $2) where gateway_id = $1 and deleted_at is null and is_default <> (id = $2)',
    params: [gatewayId, id],
  },
]

export const replaceKey = replaceSecret

/** The connection and its key, at once. */
export const removeConnection = ({
  id,
  secret_id,
}: Pick<Row<'model_connections'>, 'id' | 'secret_id'>): Statement[] => [
  { sql: 'update model_connections set deleted_at = now() where id = $1', params: [id] },
  ...(secret_id === null ? [] : revokeSecret(secret_id)),
]
