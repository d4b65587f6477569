/** The data of a grouped list: counts make the lines, one window of rows fills those that are looked at. */
import { useCallback, useMemo, useState } from 'react'
import { useRows } from '../../replica/hooks.ts'
import { useNow } from '../../ui/relative-time.tsx'
import type { Directory } from './directory.ts'
import { dueBorders } from './due.ts'
import { type Group, type GroupCount, groupsOf, type Lines, linesOf, windowFor } from './grouping.ts'
import type { TaskRow } from './model.ts'
import { groupCounts, LIST_TABLES, type ListContext, windowRows } from './task-sql.ts'
import type { TaskView } from './view.ts'

/** The clock and the borders of days, to the minute: they are part of the queries' identity. */
export function useListContext(directory: Directory): ListContext {
  const minute = Math.floor(useNow() / 60_000) * 60_000
  const { me, zone } = directory
  return useMemo(() => ({ me, now: new Date(minute).toISOString(), ...dueBorders(minute, zone) }), [me, zone, minute])
}

export type WindowRow = TaskRow & { readonly base: number }

export interface TaskLines {
  readonly groups: readonly Group[]
  readonly lines: Lines
  /** Those that have been read: around what is looked at. */
  readonly rows: readonly TaskRow[]
  readonly rowAt: (position: number) => TaskRow | undefined
  readonly onRange: (first: number, last: number) => void
  /** All tasks of the view, in open and closed groups. */
  readonly total: number
  readonly ready: boolean
  readonly error: Error | undefined
}

const COUNT_TABLES = ['tasks'] as const

export function useTaskLines(
  view: TaskView,
  context: ListContext,
  directory: Directory,
  closed: ReadonlySet<string>,
): TaskLines {
  const counting = useMemo(() => groupCounts(view, context), [view, context])
  const counts = useRows<GroupCount>(counting.sql, counting.params, { tables: COUNT_TABLES })
  const { agents, people, streams } = directory
  const groups = useMemo(() => {
    const names =
      view.group === 'stream'
        ? streams.map((stream) => [stream.id, stream.name] as const)
        : [...agents, ...people].map((each) => [each.id, each.name] as const)
    return groupsOf(counts.rows, view.group, names, closed)
  }, [counts.rows, view.group, agents, people, streams, closed])
  const lines = useMemo(() => linesOf(groups, view.group !== 'none'), [groups, view.group])

  const [range, setRange] = useState({ first: 0, last: 40 })
  const { offset, limit } = windowFor(lines, range.first, range.last)
  const open = groups.filter((group) => group.open).map((group) => group.key)
  const openKeys = open.join('\u0000')
  const reading = useMemo(
    () => windowRows(view, context, openKeys === '' ? [] : openKeys.split('\u0000'), { offset, limit }),
    [view, context, openKeys, offset, limit],
  )
  const { rows, error } = useRows<WindowRow>(reading.sql, reading.params, {
    tables: LIST_TABLES,
    enabled: openKeys !== '',
  })
  const base = rows[0]?.base ?? 0
  return {
    groups,
    lines,
    rows,
    rowAt: useCallback((position: number) => rows[position - base], [rows, base]),
    onRange: useCallback((first: number, last: number) => setRange({ first, last }), []),
    total: groups.reduce((sum, group) => sum + group.count, 0),
    ready: counts.ready,
    error: error ?? counts.error,
  }
}
