import { execFileSync } from 'node:child_process'
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../testing/folder.ts'
import { profile, smallTemplates, writeFiles } from '../testing/templates.ts'
import { agentAuthor, type Workspaces } from './contract.ts'
import { createWorkspaces } from './workspaces.ts'

const ADA = { name: 'Ada Lovelace', email: 'ada@people.hq.local' }
const WANDA = agentAuthor({ name: 'Wanda', slug: 'wanda' })

const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', args, { cwd, encoding: 'utf8', stdio: 'pipe', env: { PATH: process.env['PATH'], HOME: cwd } })

interface Place {
  readonly home: string
  readonly folder: string
  readonly templates: string
  readonly workspaces: Workspaces
}

async function setUp(): Promise<Place> {
  const root = await temporaryFolder()
  const [home, templates] = [join(root, 'home'), join(root, 'templates')]
  await writeFiles(templates, smallTemplates())
  let now = Date.UTC(2026, 0, 2)
  const workspaces = await createWorkspaces({ home, templates, now: () => (now += 1000) })
  await workspaces.seedTemplates()
  await workspaces.createBranch(profile())
  return { home, templates, workspaces, folder: await workspaces.createWorktree('wanda') }
}

function expectSound({ home, folder }: Place): void {
  expect(git(join(home, 'repo.git'), 'fsck', '--strict', '--no-dangling')).toBe('')
  expect(git(folder, 'status', '--porcelain')).toBe('')
}

describe('one file', () => {
  it('is committed alone and under its author’s name; what else lies there stays its maker’s (W6)', async () => {
    const place = await setUp()
    const { workspaces, folder } = place
    await writeFile(join(folder, 'stray.md'), 'of the agent\n')
    await writeFile(join(folder, 'SOUL.md'), 'changed by the agent\n')
    await writeFile(join(folder, '.gitignore'), '*.md\n')
    await workspaces.writeText('wanda', 'notes/plan.md', 'one\n', { author: ADA })
    expect(git(folder, 'show', '--format=%an <%ae> %s', '--name-only').trim()).toBe(
      'Ada Lovelace <ada@people.hq.local> Edit notes/plan.md\n\nnotes/plan.md',
    )
    expect(git(folder, 'status', '--porcelain')).toContain('SOUL.md')
    await workspaces.commit('wanda', 'Work', WANDA)
    expect(git(folder, 'show', '--format=%an', '--name-only').trim()).toBe('Wanda\n\n.gitignore\nSOUL.md')
    await rm(join(folder, '.gitignore'))
    await workspaces.commit('wanda', 'Work', WANDA)
    expectSound(place)
  })

  it('that changed since it was read is a conflict with what is there; the wanted content is none (W7)', async () => {
    const place = await setUp()
    const { workspaces, folder } = place
    const sha = await workspaces.writeText('wanda', 'a.md', 'one\n', { author: ADA, expectedSha: null })
    const theirs = await workspaces.writeText('wanda', 'a.md', 'two\n', { author: WANDA, expectedSha: sha })
    const mine = { author: ADA, expectedSha: sha }
    await expect(workspaces.writeText('wanda', 'a.md', 'three\n', mine)).rejects.toMatchObject({
      code: 'stale',
      sha: theirs,
      text: 'two\n',
    })
    await expect(workspaces.deleteFile('wanda', 'a.md', mine)).rejects.toMatchObject({ code: 'stale', sha: theirs })
    expect(await workspaces.writeText('wanda', 'a.md', 'two\n', mine)).toBe(theirs)
    expect(await readFile(join(folder, 'a.md'), 'utf8')).toBe('two\n')
    await workspaces.deleteFile('wanda', 'a.md', { author: ADA, expectedSha: theirs })
    await expect(
      workspaces.writeText('wanda', 'a.md', 'x', { author: ADA, expectedSha: theirs }),
    ).rejects.toMatchObject({
      sha: null,
      text: null,
    })
    await workspaces.deleteFile('wanda', 'a.md', { author: ADA, expectedSha: theirs })
    await expect(workspaces.deleteFile('wanda', 'a.md', { author: ADA })).rejects.toMatchObject({ code: 'not_found' })
    expectSound(place)
  })

  it.each([
    '../x.md',
    '/etc/passwd',
    'a/../../x',
    '.git/config',
    '.GIT/config',
    'a/.git /x',
    'git~1/x',
    'a\\b',
    'a\0b',
    '',
    '.',
    'out/x.md',
    'a/',
    'x'.repeat(1025),
  ])('%j is refused, whatever is asked of it', async (path) => {
    const { workspaces, folder } = await setUp()
    await mkdir(join(folder, '../../outside'), { recursive: true })
    await symlink('../../outside', join(folder, 'out'))
    const commit = await workspaces.head('wanda')
    const options = { author: ADA }
    for (const attempt of [
      () => workspaces.readText('wanda', path),
      () => workspaces.writeText('wanda', path, 'x', options),
      () => workspaces.deleteFile('wanda', path, options),
    ])
      await expect(attempt()).rejects.toMatchObject({ code: 'path_refused' })
    if (path.startsWith('out/')) return
    for (const attempt of [
      () => workspaces.history('wanda', path),
      () => workspaces.readAt('wanda', commit, path),
      () => workspaces.restoreVersion('wanda', commit, path, options),
    ])
      await expect(attempt()).rejects.toMatchObject({ code: 'path_refused' })
  })

  it('is text of at most 1 MiB', async () => {
    const { workspaces, folder } = await setUp()
    await writeFile(join(folder, 'b.bin'), Buffer.from([1, 0, 2]))
    await expect(workspaces.readText('wanda', 'b.bin')).rejects.toMatchObject({ code: 'not_text' })
    for (const text of ['x'.repeat(1024 * 1024 + 1), 'a\0b', 'half \ud83d'])
      await expect(workspaces.writeText('wanda', 'c.md', text, { author: ADA })).rejects.toMatchObject({
        code: 'not_text',
      })
    await symlink('SOUL.md', join(folder, 'link.md'))
    await expect(workspaces.readText('wanda', 'link.md')).rejects.toMatchObject({ code: 'path_refused' })
  })
})

