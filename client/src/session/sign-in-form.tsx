import { type FormEvent, useCallback, useState } from 'react'
import { Button } from '../ui/button.tsx'
import { Input } from '../ui/input.tsx'
import { signIn } from './api.ts'
import { FormProblem } from './auth-frame.tsx'
import { sessionStore } from './store.ts'
import { useSubmit } from './use-submit.ts'

/** Email and password. Afterwards the session store knows who it is, and the screens follow. */
export function SignInForm({ email: remembered }: { email: string | undefined }) {
  const [email, setEmail] = useState(remembered ?? '')
  const [password, setPassword] = useState('')
  const form = useSubmit(
    useCallback(async () => {
      await signIn(email, password)
      await sessionStore.check()
    }, [email, password]),
  )
  const onSubmit = (event: FormEvent) => {
    event.preventDefault()
    form.submit()
  }
  return (
    <form onSubmit={onSubmit} className="flex flex-col gap-4">
      <Input
        label="Email"
        name="email"
        type="email"
        autoComplete="username"
        required
        autoFocus={!remembered}
        value={email}
        onChange={(event) => setEmail(event.target.value)}
      />
      <Input
        label="Password"
        name="password"
        type="password"
        autoComplete="current-password"
        required
        autoFocus={remembered !== undefined}
        value={password}
        onChange={(event) => setPassword(event.target.value)}
      />
      <FormProblem
        error={form.error}
        offline="Signing in needs the server, because only it knows the password. What is on this device stays as it is."
      />
      <Button type="submit" variant="primary" size="lg" busy={form.busy}>
        Sign in
      </Button>
    </form>
  )
}
