/** Signing in to a model provider: the page to open and the field for where it ends, or the code to type; and how it went. */
import type { SignInFlow } from '@hq/shared/domain/oauth-settings.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import { Copy, ExternalLink } from 'lucide-react'
import { useEffect, useId, useState } from 'react'
import { newId, useRows, useSession, useWrite } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button, buttonClass } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Input } from '../../ui/input.tsx'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { Status } from '../../ui/status.tsx'
import { toast } from '../../ui/toast.tsx'
import { gatewayState } from '../gateways/gateway-state.ts'
import { type Face, faceOf, pasteSignIn } from './sign-in.ts'

/** A sign-in that this page has begun. */
export interface Signing {
  readonly connectionId: string
  readonly flow: SignInFlow
  /** The `auth_start`. */
  readonly command: string
}

interface Props {
  readonly signing: Signing
  readonly connection: Row<'model_connections'> & { readonly secret: Row<'secrets'> | null }
  readonly gateway: Row<'gateways'>
  readonly onClose: () => void
  readonly onAgain: () => void
}

export function SignInDialog({ signing, connection, gateway, onClose, onAgain }: Props) {
  const write = useWrite()
  const { principal } = useSession()
  const form = useId()
  const [paste, setPaste] = useState<string | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  // A sign-in that is begun anew has no paste yet.
  // biome-ignore lint/correctness/useExhaustiveDependencies: it is about the command
  useEffect(() => {
    setPaste(null)
    setProblem(null)
  }, [signing.command])
  const { rows } = useRows<Row<'agent_commands'>>(
    'select * from agent_commands where id = $1 or id = $2',
    [signing.command, paste ?? signing.command],
    { tables: ['agent_commands'] },
  )
  const now = useNow()
  const state = gatewayState(gateway, now).key
  const face = faceOf(
    rows.find(({ id }) => id === signing.command),
    paste === null ? undefined : rows.find(({ id }) => id === paste),
    connection,
    state === 'silent' || state === 'connecting',
    now,
  )

  const submit = async (element: HTMLFormElement) => {
    const text = String(new FormData(element).get('pasted') ?? '')
    if (text.trim() === '') return setProblem('Paste the address that the browser ended at.')
    if (gateway.public_key === null) return setProblem('This gateway has no key that it could be encrypted for.')
    // One that was revoked is not set again: this is another.
    const secret = connection.secret?.deleted_at === null ? connection.secret : null
    const ids = { command: newId(), secret: newId(), sealed: newId() }
    try {
      await write(await pasteSignIn(connection, secret, text, gateway.public_key, ids, principal.person_id))
      element.reset()
      setProblem(null)
      setPaste(ids.command)
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error))
    }
  }
  const over = face.key === 'failed' || face.key === 'expired'
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title={`Sign in to ${connection.label}`}
      description={
        signing.flow === 'paste'
          ? 'You sign in at the provider. What you paste is encrypted in this browser for the gateway.'
          : 'You sign in at the provider, on any device. The gateway waits for it, also when this window is closed.'
      }
      footer={
        <>
          <Button onClick={onClose}>{face.key === 'done' ? 'Close' : 'Later'}</Button>
          {over && (
            <Button variant="primary" onClick={onAgain}>
              Start again
            </Button>
          )}
          {face.key === 'link' && (
            <Button type="submit" form={form} variant="primary">
              Sign in
            </Button>
          )}
        </>
      }
    >
      <div className="grid grid-cols-1 gap-4" aria-live="polite">
        <FaceView face={face} gateway={gateway} />
        {face.key === 'link' && (
          <form
            id={form}
            noValidate
            onSubmit={(event) => {
              event.preventDefault()
              void submit(event.currentTarget)
            }}
          >
            <Input
              label="Address that the browser ended at"
              name="pasted"
              type="password"
              mono
              autoComplete="off"
              hint="The page itself may say that it can’t be reached: only its address is needed. A code that the provider shows will do too."
              error={problem ?? face.problem}
              onInput={() => setProblem(null)}
            />
          </form>
        )}
      </div>
    </Dialog>
  )
}

function FaceView({ face, gateway }: { face: Face; gateway: Row<'gateways'> }) {
  switch (face.key) {
    case 'asking':
    case 'sending':
    case 'trying':
      return (
        <Status
          meaning={face.away ? 'waiting' : 'busy'}
          {...(face.away ? { shape: 'off' as const } : {})}
          label={face.away ? `${gateway.label} is away` : WAITS[face.key]}
          detail={face.away ? 'It goes on when the gateway is back.' : undefined}
        />
      )
    case 'link':
      return (
        <>
          <Page url={face.url} label="Open the provider’s page" />
          <Until at={face.expiresAt} />
        </>
      )
    case 'code':
      return (
        <>
          <div className="grid grid-cols-1 justify-items-center gap-3 rounded-card border border-line bg-surface-2 px-4 py-5">
            <span className="text-xs text-text-3">Your code</span>
            <output
              aria-label="Your code"
              className="select-all text-center font-mono text-[28px] leading-tight font-semibold tracking-[0.08em] [overflow-wrap:anywhere]"
            >
              {face.userCode}
            </output>
            <Button size="sm" icon={Copy} onClick={() => void copy(face.userCode)}>
              Copy the code
            </Button>
          </div>
          <Page url={face.complete ?? face.url} label="Open the provider’s page" shown={face.url} />
          <Status meaning="waiting" shape="clock" label="Waiting for you to enter it there" />
          <Until at={face.expiresAt} />
        </>
      )
    case 'expired':
      return (
        <Banner meaning="warning" title="The time for it is over">
          Nobody finished this sign-in in time. Start it again.
        </Banner>
      )
    case 'failed':
      return (
        <Banner meaning="danger" title="You are not signed in">
          {face.why}
        </Banner>
      )
    case 'done':
      return <Status meaning="good" label="Signed in" detail={face.detail ?? undefined} />
  }
}

const WAITS = {
  asking: 'The gateway asks the provider',
  sending: 'The gateway gets the token',
  trying: 'Signed in; it is being tried',
} as const

function Page({ url, label, shown }: { url: string; label: string; shown?: string }) {
  return (
    <p className="grid grid-cols-1 gap-1">
      <a
        href={url}
        target="_blank"
        rel="noopener noreferrer"
        className={`${buttonClass('primary')} justify-self-start`}
      >
        <ExternalLink className="size-4" strokeWidth={1.75} aria-hidden="true" />
        {label}
      </a>
      <span className="font-mono text-xs text-text-3 [overflow-wrap:anywhere]">{shown ?? new URL(url).origin}</span>
    </p>
  )
}

const Until = ({ at }: { at: string }) => (
  <p className="nums text-xs text-text-3">
    It ends <RelativeTime at={at} words />.
  </p>
)

async function copy(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text)
    toast({ title: 'Copied', meaning: 'good' })
  } catch {
    // No clipboard without HTTPS, or it is not allowed: the code is selected with one click.
    toast({ title: 'It could not be copied', description: 'Select the code and copy it.', meaning: 'warning' })
  }
}
