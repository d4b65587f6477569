/**
 * Fills an empty workspace with a believable small company. Deterministic: the same seed and the same day give the same data (ids apart from chance).
 *
 *  1. Only into a workspace that nobody has set up; all in one transaction.
 *  2. What the past holds is written as past: no inbox item is pending for it. Three tasks are left for the agents to begin with.
 *  3. The agents are real: each has a `provision` command that the local gateway carries out.
 */
import { derivedId } from '@hq/shared/domain/ids.ts'
import { quote } from '@hq/shared/schema/sql.ts'
import type { TableName } from '@hq/shared/schema/tables.ts'
import { type Pool, type Queryable, transaction } from '../database/pool.ts'
import { createUser } from '../people/auth.ts'
import {
  AGENTS,
  BLENDS,
  CAFES,
  COMMENTS,
  DELIVERABLE,
  FIRST,
  HUMAN_COMMENTS,
  KNOWLEDGE,
  LAST,
  ORIGINS,
  STREAMS,
  TASKS,
  TITLES,
  WORKSPACE,
} from './content.ts'

export const DEMO_EMAIL = 'demo@hq.local'

export class DemoError extends Error {}

export interface DemoOptions {
  readonly tenantId: string
  readonly gatewayId: string | undefined
  readonly password: string
  readonly now: number
}

type Values = Record<string, unknown>
type Rows = Map<TableName, Values[]>

const DAY = 86_400_000

export async function fillDemo(pool: Pool, options: DemoOptions): Promise<{ tasks: number; contacts: number }> {
  const { tenantId, now } = options
  return transaction(pool, async (client) => {
    const { rows } = await client.query<{ initialized: boolean }>(
      'select initialized from workspace where tenant_id = $1 for update',
      [tenantId],
    )
    if (rows[0]?.initialized !== false) {
      throw new DemoError(
        'This workspace already has an owner; demo data goes only into an empty one. Use another folder: HQ_HOME=.hq-demo HQ_PORT=3220 npm start -- --demo',
      )
    }
    const userId = await createUser(client, { name: 'Dana Demo', email: DEMO_EMAIL, password: options.password })
    const person = derivedId('demo', tenantId, 'person')
    const built = build(options, person)
    await insertAll(client, 'people', [
      {
        id: person,
        tenant_id: tenantId,
        user_id: userId,
        name: 'Dana Demo',
        email: DEMO_EMAIL,
        role: 'owner',
        timezone: 'Europe/Berlin',
        created_at: iso(now - 70 * DAY),
      },
    ])
    for (const [table, list] of built)
      await insertAll(
        client,
        table,
        list.map((row) => ({ tenant_id: tenantId, ...row })),
      )
    await client.query(
      `update workspace set initialized = true, name = $2, owner_name = 'Dana Demo', owner_preferred_name = 'Dana', owner_timezone = 'Europe/Berlin', updated_at = now()
        where tenant_id = $1`,
      [tenantId, WORKSPACE],
    )
    return { tasks: built.get('tasks')?.length ?? 0, contacts: built.get('contacts')?.length ?? 0 }
  })
}

const iso = (ms: number): string => new Date(ms).toISOString()

/** A small generator of repeatable chance (mulberry32). */
function createChance(seed: number) {
  let state = seed
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  return {
    next,
    pick: <T>(list: readonly T[]): T => list[Math.floor(next() * list.length)] as T,
    between: (low: number, high: number): number => low + next() * (high - low),
  }
}

