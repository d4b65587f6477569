/** Model connections: which model each gateway’s agents think with. Keys are sealed here for that gateway; nobody reads them again. */
import { type SignInFlow, WAITING_FOR_SIGN_IN } from '@hq/shared/domain/oauth-settings.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import { EllipsisVertical, KeyRound, LogIn, Plus, RefreshCw, Star, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { newId, useRows, useSession, useWrite } from '../../replica/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Menu } from '../../ui/menu.tsx'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { Page } from '../../ui/shell/page.tsx'
import { Status } from '../../ui/status.tsx'
import { gatewayState } from '../gateways/gateway-state.ts'
import { ReplaceValueDialog } from '../secrets/replace-value-dialog.tsx'
import { MarkOf } from '../sync/row-mark.tsx'
import { AddConnectionDialog } from './add-connection-dialog.tsx'
import { makeDefault, providerFacts, removeConnection } from './connection.ts'
import { beginSignIn, renewSignIn } from './sign-in.ts'
import { SignInDialog, type Signing } from './sign-in-dialog.tsx'

export type ConnectionRow = Row<'model_connections'> & {
  readonly secret: Row<'secrets'> | null
}

const CONNECTIONS = `select m.*, to_jsonb(s) as secret from model_connections m left join secrets s on s.id = m.secret_id
  where m.deleted_at is null order by m.created_at desc, m.id desc limit 200`
const GATEWAYS = 'select * from gateways where deleted_at is null order by label, id limit 100'

export function ModelsPage() {
  const { isAdmin, principal } = useSession()
  const write = useWrite()
  const { rows: connections, ready } = useRows<ConnectionRow>(CONNECTIONS, [], {
    tables: ['model_connections', 'secrets'],
  })
  const { rows: gateways } = useRows<Row<'gateways'>>(GATEWAYS, [], { tables: ['gateways'] })
  const [adding, setAdding] = useState(false)
  const [signing, setSigning] = useState<Signing | null>(null)
  const signIn = async (connection: ConnectionRow, flow: SignInFlow) => {
    const command = newId()
    await write(beginSignIn(connection, flow, command, principal.person_id))
    setSigning({ connectionId: connection.id, flow, command })
  }
  const signingIn = connections.find(({ id }) => id === signing?.connectionId)
  const signingAt = gateways.find(({ id }) => id === signingIn?.gateway_id)
  const usable = gateways.some(({ public_key }) => public_key !== null)
  const add = isAdmin && (
    <Button variant="primary" icon={Plus} disabled={!usable} onClick={() => setAdding(true)}>
      Connect a model
    </Button>
  )
  const isEmpty = ready && connections.length === 0
  return (
    <Page title="Models" actions={!isEmpty && add}>
      <div className="mx-auto grid w-full max-w-[860px] grid-cols-1 gap-6 px-4 py-5">
        {gateways.length > 0 && !usable && (
          <Banner meaning="warning" title="No gateway can take a key yet">
            A gateway gets its key pair when it registers. Yours registered before there were any: register it anew.
          </Banner>
        )}
        {isEmpty && (
          <EmptyState drawing="agents" title="Agents think with the demo model" action={add}>
            It shows how everything works, with made-up answers. Connect a model of yours: Anthropic, OpenAI and
            everything compatible, OpenRouter, or Ollama on your own machine.
            {!isAdmin && ' An owner or admin can do that.'}
          </EmptyState>
        )}
        {gateways.map((gateway) => {
          const own = connections.filter(({ gateway_id }) => gateway_id === gateway.id)
          if (own.length === 0) return null
          return (
            <section key={gateway.id} aria-label={`Models of ${gateway.label}`} className="grid grid-cols-1 gap-3">
              {gateways.length > 1 && <h2 className="section-title">{gateway.label}</h2>}
              <ul className="grid grid-cols-1 gap-3">
                {own.map((connection, index) => (
                  <li key={connection.id}>
                    <Connection
                      connection={connection}
                      gateway={gateway}
                      onSignIn={(flow) => void signIn(connection, flow)}
                      used={own.findIndex(({ is_default }) => is_default) === index}
                    />
                  </li>
                ))}
              </ul>
            </section>
          )
        })}
      </div>
      <AddConnectionDialog open={adding} onOpenChange={setAdding} gateways={gateways} onSignIn={setSigning} />
      {signing && signingIn && signingAt && (
        <SignInDialog
          signing={signing}
          connection={signingIn}
          gateway={signingAt}
          onClose={() => setSigning(null)}
          onAgain={() => void signIn(signingIn, signing.flow)}
        />
      )}
    </Page>
  )
}

interface CardProps {
  readonly connection: ConnectionRow
  readonly gateway: Row<'gateways'>
  /** The one that agents of this gateway use. */
  readonly used: boolean
  readonly onSignIn: (flow: SignInFlow) => void
}

