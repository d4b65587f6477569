/**
 * A real replica of a real server, in this process: PGlite, outbox, one WebSocket. As a browser's worker or a gateway has it.
 *
 *     const ann = await openLive(system.server.url, system.owner)
 *     try { await ann.replica.write(…) } finally { await ann.close() }
 */
import { randomUUID } from 'node:crypto'
import { readMigrations } from '@hq/shared/sync/adapter-node.ts'
import type { Replica, SqlValue } from '@hq/shared/sync/contract.ts'
import { openReplica } from '@hq/shared/sync/replica.ts'
import { openDatabase } from '@hq/shared/sync/testing/harness.ts'
import { createMultiplexer, type WebSocketLike } from '@hq/shared/sync/transport.ts'
import type { Caller } from '@hq/sync-server/testing/workspace.ts'
import { WebSocket } from 'ws'

export interface Live {
  readonly replica: Replica
  /** Statuses of all answers so far that were neither 2xx nor 409, with the path: what a healthy replica never hears. */
  readonly refused: readonly string[]
  /** Statuses of all answers, counted. */
  readonly answers: ReadonlyMap<number, number>
  /** Every state that its connection has been in. */
  readonly connections: ReadonlySet<string>
  /** What it logged as warning or error. */
  readonly logged: readonly string[]
  addTask(title: string): Promise<string>
  ids(table: string): Promise<string[]>
  /** In the order of their ids. */
  rows<T = Record<string, unknown>>(sql: string, params?: readonly SqlValue[]): Promise<T[]>
  close(): Promise<void>
}

/** Opens it in memory and waits until the workspace is in it, unless `wait` is false. */
export async function openLive(url: string, { headers, principal }: Caller, wait = true): Promise<Live> {
  const transport = createMultiplexer({
    url: `${url.replace(/^http/, 'ws')}/v1/sync`,
    openSocket: (address, protocol) =>
      new WebSocket(address, protocol, { headers: { ...headers }, origin: url }) as unknown as WebSocketLike,
  })
  const refused: string[] = []
  const logged: string[] = []
  const answers = new Map<number, number>()
  const replica = await openReplica({
    db: await openDatabase(),
    migrations: readMigrations(),
    identity:
      principal.kind === 'person'
        ? { kind: 'browser', ownerId: principal.person_id, tenantId: principal.tenant_id }
        : { kind: 'gateway', ownerId: principal.gateway_id, tenantId: principal.tenant_id },
    serverUrl: url,
    environment: {
      now: Date.now,
      randomUuid: randomUUID,
      fetch: async (input, init) => {
        const response = await transport.fetch(input, init)
        answers.set(response.status, (answers.get(response.status) ?? 0) + 1)
        if (!response.ok && response.status !== 409 && response.status !== 304)
          refused.push(`${response.status} ${input.slice(0, 200)}`)
        return response
      },
      log: (level, message) => {
        if (level === 'warn' || level === 'error') logged.push(`${level}: ${message}`)
      },
    },
    transport,
  })
  const connections = new Set<string>()
  replica.onStatus(({ connection }) => connections.add(connection))
  const live: Live = {
    replica,
    connections,
    refused,
    answers,
    logged,
    async addTask(title) {
      const id = randomUUID()
      const author = principal.kind === 'person' ? principal.person_id : null
      await replica.write((tx) =>
        tx.query(
          `insert into tasks (id, tenant_id, title, created_by_type, created_by_id) values ($1, $2, $3, $4, $5)`,
          [id, principal.tenant_id, title, author ? 'human' : 'system', author],
        ),
      )
      return id
    },
    ids: async (table) =>
      (await replica.query<{ id: string }>(`select id from ${table} order by id`)).map(({ id }) => id),
    rows: (sql, params) => replica.query(sql, params),
    async close() {
      await replica.close()
      transport.close()
    },
  }
  if (wait) {
    try {
      await until(live, 'the workspace is in the replica', () => replica.status().initial.done)
    } catch (error) {
      await live.close()
      throw error
    }
  }
  return live
}

/** Resolves when `condition` holds; asked again after each change, and now and then. */
export async function until(
  live: Live,
  what: string,
  condition: () => boolean | Promise<boolean>,
  ms = 60_000,
): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const look = (): void => {
    Promise.resolve()
      .then(condition)
      .then((holds) => holds && resolve(), reject)
  }
  const ends = [live.replica.onChange(look), live.replica.onStatus(look)]
  const asking = setInterval(look, 250)
  const timer = setTimeout(() => {
    const { replica, refused, logged } = live
    reject(
      new Error(
        `${what}: not within ${ms} ms\n${JSON.stringify(replica.status())}\n${[...refused, ...logged].slice(-10).join('\n')}`,
      ),
    )
  }, ms)
  look()
  await promise.finally(() => {
    clearInterval(asking)
    clearTimeout(timer)
    for (const end of ends) end()
  })
}
