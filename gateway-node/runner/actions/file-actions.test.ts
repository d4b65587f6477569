/** The `file_*` commands and `upgrade_template`, with a real repository and a real replica. */
import { execFileSync } from 'node:child_process'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createTestGateway, newId, noModels, type TestGateway } from '../../testing/context.ts'
import { writeFiles } from '../../testing/templates.ts'
import { createRunner } from '../runner.ts'

interface Place {
  readonly gateway: TestGateway
  readonly agent: string
  readonly folder: string
  /** The ended command. */
  readonly ask: (action: string, payload: object, more?: Record<string, unknown>) => Promise<Record<string, unknown>>
  readonly files: () => Promise<Record<string, { content: string | null; sha: string }>>
}

async function setUp(): Promise<Place> {
  const gateway = await createTestGateway()
  const runner = createRunner(gateway.context, noModels, { sweepMs: 3_600_000 })
  onTestFinished(() => runner.stop())
  await runner.start()
  const agent = await gateway.addAgent('wanda', { name: 'Wanda' })
  const ask: Place['ask'] = async (action, payload, more = {}) =>
    gateway.command(await gateway.addCommand(action, agent, { payload: JSON.stringify(payload), ...more }))
  expect(await ask('provision', {})).toMatchObject({ status: 'done' })
  const files: Place['files'] = async () => {
    const rows = await gateway.replica.query<{ path: string; content: string | null; sha: string }>(
      'select path, content, sha from agent_files where agent_id = $1 and deleted_at is null',
      [agent],
    )
    return Object.fromEntries(rows.map(({ path, content, sha }) => [path, { content, sha }]))
  }
  return { gateway, agent, ask, files, folder: join(gateway.context.home, 'agents/wanda') }
}

async function person(gateway: TestGateway, name: string): Promise<string> {
  const id = newId()
  await gateway.replica.query(
    `insert into people (id, tenant_id, name, email, role) values ($1, $2, $3, 'ada@example.com', 'owner')`,
    [id, gateway.context.tenantId, name],
  )
  return id
}

const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', args, { cwd, encoding: 'utf8', stdio: 'pipe', env: { PATH: process.env['PATH'], HOME: cwd } })

it('file_write commits under the name of the person who asked, and the mirror shows it', async () => {
  const { gateway, agent, ask, files, folder } = await setUp()
  const ada = await person(gateway, 'Ada <x>\nLovelace')
  const before = (await files())['SOUL.md']
  const row = await ask('file_write', { path: 'SOUL.md', text: 'New soul.\n', sha: before?.sha }, { requested_by: ada })
  const after = (await files())['SOUL.md']
  expect(row).toMatchObject({ status: 'done', result: { path: 'SOUL.md', sha: after?.sha } })
  expect(after?.content).toBe('New soul.\n')
  expect(git(folder, 'log', '-1', '--format=%an|%ae|%s')).toBe(`Ada  x  Lovelace|${ada}@people.hq.local|Edit SOUL.md\n`)
  const text = 'By the agent.\n'
  await ask('file_write', { path: 'a/b.md', text, sha: null }, { requested_by_agent_id: agent })
  expect(git(folder, 'log', '-1', '--format=%an')).toBe('Wanda\n')
  expect((await files())['a/b.md']?.content).toBe(text)
})

it('a conflict fails with what is there, and changes nothing', async () => {
  const { ask, files, folder } = await setUp()
  const { sha } = (await files())['SOUL.md'] ?? {}
  await writeFile(join(folder, 'SOUL.md'), 'The agent was here.\n')
  const mine = { path: 'SOUL.md', text: 'Mine.\n', sha }
  const conflict = { sha: git(folder, 'hash-object', 'SOUL.md').trim(), text: 'The agent was here.\n' }
  expect(await ask('file_write', mine)).toMatchObject({ status: 'failed', result: { conflict } })
  expect(await ask('file_delete', { path: 'SOUL.md', sha })).toMatchObject({ status: 'failed', result: { conflict } })
  expect(await ask('file_write', { ...mine, sha: null })).toMatchObject({ status: 'failed', result: { conflict } })
  expect(await readFile(join(folder, 'SOUL.md'), 'utf8')).toBe('The agent was here.\n')
  expect(await ask('file_write', { ...mine, sha: conflict.sha })).toMatchObject({ status: 'done' })
})

it('what a killed gateway had written already is committed by the second attempt, not a conflict with itself', async () => {
  const { gateway, agent, folder, files } = await setUp()
  const ada = await person(gateway, 'Ada')
  const { sha } = (await files())['SOUL.md'] ?? {}
  await writeFile(join(folder, 'SOUL.md'), 'Half-way.\n')
  const id = await gateway.addCommand('file_write', agent, {
    payload: JSON.stringify({ path: 'SOUL.md', text: 'Half-way.\n', sha }),
    requested_by: ada,
    attempt_count: 1,
  })
  expect(await gateway.command(id)).toMatchObject({ status: 'done', attempt_count: 2 })
  expect(git(folder, 'log', '-1', '--format=%an %s')).toBe('Ada Edit SOUL.md\n')
})

