/**
 * What an agent may do with the workspace, in one place: its tools inside a run and the local HTTP API (and so the `hq` command) both call these.
 *
 *  A1 Every write goes through the replica with the agent as actor and the run's id; nothing waits for the network (P1).
 *  A2 An agent changes only tasks that are assigned to it; it also comments where it was mentioned. Reading is free within the workspace.
 *  A3 Submitting a deliverable puts it up for review; the task stays in progress. Completing is refused while a deliverable waits for review
 *     or for a revision, and while the task is blocked.
 *  A4 A new version of a deliverable names the one it replaces and has the next round; the same text submitted twice is one deliverable.
 *  A5 Ids of rows that a retry could double are computed from their cause; doing the same again changes nothing.
 *  A6 A refusal is a result with a code and a sentence, not an exception. After `signal` is aborted nothing is written any more.
 */
import { type Change, computedColumns, type Values } from '@hq/shared/domain/derive.ts'
import { derivedId, isUuid } from '@hq/shared/domain/ids.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Replica, Tx } from '@hq/shared/sync/contract.ts'
import {
  liveDeliverables,
  openBlockers,
  searchTasks,
  showTask,
  type TaskLine,
  type TaskSearch,
  type TaskView,
  tasksOf,
} from './task-view.ts'

export interface Caller {
  readonly agent: { readonly id: string; readonly slug: string; readonly name: string }
  /** The run on whose behalf it happens. */
  readonly runId: string | undefined
  /** The inbox item that the run works on: part of the cause of what it writes (A5). */
  readonly itemId: string | undefined
  readonly signal?: AbortSignal | undefined
}

export type RefusalCode =
  | 'not_found'
  | 'not_yours'
  | 'wrong_state'
  | 'awaits_review'
  | 'blocked'
  | 'invalid'
  | 'too_large'
  | 'stopped'

export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly code: RefusalCode; readonly message: string }

export interface Submission {
  readonly label: string
  /** Exactly one of the three: markdown, a path in the agent's worktree, or an http(s) address. */
  readonly text?: string | undefined
  readonly file?: string | undefined
  readonly url?: string | undefined
}

export interface Submitted {
  readonly id: string
  readonly round: number
  /** True when the very same text was already waiting for review (A4). */
  readonly already: boolean
}

export interface Actions {
  myTasks(caller: Caller): Promise<readonly TaskLine[]>
  showTask(caller: Caller, taskId: string): Promise<Result<TaskView>>
  searchTasks(caller: Caller, search: TaskSearch): Promise<readonly TaskLine[]>
  /** Says that work on the task has begun. */
  claim(caller: Caller, taskId: string): Promise<Result<{ readonly status: 'in_progress' }>>
  comment(caller: Caller, taskId: string, body: string): Promise<Result<{ readonly id: string }>>
  submitDeliverable(caller: Caller, taskId: string, submission: Submission): Promise<Result<Submitted>>
  complete(caller: Caller, taskId: string, summary?: string): Promise<Result<{ readonly status: 'done' }>>
}

export interface ActionsContext {
  readonly replica: Replica
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly newId: () => string
  readonly tenantId: string
  /** Whether a file exists in the agent's worktree, after whatever changed there was committed. Answers with why not. */
  readonly file?: (slug: string, path: string) => Promise<Result<{ readonly path: string }>>
  /** Derives what follows from these changes, for the agents of this gateway; called inside the transaction that made them. */
  readonly derive?: (tx: Tx, changes: readonly Change[]) => Promise<unknown>
}

/** Characters. */
export const TEXT_LIMITS = { comment: 20_000, deliverable: 400_000, label: 200 } as const

type Write<T> = (tx: Tx) => Promise<Result<T>>

/** Thrown inside a transaction to roll it back with a refusal (A6). */
class Refusal extends Error {
  readonly result: Extract<Result<never>, { ok: false }>
  constructor(result: Extract<Result<never>, { ok: false }>) {
    super(result.message)
    this.result = result
  }
}

const refuse = (code: RefusalCode, message: string): Extract<Result<never>, { ok: false }> => ({
  ok: false,
  code,
  message,
})
const done = <T>(value: T): Result<T> => ({ ok: true, value })

