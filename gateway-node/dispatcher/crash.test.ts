/** Real processes, a real replica, no server: what a SIGKILL in the middle of a run leaves behind, and what comes of it. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { derivedId } from '@hq/shared/domain/ids.ts'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { createRuntimes } from '../runtime/registry.ts'
import { createDispatcher, type Dispatcher } from './dispatcher.ts'
import { until } from './testing.ts'
import { openRealGateway, type RealGateway } from './testing-real.ts'

const CHILD = fileURLToPath(new URL('./crash-child.ts', import.meta.url))
const [gatewayId, tenantId] = [randomUUID(), randomUUID()]
let folder: string
let open: RealGateway | undefined
let dispatcher: Dispatcher | undefined

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hq-crash-'))
  const { replica } = await openRealGateway(folder, gatewayId, tenantId)
  await replica.write(async (tx) => {
    await tx.query(`insert into workspace (id, tenant_id, name, slug) values ($1, $2, 'W', 'w')`, [
      randomUUID(),
      tenantId,
    ])
    await tx.query(
      `insert into gateways (id, tenant_id, gateway_id, slug, label, status) values ($1, $2, $1, 'real', 'Real', 'ready')`,
      [gatewayId, tenantId],
    )
  })
  await replica.close()
}, 60_000)

afterEach(async () => {
  await dispatcher?.stop()
  await open?.replica.close()
})

afterAll(() => rm(folder, { recursive: true, force: true }))

/** An agent with one task, and the item that wakes it. */
async function fill(slug: string, maxAttempts: number): Promise<{ agent: string; task: string; item: string }> {
  const [agent, task] = [randomUUID(), randomUUID()]
  const key = `task_assignment:${task}:${agent}:0`
  const item = derivedId('inbox', tenantId, key)
  const { replica } = await openRealGateway(folder, gatewayId, tenantId)
  await replica.write(async (tx) => {
    await tx.query(
      `insert into agents (id, tenant_id, gateway_id, name, slug, status) values ($1, $2, $3, 'Ann', $4, 'ready')`,
      [agent, tenantId, gatewayId, slug],
    )
    await tx.query(
      `insert into tasks (id, tenant_id, title, description, assignee_type, assignee_agent_id) values ($1, $2, 'Launch note', 'Say why.', 'agent', $3)`,
      [task, tenantId, agent],
    )
    await tx.query(
      `insert into agent_inbox_items (id, tenant_id, gateway_id, agent_id, event_type, dedup_key, task_id, max_attempts)
       values ($1, $2, $3, $4, 'task_assignment', $5, $6, $7)`,
      [item, tenantId, gatewayId, agent, key, task, maxAttempts],
    )
  })
  await replica.close()
  return { agent, task, item }
}

/** Starts a gateway and kills it when its agent has submitted but not finished. */
async function killInTheMiddle(): Promise<void> {
  const child = spawn(process.execPath, [CHILD, folder, gatewayId, tenantId], { stdio: ['ignore', 'pipe', 'inherit'] })
  try {
    await new Promise<void>((resolve, reject) => {
      child.stdout.on('data', (chunk) => {
        if (String(chunk).includes('stuck')) resolve()
      })
      child.on('exit', (code) => reject(new Error(`the gateway ended by itself: ${code}`)))
    })
  } finally {
    const gone = new Promise((resolve) => child.once('exit', resolve))
    child.kill('SIGKILL')
    await gone
  }
}

async function reopen(): Promise<RealGateway> {
  open = await openRealGateway(folder, gatewayId, tenantId)
  dispatcher = createDispatcher(open.context, { runtimes: createRuntimes(open.context, { demoPaceMs: 0 }) })
  return open
}

const statusOf = async (gateway: RealGateway, item: string): Promise<Record<string, unknown>> =>
  (await gateway.replica.query('select status, attempt_count from agent_inbox_items where id = $1', [item]))[0] ?? {}

test('killed after it submitted: one retry, one deliverable, one comment, and everything still in the outbox', async () => {
  const { agent, task, item } = await fill('ann', 3)
  await killInTheMiddle()
  const gateway = await reopen()
  expect(await statusOf(gateway, item)).toEqual({ status: 'leased', attempt_count: 1 })
  expect(await gateway.replica.query('select 1 from entity_links where owner_id = $1', [task])).toHaveLength(1)
  gateway.advance(3_000)
  await dispatcher?.start()
  await until('the lease has ended and the agent rests', async () => {
    const [row] = await gateway.replica.query<{ gate: string }>('select gate from agents where id = $1', [agent])
    return row?.gate === 'cooldown'
  })
  gateway.advance(31_000)
  await dispatcher?.pass()
  await until('the item is done', async () => (await statusOf(gateway, item))['status'] === 'done')
  expect(await statusOf(gateway, item)).toEqual({ status: 'done', attempt_count: 2 })
  const runs = await gateway.replica.query('select status from agent_runs where agent_id = $1 order by started_at', [
    agent,
  ])
  expect(runs).toEqual([{ status: 'interrupted' }, { status: 'done' }])
  expect(await gateway.replica.query('select review_status from entity_links where owner_id = $1', [task])).toEqual([
    { review_status: 'submitted' },
  ])
  const outbox = await gateway.replica.outbox()
  expect(outbox.map(({ seq }) => seq)).toEqual(outbox.map((_, index) => index + 1))
  const mine = outbox.filter(({ actor }) => actor.type === 'agent')
  expect(mine.every((entry) => entry.actor.id === agent && entry.runId !== null)).toBe(true)
  expect(mine.flatMap(({ patches }) => patches.map(({ table, op }) => `${op} ${table}`))).toContain(
    'insert entity_links',
  )
}, 90_000)

test('killed in the last attempt: a dead letter, and no wake ever again', async () => {
  const { agent, item } = await fill('bob', 1)
  await killInTheMiddle()
  const gateway = await reopen()
  gateway.advance(3_000)
  await dispatcher?.start()
  await until('the dead letter', async () => (await statusOf(gateway, item))['status'] === 'dead_letter')
  for (let hour = 0; hour < 4; hour += 1) {
    gateway.advance(3_600_000)
    await dispatcher?.pass()
  }
  expect(dispatcher?.live()).toEqual([])
  expect(await gateway.replica.query('select status from agent_runs where agent_id = $1', [agent])).toEqual([
    { status: 'interrupted' },
  ])
  expect(
    await gateway.replica.query(`select type from notifications where type = 'dead_letter' and entity_id = $1`, [item]),
  ).toHaveLength(1)
}, 90_000)
