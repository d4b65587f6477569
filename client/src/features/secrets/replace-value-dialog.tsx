/** A new value for a secret that is there. Never shows the old one: nobody but the gateway can read it. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { useEffect, useId, useState } from 'react'
import { newId, useWrite } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Input } from '../../ui/input.tsx'
import { toast } from '../../ui/toast.tsx'
import { replaceSecret } from './set-secret.ts'

interface Props {
  readonly open: boolean
  readonly onOpenChange: (open: boolean) => void
  readonly secret: Row<'secrets'>
  /** Of its gateway. */
  readonly publicKey: string | null
  readonly title: string
  readonly label: string
}

export function ReplaceValueDialog({ open, onOpenChange, secret, publicKey, title, label }: Props) {
  const write = useWrite()
  const [problem, setProblem] = useState<string | null>(null)
  const form = useId()
  useEffect(() => {
    if (open) setProblem(null)
  }, [open])
  const submit = async (element: HTMLFormElement) => {
    const value = String(new FormData(element).get('value') ?? '')
    if (value.trim() === '') return setProblem('Please enter the new value.')
    if (publicKey === null) return setProblem('The gateway of this secret has no key that it could be encrypted for.')
    try {
      await write(await replaceSecret(secret, newId(), publicKey, value.trim()))
      element.reset()
      onOpenChange(false)
      toast({ title: `${secret.name} has a new value`, description: 'Its gateway takes it up next.', meaning: 'good' })
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error))
    }
  }
  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      title={title}
      description="It is encrypted in this browser for its gateway. The old one counts until the gateway has the new one."
      footer={
        <>
          <Button onClick={() => onOpenChange(false)}>Cancel</Button>
          <Button type="submit" form={form} variant="primary">
            Replace
          </Button>
        </>
      }
    >
      <form
        id={form}
        noValidate
        className="grid grid-cols-1 gap-4"
        onSubmit={(event) => {
          event.preventDefault()
          void submit(event.currentTarget)
        }}
      >
        {problem && (
          <Banner meaning="danger" title="It was not replaced">
            {problem}
          </Banner>
        )}
        <Input label={label} name="value" type="password" mono autoComplete="off" />
      </form>
    </Dialog>
  )
}