function build(options: DemoOptions, person: string): Rows {
  const { tenantId, gatewayId, now } = options
  const chance = createChance(20_260_101)
  const rows: Rows = new Map()
  const id = (...cause: string[]): string => derivedId('demo', tenantId, ...cause)
  const add = (table: TableName, row: Values): void => {
    const list = rows.get(table)
    if (list) list.push(row)
    else rows.set(table, [row])
  }
  const ago = (days: number): string => iso(now - days * DAY)

  STREAMS.forEach((stream, index) => {
    add('streams', { id: id('stream', stream.name), ...stream, sort_order: index, created_at: ago(70) })
  })
  for (const { slug, name, template, emoji, role } of AGENTS) {
    add('agents', {
      id: id('agent', slug),
      gateway_id: gatewayId ?? null,
      slug,
      name,
      description: role,
      meta: { emoji, template },
      reports_to_id: slug === 'juno' ? null : id('agent', 'juno'),
      created_at: ago(60),
    })
    add('agent_budgets', {
      id: id('budget', slug),
      agent_id: id('agent', slug),
      monthly_limit_usd: 25,
      created_at: ago(60),
    })
    if (gatewayId) {
      add('agent_commands', {
        id: id('provision', slug),
        gateway_id: gatewayId,
        agent_id: id('agent', slug),
        action: 'provision',
        payload: { template },
        requested_by: person,
        created_at: iso(now),
      })
    }
  }
  addContacts(add, id, ago, chance)
  addTasks({ add, id, ago, chance, person, gatewayId, now })
  addKnowledge(add, id, ago)
  return rows
}

type Add = (table: TableName, row: Values) => void
type Id = (...cause: string[]) => string
type Chance = ReturnType<typeof createChance>

function addContacts(add: Add, id: Id, ago: (days: number) => string, chance: Chance): void {
  for (let n = 0; n < 100; n++) {
    const first = FIRST[n % FIRST.length] as string
    const last = LAST[(n * 7 + Math.floor(n / FIRST.length)) % LAST.length] as string
    const company = CAFES[n % CAFES.length] as string
    const domain = `${company
      .toLowerCase()
      .normalize('NFD')
      .replace(/[^a-z0-9]+/g, '-')
      .replace(/^-|-$/g, '')}.example`
    add('contacts', {
      id: id('contact', String(n)),
      name: `${first} ${last}`,
      email: `${first}.${last}@${domain}`.toLowerCase(),
      phone: `+49 30 555 ${String(1000 + n)}`,
      company,
      title: chance.pick(TITLES),
      location: chance.pick(['Harbour', 'Old town', 'West side', 'Ring road']),
      status: chance.pick(['lead', 'tasting', 'customer', 'customer', 'paused']),
      tags: chance.next() < 0.3 ? ['hotel'] : ['café'],
      source: chance.pick(['walk-in', 'recommendation', 'fair', 'research']),
      last_contact_date: ago(chance.between(1, 60)),
      created_at: ago(chance.between(60, 70)),
    })
  }
}

interface TaskContext {
  add: Add
  id: Id
  ago: (days: number) => string
  chance: Chance
  person: string
  gatewayId: string | undefined
  now: number
}

function titles(): { title: string; template: (typeof TASKS)[number]; cafe: number }[] {
  const months = ['January', 'February', 'March', 'April', 'May', 'June']
  const lists = { cafe: CAFES, origin: ORIGINS, blend: BLENDS, month: months, once: [''] }
  return TASKS.flatMap((template) =>
    lists[template.each].map((word, index) => ({
      title: template.title.replace(`{${template.each}}`, word),
      template,
      cafe: template.each === 'cafe' ? index : -1,
    })),
  )
}

function addTasks(context: TaskContext): void {
  const { add, id, ago, chance, person, gatewayId, now } = context
  const all = titles()
  let left = 3
  all.forEach(({ title, template, cafe }, index) => {
    const taskId = id('task', title)
    const agent = template.by && chance.next() < 0.8 ? template.by : undefined
    const luck = chance.next()
    // Without a gateway nobody would ever begin what is left for the agents.
    const begins = agent !== undefined && gatewayId !== undefined && left > 0 && luck > 0.9
    const status = begins
      ? 'todo'
      : luck < 0.5
        ? 'done'
        : luck < 0.62
          ? 'in_progress'
          : luck < 0.67
            ? 'blocked'
            : luck < 0.7
              ? 'cancelled'
              : 'todo'
    const created = chance.between(2, 58)
    const age = begins ? 0 : created
    // What an agent has but did not begin would look stuck: it is not assigned yet.
    const assigned = agent !== undefined && (begins || status !== 'todo') ? agent : undefined
    add('tasks', {
      id: taskId,
      title,
      description: template.description ?? null,
      status,
      priority: chance.pick(['low', 'medium', 'medium', 'medium', 'high', 'urgent']),
      stream_id: id('stream', STREAMS[template.stream]?.name ?? ''),
      assignee_type: assigned ? 'agent' : agent === undefined && chance.next() < 0.5 ? 'human' : null,
      assignee_agent_id: assigned ? id('agent', assigned) : null,
      assignee_person_id: null,
      due_date: chance.next() < 0.5 ? iso(now + chance.between(-6, 28) * DAY) : null,
      completed_at: status === 'done' ? ago(created * chance.next()) : null,
      contact_id: cafe >= 0 ? id('contact', String(cafe)) : null,
      tags: cafe >= 0 ? ['wholesale'] : [],
      sort_order: index,
      created_by_type: 'human',
      created_by_id: person,
      created_at: ago(age),
    })
    if (begins && assigned) {
      left--
      addInboxItem(context, taskId, title, assigned)
    } else if (assigned && status !== 'cancelled') addHistory(context, taskId, title, assigned, status, created)
    if (chance.next() < 0.15) addComment(context, taskId, undefined, chance.pick(HUMAN_COMMENTS), created * 0.4)
  })
  addSubtasks(
    context,
    all.map(({ title }) => title),
  )
}

