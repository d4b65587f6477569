/** `hq sync` as a real process, against the local API over a real replica, for an agent and for the operator. */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readOutboxFile } from '@hq/shared/domain/outbox-file.ts'
import type { Replica } from '@hq/shared/sync/contract.ts'
import { openReplica } from '@hq/shared/sync/replica.ts'
import { migrations, openDatabase, TENANT } from '@hq/shared/sync/testing/harness.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTestGateway, type TestGateway } from '../dispatcher/testing.ts'
import { createLocalApi, type LocalApi } from '../local-api/server.ts'
import { profile, smallTemplates, writeFiles } from '../testing/templates.ts'
import { createWorkspaces } from '../workspaces/workspaces.ts'

/** Without its launcher, which hq.test.ts goes through. */
const HQ = fileURLToPath(new URL('./hq.ts', import.meta.url))

let root: string
let replica: Replica
let home: string
let fake: TestGateway
let api: LocalApi
let worktree: string
let bobsTask: string
const agent = randomUUID()
const bob = randomUUID()

/** A real replica whose server cannot be reached, with what it had loaded before. */
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'hq-cli-sync-'))
  await writeFiles(join(root, 'templates'), smallTemplates())
  home = join(root, 'home')
  const workspaces = await createWorkspaces({ home, templates: join(root, 'templates'), now: Date.now })
  await workspaces.seedTemplates()
  fake = await openTestGateway({ workspaces })
  const { gatewayId } = fake.context
  replica = await openReplica({
    db: await openDatabase(),
    migrations,
    identity: { kind: 'gateway', ownerId: gatewayId, tenantId: TENANT },
    serverUrl: 'http://127.0.0.1:9',
    environment: {
      now: Date.now,
      randomUuid: () => fake.context.newId(),
      fetch: () => Promise.reject(new Error('no server here')),
      log: () => undefined,
    },
  })
  for (const [id, slug] of [
    [agent, 'wanda'],
    [bob, 'bob'],
  ] as const) {
    await replica.write((tx) =>
      tx.query(
        `insert into agents (id, tenant_id, gateway_id, name, slug, status) values ($1, $2, $3, initcap($4::text), $4::text, 'ready')`,
        [id, TENANT, gatewayId, slug],
      ),
    )
  }
  await workspaces.createBranch(profile({ agentId: agent, slug: 'wanda' }))
  worktree = await workspaces.createWorktree('wanda')
  api = createLocalApi({ ...fake.context, home, replica, tenantId: TENANT, workspaces })
  await api.start()
  const task = async (title: string, by: string): Promise<string> => {
    const id = randomUUID()
    await replica.write((tx) =>
      tx.query('insert into tasks (id, tenant_id, title) values ($1, $2, $3)', [id, TENANT, title]),
    )
    await replica.write((tx) => tx.query(`update tasks set status = 'in_progress' where id = $1`, [id]), {
      actor: { type: 'agent', id: by },
    })
    return id
  }
  await task('Write the note', agent)
  bobsTask = await task('Bob’s budget', bob)
}, 60_000)

afterAll(async () => {
  await api?.stop()
  await replica?.close()
  await fake?.close()
  await rm(root, { recursive: true, force: true })
})

interface Ran {
  code: number | null
  out: string
  err: string
}

const run = (args: readonly string[], cwd: string, env: Record<string, string> = {}): Promise<Ran> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [HQ, 'sync', ...args], {
      cwd,
      env: { PATH: process.env['PATH'] ?? '', ...env },
    })
    let out = ''
    let err = ''
    child.stdout.on('data', (chunk) => (out += String(chunk)))
    child.stderr.on('data', (chunk) => (err += String(chunk)))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, out, err }))
    child.stdin.end()
  })

const asAgent = (...args: string[]) => run(args, worktree)
const asOperator = (...args: string[]) => run(args, root, { HQ_GATEWAY_HOME: home })
const json = async (ran: Promise<Ran>) => JSON.parse((await ran).out) as Record<string, unknown>

/** As the server does it, through the read path. */
const refuse = async (seq: number): Promise<void> => {
  await replica.query(
    `update sync.outbox set state = 'rejected', code = 'not_unique', message = 'That name is taken.' where seq = $1`,
    [seq],
  )
}
const seqOf = async (taskId: string): Promise<number> => {
  const [row] = await replica.query<{ seq: number }>(
    `select max(seq)::int as seq from sync.patches where row_id = $1`,
    [taskId],
  )
  return row?.seq ?? 0
}

