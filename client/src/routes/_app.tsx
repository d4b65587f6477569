import { createFileRoute, Navigate, useLocation } from '@tanstack/react-router'
import { useEffect } from 'react'
import { AppLayout } from '../session/app-layout.tsx'
import { Splash, Unreachable } from '../session/screens.tsx'
import { sessionStore } from '../session/store.ts'
import { useSessionState } from '../session/use-session-state.ts'

/** Everything behind the sign-in. A known person gets in at once, with or without a network. */
export const Route = createFileRoute('/_app')({ component: Gate })

function Gate() {
  const state = useSessionState()
  const { href } = useLocation()
  useEffect(() => sessionStore.start(), [])
  switch (state.name) {
    case 'looking':
      return <Splash />
    case 'unreachable':
      return <Unreachable message={state.message} />
    case 'setup':
      return <Navigate to="/setup" replace />
    case 'signed-out':
      return <Navigate to="/sign-in" search={href === '/' ? {} : { to: href }} replace />
    case 'signed-in':
      return <AppLayout principal={state.principal} />
  }
}
