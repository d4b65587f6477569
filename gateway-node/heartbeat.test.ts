import type { SyncStatus } from '@hq/shared/sync/contract.ts'
import { expect, it, onTestFinished } from 'vitest'
import { createHeartbeat } from './heartbeat.ts'
import type { GatewayContext } from './service.ts'
import { createTestGateway, type TestGateway } from './testing/context.ts'
import { publishTemplates } from './workspaces/publish-templates.ts'

const runtimes = { runtimes: () => ['builtin'], models: async () => [{ provider: 'demo', model: 'demo', demo: true }] }

/** The gateway's replica as if it were connected, or not. */
function connected(gateway: TestGateway, connection: SyncStatus['connection']) {
  const listeners = new Set<(status: SyncStatus) => void>()
  let now = connection
  const status = (): SyncStatus => ({ ...gateway.replica.status(), connection: now })
  const replica: GatewayContext['replica'] = {
    ...gateway.replica,
    status,
    onStatus: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
  const become = (next: SyncStatus['connection']): void => {
    now = next
    for (const listener of listeners) listener(status())
  }
  return { context: { ...gateway.context, replica }, become }
}

async function start(context: GatewayContext): Promise<void> {
  const heartbeat = createHeartbeat(context, runtimes, { everyMs: 3_600_000 })
  onTestFinished(() => heartbeat.stop())
  await heartbeat.start()
}

/** The gateway's row once it is so. */
const gatewayRow = (
  gateway: TestGateway,
  is: (row: Record<string, unknown>) => boolean,
): Promise<Record<string, unknown>> =>
  new Promise((resolve, reject) => {
    const look = (): void => {
      gateway.row('gateways', gateway.context.gatewayId).then((row) => {
        if (!is(row)) return
        stop()
        resolve(row)
      }, reject)
    }
    const stop = gateway.replica.onChange(look)
    look()
  })

const meta = (row: Record<string, unknown>): Record<string, unknown> => row['meta'] as Record<string, unknown>

it('says what it is, and that it was seen only while it is connected (H1)', async () => {
  const gateway = await createTestGateway()
  const { context, become } = connected(gateway, 'offline')
  await start(context)
  const row = await gatewayRow(gateway, (found) => JSON.stringify(meta(found)['models'] ?? []).includes('demo'))
  expect(row).toMatchObject({
    last_seen_at: null,
    started_at: expect.anything(),
    meta: {
      version: '0.1.0',
      runtimes: ['builtin'],
      problems: [],
      git: expect.stringMatching(/^\d/),
      memory_mb: expect.any(Number),
    },
  })
  become('online')
  await gatewayRow(gateway, (found) => found['last_seen_at'] !== null)
})

it('answers a pause, and publishes problems, at once (H2)', async () => {
  const gateway = await createTestGateway()
  const { context } = connected(gateway, 'online')
  await start(context)
  await gatewayRow(gateway, ({ last_seen_at }) => last_seen_at !== null)
  const ask = (value: string) =>
    gateway.replica.write((tx) => tx.query(`update gateways set pause_requested_at = ${value}`))
  await ask('now()')
  await gatewayRow(gateway, ({ status }) => status === 'paused')
  await ask('null')
  await gatewayRow(gateway, ({ status }) => status === 'ready')
  context.problems.report('disk', 'The disk is nearly full. Free some space.')
  await gatewayRow(gateway, (row) => JSON.stringify(meta(row)['problems']).includes('nearly full'))
  context.problems.clear('disk')
  await gatewayRow(gateway, (row) => JSON.stringify(meta(row)['problems']) === '[]')
})

it('waits for its row, and never makes it (H3)', async () => {
  const gateway = await createTestGateway()
  const { gatewayId, tenantId } = gateway.context
  await gateway.replica.query('delete from gateways where id = $1', [gatewayId])
  await start(connected(gateway, 'online').context)
  expect(await gateway.replica.query('select id from gateways')).toEqual([])
  await gateway.replica.write((tx) =>
    tx.query(`insert into gateways (id, tenant_id, gateway_id, slug, label) values ($1, $2, $1, 'local', 'Local')`, [
      gatewayId,
      tenantId,
    ]),
  )
  await gatewayRow(gateway, ({ status }) => status === 'ready')
})

it('publishes templates, broken ones with their reason, and only what changed', async () => {
  const gateway = await createTestGateway()
  const whole = await gateway.context.workspaces.seedTemplates()
  const shown = () =>
    gateway.replica.query('select slug, name, error, deleted_at is not null as gone from agent_templates order by slug')
  expect(await publishTemplates(gateway.context, whole)).toBe(2)
  expect(await publishTemplates(gateway.context, whole)).toBe(0)
  const [analyst, writer] = whole
  if (!analyst || !writer) throw new Error('two templates')
  const broken = { ...writer, template: undefined, error: "Template 'writer' is broken: SOUL.md is missing." }
  expect(await publishTemplates(gateway.context, [broken])).toBe(2)
  expect(await shown()).toEqual([
    { slug: 'analyst', name: 'analyst', error: null, gone: true },
    { slug: 'writer', name: 'writer', error: broken.error, gone: false },
  ])
  expect(await publishTemplates(gateway.context, whole)).toBe(2)
  expect(await shown()).toEqual([
    { slug: 'analyst', name: 'analyst', error: null, gone: false },
    { slug: 'writer', name: 'writer', error: null, gone: false },
  ])
})