function Connection({ connection, gateway, used, onSignIn }: CardProps) {
  const { isAdmin } = useSession()
  const facts = providerFacts(connection.provider)
  return (
    <article
      aria-label={connection.label}
      className="grid grid-cols-1 gap-3 rounded-card border border-line bg-surface-1 p-4"
    >
      <header className="flex items-start gap-3">
        <div className="min-w-0 flex-1">
          <div className="flex flex-wrap items-center gap-x-2 gap-y-1">
            <h3 className="min-w-0 text-lg font-semibold [overflow-wrap:anywhere]">{connection.label}</h3>
            <MarkOf table="model_connections" id={connection.id} />
            {used && <Badge meaning="good">Agents use it</Badge>}
          </div>
          <p className="text-text-2 [overflow-wrap:anywhere]">
            {facts.label} · <span className="font-mono text-xs">{connection.default_model ?? 'no model'}</span>
          </p>
        </div>
        {isAdmin && <ConnectionMenu connection={connection} gateway={gateway} used={used} onSignIn={onSignIn} />}
      </header>
      <ConnectionStatus connection={connection} gateway={gateway} />
      {isAdmin && connection.oauth !== null && connection.status !== 'ok' && (
        <div className="flex flex-wrap gap-2">
          {flowsOf(connection).map(({ flow, label }) => (
            <Button key={flow} size="sm" icon={LogIn} onClick={() => onSignIn(flow)}>
              {label}
            </Button>
          ))}
        </div>
      )}
      <p className="nums flex flex-wrap gap-x-4 gap-y-1 text-xs text-text-3">
        <span className="[overflow-wrap:anywhere]">{connection.base_url ?? facts.address}</span>
        <span>{keyWords(connection)}</span>
      </p>
    </article>
  )
}

/** The ways that this connection can be signed in to. */
function flowsOf({ oauth }: ConnectionRow): readonly { readonly flow: SignInFlow; readonly label: string }[] {
  return [
    ...(oauth?.['authorize_url'] ? [{ flow: 'paste', label: 'Sign in with a browser' } as const] : []),
    ...(oauth?.['device_url'] ? [{ flow: 'device', label: 'Sign in with a device code' } as const] : []),
  ]
}

function keyWords({ secret, secret_id, oauth }: ConnectionRow): string {
  if (oauth !== null) return 'by sign-in'
  if (secret_id === null) return 'no key'
  if (!secret) return 'its key has not arrived on this device'
  if (secret.deleted_at) return 'its key was revoked'
  if (secret.sync_status === 'error') return `its key can’t be used: ${secret.sync_error ?? 'no reason given'}`
  return secret.synced_version === secret.version ? 'key on the gateway' : 'key on its way to the gateway'
}

function ConnectionStatus({ connection, gateway }: { connection: ConnectionRow; gateway: Row<'gateways'> }) {
  const state = gatewayState(gateway, useNow())
  const away = state.key === 'silent' || state.key === 'connecting'
  const at = connection.checked_at && (
    <span className="nums text-xs text-text-3">
      tried <RelativeTime at={connection.checked_at} words />
    </span>
  )
  if (connection.status === 'unchecked' && connection.status_detail === WAITING_FOR_SIGN_IN)
    return <Status meaning="waiting" shape="clock" label="Waiting for the sign-in" />
  if (connection.status === 'unchecked')
    return (
      <Status
        meaning="waiting"
        shape="clock"
        label={away ? 'Will be tried' : 'Is being tried'}
        detail={away ? `when ${gateway.label} is back` : undefined}
      />
    )
  return (
    <p aria-live="polite" className="flex flex-wrap items-center gap-x-3 gap-y-1">
      {connection.status === 'ok' ? (
        <Status meaning="good" label="Works" detail={connection.status_detail ?? undefined} />
      ) : (
        <Status meaning="danger" label="Does not work" detail={connection.status_detail ?? undefined} />
      )}
      {at}
    </p>
  )
}

function ConnectionMenu({ connection, gateway, used, onSignIn }: CardProps) {
  const write = useWrite()
  const { principal } = useSession()
  const [asking, setAsking] = useState(false)
  const [replacing, setReplacing] = useState(false)
  const check = () =>
    write([
      {
        sql: `insert into agent_commands (id, tenant_id, gateway_id, action, requested_by) values ($1, $2, $3, 'list_models', $4)`,
        params: [newId(), connection.tenant_id, gateway.id, principal.person_id],
      },
    ])
  return (
    <>
      <Menu
        trigger={<IconButton label={`More about ${connection.label}`} icon={EllipsisVertical} size="sm" />}
        align="end"
        items={[
          {
            kind: 'item',
            label: 'Let agents use it',
            icon: Star,
            disabled: used,
            onSelect: () => void write(makeDefault(gateway.id, connection.id)),
          },
          { kind: 'item', label: 'Try it now', icon: RefreshCw, onSelect: () => void check() },
          ...(connection.oauth === null
            ? [
                {
                  kind: 'item' as const,
                  label: 'Set another key…',
                  icon: KeyRound,
                  disabled: !connection.secret || connection.secret.deleted_at !== null,
                  onSelect: () => setReplacing(true),
                },
              ]
            : [
                ...flowsOf(connection).map(({ flow, label }) => ({
                  kind: 'item' as const,
                  label: `${label}…`,
                  icon: LogIn,
                  onSelect: () => onSignIn(flow),
                })),
                {
                  kind: 'item' as const,
                  label: 'Renew the sign-in now',
                  icon: RefreshCw,
                  onSelect: () => void write(renewSignIn(connection, newId(), principal.person_id)),
                },
              ]),
          { kind: 'separator' },
          { kind: 'item', label: 'Remove…', icon: Trash2, danger: true, onSelect: () => setAsking(true) },
        ]}
      />
      <Confirm
        open={asking}
        onOpenChange={setAsking}
        title={`Remove ${connection.label}?`}
        confirm="Remove"
        danger
        onConfirm={() => void write(removeConnection(connection))}
      >
        Its key is taken off the gateway.{' '}
        {used && 'Agents there use another connection then, or what the gateway’s own settings say.'}
      </Confirm>
      {connection.secret && (
        <ReplaceValueDialog
          open={replacing}
          onOpenChange={setReplacing}
          secret={connection.secret}
          publicKey={gateway.public_key}
          title={`Another key for ${connection.label}`}
          label="Key"
        />
      )}
    </>
  )
}