function addInboxItem({ add, id, gatewayId, now }: TaskContext, taskId: string, title: string, agent: string): void {
  const key = `task_assignment:${taskId}:${id('agent', agent)}:0`
  add('agent_inbox_items', {
    id: id('inbox', key),
    gateway_id: gatewayId ?? null,
    agent_id: id('agent', agent),
    event_type: 'task_assignment',
    dedup_key: key,
    task_id: taskId,
    context: { task_title: title, task_status: 'todo', depth: 0 },
    created_at: iso(now),
  })
}

/** A finished run with what it said, what it cost, and now and then a deliverable. */
function addHistory(
  context: TaskContext,
  taskId: string,
  title: string,
  agent: string,
  status: string,
  created: number,
): void {
  const { add, id, ago, chance, person, gatewayId, now } = context
  const agentId = id('agent', agent)
  const at = created * chance.between(0.3, 0.9)
  addComment(context, taskId, agent, chance.pick(COMMENTS), at)
  if (gatewayId) {
    const run = id('run', title)
    const [input, output] = [Math.floor(chance.between(2_000, 24_000)), Math.floor(chance.between(200, 1_800))]
    const cost = Number(((input * 0.25 + output * 1.25) / 1_000_000).toFixed(5))
    const ended = iso(now - at * DAY + chance.between(20_000, 240_000))
    const summary =
      status === 'blocked'
        ? 'I need an answer from a person before I can go on.'
        : `Worked on “${title}” and left a note.`
    const common = { gateway_id: gatewayId, created_at: ago(at) }
    add('agent_runs', {
      ...common,
      id: run,
      agent_id: agentId,
      task_id: taskId,
      runtime: 'builtin',
      provider: 'demo',
      model: 'demo-1',
      demo: true,
      status: 'done',
      started_at: ago(at),
      ended_at: ended,
      turns: 3,
      tool_calls: 4,
      input_tokens: input,
      output_tokens: output,
      cost_usd: cost,
      summary,
    })
    const events: [string, Values][] = [
      ['status', { code: 'started', text: 'Started', model: 'demo/demo-1' }],
      ['tool_call', { turn: 1, call: 'c1', tool: 'task_show', input: { task: taskId } }],
      ['tool_result', { turn: 1, call: 'c1', tool: 'task_show', ok: true, output: title }],
      ['message', { turn: 2, text: summary }],
      ['status', { code: 'done', text: 'Done' }],
    ]
    events.forEach(([kind, data], seq) => {
      add('agent_run_events', { ...common, id: id('event', title, String(seq)), run_id: run, seq, kind, data })
    })
    add('agent_usage', {
      ...common,
      id: id('usage', title),
      agent_id: agentId,
      run_id: run,
      task_id: taskId,
      provider: 'demo',
      model: 'demo-1',
      input_tokens: input,
      output_tokens: output,
      cost_usd: cost,
      occurred_at: ended,
    })
  }
  if (status === 'blocked' || chance.next() > 0.45) return
  const link = id('deliverable', title)
  const review = status === 'done' ? 'approved' : chance.next() < 0.6 ? 'submitted' : 'revision_requested'
  add('entity_links', {
    id: link,
    owner_type: 'task',
    owner_id: taskId,
    target_type: 'text',
    label: title,
    body: `# ${title}\n\n${DELIVERABLE}`,
    is_deliverable: true,
    review_status: review,
    review_note: review === 'revision_requested' ? 'Please add where each figure comes from.' : null,
    reviewed_by: review === 'submitted' ? null : person,
    reviewed_at: review === 'submitted' ? null : ago(at * 0.5),
    submitted_by_agent_id: agentId,
    created_at: ago(at),
  })
  if (review === 'submitted') {
    add('notifications', {
      id: id('note', title),
      type: 'deliverable_submitted',
      title: `For your review: ${title}`,
      entity_type: 'deliverable',
      entity_id: link,
      actor_type: 'agent',
      actor_agent_id: agentId,
      created_at: ago(at),
    })
  }
}

