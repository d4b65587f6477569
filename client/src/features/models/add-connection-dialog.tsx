/** Connecting a model. The key is read from the form at the moment of sealing and is in no state of the page. */
import type { SignInFlow } from '@hq/shared/domain/oauth-settings.ts'
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
import { OauthFields, oauthOf } from './oauth-fields.tsx'
import { beginSignIn } from './sign-in.ts'
import type { Signing } from './sign-in-dialog.tsx'

interface Props {
  readonly open: boolean
  readonly onOpenChange: (open: boolean) => void
  readonly gateways: readonly Row<'gateways'>[]
  /** A sign-in was begun with the new connection. */
  readonly onSignIn: (signing: Signing) => void
}

type Access = 'key' | SignInFlow

const ACCESS: readonly { readonly value: Access; readonly label: string }[] = [
  { value: 'key', label: 'API key, or a local address' },
  { value: 'paste', label: 'Sign in with a browser (OAuth)' },
  { value: 'device', label: 'Device code' },
]

export function AddConnectionDialog({ open, onOpenChange, gateways, onSignIn }: Props) {
  const write = useWrite()
  const { principal } = useSession()
  const usable = gateways.filter(({ public_key }) => public_key !== null)
  const [gatewayId, setGatewayId] = useState<string | null>(null)
  const [provider, setProvider] = useState<Provider>('anthropic')
  const [chosen, setAccess] = useState<Access>('key')
  const [problems, setProblems] = useState<Readonly<Record<string, string>>>({})
  const [failure, setFailure] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const form = useId()
  const facts = providerFacts(provider)
  const access = facts.signsIn ? chosen : 'key'
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
      ...(access === 'key' ? {} : { oauth: oauthOf(access, word) }),
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
      const ids = { connection: newId(), secret: newId(), sealed: newId() }
      const command = newId()
      const { tenantId: tenant_id, gatewayId: gateway_id, personId } = place
      const made = { id: ids.connection, tenant_id, gateway_id, label: input.label }
      await write([
        ...(await addConnection(input, place, ids)),
        ...(access === 'key' ? [] : beginSignIn(made, access, command, personId)),
      ])
      element.reset()
      onOpenChange(false)
      if (access !== 'key') return onSignIn({ connectionId: ids.connection, flow: access, command })
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
      description={
        access === 'key'
          ? 'The key is encrypted in this browser for the gateway; no one reads it again, not even the server.'
          : 'You sign in at the provider. The gateway alone has the token, and renews it.'
      }
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
        {facts.signsIn && (
          <Select
            label="Access"
            value={access}
            onValueChange={(next) => {
              setAccess(next)
              setProblems({})
            }}
            options={ACCESS}
          />
        )}
        <Input
          label="Model"
          name="model"
          mono
          autoComplete="off"
          spellCheck={false}
          placeholder={facts.exampleModel}
          error={problems['model'] || null}
        />
        {access === 'key' ? (
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
        ) : (
          <OauthFields flow={access} problems={problems} />
        )}
        <Input
          label={access === 'key' ? 'Address' : 'API address'}
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
