/**
 * SIGKILL of server and gateway at random moments (HQ_CHAOS_SEED, HQ_CHAOS_ROUNDS), while the gateway writes without end, thousands of changes come from
 * elsewhere, outboxes are pushed and the server compacts its change log all the time. Nothing acknowledged is lost, nothing is there half or twice,
 * and in the end all have the same.
 *
 * The matrix of what is killed, and when; this table is the index of all such tests.
 *
 *                      server                          gateway (Node replica)                     browser
 *  local writes        here · offline.test             here · gateway-alone.test                  browser.test · tabs.browser.test
 *  applying a stream   here · shapes/kill.pg.test      here                                       browser.test
 *  push                here · offline.test             here · push.test (answers lost)            browser.test · offline.test
 *  log compaction      here (BUSY_LOG)                 (has none)                                 (has none)
 *  first start, seed   start.test                      here (first start) · adapter-node.test     browser.test (first open)
 *  schema migration    month-offline.test              month-offline.test                         month-offline.test
 *  Postgres            supervisor.pg.test · sync-server/shapes/restore.pg.test and its neighbours
 *  disk full           disk-full.test (both sides)
 *  registration        (idempotent)                    here (every moment, answer lost)           (has none)
 *  network             network.test: delay, cut mid-frame, half-open, lost answers, connections that overtake each other
 *  two processes       same-folder.test · supervisor.pg.test (npm start twice)
 *  copies              same-folder.test (gateway), browser.test (browser database)
 *  leader killed       browser.test (renderer crash) · tabs.browser.test (closed) · coordinator.test
 *  a month offline     month-offline.test
 *  sloppy answers      shared/sync/sloppy.test.ts
 */
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { setImmediate as tick } from 'node:timers/promises'
import { newGatewayIdentity } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createChance, limit, pause, rounds } from '../support/chance.ts'
import { accountIsRight, accountOf, BUSY_LOG, gatewayIsRight, streamOfTasks } from '../support/chaos.ts'
import { type Gateway, gatewayIn, type System, startSystem } from '../support/system.ts'

const chance = createChance('kills')

