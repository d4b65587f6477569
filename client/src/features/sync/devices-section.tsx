/** Every device with a copy of the workspace: what it is, whose, when it was last heard of; taking one out and letting it in again. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { useState } from 'react'
import { useRow, useRows, useSession, useSyncStatus } from '../../replica/hooks.ts'
import { request } from '../../session/api.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { StatusShape } from '../../ui/status.tsx'
import { toast } from '../../ui/toast.tsx'
import { type DeviceState, deviceState } from './devices.ts'

interface DeviceRow extends Row<'replicas'> {
  readonly person_name: string | null
  readonly gateway_label: string | null
}

const DEVICES = `select r.*, p.name as person_name, g.label as gateway_label
  from replicas r left join people p on p.id = r.person_id left join gateways g on g.id = r.gateway_id
  where r.deleted_at is null and ($2::boolean or r.person_id = $1::uuid)
  order by (r.person_id = $1::uuid) desc nulls last, r.revoked_at is not null, r.last_seen_at desc nulls last, r.id limit 300`
const HERE = 'select replica_id from sync.replica'
/** Every rebuild leaves one behind; those not heard of for long are folded away. */
const LONG_MS = 30 * 24 * 3_600_000

export function DevicesSection() {
  const { principal, isAdmin } = useSession()
  const { rows } = useRows<DeviceRow>(DEVICES, [principal.person_id, isAdmin], {
    tables: ['replicas', 'people', 'gateways'],
  })
  const here = useRow<{ replica_id: string }>(HERE, undefined, { tables: ['sync'] }).row?.replica_id
  const now = useNow()
  const [all, setAll] = useState(false)
  const isOld = (row: DeviceRow): boolean =>
    row.replica_id !== here && (row.last_seen_at === null || now - Date.parse(row.last_seen_at) > LONG_MS)
  // This device first, whatever the database thinks of when it was last heard of.
  const sorted = [...rows].sort((a, b) => Number(b.replica_id === here) - Number(a.replica_id === here))
  const shown = all ? sorted : sorted.filter((row) => !isOld(row))
  const hidden = rows.length - shown.length
  return (
    <section aria-label="Devices" className="flex flex-col gap-2">
      <h2 className="section-title">
        {isAdmin ? 'Devices of everybody' : 'Your devices'}
        {rows.length > 0 && <span className="nums ml-2 font-normal text-text-3">{rows.length}</span>}
      </h2>
      <p className="-mt-1 text-text-2">
        Each has a copy of this workspace. One that is lost can be taken out: it then gets nothing more and cannot send.
      </p>
      {shown.length === 0 && hidden === 0 ? (
        <p className="text-text-3">This device is listed here once it has reached the server.</p>
      ) : (
        <ul className="overflow-hidden rounded-card border border-line bg-surface-1">
          {shown.map((row) => (
            <DeviceLine key={row.id} row={row} here={row.replica_id === here} now={now} />
          ))}
        </ul>
      )}
      {hidden > 0 && (
        <div>
          <Button size="sm" variant="ghost" onClick={() => setAll(true)}>
            Show {hidden === 1 ? '1 that was' : `${hidden} that were`} not heard of for 30 days
          </Button>
        </div>
      )}
    </section>
  )
}

const MARK = {
  active: { shape: 'check', meaning: 'good', label: 'Active' },
  idle: { shape: 'ring', meaning: 'neutral', label: 'Not active' },
  revoked: { shape: 'slash', meaning: 'warning', label: 'Removed' },
} as const satisfies Record<DeviceState, object>

function DeviceLine({ row, here, now }: { row: DeviceRow; here: boolean; now: number }) {
  const { principal, isAdmin } = useSession()
  const { pending, connection, parked } = useSyncStatus()
  const [asking, setAsking] = useState(false)
  const [busy, setBusy] = useState(false)
  // A removed device may hear of it by a refusal before its own row says so, if that ever arrives.
  const state = here && parked === 'revoked' ? 'revoked' : deviceState(row, here && connection === 'online', now)
  const mine = row.person_id === principal.person_id
  const isGateway = row.kind === 'gateway'
  const name = isGateway ? (row.gateway_label ?? 'A gateway') : (row.label ?? 'A browser')
  const ask = async (action: 'revoke' | 'restore') => {
    setBusy(true)
    try {
      await request('POST', `/v1/devices/${row.id}/${action}`, {})
      toast({ title: action === 'revoke' ? `${name} was removed` : `${name} may sync again`, meaning: 'good' })
    } catch (error) {
      toast({
        title: action === 'revoke' ? 'The device was not removed' : 'The device was not let in',
        description: error instanceof Error ? error.message : String(error),
        meaning: 'danger',
      })
    } finally {
      setBusy(false)
    }
  }
  return (
    <li className="flex min-h-11 flex-wrap items-center gap-x-3 gap-y-1 border-b border-line px-3 py-1.5 last:border-0">
      <StatusShape {...MARK[state]} />
      <div className="min-w-0 flex-1 basis-48">
        <p className="flex min-w-0 flex-wrap items-center gap-x-2">
          <span className="truncate font-medium">{name}</span>
          {here && <Badge meaning="busy">This device</Badge>}
          {isGateway && <Badge>Gateway</Badge>}
          {!mine && row.person_name && <span className="truncate text-text-2">{row.person_name}</span>}
        </p>
        <p className="text-xs text-text-3">
          {state === 'revoked' ? (
            <>Removed {row.revoked_at && <RelativeTime at={row.revoked_at} words />}</>
          ) : state === 'active' ? (
            'Active now'
          ) : row.last_seen_at ? (
            <>
              Last heard of <RelativeTime at={row.last_seen_at} words />
            </>
          ) : (
            'Not heard of yet'
          )}
          {here && pending > 0 && <span className="nums">, {pending.toLocaleString('en')} waiting here</span>}
        </p>
      </div>
      {!isGateway && state !== 'revoked' && (mine || isAdmin) && (
        <Button
          size="sm"
          variant="ghost"
          busy={busy}
          aria-label={`Remove… ${name}${here ? ', this device' : ''}`}
          onClick={() => setAsking(true)}
        >
          Remove…
        </Button>
      )}
      {!isGateway && state === 'revoked' && isAdmin && (
        <Button
          size="sm"
          variant="ghost"
          busy={busy}
          aria-label={`Let in again: ${name}`}
          onClick={() => void ask('restore')}
        >
          Let in again
        </Button>
      )}
      <Confirm
        open={asking}
        onOpenChange={setAsking}
        title={here ? 'Remove this device?' : `Remove ${name}?`}
        confirm="Remove"
        danger
        onConfirm={() => void ask('revoke')}
      >
        It gets nothing new from the workspace and sends nothing more. What it has already stays on it until its
        browser’s data is deleted; changes that still wait there are kept and can be exported as a file. An admin can
        let it in again.
        {here && pending > 0 && ` ${pending.toLocaleString('en')} of your changes wait here and would not be sent.`}
      </Confirm>
    </li>
  )
}
