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

/** Said on `window` by the app when a device's first load is done. */
export const LOADED_EVENT = 'hq:loaded'
const FIRST_VISIT_MS = 6_000

/**
 * On a first visit it waits until the app is loaded, or a few seconds: fetching everything for later would take time from what is
 * wanted now, and afterwards most of it comes from the browser's own cache.
 */
export function registerServiceWorker(): void {
  if (!import.meta.env.PROD || !('serviceWorker' in navigator)) return
  if (navigator.serviceWorker.controller) {
    register()
    return
  }
  const begin = () => {
    clearTimeout(timer)
    window.removeEventListener(LOADED_EVENT, begin)
    register()
  }
  const timer = setTimeout(begin, FIRST_VISIT_MS)
  window.addEventListener(LOADED_EVENT, begin)
}

function register(): void {
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