function addComment(
  { add, id, ago, person }: TaskContext,
  taskId: string,
  agent: string | undefined,
  body: string,
  days: number,
): void {
  add('comments', {
    id: id('comment', taskId, agent ?? 'person'),
    entity_type: 'task',
    entity_id: taskId,
    body,
    actor_type: agent ? 'agent' : 'human',
    actor_agent_id: agent ? id('agent', agent) : null,
    actor_person_id: agent ? null : person,
    created_at: ago(days),
  })
}

/** A plan with steps, and one that waits for another. */
function addSubtasks({ add, id, ago, person }: TaskContext, all: readonly string[]): void {
  const parent = all.find((title) => title.startsWith('Offer subscriptions')) ?? ''
  const steps = [
    'Decide on two rhythms: two and four weeks',
    'Ask ten customers what they would pause for',
    'Try it with a test order',
    'Announce it in the newsletter',
  ]
  steps.forEach((title, index) => {
    const status = index < 1 ? 'done' : 'todo'
    add('tasks', {
      id: id('subtask', title),
      title,
      status,
      parent_id: id('task', parent),
      stream_id: id('stream', 'Online shop'),
      sort_order: index,
      created_by_type: 'human',
      created_by_id: person,
      created_at: ago(9),
      completed_at: status === 'done' ? ago(3) : null,
    })
  })
  const pairs = [
    [steps[2], steps[3]],
    [steps[1], steps[2]],
  ]
  for (const [source = '', target = ''] of pairs) {
    add('task_relations', {
      id: id('relation', source, target),
      source_task_id: id('subtask', source),
      target_task_id: id('subtask', target),
      relation_type: 'blocks',
      created_at: ago(9),
    })
  }
}

function addKnowledge(add: Add, id: Id, ago: (days: number) => string): void {
  const cafes = CAFES.slice(0, 30 - KNOWLEDGE.length).map((cafe) => ({
    kind: 'page' as const,
    scope: 'library' as const,
    title: `Notes on ${cafe}`,
    icon: '☕',
    tags: ['wholesale', 'café'],
    text: `${cafe} has been on our list since spring. They pour mostly filter in the morning and milk drinks after lunch. The grinder is their own. Best reached on Tuesdays before ten.`,
  }))
  for (const [index, { text, ...item }] of [...KNOWLEDGE, ...cafes].entries()) {
    add('knowledge_items', {
      id: id('knowledge', item.title),
      ...item,
      plain_text: text,
      created_at: ago(50 - index),
      updated_at: ago(Math.max(0, 30 - index)),
    })
  }
}

/** Rows with different columns are inserted in groups of equal ones, so that defaults stay defaults. */
async function insertAll(db: Queryable, table: TableName, rows: readonly Values[]): Promise<void> {
  const groups = new Map<string, Values[]>()
  for (const row of rows) {
    const key = Object.keys(row).join()
    groups.set(key, [...(groups.get(key) ?? []), row])
  }
  for (const group of groups.values()) {
    const columns = Object.keys(group[0] ?? {})
      .map(quote)
      .join(', ')
    await db.query(
      `insert into ${quote(table)} (${columns}) select ${columns} from jsonb_populate_recordset(null::${quote(table)}, $1)`,
      [JSON.stringify(group)],
    )
  }
}
