/**
 * `npm run bench [-- PART…]`: every `*.bench.ts` of the project, one after the other, each in a process of its own; one table on
 * the screen and in `bench/results.json`. With arguments only files whose path contains one of them.
 *
 * A bench file exports `run(): Promise<Record<id, Measurement>>`; the ids and targets are those of design §10. A file that fails is
 * named in the table and makes the exit code 1; the others still run. Results of files not run this time are kept.
 */
import { spawn } from 'node:child_process'
import { glob, readFile, writeFile } from 'node:fs/promises'
import { loadavg } from 'node:os'
import { fileURLToPath } from 'node:url'

export interface Measurement {
  value: number
  unit: string
  target: number
  better: 'lower' | 'higher'
  /** The same measured on something comparable in the same run. */
  peer?: { name: string; value: number }
  /** Load average of the machine (a minute) when its file began: 2 cores are busy with other things above 2. */
  load?: number
}

/** One run may take so long: a bench that hangs must not hang the table. */
const TIMEOUT_MS = 15 * 60_000

const root = fileURLToPath(new URL('..', import.meta.url))
const output = new URL('results.json', import.meta.url)

if (!import.meta.main) {
  // Imported for its types.
} else if (process.argv[2] === '--one') await runOne(process.argv[3] ?? '')
else process.exitCode = await runAll(process.argv.slice(2))

async function runAll(parts: string[]): Promise<number> {
  const results = await previous()
  const failures: string[] = []
  for (const file of await benchFiles(parts)) {
    const load = Number((loadavg()[0] ?? Number.NaN).toFixed(2))
    console.log(`… ${file} (load ${load})`)
    const measured = await inProcess(file).catch((error: Error): Record<string, Measurement> => {
      failures.push(`${file}: ${error.message}`)
      return {}
    })
    for (const [id, measurement] of Object.entries(measured)) results[id] = { ...measurement, load }
    await writeFile(output, `${JSON.stringify(results, null, 2)}\n`)
  }
  print(results)
  for (const failure of failures) console.error(`FAILED ${failure}`)
  return failures.length > 0 ? 1 : 0
}

async function benchFiles(parts: string[]): Promise<string[]> {
  const files: string[] = []
  const found = glob('{shared,sync-server,gateway-node,client,bench}/**/*.bench.ts', {
    cwd: root,
    exclude: (name) => name === 'node_modules' || name === 'dist',
  })
  for await (const file of found) files.push(file)
  return files.sort().filter((file) => parts.length === 0 || parts.some((part) => file.includes(part)))
}

async function inProcess(file: string): Promise<Record<string, Measurement>> {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), '--one', file], {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  return new Promise((resolve, reject) => {
    let measured: Record<string, Measurement> | undefined
    const timer = setTimeout(() => {
      child.kill('SIGKILL')
      reject(new Error(`still running after ${TIMEOUT_MS / 60_000} minutes`))
    }, TIMEOUT_MS)
    child.on('message', (message) => {
      measured = message as Record<string, Measurement>
    })
    child.on('error', reject)
    child.on('exit', (code) => {
      clearTimeout(timer)
      if (measured) resolve(measured)
      else reject(new Error(`ended with code ${code} and no result`))
    })
  })
}

async function runOne(file: string): Promise<void> {
  const { run } = (await import(new URL(file, `file://${root}`).href)) as {
    run: () => Promise<Record<string, Measurement>>
  }
  const measured = await run()
  process.send?.(measured, undefined, undefined, () => process.exit(0))
}

async function previous(): Promise<Record<string, Measurement>> {
  try {
    return JSON.parse(await readFile(output, 'utf8')) as Record<string, Measurement>
  } catch {
    return {} // First run, or a damaged file: it is made anew.
  }
}

function print(results: Record<string, Measurement>): void {
  const rows = Object.entries(results).map(([id, { value, unit, target, better, peer, load }]) => ({
    id,
    value: `${Number(value.toPrecision(4))} ${unit}`,
    target: `${better === 'lower' ? '≤' : '≥'} ${target}`,
    met: (better === 'lower' ? value <= target : value >= target) ? 'yes' : 'NO',
    peer: peer ? `${peer.name}: ${Number(peer.value.toPrecision(4))} (${(value / peer.value).toFixed(2)}×)` : '',
    load: load ?? '',
  }))
  console.table(rows)
  console.log(
    `load average ${loadavg()
      .map((load) => load.toFixed(2))
      .join(' ')}`,
  )
}