export function createActions(context: ActionsContext): Actions {
  const { replica, now, newId, tenantId } = context

  /** A1, A6. */
  async function write<T>(caller: Caller, work: Write<T>): Promise<Result<T>> {
    if (caller.signal?.aborted) return refuse('stopped', 'This run was stopped; nothing was changed.')
    try {
      const { result } = await replica.write(
        async (tx) => {
          const outcome = await work(tx)
          if (!outcome.ok) throw new Refusal(outcome)
          return outcome
        },
        {
          actor: { type: 'agent', id: caller.agent.id },
          ...(caller.runId === undefined ? {} : { runId: caller.runId }),
        },
      )
      return result
    } catch (error) {
      if (error instanceof Refusal) return error.result
      throw error
    }
  }

  /** What follows from a change of ours (P7). */
  async function follow(
    tx: Tx,
    caller: Caller,
    table: Change['table'],
    before: Values | undefined,
    after: Values & { id: string },
  ): Promise<void> {
    const actor = { type: 'agent', id: caller.agent.id } as const
    await context.derive?.(tx, [
      { table, id: after.id, before, after, actor, runId: caller.runId ?? null, at: iso(now()) },
    ])
  }

  async function setTask(
    tx: Tx,
    caller: Caller,
    before: Row<'tasks'>,
    set: Partial<Pick<Row<'tasks'>, 'status' | 'completed_at'>>,
  ): Promise<void> {
    const entries = Object.entries(set)
    const assignments = entries.map(([column], index) => `"${column}" = $${index + 2}`).join(', ')
    const [after] = await tx.query<Row<'tasks'>>(`update tasks set ${assignments} where id = $1 returning *`, [
      before.id,
      ...entries.map(([, value]) => value),
    ])
    if (after) await follow(tx, caller, 'tasks', before, after)
  }

  async function claimIn(tx: Tx, caller: Caller, task: Row<'tasks'>): Promise<Result<{ status: 'in_progress' }>> {
    if (task.status === 'done' || task.status === 'cancelled')
      return refuse('wrong_state', `“${task.title}” is ${task.status}, so it can't be claimed.`)
    const blockers = await openBlockers(tx, [task.id])
    const waiting = blockers.get(task.id)
    if (waiting) return refuse('blocked', `“${task.title}” waits for ${quoteAll(waiting)}.`)
    if (task.status !== 'in_progress') await setTask(tx, caller, task, { status: 'in_progress' })
    return done({ status: 'in_progress' })
  }

  async function insertComment(tx: Tx, caller: Caller, taskId: string, body: string): Promise<string> {
    // Within one item the same words are said once, however often a crashed run is tried again (A5).
    const cause = caller.itemId ?? caller.runId
    const id = cause === undefined ? newId() : derivedId('comment', cause, taskId, body)
    const [after] = await tx.query<Row<'comments'>>(
      `insert into comments (id, tenant_id, entity_type, entity_id, body, actor_type, actor_agent_id, run_id, mentions, created_at)
       values ($1, $2, 'task', $3, $4, 'agent', $5, $6, $7, $8) on conflict (id) do nothing returning *`,
      [id, tenantId, taskId, body, caller.agent.id, caller.runId ?? null, await mentionsIn(tx, body), iso(now())],
    )
    if (after) await follow(tx, caller, 'comments', undefined, after)
    return id
  }

  async function insertDeliverable(
    tx: Tx,
    caller: Caller,
    task: Row<'tasks'>,
    label: string,
    target: { type: 'text' | 'agent_file' | 'url'; url: string | null; body: string | null },
  ): Promise<Result<Submitted>> {
    const mine = (await liveDeliverables(tx, task.id)).filter((link) => link.submitted_by_agent_id === caller.agent.id)
    const previous = previousVersion(mine, label)
    if (previous?.review_status === 'submitted' && sameContent(previous, target)) {
      return done({ id: previous.id, round: previous.review_round, already: true })
    }
    // The rule that both sides compute has the last word on the round, so that the server's answer changes nothing here.
    const wanted = (previous?.review_round ?? 0) + 1
    const round = Number(
      computedColumns(
        'entity_links',
        undefined,
        { review_round: wanted, supersedes_id: previous?.id ?? null },
        iso(now()),
        {},
      )['review_round'] ?? wanted,
    )
    const id = derivedId('deliverable', task.id, caller.agent.id, label.toLowerCase(), previous?.id ?? '')
    const [taken] = await tx.query<{ id: string }>('select id from entity_links where id = $1', [id])
    const [after] = await tx.query<Row<'entity_links'>>(
      `insert into entity_links (id, tenant_id, owner_type, owner_id, target_type, url, body, label, is_deliverable, review_status,
         review_round, submitted_by_agent_id, run_id, supersedes_id, created_at)
       values ($1, $2, 'task', $3, $4, $5, $6, $7, true, 'submitted', $8, $9, $10, $11, $12) returning *`,
      [
        taken ? newId() : id,
        tenantId,
        task.id,
        target.type,
        target.url,
        target.body,
        label,
        round,
        caller.agent.id,
        caller.runId ?? null,
        previous?.id ?? null,
        iso(now()),
      ],
    )
    if (!after) throw new Error('the insert of a deliverable returned no row')
    await follow(tx, caller, 'entity_links', undefined, after)
    return done({ id: after.id, round, already: false })
  }

  return {
    myTasks: (caller) => tasksOf(replica, caller.agent.id),
    searchTasks: (caller, search) => searchTasks(replica, caller.agent.id, search),

    async showTask(caller, taskId) {
      if (!isUuid(taskId)) return badId(taskId)
      const task = await showTask(replica, caller.agent.id, taskId)
      return task ? done(task) : noTask(taskId)
    },

    claim: (caller, taskId) =>
      write(caller, async (tx) => {
        const task = await ownTask(tx, caller, taskId)
        return task.ok ? claimIn(tx, caller, task.value) : task
      }),

    async comment(caller, taskId, body) {
      const text = body.trim()
      if (text === '') return refuse('invalid', 'A comment needs a text.')
      if (text.length > TEXT_LIMITS.comment) return tooLong('A comment', text.length, TEXT_LIMITS.comment)
      return write(caller, async (tx) => {
        const task = await findTask(tx, taskId)
        if (!task.ok) return task
        if (!isAssigned(task.value, caller) && !(await wasAsked(tx, caller, taskId))) return notYours(task.value)
        return done({ id: await insertComment(tx, caller, taskId, text) })
      })
    },

    async submitDeliverable(caller, taskId, submission) {
      const label = submission.label.trim()
      if (label === '') return refuse('invalid', 'A deliverable needs a label, such as "Launch brief".')
      if (label.length > TEXT_LIMITS.label) return tooLong('A label', label.length, TEXT_LIMITS.label)
      const target = await targetOf(context, caller, submission)
      if (!target.ok) return target
      return write(caller, async (tx) => {
        const task = await ownTask(tx, caller, taskId)
        if (!task.ok) return task
        const claimed = await claimIn(tx, caller, task.value)
        return claimed.ok ? insertDeliverable(tx, caller, task.value, label, target.value) : claimed
      })
    },

    complete: (caller, taskId, summary) =>
      write(caller, async (tx) => {
        const found = await ownTask(tx, caller, taskId)
        if (!found.ok) return found
        const task = found.value
        if (task.status === 'done') return done({ status: 'done' })
        if (task.status === 'cancelled') return refuse('wrong_state', `“${task.title}” is cancelled.`)
        const waiting = (await openBlockers(tx, [task.id])).get(task.id)
        if (waiting) return refuse('blocked', `“${task.title}” waits for ${quoteAll(waiting)}.`)
        const open = (await liveDeliverables(tx, task.id)).find(
          (link) => link.review_status === 'submitted' || link.review_status === 'revision_requested',
        )
        if (open) {
          const state = open.review_status === 'submitted' ? 'waits for review' : 'waits for your revision'
          return refuse(
            'awaits_review',
            `“${open.label ?? 'A deliverable'}” ${state}. The task completes when it is approved.`,
          )
        }
        const text = summary?.trim()
        if (text && text.length > TEXT_LIMITS.comment) return tooLong('A summary', text.length, TEXT_LIMITS.comment)
        if (text) await insertComment(tx, caller, task.id, text)
        await setTask(tx, caller, task, { status: 'done', completed_at: iso(now()) })
        return done({ status: 'done' })
      }),
  }
}

