import { createFileRoute } from '@tanstack/react-router'
import { useEffect } from 'react'
import { AuthFrame } from '../session/auth-frame.tsx'
import { ExportWaiting } from '../session/export-waiting.tsx'
import { Redirect } from '../session/redirect.tsx'
import { Splash, Unreachable } from '../session/screens.tsx'
import { SignInForm } from '../session/sign-in-form.tsx'
import { sessionStore } from '../session/store.ts'
import { useSessionState } from '../session/use-session-state.ts'
import { Banner } from '../ui/banner.tsx'

export const Route = createFileRoute('/sign-in')({
  component: SignIn,
  /** `to`: where the person wanted to go; only addresses of our own. */
  validateSearch: (search: Record<string, unknown>): { to?: string } =>
    typeof search.to === 'string' && /^\/(?!\/)/.test(search.to) ? { to: search.to } : {},
})

function SignIn() {
  const { to } = Route.useSearch()
  const state = useSessionState()
  useEffect(() => sessionStore.start(), [])
  if (state.name === 'looking') return <Splash />
  if (state.name === 'signed-in') return <Redirect to={to ?? '/'} />
  if (state.name === 'setup') return <Redirect to="/setup" />
  if (state.name === 'unreachable') return <Unreachable message={state.message} />
  const { last } = state
  return (
    <AuthFrame
      title={last ? `Welcome back, ${last.principal.name.split(' ')[0]}` : 'Sign in to HQ'}
      lead={
        last ? 'Your session has ended. Sign in to go on syncing.' : 'With the email and password of your workspace.'
      }
      footer="Forgot your password, or no account yet? Ask an admin of the workspace for an invitation link."
    >
      {last && last.waiting > 0 && (
        <Banner
          meaning="waiting"
          title={last.waiting === 1 ? '1 change waits on this device' : `${last.waiting} changes wait on this device`}
          className="mb-4"
          action={<ExportWaiting person={last.principal} />}
        >
          Nothing is lost: sent as soon as {last.principal.name} has signed in.
        </Banner>
      )}
      <SignInForm email={last?.principal.email} />
    </AuthFrame>
  )
}
