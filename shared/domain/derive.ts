/**
 * What follows from a change: rows to insert, and columns to set, computed alike by the server (for everyone) and by a gateway (for its agents).
 * Pure: everything it needs to know comes through `World`.
 *
 * D1 A derived row's id is a UUID v5 of its dedup key, so that two sides deriving it derive one row (P7). Insert them with ON CONFLICT DO NOTHING.
 * D2 Dedup keys carry a generation: a second assignment of the same agent, a second review of the same deliverable, a blocker finished once more,
 *    each wakes again. `assignment_generation` rises with every change of assignee and with every reopening.
 * D3 Only an agent that exists is woken; the item is addressed to the gateway that hosts it.
 * D4 An agent is never woken by its own comment or its own claim. Chains of agents waking agents end at `MAX_DEPTH`: `context.depth` counts them from
 *    the last person.
 * D5 A task whose counting deliverables are all approved is done; a task whose last blocker ended is released (`blocked` becomes `todo`).
 *    What is set this way is itself a change from which more may follow.
 * D6 The columns of inbox items after `context` belong to the gateway: nothing here changes an item that exists.
 */
import type { Enum } from '../schema/enums.ts'
import type { TableName } from '../schema/tables.ts'
import { assigneeOf, computedColumns, isClosed, reopened } from './derive-columns.ts'
import type { Change, Derived, Values, World } from './derive-world.ts'
import { derivedId } from './ids.ts'
import { allApproved, type Deliverable } from './review.ts'

export { computedColumns } from './derive-columns.ts'
export type { AgentFacts, Change, Derived, Values, World } from './derive-world.ts'

/** How many agents may wake one another in a row before a person has to say something. */
export const MAX_DEPTH = 6

const MAX_ROUNDS = 500

export function derive(changes: readonly Change[], world: World): Derived {
  const derived: Derived = { inserts: [], updates: [] }
  const released = new Set<string>()
  const queue = [...changes]
  const overlay = new Map<string, Values>()
  const seen: World = { ...bind(world), task: (id) => overlay.get(id) ?? world.task(id) }
  for (const change of changes) if (change.table === 'tasks') overlay.set(change.id, change.after)

  for (let round = 0; round < MAX_ROUNDS; round++) {
    const change = queue.shift()
    if (!change) break
    const emit = new Emitter(derived, seen, change, released)
    RULES[change.table]?.(change, seen, emit)
    for (const { id, set } of emit.updates) {
      const before = seen.task(id)
      if (!before) continue
      const set2 = { ...set, ...computedColumns('tasks', before, { ...before, ...set }, change.at, set) }
      const after = { ...before, ...set2 }
      overlay.set(id, after)
      derived.updates.push({ table: 'tasks', id, set: set2 })
      queue.push({
        table: 'tasks',
        id,
        before,
        after,
        actor: { type: 'system', id: null },
        runId: change.runId,
        at: change.at,
      })
    }
  }
  return derived
}

const bind = (world: World): World => ({
  tenantId: world.tenantId,
  agent: (id) => world.agent(id),
  agentBySlug: (slug) => world.agentBySlug(slug),
  task: (id) => world.task(id),
  blockersOf: (id) => world.blockersOf(id),
  blockedBy: (id) => world.blockedBy(id),
  deliverablesOf: (id) => world.deliverablesOf(id),
  depthOfRun: (id) => world.depthOfRun(id),
})

const text = (value: unknown, max = 500): string => {
  const whole = typeof value === 'string' ? value : ''
  return whole.length > max ? `${whole.slice(0, max - 1)}…` : whole
}
const idOf = (value: unknown): string | undefined => (typeof value === 'string' && value ? value : undefined)

interface InboxItem {
  readonly event: Enum<'inbox_event_type'>
  readonly key: string
  readonly taskId?: string | undefined
  readonly commentId?: string
  readonly linkId?: string
  readonly context: Values
}

interface Note {
  readonly type: Enum<'notification_type'>
  readonly key: string
  readonly title: string
  readonly body?: string
  readonly personId?: string | null
  readonly entity: readonly [Enum<'entity_type'>, string]
}

