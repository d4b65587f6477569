import { useRouter } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { Splash } from './screens.tsx'

/**
 * Goes to another address, once. (The router's own `Navigate` goes again with every render of its parent, which a
 * navigation causes.)
 */
export function Redirect({ to }: { to: string }) {
  const router = useRouter()
  useEffect(() => {
    router.history.replace(to)
  }, [router, to])
  return <Splash />
}

/** To the sign-in, and back to where the person is now afterwards. */
export function RedirectToSignIn() {
  const router = useRouter()
  const [here] = useState(() => router.history.location.href)
  return <Redirect to={here === '/' ? '/sign-in' : `/sign-in?to=${encodeURIComponent(here)}`} />
}
