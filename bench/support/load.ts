/**
 * Many replicas of one server without their databases: each has its WebSocket and holds all shapes of its kind, as a real replica's transport does.
 * They live in a process of their own (load-generator.ts), so that what is measured is the server and not whoever asks.
 *
 *     const load = await startLoad(system.server.url, [{ caller, count: 900 }, …])
 *     try { await load.watch('a word', () => push(…)) } finally { await load.stop() }
 */
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import type { TableName } from '@hq/shared/schema/tables.ts'
import { visibleTables } from '@hq/shared/sync/replica.ts'
import type { Caller } from '../../sync-server/testing/workspace.ts'

/** One replica, as the generator is told of it. */
export interface LoadReplica {
  readonly replicaId: string
  readonly headers: Readonly<Record<string, string>>
  readonly tables: readonly TableName[]
}

export type LoadOrder =
  | { readonly type: 'open'; readonly url: string; readonly replicas: readonly LoadReplica[]; readonly keep: boolean }
  /** Say when each replica has been sent this text. */
  | { readonly type: 'watch'; readonly text: string }
  /** Cut this many sockets, chosen at random; they come back and go on where they were. */
  | { readonly type: 'reconnect'; readonly count: number }
  | { readonly type: 'report' }

export type LoadNews =
  | { readonly type: 'ready' }
  /** Milliseconds of the machine's monotonic clock (`nowMs`), one for each replica. */
  | { readonly type: 'seen'; readonly text: string; readonly at: readonly number[] }
  | { readonly type: 'report'; readonly report: LoadReport }
  | { readonly type: 'failed'; readonly message: string }

export interface LoadReport {
  readonly connected: number
  /** Shapes that have been read up to the present at least once. */
  readonly upToDate: number
  readonly shapes: number
  readonly requests: number
  /** Shapes that had to be read again from the start. */
  readonly refetches: number
  /** Answers that a healthy replica does not hear, counted. */
  readonly refused: Readonly<Record<string, number>>
  /** With `keep`: per replica and table the number of rows, and a digest of their ids and `updated_at`. */
  readonly held: readonly Readonly<Record<string, Held>>[]
}

export interface Held {
  readonly rows: number
  readonly digest: string
}

export interface Load {
  readonly replicas: number
  readonly pid: number
  /** Runs `change`; resolves with the milliseconds from its beginning until each replica was sent `text`. */
  watch(text: string, change: () => Promise<unknown>, limitMs?: number): Promise<number[]>
  reconnect(count: number): void
  report(): Promise<LoadReport>
  stop(): Promise<void>
}

/** The same in every process of this machine. */
export const nowMs = (): number => Number(process.hrtime.bigint() / 1_000n) / 1_000

export interface LoadOptions {
  /** Keep ids and times of rows, for `report().held`. */
  readonly keep?: boolean
  readonly readyMs?: number
}

const generator = fileURLToPath(new URL('./load-generator.ts', import.meta.url))

/** Resolves when every shape of every replica is up to date. Replicas of one caller are devices of their own. */
export async function startLoad(
  url: string,
  parts: readonly { readonly caller: Caller; readonly count: number }[],
  { keep = false, readyMs = 180_000 }: LoadOptions = {},
): Promise<Load> {
  const replicas = parts.flatMap(({ caller, count }) => {
    const tables = visibleTables(caller.principal.kind === 'person' ? 'browser' : 'gateway')
    return Array.from({ length: count }, () => ({ replicaId: randomUUID(), headers: caller.headers, tables }))
  })
  const child = fork(generator, { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const tell = (order: LoadOrder): void => void child.send(order)
  const load: Load = {
    replicas: replicas.length,
    pid: child.pid ?? 0,
    async watch(text, change, limitMs = 60_000) {
      const seen = hear(child, 'seen', limitMs, (news) => news.text === text)
      tell({ type: 'watch', text })
      // The order is on its way before the change is: both take the same road only by luck, so ask for an answer in between.
      await load.report()
      const began = nowMs()
      await change()
      return (await seen).at.map((at) => at - began)
    },
    reconnect: (count) => tell({ type: 'reconnect', count }),
    async report() {
      const heard = hear(child, 'report', 60_000)
      tell({ type: 'report' })
      return (await heard).report
    },
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const ended = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGKILL')
      await ended
    },
  }
  try {
    const ready = hear(child, 'ready', readyMs)
    tell({ type: 'open', url, replicas, keep })
    await ready
    return load
  } catch (error) {
    const { connected, upToDate, shapes, refused } = await load.report()
    await load.stop()
    const stood = `${connected} of ${replicas.length} connected, ${upToDate} of ${shapes} shapes read, refused ${JSON.stringify(refused)}`
    throw new Error(`${error instanceof Error ? error.message : String(error)}; ${stood}`)
  }
}

function hear<T extends LoadNews['type']>(
  child: ChildProcess,
  type: T,
  ms: number,
  isIt: (news: LoadNews & { type: T }) => boolean = () => true,
): Promise<LoadNews & { type: T }> {
  const { promise, resolve, reject } = Promise.withResolvers<LoadNews & { type: T }>()
  const listen = (message: unknown): void => {
    const news = message as LoadNews
    if (news.type === 'failed') reject(new Error(`the load generator: ${news.message}`))
    else if (news.type === type && isIt(news as LoadNews & { type: T })) resolve(news as LoadNews & { type: T })
  }
  const ended = (code: number | null): void => reject(new Error(`the load generator ended with code ${code}`))
  const timer = setTimeout(() => reject(new Error(`the load generator did not say '${type}' within ${ms} ms`)), ms)
  child.on('message', listen)
  child.once('exit', ended)
  return promise.finally(() => {
    clearTimeout(timer)
    child.off('message', listen)
    child.off('exit', ended)
  })
}
