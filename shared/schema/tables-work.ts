/** The tables of work: tasks, comments, deliverables, inbox, knowledge, contacts, notifications, audit, and the sync rows themselves. */
import { c, type Json, table } from './columns.ts'

const everyone = { browser: 'tenant', gateway: 'tenant' } as const
const members = { browser: 'member', gateway: 'tenant' } as const

const streams = table(
  'streams',
  { group: 'core', visibility: everyone, write: members, unique: [{ columns: ['name'], where: 'deleted_at is null' }] },
  {
    name: c.text(),
    description: c.text().null(),
    color: c.text().null(),
    icon: c.text().null(),
    sort_order: c.int().default('0').merge('last'),
    type: c.enum('stream_type').default("'functional'"),
    is_archived: c.bool().default('false'),
  },
)

const contacts = table(
  'contacts',
  { group: 'core', visibility: everyone, write: members, indexes: [['name']] },
  {
    name: c.text(),
    email: c.text().null(),
    phone: c.text().null(),
    company: c.text().null(),
    title: c.text().null(),
    location: c.text().null(),
    website_url: c.text().null(),
    linkedin_url: c.text().null(),
    notes: c.text().null(),
    tags: c.texts().default("'{}'").merge('add_remove'),
    source: c.text().null(),
    status: c.text().null(),
    priority: c.text().null(),
    last_contact_date: c.time().null(),
    extended: c.json<Record<string, Json>>().default("'{}'"),
    archived_at: c.time().null(),
  },
)

/**
 * A piece of work. `in_progress` begins when the agent's gateway says so, not at assignment. Overdue is derived from `due_date`.
 * Subtasks are one level deep: a task with a `parent_id` has no children (the server checks).
 */
const tasks = table(
  'tasks',
  {
    group: 'core',
    visibility: everyone,
    write: members,
    indexes: [['status', 'sort_order'], ['assignee_agent_id'], ['parent_id'], ['updated_at'], ['due_date']],
  },
  {
    title: c.text(),
    description: c.text().null(),
    status: c.enum('task_status').default("'todo'"),
    priority: c.enum('task_priority').default("'medium'"),
    stream_id: c.uuid().null().references('streams'),
    parent_id: c.uuid().null().references('tasks'),
    assignee_type: c.enum('actor_type').null(),
    assignee_agent_id: c.uuid().null().references('agents'),
    assignee_person_id: c.uuid().null().references('people'),
    /** Raised with every change of assignee; part of the dedup key, so that A→B→A wakes A again. The server and a gateway compute it alike. */
    assignment_generation: c.int().default('0'),
    model_override: c.text().null(),
    thinking_override: c.enum('thinking').null(),
    due_date: c.time().null(),
    completed_at: c.time().null(),
    contact_id: c.uuid().null().references('contacts'),
    tags: c.texts().default("'{}'").merge('add_remove'),
    sort_order: c.float().default('0').merge('last'),
    archived_at: c.time().null(),
    created_by_type: c.enum('actor_type').default("'human'").merge('immutable'),
    created_by_id: c.uuid().null().merge('immutable'),
  },
)

/** `blocks`: the source blocks the target. Stored in this direction only. */
const taskRelations = table(
  'task_relations',
  {
    group: 'core',
    visibility: everyone,
    write: members,
    unique: [{ columns: ['source_task_id', 'target_task_id', 'relation_type'], where: 'deleted_at is null' }],
    indexes: [['source_task_id'], ['target_task_id']],
  },
  {
    source_task_id: c.uuid().references('tasks').merge('immutable'),
    target_task_id: c.uuid().references('tasks').merge('immutable'),
    relation_type: c.enum('task_relation_type').merge('immutable'),
  },
)

const comments = table(
  'comments',
  { group: 'core', visibility: everyone, write: members, indexes: [['entity_id', 'created_at']] },
  {
    entity_type: c.enum('entity_type').merge('immutable'),
    entity_id: c.uuid().merge('immutable'),
    parent_id: c.uuid().null().merge('immutable'),
    body: c.text(),
    actor_type: c.enum('actor_type').merge('immutable'),
    actor_person_id: c.uuid().null().references('people').merge('immutable'),
    actor_agent_id: c.uuid().null().references('agents').merge('immutable'),
    run_id: c.uuid().null().merge('immutable'),
    /** Slugs of agents and ids of people that the body mentions. */
    mentions: c.texts().default("'{}'").merge('immutable'),
  },
)

