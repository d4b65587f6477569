import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { openLog } from './child.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'hq-log-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const linesOf = (file: string): string[] => readFileSync(join(folder, file), 'utf8').trimEnd().split('\n')

test('a log that is written without end keeps its newest part, in two files of a bounded size', async () => {
  const log = openLog(folder, 'server', 1_000)
  for (let n = 0; n < 500; n++) {
    log.write(`line ${String(n).padStart(4, '0')}\n`)
    if (n % 10 === 0) await sleep(1)
  }
  log.end()
  await vi.waitFor(() => expect(linesOf('server.log').at(-1)).toBe('line 0499'))
  expect(readdirSync(folder).sort()).toEqual(['server.log', 'server.log.1'])
  for (const name of readdirSync(folder)) expect(statSync(join(folder, name)).size).toBeLessThan(1_500)
  const kept = [...linesOf('server.log.1'), ...linesOf('server.log')].map((line) => Number(line.slice(5)))
  expect(kept).toEqual(kept.map((_, index) => (kept[0] ?? Number.NaN) + index))
})

test('a log goes on where the process before left it', async () => {
  for (const word of ['first', 'second']) {
    const log = openLog(folder, 'gateway')
    log.write(`${word}\n`)
    log.end()
    await vi.waitFor(() => expect(linesOf('gateway.log').at(-1)).toBe(word))
  }
  expect(linesOf('gateway.log')).toEqual(['first', 'second'])
})