describe('an agent', () => {
  test('sees its own waiting changes and nobody else’s, in words and as JSON', async () => {
    const status = await asAgent('status')
    expect(status).toMatchObject({ code: 0, err: '' })
    expect(status.out).toMatch(/^Gateway test: /)
    expect(status.out).toContain('Waiting: 1 change, the oldest since just now')
    expect(await json(asAgent('status', '--json'))).toMatchObject({ pending: 1, rejected: 0, of: { agent: 'wanda' } })

    const outbox = await asAgent('outbox')
    expect(outbox.out).toContain('wanda: Task “Write the note”: status')
    expect(outbox.out).not.toContain('budget')
  })

  test('tries its own refused change again with other values, and discards none', async () => {
    const mine = await json(asAgent('outbox', '--json'))
    const [change] = mine['changes'] as { seq: number; patches: { id: string }[] }[]
    const seq = change?.seq ?? 0
    expect(await asAgent('retry', String(seq))).toMatchObject({ code: 1, err: expect.stringContaining('not refused') })
    await refuse(seq)
    expect((await asAgent('outbox')).out).toMatch(/refused .*\n.*That name is taken\. \(not_unique\)/)
    expect(await asAgent('discard', String(seq), '--yes')).toMatchObject({
      code: 1,
      err: expect.stringContaining('Only a person'),
    })
    const set = `tasks.${change?.patches[0]?.id}.status=blocked`
    expect(await asAgent('retry', String(seq), '--set', set)).toMatchObject({ code: 0, err: '' })
    expect((await asAgent('outbox', '--json').then(({ out }) => out)).match(/"state": "pending"/g)).toHaveLength(1)
    expect(await replica.query('select status from tasks where id = $1', [change?.patches[0]?.id ?? null])).toEqual([
      { status: 'blocked' },
    ])

    const bobs = await seqOf(bobsTask)
    await refuse(bobs)
    expect(await asAgent('retry', String(bobs))).toMatchObject({ code: 1, err: expect.stringContaining('no change') })
  })

  test('exports its own changes into a file that is not overwritten', async () => {
    const file = join(root, 'mine.jsonl')
    expect(await asAgent('export', file)).toMatchObject({ code: 0, out: `1 change in ${file}.\n` })
    const read = readOutboxFile(await readFile(file, 'utf8'), TENANT)
    expect(read).toMatchObject({ ok: true, person: 'Wanda' })
    if (read.ok) expect(read.lines.join()).toContain(agent)
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(await asAgent('export', file)).toMatchObject({ code: 1, err: expect.stringContaining('there already') })
  })
})

describe('the operator', () => {
  test('sees everybody’s changes, and discards a refused one only when sure', async () => {
    const everything = await json(asOperator('outbox', '--json'))
    const [{ n } = { n: 0 }] = await replica.query<{ n: number }>('select count(*)::int as n from sync.outbox')
    expect(everything['total']).toBe(n)
    const seq = await seqOf(bobsTask)
    expect((await asOperator('status')).out).toContain('Refused: 1')
    expect(await asOperator('discard', String(seq))).toMatchObject({ code: 2, err: expect.stringContaining('--yes') })
    expect(await asOperator('discard', String(seq), '--yes')).toMatchObject({
      code: 0,
      out: `Change ${seq} was discarded.\n`,
    })
    expect(await asOperator('discard', String(seq), '--yes')).toMatchObject({ code: 1 })
    expect(await json(asOperator('status', '--json'))).toMatchObject({ rejected: 0, of: 'everybody' })
  })

  test('has a token for “hq sync” alone, of this life of the gateway, readable by the owner only', async () => {
    const token = (await readFile(join(home, 'operator-token'), 'utf8')).trim()
    for (const file of ['operator-token', '.hq-operator.json'])
      expect((await stat(join(home, file))).mode & 0o777).toBe(0o600)
    const get = (path: string, auth: string) =>
      fetch(`${api.url()}${path}`, { headers: { authorization: `Bearer ${auth}` } }).then(({ status }) => status)
    expect(await get('/v1/sync/status', token)).toBe(200)
    expect(await get('/v1/my-tasks', token)).toBe(403)
    expect(await get('/v1/sync/status', `${token.slice(0, -1)}_`)).toBe(401)
  })
})

describe('usage', () => {
  test('exit codes: 0 done, 1 refused, 2 wrong usage', async () => {
    const cases: readonly (readonly [readonly string[], number])[] = [
      [[], 2],
      [['nonsense'], 2],
      [['retry'], 2],
      [['retry', 'x'], 2],
      [['retry', '1', '--set', 'title=x'], 2],
      [['export'], 2],
      [['outbox', '--limit', '0'], 1],
      [['discard', '999999', '--yes'], 1],
    ]
    const ran = await Promise.all(cases.map(([args]) => asOperator(...args)))
    expect(ran.map(({ code }, index) => [cases[index]?.[0], code])).toEqual(cases)
  }, 30_000)

  test('the help says how the same is asked by SQL, with columns that exist', async () => {
    const { out, code } = await asOperator('--help')
    expect(code).toBe(0)
    for (const view of ['entries', 'row_states']) {
      const columns = await replica.query<{ column_name: string }>(
        `select column_name from information_schema.columns where table_schema = 'sync' and table_name = $1`,
        [view],
      )
      expect(columns.length).toBeGreaterThan(4)
      const said = out.slice(out.indexOf(`sync.${view}`))
      for (const { column_name } of columns) expect(said).toContain(column_name)
    }
  })

  test('without a gateway: exit 3 and what to do', async () => {
    expect(await run(['status'], root, { HQ_HOME: join(root, 'nowhere') })).toMatchObject({
      code: 3,
      err: expect.stringContaining('No connection to a gateway'),
    })
  })
})
