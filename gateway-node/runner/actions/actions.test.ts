import { execFileSync } from 'node:child_process'
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import type { GatewayContext } from '../../service.ts'
import { createTestGateway, newId, noModels, type TestGateway } from '../../testing/context.ts'
import { agentJson, smallTemplates } from '../../testing/templates.ts'
import { createSystemGit } from '../../workspaces/system-git.ts'
import { createWorkspaces } from '../../workspaces/workspaces.ts'
import { createRunner } from '../runner.ts'

async function startRunner(context: GatewayContext, runtimes = noModels): Promise<void> {
  const runner = createRunner(context, runtimes, { sweepMs: 3_600_000 })
  onTestFinished(() => runner.stop())
  await runner.start()
}

async function provisioned(gateway: TestGateway, slug = 'wanda', more = {}): Promise<string> {
  const agent = await gateway.addAgent(slug, more)
  const row = await gateway.command(await gateway.addCommand('provision', agent))
  expect(row).toMatchObject({ status: 'done', error_message: null })
  return agent
}

const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', args, { cwd, encoding: 'utf8', stdio: 'pipe', env: { PATH: process.env['PATH'], HOME: cwd } })

const filesOf = (gateway: TestGateway, agent: string) =>
  gateway.replica.query<{ path: string; content: string | null; sha: string; size: number }>(
    'select path, content, sha, size from agent_files where agent_id = $1 and deleted_at is null order by path',
    [agent],
  )

const folder = ({ context }: TestGateway, slug = 'wanda'): string => join(context.home, 'agents', slug)

/** The command as a killed process of this folder leaves it. */
const interrupted = (gateway: TestGateway, action: string, agent: string): Promise<string> =>
  gateway.addCommand(action, agent, {
    status: 'running',
    attempt_count: 1,
    lease_owner: `${gateway.replica.identity.replicaId}/1-dead/1`,
    lease_token: 1,
    leased_until: new Date(Date.now() + 60_000),
  })

