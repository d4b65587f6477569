/**
 * `outbox_drain`: how many mutations a second the server takes after a reconnect, one replica, batches as a pusher sends them, over HTTP.
 *
 * The load is what a person did offline: tasks made, edited, assigned to an agent, finished, commented (each with audit, clocks and derivations).
 */
import { newId } from '../database/ids.ts'
import { insert, startWorkspace, update } from '../testing/workspace.ts'

const TOTAL = 4_000
const BATCH = 200

interface Figure {
  readonly value: number
  readonly unit: string
  readonly target: number
  readonly better: 'higher' | 'lower'
}

export async function run(): Promise<Record<string, Figure>> {
  const workspace = await startWorkspace()
  try {
    const gateway = await workspace.gateway('bench')
    const writer = workspace.writer(workspace.owner)
    const agent = newId()
    const { gateway_id } = gateway.principal
    await writer.apply([insert('agents', { name: 'Bench', slug: 'bench', gateway_id }, agent)])
    const person = workspace.owner.principal.person_id
    const batches = Array.from({ length: TOTAL / BATCH }, () => {
      const mutations: unknown[] = []
      for (let i = 0; i < BATCH / 5; i++) {
        const id = newId()
        const task = {
          title: `Task ${i}`,
          status: 'todo',
          priority: 'medium',
          sort_order: String(i),
          tags: [],
          created_by_type: 'human',
          created_by_id: person,
        }
        const comment = {
          entity_type: 'task',
          entity_id: id,
          body: 'A remark',
          actor_type: 'human',
          actor_person_id: person,
          mentions: [],
        }
        for (const patch of [
          insert('tasks', task, id),
          update('tasks', id, { title: task.title }, { title: `${task.title}, edited` }),
          update(
            'tasks',
            id,
            { assignee_agent_id: null, assignee_type: null },
            { assignee_agent_id: agent, assignee_type: 'agent' },
          ),
          insert('comments', comment),
          update('tasks', id, { status: 'todo' }, { status: 'done' }),
        ]) {
          mutations.push(writer.mutation({ patches: [patch] }))
        }
      }
      return mutations
    })
    const began = performance.now()
    for (const mutations of batches) {
      const { body } = await writer.send(mutations)
      const refused = body.results.find(({ outcome }) => outcome !== 'applied')
      if (refused) throw new Error(`a mutation was refused: ${JSON.stringify(refused)}`)
    }
    const seconds = (performance.now() - began) / 1000
    return { outbox_drain: { value: Math.round(TOTAL / seconds), unit: 'mutations/s', target: 500, better: 'higher' } }
  } finally {
    await workspace.stop()
  }
}

if (import.meta.main) console.log(await run())
