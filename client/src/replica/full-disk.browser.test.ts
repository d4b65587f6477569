/** A browser that has no room left, wherever in a write it runs out: said in words, nothing that was saved is lost, and with room again all goes on. */
import { randomBytes, randomUUID } from 'node:crypto'
import type { CDPSession } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { picture } from '../../../tests/support/axe.ts'
import {
  call,
  type Device,
  drained,
  eventually,
  hasChromium,
  openDevice,
  opened,
  query,
  setUpOwner,
  startTestServer,
  type TestServer,
  writeTask,
} from '../../../tests/support/browser.ts'

const NO_ROOM = /no (space|room) left/i
const MEGABYTE = 1e6

describe.skipIf(!hasChromium)('a full disk', () => {
  let server: TestServer
  let device: Device
  let session: CDPSession | undefined
  /** Written and acknowledged. */
  const kept: string[] = []

  beforeAll(async () => {
    server = await startTestServer()
    device = await openDevice(server)
    await setUpOwner(device.page, server)
  })
  afterAll(async () => {
    await device?.close()
    await server?.stop()
  })

  /** Bytes that may come to what is there; none: as many as there are. */
  const allow = async (more?: number): Promise<void> => {
    // The limit lasts as long as the session that set it.
    session ??= await device.page.context().newCDPSession(device.page)
    const { usage } = (await call(device.page, '() => navigator.storage.estimate()')) as { usage: number }
    const quota = more === undefined ? {} : { quotaSize: Math.round(usage + more) }
    await session.send('Storage.overrideQuotaForOrigin', { origin: server.url, ...quota })
  }

  /** Writes until it is refused; the words of that. */
  const fill = async (bytes: number): Promise<string> => {
    for (let round = 0; round < 150; round++) {
      const id = randomUUID()
      try {
        await writeTask(device.page, `${round} ${noise(round % 2 === 0 ? bytes : 2_000)}`, id)
        kept.push(id)
      } catch (error) {
        return String(error)
      }
    }
    return 'there was room for everything'
  }

  const ids = async (): Promise<string[]> =>
    (await query<{ id: string }>(device.page, 'select id from tasks')).map(({ id }) => id)

  test('a write is refused in words wherever the room ends; reading goes on; with room again so does writing', async () => {
    await server.kill()
    // From no room for a page of a table to room for all of the log's reserve.
    for (let room = 0.5; room < 11; room += 0.75) {
      await allow(room * MEGABYTE)
      expect(await fill(400_000), `${room} MB`).toMatch(NO_ROOM)
      // Nothing was saved of what was refused, and all of what was not.
      expect((await ids()).sort(), `${room} MB`).toEqual([...kept].sort())
      // Refused again and again, it is still the same answer.
      for (let again = 0; again < 2; again++) expect(await fill(400_000), `${room} MB`).toMatch(NO_ROOM)
      expect((await ids()).sort(), `${room} MB`).toEqual([...kept].sort())
      await allow()
      const id = randomUUID()
      await eventually(`a write after ${room} MB`, () =>
        writeTask(device.page, 'there is room again', id).then(
          () => true,
          (error: unknown) => {
            if (NO_ROOM.test(String(error))) return false
            throw error
          },
        ),
      )
      kept.push(id)
    }
  })

  test('a browser that ends with a full disk opens again, says it, and sends what it had when there is room', async () => {
    await allow(2 * MEGABYTE)
    expect(await fill(400_000)).toMatch(NO_ROOM)
    await server.start()
    await device.quit()
    session = undefined
    await device.reopen('/tasks')
    await opened(device.page, 90_000)
    await allow(0.1 * MEGABYTE)
    expect(await fill(1_000_000)).toMatch(NO_ROOM)
    await device.page.getByText(NO_ROOM).first().waitFor()
    await picture(device.page, 'storage-full')
    await allow()
    await drained(device.page, 90_000)
    const { n } = (
      await server.rows<{ n: number }>('select count(*)::int as n from tasks where id = any($1)', [kept])
    )[0] ?? { n: 0 }
    expect(n).toBe(kept.length)
  })
})

/** Text that cannot be packed. */
const noise = (bytes: number): string => randomBytes(bytes / 2).toString('hex')
