import { useEffect } from 'react'
import { Button } from '../ui/button.tsx'
import { AuthFrame, Mark } from './auth-frame.tsx'
import { ExportWaiting } from './export-waiting.tsx'
import type { Person } from './session.ts'
import { sessionStore } from './store.ts'

/** For the moment in which nothing is known yet. */
export function Splash() {
  return (
    <div className="grid min-h-dvh place-items-center bg-bg" aria-busy="true">
      <div className="animate-[fade_400ms_ease-out_300ms_both]">
        <Mark />
        <span className="sr-only">Opening HQ</span>
      </div>
    </div>
  )
}

/** Nobody is known on this device and the server cannot be asked. Tries again by itself. */
export function Unreachable({ message, onRetry }: { message: string; onRetry?: () => void }) {
  useEffect(() => {
    const timer = setInterval(() => (onRetry ? onRetry() : void sessionStore.check()), 5_000)
    return () => clearInterval(timer)
  }, [onRetry])
  return (
    <AuthFrame
      title="Waiting for the server"
      lead={`${message} Nobody has signed in on this device yet, and the first sign-in needs the server. After that, HQ opens without it.`}
    >
      <div className="flex items-center justify-between gap-3">
        <p className="text-text-2">Tried again every few seconds.</p>
        <Button onClick={() => (onRetry ? onRetry() : void sessionStore.check())}>Try now</Button>
      </div>
    </AuthFrame>
  )
}

/** The local database cannot be opened at all. */
export function DatabaseFailed({ message, person }: { message: string; person: Person }) {
  return (
    <AuthFrame
      title="The local database cannot be opened"
      lead="Your data on the server is untouched, and changes that wait on this device are kept."
    >
      <div role="alert" className="flex flex-col gap-4">
        <pre className="max-h-48 overflow-auto font-mono text-xs whitespace-pre-wrap text-text-2">{message}</pre>
        <div className="flex flex-wrap items-center gap-2">
          <Button variant="primary" onClick={() => location.reload()}>
            Try again
          </Button>
          <Button onClick={() => void navigator.clipboard.writeText(message)}>Copy details</Button>
          <ExportWaiting person={person} />
        </div>
      </div>
    </AuthFrame>
  )
}
