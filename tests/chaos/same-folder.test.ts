/**
 * Two on one data folder, and two from one: the second process in a gateway's folder is refused and told who is there; a copied folder, both of which run,
 * becomes two replicas that lose and double nothing. (`npm start` twice on one HQ_HOME: supervisor.pg.test.ts.)
 */
import { cp } from 'node:fs/promises'
import { startGatewayProcess } from '@hq/gateway-node/testing/process.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { accountIsRight, accountOf, gatewayIsRight } from '../support/chaos.ts'
import { type Gateway, gatewayIn, type System, startSystem } from '../support/system.ts'

describe('one folder', () => {
  let system: System
  let gateway: Gateway

  beforeAll(async () => {
    system = await startSystem()
    gateway = await system.gateway('one', { env: { HQ_TEST_WRITER: 'first' } })
  })
  afterAll(() => system?.stop())

  const writes = (of: Gateway, more = 5): Promise<unknown> => {
    const before = accountOf(of).made.length
    return system.when('it writes', async () => accountOf(of).made.length > before + more)
  }

  test('a second gateway in the folder is refused, names the first, and disturbs nothing', async () => {
    const second = startGatewayProcess({ HQ_GATEWAY_HOME: gateway.home, HQ_SERVER_URL: system.server.url })
    expect(await second.ended).not.toBe(0)
    expect(second.text()).toContain(`process ${gateway.process.pid}`)
    expect(second.text()).toContain('HQ_GATEWAY_HOME')
    await writes(gateway)
  })

  test('copied while changes waited, then both run: two replicas, everything once', async () => {
    await system.server.kill()
    await writes(gateway, 20)
    await gateway.kill()
    const home = `${gateway.home}-copy`
    await cp(gateway.home, home, { recursive: true })
    const copy = gatewayIn(home, 'one', { HQ_SERVER_URL: system.server.url, HQ_TEST_WRITER: 'copy' })
    try {
      await system.server.start()
      await Promise.all([gateway.start(), copy.start()])
      await Promise.all([writes(gateway), writes(copy)])
      // Neither writes any more when the other is compared.
      await copy.end()
      await gatewayIsRight(system, gateway)
      await gatewayIsRight(system, copy)
      await accountIsRight(system, accountOf(gateway), 'first')
      await accountIsRight(system, accountOf(copy), 'copy')
      const ids = await system.rows('select distinct replica_id from client_progress')
      expect(ids.length).toBeGreaterThan(1)
    } finally {
      await copy.kill()
    }
  })
})