/**
 * A link from an owner to a target. With `is_deliverable` it is something an agent (or person) submits for approval:
 * `submitted → approved | revision_requested | rejected`, rounds numbered by `review_round`, a newer version names the one it
 * replaces in `supersedes_id` (a superseded one no longer counts).
 * A deliverable of `target_type = 'text'` carries its markdown in `body`; `agent_file` names a path in `url`.
 */
const entityLinks = table(
  'entity_links',
  { group: 'core', visibility: everyone, write: members, indexes: [['owner_id'], ['target_id']] },
  {
    owner_type: c.enum('link_owner_type').merge('immutable'),
    owner_id: c.uuid().merge('immutable'),
    target_type: c.enum('link_target_type').merge('immutable'),
    target_id: c.uuid().null().merge('immutable'),
    url: c.text().null(),
    label: c.text().null(),
    body: c.text().null(),
    sort_order: c.int().default('0').merge('last'),
    is_deliverable: c.bool().default('false').merge('immutable'),
    review_status: c.enum('review_status').null().merge('strict'),
    review_round: c.int().default('1'),
    review_note: c.text().null(),
    reviewed_by: c.uuid().null().references('people'),
    reviewed_at: c.time().null(),
    submitted_by_agent_id: c.uuid().null().references('agents').merge('immutable'),
    submitted_by_person_id: c.uuid().null().references('people').merge('immutable'),
    run_id: c.uuid().null().merge('immutable'),
    supersedes_id: c.uuid().null().merge('immutable'),
  },
)

/**
 * Why an agent should wake. Its id is computed from its cause (`shared/domain/derive.ts`), so that two sides deriving it derive one row.
 * Everything after `context` is written by the gateway that hosts the agent only.
 */
const agentInboxItems = table(
  'agent_inbox_items',
  {
    group: 'core',
    visibility: everyone,
    write: { browser: 'none', gateway: 'own' },
    unique: [{ columns: ['dedup_key'] }],
    indexes: [['gateway_id', 'status'], ['agent_id', 'status'], ['task_id']],
  },
  {
    gateway_id: c.uuid().null().references('gateways').merge('server'),
    agent_id: c.uuid().references('agents').merge('immutable'),
    event_type: c.enum('inbox_event_type').merge('immutable'),
    dedup_key: c.text().merge('immutable'),
    task_id: c.uuid().null().merge('immutable'),
    comment_id: c.uuid().null().merge('immutable'),
    link_id: c.uuid().null().merge('immutable'),
    priority: c.enum('task_priority').default("'medium'").merge('immutable'),
    context: c.json<Record<string, unknown>>().default("'{}'").merge('immutable'),
    status: c.enum('inbox_item_status').default("'pending'").merge('owner'),
    attempt_count: c.int().default('0').merge('owner'),
    max_attempts: c.int().default('3').merge('owner'),
    lease_owner: c.text().null().merge('owner'),
    lease_token: c.int().default('0').merge('owner'),
    leased_until: c.time().null().merge('owner'),
    not_before: c.time().null().merge('owner'),
    completed_at: c.time().null().merge('owner'),
    run_id: c.uuid().null().merge('owner'),
    summary: c.text().null().merge('owner'),
    error_message: c.text().null().merge('owner'),
  },
)

/** Pages, skills, files and sources. The text of pages lives in Yjs documents (a later issue); `plain_text` is derived. */
const knowledgeItems = table(
  'knowledge_items',
  { group: 'content', visibility: everyone, write: members, indexes: [['kind', 'updated_at']] },
  {
    kind: c.enum('knowledge_kind').merge('immutable'),
    title: c.text(),
    icon: c.text().null(),
    scope: c.enum('knowledge_scope').default("'library'"),
    tags: c.texts().default("'{}'").merge('add_remove'),
    plain_text: c.text().null(),
    mime_type: c.text().null(),
    file_size: c.bigint().null(),
    archived_at: c.time().null(),
  },
)

/** What somebody should know. Read state is per person, in `notification_reads`. `person_id` null: everybody of the workspace. */
const notifications = table(
  'notifications',
  { group: 'core', visibility: everyone, write: { browser: 'none', gateway: 'tenant' }, indexes: [['created_at']] },
  {
    type: c.enum('notification_type').merge('immutable'),
    title: c.text().merge('immutable'),
    body: c.text().null().merge('immutable'),
    person_id: c.uuid().null().merge('immutable'),
    entity_type: c.enum('entity_type').null().merge('immutable'),
    entity_id: c.uuid().null().merge('immutable'),
    actor_type: c.enum('actor_type').default("'system'").merge('immutable'),
    actor_agent_id: c.uuid().null().merge('immutable'),
    dedup_key: c.text().null().merge('immutable'),
  },
)

