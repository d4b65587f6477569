/**
 * Registers `/sw.js` (built by scripts/build-sw.ts), which keeps the whole app available offline. A new version waits
 * until `applyUpdate()` is called, so that open tabs never lose the code they were built with; `onUpdateReady` tells
 * when one waits. In dev there is no service worker.
 */
const listeners = new Set<() => void>()
let waiting: ServiceWorker | null = null

function announce(worker: ServiceWorker): void {
  waiting = worker
  for (const listener of listeners) listener()
}

export function registerServiceWorker(): void {
  if (!import.meta.env.PROD || !('serviceWorker' in navigator)) return
  navigator.serviceWorker.register('/sw.js').then(
    (registration) => {
      if (registration.waiting && navigator.serviceWorker.controller) announce(registration.waiting)
      registration.addEventListener('updatefound', () => {
        const next = registration.installing
        next?.addEventListener('statechange', () => {
          if (next.state === 'installed' && navigator.serviceWorker.controller) announce(next)
        })
      })
    },
    (error: unknown) => console.warn('HQ cannot work offline on this address: the service worker was refused.', error),
  )
}

/** Calls back when a new version waits (at once, if one already does). Returns the way to stop listening. */
export function onUpdateReady(listener: () => void): () => void {
  listeners.add(listener)
  if (waiting) listener()
  return () => listeners.delete(listener)
}

/** Lets the waiting version take over, then reloads this tab. */
export function applyUpdate(): void {
  if (!waiting) {
    location.reload()
    return
  }
  navigator.serviceWorker.addEventListener('controllerchange', () => location.reload(), { once: true })
  waiting.postMessage({ type: 'SKIP_WAITING' })
}
