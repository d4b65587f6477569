/**
 * Bad input on the whole path: for each a clear message, the rest goes on, and nothing acknowledged is lost. (Wrong passwords and used links:
 * session.browser.test.ts; a database that is noise: rebuild.browser.test.ts; each malformed mutation: push.pg.test.ts.)
 */
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { newId } from '@hq/sync-server/database/ids.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Device,
  drained,
  eventually,
  hasChromium,
  joinByLink,
  loaded,
  OWNER,
  openDevice,
  query,
  setUpOwner,
  statusOf,
  within,
  write,
  writeTask,
} from './support/browser.ts'
import { browserConverged } from './support/converged.ts'
import type { Network } from './support/proxy.ts'
import {
  agentPatch,
  commandPatch,
  isEnded,
  provision,
  type System,
  startSystem,
  taskPatch,
  through,
} from './support/system.ts'

const templates = join(import.meta.dirname, '../templates')

describe('over HTTP', () => {
  let system: System
  let folder: string
  beforeAll(async () => {
    system = await startSystem()
    folder = await mkdtemp(join(tmpdir(), 'hq-bad-input-'))
  })
  afterAll(async () => {
    await system?.stop()
    await rm(folder, { recursive: true, force: true })
  })

  test('malformed and oversized pushes are refused with a reason, and the next good one is applied', async () => {
    const writer = system.writer()
    const push = async (body: string) => {
      const headers = { 'content-type': 'application/json' }
      const sent = system.request(system.owner, '/v1/mutations', { method: 'POST', body, headers })
      // A server may answer 413 and hang up before all has been sent; whether the answer is then still read is a race in fetch.
      const response = await sent.catch((error: unknown) => {
        if (body.length < 10_000_000) throw error
        return Response.json({ message: 'hung up' }, { status: 413 })
      })
      return { status: response.status, body: (await response.json()) as { code?: string; message?: string } }
    }
    const envelope = (mutations: unknown) =>
      JSON.stringify({ protocol: 1, replica_id: writer.replicaId, schema_version: '0001_schema.sql', mutations })
    for (const [what, body] of [
      ['not JSON', '{"protocol":'],
      ['a list', '[]'],
      ['no mutations', envelope(undefined)],
      ['a mutation without patches', envelope([{ seq: 1 }])],
      [
        'a column that does not exist',
        envelope([writer.mutation({ patches: [taskPatch(system, 'x', null, newId(), { no_such: 1 })] })]),
      ],
      [
        'a table that does not exist',
        envelope([
          {
            ...writer.mutation({ patches: [] }),
            patches: [{ table: 'pg_authid', id: newId(), op: 'insert', set: {}, base: {} }],
          },
        ]),
      ],
      [
        'a megabyte of megabytes',
        envelope([
          writer.mutation({
            patches: [taskPatch(system, 'x', null, newId(), { description: 'x'.repeat(40_000_000) })],
          }),
        ]),
      ],
    ] as const) {
      writer.seq = 0
      const answer = await push(body)
      const said = JSON.stringify(answer.body)
      const refused = answer.status >= 400 ? answer.body.message : said.includes('"rejected"') ? said : undefined
      expect(refused, `${what}: ${answer.status} ${said.slice(0, 300)}`).toBeTruthy()
      expect(said, what).not.toMatch(/at .*\.ts:\d+|syntax error|node_modules/)
    }
    expect((await system.request(undefined, '/v1/health')).status).toBe(200)
    await system.writer().apply([taskPatch(system, 'a good one')])
    expect(await system.rows('select title from tasks')).toEqual([{ title: 'a good one' }])
  })

  test('a broken template is shown as broken with its reason; the others work', async () => {
    const own = join(folder, 'templates')
    await cp(templates, own, { recursive: true })
    await writeFile(join(own, 'analyst/agent.json'), '{ "name": "Analyst", ')
    await mkdir(join(own, 'empty'))
    const gateway = await system.gateway('broken-templates', { env: { HQ_TEMPLATES: own } })
    await system.when(
      'the templates are published',
      async () => (await system.rows('select 1 from agent_templates where gateway_id = $1', [gateway.id])).length >= 6,
      60_000,
    )
    const rows = await system.rows<{ slug: string; error: string | null }>(
      'select slug, error from agent_templates where gateway_id = $1',
      [gateway.id],
    )
    expect(rows.find(({ slug }) => slug === 'analyst')?.error).toMatch(/agent\.json/)
    expect(rows.filter(({ error }) => error === null).map(({ slug }) => slug)).toEqual(
      expect.arrayContaining(['writer', 'assistant', 'operator']),
    )
    const [agent, command] = [newId(), newId()]
    await system
      .writer()
      .apply([
        agentPatch(system, gateway, 'ana', agent, { meta: { template: 'analyst' } }),
        commandPatch(system, gateway, agent, 'provision', command),
      ])
    const ended = await system.rowWhen('agent_commands', command, isEnded)
    expect(ended).toMatchObject({ status: 'failed', error_message: expect.stringContaining('analyst') })
    expect(await system.rowWhen('agents', agent, (row) => row['status'] === 'error')).toMatchObject({
      status_reason: expect.stringMatching(/\S/),
    })
    await provision(system, gateway, 'still-works')
    await gateway.end()
  })

  test('without git: the gateway runs and says what to install; setting an agent up fails with that reason', async () => {
    const bin = join(folder, 'bin')
    await mkdir(bin)
    await writeFile(join(bin, 'nothing'), '')
    await chmod(bin, 0o755)
    const gateway = await system.gateway('no-git', { env: { PATH: bin } })
    const shown = await system.rowWhen('gateways', gateway.id, (row) =>
      JSON.stringify(row['meta']).includes('git_missing'),
    )
    expect(JSON.stringify(shown['meta'])).toMatch(/install git/i)
    const [agent, command] = [newId(), newId()]
    await system
      .writer()
      .apply([
        agentPatch(system, gateway, 'gitless', agent),
        commandPatch(system, gateway, agent, 'provision', command),
      ])
    expect(await system.rowWhen('agent_commands', command, isEnded)).toMatchObject({
      error_message: expect.stringMatching(/git/i),
    })
    await system.rowWhen('agents', agent, (row) => row['status'] === 'error')
    await gateway.end()
  })
})