describe('provision', () => {
  it('makes the agent ready, with its files readable everywhere', async () => {
    const gateway = await createTestGateway()
    await startRunner(gateway.context)
    const agent = await provisioned(gateway, 'wanda', { name: 'Wanda W.' })
    expect(await gateway.row('agents', agent)).toMatchObject({
      status: 'ready',
      status_reason: null,
      domains: ['writing'],
      capabilities: ['drafting'],
    })
    const files = await filesOf(gateway, agent)
    expect(files.map(({ path }) => path)).toEqual([
      'AGENTS.md',
      'IDENTITY.md',
      'SOUL.md',
      'USER.md',
      'agent.json',
      'skills/hq/SKILL.md',
    ])
    const user = files.find(({ path }) => path === 'USER.md')
    expect(user?.content).toBe(await readFile(join(folder(gateway), 'USER.md'), 'utf8'))
    expect(user?.content).toContain('Ada Lovelace, called Ada')
    expect(git(folder(gateway), 'status', '--porcelain', '--branch')).toBe('## acme/wanda\n')
    expect(git(folder(gateway), 'hash-object', 'USER.md').trim()).toBe(user?.sha)
  })

  it.each(['nothing', 'owner', 'commit', 'branch', 'worktree', 'publish'])(
    'that was killed behind %s is finished on the second attempt (A1)',
    async (point) => {
      const gateway = await createTestGateway()
      const agent = await gateway.addAgent('wanda')
      const dying = await createWorkspaces({
        home: gateway.context.home,
        templates: join(gateway.context.home, '../templates'),
        now: gateway.context.now,
        afterStep: (step) => {
          if (step === point) throw new Error('died')
        },
      })
      const context = { ...gateway.context, workspaces: dying }
      // What the action does, up to the point: run as a command of its own and then forgotten.
      const runner = createRunner(context, noModels, { sweepMs: 3_600_000 })
      if (point !== 'nothing') {
        await runner.start()
        await gateway.command(await gateway.addCommand('provision', agent))
        await runner.stop()
      }
      await gateway.replica.write((tx) => tx.query(`update agents set status = 'provisioning', status_reason = null`))
      const id = await interrupted(gateway, 'provision', agent)
      await startRunner(await gateway.restarted())
      expect(await gateway.command(id)).toMatchObject({ status: 'done', attempt_count: 2 })
      expect(await gateway.row('agents', agent)).toMatchObject({ status: 'ready' })
      expect(await filesOf(gateway, agent)).toHaveLength(6)
      expect(git(join(gateway.context.home, 'repo.git'), 'fsck', '--strict', '--no-dangling')).toBe('')
      expect(git(folder(gateway), 'status', '--porcelain')).toBe('')
    },
  )

  it.each([
    ['a broken template', { template: 'bad' }, /Template 'bad' is broken: agent\.json is not JSON/],
    ['an unknown template', { template: 'poet' }, /no template 'poet'\. It has: analyst, writer/],
  ])(
    'with %s says so in the command and on the agent, and another agent is provisioned',
    async (_what, payload, message) => {
      const gateway = await createTestGateway({ templates: { ...smallTemplates(), 'bad/agent.json': '{' } })
      await startRunner(gateway.context)
      const agent = await gateway.addAgent('wanda')
      const id = await gateway.addCommand('provision', agent, { payload: JSON.stringify(payload) })
      expect(await gateway.command(id)).toMatchObject({
        status: 'failed',
        error_message: expect.stringMatching(message),
      })
      expect(await gateway.row('agents', agent)).toMatchObject({
        status: 'error',
        status_reason: expect.stringMatching(message),
      })
      await provisioned(gateway, 'bert')
      const again = await gateway.addCommand('provision', agent, { payload: JSON.stringify({ template: 'writer' }) })
      expect(await gateway.command(again)).toMatchObject({ status: 'done' })
      expect(await gateway.row('agents', agent)).toMatchObject({ status: 'ready', status_reason: null })
    },
  )

  it('without git says what to install, and is finished once git is there', async () => {
    const gateway = await createTestGateway()
    const { home, now } = gateway.context
    const git = createSystemGit('no-such-git')
    const workspaces = await createWorkspaces({ home, templates: join(home, '../templates'), now, git })
    const runner = createRunner({ ...gateway.context, workspaces }, noModels, { sweepMs: 3_600_000 })
    await runner.start()
    const agent = await gateway.addAgent('wanda')
    const row = await gateway.command(await gateway.addCommand('provision', agent))
    expect(row).toMatchObject({ status: 'failed', error_message: expect.stringContaining('Install git') })
    await runner.stop()
    await startRunner(gateway.context)
    expect(await gateway.command(await gateway.addCommand('provision', agent))).toMatchObject({ status: 'done' })
  })

  it('refuses a slug that a living agent has, and archives the leftovers of a deleted one', async () => {
    const gateway = await createTestGateway()
    await startRunner(gateway.context)
    const first = await provisioned(gateway)
    const second = await gateway.addAgent('wanda')
    const refused = await gateway.command(await gateway.addCommand('provision', second))
    expect(refused).toMatchObject({
      status: 'failed',
      error_message: expect.stringContaining('belongs to another agent'),
    })
    await gateway.replica.write((tx) => tx.query('update agents set deleted_at = now() where id = $1', [first]))
    expect(await gateway.command(await gateway.addCommand('provision', second))).toMatchObject({ status: 'done' })
    expect(git(join(gateway.context.home, 'repo.git'), 'for-each-ref', 'refs/archive').trim().split('\n')).toHaveLength(
      1,
    )
  })

  it('never raises the dead, and never ends a pause', async () => {
    const gateway = await createTestGateway()
    await startRunner(gateway.context)
    const dead = await gateway.addAgent('dead-one', { deleted_at: new Date() })
    expect(await gateway.command(await gateway.addCommand('provision', dead))).toMatchObject({ status: 'failed' })
    expect(await gateway.row('agents', dead)).toMatchObject({ status: 'provisioning', deleted_at: expect.anything() })
    expect(await readdir(join(gateway.context.home, 'agents'))).toEqual([])
    const paused = await gateway.addAgent('paused', { status: 'paused' })
    expect(await gateway.command(await gateway.addCommand('provision', paused))).toMatchObject({ status: 'done' })
    expect(await gateway.row('agents', paused)).toMatchObject({ status: 'paused' })
  })

  it('that is cancelled leaves no workspace', async () => {
    const gateway = await createTestGateway()
    const agent = await gateway.addAgent('wanda')
    const { workspaces } = gateway.context
    const slow: GatewayContext = {
      ...gateway.context,
      workspaces: {
        ...workspaces,
        createWorktree: async (slug) => {
          const made = await workspaces.createWorktree(slug)
          await gateway.replica.write((tx) => tx.query('update agent_commands set cancel_requested_at = now()'))
          await new Promise((resolve) => setTimeout(resolve, 100))
          return made
        },
      },
    }
    await startRunner(slow)
    expect(await gateway.command(await gateway.addCommand('provision', agent))).toMatchObject({ status: 'cancelled' })
    expect(await gateway.row('agents', agent)).toMatchObject({ status: 'error', status_reason: 'Cancelled.' })
    expect(await readdir(join(gateway.context.home, 'agents'))).toEqual([])
    expect(await filesOf(gateway, agent)).toEqual([])
  })
})