// Rules

async function findTask(tx: Tx, taskId: string): Promise<Result<Row<'tasks'>>> {
  if (!isUuid(taskId)) return badId(taskId)
  const [task] = await tx.query<Row<'tasks'>>('select * from tasks where id = $1 and deleted_at is null', [taskId])
  return task ? done(task) : noTask(taskId)
}

/** A2. */
async function ownTask(tx: Tx, caller: Caller, taskId: string): Promise<Result<Row<'tasks'>>> {
  const task = await findTask(tx, taskId)
  if (!task.ok || isAssigned(task.value, caller)) return task
  return notYours(task.value)
}

const isAssigned = (task: Row<'tasks'>, caller: Caller): boolean =>
  task.assignee_type === 'agent' && task.assignee_agent_id === caller.agent.id

/** A2: somebody mentioned the agent on this task, or asked it something there. */
async function wasAsked(tx: Tx, caller: Caller, taskId: string): Promise<boolean> {
  const rows = await tx.query(
    'select 1 from agent_inbox_items where agent_id = $1 and task_id = $2 and deleted_at is null limit 1',
    [caller.agent.id, taskId],
  )
  return rows.length > 0
}

/** Which deliverable a new one replaces (A4): the one with the same label, else the only one that a reviewer sent back. */
function previousVersion(mine: readonly Row<'entity_links'>[], label: string): Row<'entity_links'> | undefined {
  const same = mine.filter((link) => link.label?.toLowerCase() === label.toLowerCase())
  if (same.length > 0) return same.at(-1)
  const sentBack = mine.filter((link) => link.review_status === 'revision_requested')
  return sentBack.length === 1 ? sentBack[0] : undefined
}