describe.skipIf(!hasChromium)('in a browser', () => {
  let system: System
  let ann: { device: Device; network: Network }
  let ben: { device: Device; network: Network }

  beforeAll(async () => {
    system = await startSystem({ browser: true, setUp: false })
    const side = async () => {
      const network = await system.proxy()
      return { network, device: await openDevice(through(system.server, network)) }
    }
    ann = await side()
    await setUpOwner(ann.device.page, through(system.server, ann.network))
    await system.signIn()
    await system.gateway('one')
    ben = await side()
  })
  afterAll(async () => {
    await ann?.device.close()
    await ben?.device.close()
    await system?.stop()
  })

  const invite = async (): Promise<string> => {
    const made = await system.request(system.owner, '/v1/invitations', { method: 'POST', body: '{"role":"member"}' })
    return new URL(((await made.json()) as { url: string }).url).pathname
  }

  test('an expired invitation says so and lets nobody in; a fresh one does', async () => {
    const { page } = ben.device
    const expired = await invite()
    await system.rows(`update invitations set expires_at = now() - interval '1 minute'`)
    await page.goto(ben.network.url + expired)
    await page
      .getByText(/expired/)
      .first()
      .waitFor()
    expect(await page.getByRole('button', { name: /^Join/ }).count()).toBe(0)
    const who = { name: 'Ben Berg', email: 'ben@example.com', password: 'another good one' }
    await joinByLink(page, through(system.server, ben.network), await invite(), who)
  })

  test('a slug that both took offline: the later is refused, shown, corrected, sent again and set up', async () => {
    const wizard = async ({ page }: Device, name: string): Promise<void> => {
      await page.goto(`${new URL(page.url()).origin}/agents`)
      await page.getByRole('button', { name: 'New agent' }).first().click()
      const dialog = page.getByRole('dialog', { name: 'New agent' })
      await dialog.getByRole('radio', { name: /Writer/ }).click()
      await dialog.getByRole('button', { name: 'Continue' }).click()
      await dialog.getByLabel('Name').fill(name)
      await dialog.getByLabel('Slug').fill('max')
      await dialog.getByRole('button', { name: 'Continue' }).click()
      await dialog.getByRole('button', { name: 'Create agent' }).click()
      await dialog.getByRole('button', { name: `Open ${name}` }).click()
    }
    await drained(ben.device.page)
    for (const { device, network } of [ann, ben]) {
      await system.when(
        'the templates are here',
        async () => (await query(device.page, 'select 1 from agent_templates')).length >= 6,
        60_000,
      )
      await within(
        30_000,
        'the service worker is ready',
        device.page.evaluate('navigator.serviceWorker.ready.then(() => 1)'),
      )
      network.cut()
    }
    await wizard(ann.device, 'Max One')
    await wizard(ben.device, 'Max Two')
    ann.network.heal()
    await drained(ann.device.page, 60_000)
    ben.network.heal()
    const { page } = ben.device
    await eventually('refused', async () => (await statusOf(page))?.status.rejected === 1, 60_000)
    await page.goto(`${ben.network.url}/sync`)
    const refused = page.getByRole('region', { name: 'Refused by the server' })
    await refused
      .getByText(/already an agent with this slug/)
      .first()
      .waitFor()
    await refused.getByRole('button', { name: 'Edit and compare' }).click()
    await refused.getByLabel(/(: |^Your )slug$/).fill('max-two')
    await refused.getByRole('button', { name: 'Send corrected' }).click()
    await system.when(
      'accepted',
      async () => (await system.rows(`select 1 from agents where slug = 'max-two' and status = 'ready'`)).length === 1,
      90_000,
    )
    await system.when(
      'the other too',
      async () =>
        (await system.rows(`select 1 from agents where slug = 'max' and name = 'Max One' and status = 'ready'`))
          .length === 1,
      60_000,
    )
    await browserConverged(system, page)
    await browserConverged(system, ann.device.page)
    expect(await system.rows('select 1 from agents')).toHaveLength(2)
  })

  test('a row that is too large is refused where it is written, and nothing else suffers', async () => {
    const { page } = ann.device
    await expect(writeTask(page, 'x'.repeat(9_000_000))).rejects.toThrow(/large|big|MB|bytes/i)
    const id = await writeTask(page, 'of an ordinary size')
    await drained(page)
    expect(await system.rows('select title from tasks where id = $1', [id])).toEqual([{ title: 'of an ordinary size' }])
    expect((await statusOf(page))?.status.rejected).toBe(0)
  })

  test('the browser threw its database away while changes waited: it is loaded anew, and they are sent', async () => {
    const { device, network } = ann
    const known = await writeTask(device.page, 'known to the server')
    await drained(device.page)
    await eventually('no copy is left', async () => (await device.page.evaluate(COPIES)) === 0)
    network.cut()
    const fresh = await writeTask(device.page, 'only on this device')
    await write(device.page, [{ sql: `update tasks set priority = 'urgent' where id = $1`, params: [known] }])
    await eventually('both are copied', async () => (await device.page.evaluate(COPIES)) === 2)
    await device.quit()
    network.heal()
    await device.reopen('/v1/health')
    expect(await device.page.evaluate(THROW_AWAY)).toBe(1)
    await device.reopen('/sync')
    await loaded(device.page, 90_000)
    await drained(device.page, 60_000)
    await eventually(
      'both have arrived',
      async () =>
        (await system.rows('select 1 from tasks where id = $1', [fresh])).length === 1 &&
        (await system.rows(`select 1 from tasks where id = $1 and priority = 'urgent'`, [known])).length === 1,
      30_000,
    )
    await browserConverged(system, device.page)
  })

  test('nothing is left in the browser: signing in loads everything again', async () => {
    const { device, network } = ann
    await device.reopen('/v1/health')
    await device.page.evaluate(FORGET_ALL)
    await device.reopen('/')
    await loaded(device.page, 90_000)
    await browserConverged(system, device.page)
    expect(new URL(device.page.url()).origin).toBe(network.url)
    expect(await query(device.page, 'select email from people order by email')).toContainEqual({ email: OWNER.email })
  })
})

/** How many copies of waiting changes stand outside the database. */
const COPIES = `new Promise((resolve, reject) => {
  const request = indexedDB.open('hq-device')
  request.onerror = () => reject(request.error)
  request.onsuccess = () => {
    const count = request.result.transaction('copies').objectStore('copies').count()
    count.onsuccess = () => { request.result.close(); resolve(count.result) }
  }
})`

/** Deletes the database's files, as a browser short of space may. */
const THROW_AWAY = `(async () => {
  const root = await navigator.storage.getDirectory()
  let gone = 0
  for await (const name of root.keys()) if (name.startsWith('hq-1-')) { await root.removeEntry(name, { recursive: true }); gone++ }
  return gone
})()`

const FORGET_ALL = `(async () => {
  const root = await navigator.storage.getDirectory()
  for await (const name of root.keys()) await root.removeEntry(name, { recursive: true })
  for (const { name } of await indexedDB.databases()) await new Promise((done) => { indexedDB.deleteDatabase(name).onsuccess = done })
  localStorage.clear()
  for (const name of await caches.keys()) await caches.delete(name)
  for (const registration of await navigator.serviceWorker.getRegistrations()) await registration.unregister()
})()`
