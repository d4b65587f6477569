/** Where people sign in, as the provider’s documentation says it. Nothing of it is secret: the client is a public one. */
import { DEFAULT_REDIRECT, type OauthSettings, type SignInFlow } from '@hq/shared/domain/oauth-settings.ts'
import { Input } from '../../ui/input.tsx'

interface Field {
  readonly name: string
  readonly label: string
  readonly placeholder?: string
  readonly hint?: string
  readonly optional?: boolean
}

const FIELDS: Readonly<Record<SignInFlow, readonly Field[]>> = {
  paste: [
    { name: 'authorize_url', label: 'Authorize address', placeholder: 'https://id.example.com/oauth/authorize' },
    {
      name: 'redirect_uri',
      label: 'Redirect address',
      placeholder: DEFAULT_REDIRECT,
      hint: 'As it is registered with the provider. Nothing has to listen there.',
      optional: true,
    },
  ],
  device: [
    { name: 'device_url', label: 'Device code address', placeholder: 'https://id.example.com/oauth/device/code' },
  ],
}
const BOTH: readonly Field[] = [
  { name: 'token_url', label: 'Token address', placeholder: 'https://id.example.com/oauth/token' },
  { name: 'client_id', label: 'Client ID', hint: 'Of a public client: there is no client secret.' },
  { name: 'scope', label: 'Scope', optional: true, hint: 'Separated by spaces, as the provider names them.' },
]

export function OauthFields({ flow, problems }: { flow: SignInFlow; problems: Readonly<Record<string, string>> }) {
  return [...FIELDS[flow], ...BOTH].map(({ name, ...field }) => (
    <Input
      key={name}
      {...field}
      name={name}
      mono
      autoComplete="off"
      spellCheck={false}
      error={problems[name] || (name === 'device_url' && problems['authorize_url']) || null}
    />
  ))
}

/** What was filled in; empty fields are left out. */
export function oauthOf(flow: SignInFlow, word: (name: string) => string): OauthSettings {
  const names = [...FIELDS[flow], ...BOTH].map(({ name }) => name)
  const given = names.map((name) => [name, word(name).trim()] as const).filter(([, text]) => text !== '')
  return { token_url: '', client_id: '', ...Object.fromEntries(given) }
}
