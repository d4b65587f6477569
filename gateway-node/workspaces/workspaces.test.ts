import { execFileSync } from 'node:child_process'
import { cp, mkdir, readdir, readFile, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { temporaryFolder } from '../testing/folder.ts'
import { agentJson, profile, smallTemplates, writeFiles } from '../testing/templates.ts'
import { GATEWAY_AUTHOR, type Workspaces } from './contract.ts'
import { createSystemGit } from './system-git.ts'
import { createWorkspaces } from './workspaces.ts'

const NOW = Date.UTC(2026, 0, 2, 3, 4, 5, 678)

interface Set {
  home: string
  templates: string
  workspaces: Workspaces
  open(more?: { afterStep?: (step: string) => void; binary?: string }): Promise<Workspaces>
}

async function setUp(files = smallTemplates()): Promise<Set> {
  const root = await temporaryFolder()
  const home = join(root, 'home')
  const templates = join(root, 'templates')
  await writeFiles(templates, files)
  const open: Set['open'] = ({ afterStep, binary } = {}) =>
    createWorkspaces({
      home,
      templates,
      now: () => NOW,
      ...(binary ? { git: createSystemGit(binary) } : {}),
      ...(afterStep ? { afterStep } : {}),
    })
  return { home, templates, open, workspaces: await open() }
}

const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', args, { cwd, encoding: 'utf8', stdio: 'pipe', env: { PATH: process.env.PATH, HOME: cwd } })

async function provision(workspaces: Workspaces, more = {}): Promise<string> {
  await workspaces.createBranch(profile(more))
  return workspaces.createWorktree(profile(more).slug)
}

/** The repository is whole, and the worktree is a clean one on its branch, as the real git sees it. */
function expectSound(home: string, slug = 'wanda', branch = 'acme/wanda'): void {
  const folder = join(home, 'agents', slug)
  expect(git(join(home, 'repo.git'), 'fsck', '--strict', '--no-dangling')).toBe('')
  expect(git(folder, 'status', '--porcelain', '--branch')).toBe(`## ${branch}\n`)
}

describe('templates', () => {
  it('become branches with the shared files under their own, and only a change makes a commit', async () => {
    const { home, templates, workspaces } = await setUp()
    const first = await workspaces.seedTemplates()
    expect(first.map(({ slug, changed, error }) => [slug, changed, error])).toEqual([
      ['analyst', true, undefined],
      ['writer', true, undefined],
    ])
    const repo = join(home, 'repo.git')
    expect(git(repo, 'show', 'template/analyst:AGENTS.md')).toBe('# How an analyst works\n')
    expect(git(repo, 'show', 'template/writer:AGENTS.md')).toContain('# How to work')
    expect((await workspaces.seedTemplates()).map(({ changed }) => changed)).toEqual([false, false])

    await writeFile(join(templates, 'writer/SOUL.md'), 'New.\n')
    expect((await workspaces.seedTemplates()).map(({ changed }) => changed)).toEqual([false, true])
    expect(git(repo, 'log', '--format=%s', 'template/writer')).toBe('Update template writer\nAdd template writer\n')
    expect(git(repo, 'fsck', '--strict')).toBe('')
  })

  it.each([
    ['no JSON', { 'broken/agent.json': '{' }, /agent\.json is not JSON/],
    ['a wrong slug', { 'broken/agent.json': agentJson('other') }, /says slug "other"/],
    ['no name', { 'broken/agent.json': agentJson('broken', { name: '' }) }, /agent\.json: name/],
    ['no SOUL.md', { 'broken/agent.json': agentJson('broken'), 'broken/IDENTITY.md': 'x' }, /SOUL\.md is missing/],
    ['a huge file', { 'broken/big.bin': 'x'.repeat(1024 * 1024 + 1) }, /larger than 1 MiB/],
    ['a folder name with a space', { 'bad name/agent.json': '{}' }, /folder must be named/],
  ])('with %s are reported and cost the others nothing', async (_what, files, reason) => {
    const { workspaces } = await setUp({ ...smallTemplates(), ...files })
    const reports = await workspaces.seedTemplates()
    const broken = reports.filter(({ error }) => error)
    expect(broken).toHaveLength(1)
    expect(broken[0]?.error).toMatch(reason)
    expect(reports.filter(({ template }) => template).map(({ slug }) => slug)).toEqual(['analyst', 'writer'])
    await provision(workspaces)
    if (broken[0]?.slug === 'broken') {
      const attempt = workspaces.createBranch(profile({ slug: 'bert', template: 'broken' }))
      await expect(attempt).rejects.toMatchObject({ code: 'template_broken', message: expect.stringMatching(reason) })
    }
  })

  it('with a link out of their folder are broken (T3)', async () => {
    const { templates, workspaces } = await setUp()
    await symlink('/etc/passwd', join(templates, 'writer/passwd'))
    const report = (await workspaces.seedTemplates()).find(({ slug }) => slug === 'writer')
    expect(report?.error).toContain('passwd is not a regular file')
  })
})

describe('provision', () => {
  it('fills a worktree in that the real git accepts', async () => {
    const { home, workspaces } = await setUp()
    await workspaces.seedTemplates()
    const folder = await provision(workspaces)
    expectSound(home)
    const read = (path: string): Promise<string> => readFile(join(folder, path), 'utf8')
    expect(await read('USER.md')).toContain('Ada Lovelace, called Ada, lives in Europe/London.')
    expect(await read('AGENTS.md')).toContain('I am wanda.')
    expect(await read('IDENTITY.md')).toContain('## Name\n\nWanda\n\n## Role\n\nWrites.\n\n## Emoji\n\n🦊\n\n## Vibe')
    expect(JSON.parse(await read('agent.json'))).toMatchObject({
      slug: 'wanda',
      name: 'Wanda',
      description: 'Writes the newsletter',
      emoji: '🦊',
      domains: ['writing'],
      keep_me: 7,
    })
    expect(git(folder, 'log', '--format=%an: %s')).toBe(
      'HQ gateway: Set up Wanda from template writer\nHQ templates: Add template writer\n',
    )
    expect((await workspaces.list('wanda')).map(({ path }) => path)).toEqual([
      'AGENTS.md',
      'IDENTITY.md',
      'SOUL.md',
      'USER.md',
      'agent.json',
      'skills/hq/SKILL.md',
    ])
  })

  it('takes names as they come', async () => {
    const { workspaces } = await setUp()
    const name = '$& `rm -rf` "Ü"\n## Emoji\n'
    const folder = await provision(workspaces, { name, owner: { name: "$1 O'Neil", preferredName: '', timezone: '' } })
    expect(await readFile(join(folder, 'USER.md'), 'utf8')).toContain("$1 O'Neil, called $1, lives in UTC.")
    expect(await readFile(join(folder, 'IDENTITY.md'), 'utf8')).toContain('## Name\n\n$& `rm -rf` "Ü" ## Emoji\n')
    expect(JSON.parse(await readFile(join(folder, 'agent.json'), 'utf8')).name).toBe(name)
  })

  it('may be repeated (W1)', async () => {
    const { home, workspaces } = await setUp()
    const folder = await provision(workspaces)
    await writeFile(join(folder, 'note.md'), 'mine')
    const head = await workspaces.head('wanda')
    expect(await provision(workspaces)).toBe(folder)
    expect(await workspaces.head('wanda')).toBe(head)
    expect(await readFile(join(folder, 'note.md'), 'utf8')).toBe('mine')
    expect(git(join(home, 'repo.git'), 'worktree', 'list').trim().split('\n')).toHaveLength(2)
  })

  it.each(['owner', 'commit', 'branch'])('finishes after a crash behind step %s (W1)', async (crash) => {
    const { home, open } = await setUp()
    const dying = await open({ afterStep: dieAt(crash) })
    await expect(provision(dying)).rejects.toThrow('died')
    const next = await open()
    await provision(next)
    expectSound(home)
    expect(git(join(home, 'agents/wanda'), 'rev-list', '--count', 'HEAD')).toBe('1\n')
  })

  it.each([
    ['a folder is in the way', (folder: string) => writeFiles(folder, { 'mine.txt': 'keep' })],
    ['the .git file is torn', (folder: string) => writeFiles(folder, { '.git': 'gitd' })],
    ['a killed git has left its mark', halfMade],
  ])('finishes when %s, and deletes nothing (W2)', async (_what, spoil) => {
    const { home, workspaces } = await setUp()
    await workspaces.createBranch(profile())
    const folder = join(home, 'agents/wanda')
    await spoil(folder)
    const before = await readdir(folder).catch(() => [])
    await workspaces.createWorktree('wanda')
    expectSound(home)
    const [aside] = await readdir(join(home, 'agents/.aside'))
    expect(await readdir(join(home, 'agents/.aside', aside ?? ''))).toEqual(before)
  })

  it('refuses a slug that belongs to another agent (W4)', async () => {
    const { workspaces } = await setUp()
    await provision(workspaces)
    const other = workspaces.createBranch(profile({ agentId: '0199aaaa-0000-7000-8000-000000000002' }))
    await expect(other).rejects.toMatchObject({ code: 'slug_taken' })
  })

  it.each(['', 'a', 'A-B', '../x', 'x/y', 'x.lock', '-x', 'x-', 'a'.repeat(41), 'ä-b', 'a b'])(
    'refuses the slug %j',
    async (slug) => {
      const { workspaces } = await setUp()
      await expect(workspaces.createBranch(profile({ slug }))).rejects.toMatchObject({ code: 'slug_invalid' })
    },
  )

  it('never lands among the templates, whatever the workspace is called', async () => {
    const { home, workspaces } = await setUp()
    await workspaces.seedTemplates()
    await provision(workspaces, { slug: 'writer', workspaceSlug: 'template' })
    expectSound(home, 'writer', 'workspace-template/writer')
    await provision(workspaces, { slug: 'bert', agentId: 'b', workspaceSlug: '../../Ü..lock' })
    expectSound(home, 'bert', 'lock/bert')
  })

  it('says so when there is no git, and templates are seeded all the same', async () => {
    const { open } = await setUp()
    const without = await open({ binary: 'no-such-git' })
    expect(await without.gitVersion()).toBeNull()
    expect((await without.seedTemplates()).filter(({ template }) => template)).toHaveLength(2)
    await without.createBranch(profile())
    await expect(without.createWorktree('wanda')).rejects.toMatchObject({
      code: 'git_missing',
      message: expect.stringContaining('Install git'),
    })
    const withGit = await open()
    expect(await withGit.gitVersion()).toMatch(/^\d+\.\d+/)
    await provision(withGit)
  })
})

describe('changes', () => {
  it('are committed under their author, and no change makes no commit', async () => {
    const { home, workspaces } = await setUp()
    const folder = await provision(workspaces)
    const author = { name: 'Wanda', email: 'wanda@agents.hq.local' }
    expect(await workspaces.commit('wanda', 'Nothing', author)).toBeNull()
    await writeFiles(folder, { 'notes/ü ".md': 'x' })
    await rm(join(folder, 'SOUL.md'))
    const commit = await workspaces.commit('wanda', '# Draft', author)
    expect(await workspaces.head('wanda')).toBe(commit)
    expect(git(folder, 'log', '-1', '--format=%an <%ae> %s')).toBe('Wanda <wanda@agents.hq.local> # Draft\n')
    const paths = (await workspaces.list('wanda')).map(({ path }) => path)
    expect(paths).toContain('notes/ü ".md')
    expect(paths).not.toContain('SOUL.md')
    expectSound(home)
  })

  it("never hold an agent's connection file, not even when it was added by force", async () => {
    const { workspaces } = await setUp()
    const folder = await provision(workspaces)
    await writeFiles(folder, { '.hq-agent.json': '{"token":"secret"}', 'note.md': 'x' })
    await workspaces.commit('wanda', 'Note', GATEWAY_AUTHOR)
    expect(git(folder, 'ls-files', '.hq-agent.json')).toBe('')
    git(folder, 'add', '--force', '.hq-agent.json')
    await workspaces.commit('wanda', 'By force', GATEWAY_AUTHOR)
    expect((await workspaces.list('wanda')).map(({ path }) => path)).not.toContain('.hq-agent.json')
  })

  it('are kept although one of them cannot be committed', async () => {
    const { workspaces } = await setUp()
    const folder = await provision(workspaces)
    await mkdir(join(folder, 'inner'))
    git(join(folder, 'inner'), 'init', '--quiet')
    await writeFile(join(folder, 'note.md'), 'x')
    await workspaces.commit('wanda', 'Both', GATEWAY_AUTHOR)
    expect((await workspaces.list('wanda')).map(({ path }) => path)).toContain('note.md')
  })

  it('are not stopped by the lock of a git that was killed long ago (G2)', async () => {
    const { home, workspaces } = await setUp()
    const folder = await provision(workspaces)
    const lock = join(home, 'repo.git/worktrees/wanda/index.lock')
    await writeFile(lock, '')
    await utimes(lock, 1, 1)
    await writeFile(join(folder, 'note.md'), 'x')
    expect(await workspaces.commit('wanda', 'After all', GATEWAY_AUTHOR)).toMatch(/^[0-9a-f]{40}$/)
  })

  it('with the blob id that was read are refused once the file is another', async () => {
    const { workspaces } = await setUp()
    await provision(workspaces)
    const { text, sha } = await workspaces.readText('wanda', 'SOUL.md')
    const options = { author: GATEWAY_AUTHOR, expectedSha: sha }
    const next = await workspaces.writeText('wanda', 'SOUL.md', `${text}More.\n`, options)
    expect((await workspaces.list('wanda')).find(({ path }) => path === 'SOUL.md')?.sha).toBe(next)
    await expect(workspaces.writeText('wanda', 'SOUL.md', 'x', options)).rejects.toMatchObject({ code: 'stale' })
    await expect(
      workspaces.writeText('wanda', 'SOUL.md', 'x', { author: GATEWAY_AUTHOR, expectedSha: null }),
    ).rejects.toMatchObject({ code: 'stale' })
  })

  it('survive a home that moved, and a copy of it leaves the original alone (L2)', async () => {
    const { home, templates, workspaces } = await setUp()
    await provision(workspaces)
    const copy = `${home}-copy`
    await cp(home, copy, { recursive: true })
    const opened = await createWorkspaces({ home: copy, templates, now: () => NOW })
    await writeFile(join(copy, 'agents/wanda/note.md'), 'copy')
    await opened.commit('wanda', 'In the copy', GATEWAY_AUTHOR)
    expectSound(copy)
    expectSound(home)
    expect(git(join(home, 'agents/wanda'), 'log', '-1', '--format=%s')).toBe('Set up Wanda from template writer\n')

    await rename(home, `${home}-moved`)
    const moved = await createWorkspaces({ home: `${home}-moved`, templates, now: () => NOW })
    expect(await moved.exists('wanda')).toBe(true)
    expectSound(`${home}-moved`)
  })
})

describe('paths (W3)', () => {
  it.each([
    '..',
    '../x',
    'a/../../x',
    'a/../x',
    '/etc/passwd',
    '',
    '.',
    './',
    'a/',
    'a\\..\\b',
    'a\0b',
    'a\nb',
    '.git',
    '.git/config',
    'x/.GIT/config',
    '.git.',
    '.git ',
    '.git::$INDEX_ALLOCATION',
    'GIT~1',
    'out/passwd',
    'out',
    'dangling',
    'loop/x',
    'a'.repeat(300),
  ])('refuse %j', async (path) => {
    const { workspaces } = await setUp()
    const folder = await provision(workspaces)
    await symlink('/etc', join(folder, 'out'))
    await symlink('/nowhere/at/all', join(folder, 'dangling'))
    await symlink('loop', join(folder, 'loop'))
    await expect(workspaces.resolve('wanda', path)).rejects.toMatchObject({ code: 'path_refused' })
    await expect(workspaces.readText('wanda', path)).rejects.toMatchObject({ code: 'path_refused' })
    const write = workspaces.writeText('wanda', path, 'x', { author: GATEWAY_AUTHOR })
    await expect(write).rejects.toMatchObject({ code: 'path_refused' })
  })

  it.each(['note.md', './a//b.md', '..a', 'a..b/c', 'ü/✍️.md', '.gitignore', 'inside/x.md'])('take %j', async (path) => {
    const { workspaces } = await setUp()
    const folder = await provision(workspaces)
    await symlink('skills', join(folder, 'inside'))
    await workspaces.writeText('wanda', path, 'x', { author: GATEWAY_AUTHOR })
    expect((await workspaces.readText('wanda', path)).text).toBe('x')
    expect((await workspaces.resolve('wanda', path)).startsWith(folder)).toBe(true)
  })
})

describe('removal', () => {
  it('leaves nothing but an archive with everything in it, strays included (W2)', async () => {
    const { home, workspaces } = await setUp()
    const folder = await provision(workspaces)
    await writeFile(join(folder, 'stray.md'), 'not committed')
    const archive = await workspaces.remove('wanda')
    expect(archive).toBe('refs/archive/wanda-20260102T030405678Z')
    const repo = join(home, 'repo.git')
    expect(git(repo, 'show', `${archive}:stray.md`)).toBe('not committed')
    expect(git(repo, 'branch', '--list', 'acme/*')).toBe('')
    expect(git(repo, 'worktree', 'list').trim().split('\n')).toHaveLength(1)
    expect(git(repo, 'fsck', '--strict')).toBe('')
    expect(await readdir(join(home, 'agents'))).toEqual([])
    expect(await workspaces.remove('wanda')).toBeNull()
    await provision(workspaces, { agentId: 'another' })
    expectSound(home)
  })

  it.each(['strays', 'archived', 'worktree', 'branch'])('finishes after a crash behind step %s (W1)', async (crash) => {
    const { home, open, workspaces } = await setUp()
    const folder = await provision(workspaces)
    await writeFile(join(folder, 'stray.md'), 'x')
    const dying = await open({ afterStep: dieAt(crash) })
    await expect(dying.remove('wanda')).rejects.toThrow('died')
    await (await open()).remove('wanda')
    expect(await readdir(join(home, 'agents'))).toEqual([])
    const archives = git(join(home, 'repo.git'), 'for-each-ref', '--format=%(refname)', 'refs/archive')
      .trim()
      .split('\n')
    expect(archives).toHaveLength(1)
    expect(git(join(home, 'repo.git'), 'show', `${archives[0]}:stray.md`)).toBe('x')
  })

  it('keeps the folder when nothing can be committed because git is gone', async () => {
    const { home, open, workspaces } = await setUp()
    const folder = await provision(workspaces)
    await writeFile(join(folder, 'stray.md'), 'x')
    await (await open({ binary: 'no-such-git' })).remove('wanda')
    const [aside] = await readdir(join(home, 'agents/.aside'))
    expect(await readFile(join(home, 'agents/.aside', aside ?? '', 'stray.md'), 'utf8')).toBe('x')
  })
})

function dieAt(step: string): (name: string) => void {
  return (name) => {
    if (name === step) throw new Error('died')
  }
}

/** As `git worktree add` leaves it when it is killed while checking out. */
async function halfMade(folder: string): Promise<void> {
  const admin = join(folder, '../../repo.git/worktrees/wanda')
  await writeFiles(admin, {
    locked: 'initializing',
    HEAD: 'ref: refs/heads/acme/wanda\n',
    commondir: '../..\n',
    gitdir: `${folder}/.git\n`,
  })
  await writeFiles(folder, { '.git': `gitdir: ${admin}\n`, 'half.md': '' })
}
