/**
 * Two people in two browsers, a gateway, and everything that can break between them and the server: the network is cut, hangs, loses answers; the
 * server is killed with SIGKILL in the middle of a push, right after a local write, between commit and answer, while changes are handed on. In the
 * end all sides have the same, nothing is lost and nothing is there twice.
 */
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import {
  type Device,
  drained,
  eventually,
  hasChromium,
  joinByLink,
  openDevice,
  opened,
  query,
  setUpOwner,
  statusOf,
  type TestServer,
  within,
  write,
  writeTask,
} from './support/browser.ts'
import { browserConverged, gatewayConverged, nothingDoubled } from './support/converged.ts'
import type { Network } from './support/proxy.ts'
import { type Gateway, provision, type Row, type System, startSystem, through } from './support/system.ts'

interface Side {
  readonly device: Device
  readonly network: Network
  readonly seen: TestServer
}

describe.skipIf(!hasChromium)('offline', () => {
  let system: System
  let ann: Side
  let ben: Side
  let gateway: Gateway
  let gatewayNetwork: Network
  let agent: string

  const side = async (): Promise<Side> => {
    const network = await system.proxy()
    const seen = through(system.server, network)
    return { device: await openDevice(seen), network, seen }
  }
  beforeAll(async () => {
    system = await startSystem({ browser: true, setUp: false })
    ann = await side()
    await setUpOwner(ann.device.page, ann.seen)
    await system.signIn()
    gatewayNetwork = await system.proxy()
    gateway = await system.gateway('one', { url: gatewayNetwork.url, env: { HQ_TEST_PACE_MS: '25' } })
    agent = await provision(system, gateway, 'wanda')
    ben = await side()
    const made = await system.request(system.owner, '/v1/invitations', {
      method: 'POST',
      body: JSON.stringify({ role: 'member' }),
    })
    const { url } = (await made.json()) as { url: string }
    const who = { name: 'Ben Berg', email: 'ben@example.com', password: 'another good one' }
    await joinByLink(ben.device.page, ben.seen, new URL(url).pathname, who)
  })
  afterAll(async () => {
    await ann?.device.close()
    await ben?.device.close()
    await system?.stop()
  })

  /** What a failed test left broken does not fail the next ones. */
  beforeEach(async () => {
    for (const network of [ann.network, ben.network, gatewayNetwork]) network.heal()
    const up = await fetch(`${system.server.url}/v1/health`).catch(() => undefined)
    if (!up) await system.server.start()
  })

  const page = ({ device }: Side) => device.page
  const offline = (who: Side): Promise<unknown> =>
    eventually('offline', async () => (await statusOf(page(who)))?.status.connection === 'offline', 60_000)
  const set = (who: Side, id: string, change: string, params: (string | null)[] = []) =>
    write(page(who), [{ sql: `update tasks set ${change} where id = $1`, params: [id, ...params] }])
  const there = (who: Side, id: string): Promise<unknown> =>
    eventually(
      'the task is there',
      async () => (await query(page(who), 'select 1 from tasks where id = $1', [id])).length === 1,
      60_000,
    )
  const comment = (who: Side, task: string, body: string) =>
    write(page(who), [
      {
        sql: `insert into comments (id, tenant_id, entity_type, entity_id, body, actor_type, actor_person_id)
          select uuidv7(), tenant_id, 'task', $1::uuid, $2::text, 'human', owner_id from sync.replica`,
        params: [task, body],
      },
    ])
  const authority = async (id: string): Promise<Row> =>
    (await system.rows('select * from tasks where id = $1', [id]))[0] ?? {}
  /** The server is dead and comes back; everybody finds it again. */
  const restart = async (): Promise<void> => {
    await system.server.kill()
    await system.server.start()
  }
  const bothConverged = async (): Promise<void> => {
    await browserConverged(system, page(ann), { ms: 90_000 })
    await browserConverged(system, page(ben), { ms: 90_000 })
  }

  test('network cut on all sides: other columns merge, one column has a winner and a kept loser, a delete wins, all else adds up', async () => {
    const [columns, same, gone, parent] = await Promise.all(
      ['different columns', 'same column', 'deleted', 'parent'].map((title) => writeTask(page(ann), title)),
    )
    if (!columns || !same || !gone || !parent) throw new Error('four tasks')
    for (const id of [columns, same, gone, parent]) await there(ben, id)
    for (const { network } of [ann, ben]) network.cut()
    gatewayNetwork.cut()
    await offline(ann)
    await offline(ben)

    await set(ann, columns, `priority = 'urgent'`)
    await set(ben, columns, `description = 'from Ben'`)
    await set(ann, same, `title = 'as Ann says'`)
    await set(ann, gone, 'deleted_at = now()')
    await set(ben, gone, `title = 'edited while it was deleted'`)
    for (const who of [ann, ben]) {
      const name = who === ann ? 'Ann' : 'Ben'
      await comment(who, parent, `${name} was here`)
      await write(page(who), [
        {
          sql: `insert into tasks (id, tenant_id, title, parent_id) select uuidv7(), tenant_id, $2::text, $1::uuid from sync.replica`,
          params: [parent, `step by ${name}`],
        },
      ])
      await writeTask(page(who), `new by ${name}`)
    }
    // Later than Ann's by the clock: Ben's stands.
    await set(ben, same, `title = 'as Ben says'`)
    // Assigned without a network: the agent hears of it when there is one.
    await set(ben, parent, `assignee_type = 'agent', assignee_agent_id = $2::uuid`, [agent])
    expect((await statusOf(page(ben)))?.status.pending).toBeGreaterThan(5)
    await page(ben).getByText('Working offline').first().waitFor()

    for (const { network } of [ann, ben]) network.heal()
    gatewayNetwork.heal()
    await drained(page(ann), 90_000)
    await drained(page(ben), 90_000)
    expect(await authority(columns)).toMatchObject({ priority: 'urgent', description: 'from Ben' })
    expect(await authority(same)).toMatchObject({ title: 'as Ben says' })
    expect(await authority(gone)).toMatchObject({ deleted_at: expect.anything() })
    const conflicts = await system.rows(`select column_name, winner, loser from conflicts where row_id = $1`, [same])
    expect(conflicts).toEqual([{ column_name: 'title', winner: 'as Ben says', loser: 'as Ann says' }])
    expect(await system.rows('select title from tasks where parent_id = $1 order by title', [parent])).toEqual([
      { title: 'step by Ann' },
      { title: 'step by Ben' },
    ])
    expect(
      await system.rows(`select body from comments where entity_id = $1 and actor_type = 'human' order by body`, [
        parent,
      ]),
    ).toEqual([{ body: 'Ann was here' }, { body: 'Ben was here' }])
    await system.when(
      'the agent did what was assigned offline',
      async () => (await system.rows('select 1 from entity_links where owner_id = $1', [parent])).length === 1,
      90_000,
    )
    await bothConverged()

    // What lost is shown where it happened, and can still be taken.
    await page(ann).goto(`${ann.seen.url}/tasks/${same}`)
    await page(ann).getByText('Two people changed the title at the same time').waitFor()
    await page(ann).getByText('as Ann says').first().waitFor()
    await page(ann)
      .getByRole('button', { name: /^Take .*’s/ })
      .click()
    await eventually('Ann’s title stands', async () => (await authority(same))['title'] === 'as Ann says')
    await bothConverged()
  })

  test('two people decide on one deliverable offline: the second decision is refused, shown and can be given up', async () => {
    const [link] = await query<{ id: string; owner_id: string }>(
      page(ann),
      'select id, owner_id from entity_links where is_deliverable',
    )
    if (!link) throw new Error('no deliverable')
    for (const who of [ann, ben]) who.network.cut()
    const decide = (who: Side, verdict: string) =>
      write(page(who), [
        {
          sql: `update entity_links set review_status = $2::text, review_note = 'because', reviewed_by = (select owner_id from sync.replica), reviewed_at = now()
            where id = $1`,
          params: [link.id, verdict],
        },
      ])
    await decide(ann, 'approved')
    await decide(ben, 'rejected')
    ann.network.heal()
    await drained(page(ann), 60_000)
    ben.network.heal()
    await eventually('refused', async () => (await statusOf(page(ben)))?.status.rejected === 1, 60_000)
    await page(ben).goto(`${ben.seen.url}/`)
    await page(ben).getByText('One change was not accepted').waitFor()
    await page(ben).getByRole('link', { name: 'Look' }).click()
    const refused = page(ben).getByRole('region', { name: 'Refused by the server' })
    await refused.getByRole('button', { name: 'Edit and compare' }).click()
    await browserConverged(system, page(ben), { rejected: 1, ms: 60_000 })
    await refused.getByRole('button', { name: 'Discard…' }).click()
    await page(ben).getByRole('alertdialog').getByRole('button', { name: 'Discard' }).click()
    await eventually('given up', async () => (await statusOf(page(ben)))?.status.rejected === 0)
    expect(await system.rows('select review_status from entity_links where id = $1', [link.id])).toEqual([
      { review_status: 'approved' },
    ])
    expect(await query(page(ben), 'select review_status from entity_links where id = $1', [link.id])).toEqual([
      { review_status: 'approved' },
    ])
    await bothConverged()
  })

  test('killed in the middle of a push: nothing of the transaction stays, and it comes again', async () => {
    const lock = new pg.Client({ connectionString: system.server.postgres.url })
    await lock.connect()
    try {
      await lock.query('begin; lock table tasks in share mode')
      const id = await writeTask(page(ann), 'killed in the middle')
      await eventually(
        'the push waits for the lock',
        async () =>
          (await system.rows(`select 1 from pg_locks where not granted and relation = 'tasks'::regclass`)).length > 0,
        60_000,
      )
      await system.server.kill()
      await lock.query('rollback')
      await system.server.start()
      await drained(page(ann), 90_000)
      expect(await authority(id)).toMatchObject({ title: 'killed in the middle' })
    } finally {
      await lock.end()
    }
    await bothConverged()
  })

  test('killed between commit and answer, and right after a local write: once, and only once', async () => {
    ann.network.loseAnswers()
    const id = await writeTask(page(ann), 'committed, not answered')
    await eventually('committed', async () => (await authority(id))['title'], 60_000)
    expect((await statusOf(page(ann)))?.status.pending).toBe(1)
    const [, dead] = await Promise.all([system.server.kill(), writeTask(page(ben), 'right before the end')])
    ann.network.heal()
    await set(ann, id, `priority = 'low'`)
    await system.server.start()
    await drained(page(ann), 90_000)
    await drained(page(ben), 90_000)
    expect(await authority(id)).toMatchObject({ title: 'committed, not answered', priority: 'low' })
    expect(await authority(dead)).toMatchObject({ title: 'right before the end' })
    const audit = await system.rows(`select action from audit_log where entity_id = $1 and action = 'created'`, [id])
    expect(audit).toHaveLength(1)
    await bothConverged()
  })

  test('killed while changes are handed on, with a network that hangs for one side: everybody gets all of them', async () => {
    ben.network.delay(100)
    await write(
      page(ann),
      Array.from({ length: 60 }, (_, n) => ({
        sql: `insert into tasks (id, tenant_id, title) select uuidv7(), tenant_id, $1::text from sync.replica`,
        params: [`handed on ${n}`],
      })),
    )
    await ben.network.sent(0)
    await drained(page(ann), 60_000)
    await system.server.kill()
    ben.network.hang()
    await system.server.start()
    await writeTask(page(ann), 'after the kill')
    // Nobody tells Ben that the connection is dead; he notices by the silence.
    await offline(ben)
    ben.network.delay(0)
    ben.network.heal()
    await bothConverged()
    expect(await query(page(ben), `select 1 from tasks where title like 'handed on%'`)).toHaveLength(60)
  })

  test('the server is dead: a cold browser opens a deep address from its replica; what is written there arrives', async () => {
    const [task] = await query<{ id: string }>(page(ann), `select id from tasks where title = 'parent'`)
    await within(
      30_000,
      'the service worker is ready',
      page(ann).evaluate('navigator.serviceWorker.ready.then(() => 1)'),
    )
    await system.server.kill()
    await ann.device.reopen(`/tasks/${task?.id}`)
    await page(ann).getByText('Ben was here').first().waitFor({ timeout: 60_000 })
    await opened(page(ann))
    await page(ann).getByRole('textbox', { name: 'Comment' }).fill('written while it was dead')
    await page(ann).getByRole('textbox', { name: 'Comment' }).press('Control+Enter')
    await page(ann).getByText('written while it was dead').first().waitFor()
    await ann.device.reopen('/agents/wanda?tab=runs')
    await page(ann)
      .getByText('Written by the demo model: no real model was asked.')
      .first()
      .waitFor({ timeout: 60_000 })
    await system.server.start()
    await drained(page(ann), 90_000)
    expect(await system.rows(`select 1 from comments where body = 'written while it was dead'`)).toHaveLength(1)
    await bothConverged()
  })

  test('an agent cut off in the middle of its work finishes it, and reports once when the server is back from a kill', async () => {
    await gateway.end()
    await gateway.start({ HQ_TEST_PACE_MS: '150' })
    const id = await writeTask(page(ben), 'Finish this without me')
    await set(ben, id, `assignee_type = 'agent', assignee_agent_id = $2::uuid`, [agent])
    await system.when(
      'it works on it',
      async () =>
        (await system.rows(`select 1 from agent_runs where task_id = $1 and status = 'running'`, [id])).length === 1,
      90_000,
    )
    gatewayNetwork.cut()
    await system.server.kill()
    await system.when(
      'it is done, though nobody hears of it',
      async () =>
        (await gateway.written()).some(({ table, set }) => table === 'agent_runs' && set['status'] === 'done'),
      90_000,
    )
    await system.server.start()
    expect(await system.rows(`select status from agent_runs where task_id = $1`, [id])).toEqual([{ status: 'running' }])
    gatewayNetwork.heal()
    await system.when(
      'the report arrives',
      async () =>
        (await system.rows(`select 1 from agent_runs where task_id = $1 and status = 'done'`, [id])).length === 1,
      90_000,
    )
    expect(await system.rows('select review_status from entity_links where owner_id = $1', [id])).toEqual([
      { review_status: 'submitted' },
    ])
    await restart()
    await bothConverged()
    await nothingDoubled(system)
    await gateway.end()
    await gatewayConverged(system, gateway)
    for (const { device } of [ann, ben])
      expect(device.problems.filter((problem) => problem.startsWith('thrown'))).toEqual([])
  })
})