describe('killed at any moment', () => {
  let system: System
  let gateway: Gateway

  beforeAll(async () => {
    system = await startSystem({ env: BUSY_LOG })
  })
  afterAll(() => system?.stop())

  /** A process that is starting may end that way; what counts is the state that it leaves. */
  const begin = (start: Promise<unknown>): Promise<unknown> => start.catch((error: unknown) => error)

  test('a gateway in its first start, again and again: it starts in the end, as the same', limit(2), async () => {
    gateway = await system.gateway('one', { unstarted: true, env: { HQ_TEST_WRITER: 'gate' } })
    for (let round = 0; round < rounds(2); round++) {
      const starting = begin(gateway.start())
      await pause(chance.between(150, 2_500))
      await gateway.kill()
      await starting
    }
    await gateway.start()
    await system.when(
      'it is seen',
      async () =>
        (await system.rows('select 1 from gateways where id = $1 and last_seen_at is not null', [gateway.id]))[0],
    )
  })

  /** A gateway that was never started, with a token that is good once. */
  async function newcomer(slug: string) {
    const body = JSON.stringify({ label: slug })
    const made = await system.request(system.owner, '/v1/gateways/tokens', { method: 'POST', body })
    const { token } = (await made.json()) as { token: string }
    const home = await mkdtemp(join(tmpdir(), 'hq-newcomer-'))
    const one = gatewayIn(home, slug, { HQ_SERVER_URL: system.server.url })
    onTestFinished(async () => {
      await one.kill()
      await rm(home, { recursive: true, force: true, maxRetries: 5 })
    })
    const start = (url = system.server.url) => one.start({ HQ_SERVER_URL: url, HQ_REGISTRATION_TOKEN: token })
    /** It is one gateway, which is heard of; the token is spent; and it starts without it. */
    const isOne = async (): Promise<void> => {
      const rows = () =>
        system.rows('select id, last_seen_at is not null as seen from gateways where label = $1', [slug])
      await system.when(`${slug} is heard of`, async () => (await rows())[0]?.['seen'])
      expect(await rows()).toEqual([{ id: one.id, seen: true }])
      expect(await readdir(home)).not.toContain('registering.json')
      const identity = newGatewayIdentity().register
      const again = JSON.stringify({ token, slug, label: slug, ...identity })
      const refused = await system.request(undefined, '/v1/gateways/register', { method: 'POST', body: again })
      expect([refused.status, ((await refused.json()) as { code: string }).code]).toEqual([410, 'token_used'])
      await one.kill()
      await one.start()
    }
    return { one, start, isOne }
  }

  test(
    'a gateway whose registration was committed and not answered registers with the same token',
    limit(2),
    async () => {
      const { one, start, isOne } = await newcomer('unanswered')
      // Passes the registration on, and keeps the answer to itself.
      let committed: (answer: { status: number; body: unknown }) => void = () => undefined
      const server = createServer((request, response) => {
        void (async () => {
          const answer = await fetch(system.server.url + request.url, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: await text(request),
          })
          committed({ status: answer.status, body: await answer.json() })
        })().catch((error: unknown) => response.destroy(error as Error))
      })
      onTestFinished(() => void server.close().closeAllConnections())
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const answers = []
      // The first time it is made; the second time the same is said again, and lost again.
      for (const status of [201, 200]) {
        const asked = new Promise<{ status: number; body: unknown }>((resolve) => {
          committed = resolve
        })
        const starting = begin(start(url))
        const answer = await asked
        expect(answer.status).toBe(status)
        answers.push(answer.body)
        await one.kill()
        await starting
      }
      expect(answers[1]).toEqual(answers[0])
      await start()
      expect(answers[0]).toMatchObject({ gateway_id: one.id })
      await isOne()
    },
  )

  test(
    'a gateway that is killed again and again between its token and its first sync is one gateway',
    limit(4),
    async () => {
      const { one, start, isOne } = await newcomer('impatient')
      for (let round = 0; round < rounds(4); round++) {
        const starting = begin(start())
        // Just then: while it makes its identity, asks, keeps the answer, opens its replica.
        const after = chance.pick([chance.between(100, 1_200), 'Starting', 'Registered', 'Connection'] as const)
        if (typeof after === 'number') await pause(after)
        else {
          await tick()
          // Some of it is only said once in a gateway's life.
          await begin(one.process.line(({ message, ready }) => message === after || ready === true))
        }
        await pause(chance.between(0, 60))
        await one.kill()
        await starting
      }
      await start()
      await isOne()
    },
  )

  test(
    'server and gateway, also while they start: nothing acknowledged is lost, half there, or there twice',
    limit(5),
    async () => {
      const end = streamOfTasks(system, 'elsewhere')
      onTestFinished(async () => void (await end()))
      for (let round = 0; round < rounds(5); round++) {
        await pause(chance.between(50, 1_500))
        const victim = chance.pick([
          'server',
          'server',
          'gateway',
          'gateway',
          'both',
          'server starting',
          'gateway starting',
        ])
        if (process.env['HQ_DEBUG'])
          console.log(`round ${round}: ${victim}, ${accountOf(gateway).made.length} acknowledged`)
        if (victim !== 'gateway' && victim !== 'gateway starting') await system.server.kill()
        if (victim !== 'server' && victim !== 'server starting') await gateway.kill()
        await pause(chance.between(0, 400))
        if (victim === 'server starting') {
          const starting = begin(system.server.start())
          await pause(chance.between(50, 900))
          await system.server.kill()
          await starting
        }
        if (victim === 'gateway starting') {
          const starting = begin(gateway.start())
          await pause(chance.between(50, 1_500))
          await gateway.kill()
          await starting
        }
        await Promise.all([
          ...(victim.startsWith('gateway') ? [] : [system.server.start()]),
          ...(victim.startsWith('server') ? [] : [gateway.start()]),
        ])
      }
      const elsewhere = await end()
      await gatewayIsRight(system, gateway)
      await accountIsRight(system, accountOf(gateway), 'gate')
      expect(await system.rows(`select count(*)::int as n from tasks where title like 'elsewhere %'`)).toEqual([
        { n: elsewhere },
      ])
    },
  )
})
