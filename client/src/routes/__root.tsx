import sans from '@fontsource-variable/geist/files/geist-latin-wght-normal.woff2?url'
import { createRootRoute, HeadContent, Outlet, Scripts, useHydrated } from '@tanstack/react-router'
import { type ReactNode, useEffect } from 'react'
import { registerServiceWorker } from '../service-worker.ts'
import css from '../styles.css?url'
import { THEME_SCRIPT } from '../ui/theme.ts'
import { Toaster } from '../ui/toast.tsx'
import { TooltipProvider } from '../ui/tooltip.tsx'

export const Route = createRootRoute({
  head: () => ({
    meta: [
      { charSet: 'utf-8' },
      { name: 'viewport', content: 'width=device-width, initial-scale=1, viewport-fit=cover' },
      { title: 'HQ' },
      { name: 'description', content: 'Your agents, their work, and what needs you.' },
      { name: 'theme-color', content: '#f7f7f9' },
    ],
    links: [
      { rel: 'preload', href: sans, as: 'font', type: 'font/woff2', crossOrigin: 'anonymous' },
      { rel: 'stylesheet', href: css },
      { rel: 'icon', href: '/icon.svg', type: 'image/svg+xml' },
      { rel: 'apple-touch-icon', href: '/icon-192.png' },
      { rel: 'manifest', href: '/manifest.webmanifest' },
    ],
  }),
  shellComponent: Shell,
  component: Root,
})

/** The document itself: prerendered once into `_shell.html`, and served for every address. */
function Shell({ children }: { children: ReactNode }) {
  return (
    <html lang="en" suppressHydrationWarning>
      <head>
        <HeadContent />
        {/* biome-ignore lint/security/noDangerouslySetInnerHtml: our own constant; must run before the first paint */}
        <script dangerouslySetInnerHTML={{ __html: THEME_SCRIPT }} />
      </head>
      <body>
        {children}
        <Scripts />
      </body>
    </html>
  )
}

function Root() {
  useEffect(() => registerServiceWorker(), [])
  // The prerendered shell has no screen in it. Whether the router knows one at the first render is a matter of timing, so it comes with the second.
  const hydrated = useHydrated()
  return (
    <TooltipProvider>
      {hydrated && <Outlet />}
      <Toaster />
    </TooltipProvider>
  )
}
