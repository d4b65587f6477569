import { execFileSync } from 'node:child_process'
import { chmod, readFile, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createTestGateway } from '../testing/context.ts'
import { profile } from '../testing/templates.ts'
import { agentAuthor } from './contract.ts'
import { publishFiles } from './publish.ts'
import { createRemoteMirror, remoteOf } from './remote.ts'
import { createSystemGit } from './system-git.ts'

const WANDA = agentAuthor({ name: 'Wanda', slug: 'wanda' })
const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', ['-c', 'user.name=Else', '-c', 'user.email=else@example.com', ...args], {
    cwd,
    encoding: 'utf8',
    stdio: 'pipe',
    env: { PATH: process.env['PATH'], HOME: cwd },
  })

async function setUp() {
  const gateway = await createTestGateway()
  const id = await gateway.addAgent('wanda')
  const { workspaces, home } = gateway.context
  await workspaces.createBranch(profile({ agentId: id }))
  await workspaces.createWorktree('wanda')
  await publishFiles(gateway.context, { id, slug: 'wanda' })
  const root = join(home, '..')
  git(root, 'init', '--quiet', '--bare', 'remote.git')
  const remote = join(root, 'remote.git')
  const context = { ...gateway.context, env: { HQ_GIT_REMOTE: remote } }
  const mirror = createRemoteMirror(context)
  if (!mirror) throw new Error('no mirror')
  /** A commit that somebody else makes on the remote. */
  const elsewhere = (file: string, text: string): void => {
    git(root, 'clone', '--quiet', '--branch', 'acme/wanda', 'remote.git', `clone-${file}`)
    const clone = join(root, `clone-${file}`)
    execFileSync('sh', ['-c', 'printf %s "$1" > "$2"', 'sh', text, file], { cwd: clone })
    git(clone, 'add', '.')
    git(clone, 'commit', '--quiet', '-m', 'Elsewhere')
    git(clone, 'push', '--quiet', 'origin', 'acme/wanda')
  }
  return { gateway, id, remote, mirror, elsewhere, workspaces, folder: workspaces.folder('wanda'), home }
}

it('pushes what is new here, takes over what is new there, and forces neither (RM1, RM2)', {
  timeout: 120_000,
}, async () => {
  const { gateway, id, remote, mirror, elsewhere, workspaces, folder, home } = await setUp()
  expect(await mirror.round()).toEqual([])
  expect(git(remote, 'for-each-ref', '--format=%(refname)')).toBe('refs/heads/acme/wanda\n')
  await workspaces.writeText('wanda', 'a.md', 'one\n', { author: WANDA })
  expect(await mirror.round()).toEqual([])
  expect(git(remote, 'show', 'acme/wanda:a.md')).toBe('one\n')

  elsewhere('b.md', 'from elsewhere\n')
  expect(await mirror.round()).toEqual([])
  expect(await readFile(join(folder, 'b.md'), 'utf8')).toBe('from elsewhere\n')
  const shown = 'select content from agent_files where agent_id = $1 and path = $2'
  expect(await gateway.replica.query(shown, [id, 'b.md'])).toEqual([{ content: 'from elsewhere\n' }])

  elsewhere('c.md', 'theirs\n')
  await workspaces.writeText('wanda', 'd.md', 'mine\n', { author: WANDA })
  const before = [git(remote, 'rev-parse', 'acme/wanda'), await workspaces.head('wanda')]
  expect(await mirror.round()).toEqual(['acme/wanda'])
  expect([git(remote, 'rev-parse', 'acme/wanda'), await workspaces.head('wanda')]).toEqual(before)
  expect(git(folder, 'status', '--porcelain')).toBe('')
  expect(git(join(home, 'repo.git'), 'fsck', '--strict', '--no-dangling')).toBe('')
})

it('keeps a credential out of argv and of what git says, and hands it over in the environment (RM3)', async () => {
  const { gateway, home } = await setUp()
  const [binary, seen] = [join(home, 'fake-git'), join(home, 'seen')]
  await writeFile(
    binary,
    `#!/bin/sh\nprintf '%s\\n' "$@" >> ${seen}\necho "env:$HQ_REMOTE_USERNAME:$HQ_REMOTE_PASSWORD" >> ${seen}.env\necho "fatal: $*" >&2\nexit 128\n`,
  )
  await chmod(binary, 0o700)
  const context = { ...gateway.context, env: { HQ_GIT_REMOTE: 'https://bot:TOP%2FSECRET@git.example/x.git' } }
  const mirror = createRemoteMirror(context, { git: createSystemGit(binary) })
  const error = await mirror?.round().catch((reason: unknown) => reason)
  expect(String(error)).not.toContain('SECRET')
  expect(await readFile(seen, 'utf8')).toContain('https://git.example/x.git')
  expect(await readFile(seen, 'utf8')).not.toContain('SECRET')
  expect(await readFile(`${seen}.env`, 'utf8')).toBe('env:bot:TOP/SECRET\n')
})

/** A web server that wants a password, or leads elsewhere; whatever it was given as one. */
async function host(elsewhere?: () => string) {
  const given: (string | null)[] = []
  const server = createServer((request, response) => {
    const basic = /^Basic (.+)$/.exec(request.headers.authorization ?? '')?.[1]
    given.push(basic ? Buffer.from(basic, 'base64').toString() : null)
    if (elsewhere) response.writeHead(302, { location: elsewhere() + (request.url ?? '') }).end()
    else response.writeHead(401, { 'www-authenticate': 'Basic realm="git"' }).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close().closeAllConnections())
  return { given, port: (server.address() as AddressInfo).port }
}

it('the credential goes to the named host as it is, and not to where that host leads (real git, real HTTP)', async () => {
  const { gateway } = await setUp()
  const ask = async (port: number): Promise<void> => {
    const url = `http://bot:TOP%5Cn%25s%20SECRET@127.0.0.1:${port}/x.git`
    const mirror = createRemoteMirror({ ...gateway.context, env: { HQ_GIT_REMOTE: url } })
    // Nobody is let in here: what counts is what was said.
    await mirror?.round().catch(() => undefined)
  }
  const own = await host()
  await ask(own.port)
  expect(own.given).toContain('bot:TOP\\n%s SECRET')
  const other = await host()
  const leading = await host(() => `http://localhost:${other.port}`)
  await ask(leading.port)
  expect(other.given.length).toBeGreaterThan(0)
  expect(other.given.filter((said) => said?.includes('SECRET'))).toEqual([])
})

it.each([
  ['https://host/x.git', { url: 'https://host/x.git', username: '', password: '' }],
  ['https://a%40b:p%3A@host/x', { url: 'https://host/x', username: 'a@b', password: 'p:' }],
  ['git@host:x.git', { url: 'git@host:x.git', username: '', password: '' }],
])('%s', (address, remote) => {
  expect(remoteOf(address)).toEqual(remote)
})

it('that can’t be reached is a problem, and no more (RM4)', async () => {
  const { gateway, home } = await setUp()
  const { context } = gateway
  const mirror = createRemoteMirror({ ...context, env: { HQ_GIT_REMOTE: join(home, 'nowhere.git') } })
  const told = new Promise<void>((resolve) => context.problems.onChange(resolve))
  await mirror?.start()
  await told
  await mirror?.stop()
  expect(context.problems.list()).toMatchObject([
    { code: 'git_remote', message: expect.stringContaining('git fetch failed') },
  ])
  expect(createRemoteMirror({ ...context, env: {} })).toBeUndefined()
})
