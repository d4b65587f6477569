/** A local database that can no longer be read is built anew, and what waited to be sent is sent. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import {
  type Device,
  drained,
  eventually,
  hasChromium,
  loaded,
  openDevice,
  query,
  setUpOwner,
  startTestServer,
  statusOf,
  type TestServer,
  write,
  writeTask,
} from '../../../tests/support/browser.ts'

/** Overwrites every file of the database with noise. */
const RUIN = `(async () => {
  const root = await navigator.storage.getDirectory()
  const noise = crypto.getRandomValues(new Uint8Array(8192))
  let ruined = 0
  const ruin = async (folder) => {
    for await (const entry of folder.values()) {
      if (entry.kind === 'directory') await ruin(entry)
      else if ((await entry.getFile()).size > 0) {
        const stream = await entry.createWritable({ keepExistingData: true })
        await stream.write({ type: 'write', position: 0, data: noise.subarray(0, Math.min(8192, (await entry.getFile()).size)) })
        await stream.close()
        ruined++
      }
    }
  }
  for await (const [name, entry] of root.entries()) if (name.startsWith('hq-1-')) await ruin(PART)
  return ruined
})()`

const copies = (device: Device): Promise<number> =>
  device.page.evaluate(`new Promise((resolve, reject) => {
    const request = indexedDB.open('hq-device')
    request.onerror = () => reject(request.error)
    request.onsuccess = () => {
      const count = request.result.transaction('copies').objectStore('copies').count()
      count.onsuccess = () => { request.result.close(); resolve(count.result) }
    }
  })`)

describe.skipIf(!hasChromium)('a database that cannot be read', () => {
  let server: TestServer
  let device: Device

  beforeAll(async () => {
    server = await startTestServer()
    device = await openDevice(server)
    await setUpOwner(device.page, server)
  })
  afterAll(async () => {
    await device?.close()
    await server?.stop()
  })

  test.each([
    ['all its data is noise', 'await entry.getDirectoryHandle("data")'],
    [
      'its list of files is noise',
      '{ values: async function* () { for (const each of ["journal-0", "journal-1"]) yield await entry.getFileHandle(each) } }',
    ],
  ])('%s: rebuilt, with the outbox saved (E2, E3)', async (_, part) => {
    const { page } = device
    const id = await writeTask(page, 'known to the server')
    await drained(page)
    await eventually('no copy is left', async () => (await copies(device)) === 0)
    await server.kill()
    await eventually('offline', async () => (await statusOf(page))?.status.connection === 'offline')
    const fresh = await writeTask(page, `only here: ${part.length}`)
    await write(page, [{ sql: `update tasks set status = 'in_progress' where id = $1`, params: [id] }])
    await eventually('both changes are copied', async () => (await copies(device)) === 2)
    await device.quit()

    await server.start()
    await device.reopen('/v1/health')
    expect(await device.page.evaluate(RUIN.replace('PART', part))).toBeGreaterThan(0)
    await device.reopen('/sync')
    await loaded(device.page, 90_000)
    await device.page.getByText('built anew').waitFor()
    await drained(device.page, 60_000)
    const rows = await query(device.page, 'select id, status from tasks where id = any($1::uuid[]) order by id', [
      [id, fresh],
    ])
    expect(rows).toHaveLength(2)
    expect(await server.rows('select status from tasks where id = $1', [id])).toEqual([{ status: 'in_progress' }])
    expect(await server.rows('select 1 from tasks where id = $1', [fresh])).toHaveLength(1)
  })

  test('a person can have it rebuilt', async () => {
    const { page } = device
    await page.getByRole('button', { name: 'Rebuild the local database…' }).click()
    const before = await query<{ replica_id: string }>(page, 'select replica_id from sync.replica')
    await page.getByRole('alertdialog').getByRole('button', { name: 'Rebuild' }).click()
    await eventually(
      'another database',
      async () => {
        const now = await query<{ replica_id: string }>(page, 'select replica_id from sync.replica')
        return now[0]?.replica_id !== before[0]?.replica_id
      },
      60_000,
    )
    await loaded(page)
  })
})
