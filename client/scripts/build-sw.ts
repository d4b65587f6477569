/**
 * Writes `dist/client/sw.js`: precaches everything the build made, so that any address opens without a network.
 * Fails the build on a warning, because a warning means a file that would be missing offline.
 */
import { join } from 'node:path'
import { generateSW } from 'workbox-build'

const MIB = 1024 * 1024

export async function buildServiceWorker(dist = join(import.meta.dirname, '../dist/client')): Promise<void> {
  const { count, size, warnings } = await generateSW({
    globDirectory: dist,
    // .data and .gz are PGlite's file system image and the pre-migrated database.
    globPatterns: ['**/*.{js,css,html,svg,png,webmanifest,wasm,data,gz,woff2}'],
    swDest: join(dist, 'sw.js'),
    maximumFileSizeToCacheInBytes: 20 * MIB,
    dontCacheBustURLsMatching: /^assets\//,
    navigateFallback: '/_shell.html',
    navigateFallbackDenylist: [/^\/(api|v1|yjs)\//],
    cleanupOutdatedCaches: true,
    clientsClaim: true,
    inlineWorkboxRuntime: true,
    sourcemap: false,
  })
  if (warnings.length > 0) throw new Error(`The service worker would miss files:\n${warnings.join('\n')}`)
  console.log(`sw.js precaches ${count} files, ${(size / MIB).toFixed(1)} MiB`)
}

if (import.meta.main) await buildServiceWorker()
