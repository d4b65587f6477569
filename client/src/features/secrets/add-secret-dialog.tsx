/** A new secret. Its value is read from the form at the moment of sealing and is in no state of the page. */
import { secretNameProblem } from '@hq/shared/domain/secret-names.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import { useEffect, useId, useState } from 'react'
import { newId, useRows, useSession, useWrite } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Input } from '../../ui/input.tsx'
import { Select } from '../../ui/select.tsx'
import { toast } from '../../ui/toast.tsx'
import { addSecret } from './set-secret.ts'

export interface SecretScope {
  /** For this agent, unless another is chosen. */
  readonly agent?: Pick<Row<'agents'>, 'id' | 'name' | 'gateway_id'>
}

interface Props {
  readonly open: boolean
  readonly onOpenChange: (open: boolean) => void
  readonly scope: SecretScope
}

interface Choice {
  readonly id: string
  readonly label: string
  readonly gatewayId: string
  readonly agentId: string | null
  readonly publicKey: string
  readonly tenantId: string
}

const GATEWAYS =
  'select * from gateways where deleted_at is null and public_key is not null order by label, id limit 100'
const AGENTS =
  'select id, name, gateway_id from agents where deleted_at is null and gateway_id is not null order by name limit 500'

export function AddSecretDialog({ open, onOpenChange, scope }: Props) {
  const write = useWrite()
  const { principal } = useSession()
  const { rows: gateways } = useRows<Row<'gateways'>>(GATEWAYS, [], { tables: ['gateways'], enabled: open })
  const { rows: agents } = useRows<Pick<Row<'agents'>, 'id' | 'name' | 'gateway_id'>>(AGENTS, [], {
    tables: ['agents'],
    enabled: open,
  })
  const [chosen, setChosen] = useState<string | null>(null)
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({})
  const [failure, setFailure] = useState<string | null>(null)
  const form = useId()
  useEffect(() => {
    if (!open) return
    setProblems({})
    setFailure(null)
    setChosen(scope.agent?.id ?? null)
  }, [open, scope.agent?.id])

  const choices = gateways.flatMap((gateway): Choice[] => {
    const common = { gatewayId: gateway.id, publicKey: gateway.public_key ?? '', tenantId: gateway.tenant_id }
    return [
      { ...common, id: gateway.id, label: `All agents of ${gateway.label}`, agentId: null },
      ...agents
        .filter(({ gateway_id }) => gateway_id === gateway.id)
        .map(({ id, name }) => ({ ...common, id, label: name, agentId: id })),
    ]
  })
  const choice = choices.find(({ id }) => id === chosen) ?? choices[0]

  const submit = async (element: HTMLFormElement) => {
    if (!choice) return
    const data = new FormData(element)
    const word = (name: string): string => String(data.get(name) ?? '').trim()
    const found: Record<string, string> = {}
    const key = word('key').toUpperCase()
    const nameProblem = key === '' ? 'Please name the variable.' : secretNameProblem(key)
    if (nameProblem) found['key'] = nameProblem
    if (word('value') === '') found['value'] = 'Please enter the value.'
    setProblems(found)
    if (Object.keys(found).length > 0) return
    try {
      const statements = await addSecret(
        {
          id: newId(),
          tenant_id: choice.tenantId,
          gateway_id: choice.gatewayId,
          agent_id: choice.agentId,
          category: 'user',
          key,
          name: word('name') || key,
          note: word('note') || null,
          created_by: principal.person_id,
        },
        newId(),
        choice.publicKey,
        word('value'),
      )
      await write(statements)
      element.reset()
      onOpenChange(false)
      toast({ title: `${key} is set`, description: `For ${choice.label}.`, meaning: 'good' })
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error))
    }
  }

  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      title="Add a secret"
      description="The value is encrypted in this browser for one gateway. Nobody reads it again, not even the server."
      footer={
        <>
          <Button onClick={() => onOpenChange(false)}>Cancel</Button>
          <Button type="submit" form={form} variant="primary" disabled={!choice}>
            Add
          </Button>
        </>
      }
    >
      <form
        id={form}
        noValidate
        className="grid grid-cols-1 gap-4"
        onInput={({ target }) => {
          // What is being corrected is not called wrong any more.
          const { name } = target as HTMLInputElement
          if (problems[name]) setProblems({ ...problems, [name]: '' })
        }}
        onSubmit={(event) => {
          event.preventDefault()
          void submit(event.currentTarget)
        }}
      >
        {failure && (
          <Banner meaning="danger" title="It was not set">
            {failure}
          </Banner>
        )}
        {choices.length === 0 && (
          <Banner meaning="warning" title="No gateway can take a secret yet">
            A gateway gets its key pair when it registers. Add one first (Gateways).
          </Banner>
        )}
        <Select
          label="For"
          value={choice?.id ?? null}
          onValueChange={setChosen}
          options={choices.map(({ id, label }) => ({ value: id, label }))}
        />
        <Input
          label="Variable"
          name="key"
          mono
          autoComplete="off"
          spellCheck={false}
          placeholder="GITHUB_TOKEN"
          hint="Agents’ programs find it in their environment under this name."
          error={problems['key'] || null}
        />
        <Input label="Value" name="value" type="password" mono autoComplete="off" error={problems['value'] || null} />
        <Input label="Name" name="name" optional autoComplete="off" placeholder="GitHub, read only" />
        <Input label="Note" name="note" optional autoComplete="off" placeholder="Where it comes from, when it ends" />
      </form>
    </Dialog>
  )
}
