/**
 * Agents that move between three real gateways: files and history go along, exactly one place works, nothing that waited is lost or done twice, whatever is killed on
 * the way; and an agent whose gateway is away for good goes on elsewhere without its files.
 */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { forwardedId } from '@hq/gateway-node/moving/letters.ts'
import { readEnvFile } from '@hq/gateway-node/secrets/env-file.ts'
import { seal } from '@hq/shared/domain/sealing.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { insert, update } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  commandPatch,
  type Gateway,
  isEnded,
  provision,
  type Row,
  type System,
  startSystem,
  taskPatch,
} from './support/system.ts'

const LONG = { timeout: 300_000 }
let system: System
let a: Gateway
let b: Gateway
let c: Gateway

beforeAll(async () => {
  system = await startSystem()
  const [row] = await system.rows<{ slug: string }>('select slug from workspace')
  workspaceSlug = row?.slug ?? ''
  a = await system.gateway('a')
  b = await system.gateway('b')
  c = await system.gateway('c')
})
afterAll(() => system?.stop())

const folder = (gateway: Gateway, slug: string): string => join(gateway.home, 'agents', slug)
const git = (gateway: Gateway, ...args: string[]): string =>
  execFileSync('git', ['-c', 'safe.directory=*', '--git-dir', join(gateway.home, 'repo.git'), ...args], {
    encoding: 'utf8',
  })
const history = (gateway: Gateway, slug: string): string[] =>
  git(gateway, 'log', '--format=%H %s', `refs/heads/${workspaceSlug}/${slug}`).trim().split('\n')
let workspaceSlug = ''

async function sendMove(agent: string, from: Gateway, to: Gateway): Promise<string> {
  const command = newId()
  const patch = commandPatch(system, from, agent, 'move', command)
  const set = {
    ...patch.set,
    payload: { to_gateway_id: to.id },
    requested_by: system.owner.principal.person_id,
  }
  await system.writer().apply([{ ...patch, set }])
  return command
}

const SECRET = 'PLAINTEXT-of-a-5b1c0d9e'
async function setSecret(agent: string, at: Gateway): Promise<void> {
  const [row] = await system.rows<{ public_key: string }>('select public_key from gateways where id = $1', [at.id])
  const key = row?.public_key ?? ''
  const [secretId, scope] = [newId(), { tenant_id: system.tenantId, gateway_id: at.id }]
  const place = { tenantId: system.tenantId, gatewayId: at.id, secretId, version: 1, use: ['TOKEN', agent, 'user'] }
  const sealed = await seal(key, place, SECRET)
  const created_by = system.owner.principal.person_id
  await system
    .writer()
    .apply([
      insert(
        'secrets',
        { ...scope, agent_id: agent, category: 'user', key: 'TOKEN', name: 'Token', created_by },
        secretId,
      ),
      insert('sealed_secrets', { ...scope, secret_id: secretId, version: 1, sealed, public_key: key }),
    ])
}
async function holds(folderOfGateway: string, text: string): Promise<boolean> {
  for (const entry of await readdir(folderOfGateway, { recursive: true, withFileTypes: true })) {
    const content = entry.isFile() ? await readFile(join(entry.parentPath, entry.name), 'latin1').catch(() => '') : ''
    if (content.includes(text)) return true
  }
  return false
}

const arrived = (agent: string, at: Gateway): Promise<Row> =>
  system.rowWhen(
    'agents',
    agent,
    (row) => row['gateway_id'] === at.id && ['ready', 'paused'].includes(String(row['status'])),
    120_000,
  )
const archivedAt = (gateway: Gateway, slug: string): Promise<boolean> =>
  system.when(`nothing of ${slug} is left at ${gateway.slug}`, async () => !existsSync(folder(gateway, slug)), 60_000)

