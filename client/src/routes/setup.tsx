import { createFileRoute } from '@tanstack/react-router'
import { useEffect } from 'react'
import { AuthFrame } from '../session/auth-frame.tsx'
import { Redirect } from '../session/redirect.tsx'
import { Splash, Unreachable } from '../session/screens.tsx'
import { SetupForm } from '../session/setup-form.tsx'
import { sessionStore } from '../session/store.ts'
import { useSessionState } from '../session/use-session-state.ts'

export const Route = createFileRoute('/setup')({ component: Setup })

function Setup() {
  const state = useSessionState()
  useEffect(() => sessionStore.start(), [])
  if (state.name === 'looking') return <Splash />
  if (state.name === 'signed-in') return <Redirect to="/" />
  if (state.name === 'signed-out') return <Redirect to="/sign-in" />
  if (state.name === 'unreachable') return <Unreachable message={state.message} />
  return (
    <AuthFrame
      title="Welcome to HQ"
      lead="You are the first here, so this becomes your workspace. Everything stays on your own machines."
      footer="Others join by an invitation link that you make later."
    >
      <SetupForm />
    </AuthFrame>
  )
}
