/**
 * Every table that replicates, once.
 *
 * Names follow the existing product where they make sense, so that an import is a copy; what its defect list names is put right here:
 * people have ids, rows a gateway may act on name that gateway, 'online', 'overdue' and 'stale' are derived and so are not columns,
 * dependencies are stored in one direction, and a review has numbered rounds.
 *
 * Column comments say what is not obvious from the name. `createdBy`: `actor_*` columns say who made a row: a person, an agent or the system.
 */
import { c, type InsertOf, type Json, type RowOf, table } from './columns.ts'
import { secretTables } from './tables-secrets.ts'
import { trustTables } from './tables-trust.ts'
import { workTables } from './tables-work.ts'

const everyone = { browser: 'tenant', gateway: 'tenant' } as const

const workspace = table(
  'workspace',
  { group: 'core', visibility: everyone, write: { browser: 'admin', gateway: 'none' }, unique: [{ columns: [] }] },
  {
    name: c.text(),
    slug: c.text().merge('server'),
    description: c.text().null(),
    /** False until the owner has been created. */
    initialized: c.bool().default('false').merge('server'),
    owner_name: c.text().null(),
    owner_preferred_name: c.text().null(),
    owner_timezone: c.text().default("'UTC'"),
    settings: c.json<Record<string, unknown>>().default("'{}'"),
    default_agent_budget_usd: c.numeric().null(),
    default_soft_threshold_pct: c.int().default('80'),
    default_hard_cutoff: c.bool().default('true'),
  },
)

/** The humans. `user_id` is better-auth's; credentials and sessions never replicate. */
const people = table(
  'people',
  {
    group: 'core',
    visibility: everyone,
    write: { browser: 'admin', gateway: 'none' },
    unique: [{ columns: ['email'] }],
  },
  {
    user_id: c.text().null().merge('server'),
    name: c.text(),
    email: c.text().merge('server'),
    role: c.enum('role').merge('strict'),
    avatar_color: c.text().null(),
    timezone: c.text().null(),
  },
)

/**
 * A machine that runs agents. 'Online' is derived from `last_seen_at`; `status` is what the gateway says of itself.
 * `meta`: {version, hostname, os, memory_mb, disk_free_mb, models: [{provider, model, demo}], runtimes: [...], git: string|null, problems: [{code, message}]}
 */
const gateways = table(
  'gateways',
  { group: 'core', visibility: everyone, write: { browser: 'admin', gateway: 'own' }, unique: [{ columns: ['slug'] }] },
  {
    /** Equal to `id`, so that the rule 'a gateway writes rows whose gateway_id it is' holds for its own row as well. */
    gateway_id: c.uuid().merge('immutable'),
    slug: c.text().merge('immutable'),
    label: c.text(),
    /** X25519, base64url; the private half never leaves the gateway. What is meant for it alone is sealed for this key. */
    public_key: c.text().null().merge('server'),
    status: c.enum('gateway_status').default("'provisioning'").merge('owner'),
    last_seen_at: c.time().null().merge('owner'),
    started_at: c.time().null().merge('owner'),
    /** People ask for a pause here; the gateway answers in `status`. */
    pause_requested_at: c.time().null(),
    meta: c.json<Record<string, unknown>>().default("'{}'").merge('owner'),
  },
)

/** What the wizard offers; written by each gateway from its template branches. A broken one is a row with `error`. */
const agentTemplates = table(
  'agent_templates',
  {
    group: 'core',
    visibility: everyone,
    write: { browser: 'none', gateway: 'own' },
    unique: [{ columns: ['gateway_id', 'slug'] }],
  },
  {
    gateway_id: c.uuid().references('gateways').merge('immutable'),
    slug: c.text().merge('immutable'),
    name: c.text().merge('owner'),
    description: c.text().default("''").merge('owner'),
    emoji: c.text().default("''").merge('owner'),
    team: c.text().null().merge('owner'),
    domains: c.texts().default("'{}'").merge('owner'),
    capabilities: c.texts().default("'{}'").merge('owner'),
    error: c.text().null().merge('owner'),
  },
)

/**
 * An agent belongs to one gateway at a time. `status` is the gateway's answer; people ask by `pause_requested_at`, and by commands.
 * `meta`: {emoji, team, template, channel, color}
 */
