import { type FormEvent, useCallback, useState } from 'react'
import { Button } from '../ui/button.tsx'
import { Input } from '../ui/input.tsx'
import { acceptInvitation, type Invitation } from './api.ts'
import { FormProblem } from './auth-frame.tsx'
import { sessionStore } from './store.ts'
import { useSubmit } from './use-submit.ts'

/** Accepts an invitation. */
export function JoinForm({ token, invitation }: { token: string; invitation: Invitation }) {
  const [name, setName] = useState('')
  const [email, setEmail] = useState(invitation.email ?? '')
  const [password, setPassword] = useState('')
  const form = useSubmit(
    useCallback(async () => {
      await acceptInvitation(token, { name, email, password })
      await sessionStore.check()
    }, [token, name, email, password]),
  )
  const onSubmit = (event: FormEvent) => {
    event.preventDefault()
    form.submit()
  }
  return (
    <form onSubmit={onSubmit} className="flex flex-col gap-4">
      <Input
        label="Your name"
        name="name"
        autoComplete="name"
        required
        autoFocus
        value={name}
        onChange={(event) => setName(event.target.value)}
        error={form.fieldError('name')}
      />
      <Input
        label="Email"
        name="email"
        type="email"
        autoComplete="username"
        required
        readOnly={invitation.email !== null}
        hint={invitation.email === null ? undefined : 'The invitation is for this address.'}
        value={email}
        onChange={(event) => setEmail(event.target.value)}
        error={form.fieldError('email')}
      />
      <Input
        label="Choose a password"
        name="password"
        type="password"
        autoComplete="new-password"
        required
        minLength={8}
        hint="At least 8 characters."
        value={password}
        onChange={(event) => setPassword(event.target.value)}
        error={form.fieldError('password')}
      />
      <FormProblem error={form.error} offline="Joining needs the server. Your entries stay here; try again." />
      <Button type="submit" variant="primary" size="lg" busy={form.busy}>
        Join {invitation.workspace_name}
      </Button>
    </form>
  )
}
