/** For tests: a gateway's context over a PGlite replica, rows to begin with, and a runtime that does what the test says. */
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { derivedId, uuidV7 } from '@hq/shared/domain/ids.ts'
import type { Insert, TableName } from '@hq/shared/schema/tables.ts'
import type { Replica, SqlValue, SyncStatus } from '@hq/shared/sync/contract.ts'
import type { AgentRuntime, RunHooks, RunInput, RunOutcome } from '../runtime/runtime.ts'
import type { GatewayContext, Log } from '../service.ts'
import { openTestReplica } from '../testing/replica.ts'
import type { Workspaces } from '../workspaces/contract.ts'

export interface TestGateway {
  readonly context: GatewayContext
  readonly replica: Replica
  /** Moves the gateway's clock on by so many ms. */
  advance(ms: number): void
  /** The same gateway as a new process: same rows, another process token. */
  newProcess(): GatewayContext
  /** As if the workspace were not loaded yet, until the returned function is called. */
  notLoadedYet(): () => void
  readonly logged: string[]
  readonly problems: Map<string, string>
  insert<T extends TableName>(table: T, row: Omit<Insert<T>, 'id' | 'tenant_id'> & { id?: string }): Promise<string>
  agent(name: string, extra?: Partial<Insert<'agents'>>): Promise<string>
  task(title: string, agentId: string, extra?: Partial<Insert<'tasks'>>): Promise<string>
  /** An inbox item as the server derives it. */
  item(agentId: string, taskId: string | null, extra?: Partial<Insert<'agent_inbox_items'>>): Promise<string>
  one<T = Record<string, unknown>>(sql: string, params?: readonly SqlValue[]): Promise<T>
  close(): Promise<void>
}

const noWorkspaces = {
  exists: () => Promise.resolve(false),
  folder: (slug: string) => join(tmpdir(), `no-such-${slug}`),
} as unknown as Workspaces

export async function openTestGateway(
  options: { workspaces?: Workspaces; env?: Record<string, string>; gatewayId?: string } = {},
): Promise<TestGateway> {
  const gatewayId = options.gatewayId ?? randomUUID()
  const opened = await openTestReplica({ ownerId: gatewayId })
  const statusListeners = new Set<(status: SyncStatus) => void>()
  let loaded = true
  const replica: Replica = {
    ...opened,
    status: () => ({ ...opened.status(), initial: { ...opened.status().initial, done: loaded } }),
    onStatus: (listener) => {
      statusListeners.add(listener)
      return () => statusListeners.delete(listener)
    },
  }
  const { tenantId } = replica.identity
  const home = await mkdtemp(join(tmpdir(), 'hq-gateway-'))
  const logged: string[] = []
  const problems = new Map<string, string>()
  const stops = new Set<Parameters<GatewayContext['agentStops']['onStop']>[0]>()
  let shift = 0
  const now = (): number => Date.now() + shift
  const log: Log = (level, message, detail) => void logged.push(`${level} ${message} ${JSON.stringify(detail ?? {})}`)
  const make = (): GatewayContext => ({
    replica,
    gatewayId,
    tenantId,
    slug: 'test',
    home,
    workspaces: options.workspaces ?? noWorkspaces,
    publishFiles: () => Promise.resolve(),
    agentStops: {
      onStop: (listener) => {
        stops.add(listener)
        return () => stops.delete(listener)
      },
      stop: async (agentId, reason, code) => {
        await Promise.all([...stops].map((listener) => listener(agentId, reason, code)))
      },
    },
    problems: {
      report: (code, message) => void problems.set(code, message),
      clear: (code) => void problems.delete(code),
      list: () => [...problems].map(([code, message]) => ({ code, message })),
      onChange: () => () => undefined,
    },
    log,
    now,
    newId: () => uuidV7(now(), randomBytes(10)),
    processToken: randomUUID(),
    signal: new AbortController().signal,
    env: options.env ?? {},
  })

  const gateway: TestGateway = {
    context: make(),
    replica,
    advance: (ms) => {
      shift += ms
    },
    newProcess: make,
    notLoadedYet: () => {
      loaded = false
      return () => {
        loaded = true
        for (const listener of statusListeners) listener(replica.status())
      }
    },
    logged,
    problems,
    async insert(table, row) {
      const values: Record<string, unknown> = {
        id: randomUUID(),
        tenant_id: tenantId,
        created_at: new Date(now()).toISOString(),
        ...row,
      }
      const names = Object.keys(values)
      await replica.write((tx) =>
        tx.query(
          `insert into ${table} (${names.map((name) => `"${name}"`).join(', ')}) values (${names.map((_, index) => `$${index + 1}`).join(', ')})`,
          names.map((name) => values[name] as SqlValue),
        ),
      )
      return values['id'] as string
    },
    agent: (name, extra) =>
      gateway.insert('agents', { gateway_id: gatewayId, name, slug: name.toLowerCase(), status: 'ready', ...extra }),
    task: (title, agentId, extra) =>
      gateway.insert('tasks', { title, assignee_type: 'agent', assignee_agent_id: agentId, ...extra }),
    item: (agentId, taskId, extra = {}) => {
      const event = extra.event_type ?? 'task_assignment'
      const key = extra.dedup_key ?? `${event}:${taskId ?? randomUUID()}:${agentId}:0`
      return gateway.insert('agent_inbox_items', {
        id: derivedId('inbox', tenantId, key),
        gateway_id: gatewayId,
        agent_id: agentId,
        event_type: event,
        dedup_key: key,
        task_id: taskId,
        context: { actor_type: 'human' },
        ...extra,
      })
    },
    async one<T>(sql: string, params?: readonly SqlValue[]): Promise<T> {
      const [row] = await replica.query<T>(sql, params)
      if (row === undefined) throw new Error(`no row: ${sql}`)
      return row
    },
    async close() {
      await replica.close()
      await rm(home, { recursive: true, force: true })
    },
  }
  await gateway.insert('workspace', { name: 'Test', slug: 'test', owner_name: 'Ada' })
  await gateway.insert('gateways', {
    id: gatewayId,
    gateway_id: gatewayId,
    slug: 'test',
    label: 'Test',
    status: 'ready',
  })
  return gateway
}

/** A runtime that runs `work` for each wake and counts its model calls. */
export function scriptedRuntime(
  work: (input: RunInput, hooks: RunHooks, signal: AbortSignal) => Promise<Partial<RunOutcome> | undefined>,
): AgentRuntime & { readonly woken: RunInput[] } {
  const woken: RunInput[] = []
  return {
    name: 'builtin',
    woken,
    async run(input, hooks, signal) {
      woken.push(input)
      try {
        await hooks.beforeModelCall()
        return { status: 'done', summary: 'done', turns: 1, toolCalls: 0, ...(await work(input, hooks, signal)) }
      } catch (error) {
        if (error instanceof Error && error.name === 'RunStopped')
          return { status: 'cancelled', summary: null, turns: 0, toolCalls: 0 }
        throw error
      }
    },
  }
}

/** Waits until `check` holds; the error says what never came. */
export async function until(what: string, check: () => Promise<boolean> | boolean, ms = 10_000): Promise<void> {
  const end = Date.now() + ms
  while (!(await check())) {
    if (Date.now() > end) throw new Error(`it never came: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
