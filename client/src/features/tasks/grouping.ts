/**
 * A grouped list as one flat list of lines, without its rows: headings at known places, and for every other line the position of its
 * row among all rows of the open groups. Pure.
 *
 * L1 Groups are in the order people expect (a board's, highest priority first, soonest first, names); empty groups are left out.
 * L2 A closed group is a heading without lines.
 */
import { PRIORITIES, PRIORITY, STATUS, STATUSES, type TaskPriority, type TaskStatus } from './model.ts'
import type { Grouping } from './view.ts'

export interface GroupCount {
  readonly key: string
  readonly count: number
}

export interface Group extends GroupCount {
  readonly label: string
  readonly open: boolean
}

export type Line =
  | { readonly kind: 'heading'; readonly group: Group }
  | { readonly kind: 'row'; readonly position: number; readonly group: Group }

const DUE: readonly [key: string, label: string][] = [
  ['overdue', 'Overdue'],
  ['today', 'Today'],
  ['week', 'Next seven days'],
  ['later', 'Later'],
  ['none', 'No due date'],
  ['closed', 'Closed'],
]

/** Names and order of assignees and streams: `[id, name]`, in the order to show them. */
export type Names = readonly (readonly [id: string, name: string])[]

function known(grouping: Grouping, names: Names): Names {
  switch (grouping) {
    case 'status':
      return STATUSES.map((key) => [key, STATUS[key].label])
    case 'priority':
      return PRIORITIES.map((key) => [key, PRIORITY[key].label])
    case 'due':
      return DUE
    case 'assignee':
      return [...names, ['none', 'Nobody']]
    case 'stream':
      return [...names, ['none', 'No stream']]
    case 'none':
      return [['all', 'All']]
  }
}

/** L1. Keys that nobody knows (a person who left) come last, under their own heading. */
export function groupsOf(
  counts: readonly GroupCount[],
  grouping: Grouping,
  names: Names,
  closed: ReadonlySet<string>,
): Group[] {
  const byKey = new Map(counts.map((group) => [group.key, group.count]))
  const order = known(grouping, names)
  const seen = new Set(order.map(([key]) => key))
  const strangers = counts.filter((group) => !seen.has(group.key)).map(({ key }) => [key, 'Somebody else'] as const)
  return [...order, ...strangers]
    .filter(([key]) => (byKey.get(key) ?? 0) > 0)
    .map(([key, label]) => ({ key, label, count: byKey.get(key) ?? 0, open: grouping === 'none' || !closed.has(key) }))
}

export interface Lines {
  readonly count: number
  readonly at: (index: number) => Line | undefined
  /** Rows of the open groups. */
  readonly rows: number
  /** The line of a row, from its position. */
  readonly lineOf: (position: number) => number
}

/** One group without headings is a plain list. */
export function linesOf(groups: readonly Group[], headings: boolean): Lines {
  const starts: { line: number; row: number; group: Group }[] = []
  let line = 0
  let row = 0
  for (const group of groups) {
    starts.push({ line, row, group })
    line += (headings ? 1 : 0) + (group.open ? group.count : 0)
    row += group.open ? group.count : 0
  }
  const head = headings ? 1 : 0
  const find = (index: number) => starts.findLast((start) => start.line <= index)
  return {
    count: line,
    rows: row,
    at: (index) => {
      const start = index >= 0 && index < line ? find(index) : undefined
      if (!start) return undefined
      if (headings && index === start.line) return { kind: 'heading', group: start.group }
      return { kind: 'row', position: start.row + index - start.line - head, group: start.group }
    },
    lineOf: (position) => {
      const start = starts.findLast(
        (each) => each.group.open && each.row <= position && position < each.row + each.group.count,
      )
      return start ? start.line + head + position - start.row : -1
    },
  }
}

/** The window to read for the lines `first` to `last`: whole blocks with one to spare on each side, so that it seldom changes. */
export function windowFor(lines: Lines, first: number, last: number, block = 100): { offset: number; limit: number } {
  let from: number | undefined
  let to = 0
  for (let i = first; i <= last; i++) {
    const line = lines.at(i)
    if (line?.kind !== 'row') continue
    from ??= line.position
    to = line.position
  }
  from ??= 0
  const start = Math.max(0, Math.floor(from / block) - 1) * block
  const end = (Math.floor(to / block) + 2) * block
  return { offset: start, limit: end - start }
}

export const isStatus = (key: string): key is TaskStatus => (STATUSES as readonly string[]).includes(key)
export const isPriority = (key: string): key is TaskPriority => (PRIORITIES as readonly string[]).includes(key)
