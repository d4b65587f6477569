/** What the chaos tests share: what was acknowledged, a stream of changes from elsewhere, and the final account. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { gatewayConverged, nothingDoubled } from './converged.ts'
import type { Gateway, System } from './system.ts'
import type { Acknowledged } from './writer.ts'

/** The server works on its change log without a pause: new snapshots and deletions all the time. */
export const BUSY_LOG = { TEST_SHAPES: JSON.stringify({ maintenanceMs: 100, compactBytes: 20_000 }) }

export interface Account {
  /** Transactions whose writer was told that they are kept. */
  readonly made: readonly (readonly string[])[]
  readonly changed: readonly string[]
}

/** What the writer in this gateway (writer.ts) has said, over all its lives. */
export function accountOf(gateway: Gateway): Account {
  const made: (readonly string[])[] = []
  const changed: string[] = []
  for (const line of gateway.text().split('\n')) {
    if (!line.includes('"acknowledged"')) continue
    const said = parse(line)
    if (!said) continue
    if (said.made.length > 0) made.push(said.made)
    if (said.changed) changed.push(said.changed)
  }
  return { made, changed }
}

const parse = (line: string): Acknowledged | undefined => {
  try {
    return JSON.parse(line) as Acknowledged
  } catch {
    // Killed in the middle of the line: nobody was told.
    return undefined
  }
}

/** Changes from elsewhere, in transactions of `rows`, until it is ended; they come also while the server is dead. Returns how many tasks it made. */
export function streamOfTasks(system: System, word: string, rows = 50, everyMs = 100): () => Promise<number> {
  let ended = false
  let made = 0
  const running = (async () => {
    while (!ended) {
      await system.rows(
        `insert into tasks (id, tenant_id, title, description)
         select gen_random_uuid(), $1, $2 || ' ' || n, repeat('lorem ipsum ', 20) from generate_series($3::int + 1, $3::int + $4::int) n`,
        [system.tenantId, word, made, rows],
      )
      made += rows
      await new Promise((resolve) => setTimeout(resolve, everyMs))
    }
  })()
  return async () => {
    ended = true
    await running
    return made
  }
}

/** Nothing acknowledged is missing, nothing is there half or twice. */
export async function accountIsRight(system: System, { made, changed }: Account, word: string): Promise<void> {
  expect(made.length).toBeGreaterThan(0)
  const ids = made.flat()
  await system.when(
    'everything acknowledged is on the server',
    async () => {
      const there = new Set((await system.rows<{ id: string }>('select id from tasks')).map(({ id }) => id))
      const missing = ids.filter((id) => !there.has(id))
      if (missing.length > 0)
        throw new Error(`${missing.length} of ${ids.length} are missing, the first is ${missing[0]}`)
      const rows = await system.rows<{ id: string }>('select id from tasks where description = id::text')
      const done = new Set(rows.map(({ id }) => id))
      const unchanged = changed.filter((id) => !done.has(id))
      if (unchanged.length > 0) throw new Error(`${unchanged.length} acknowledged changes are missing`)
      return true
    },
    90_000,
  )
  const halves = await system.rows(
    `select p.id from tasks p where p.title like $1 || ' parent %' and not exists (select from tasks c where c.parent_id = p.id)`,
    [word],
  )
  expect(halves, 'a transaction of two is there with one').toEqual([])
  const twice = await system.rows(
    `select title from tasks where title like $1 || ' %' group by title, created_at having count(*) > 1`,
    [word],
  )
  expect(twice).toEqual([])
  const done = await system.rows(
    `select entity_id, action, count(*)::int from audit_log where entity_id in (select id from tasks where title like $1 || ' %')
     group by 1, 2 having count(*) > 1`,
    [word],
  )
  expect(done, 'a mutation took effect twice').toEqual([])
  await nothingDoubled(system)
}

/** The gateway works without its writer until all is sent, and is stopped in order; then its database is what the authority has. */
export async function gatewayIsRight(system: System, gateway: Gateway): Promise<void> {
  await gateway.end()
  await gateway.start({ HQ_TEST_WRITER: '' })
  const copy = join(gateway.home, 'replica.outbox.jsonl')
  await system.when(
    'the outbox is empty',
    async () => !existsSync(copy) || !readFileSync(copy, 'utf8').includes('"table": "tasks"'),
    60_000,
  )
  await system.when('the gateway has caught up', () => caughtUp(system, gateway), 60_000)
  await gateway.end()
  await gatewayConverged(system, gateway)
}

/** What its `hq sync status` would say: the last mutation of its replica is acknowledged, as the server has it. */
const caughtUp = async (system: System, gateway: Gateway): Promise<boolean> => {
  const lines = gateway.process.lines.filter(({ message }) => message === 'Connection')
  const last = lines.at(-1)
  if (last?.['connection'] !== 'online' || last['loaded'] !== true) throw new Error(JSON.stringify(last))
  const [row] = await system.rows<{ seen: boolean }>(
    `select last_seen_at > now() - interval '1 minute' as seen from gateways where id = $1`,
    [gateway.id],
  )
  return row?.seen === true
}
