/** Moves an agent to another gateway: where to, what goes along, and what to do when the old gateway is away. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { useState } from 'react'
import { newId, useRow, useRows, useSession, useWrite } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Checkbox } from '../../ui/checkbox.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { useNow } from '../../ui/relative-time.tsx'
import { Select } from '../../ui/select.tsx'
import { toast } from '../../ui/toast.tsx'
import { gatewayState } from './gateway-state.ts'
import { type MovingAgent, moveStatements, secretsSentence } from './move-plan.ts'

type Gateway = Pick<
  Row<'gateways'>,
  'id' | 'label' | 'slug' | 'status' | 'last_seen_at' | 'pause_requested_at' | 'deleted_at'
>

export type MoveAgentDialogProps = {
  agent: MovingAgent & { readonly name: string }
  open: boolean
  onOpenChange: (open: boolean) => void
}

export function MoveAgentDialog({ agent, open, onOpenChange }: MoveAgentDialogProps) {
  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      title={`Move ${agent.name}`}
      description="It goes on where it stands, on another machine."
      size="sm"
    >
      {open && <Form agent={agent} onDone={() => onOpenChange(false)} />}
    </Dialog>
  )
}

const OTHERS = `select id, label, slug, status, last_seen_at, pause_requested_at, deleted_at from gateways where deleted_at is null and id is distinct from $1 order by label, id`
const OWN = `select id, label, slug, status, last_seen_at, pause_requested_at, deleted_at from gateways where id = $1`
const SECRETS = 'select key from secrets where agent_id = $1 and deleted_at is null order by key'

function Form({ agent, onDone }: { agent: MoveAgentDialogProps['agent']; onDone: () => void }) {
  const write = useWrite()
  const now = useNow()
  const { principal, isAdmin } = useSession()
  const { rows: others, ready } = useRows<Gateway>(OTHERS, [agent.gateway_id], { tables: ['gateways'] })
  const { row: from } = useRow<Gateway>(OWN, [agent.gateway_id], { tables: ['gateways'] })
  const { rows: secrets } = useRows<{ key: string }>(SECRETS, [agent.id], { tables: ['secrets'] })
  const [to, setTo] = useState<string | null>(null)
  const [withoutFiles, setWithoutFiles] = useState(false)
  const target = others.find(({ id }) => id === to)
  const gone = !from || from.deleted_at !== null
  const away = gone || gatewayState(from, now).key === 'silent'
  const isWithout = gone || (away && withoutFiles)
  const mayWithout = isAdmin
  const secretWords = secretsSentence(secrets.map(({ key }) => key))
  const move = () => {
    if (!target) return
    const how = isWithout ? 'without_files' : 'with_files'
    const ids = { commandId: newId(), personId: principal.person_id }
    void write(moveStatements(agent, target.id, how, ids))
    toast({ title: `${agent.name} moves to ${target.label}`, meaning: 'good' })
    onDone()
  }
  if (ready && others.length === 0)
    return <p className="text-text-2">There is no other gateway. Add one under Gateways first.</p>
  return (
    <div className="grid gap-4">
      <Select
        label="To"
        value={to}
        onValueChange={setTo}
        placeholder="Choose a gateway"
        options={others.map((gateway) => ({
          value: gateway.id,
          label: gateway.label,
          hint: gatewayState(gateway, now).label,
        }))}
      />
      {!away && (
        <p className="text-text-2">
          What it is doing is ended and begun again there. Its files with their history, its open work and what waits
          for it go along, encrypted for that gateway.
        </p>
      )}
      {away && !gone && (
        <Banner meaning="waiting" title={`${from.label} was not heard of lately`}>
          The move waits until it is back: only it has the newest files.
        </Banner>
      )}
      {gone && (
        <Banner meaning="warning" title="Its gateway is gone">
          It begins with its template and the files as they were last seen here. What was only on that machine stays
          there.
        </Banner>
      )}
      {away && !gone && mayWithout && (
        <Checkbox
          label="Don’t wait: go on without its newest files"
          checked={withoutFiles}
          onCheckedChange={(checked) => setWithoutFiles(checked === true)}
          hint="It begins with its template and the files as they were last seen here. What the old gateway still sends does not count."
        />
      )}
      {gone && !mayWithout && <p className="text-text-2">An admin can move it.</p>}
      {secretWords && <p className="text-text-2">{secretWords}</p>}
      {target && gatewayState(target, now).key === 'silent' && (
        <p className="text-text-2">{target.label} was not heard of lately; it arrives when that one is back.</p>
      )}
      <div className="flex justify-end gap-2">
        <Button onClick={onDone}>Cancel</Button>
        <Button variant={isWithout ? 'danger' : 'primary'} disabled={!target || (gone && !mayWithout)} onClick={move}>
          {isWithout ? 'Move without its files' : away ? 'Move when it is back' : 'Move'}
        </Button>
      </div>
    </div>
  )
}