const agents = table(
  'agents',
  {
    group: 'core',
    visibility: everyone,
    write: { browser: 'member', gateway: 'own' },
    unique: [{ columns: ['slug'], where: 'deleted_at is null' }],
    indexes: [['gateway_id']],
  },
  {
    gateway_id: c.uuid().null().references('gateways').merge('strict'),
    /** Raised by the server when the agent moves; reports of an older epoch do not count. */
    epoch: c.int().default('1').merge('server'),
    name: c.text(),
    slug: c.text().merge('immutable'),
    description: c.text().null(),
    status: c.enum('agent_status').default("'provisioning'").merge('owner'),
    /** In one sentence: why the status is what it is ("Template 'writer' is broken: agent.json is not JSON"). */
    status_reason: c.text().null().merge('owner'),
    last_seen_at: c.time().null().merge('owner'),
    /** Set: somebody wants it paused (by whom: `paused_by`); null: it may work. */
    pause_requested_at: c.time().null(),
    paused_by: c.uuid().null(),
    runtime: c.enum('agent_runtime').default("'builtin'"),
    model: c.text().null(),
    thinking: c.enum('thinking').default("'none'"),
    /** What it may use without asking: `shared/domain/tool-policy.ts`. Set by people only. */
    tool_policy: c.json<Record<string, Json>>().default("'{}'"),
    reports_to_id: c.uuid().null().references('agents'),
    domains: c.texts().default("'{}'").merge('add_remove'),
    capabilities: c.texts().default("'{}'").merge('add_remove'),
    /** The gates' verdict, so that every screen can say why the agent isn't working: `gates.ts` in shared/domain names the codes. */
    gate: c.text().null().merge('owner'),
    gate_detail: c.text().null().merge('owner'),
    gate_until: c.time().null().merge('owner'),
    meta: c.json<Record<string, unknown>>().default("'{}'"),
  },
)

/** The files of an agent's worktree as its gateway last committed them, so that they can be read anywhere, offline too. */
const agentFiles = table(
  'agent_files',
  {
    group: 'content',
    visibility: everyone,
    write: { browser: 'none', gateway: 'own' },
    unique: [{ columns: ['agent_id', 'path'] }],
    indexes: [['agent_id', 'path']],
  },
  {
    gateway_id: c.uuid().references('gateways').merge('immutable'),
    agent_id: c.uuid().references('agents').merge('immutable'),
    path: c.text().merge('immutable'),
    size: c.bigint().merge('owner'),
    /** Git's blob id. */
    sha: c.text().merge('owner'),
    /** Null: not text, or larger than 64 KiB. */
    content: c.text().null().merge('owner'),
    commit: c.text().null().merge('owner'),
  },
)

/**
 * Work for a gateway. Inserted by people (or by an agent through its gateway), addressed to one gateway, run by its runner.
 * `progress`: {steps: [{key, label, state: 'waiting'|'running'|'done'|'failed'|'skipped', detail?, at?}]}
 */
const agentCommands = table(
  'agent_commands',
  {
    group: 'core',
    visibility: everyone,
    write: { browser: 'member', gateway: 'own' },
    indexes: [
      ['gateway_id', 'status'],
      ['agent_id', 'created_at'],
    ],
  },
  {
    gateway_id: c.uuid().references('gateways').merge('immutable'),
    agent_id: c.uuid().null().references('agents').merge('immutable'),
    action: c.enum('command_action').merge('immutable'),
    /** Never holds a secret. */
    payload: c.json<Record<string, unknown>>().default("'{}'").merge('immutable'),
    requested_by: c.uuid().null().merge('immutable'),
    requested_by_agent_id: c.uuid().null().merge('immutable'),
    /** How a person cancels: the gateway sees it and answers in `status`. */
    cancel_requested_at: c.time().null(),
    status: c.enum('command_status').default("'pending'").merge('owner'),
    attempt_count: c.int().default('0').merge('owner'),
    max_attempts: c.int().default('2').merge('owner'),
    lease_owner: c.text().null().merge('owner'),
    /** Fencing number: a process that holds an older one may not report. */
    lease_token: c.int().default('0').merge('owner'),
    leased_until: c.time().null().merge('owner'),
    started_at: c.time().null().merge('owner'),
    completed_at: c.time().null().merge('owner'),
    exit_code: c.int().null().merge('owner'),
    progress: c.json<{ steps?: CommandStep[] }>().default("'{}'").merge('owner'),
    result: c.json<Record<string, unknown>>().null().merge('owner'),
    error_message: c.text().null().merge('owner'),
  },
)

export interface CommandStep {
  key: string
  label: string
  state: 'waiting' | 'running' | 'done' | 'failed' | 'skipped'
  detail?: string
  at?: string
}

/** The output of a command, in pieces of at most 4 KiB, in the order of `seq`. Insert only. */
const commandOutput = table(
  'command_output',
  {
    group: 'history',
    visibility: everyone,
    write: { browser: 'none', gateway: 'own' },
    indexes: [['command_id', 'seq']],
  },
  {
    gateway_id: c.uuid().references('gateways').merge('immutable'),
    command_id: c.uuid().references('agent_commands').merge('immutable'),
    seq: c.int().merge('immutable'),
    stream: c.enum('output_stream').merge('immutable'),
    text: c.text().merge('immutable'),
  },
)

