/**
 * Random histories of one gateway: commands come, are cancelled, and the process dies between any two of its writes. Whatever happens, each command ends,
 * what it commits is there exactly once if it ended `done` and not at all otherwise, and no attempt beyond the allowed ones is made.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { z } from 'zod'
import type { GatewayContext, Service } from '../service.ts'
import { createTestGateway, newId, noModels, type TestGateway } from '../testing/context.ts'
import { type Action, defineAction } from './action.ts'
import { createRunner } from './runner.ts'

const DEAD = 'this process is dead'

/** The context of one process; after `die` nothing of it reaches the replica any more. */
function mortal(context: GatewayContext): { context: GatewayContext; die(): Promise<void> } {
  let dead = false
  const open = new Set<Promise<unknown>>()
  const guard = async <T>(work: () => Promise<T>): Promise<T> => {
    if (dead) throw new Error(DEAD)
    const going = work()
    open.add(going)
    return going.finally(() => open.delete(going))
  }
  const { replica } = context
  return {
    context: {
      ...context,
      replica: {
        ...replica,
        query: (sql, params) => guard(() => replica.query(sql, params)),
        write: (work, options) => guard(() => replica.write(work, options)),
      },
    },
    // What is on its way to the database arrives before the process is gone, or not at all.
    die: async () => {
      dead = true
      await Promise.allSettled(open)
    },
  }
}

/** Takes a while in small steps, and leaves one notification when it is done. */
const action: Action = defineAction({
  name: 'list_models',
  agent: 'any',
  payload: z.object({ steps: z.number() }),
  steps: [{ key: 'work', label: 'Work' }],
  run: async ({ signal, step, output, command, context }, { steps }) => {
    step('work')
    for (let n = 0; n < steps; n++) {
      output(`${n}\n`)
      await sleep(1)
      signal.throwIfAborted()
    }
    return {
      commit: async (tx) => {
        await tx.query(
          `insert into notifications (id, tenant_id, type, title, entity_id) values ($1, $2, 'system', 'effect', $3)`,
          [newId(), context.tenantId, command.id],
        )
      },
    }
  },
})

type Operation =
  | { readonly do: 'add'; readonly agent: number; readonly steps: number }
  | { readonly do: 'cancel'; readonly which: number }
  | { readonly do: 'die'; readonly afterMs: number }
  | { readonly do: 'wait'; readonly ms: number }

const operation: fc.Arbitrary<Operation> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: fc.constant('add' as const), agent: fc.nat(2), steps: fc.nat(40) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('cancel' as const), which: fc.nat(30) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('die' as const), afterMs: fc.nat(15) }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('wait' as const), ms: fc.nat(25) }) },
)

it('end well', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(operation, { minLength: 4, maxLength: 16 }), async (history) => {
      await live(await createTestGateway(), history)
    }),
    { numRuns: 6, endOnFailure: true },
  )
}, 120_000)

async function live(gateway: TestGateway, history: readonly Operation[]): Promise<void> {
  const agents = [await gateway.addAgent('ann'), await gateway.addAgent('bob'), await gateway.addAgent('cyd')]
  const commands: string[] = []
  let generation = 0
  let alive: { runner: Service; die(): Promise<void> } | undefined

  async function startProcess(): Promise<void> {
    await alive?.die()
    const processToken = `${gateway.replica.identity.replicaId}/${++generation}`
    const { context, die } = mortal({ ...gateway.context, processToken })
    const runner = createRunner(context, noModels, { actions: [action], sweepMs: 3_600_000 })
    await runner.start()
    alive = { runner, die }
  }

  await startProcess()
  for (const op of history) {
    if (op.do === 'add') {
      const payload = JSON.stringify({ steps: op.steps })
      commands.push(await gateway.addCommand('list_models', agents[op.agent] ?? null, { payload }))
    } else if (op.do === 'cancel') {
      const id = commands[op.which % Math.max(commands.length, 1)]
      if (id)
        await gateway.replica.write((tx) =>
          tx.query('update agent_commands set cancel_requested_at = now() where id = $1', [id]),
        )
    } else if (op.do === 'wait') {
      await sleep(op.ms)
    } else {
      await sleep(op.afterMs)
      await startProcess()
    }
  }
  for (const id of commands) await gateway.command(id)
  await alive?.runner.stop()

  for (const id of commands) {
    const row = await gateway.row('agent_commands', id)
    const effects = await gateway.replica.query('select id from notifications where entity_id = $1', [id])
    expect({ status: row['status'], effects: effects.length }).toEqual({
      status: row['status'],
      effects: row['status'] === 'done' ? 1 : 0,
    })
    expect(row['status']).toMatch(/^(done|cancelled|dead_letter)$/)
    expect(row['attempt_count']).toBeLessThanOrEqual(2)
    expect(row).toMatchObject({ lease_owner: null, completed_at: expect.anything() })
    if (row['status'] === 'dead_letter') expect(row['attempt_count']).toBe(2)
  }
}
