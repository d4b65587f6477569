/** The standalone engine, killed in the middle of things, seen by the official client. */
import { isChangeMessage, isControlMessage, type Message, ShapeStream } from '@electric-sql/client'
import pg from 'pg'
import { expect, test } from 'vitest'
import { startTestPostgres } from './testing/postgres.ts'
import { startTestServer } from './testing/server.ts'

const ROWS = 1500
const KILLS = 4

test('SIGKILL in mid-stream: the official client misses nothing, gets nothing twice and is never sent back', async () => {
  const postgres = await startTestPostgres()
  const leaving = new AbortController()
  try {
    const database = new pg.Client({ connectionString: postgres.url })
    await database.connect()
    await database.query('create table item (id int primary key, tenant int not null, title text)')
    const server = await startTestServer(postgres.url)
    try {
      const follow = (params: Record<string, string>) => {
        const received: Message[] = []
        const stream = new ShapeStream({
          url: server.url,
          params: { table: 'item', ...params },
          signal: leaving.signal,
          backoffOptions: { initialDelay: 20, maxDelay: 200, multiplier: 1.5 },
        })
        stream.subscribe((messages) => void received.push(...messages))
        return received
      }
      const logs = [
        follow({}),
        follow({ where: 'tenant = 1' }),
        follow({ where: 'tenant + 0 = 2' }),
        follow({ replica: 'full' }),
      ]
      const until = async (condition: () => boolean): Promise<void> => {
        while (!condition()) await new Promise((resolve) => setTimeout(resolve, 20))
      }
      await until(() => logs.every((log) => log.some(isControlMessage)))

      let killing = Promise.resolve()
      for (let id = 1; id <= ROWS; id++) {
        await database.query('begin')
        await database.query('insert into item values ($1, $2, $3)', [id, id % 3, 'new'])
        await database.query('update item set title = $2 where id = $1', [id, `title ${id}`])
        await database.query('commit')
        if (id % Math.floor(ROWS / (KILLS + 1)) === 0) {
          killing = killing.then(() => server.kill('SIGKILL')).then(() => server.start())
          // Writing goes on while the server is down.
        }
      }
      await killing
      const wanted = [ROWS, ROWS / 3, ROWS / 3, ROWS]
      await until(() => logs.every((log, n) => log.filter(isChangeMessage).length >= 2 * (wanted[n] as number)))
      await new Promise((resolve) => setTimeout(resolve, 300))

      for (const [n, log] of logs.entries()) {
        const changes = log.filter(isChangeMessage)
        expect(
          log.filter((message) => isControlMessage(message) && message.headers.control === 'must-refetch'),
        ).toEqual([])
        const expected = Array.from({ length: ROWS }, (_, index) => index + 1)
          .filter((id) => n === 0 || n === 3 || id % 3 === n)
          .flatMap((id) => [`insert ${id} new`, `update ${id} title ${id}`])
        expect(changes.map(({ headers, value }) => `${headers.operation} ${value['id']} ${value['title']}`)).toEqual(
          expected,
        )
      }
    } finally {
      leaving.abort()
      await server.stop()
      await database.end()
    }
  } finally {
    await postgres.stop()
  }
})
