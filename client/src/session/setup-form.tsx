import { type FormEvent, useCallback, useMemo, useState } from 'react'
import { Button } from '../ui/button.tsx'
import { Combobox } from '../ui/combobox.tsx'
import { Input } from '../ui/input.tsx'
import { setUp } from './api.ts'
import { FormProblem } from './auth-frame.tsx'
import { sessionStore } from './store.ts'
import { useSubmit } from './use-submit.ts'

/** The first visit: who owns this workspace, and what it is called. */
export function SetupForm() {
  const [name, setName] = useState('')
  const [email, setEmail] = useState('')
  const [password, setPassword] = useState('')
  const [workspace, setWorkspace] = useState('')
  const [timezone, setTimezone] = useState<string | null>(() => Intl.DateTimeFormat().resolvedOptions().timeZone)
  const zones = useMemo(timeZones, [])
  const form = useSubmit(
    useCallback(async () => {
      await setUp({ name, email, password, workspace_name: workspace, timezone: timezone ?? 'UTC' })
      await sessionStore.check()
    }, [name, email, password, workspace, timezone]),
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
        value={email}
        onChange={(event) => setEmail(event.target.value)}
        error={form.fieldError('email')}
      />
      <Input
        label="Password"
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
      <Input
        label="Workspace"
        name="workspace"
        autoComplete="organization"
        required
        placeholder="Acme"
        hint="What your team or company is called."
        value={workspace}
        onChange={(event) => setWorkspace(event.target.value)}
        error={form.fieldError('workspace_name')}
      />
      <Combobox
        label="Time zone"
        value={timezone}
        onValueChange={setTimezone}
        options={zones}
        searchPlaceholder="Find a city…"
        error={form.fieldError('timezone')}
      />
      <FormProblem error={form.error} offline="Setting up needs the server. Your entries stay here; try again." />
      <Button type="submit" variant="primary" size="lg" busy={form.busy}>
        Create the workspace
      </Button>
    </form>
  )
}

/** All zones that the browser knows, with the place's name first. */
function timeZones() {
  return ['UTC', ...Intl.supportedValuesOf('timeZone')].map((value) => ({
    value,
    label: value.replaceAll('_', ' ').replaceAll('/', ' / '),
    keywords: [value],
  }))
}
