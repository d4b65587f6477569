import { useSyncExternalStore } from 'react'
import { type SessionState, sessionStore } from './store.ts'

const LOOKING: SessionState = { name: 'looking' }

/** Who is signed in, live. While the shell is prerendered: not known. */
export const useSessionState = (): SessionState =>
  useSyncExternalStore(sessionStore.subscribe, sessionStore.state, () => LOOKING)
