import tailwindcss from '@tailwindcss/vite'
import { tanstackStart } from '@tanstack/react-start/plugin/vite'
import viteReact from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

/**
 * The web build: a TanStack Start single-page app. Only `dist/client` is served; its `_shell.html` answers every
 * route, online and (through the service worker) offline. PGlite is left alone by the optimiser: it finds its own
 * wasm by URL.
 */
export default defineConfig({
  plugins: [tailwindcss(), tanstackStart({ spa: { enabled: true } }), viteReact()],
  worker: { format: 'es' },
  optimizeDeps: { exclude: ['@electric-sql/pglite', '@electric-sql/pglite-pgvector'] },
  resolve: { dedupe: ['yjs', 'y-protocols', 'lib0', 'react', 'react-dom', '@tiptap/core', '@tiptap/pm'] },
  build: { chunkSizeWarningLimit: 1200 },
})
