/** A gateway's context for tests: a real replica and real workspaces, a captured log, no server. */
import { randomBytes, randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { uuidV7 } from '@hq/shared/domain/ids.ts'
import type { Replica } from '@hq/shared/sync/contract.ts'
import { onTestFinished } from 'vitest'
import { createAgentStops } from '../agent-stops.ts'
import { createProblems } from '../problems.ts'
import type { GatewayContext, RuntimeRegistry } from '../service.ts'
import { agentAuthor } from '../workspaces/contract.ts'
import { publishFiles } from '../workspaces/publish.ts'
import { createWorkspaces } from '../workspaces/workspaces.ts'
import { temporaryFolder } from './folder.ts'
import { openTestReplica } from './replica.ts'
import { smallTemplates, writeFiles } from './templates.ts'

export interface TestGateway {
  readonly context: GatewayContext
  readonly replica: Replica
  readonly log: { level: string; message: string; detail?: unknown }[]
  /** Moves the clock of the gateway. */
  advance(milliseconds: number): void
  /** The same gateway as a later process of the same folder sees it. */
  restarted(): Promise<GatewayContext>
  addAgent(slug: string, more?: Record<string, unknown>): Promise<string>
  addCommand(action: string, agentId: string | null, more?: Record<string, unknown>): Promise<string>
  /** Waits until the row satisfies `until`, woken by changes. */
  command(id: string, until?: (row: Record<string, unknown>) => boolean): Promise<Record<string, unknown>>
  row(table: string, id: string): Promise<Record<string, unknown>>
}

export const newId = (): string => uuidV7(Date.now(), randomBytes(10))

export const noModels: RuntimeRegistry = { runtimes: () => ['builtin'], models: async () => [] }

export async function createTestGateway(
  options: { templates?: Record<string, string>; afterStep?: (step: string) => void } = {},
): Promise<TestGateway> {
  const root = await temporaryFolder()
  const templates = join(root, 'templates')
  await writeFiles(templates, options.templates ?? smallTemplates())
  const gatewayId = newId()
  const tenantId = newId()
  const replica = await openTestReplica({ ownerId: gatewayId, tenantId })
  onTestFinished(() => replica.close())
  const log: TestGateway['log'] = []
  let offset = 0
  const home = join(root, 'home')
  const now = (): number => Date.now() + offset

  async function makeContext(afterStep?: (step: string) => void): Promise<GatewayContext> {
    const workspaces = await createWorkspaces({ home, templates, now, ...(afterStep ? { afterStep } : {}) })
    await workspaces.seedTemplates()
    const context: GatewayContext = {
      replica,
      gatewayId,
      tenantId,
      slug: 'local',
      home,
      workspaces,
      publishFiles: async (agentId, message) => {
        const [agent] = await replica.query<{ id: string; slug: string; name: string }>(
          'select * from agents where id = $1',
          [agentId],
        )
        if (!agent) throw new Error('no such agent')
        await workspaces.commit(agent.slug, message, agentAuthor(agent))
        await publishFiles(context, agent)
      },
      agentStops: createAgentStops(),
      problems: createProblems(),
      log: (level, message, detail) => log.push({ level, message, ...(detail ? { detail } : {}) }),
      now,
      newId,
      processToken: `${replica.identity.replicaId}/${process.pid}-${randomUUID().slice(0, 8)}`,
      signal: new AbortController().signal,
      env: {},
    }
    return context
  }

  const context = await makeContext(options.afterStep)
  await replica.write(async (tx) => {
    await tx.query(
      `insert into workspace (id, tenant_id, name, slug, owner_name, owner_preferred_name) values ($1, $1, 'Acme', 'acme', 'Ada Lovelace', 'Ada')`,
      [tenantId],
    )
    await tx.query(
      `insert into gateways (id, tenant_id, gateway_id, slug, label, status) values ($1, $2, $1, 'local', 'Local', 'ready')`,
      [gatewayId, tenantId],
    )
  })

  const insert = async (table: string, values: Record<string, unknown>): Promise<string> => {
    const names = Object.keys(values)
    await replica.write((tx) =>
      tx.query(
        `insert into ${table} (${names.join(', ')}) values (${names.map((_, index) => `$${index + 1}`).join(', ')})`,
        Object.values(values) as never,
      ),
    )
    return String(values['id'])
  }

  const row = async (table: string, id: string): Promise<Record<string, unknown>> => {
    const [found] = await replica.query(`select * from ${table} where id = $1`, [id])
    if (!found) throw new Error(`no row ${id} in ${table}`)
    return found
  }

  const isEnded = (found: Record<string, unknown>): boolean =>
    !['pending', 'leased', 'running'].includes(String(found['status']))

  return {
    context,
    replica,
    log,
    row,
    advance: (milliseconds) => {
      offset += milliseconds
    },
    restarted: () => makeContext(),
    addAgent: (slug, more = {}) =>
      insert('agents', {
        id: newId(),
        tenant_id: tenantId,
        gateway_id: gatewayId,
        name: slug,
        slug,
        meta: JSON.stringify({ template: 'writer', emoji: '🦊' }),
        ...more,
      }),
    addCommand: (action, agentId, more = {}) =>
      insert('agent_commands', {
        id: newId(),
        tenant_id: tenantId,
        gateway_id: gatewayId,
        agent_id: agentId,
        action,
        ...more,
      }),
    command: (id, until = isEnded) =>
      new Promise((resolve, reject) => {
        let done = false
        const look = (): void => {
          row('agent_commands', id).then((found) => {
            if (done || !until(found)) return
            done = true
            stop()
            resolve(found)
          }, reject)
        }
        const stop = replica.onChange((changes) => changes.has('agent_commands') && look())
        look()
      }),
  }
}