const sameContent = (
  link: Row<'entity_links'>,
  target: { type: string; url: string | null; body: string | null },
): boolean => link.target_type === target.type && link.url === target.url && link.body === target.body

async function targetOf(
  context: ActionsContext,
  caller: Caller,
  { text, file, url }: Submission,
): Promise<Result<{ type: 'text' | 'agent_file' | 'url'; url: string | null; body: string | null }>> {
  if ([text, file, url].filter((value) => value !== undefined).length !== 1) {
    return refuse('invalid', 'A deliverable is exactly one of: a text, a file of your workspace, or an address.')
  }
  if (text !== undefined) {
    if (text.trim() === '') return refuse('invalid', 'The text of the deliverable is empty.')
    if (text.length > TEXT_LIMITS.deliverable) return tooLong('The text', text.length, TEXT_LIMITS.deliverable)
    return done({ type: 'text', url: null, body: text })
  }
  if (file !== undefined) {
    if (!context.file) return refuse('invalid', 'This gateway has no workspaces, so a file cannot be submitted.')
    const found = await context.file(caller.agent.slug, file)
    return found.ok ? done({ type: 'agent_file', url: found.value.path, body: null }) : found
  }
  const address = URL.canParse(url ?? '') ? new URL(url ?? '') : undefined
  if (address?.protocol !== 'https:' && address?.protocol !== 'http:') {
    return refuse('invalid', 'The address must begin with https:// or http://.')
  }
  if (address.username !== '' || address.password !== '')
    return refuse('invalid', 'The address must not contain a user name or password.')
  return done({ type: 'url', url: address.href, body: null })
}

/** Slugs of agents and ids of people that `@…` in a body means. People are mentioned by their name without spaces, or by its first word. */
async function mentionsIn(tx: Tx, body: string): Promise<string[]> {
  const names = [...body.matchAll(/(?:^|[^\w@])@([\p{L}\p{N}][\p{L}\p{N}._-]*)/gu)].map((match) =>
    (match[1] ?? '').toLowerCase().replace(/[.]+$/, ''),
  )
  if (names.length === 0) return []
  const rows = await tx.query<{ mention: string }>(
    `select slug as mention from agents where deleted_at is null and lower(slug) = any($1::text[])
     union select id::text from people where deleted_at is null
       and (lower(replace(name, ' ', '')) = any($1::text[]) or lower(split_part(name, ' ', 1)) = any($1::text[]))`,
    [names],
  )
  return rows.map((row) => row.mention).sort()
}

const badId = (id: string): Result<never> => refuse('invalid', `“${id.slice(0, 60)}” is not the id of a task.`)
const noTask = (id: string): Result<never> => refuse('not_found', `There is no task ${id}.`)
const notYours = (task: Row<'tasks'>): Result<never> => refuse('not_yours', `“${task.title}” is not assigned to you.`)
const tooLong = (what: string, length: number, limit: number): Result<never> =>
  refuse(
    'too_large',
    `${what} may have ${limit.toLocaleString('en-US')} characters; this has ${length.toLocaleString('en-US')}.`,
  )
const quoteAll = (titles: readonly string[]): string => titles.map((title) => `“${title}”`).join(', ')
const iso = (milliseconds: number): string => new Date(milliseconds).toISOString()