describe('old versions', () => {
  it('are listed with who made them, shown, compared and restored as a new commit', async () => {
    const place = await setUp()
    const { workspaces } = place
    await workspaces.writeText('wanda', 'a.md', 'one\ntwo\n', { author: ADA, message: 'First' })
    await workspaces.writeText('wanda', 'other.md', 'x\n', { author: ADA })
    await workspaces.writeText('wanda', 'a.md', 'one\n2\n', { author: WANDA })
    await workspaces.deleteFile('wanda', 'a.md', { author: ADA })
    const versions = await workspaces.history('wanda', 'a.md')
    expect(versions.map(({ author, message, sha }) => [author, message, sha !== null])).toEqual([
      ['Ada Lovelace', 'Delete a.md', false],
      ['Wanda', 'Edit a.md', true],
      ['Ada Lovelace', 'First', true],
    ])
    expect((await workspaces.history('wanda')).map(({ message }) => message)).toEqual([
      'Delete a.md',
      'Edit a.md',
      'Edit other.md',
      'First',
      'Set up Wanda from template writer',
      'Add template writer',
    ])
    expect(await workspaces.history('wanda', undefined, 2)).toHaveLength(2)
    const [deleted, second, first] = versions.map(({ commit }) => commit)
    if (!deleted || !second || !first) throw new Error('no versions')
    expect((await workspaces.readAt('wanda', first, 'a.md')).text).toBe('one\ntwo\n')
    const { text } = await workspaces.diff('wanda', { to: second, path: 'a.md' })
    expect(text).toContain('--- a/a.md\n+++ b/a.md\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n')
    expect((await workspaces.diff('wanda', { from: first, to: deleted })).text).toContain('other.md')
    await expect(workspaces.readAt('wanda', deleted, 'a.md')).rejects.toMatchObject({ code: 'not_found' })
    await workspaces.restoreVersion('wanda', first, 'a.md', { author: ADA, expectedSha: null })
    expect((await workspaces.readText('wanda', 'a.md')).text).toBe('one\ntwo\n')
    expect((await workspaces.history('wanda', 'a.md', 1))[0]).toMatchObject({
      author: 'Ada Lovelace',
      message: `Restore a.md from ${first.slice(0, 10)}`,
    })
    expectSound(place)
  })

  it('of another agent, and what is no commit, are not to be had (W8)', async () => {
    const { workspaces } = await setUp()
    await workspaces.createBranch(profile({ slug: 'bert', agentId: 'b', name: 'Bert' }))
    await workspaces.createWorktree('bert')
    await workspaces.writeText('bert', 'secret.md', 'mine\n', { author: ADA })
    const foreign = await workspaces.head('bert')
    for (const commit of [
      foreign,
      'HEAD',
      '--output=/tmp/x',
      'f'.repeat(40),
      (await workspaces.list('wanda'))[0]?.sha ?? '',
    ]) {
      await expect(workspaces.readAt('wanda', commit, 'secret.md')).rejects.toMatchObject({ code: 'not_found' })
      await expect(workspaces.diff('wanda', { to: commit })).rejects.toMatchObject({ code: 'not_found' })
    }
  })
})

