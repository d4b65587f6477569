/**
 * `sustained_changes`: row changes a second through the server for a minute (`HQ_BENCH_MINUTES` for longer): pushed by several replicas over HTTP (each with
 * its audit entry and acknowledgement), and followed by ten more over WebSockets.
 * `sustained_lag_slope`: how the time from a push to the last of those replicas grows, in ms per second, fitted over the run: a server that keeps up has none.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '../sync-server/database/ids.ts'
import { startSystem, taskPatch } from '../tests/support/system.ts'
import type { Measurement } from './run.ts'
import { startLoad } from './support/load.ts'
import { slopeOf } from './support/statistics.ts'

const SECONDS = Number(process.env['HQ_BENCH_MINUTES'] ?? 1) * 60
/** Half again as many as the target; what is reached is counted. */
const WANTED = 3_750
const WRITERS = 4
const BATCH = 50
/** A pushed task is two row changes: itself and its audit entry; its acknowledgement is one more for each batch. */
const PROBE_MS = 2_000

export async function run(): Promise<Record<string, Measurement>> {
  const system = await startSystem()
  const load = await startLoad(system.server.url, [{ caller: system.owner, count: 10 }]).catch(
    async (error: unknown) => {
      await system.stop()
      throw error
    },
  )
  try {
    const changes = async (): Promise<number> => {
      const [row] = await system.rows<{ n: string }>(
        `select sum(n_tup_ins + n_tup_upd + n_tup_del)::text as n from pg_stat_user_tables where relname in ('tasks', 'audit_log', 'client_progress')`,
      )
      return Number(row?.n)
    }
    let writing = true
    const pace = (WRITERS * BATCH * 2 * 1_000) / WANTED
    const writers = Array.from({ length: WRITERS }, async () => {
      const writer = system.writer()
      for (let due = performance.now(); writing; due += pace) {
        await sleep(Math.max(0, due - performance.now()))
        const tasks = Array.from({ length: BATCH }, () => [taskPatch(system, 'Sustained', null, newId())])
        await writer.apply(...tasks)
      }
    })
    const lags: { at: number; ms: number }[] = []
    const before = await changes()
    const began = performance.now()
    const prober = system.writer()
    while (performance.now() - began < SECONDS * 1_000) {
      const word = `probe ${crypto.randomUUID()}`
      const at = (performance.now() - began) / 1_000
      const times = await load.watch(word, () => prober.apply([taskPatch(system, word)]), 120_000)
      lags.push({ at, ms: Math.max(...times) })
      await sleep(PROBE_MS)
    }
    const seconds = (performance.now() - began) / 1_000
    writing = false
    await Promise.all(writers)
    // Postgres adds up what backends did once in a while.
    await sleep(2_000)
    const rate = ((await changes()) - before) / seconds
    return {
      sustained_changes: {
        value: Math.round(rate),
        unit: `row changes/s for ${SECONDS} s`,
        target: 2_500,
        better: 'higher',
      },
      sustained_lag_slope: {
        value: Math.max(0, slopeOf(lags.map(({ at, ms }) => [at, ms])).least),
        unit: 'ms of lag per s, surely',
        target: 0,
        better: 'lower',
      },
      sustained_lag: {
        value: lags.map(({ ms }) => ms).sort((a, b) => a - b)[Math.floor(lags.length / 2)] ?? Number.NaN,
        unit: 'ms, push to the last of 10 replicas, p50',
        target: 1_000,
        better: 'lower',
      },
    }
  } finally {
    await load.stop()
    await system.stop()
  }
}

if (import.meta.main) console.log(await run())
