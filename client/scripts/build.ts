/** The web build: `node client/scripts/build.ts` → `client/dist/client` (static, with `_shell.html` and `sw.js`). */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { buildSeed } from './build-seed.ts'
import { buildServiceWorker } from './build-sw.ts'

const root = join(import.meta.dirname, '..')
const vite = join(dirname(createRequire(import.meta.url).resolve('vite/package.json')), 'bin/vite.js')
await buildSeed()
const child = spawn(process.execPath, [vite, 'build'], { cwd: root, stdio: 'inherit' })
const [code] = (await once(child, 'exit')) as [number | null]
if (code !== 0) {
  console.error(`vite build failed (exit ${code ?? 'by signal'}); the messages above say why.`)
  process.exit(1)
}
await buildServiceWorker(join(root, 'dist/client'))
