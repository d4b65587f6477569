/** Values that lost against a change made elsewhere at the same time: shown until somebody has looked, and can be taken after all. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { tables } from '@hq/shared/schema/tables.ts'
import { useRows, useWrite } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import type { Settable, TaskActions } from './actions.ts'
import type { Directory } from './directory.ts'
import { dueLabel } from './due.ts'
import { PRIORITY, STATUS, type Task, type TaskPriority, type TaskStatus } from './model.ts'
import { report } from './use-actions.ts'

type Conflict = Pick<Row<'conflicts'>, 'id' | 'column_name' | 'winner' | 'loser' | 'winner_actor' | 'loser_actor'>

const SETTABLE: Record<string, string> = {
  title: 'title',
  description: 'description',
  status: 'status',
  priority: 'priority',
  stream_id: 'stream',
  due_date: 'due date',
  assignee_agent_id: 'assignee',
  assignee_person_id: 'assignee',
}

export function TaskConflicts(props: { task: Task; directory: Directory; actions: TaskActions }) {
  const { task, directory, actions } = props
  const write = useWrite()
  const { rows } = useRows<Conflict>(
    `select id, column_name, winner, loser, winner_actor, loser_actor from conflicts
     where row_id = $1::uuid and resolved_at is null and deleted_at is null order by created_at`,
    [task.id],
    { tables: ['conflicts'], keepPrevious: false },
  )
  const shown = rows.filter((row) => SETTABLE[row.column_name])
  if (shown.length === 0) return null
  const resolve = (row: Conflict) =>
    write([{ sql: 'update conflicts set resolved_at = now() where id = $1::uuid', params: [row.id] }])
  const take = async (row: Conflict) => {
    const column = row.column_name as keyof Settable
    await actions.set([task.id], { [column]: row.loser ?? null } as Settable, `took the other ${SETTABLE[column]}`)
    await resolve(row)
  }
  const say = (column: string, value: unknown): string => {
    if (value === null || value === undefined || value === '') return 'nothing'
    const text = String(value)
    if (column === 'status') return STATUS[text as TaskStatus]?.label ?? text
    if (column === 'priority') return PRIORITY[text as TaskPriority]?.label ?? text
    if (column === 'due_date') return dueLabel(text, directory.zone, Date.now())
    if (column === 'stream_id') return directory.stream(text)?.name ?? 'a stream that is gone'
    if (column === 'assignee_agent_id') return directory.agent(text)?.name ?? 'an agent that is gone'
    if (column === 'assignee_person_id') return directory.person(text)?.name ?? 'somebody who left'
    return `“${text.length > 160 ? `${text.slice(0, 159)}…` : text}”`
  }
  const who = (actor: Record<string, unknown>): string => {
    const id = typeof actor['id'] === 'string' ? actor['id'] : null
    return directory.agent(id)?.name ?? directory.person(id)?.name ?? 'Somebody'
  }
  return shown.map((row) => (
    <Banner
      key={row.id}
      meaning="warning"
      title={`Two people changed the ${SETTABLE[row.column_name]} at the same time`}
      action={
        directory.canWrite &&
        row.column_name in tables.tasks.columns && (
          <>
            <Button size="sm" onClick={() => void resolve(row).catch(report)}>
              Leave it
            </Button>
            <Button size="sm" onClick={() => void take(row).catch(report)}>
              Take {who(row.loser_actor)}’s
            </Button>
          </>
        )
      }
    >
      {who(row.winner_actor)} has {say(row.column_name, row.winner)}, which stands. {who(row.loser_actor)} had{' '}
      {say(row.column_name, row.loser)}.
    </Banner>
  ))
}
