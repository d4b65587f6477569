/** Two devices and a server that is killed: nothing written is lost or doubled, and the app opens without a server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Device,
  drained,
  eventually,
  hasChromium,
  openDevice,
  opened,
  query,
  setUpOwner,
  signIn,
  startTestServer,
  statusOf,
  type TestServer,
  within,
  write,
  writeTask,
} from '../../../tests/support/browser.ts'

describe.skipIf(!hasChromium)('without a server', () => {
  let server: TestServer
  let ann: Device
  let ben: Device

  beforeAll(async () => {
    server = await startTestServer()
    ann = await openDevice(server)
    await setUpOwner(ann.page, server)
    ben = await openDevice(server)
    await ben.page.goto(server.url)
    await signIn(ben.page, server)
  })
  afterAll(async () => {
    await ann?.close()
    await ben?.close()
    await server?.stop()
  })

  const titles = (device: Device): Promise<string[]> =>
    query<{ title: string }>(device.page, 'select title from tasks order by title').then((rows) =>
      rows.map((row) => row.title),
    )

  test('what one device writes, the other sees', async () => {
    const id = await writeTask(ann.page, 'from ann')
    await eventually('ben has it', async () => (await titles(ben)).includes('from ann'))
    await write(ben.page, [{ sql: `update tasks set status = 'done' where id = $1`, params: [id] }])
    await eventually('ann sees the change', async () => {
      const rows = await query(ann.page, 'select status from tasks where id = $1', [id])
      return rows[0]?.status === 'done'
    })
  })

  test('a write asked for twice with one id happens once', async () => {
    const statement = {
      sql: `insert into tasks (id, tenant_id, title) select uuidv7(), tenant_id, 'once' from sync.replica`,
    }
    const id = crypto.randomUUID()
    await write(ann.page, [statement], id)
    // Another worker would see the record; this one knows the id already, so ask through another tab.
    const tab = await ann.newTab('/')
    await opened(tab)
    await write(tab, [statement], id)
    await tab.close()
    await drained(ann.page)
    expect(await server.rows(`select 1 from tasks where title = 'once'`)).toHaveLength(1)
  })

  test('server killed: a cold browser opens a deep address, writes, is closed, opens again; then all converge', async () => {
    // The service worker must have everything before the server goes.
    await within(
      30_000,
      'the service worker is ready',
      ann.page.evaluate('navigator.serviceWorker.ready.then(() => 1)'),
    )
    await server.kill()
    await ann.reopen('/sync')
    await ann.page.getByRole('heading', { name: 'Waiting to be sent' }).waitFor()
    await opened(ann.page)
    for (let n = 0; n < 20; n++) await writeTask(ann.page, `offline ann ${n}`)
    await writeTask(ben.page, 'offline ben')
    expect((await statusOf(ann.page))?.status).toMatchObject({ pending: 20 })
    await ann.page.getByText('20 changes waiting').first().waitFor()

    await ann.reopen('/agents')
    await opened(ann.page)
    expect((await titles(ann)).filter((title) => title.startsWith('offline ann'))).toHaveLength(20)
    await writeTask(ann.page, 'offline ann, second morning')

    await server.start()
    await drained(ann.page, 60_000)
    await drained(ben.page, 60_000)
    const expected = await server.rows<{ title: string }>('select title from tasks order by title')
    expect(expected.filter(({ title }) => title.startsWith('offline'))).toHaveLength(22)
    for (const device of [ann, ben]) {
      await eventually('equal to the authority', async () => {
        const here = [...(await titles(device))].sort()
        return JSON.stringify(here) === JSON.stringify(expected.map(({ title }) => title).sort())
      })
    }
  })

  test('killed again and again while both write: every write is there once', async () => {
    const wanted: string[] = []
    for (let round = 0; round < 3; round++) {
      for (const [name, device] of [
        ['ann', ann],
        ['ben', ben],
      ] as const) {
        for (let n = 0; n < 5; n++) {
          const title = `round ${round} ${name} ${n}`
          wanted.push(title)
          await writeTask(device.page, title)
        }
      }
      await server.kill()
      await writeTask(ann.page, `round ${round} dead`)
      wanted.push(`round ${round} dead`)
      await server.start()
    }
    await drained(ann.page, 60_000)
    await drained(ben.page, 60_000)
    const there = await server.rows<{ title: string }>(`select title from tasks where title like 'round %'`)
    expect(there.map(({ title }) => title).sort()).toEqual(wanted.sort())
    await eventually(
      'ben has all',
      async () => (await titles(ben)).filter((t) => t.startsWith('round')).length === wanted.length,
    )
  })
})
