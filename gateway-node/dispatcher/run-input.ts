/** What a runtime is told of one wake, from the rows as they are when the run begins. */
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Tx } from '@hq/shared/sync/contract.ts'
import { showTask } from '../local-api/task-view.ts'
import type { RunInput } from '../runtime/runtime.ts'
import type { Agent, Item } from './store.ts'

export async function inputOf(
  db: Tx,
  agent: Agent,
  item: Item,
  runId: string,
  attempt: number,
  files: RunInput['files'],
): Promise<RunInput> {
  const task = item.task_id === null ? undefined : await showTask(db, agent.id, item.task_id)
  const [workspace] = await db.query<Row<'workspace'>>('select * from workspace where deleted_at is null limit 1')
  return {
    runId,
    attempt,
    agent: { id: agent.id, slug: agent.slug, name: agent.name, description: agent.description, domains: agent.domains },
    item: {
      id: item.id,
      event: item.event_type,
      commentId: item.comment_id,
      linkId: item.link_id,
      context: item.context,
    },
    task,
    workspace: {
      name: workspace?.name ?? 'Workspace',
      owner: workspace?.owner_preferred_name ?? workspace?.owner_name ?? 'the owner',
      timezone: workspace?.owner_timezone ?? 'UTC',
    },
    model: task?.model_override ?? agent.model,
    thinking: task?.thinking_override ?? agent.thinking,
    files,
    boot: agent.meta['boot'] === true,
  }
}
