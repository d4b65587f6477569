/**
 * Fills an empty workspace with a believable small company. Deterministic: the same seed and the same day give the same data (ids apart from chance).
 *
 *  1. Only into a workspace that nobody has set up; all in one transaction.
 *  2. What the past holds is written as past: no inbox item is pending for it. Three tasks are left for the agents to begin with.
 *  3. The agents are real: each has a `provision` command that the local gateway carries out.
 */
import { derivedId } from '@hq/shared/domain/ids.ts'
import type { TableName } from '@hq/shared/schema/tables.ts'
import { type Pool, transaction } from '../database/pool.ts'
import { createUser } from '../people/auth.ts'
import {
  AGENTS,
  BLENDS,
  CAFES,
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
import { addComment, addHistory } from './history.ts'
import {
  type Add,
  type Chance,
  createChance,
  DAY,
  type Id,
  insertAll,
  iso,
  type TaskContext,
  type Values,
} from './rows.ts'

export const DEMO_EMAIL = 'demo@hq.local'

export class DemoError extends Error {}

export interface DemoOptions {
  readonly tenantId: string
  readonly gatewayId: string | undefined
  readonly password: string
  readonly now: number
}

type Rows = Map<TableName, Values[]>

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