/** Id = uuid v5 of notification and person, so that reading twice is one row. */
const notificationReads = table(
  'notification_reads',
  { group: 'core', visibility: { browser: 'person', gateway: 'none' }, write: { browser: 'viewer', gateway: 'none' } },
  {
    notification_id: c.uuid().references('notifications').merge('immutable'),
    person_id: c.uuid().references('people').merge('immutable'),
    read_at: c.time().null(),
    dismissed_at: c.time().null(),
  },
)

/** Who did what, written by the server from each mutation. `occurred_at` is when it was made, `created_at` when it arrived. */
const auditLog = table(
  'audit_log',
  {
    group: 'history',
    visibility: everyone,
    write: { browser: 'none', gateway: 'none' },
    indexes: [['entity_id', 'occurred_at'], ['occurred_at']],
  },
  {
    actor_type: c.enum('actor_type').merge('immutable'),
    actor_id: c.uuid().null().merge('immutable'),
    replica_id: c.uuid().null().merge('immutable'),
    run_id: c.uuid().null().merge('immutable'),
    entity_type: c.text().merge('immutable'),
    entity_id: c.uuid().merge('immutable'),
    action: c.enum('audit_action').merge('immutable'),
    summary: c.text().null().merge('immutable'),
    changes: c.json<Record<string, Json>>().default("'{}'").merge('immutable'),
    occurred_at: c.time().merge('immutable'),
  },
)

/** Devices: one row for each replica that has ever pushed or pulled. */
const replicas = table(
  'replicas',
  { group: 'core', visibility: everyone, write: { browser: 'none', gateway: 'none' } },
  {
    replica_id: c.uuid().merge('immutable'),
    kind: c.text().merge('server'),
    label: c.text().null().merge('server'),
    person_id: c.uuid().null().merge('server'),
    gateway_id: c.uuid().null().merge('server'),
    last_seen_at: c.time().null().merge('server'),
    revoked_at: c.time().null().merge('server'),
  },
)

/** How far the server has come with a replica's mutations. One row per replica (`id` = `replica_id`); the acknowledgement of the write path. */
const clientProgress = table(
  'client_progress',
  {
    group: 'core',
    visibility: { browser: 'replica', gateway: 'replica' },
    write: { browser: 'none', gateway: 'none' },
  },
  {
    replica_id: c.uuid().merge('server'),
    last_seq: c.bigint().merge('server'),
    /** Of the mutation with that number, so that a copied replica sees that it was not its own. */
    last_mutation_id: c.uuid().null().merge('server'),
  },
)

/** What became of a mutation that was not simply applied: rejections, and columns that lost. Insert only. */
const mutationResults = table(
  'mutation_results',
  {
    group: 'core',
    visibility: { browser: 'replica', gateway: 'replica' },
    write: { browser: 'none', gateway: 'none' },
  },
  {
    replica_id: c.uuid().merge('server'),
    seq: c.bigint().merge('server'),
    mutation_id: c.uuid().merge('server'),
    outcome: c.enum('mutation_outcome').merge('server'),
    code: c.text().null().merge('server'),
    message: c.text().null().merge('server'),
    detail: c.json<Record<string, Json>>().default("'{}'").merge('server'),
  },
)

/** A value that lost against a concurrent one (P4): kept where a person can find it. */
const conflicts = table(
  'conflicts',
  { group: 'history', visibility: everyone, write: { browser: 'member', gateway: 'none' }, indexes: [['row_id']] },
  {
    table_name: c.text().merge('server'),
    row_id: c.uuid().merge('server'),
    column_name: c.text().merge('server'),
    winner: c.json().null().merge('server'),
    loser: c.json().null().merge('server'),
    winner_actor: c.json<Record<string, Json>>().default("'{}'").merge('server'),
    loser_actor: c.json<Record<string, Json>>().default("'{}'").merge('server'),
    winner_hlc: c.text().null().merge('server'),
    loser_hlc: c.text().null().merge('server'),
    resolved_at: c.time().null(),
  },
)

export const workTables = {
  streams,
  contacts,
  tasks,
  task_relations: taskRelations,
  comments,
  entity_links: entityLinks,
  agent_inbox_items: agentInboxItems,
  knowledge_items: knowledgeItems,
  notifications,
  notification_reads: notificationReads,
  audit_log: auditLog,
  replicas,
  client_progress: clientProgress,
  mutation_results: mutationResults,
  conflicts,
} as const
