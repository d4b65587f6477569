import { MessageSquare } from 'lucide-react'
import { useCallback, useState } from 'react'
import { Avatar } from '../ui/avatar.tsx'
import { Badge } from '../ui/badge.tsx'
import { Board, type BoardMove } from '../ui/board.tsx'
import { EmptyState } from '../ui/empty-state.tsx'
import { RelativeTime, useNow } from '../ui/relative-time.tsx'
import { StatusShape } from '../ui/status.tsx'
import { SyncDot, syncEdge } from '../ui/sync-dot.tsx'
import { toast } from '../ui/toast.tsx'
import { VirtualList } from '../ui/virtual-list.tsx'
import { type SampleTask, sampleTask, statuses } from './sample.ts'

export function TaskList({ count, long = false }: { count: number; long?: boolean }) {
  const [selected, setSelected] = useState<ReadonlySet<string>>(new Set(['T-1002', 'T-1003']))
  const now = useNow()
  const getRow = useCallback((i: number) => (i % 97 === 60 ? undefined : sampleTask(i, long)), [long])
  return (
    <VirtualList
      label="Tasks"
      count={count}
      getRow={getRow}
      rowKey={(task) => task.key}
      selected={selected}
      onSelectedChange={setSelected}
      onOpen={(task) => toast({ title: `Opened ${task.key}`, description: task.title, id: 'open' })}
      rowClass={(task) => syncEdge(task.sync)}
      actions={[{ keys: 'e', label: 'Edit', run: (keys) => toast({ title: `Editing ${keys.length}`, id: 'edit' }) }]}
      empty={
        <EmptyState drawing="tasks" title="No tasks yet">
          Write down what should happen and give it to an agent or a person.
        </EmptyState>
      }
      renderRow={(task) => {
        const status = statuses[task.status]
        return (
          <div className="flex h-full items-center gap-2.5 pr-4">
            {status && <StatusShape shape={status.shape} meaning={status.meaning} label={status.label} />}
            <span className="nums w-[52px] shrink-0 text-xs text-text-3 max-sm:hidden">{task.key}</span>
            <span className="min-w-0 flex-1 truncate">{task.title}</span>
            <SyncDot state={task.sync} />
            <span className="shrink-0 max-sm:hidden">
              <Badge hue={task.stream.hue}>{task.stream.name}</Badge>
            </span>
            <Avatar actor={task.actor} />
            <RelativeTime at={now - task.hours * 3_600_000} className="w-12 shrink-0 text-right text-xs text-text-3" />
          </div>
        )
      }}
    />
  )
}

type Columns = Record<string, SampleTask[]>

function initialColumns(long: boolean): Columns {
  const columns: Columns = Object.fromEntries(statuses.map((status) => [status.id, []]))
  for (let i = 0; i < 30; i++) {
    const task = sampleTask(i, long)
    columns[statuses[task.status]?.id ?? 'todo']?.push(task)
  }
  for (let i = 100; i < 2100; i++) columns.backlog?.push(sampleTask(i, long))
  return columns
}

export function TaskBoard({ long = false }: { long?: boolean }) {
  const [columns, setColumns] = useState(() => initialColumns(long))
  const move = ({ key, from, to, before }: BoardMove) =>
    setColumns((current) => {
      const task = current[from]?.find((t) => t.key === key)
      if (!task) return current
      const next = { ...current, [from]: (current[from] ?? []).filter((t) => t.key !== key) }
      const target = [...(next[to] ?? [])]
      const at = before === null ? target.length : target.findIndex((t) => t.key === before)
      target.splice(at < 0 ? target.length : at, 0, task)
      return { ...next, [to]: target }
    })
  return (
    <Board
      label="Tasks by status"
      columns={statuses.map((status) => ({
        id: status.id,
        title: status.label,
        leading: <StatusShape shape={status.shape} meaning={status.meaning} />,
        count: columns[status.id]?.length ?? 0,
        getCard: (i: number) => columns[status.id]?.[i],
      }))}
      cardKey={(task) => task.key}
      cardLabel={(task) => `${task.key}, ${task.title}, ${task.actor.name}`}
      onMove={move}
      onOpen={(task) => toast({ title: `Opened ${task.key}`, id: 'open' })}
      renderCard={(task) => (
        <>
          <div className="flex items-center gap-2">
            <span className="nums flex-1 text-xs text-text-3">{task.key}</span>
            <SyncDot state={task.sync} />
            <Avatar actor={task.actor} />
          </div>
          <p className="mt-0.5 line-clamp-3">{task.title}</p>
          <div className="mt-1.5 flex items-center gap-2 text-xs text-text-3">
            <span className="size-2 rounded-full" style={{ background: `var(--hue-${task.stream.hue})` }} />
            {task.stream.name}
            {task.comments > 0 && (
              <span className="nums ml-auto flex items-center gap-1">
                <MessageSquare className="size-3" aria-hidden="true" /> {task.comments}
                <span className="sr-only">comments</span>
              </span>
            )}
          </div>
        </>
      )}
    />
  )
}