describe('update', () => {
  it('saves strays and mirrors what changed, and only that (M1, M2)', async () => {
    const gateway = await createTestGateway()
    await startRunner(gateway.context)
    const agent = await provisioned(gateway)
    const place = folder(gateway)
    await mkdir(join(place, 'notes'))
    await writeFile(join(place, 'notes/plan.md'), 'A plan\n')
    await writeFile(join(place, 'big.md'), 'x'.repeat(64 * 1024 + 1))
    await writeFile(join(place, 'fits.md'), 'ü'.repeat(32 * 1024))
    await writeFile(join(place, 'image.png'), Buffer.from([0x89, 0x50, 0, 0xff]))
    await writeFile(join(place, 'SOUL.md'), 'Changed\n')
    git(place, 'rm', '--quiet', 'AGENTS.md')
    const written = new Set<string>()
    gateway.replica.onChange((changes) => {
      const ids = changes.get('agent_files')
      if (ids && ids !== 'many') for (const id of ids) written.add(id)
    })
    const row = await gateway.command(await gateway.addCommand('update', agent))
    expect(row).toMatchObject({ status: 'done', result: { files: 9, commit: expect.stringMatching(/^[0-9a-f]{40}$/) } })
    expect(written.size).toBe(6)
    const files = new Map((await filesOf(gateway, agent)).map((file) => [file.path, file]))
    expect(files.get('notes/plan.md')?.content).toBe('A plan\n')
    expect(files.get('big.md')).toMatchObject({ content: null, size: 64 * 1024 + 1 })
    expect(files.get('fits.md')?.content).toHaveLength(32 * 1024)
    expect(files.get('image.png')).toMatchObject({ content: null, size: 4 })
    expect(files.get('SOUL.md')?.content).toBe('Changed\n')
    expect(files.has('AGENTS.md')).toBe(false)

    written.clear()
    expect(await gateway.command(await gateway.addCommand('update', agent))).toMatchObject({
      status: 'done',
      result: { commit: null },
    })
    expect(written.size).toBe(0)

    await writeFile(join(place, 'AGENTS.md'), 'Back again\n')
    await gateway.command(await gateway.addCommand('update', agent))
    const all = await gateway.replica.query(`select id from agent_files where path = 'AGENTS.md'`)
    expect(all).toHaveLength(1)
    expect((await filesOf(gateway, agent)).find(({ path }) => path === 'AGENTS.md')?.content).toBe('Back again\n')
  })

  it('of an agent without a workspace says what to do', async () => {
    const gateway = await createTestGateway()
    await startRunner(gateway.context)
    const agent = await gateway.addAgent('wanda', { status: 'ready' })
    const row = await gateway.command(await gateway.addCommand('update', agent))
    expect(row).toMatchObject({ status: 'failed', error_message: expect.stringContaining('Provision it first') })
    expect(await gateway.row('agents', agent)).toMatchObject({ status: 'ready' })
  })
})