describe('a template’s upgrade', () => {
  it('brings what the template changed, and leaves the agent’s own work', async () => {
    const place = await setUp()
    const { workspaces, templates, folder } = place
    expect(await workspaces.upgradeTemplate(profile())).toEqual({ state: 'current' })
    await workspaces.writeText('wanda', 'MEMORY.md', 'Mine.\n', { author: WANDA })
    await workspaces.writeText('wanda', 'SOUL.md', '# Soul\n\nBe clear.\n\nMine at the end.\n', { author: WANDA })
    await writeFile(join(folder, 'stray.md'), 'not committed\n')
    await writeFiles(templates, {
      'writer/SOUL.md': '# Soul of a writer\n\nBe clear.\n',
      'writer/NEW.md': 'For AGENT_SLUG_HERE.\n',
    })
    await rm(join(templates, '_shared/skills'), { recursive: true })
    const before = await workspaces.head('wanda')
    await workspaces.seedTemplates()
    expect(await workspaces.head('wanda')).toBe(before)
    expect(await workspaces.upgradeTemplate(profile())).toMatchObject({
      state: 'merged',
      changed: ['NEW.md', 'SOUL.md', 'skills/hq/SKILL.md'],
    })
    expect(await readFile(join(folder, 'SOUL.md'), 'utf8')).toBe(
      '# Soul of a writer\n\nBe clear.\n\nMine at the end.\n',
    )
    expect(await readFile(join(folder, 'NEW.md'), 'utf8')).toBe('For wanda.\n')
    expect(await readFile(join(folder, 'MEMORY.md'), 'utf8')).toBe('Mine.\n')
    expect(await readFile(join(folder, 'stray.md'), 'utf8')).toBe('not committed\n')
    await expect(readFile(join(folder, 'skills/hq/SKILL.md'))).rejects.toThrow('ENOENT')
    expect(await workspaces.upgradeTemplate(profile())).toEqual({ state: 'current' })
    expect((await workspaces.history('wanda', 'SOUL.md'))[0]?.message).toBe('Upgrade template writer')
    expectSound(place)
  })

  it('changes nothing while there is a conflict, and then what was decided', async () => {
    const place = await setUp()
    const { workspaces, templates } = place
    const sha = await workspaces.writeText('wanda', 'SOUL.md', '# Soul\n\nBe mine.\n', { author: WANDA })
    await workspaces.deleteFile('wanda', 'AGENTS.md', { author: WANDA })
    await writeFiles(templates, {
      'writer/SOUL.md': '# Soul\n\nBe theirs.\n',
      '_shared/AGENTS.md': 'Changed.\n',
      'writer/NEW.md': 'n\n',
    })
    await workspaces.seedTemplates()
    const before = await workspaces.head('wanda')
    const conflicts = [
      { path: 'AGENTS.md', sha: null, base: '# How to work\n\nI am wanda.\n', mine: null, theirs: 'Changed.\n' },
      {
        path: 'SOUL.md',
        sha,
        base: '# Soul\n\nBe clear.\n',
        mine: '# Soul\n\nBe mine.\n',
        theirs: '# Soul\n\nBe theirs.\n',
      },
    ]
    expect(await workspaces.upgradeTemplate(profile())).toEqual({ state: 'conflicts', conflicts })
    const [agents, soul] = [
      { path: 'AGENTS.md', sha: null, text: null },
      { path: 'SOUL.md', sha, text: 'Both.\n' },
    ]
    expect(await workspaces.upgradeTemplate(profile(), [agents, { ...soul, sha: 'f'.repeat(40) }])).toEqual({
      state: 'conflicts',
      conflicts: conflicts.slice(1),
    })
    expect(await workspaces.head('wanda')).toBe(before)
    expect(await workspaces.upgradeTemplate(profile(), [agents, soul])).toMatchObject({ state: 'merged' })
    expect((await workspaces.readText('wanda', 'SOUL.md')).text).toBe('Both.\n')
    expect(await workspaces.upgradeTemplate(profile())).toEqual({ state: 'current' })
    expectSound(place)
  })
})