/** One wake of one agent. `summary` is what it said at the end. */
const agentRuns = table(
  'agent_runs',
  {
    group: 'history',
    visibility: everyone,
    write: { browser: 'none', gateway: 'own' },
    indexes: [['agent_id', 'started_at'], ['task_id']],
  },
  {
    gateway_id: c.uuid().references('gateways').merge('immutable'),
    agent_id: c.uuid().references('agents').merge('immutable'),
    inbox_item_id: c.uuid().null().merge('immutable'),
    task_id: c.uuid().null().merge('immutable'),
    runtime: c.enum('agent_runtime').merge('immutable'),
    provider: c.text().null().merge('owner'),
    model: c.text().null().merge('owner'),
    /** True for the built-in demo model: no real model was asked. */
    demo: c.bool().default('false').merge('owner'),
    status: c.enum('run_status').default("'running'").merge('owner'),
    started_at: c.time().default('now()').merge('immutable'),
    ended_at: c.time().null().merge('owner'),
    turns: c.int().default('0').merge('owner'),
    tool_calls: c.int().default('0').merge('owner'),
    input_tokens: c.bigint().default('0').merge('owner'),
    output_tokens: c.bigint().default('0').merge('owner'),
    cost_usd: c.numeric().null().merge('owner'),
    summary: c.text().null().merge('owner'),
    error_message: c.text().null().merge('owner'),
  },
)

/** What happened in a run, piece by piece. Insert only; `data` depends on `kind` (see shared/domain/runs.ts). */
const agentRunEvents = table(
  'agent_run_events',
  { group: 'history', visibility: everyone, write: { browser: 'none', gateway: 'own' }, indexes: [['run_id', 'seq']] },
  {
    gateway_id: c.uuid().references('gateways').merge('immutable'),
    run_id: c.uuid().references('agent_runs').merge('immutable'),
    seq: c.int().merge('immutable'),
    kind: c.enum('run_event_kind').merge('immutable'),
    data: c.json<Record<string, unknown>>().default("'{}'").merge('immutable'),
  },
)

/** One model call. Append only; `cost_usd` null means unmetered. */
const agentUsage = table(
  'agent_usage',
  {
    group: 'history',
    visibility: everyone,
    write: { browser: 'none', gateway: 'own' },
    indexes: [['agent_id', 'occurred_at']],
  },
  {
    gateway_id: c.uuid().references('gateways').merge('immutable'),
    agent_id: c.uuid().references('agents').merge('immutable'),
    run_id: c.uuid().null().merge('immutable'),
    task_id: c.uuid().null().merge('immutable'),
    provider: c.text().merge('immutable'),
    model: c.text().merge('immutable'),
    input_tokens: c.bigint().default('0').merge('immutable'),
    output_tokens: c.bigint().default('0').merge('immutable'),
    cache_read: c.bigint().default('0').merge('immutable'),
    cache_write: c.bigint().default('0').merge('immutable'),
    cost_usd: c.numeric().null().merge('immutable'),
    occurred_at: c.time().default('now()').merge('immutable'),
  },
)

/** A limit per agent and month. What was spent is derived from `agent_usage`, not stored. */
const agentBudgets = table(
  'agent_budgets',
  {
    group: 'core',
    visibility: everyone,
    write: { browser: 'admin', gateway: 'none' },
    unique: [{ columns: ['agent_id'], where: 'deleted_at is null' }],
  },
  {
    agent_id: c.uuid().references('agents').merge('immutable'),
    /** Null: no limit in money. */
    monthly_limit_usd: c.numeric().null(),
    /** Null: no limit in tokens (which also counts unmetered models). */
    monthly_limit_tokens: c.bigint().null(),
    soft_threshold_pct: c.int().default('80'),
    hard_cutoff: c.bool().default('true'),
  },
)

export const tables = {
  workspace,
  people,
  gateways,
  agent_templates: agentTemplates,
  agents,
  agent_files: agentFiles,
  agent_commands: agentCommands,
  command_output: commandOutput,
  agent_runs: agentRuns,
  agent_run_events: agentRunEvents,
  agent_usage: agentUsage,
  agent_budgets: agentBudgets,
  ...workTables,
  ...secretTables,
  ...trustTables,
} as const

export type TableName = keyof typeof tables
export type Row<Name extends TableName> = RowOf<(typeof tables)[Name]>
export type Insert<Name extends TableName> = InsertOf<(typeof tables)[Name]>
export const tableNames = Object.keys(tables) as TableName[]
export const isTableName = (name: string): name is TableName => Object.hasOwn(tables, name)