/** Collects what follows from one change. */
class Emitter {
  readonly updates: { id: string; set: Values }[] = []
  /** Tasks that were released already: two blockers that end together are one reason to wake. */
  readonly released: Set<string>
  private readonly derived: Derived
  private readonly world: World
  private readonly change: Change

  constructor(derived: Derived, world: World, change: Change, released: Set<string>) {
    this.released = released
    this.derived = derived
    this.world = world
    this.change = change
  }

  /** How far from a person this change is: 0 a person made it. */
  get depth(): number {
    const { actor, runId } = this.change
    if (actor.type === 'human') return 0
    return runId ? this.world.depthOfRun(runId) + 1 : actor.type === 'agent' ? 1 : 0
  }

  wake(agentId: string | undefined, { event, key, taskId, commentId, linkId, context }: InboxItem): void {
    const agent = agentId ? this.world.agent(agentId) : undefined
    if (!agent || agent.deleted_at) return
    const depth = this.depth
    if (depth > MAX_DEPTH) return
    const task = taskId ? this.world.task(taskId) : undefined
    this.derived.inserts.push({
      table: 'agent_inbox_items',
      row: {
        id: derivedId('inbox', this.world.tenantId, key),
        tenant_id: this.world.tenantId,
        gateway_id: agent.gateway_id,
        agent_id: agent.id,
        event_type: event,
        dedup_key: key,
        task_id: taskId ?? null,
        comment_id: commentId ?? null,
        link_id: linkId ?? null,
        priority: task?.['priority'] ?? 'medium',
        context: { ...context, actor_type: this.change.actor.type, actor_id: this.change.actor.id, depth },
        created_at: this.change.at,
      },
    })
  }

  notify({ type, key, title, body, personId, entity }: Note): void {
    const { actor, at } = this.change
    this.derived.inserts.push({
      table: 'notifications',
      row: {
        id: derivedId('notification', this.world.tenantId, key),
        tenant_id: this.world.tenantId,
        type,
        title: text(title, 200),
        body: body ? text(body) : null,
        person_id: personId ?? null,
        entity_type: entity[0],
        entity_id: entity[1],
        actor_type: actor.type,
        actor_agent_id: actor.type === 'agent' ? actor.id : null,
        dedup_key: key,
        created_at: at,
      },
    })
  }

  setTask(id: string, set: Values): void {
    this.updates.push({ id, set })
  }

  nameOfActor(): string {
    const { actor } = this.change
    return (actor.type === 'agent' && actor.id && this.world.agent(actor.id)?.name) || 'An agent'
  }
}

type Rule = (change: Change, world: World, emit: Emitter) => void

const RULES: Partial<Record<TableName, Rule>> = {
  tasks: (change, world, emit) => {
    assignment(change, emit)
    ending(change, world, emit)
  },
  task_relations: relationEnded,
  comments: comment,
  entity_links: review,
  agent_commands: commandEnded,
  approvals: asked,
  agent_inbox_items: itemEnded,
}

function assignment({ id, before, after, actor }: Change, emit: Emitter): void {
  if (isClosed(after)) return
  const assignee = idOf(after['assignee_agent_id'])
  const previous = idOf(before?.['assignee_agent_id'])
  const generation = Number(after['assignment_generation'] ?? 0)
  const anew = !before || assigneeOf(before) !== assigneeOf(after) || reopened(before, after)
  if (!anew) return
  const claimed = before !== undefined && actor.type === 'agent' && actor.id === assignee
  if (assignee && !claimed) {
    const event = previous && previous !== assignee ? 'task_reassignment' : 'task_assignment'
    emit.wake(assignee, {
      event,
      key: `${event}:${id}:${assignee}:${generation}`,
      taskId: id,
      context: {
        task_title: text(after['title'], 200),
        task_status: after['status'] ?? 'todo',
        task_priority: after['priority'] ?? 'medium',
        model_override: after['model_override'] ?? null,
        thinking_override: after['thinking_override'] ?? null,
        ...(previous && previous !== assignee ? { previous_agent_id: previous } : {}),
      },
    })
  }
  const person = idOf(after['assignee_person_id'])
  if (person && person !== idOf(before?.['assignee_person_id']) && person !== actor.id) {
    emit.notify({
      type: 'task_assigned',
      key: `task_assigned:${id}:${person}:${generation}`,
      title: `Assigned to you: ${text(after['title'], 150)}`,
      personId: person,
      entity: ['task', id],
    })
  }
}