async function works(agent: string, at: Gateway, title: string): Promise<void> {
  const task = newId()
  await system.writer().apply([taskPatch(system, title, agent, task)])
  await ranAt(task, at)
}
async function ranAt(task: string, at: Gateway): Promise<void> {
  const run = await system.when(
    `${task} is done`,
    async () => {
      const [found] = await system.rows<Row>(`select * from agent_runs where task_id = $1 and status = 'done'`, [task])
      return found
    },
    120_000,
  )
  expect(run['gateway_id']).toBe(at.id)
}
const clean = (gateway: Gateway): void => {
  const said = execFileSync(
    'git',
    ['-c', 'safe.directory=*', '--git-dir', join(gateway.home, 'repo.git'), 'fsck', '--full', '--no-dangling'],
    {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  )
  expect(said.trim()).toBe('')
}

test(
  'from a to b to c: files, history, open work and waiting commands go along; each gateway has only what lives there',
  LONG,
  async () => {
    const agent = await provision(system, a, 'wanda')
    await works(agent, a, 'First at a')
    await writeFile(join(folder(a, 'wanda'), 'uncommitted.md'), 'written at a, in no commit yet\n')
    const before = history(a, 'wanda')
    await setSecret(agent, a)
    await system.when(
      'the secret is in its file',
      async () => (await readEnvFile(a.home, 'wanda')).get('TOKEN') === SECRET,
    )

    // What waits for the agent while it is on its way: work, and commands that are behind the move.
    await system
      .writer()
      .apply([update('agents', agent, { pause_requested_at: null }, { pause_requested_at: new Date().toISOString() })])
    const task = newId()
    await system.writer().apply([taskPatch(system, 'Waits for the move', agent, task)])
    const behind = newId()
    const command = newId()
    const move = commandPatch(system, a, agent, 'move', command)
    const set = { ...move.set, payload: { to_gateway_id: b.id }, requested_by: system.owner.principal.person_id }
    await system.writer().apply([{ ...move, set }, commandPatch(system, a, agent, 'update', behind)])
    await arrived(agent, b)
    expect(await system.rows('select epoch from agents where id = $1', [agent])).toEqual([{ epoch: 2 }])
    expect(existsSync(join(folder(b, 'wanda'), 'uncommitted.md'))).toBe(true)
    expect(history(b, 'wanda').slice(-before.length)).toEqual(before)
    await archivedAt(a, 'wanda')
    // The command behind the move was sent on, and done once.
    expect(await system.rowWhen('agent_commands', behind, isEnded)).toMatchObject({
      status: 'cancelled',
      error_message: expect.stringContaining('sent on there'),
    })
    const sent = await system.rowWhen('agent_commands', forwardedId(behind), isEnded)
    expect(sent).toMatchObject({ gateway_id: b.id, action: 'update', status: 'done' })
    expect(
      await system.rows(`select 1 from agent_commands where agent_id = $1 and action = 'update'`, [agent]),
    ).toHaveLength(2)
    // A secret is sealed for one gateway's key: it stays behind, and is gone from the place where nobody needs it any more.
    expect((await readEnvFile(a.home, 'wanda')).size).toBe(0)
    expect(await holds(b.home, SECRET)).toBe(false)
    expect(await holds(c.home, SECRET)).toBe(false)

    await system.writer().apply([update('agents', agent, {}, { pause_requested_at: null })])
    await ranAt(task, b)
    await sendMove(agent, b, c)
    await arrived(agent, c)
    await archivedAt(b, 'wanda')
    await works(agent, c, 'Last at c')
    expect(history(c, 'wanda').slice(-before.length)).toEqual(before)
    expect(
      await system.rows(`select distinct gateway_id from agent_files where agent_id = $1 and deleted_at is null`, [
        agent,
      ]),
    ).toEqual([{ gateway_id: c.id }])
    // The parcels are gone from the server, and what was made on the way from the gateways.
    const left = await readdir(join(system.server.home, 'server/parcels'), { recursive: true, withFileTypes: true })
    expect(left.filter((entry) => entry.isFile()).map(({ name }) => name)).toEqual([])
    for (const gateway of [a, b, c]) {
      clean(gateway)
      expect(await readdir(join(gateway.home, 'moving')).catch(() => [])).toEqual([])
    }
  },
)

test(
  'killed at the old and at the new place, again and again: it arrives once, whole, and works in one place',
  LONG,
  async () => {
    const agent = await provision(system, a, 'kira')
    await works(agent, a, 'Before')
    const before = history(a, 'kira')
    const way = [a, b, c, a, b]
    for (let leg = 0; leg + 1 < way.length; leg++) {
      const [from, to] = [way[leg] as Gateway, way[leg + 1] as Gateway]
      const task = newId()
      await system.writer().apply([taskPatch(system, `On leg ${leg}`, agent, task)])
      const command = await sendMove(agent, from, to)
      if (leg % 2 === 0) {
        await system.rowWhen('agent_commands', command, (row) => row['status'] !== 'pending')
        await from.kill()
        await from.start()
      } else {
        await to.kill()
        await system.rowWhen('agent_commands', command, isEnded, 120_000)
        await to.start()
        await system.when('the arrival begins', async () => {
          const [row] = await system.rows<Row>(
            `select * from agent_commands where action = 'move' and gateway_id = $1 and payload ->> 'arrive' = $2`,
            [to.id, command],
          )
          return row && row['status'] !== 'pending'
        })
        await to.kill()
        await to.start()
      }
      await system.rowWhen('agent_commands', command, (row) => row['status'] === 'done', 120_000)
      await arrived(agent, to)
      await archivedAt(from, 'kira')
      // What was cut off is begun again, at one of the two; it ends once, and where the agent is now if it had not ended before.
      await system.when(
        `leg ${leg} is done`,
        async () =>
          (await system.rows(`select 1 from agent_inbox_items where task_id = $1 and status = 'done'`, [task]))
            .length === 1 || undefined,
        120_000,
      )
      expect(history(to, 'kira').slice(-before.length)).toEqual(before)
      expect((await system.rows<Row>('select epoch from agents where id = $1', [agent]))[0]?.['epoch']).toBe(leg + 2)
      const arrivals = await system.rows(`select 1 from agent_commands where payload ->> 'arrive' = $1`, [command])
      expect(arrivals).toHaveLength(1)
    }
    expect(
      await system.rows(`select id from agent_commands where agent_id = $1 and status not in ('done')`, [agent]),
    ).toEqual([])
    for (const gateway of [a, b, c]) clean(gateway)
  },
)

test(
  'the old gateway is away: the agent goes on elsewhere with its files as they were last seen, and what the old place says later does not count',
  LONG,
  async () => {
    const agent = await provision(system, c, 'otto')
    await works(agent, c, 'Last seen')
    await writeFile(join(folder(c, 'otto'), 'seen.md'), 'seen by all\n')
    const seen = newId()
    await system.writer().apply([commandPatch(system, c, agent, 'update', seen)])
    await system.rowWhen('agent_commands', seen, (row) => row['status'] === 'done')
    await c.kill()
    await writeFile(join(folder(c, 'otto'), 'never-seen.md'), 'only on the old machine\n')
    const command = newId()
    await system.writer().apply([
      update('agents', agent, { gateway_id: c.id }, { gateway_id: a.id }),
      insert(
        'agent_commands',
        {
          tenant_id: system.tenantId,
          gateway_id: a.id,
          agent_id: agent,
          action: 'move',
          payload: { without_files: true },
        },
        command,
      ),
    ])
    await arrived(agent, a)
    expect(await readFile(join(folder(a, 'otto'), 'seen.md'), 'utf8')).toBe('seen by all\n')
    expect(existsSync(join(folder(a, 'otto'), 'never-seen.md'))).toBe(false)
    expect(git(a, 'log', '-1', '--format=%s', `refs/heads/${workspaceSlug}/otto`)).toContain('as they were last seen')
    await works(agent, a, 'At the new place')
    await c.start()
    await archivedAt(c, 'otto')
    // Archived, not lost: also what nobody had committed.
    expect(git(c, 'log', '--all', '--format=', '--name-only')).toContain('never-seen.md')
    expect(await system.rows('select gateway_id, status, epoch from agents where id = $1', [agent])).toEqual([
      { gateway_id: a.id, status: 'ready', epoch: 2 },
    ])
    clean(a)
    clean(c)
  },
)
