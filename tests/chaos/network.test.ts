/**
 * A network that does everything a network can do, at random (HQ_CHAOS_SEED, HQ_CHAOS_ROUNDS): slow, with connections that overtake each other, cut in the
 * middle of an answer, half-open, losing answers after their request had its effect. A gateway on its socket and a replica on plain HTTP write without
 * end meanwhile, and changes come from elsewhere. In the end all have the same, nothing acknowledged is lost and nothing is there twice.
 */
import type { Replica } from '@hq/shared/sync/contract.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { within } from '../support/browser.ts'
import { type Chance, createChance, limit, pause, rounds } from '../support/chance.ts'
import { type Account, accountIsRight, accountOf, gatewayIsRight, streamOfTasks } from '../support/chaos.ts'
import { replicaConverged } from '../support/converged.ts'
import { openReplicaOf } from '../support/node-replica.ts'
import type { Network } from '../support/proxy.ts'
import { type Gateway, type System, startSystem } from '../support/system.ts'

const chance = createChance('network')

const FAULTS = {
  slow: async (network: Network, { between }: Chance) => {
    network.delay(between(20, 300), between(0, 300))
    await pause(between(500, 2_000))
    network.delay(0)
  },
  'cut mid-answer': async (network: Network, { between }: Chance) => {
    // Nothing may be said for a while; then there is nothing to cut.
    await Promise.race([network.cutAfter(between(1, 30_000)), pause(3_000)])
  },
  'half-open': async (network: Network, { between }: Chance) => {
    network.hang()
    await pause(between(300, 2_500))
    network.heal()
  },
  'answers lost': async (network: Network, { between }: Chance) => {
    network.loseAnswers()
    await pause(between(300, 1_500))
    network.heal()
  },
  gone: async (network: Network, { between }: Chance) => {
    network.cut()
    await pause(between(100, 1_500))
    network.heal()
  },
} as const

describe('a network that fails in every way', () => {
  let system: System
  let gateway: Gateway
  let replica: Replica
  let socket: Network
  let http: Network

  beforeAll(async () => {
    system = await startSystem()
    socket = await system.proxy()
    http = await system.proxy()
    gateway = await system.gateway('one', { url: socket.url, env: { HQ_TEST_WRITER: 'socket' } })
    replica = await openReplicaOf(await system.gateway('two', { unstarted: true }), http.url)
  })
  afterAll(async () => {
    await replica?.close()
    await system?.stop()
  })

  const insert = 'insert into tasks (id, tenant_id, title, parent_id) values ($1, $2, $3, $4)'

  /** As writer.ts does in a gateway. */
  const writeOverHttp = (): (() => Promise<Account>) => {
    let ended = false
    const made: string[][] = []
    const running = (async () => {
      for (let n = 0; !ended; n++) {
        const [parent, child] = [newId(), newId()]
        await replica.write(async (tx) => {
          await tx.query(insert, [parent, system.tenantId, `http parent ${n}`, null])
          await tx.query(insert, [child, system.tenantId, `http child ${n}`, parent])
        })
        made.push([parent, child])
        await pause(10)
      }
    })()
    return async () => {
      ended = true
      await running
      return { made, changed: [] }
    }
  }

  test('writing goes on, and all converge', limit(8), async () => {
    const end = streamOfTasks(system, 'elsewhere', 30, 100)
    const stop = writeOverHttp()
    onTestFinished(async () => {
      await Promise.all([end(), stop()])
    })
    for (let round = 0; round < rounds(8); round++) {
      const faults = [socket, http].map((network) => {
        const name = chance.pick(Object.keys(FAULTS) as (keyof typeof FAULTS)[])
        if (process.env['HQ_DEBUG']) console.log(`round ${round}: ${name}`)
        return FAULTS[name](network, chance)
      })
      await Promise.all(faults)
      await pause(chance.between(0, 400))
    }
    await end()
    const account = await stop()
    await gatewayIsRight(system, gateway)
    await accountIsRight(system, accountOf(gateway), 'socket')
    await accountIsRight(system, account, 'http')
    await replicaConverged(system, replica, 90_000)
  })

  test('an answer lost after the commit: the push comes again and has its effect once', async () => {
    http.loseAnswers()
    const id = newId()
    await replica.write((tx) => tx.query(insert, [id, system.tenantId, 'committed, not answered', null]))
    await system.rowWhen('tasks', id, () => true)
    expect(replica.status().pending).toBe(1)
    const pushedAgain = http.sent(0)
    http.heal()
    await within(30_000, 'it is asked again', pushedAgain)
    await replicaConverged(system, replica)
    const audit = await system.rows(`select action from audit_log where entity_id = $1`, [id])
    expect(audit).toEqual([{ action: 'created' }])
  })
})
