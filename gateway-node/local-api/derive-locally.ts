/**
 * The derivations of `shared/domain/derive.ts` for changes that are made on this gateway, in the transaction that makes them: so a gateway without a
 * network goes on delegating, releasing dependencies and telling people. The server derives the same rows with the same ids (P7).
 *
 *  N1 Of the inbox items only those for agents of this gateway are inserted; the server makes the others.
 *  N2 What exists is left alone (ON CONFLICT DO NOTHING).
 */
import {
  type AgentFacts,
  type Change,
  type Derived,
  derive,
  type Values,
  type World,
} from '@hq/shared/domain/derive.ts'
import type { Deliverable } from '@hq/shared/domain/review.ts'
import type { SqlValue, Tx } from '@hq/shared/sync/contract.ts'

export interface Place {
  readonly tenantId: string
  readonly gatewayId: string
}

/** Inserts and sets what follows from `changes`, which are already made. */
export async function deriveLocally(tx: Tx, changes: readonly Change[], place: Place): Promise<Derived> {
  const derived = derive(changes, await worldOf(tx, changes, place.tenantId))
  for (const { table, row } of derived.inserts) {
    if (table === 'agent_inbox_items' && row['gateway_id'] !== place.gatewayId) continue
    const columns = Object.keys(row)
    await tx.query(
      `insert into ${table} (${columns.map((name) => `"${name}"`).join(', ')}) values (${columns.map((_, index) => `$${index + 1}`).join(', ')})
       on conflict (id) do nothing`,
      columns.map((name) => row[name] as SqlValue),
    )
  }
  for (const { id, set } of derived.updates) {
    const columns = Object.keys(set)
    await tx.query(
      `update tasks set ${columns.map((name, index) => `"${name}" = $${index + 2}`).join(', ')} where id = $1`,
      [id, ...columns.map((name) => set[name] as SqlValue)],
    )
  }
  return derived
}

const DEPTH_OF_RELATIONS = 3

/** Everything that the rules may ask, read beforehand: they are not asynchronous. */
async function worldOf(tx: Tx, changes: readonly Change[], tenantId: string): Promise<World> {
  const agents = await tx.query<AgentFacts>('select id, slug, name, gateway_id, deleted_at from agents')
  const taskIds = new Set(changes.flatMap(tasksNamed))
  const relations: { source: string; target: string }[] = []
  let frontier = [...taskIds]
  for (let depth = 0; depth < DEPTH_OF_RELATIONS && frontier.length > 0; depth += 1) {
    const found = await tx.query<{ source: string; target: string }>(
      `select source_task_id as source, target_task_id as target from task_relations
       where relation_type = 'blocks' and deleted_at is null and (source_task_id = any($1::uuid[]) or target_task_id = any($1::uuid[]))`,
      [frontier],
    )
    relations.push(...found)
    frontier = [...new Set(found.flatMap(({ source, target }) => [source, target]))].filter((id) => !taskIds.has(id))
    for (const id of frontier) taskIds.add(id)
  }
  const ids = [...taskIds]
  const tasks = new Map(
    (await tx.query<Values & { id: string }>('select * from tasks where id = any($1::uuid[])', [ids])).map((task) => [
      task.id,
      task,
    ]),
  )
  const links = await tx.query<Deliverable & Values & { owner_id: string }>(
    `select * from entity_links where owner_type = 'task' and is_deliverable and deleted_at is null and owner_id = any($1::uuid[])`,
    [ids],
  )
  const runs = await tx.query<{ id: string; depth: number }>(
    `select r.id, coalesce((i.context ->> 'depth')::int, 0) as depth from agent_runs r left join agent_inbox_items i on i.id = r.inbox_item_id
     where r.id = any($1::uuid[])`,
    [changes.flatMap((change) => (change.runId === null ? [] : [change.runId]))],
  )
  return {
    tenantId,
    agent: (id) => agents.find((agent) => agent.id === id),
    agentBySlug: (slug) => agents.find((agent) => agent.slug === slug && agent.deleted_at === null),
    task: (id) => tasks.get(id),
    blockersOf: (id) => relations.filter(({ target }) => target === id).map(({ source }) => source),
    blockedBy: (id) => [...new Set(relations.filter(({ source }) => source === id).map(({ target }) => target))],
    deliverablesOf: (id) => links.filter((link) => link.owner_id === id),
    depthOfRun: (id) => runs.find((run) => run.id === id)?.depth ?? 0,
  }
}

function tasksNamed({ table, id, after }: Change): string[] {
  const named = {
    tasks: id,
    comments: after['entity_type'] === 'task' ? after['entity_id'] : undefined,
    entity_links: after['owner_type'] === 'task' ? after['owner_id'] : undefined,
    agent_inbox_items: after['task_id'],
  }[table as string]
  return typeof named === 'string' ? [named] : []
}