function ending(change: Change, world: World, emit: Emitter): void {
  const { id, before, after, actor, runId } = change
  const generation = Number(after['assignment_generation'] ?? 0)
  if (before && !isClosed(before) && isClosed(after)) {
    for (const target of world.blockedBy(id)) {
      release(target, id, `${id}:${generation}`, world, emit, {
        resolved_task_id: id,
        resolved_task_title: text(after['title'], 200),
        resolution: after['deleted_at'] ? 'deleted' : after['status'],
      })
    }
  }
  if (actor.type === 'human' || !before || before['status'] === after['status'] || after['deleted_at']) return
  if (after['status'] === 'done') {
    emit.notify({
      type: 'task_completed',
      key: `task_completed:${id}:${generation}`,
      title: `Done: ${text(after['title'], 180)}`,
      entity: ['task', id],
    })
  } else if (after['status'] === 'blocked') {
    emit.notify({
      type: 'task_blocked',
      key: `task_blocked:${id}:${runId ?? generation}`,
      title: `${emit.nameOfActor()} is blocked: ${text(after['title'], 150)}`,
      entity: ['task', id],
    })
  }
}

/** `target` is free when no blocker is open any more. */
function release(
  target: string,
  ended: string | undefined,
  cause: string,
  world: World,
  emit: Emitter,
  context: Values,
): void {
  const task = world.task(target)
  if (!task || isClosed(task) || emit.released.has(target)) return
  if (world.blockersOf(target).some((blocker) => blocker !== ended && !isClosed(world.task(blocker)))) return
  emit.released.add(target)
  if (task['status'] === 'blocked') emit.setTask(target, { status: 'todo' })
  emit.wake(idOf(task['assignee_agent_id']), {
    event: 'blocker_resolved',
    key: `blocker_resolved:${target}:${cause}`,
    taskId: target,
    context: { ...context, blocked_task_title: text(task['title'], 200), remaining_blockers: 0 },
  })
}

function relationEnded({ id, before, after }: Change, world: World, emit: Emitter): void {
  if (!before || before['deleted_at'] || !after['deleted_at'] || after['relation_type'] !== 'blocks') return
  const source = idOf(after['source_task_id'])
  const target = idOf(after['target_task_id'])
  if (!source || !target || isClosed(world.task(source))) return
  release(target, source, `relation:${id}`, world, emit, { resolved_task_id: source, resolution: 'unlinked' })
}

function comment({ id, before, after, actor }: Change, world: World, emit: Emitter): void {
  if (before) return
  const entity = [after['entity_type'] as Enum<'entity_type'>, String(after['entity_id'])] as const
  const taskId = entity[0] === 'task' ? entity[1] : undefined
  const task = taskId ? world.task(taskId) : undefined
  const context = {
    comment_body: text(after['body']),
    entity_type: entity[0],
    entity_id: entity[1],
    ...(task ? { task_title: text(task['title'], 200) } : {}),
  }
  const mentions = Array.isArray(after['mentions'])
    ? after['mentions'].filter((one): one is string => typeof one === 'string')
    : []
  const woken = new Set<string>()
  for (const mention of new Set(mentions)) {
    const agent = world.agentBySlug(mention)
    if (agent) {
      if (actor.type === 'agent' && actor.id === agent.id) continue
      woken.add(agent.id)
      emit.wake(agent.id, {
        event: 'task_comment_mention',
        key: `comment_mention:${id}:${agent.id}`,
        taskId,
        commentId: id,
        context,
      })
    } else if (mention.length === 36 && mention !== actor.id) {
      emit.notify({
        type: 'mention',
        key: `mention:${id}:${mention}`,
        title: task ? `You were mentioned in: ${text(task['title'], 150)}` : 'You were mentioned',
        body: text(after['body']),
        personId: mention,
        entity,
      })
    }
  }
  const assignee = idOf(task?.['assignee_agent_id'])
  if (actor.type === 'human' && assignee && !woken.has(assignee)) {
    emit.wake(assignee, {
      event: 'task_comment',
      key: `task_comment:${id}:${assignee}`,
      taskId,
      commentId: id,
      context,
    })
  }
  if (actor.type === 'agent') {
    emit.notify({
      type: 'agent_comment',
      key: `agent_comment:${id}`,
      title: task ? `${emit.nameOfActor()} on: ${text(task['title'], 150)}` : `${emit.nameOfActor()} left a comment`,
      body: text(after['body']),
      personId: task?.['created_by_type'] === 'human' ? (idOf(task['created_by_id']) ?? null) : null,
      entity,
    })
  }
}