it('file_list, file_read, file_history, file_diff, file_restore and file_delete', async () => {
  const { ask, files, folder } = await setUp()
  const { sha } = (await files())['SOUL.md'] ?? {}
  await ask('file_write', { path: 'SOUL.md', text: '# Soul\n\nBe brief.\n', sha })
  const list = await ask('file_list', {})
  expect(list['result']).toMatchObject({ total: 6, truncated: false })
  const read = await ask('file_read', { path: 'SOUL.md' })
  expect(read['result']).toMatchObject({ text: '# Soul\n\nBe brief.\n', truncated: false })
  const { versions } = (await ask('file_history', { path: 'SOUL.md' }))['result'] as {
    versions: { commit: string; author: string; message: string; time: string }[]
  }
  expect(versions.map(({ author, message }) => [author, message])).toEqual([
    ['A person', 'Edit SOUL.md'],
    ['HQ templates', 'Add template writer'],
  ])
  expect(Date.parse(versions[0]?.time ?? '')).toBeGreaterThan(0)
  const diff = await ask('file_diff', { to: versions[0]?.commit, path: 'SOUL.md' })
  expect(diff['result']).toMatchObject({ text: expect.stringContaining('-Be clear.\n+Be brief.'), truncated: false })
  const old = await ask('file_read', { path: 'SOUL.md', commit: versions[1]?.commit })
  expect(old['result']).toMatchObject({ text: '# Soul\n\nBe clear.\n' })
  const now = (await files())['SOUL.md']?.sha
  const restored = await ask('file_restore', { path: 'SOUL.md', commit: versions[1]?.commit, sha: now })
  expect(restored).toMatchObject({ status: 'done', result: { sha } })
  expect((await files())['SOUL.md']?.content).toBe('# Soul\n\nBe clear.\n')
  expect(await ask('file_delete', { path: 'SOUL.md', sha })).toMatchObject({ status: 'done' })
  expect((await files())['SOUL.md']).toBeUndefined()
  expect(git(folder, 'status', '--porcelain')).toBe('')
  expect(git(join(folder, '../../repo.git'), 'fsck', '--strict', '--no-dangling')).toBe('')
})

it.each([
  ['file_read', { path: '../../credentials.json' }],
  ['file_read', { path: 'out/secret' }],
  ['file_read', { path: '.git' }],
  ['file_write', { path: '/etc/x', text: 'x', sha: null }],
  ['file_read', { path: '.hq-agent.json' }],
  ['file_write', { path: '.hq-agent.json', text: '{}', sha: null }],
  ['file_write', { path: 'x.md', text: 'x' }],
  ['file_write', { path: 'x.md', text: 'x', sha: 'HEAD' }],
  ['file_write', { path: 'x.md', text: 'a\u0001'.repeat(600_000), sha: null }],
  ['file_diff', { to: '--output=/tmp/x' }],
  ['file_delete', { path: 'SOUL.md' }],
])('%s of such a thing is refused with a sentence (%#)', async (action, payload) => {
  const { ask, folder } = await setUp()
  await mkdir(join(folder, '../../../outside'))
  await writeFile(join(folder, '../../../outside/secret'), 'secret')
  await symlink('../../../outside', join(folder, 'out'))
  const row = await ask(action, payload)
  expect(row).toMatchObject({ status: 'failed', error_message: expect.stringMatching(/\w/) })
  expect(JSON.stringify(row['result'] ?? '')).not.toContain('secret')
  expect(row['error_message']).not.toContain('unforeseen')
})

it('a result stays within 256 KiB, and says what is missing', async () => {
  const { ask, folder } = await setUp()
  await writeFile(join(folder, 'long.md'), '"\n'.repeat(200_000))
  const { result } = await ask('file_read', { path: 'long.md' })
  expect(result).toMatchObject({ truncated: true })
  expect(Buffer.byteLength(JSON.stringify(result))).toBeLessThanOrEqual(256 * 1024)
  const lost = await ask('file_write', { path: 'long.md', text: 'x', sha: null })
  expect(lost['result']).toMatchObject({ conflict: { text: null, truncated: true } })
})

it('upgrade_template merges, or tells both sides and changes nothing', async () => {
  const { gateway, ask, files, folder } = await setUp()
  const templates = join(gateway.context.home, '../templates')
  const { sha } = (await files())['SOUL.md'] ?? {}
  const written = await ask('file_write', { path: 'SOUL.md', text: '# Soul\n\nBe mine.\n', sha })
  await writeFiles(templates, { 'writer/SOUL.md': '# Soul\n\nBe new.\n', 'writer/MORE.md': 'For AGENT_NAME_HERE\n' })
  await gateway.context.workspaces.seedTemplates()
  const row = await ask('upgrade_template', {})
  const mine = (written['result'] as { sha: string }).sha
  expect(row).toMatchObject({
    status: 'failed',
    error_message: expect.stringContaining('SOUL.md'),
    result: {
      conflicts: [{ path: 'SOUL.md', sha: mine, mine: '# Soul\n\nBe mine.\n', theirs: '# Soul\n\nBe new.\n' }],
    },
  })
  expect((await files())['MORE.md']).toBeUndefined()
  const resolutions = [{ path: 'SOUL.md', sha: mine, text: '# Soul\n\nBe both.\n' }]
  expect(await ask('upgrade_template', { resolutions })).toMatchObject({ status: 'done', result: { state: 'merged' } })
  expect((await files())['MORE.md']?.content).toBe('For Wanda\n')
  expect((await files())['SOUL.md']?.content).toBe('# Soul\n\nBe both.\n')
  expect((await ask('upgrade_template', {}))['result']).toEqual({ state: 'current' })
  expect(git(folder, 'status', '--porcelain')).toBe('')
})
