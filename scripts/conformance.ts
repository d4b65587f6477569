/**
 * `npm run conformance -- PATH/run.mjs [ARGUMENTS…]`: a temporary Postgres, our shapes engine alone, and a black-box suite of the Electric protocol against it, with the restart
 * cases (the engine is killed with SIGKILL). The suite itself is not part of this project.
 */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startTestPostgres } from '../sync-server/shapes/testing/postgres.ts'

const [suite, ...rest] = process.argv.slice(2)
if (!suite) {
  console.error('usage: npm run conformance -- PATH/run.mjs [ARGUMENTS…]')
  process.exit(2)
}

const root = fileURLToPath(new URL('..', import.meta.url))
const folder = await mkdtemp(join(tmpdir(), 'hq-conformance-'))
const postgres = await startTestPostgres()
const port = await freePort()
const pidFile = join(folder, 'pid')
const start = join(folder, 'start.sh')
const stop = join(folder, 'stop.sh')
const engine = `'${process.execPath}' '${join(root, 'sync-server/shapes/standalone.ts')}' --database-url '${postgres.url}' --port ${port} --data-dir '${join(folder, 'log')}'`
await writeFile(
  start,
  `#!/bin/sh\n${engine} >>'${join(folder, 'engine.log')}' 2>&1 </dev/null &\necho $! >'${pidFile}'\n`,
  { mode: 0o755 },
)
await writeFile(stop, `#!/bin/sh\nkill -9 "$(cat '${pidFile}')"\n`, { mode: 0o755 })

let code = 1
try {
  spawnSync(start, { stdio: 'inherit' })
  await healthy(`http://127.0.0.1:${port}/v1/health`)
  code = await new Promise<number>((resolve, reject) => {
    const child = spawn(
      process.execPath,
      [
        suite,
        '--url',
        `http://127.0.0.1:${port}`,
        '--database',
        postgres.url,
        '--stop',
        stop,
        '--start',
        start,
        ...rest,
      ],
      { cwd: root, stdio: 'inherit' },
    )
    child.on('error', reject)
    child.on('exit', (status) => resolve(status ?? 1))
  })
} finally {
  spawnSync(stop)
  await postgres.stop()
  await rm(folder, { recursive: true, force: true })
}
process.exit(code)

async function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.on('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address()
      probe.close(() => (address && typeof address === 'object' ? resolve(address.port) : reject(new Error('no port'))))
    })
  })
}

async function healthy(url: string): Promise<void> {
  const deadline = Date.now() + 30_000
  for (;;) {
    const ok = await fetch(url).then(
      ({ status }) => status === 200,
      () => false,
    )
    if (ok) return
    if (Date.now() > deadline) throw new Error(`the shapes engine did not answer at ${url} within 30 s`)
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}