describe('remove', () => {
  async function busyAgent(gateway: TestGateway): Promise<{ agent: string; other: string; items: string[] }> {
    const agent = await provisioned(gateway)
    const other = await provisioned(gateway, 'bert')
    const items: string[] = []
    for (const [of, status] of [
      [agent, 'pending'],
      [agent, 'leased'],
      [agent, 'done'],
      [other, 'pending'],
    ]) {
      const id = newId()
      items.push(id)
      await gateway.replica.write((tx) =>
        tx.query(
          `insert into agent_inbox_items (id, tenant_id, gateway_id, agent_id, event_type, dedup_key, status) values ($1, $2, $3, $4, 'task_assignment', $5, $6)`,
          [id, gateway.context.tenantId, gateway.context.gatewayId, of ?? '', id, status ?? ''],
        ),
      )
    }
    return { agent, other, items }
  }

  it('ends runs first, then leaves a tombstone, an archive and nothing else; other agents keep everything', async () => {
    const gateway = await createTestGateway()
    await startRunner(gateway.context)
    const { agent, other, items } = await busyAgent(gateway)
    let statusAtStop: unknown
    gateway.context.agentStops.onStop(async (id) => {
      statusAtStop = (await gateway.row('agents', id))['status']
      expect(await gateway.context.workspaces.exists('wanda')).toBe(true)
    })
    await writeFile(join(folder(gateway), 'stray.md'), 'last words')
    const row = await gateway.command(await gateway.addCommand('remove', agent))
    expect(row).toMatchObject({ status: 'done', result: { archive: expect.stringMatching(/^refs\/archive\/wanda-/) } })
    expect(statusAtStop).toBe('removing')
    expect(await gateway.row('agents', agent)).toMatchObject({ deleted_at: expect.anything() })
    expect(await filesOf(gateway, agent)).toEqual([])
    expect(await filesOf(gateway, other)).toHaveLength(6)
    const states = await Promise.all(items.map(async (id) => (await gateway.row('agent_inbox_items', id))['status']))
    expect(states).toEqual(['cancelled', 'cancelled', 'done', 'pending'])
    expect((await readdir(join(gateway.context.home, 'agents'))).sort()).toEqual(['bert', 'bert.json'])
    const archive = String((row['result'] as { archive: string }).archive)
    expect(git(join(gateway.context.home, 'repo.git'), 'show', `${archive}:stray.md`)).toBe('last words')
    expect(git(join(gateway.context.home, 'repo.git'), 'fsck', '--strict')).toBe('')
  })

  it('cancels what else waits for the agent, and the slug is free again', async () => {
    const gateway = await createTestGateway()
    await startRunner(gateway.context)
    const { agent } = await busyAgent(gateway)
    const [removal, late] = [await gateway.addCommand('remove', agent), await gateway.addCommand('update', agent)]
    expect(await gateway.command(removal)).toMatchObject({ status: 'done' })
    expect((await gateway.command(late))['status']).toMatch(/cancelled|failed/)
    await provisioned(gateway)
  })

  it.each(['strays', 'archived', 'worktree', 'branch'])('that was killed behind %s is finished (A1)', async (point) => {
    const gateway = await createTestGateway()
    const setUp = createRunner(gateway.context, noModels, { sweepMs: 3_600_000 })
    await setUp.start()
    const { agent, items } = await busyAgent(gateway)
    await setUp.stop()
    const dying = await createWorkspaces({
      home: gateway.context.home,
      templates: join(gateway.context.home, '../templates'),
      now: gateway.context.now,
      afterStep: (step) => {
        if (step === point) throw new Error('died')
      },
    })
    await gateway.replica.write((tx) => tx.query(`update agents set status = 'removing' where id = $1`, [agent]))
    await expect(dying.remove('wanda')).rejects.toThrow('died')
    const id = await interrupted(gateway, 'remove', agent)
    await startRunner(await gateway.restarted())
    expect(await gateway.command(id)).toMatchObject({ status: 'done', attempt_count: 2 })
    expect(await gateway.row('agents', agent)).toMatchObject({ deleted_at: expect.anything() })
    expect(await filesOf(gateway, agent)).toEqual([])
    expect((await gateway.row('agent_inbox_items', items[0] ?? ''))['status']).toBe('cancelled')
    expect((await readdir(join(gateway.context.home, 'agents'))).sort()).toEqual(['bert', 'bert.json'])
  })

  it('of an agent that was deleted without it cleans up after it', async () => {
    const gateway = await createTestGateway()
    await startRunner(gateway.context)
    const agent = await provisioned(gateway)
    await gateway.replica.write((tx) => tx.query('update agents set deleted_at = now() where id = $1', [agent]))
    expect(await gateway.command(await gateway.addCommand('remove', agent))).toMatchObject({ status: 'done' })
    expect(await readdir(join(gateway.context.home, 'agents'))).toEqual([])
  })

  it('that cannot end the runs says so on the agent', async () => {
    const gateway = await createTestGateway()
    await startRunner(gateway.context)
    const agent = await provisioned(gateway)
    gateway.context.agentStops.onStop(async () => {
      throw new Error('the run does not end')
    })
    expect(await gateway.command(await gateway.addCommand('remove', agent))).toMatchObject({ status: 'failed' })
    expect(await gateway.row('agents', agent)).toMatchObject({
      status: 'error',
      status_reason: expect.stringMatching(/^Not removed: .*does not end/),
      deleted_at: null,
    })
  })
})

it('list_models asks the runtimes', async () => {
  const gateway = await createTestGateway()
  await startRunner(gateway.context, {
    runtimes: () => ['builtin'],
    models: async () => [{ provider: 'demo', model: 'demo-1', demo: true }],
  })
  expect(await gateway.command(await gateway.addCommand('list_models', null))).toMatchObject({
    status: 'done',
    result: { models: [{ provider: 'demo', model: 'demo-1', demo: true }], runtimes: ['builtin'] },
  })
})

it('a template that asks for too much of agent.json is broken, not half used', async () => {
  const templates = { ...smallTemplates(), 'writer/agent.json': agentJson('writer', { domains: 'writing' }) }
  const gateway = await createTestGateway({ templates })
  await startRunner(gateway.context)
  const agent = await gateway.addAgent('wanda')
  const row = await gateway.command(await gateway.addCommand('provision', agent))
  expect(row).toMatchObject({ status: 'failed', error_message: expect.stringContaining('agent.json: domains') })
})
