/** Connecting a model. The key is read from the form at the moment of sealing and is in no state of the page. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { useEffect, useId, useState } from 'react'
import { newId, useSession, useWrite } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Input } from '../../ui/input.tsx'
import { Select } from '../../ui/select.tsx'
import { toast } from '../../ui/toast.tsx'
import { addConnection, inputProblems, PROVIDERS, type Provider, providerFacts } from './connection.ts'

interface Props {
  readonly open: boolean
  readonly onOpenChange: (open: boolean) => void
  readonly gateways: readonly Row<'gateways'>[]
}

export function AddConnectionDialog({ open, onOpenChange, gateways }: Props) {
  const write = useWrite()
  const { principal } = useSession()
  const usable = gateways.filter(({ public_key }) => public_key !== null)
  const [gatewayId, setGatewayId] = useState<string | null>(null)
  const [provider, setProvider] = useState<Provider>('anthropic')
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({})
  const [failure, setFailure] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const form = useId()
  const facts = providerFacts(provider)
  const gateway = usable.find(({ id }) => id === gatewayId) ?? usable[0]
  useEffect(() => {
    if (!open) return
    setProblems({})
    setFailure(null)
  }, [open])

  const submit = async (element: HTMLFormElement) => {
    if (busy || !gateway?.public_key) return
    const data = new FormData(element)
    const word = (name: string): string => String(data.get(name) ?? '')
    const input = {
      provider,
      label: word('label') || facts.label,
      baseUrl: word('baseUrl'),
      model: word('model'),
      key: word('key'),
    }
    const found = inputProblems(input)
    setProblems(found)
    if (Object.keys(found).length > 0) return
    setBusy(true)
    setFailure(null)
    try {
      const place = {
        tenantId: gateway.tenant_id,
        gatewayId: gateway.id,
        publicKey: gateway.public_key,
        personId: principal.person_id,
      }
      await write(await addConnection(input, place, { connection: newId(), secret: newId(), sealed: newId() }))
      element.reset()
      onOpenChange(false)
      toast({ title: `${input.label} is connected`, description: `${gateway.label} tries it now.`, meaning: 'good' })
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error))
    } finally {
      setBusy(false)
    }
  }

  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      title="Connect a model"
      description="The key is encrypted in this browser for the gateway; no one reads it again, not even the server."
      footer={
        <>
          <Button onClick={() => onOpenChange(false)}>Cancel</Button>
          <Button type="submit" form={form} variant="primary" busy={busy}>
            Connect
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
          <Banner meaning="danger" title="It was not connected">
            {failure}
          </Banner>
        )}
        {usable.length > 1 && (
          <Select
            label="Gateway"
            value={gateway?.id ?? null}
            onValueChange={setGatewayId}
            options={usable.map(({ id, label }) => ({ value: id, label }))}
          />
        )}
        <Select
          label="Provider"
          value={provider}
          onValueChange={(next) => {
            setProvider(next)
            setProblems({})
          }}
          options={PROVIDERS.map(({ id, label }) => ({ value: id, label }))}
        />
        <Input
          label="Model"
          name="model"
          mono
          autoComplete="off"
          spellCheck={false}
          placeholder={facts.exampleModel}
          error={problems['model'] || null}
        />
        <Input
          label="Key"
          name="key"
          type="password"
          mono
          optional={!facts.needsKey}
          autoComplete="off"
          hint={facts.keyHint}
          error={problems['key'] || null}
        />
        <Input
          label="Address"
          name="baseUrl"
          optional
          mono
          autoComplete="off"
          spellCheck={false}
          placeholder={facts.address}
          hint={
            facts.asksAddress
              ? 'As the gateway reaches it; empty: on the gateway’s own machine.'
              : 'Empty: the provider’s own.'
          }
          error={problems['baseUrl'] || null}
        />
        <Input
          label="Name"
          name="label"
          optional
          autoComplete="off"
          placeholder={facts.label}
          error={problems['label'] || null}
        />
      </form>
    </Dialog>
  )
}
