/**
 * From a commit in Postgres to a client that waits: one client, a thousand clients, and a stream of small transactions.
 * A real Postgres (fsync on), the engine as a process of its own, plain HTTP.
 */
import pg from 'pg'
import { createPollClient, type PollClient } from './testing/poll.ts'
import { startTestPostgres } from './testing/postgres.ts'
import { startTestServer } from './testing/server.ts'

export interface Measure {
  value: number
  unit: string
  target: number
  better: 'lower' | 'higher'
}

const ROUNDS = 300
const CLIENTS = 1000
const TRANSACTIONS = 15_000

export const run = async (): Promise<Record<string, Measure>> => {
  const postgres = await startTestPostgres({ settings: { fsync: 'on' } })
  const clients: PollClient[] = []
  try {
    const database = new pg.Client({ connectionString: postgres.url })
    await database.connect()
    await database.query('create table item (id int primary key, tenant text not null, title text, n int)')
    const server = await startTestServer(postgres.url)
    try {
      const client = (definition: Record<string, string> = {}): PollClient => {
        const made = createPollClient(server.url, { table: 'item', ...definition })
        clients.push(made)
        return made
      }
      const single = await commitToClient(database, client())
      const crowd = await fanOut(
        database,
        Array.from({ length: CLIENTS }, () => client()),
      )
      const rate = await stream(postgres.url, client)
      return {
        shape_live: { value: single.p50, unit: 'ms, commit to client, p50', target: 4, better: 'lower' },
        shape_live_p99: { value: single.p99, unit: 'ms, commit to client, p99', target: 20, better: 'lower' },
        shape_fanout: { value: crowd, unit: 'ms, commit to 1,000 clients, p99', target: 400, better: 'lower' },
        shape_stream: { value: rate, unit: 'single-row transactions/s, 5 shapes', target: 2500, better: 'higher' },
      }
    } finally {
      for (const each of clients) each.close()
      await server.stop()
      await database.end()
    }
  } finally {
    await postgres.stop()
  }
}

const quantile = (values: number[], q: number): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? Number.NaN)
}
const round = (value: number): number => Math.round(value * 100) / 100

const commitToClient = async (database: pg.Client, client: PollClient): Promise<{ p50: number; p99: number }> => {
  await client.catchUp()
  const times: number[] = []
  for (let n = 1; n <= ROUNDS; n++) {
    const reply = client.next({ live: 'true' })
    await new Promise((resolve) => setTimeout(resolve, 5))
    await database.query('insert into item values ($1, $2, $3, 0)', [n, 'a', `title ${n}`])
    const committed = performance.now()
    await reply
    times.push(Math.max(0, performance.now() - committed))
  }
  return { p50: quantile(times, 0.5), p99: quantile(times, 0.99) }
}

const fanOut = async (database: pg.Client, clients: readonly PollClient[]): Promise<number> => {
  await Promise.all(clients.map((client) => client.catchUp()))
  const worst: number[] = []
  for (let round = 0; round < 3; round++) {
    let committed = 0
    const times = clients.map((client) => client.next({ live: 'true' }, false).then(() => performance.now()))
    await new Promise((resolve) => setTimeout(resolve, 1500))
    await database.query('insert into item values ($1, $2, $3, 0)', [100_000 + round, 'a', 'for all'])
    committed = performance.now()
    worst.push(
      quantile(
        (await Promise.all(times)).map((time) => time - committed),
        0.99,
      ),
    )
  }
  return quantile(worst, 0.5)
}

/** Transactions made beforehand, so that the engine is measured and not who writes. */
const stream = async (url: string, client: (definition?: Record<string, string>) => PollClient): Promise<number> => {
  const shapes = ['a', 'b', 'c', 'd'].map((tenant) => client({ where: 'tenant = $1', 'params[1]': tenant }))
  const all = client({ where: 'id > 1000000' })
  for (const shape of [...shapes, all]) await shape.catchUp()
  const writer = new pg.Client({ connectionString: url })
  await writer.connect()
  try {
    await writer.query('set synchronous_commit = off')
    await writer.query(`create procedure many(total int) language plpgsql as $$ begin
      for n in 1..total loop insert into item values (1000000 + n, chr(97 + n % 4), 'title ' || n, n); commit; end loop; end $$`)
    const begun = performance.now()
    const writing = writer.query(`call many(${TRANSACTIONS})`)
    for (let seen = 0; seen < TRANSACTIONS; ) {
      const { messages } = await all.next({ live: 'true' })
      seen += messages.filter(({ headers }) => headers['operation'] !== undefined).length
    }
    const seconds = (performance.now() - begun) / 1000
    await writing
    return Math.round(TRANSACTIONS / seconds)
  } finally {
    await writer.end()
  }
}

if (import.meta.main) console.log(await run())
