/** Secrets of the workspace, or those that one agent has: names and how they stand; set, replaced, revoked. Values are never shown. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { EllipsisVertical, KeyRound, Plus, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { useRows, useSession, useWrite } from '../../replica/hooks.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Menu } from '../../ui/menu.tsx'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { Status } from '../../ui/status.tsx'
import { gatewayState } from '../gateways/gateway-state.ts'
import { MarkOf } from '../sync/row-mark.tsx'
import { AddSecretDialog, type SecretScope } from './add-secret-dialog.tsx'
import { ReplaceValueDialog } from './replace-value-dialog.tsx'
import { CATEGORY, secretState } from './secret-words.ts'
import { revokeSecret } from './set-secret.ts'

type SecretRow = Row<'secrets'> & {
  readonly agent_name: string | null
  readonly gateway: Row<'gateways'> | null
}

/** Revoked ones stay in sight until their gateway has taken them away, and a day longer. */
const SECRETS = `select s.*, a.name as agent_name, to_jsonb(g) as gateway from secrets s
  left join agents a on a.id = s.agent_id left join gateways g on g.id = s.gateway_id
  where s.category <> 'model' and (s.deleted_at is null or s.sync_status <> 'revoked' or s.deleted_at > now() - interval '1 day')
    and ($1::uuid is null or s.agent_id = $1 or (s.agent_id is null and s.gateway_id = $2))
  order by s.deleted_at is not null, s.key, s.created_at limit 500`

/** @param agent those that it has: its own and its gateway's */
export function SecretsList({ agent }: { agent?: Pick<Row<'agents'>, 'id' | 'name' | 'gateway_id'> }) {
  const { isAdmin } = useSession()
  const { rows, ready } = useRows<SecretRow>(SECRETS, [agent?.id ?? null, agent?.gateway_id ?? null], {
    tables: ['secrets', 'agents', 'gateways'],
  })
  const [adding, setAdding] = useState(false)
  const scope: SecretScope = agent ? { agent } : {}
  const add = isAdmin && (
    <Button variant="primary" icon={Plus} onClick={() => setAdding(true)}>
      Add a secret
    </Button>
  )
  return (
    <>
      {ready && rows.length === 0 ? (
        <EmptyState drawing="inbox" title="No secret yet" action={add}>
          Tokens and passwords that agents’ programs need. A value is encrypted in this browser for one gateway, and
          only that gateway can read it.{!isAdmin && ' An owner or admin can add one.'}
        </EmptyState>
      ) : (
        <div className="grid grid-cols-1 gap-4">
          <div className="flex flex-wrap items-center gap-3">
            <p className="min-w-0 flex-1 basis-64 text-text-2">
              {isAdmin
                ? 'Values are encrypted in the browser for their gateway. Nobody sees one again; it can be replaced or revoked.'
                : 'You see which secrets there are. Owners and admins set them; their values are seen by nobody.'}
            </p>
            {add}
          </div>
          <ul className="grid grid-cols-1 overflow-hidden rounded-card border border-line">
            {rows.map((secret) => (
              <Secret key={secret.id} secret={secret} />
            ))}
          </ul>
        </div>
      )}
      <AddSecretDialog open={adding} onOpenChange={setAdding} scope={scope} />
    </>
  )
}

function Secret({ secret }: { secret: SecretRow }) {
  const { isAdmin } = useSession()
  const { gateway } = secret
  const now = useNow()
  const known = gateway && gatewayState(gateway, now)
  const away = known && (known.key === 'silent' || known.key === 'connecting') ? gateway.label : undefined
  const state = secretState(secret, away)
  return (
    <li className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1 border-t border-line px-3 py-2 first:border-t-0">
      <span className="min-w-0 flex-1 basis-56">
        <span className="flex min-w-0 flex-wrap items-center gap-x-2">
          <span className="font-mono text-xs font-medium [overflow-wrap:anywhere]">{secret.key}</span>
          <MarkOf table="secrets" id={secret.id} />
          <Badge>{secret.agent_name ?? `All agents of ${gateway?.label ?? 'a gateway'}`}</Badge>
          {secret.category !== 'user' && <Badge>{CATEGORY[secret.category]}</Badge>}
        </span>
        <span className="block text-text-3 [overflow-wrap:anywhere]">
          {secret.name}
          {secret.note && `: ${secret.note}`}
        </span>
      </span>
      <span aria-live="polite">
        <Status meaning={state.meaning} shape={state.shape} label={state.label} detail={state.detail} />
      </span>
      <span className="nums text-xs text-text-3">
        {secret.version > 1 && `value ${secret.version}, `}
        <RelativeTime at={secret.last_synced_at ?? secret.created_at} />
      </span>
      {isAdmin && !secret.deleted_at && <SecretMenu secret={secret} />}
    </li>
  )
}

function SecretMenu({ secret }: { secret: SecretRow }) {
  const write = useWrite()
  const [asking, setAsking] = useState(false)
  const [replacing, setReplacing] = useState(false)
  return (
    <>
      <Menu
        trigger={<IconButton label={`More about ${secret.key}`} icon={EllipsisVertical} size="sm" />}
        align="end"
        items={[
          { kind: 'item', label: 'Replace the value…', icon: KeyRound, onSelect: () => setReplacing(true) },
          { kind: 'separator' },
          { kind: 'item', label: 'Revoke…', icon: Trash2, danger: true, onSelect: () => setAsking(true) },
        ]}
      />
      <Confirm
        open={asking}
        onOpenChange={setAsking}
        title={`Revoke ${secret.key}?`}
        confirm="Revoke"
        danger
        onConfirm={() => void write(revokeSecret(secret.id))}
      >
        Agents have it no more from their next run on, and it is taken off the gateway. Where it came from it still
        counts: end it there as well if it may have leaked.
      </Confirm>
      <ReplaceValueDialog
        open={replacing}
        onOpenChange={setReplacing}
        secret={secret}
        publicKey={secret.gateway?.public_key ?? null}
        title={`A new value for ${secret.key}`}
        label="Value"
      />
    </>
  )
}
