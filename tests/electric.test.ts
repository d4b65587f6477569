/**
 * `ELECTRIC_URL`: the read path comes from an Electric service beside the server. The service here is our own engine run alone, behind a gate that is as
 * strict as Electric 1.7 (support/electric.ts): only the address differs from the real one. The tests of offline work, of visibility and of a restored database run here
 * once more, as they are.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Replica } from '@hq/shared/sync/contract.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { type Caller, startWorkspace, update, type Workspace } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type BenchReplica, openBenchReplica, until } from '../bench/support/replicas.ts'
import {
  drained,
  eventually,
  hasChromium,
  openDevice,
  setUpOwner,
  startTestServer,
  within,
  writeTask,
} from './support/browser.ts'
import { ELECTRIC_SECRET, type ElectricService, startElectric } from './support/electric.ts'

// startTestServer (support/browser.ts) puts an Electric service beside every server of this file.
process.env['HQ_TEST_SHAPES'] = 'electric'
describe('offline work, over Electric', async () => {
  await import('./offline.test.ts')
})
describe('who sees what, over Electric', async () => {
  await import('./visibility.test.ts')
})
describe('a restored database, over Electric', async () => {
  await import('./restore.test.ts')
})

test.skipIf(!hasChromium)(
  'Electric away: the app says that it is syncing, not that all is there; what is written is sent, and it recovers',
  async () => {
    const server = await startTestServer()
    const device = await openDevice(server)
    try {
      await setUpOwner(device.page, server)
      const says = (word: string) => device.page.getByRole('link', { name: word }).first().waitFor()
      await says('Synced')
      await server.electric?.engine.kill('SIGKILL')
      await says('Syncing')
      const id = await writeTask(device.page, 'while Electric is away')
      await eventually(
        'the authority has it',
        async () => (await server.rows('select 1 from tasks where id = $1', [id])).length === 1,
      )
      await server.electric?.engine.start()
      await drained(device.page, 60_000)
      await says('Synced')
    } finally {
      await device.close()
      await server.stop()
    }
  },
)

describe('two replicas over Electric', () => {
  let folder = ''
  let electric: ElectricService
  let workspace: Workspace
  let viewer: Caller
  let here: BenchReplica
  let there: BenchReplica
  const logged: string[] = []

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'hq-electric-'))
    workspace = await startWorkspace(async (databaseUrl) => {
      electric = await startElectric(databaseUrl)
      return {
        electricUrl: electric.url,
        electricSecret: ELECTRIC_SECRET,
        log: (level, message, fields) => void logged.push(`${level} ${message} ${JSON.stringify(fields ?? {})}`),
      }
    })
    viewer = await workspace.join('viewer')
    here = await openBenchReplica(workspace.url, workspace.owner, join(folder, 'a'))
    there = await openBenchReplica(workspace.url, viewer, join(folder, 'b'))
  })
  afterAll(async () => {
    await here?.close()
    await there?.close()
    await workspace?.stop()
    await electric?.stop()
    await rm(folder, { recursive: true, force: true })
  })
  beforeEach(() => {
    logged.length = 0
  })

  const write = async (title: string): Promise<string> => {
    const id = randomUUID()
    await here.replica.write((tx) =>
      tx.query('insert into tasks (id, tenant_id, title) values ($1, $2, $3)', [id, workspace.tenantId, title]),
    )
    return id
  }
  const titleOf = async (replica: Replica, id: string): Promise<unknown> =>
    (await replica.query<{ title: string }>('select title from tasks where id = $1', [id]))[0]?.title
  const arrives = (id: string): Promise<void> =>
    until(there.replica, async () => (await titleOf(there.replica, id)) !== undefined)
  const settles = (): Promise<void> => until(here.replica, () => here.replica.status().pending === 0)
  const shape = (query: string, init: RequestInit = {}): Promise<Response> =>
    workspace.request(viewer, `/v1/shape?table=tasks&replica=full&replica_id=${replicaId}&${query}`, init)
  const replicaId = newId()
  const placeOf = ({ headers }: Response): string =>
    `offset=${headers.get('electric-offset')}&handle=${headers.get('electric-handle')}`

  test('a change arrives, is acknowledged, and what the server refuses is seen and given up', async () => {
    const health = (await (await fetch(`${workspace.url}/v1/health`)).json()) as { shapes: string }
    expect(health.shapes).toBe('electric')
    const id = await write('over Electric')
    await arrives(id)
    await settles()
    // A viewer may not write: the change stands on its replica until the refusal comes, then it waits for its person.
    await there.replica.write((tx) => tx.query(`update tasks set title = 'by a viewer' where id = $1`, [id]))
    await until(there.replica, () => there.replica.status().rejected === 1)
    expect(await titleOf(here.replica, id)).toBe('over Electric')
    const [refused] = await there.replica.outbox()
    await there.replica.discard(refused?.seq ?? 0)
    expect(await titleOf(there.replica, id)).toBe('over Electric')
  })

  test('Electric killed: what is written meanwhile is kept, and arrives when it is back; requests are a 503 with a time to come again', async () => {
    await electric.engine.kill('SIGKILL')
    const meanwhile = await write('while Electric is dead')
    const answer = await shape('offset=-1')
    expect(answer.status).toBe(503)
    expect(Number(answer.headers.get('retry-after'))).toBeGreaterThan(0)
    expect(await answer.json()).toMatchObject({ code: 'busy' })
    // Pushed all the same: the write path needs no Electric.
    await eventually(
      'the authority has it',
      async () => (await workspace.rows('select 1 from tasks where id = $1', [meanwhile])).length === 1,
    )
    expect(here.replica.status().pending).toBe(1)
    await until(here.replica, () => here.replica.status().connection === 'connecting')
    await electric.engine.start()
    await arrives(meanwhile)
    await settles()
    await until(here.replica, () => here.replica.status().connection === 'online')
    const about = logged.filter((line) => line.includes('Electric'))
    expect(about).toHaveLength(2)
    expect(about[0]).toMatch(/^error No shapes from Electric: it cannot be reached/)
    expect(about[1]).toMatch(/^info Electric answers again/)
  })

  test('the server killed and started again: both go on where they were', async () => {
    await workspace.restart()
    await arrives(await write('after the restart'))
    await settles()
  })

  test('all shapes rotated: replicas fetch anew, keep what they have meanwhile, and lose nothing', async () => {
    const before = await write('before the rotation')
    await arrives(before)
    await settles()
    const had = electric.answered(409)
    for (const table of ['tasks', 'client_progress', 'mutation_results', 'people'])
      expect(await electric.rotate(table), table).toBeGreaterThan(0)
    const after = await write('after the rotation')
    await arrives(after)
    await settles()
    expect(electric.answered(409)).toBeGreaterThan(had)
    expect(await titleOf(there.replica, before)).toBe('before the rotation')
    const count = async (replica: Replica) => (await replica.query('select 1 from tasks')).length
    expect(await count(there.replica)).toBe(await count(here.replica))
  })

  test('events come one by one over HTTP while the stream is open, and its end reaches Electric', async () => {
    const first = await shape('offset=now')
    await first.text()
    const leaving = new AbortController()
    const stream = await shape(`${placeOf(first)}&live=true&live_sse=true`, { signal: leaving.signal })
    expect(stream.headers.get('content-type')).toContain('text/event-stream')
    const reader = stream.body?.pipeThrough(new TextDecoderStream()).getReader()
    const read = async (wanted: string): Promise<void> => {
      for (let text = ''; !text.includes(wanted); ) {
        const { value, done } = (await reader?.read()) ?? { done: true }
        if (done) throw new Error(`the stream ended; it said ${text}`)
        text += value
      }
    }
    const id = await write('as an event')
    await within(20_000, 'the event comes while the stream is open', read('as an event'))
    await workspace
      .writer(workspace.owner)
      .apply([update('tasks', id, { title: 'as an event' }, { title: 'as another' })])
    await within(20_000, 'the next event comes', read('as another'))
    expect(electric.held('live_sse')).toBe(1)
    leaving.abort()
    await reader?.cancel().catch(() => undefined)
    await eventually('Electric holds no stream any more', async () => electric.held('live_sse') === 0, 5_000)
  })

  test('the secret goes to Electric and nowhere else', async () => {
    const answers = [
      await shape('offset=-1'),
      await shape('offset=-1&secret=guess'),
      await shape('offset=nonsense'),
      await workspace.request(viewer, '/v1/shape?table=nothing'),
      await workspace.request(undefined, '/v1/health'),
    ]
    for (const answer of answers) {
      const text = `${answer.url} ${JSON.stringify([...answer.headers])} ${await answer.text()}`
      expect(text).not.toContain(ELECTRIC_SECRET)
    }
    // Right all along: the gate would have answered 401.
    expect(electric.answered(401)).toBe(0)
    expect(logged.join('\n')).not.toContain(ELECTRIC_SECRET)
  })
})

test('a server with a wrong secret says so in its log and not to its readers, who are not signed out by it', async () => {
  const logged: string[] = []
  let electric: ElectricService | undefined
  const workspace = await startWorkspace(async (databaseUrl) => {
    electric = await startElectric(databaseUrl)
    return { electricUrl: electric.url, electricSecret: 'not it', log: (_level, message) => void logged.push(message) }
  })
  try {
    const answer = await workspace.request(workspace.owner, `/v1/shape?table=tasks&replica_id=${newId()}&offset=-1`)
    expect(answer.status).toBe(503)
    expect(await answer.text()).not.toContain('secret')
    expect(logged.filter((line) => line.includes('ELECTRIC_SECRET'))).toHaveLength(1)
  } finally {
    await workspace.stop()
    await electric?.stop()
  }
})