function review({ id, before, after, actor }: Change, world: World, emit: Emitter): void {
  if (after['is_deliverable'] !== true || after['deleted_at']) return
  const status = after['review_status']
  if (before?.['review_status'] === status) return
  const round = Number(after['review_round'] ?? 1)
  const taskId = after['owner_type'] === 'task' ? idOf(after['owner_id']) : undefined
  const task = taskId ? world.task(taskId) : undefined
  const label = text(after['label'], 150) || 'a deliverable'
  if (status === 'submitted' && actor.type !== 'human') {
    emit.notify({
      type: 'deliverable_submitted',
      key: `deliverable_submitted:${id}:${round}`,
      title: `For your review: ${label}`,
      ...(task ? { body: text(task['title'], 200) } : {}),
      entity: ['deliverable', id],
    })
  }
  if (status === 'revision_requested' || status === 'rejected') {
    emit.wake(idOf(after['submitted_by_agent_id']) ?? idOf(task?.['assignee_agent_id']), {
      event: 'deliverable_review',
      key: `deliverable_review:${id}:${round}:${status}`,
      taskId,
      linkId: id,
      context: {
        deliverable_id: id,
        deliverable_label: label,
        review_status: status,
        review_round: round,
        review_note: text(after['review_note'], 2000),
        ...(task ? { task_title: text(task['title'], 200) } : {}),
      },
    })
  }
  if (status === 'approved' && taskId && task && !isClosed(task)) {
    const links = world.deliverablesOf(taskId).filter((link) => link.id !== id)
    if (allApproved([...links, after as Values & Deliverable])) emit.setTask(taskId, { status: 'done' })
  }
}

function commandEnded({ id, before, after }: Change, _world: World, emit: Emitter): void {
  const status = after['status']
  if (!before || before['status'] === status || (status !== 'failed' && status !== 'dead_letter')) return
  emit.notify({
    type: status === 'failed' ? 'command_failed' : 'dead_letter',
    key: `command_${status}:${id}:${Number(after['attempt_count'] ?? 0)}`,
    title: `${status === 'failed' ? 'Failed' : 'Gave up'}: ${String(after['action']).replaceAll('_', ' ')}`,
    body: text(after['error_message']),
    entity: ['command', id],
  })
}

function asked({ id, before, after }: Change, world: World, emit: Emitter): void {
  if (before || after['status'] !== 'pending') return
  const name = idOf(after['agent_id']) && world.agent(String(after['agent_id']))?.name
  emit.notify({
    type: 'approval_requested',
    key: `approval:${id}`,
    title: `${name || 'A gateway'} asks: ${text(after['title'], 150)}`,
    entity: ['approval', id],
  })
}

function itemEnded({ id, before, after }: Change, world: World, emit: Emitter): void {
  if (!before || before['status'] === after['status'] || after['status'] !== 'dead_letter') return
  const agent = world.agent(String(after['agent_id']))
  const task = idOf(after['task_id']) ? world.task(String(after['task_id'])) : undefined
  emit.notify({
    type: 'dead_letter',
    key: `dead_letter:${id}:${Number(after['attempt_count'] ?? 0)}`,
    title: `${agent?.name ?? 'An agent'} gave up after ${Number(after['attempt_count'] ?? 0)} attempts`,
    body: text(after['error_message']) || text(task?.['title'], 200),
    entity: ['inbox_item', id],
  })
}
