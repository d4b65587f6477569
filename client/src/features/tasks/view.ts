/**
 * What a task list shows: the view as it stands in the address (`/tasks?view=board&group=priority&q=…`), read leniently (an unknown
 * value is the default, never an error), and written with nothing that is default.
 */
import { STATUSES, type TaskStatus } from './model.ts'

export const LAYOUTS = ['list', 'board'] as const
export const GROUPINGS = ['status', 'priority', 'due', 'assignee', 'stream', 'none'] as const
export const SORTINGS = ['manual', 'priority', 'due', 'updated', 'created'] as const

export type Layout = (typeof LAYOUTS)[number]
export type Grouping = (typeof GROUPINGS)[number]
export type Sorting = (typeof SORTINGS)[number]

/** Agent or person id, or `none`, or `me`. */
export type AssigneeFilter = string

export interface TaskView {
  readonly view: Layout
  readonly group: Grouping
  readonly sort: Sorting
  readonly status: readonly TaskStatus[]
  readonly assignee: AssigneeFilter | undefined
  readonly stream: string | undefined
  readonly overdue: boolean
  readonly q: string
}

/** The same, as search parameters: everything optional. */
export interface TaskSearch {
  readonly view?: Layout
  readonly group?: Grouping
  readonly sort?: Sorting
  readonly status?: string
  readonly assignee?: string
  readonly stream?: string
  readonly overdue?: true
  readonly q?: string
  /** The cursor begins in the line for a new task. */
  readonly create?: true
}

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value.trim() !== '' ? value : typeof value === 'number' ? String(value) : undefined
const oneOf = <T extends string>(values: readonly T[], value: unknown): T | undefined =>
  values.find((each) => each === value)

const isTrue = (value: unknown): boolean => value === true || value === 'true' || value === 1

/** For a route's `validateSearch`. */
export function readSearch(raw: Record<string, unknown>): TaskSearch {
  const status = (text(raw['status']) ?? '').split(',').filter((s) => (STATUSES as readonly string[]).includes(s))
  return compact({
    view: oneOf(LAYOUTS, raw['view']),
    group: oneOf(GROUPINGS, raw['group']),
    sort: oneOf(SORTINGS, raw['sort']),
    status: status.length > 0 ? status.join(',') : undefined,
    assignee: text(raw['assignee']),
    stream: text(raw['stream']),
    overdue: isTrue(raw['overdue']) ? true : undefined,
    q: text(raw['q']),
    create: isTrue(raw['create']) ? true : undefined,
  })
}

export const viewOf = (search: TaskSearch): TaskView => ({
  view: search.view ?? 'list',
  group: search.group ?? 'status',
  sort: search.sort ?? 'manual',
  status: (search.status?.split(',') ?? []) as TaskStatus[],
  assignee: search.assignee,
  stream: search.stream,
  overdue: search.overdue ?? false,
  q: search.q ?? '',
})

export const searchOf = (view: TaskView): TaskSearch =>
  compact({
    view: view.view === 'list' ? undefined : view.view,
    group: view.group === 'status' ? undefined : view.group,
    sort: view.sort === 'manual' ? undefined : view.sort,
    status: view.status.length > 0 ? view.status.join(',') : undefined,
    assignee: view.assignee,
    stream: view.stream,
    overdue: view.overdue ? true : undefined,
    q: view.q.trim() === '' ? undefined : view.q,
  })

/** Something narrows the list, so that an empty one means 'nothing matches' and not 'nothing there'. */
export const isFiltered = (view: TaskView): boolean =>
  view.status.length > 0 ||
  view.assignee !== undefined ||
  view.stream !== undefined ||
  view.overdue ||
  view.q.trim() !== ''

type Defined<T> = { [K in keyof T]?: Exclude<T[K], undefined> }

function compact<T extends object>(record: T): Defined<T> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as Defined<T>
}
