import { createFileRoute } from '@tanstack/react-router'
import { useEffect } from 'react'
import { AppLayout } from '../session/app-layout.tsx'
import { Redirect, RedirectToSignIn } from '../session/redirect.tsx'
import { Splash, Unreachable } from '../session/screens.tsx'
import { sessionStore } from '../session/store.ts'
import { useSessionState } from '../session/use-session-state.ts'

/** Everything behind the sign-in. A known person gets in at once, with or without a network. */
export const Route = createFileRoute('/_app')({ component: Gate })

function Gate() {
  const state = useSessionState()
  useEffect(() => sessionStore.start(), [])
  switch (state.name) {
    case 'looking':
      return <Splash />
    case 'unreachable':
      return <Unreachable message={state.message} />
    case 'setup':
      return <Redirect to="/setup" />
    case 'signed-out':
      return <RedirectToSignIn />
    case 'signed-in':
      return <AppLayout principal={state.principal} />
  }
}
