/** The files API on a gateway's real local server: what it does, and what nobody gets out of it. */
import { execFileSync } from 'node:child_process'
import { mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createLocalApi } from '../local-api/server.ts'
import { createRunner } from '../runner/runner.ts'
import { createTestGateway, noModels } from '../testing/context.ts'

interface Answer {
  readonly status: number
  readonly body: Record<string, unknown>
}

async function setUp() {
  const gateway = await createTestGateway()
  const { context } = gateway
  const runner = createRunner(context, noModels, { sweepMs: 3_600_000 })
  onTestFinished(() => runner.stop())
  await runner.start()
  const agent = await gateway.addAgent('wanda')
  await gateway.command(await gateway.addCommand('provision', agent))
  const api = createLocalApi(context)
  onTestFinished(() => api.stop())
  await api.start()
  const token = await readFile(join(context.home, 'operator-token'), 'utf8')
  const { port } = new URL(api.url() ?? '')

  /** By hand: `fetch` would straighten a path before it is sent. */
  const ask = (method: string, path: string, body?: unknown, more: Record<string, string> = {}): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...more }
      const call = request({ host: '127.0.0.1', port, method, path, headers }, (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (piece: string) => {
          text += piece
        })
        response.on('end', () => resolve({ status: response.statusCode ?? 0, body: text ? JSON.parse(text) : {} }))
      })
      call.on('error', reject)
      call.end(body === undefined ? undefined : JSON.stringify(body))
    })
  return { gateway, agent, ask, folder: context.workspaces.folder('wanda') }
}

const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', args, { cwd, encoding: 'utf8', env: { PATH: process.env['PATH'], HOME: cwd } })

it('lists, reads, makes, changes and deletes files; each change a commit that the mirror shows', async () => {
  const { gateway, agent, ask, folder } = await setUp()
  expect(await ask('GET', '/healthz', undefined, { authorization: '' })).toMatchObject({ status: 200 })
  const tree = await ask('GET', '/branches/acme%2Fwanda/tree')
  expect(tree).toMatchObject({ status: 200, body: { branch: 'acme/wanda' } })
  expect(tree.body['files']).toContainEqual({ path: 'SOUL.md', sha: git(folder, 'hash-object', 'SOUL.md').trim() })
  const made = await ask('POST', '/branches/wanda/files/notes/%C3%BC%20plan.md', { content: 'One.\n' })
  expect(made).toMatchObject({ status: 201, body: { path: 'notes/ü plan.md' } })
  const sha = String(made.body['sha'])
  expect((await ask('POST', '/branches/wanda/files/notes/%C3%BC%20plan.md', { content: 'Two.\n' })).status).toBe(409)
  const changed = await ask('PUT', '/branches/wanda/files/notes/%C3%BC%20plan.md', { content: 'Two.\n', sha })
  expect(changed.status).toBe(200)
  expect(await ask('PUT', '/branches/wanda/files/notes/%C3%BC%20plan.md', { content: 'Three.\n', sha })).toMatchObject({
    status: 409,
    body: { code: 'conflict', sha: changed.body['sha'], content: 'Two.\n' },
  })
  expect((await ask('GET', '/branches/wanda/files/notes/%C3%BC%20plan.md')).body).toMatchObject({ content: 'Two.\n' })
  const row = await gateway.replica.query('select content from agent_files where agent_id = $1 and path = $2', [
    agent,
    'notes/ü plan.md',
  ])
  expect(row).toEqual([{ content: 'Two.\n' }])
  expect((await ask('DELETE', `/branches/wanda/files/notes/%C3%BC%20plan.md?sha=${sha}`)).status).toBe(409)
  const gone = await ask('DELETE', `/branches/wanda/files/notes/%C3%BC%20plan.md?sha=${changed.body['sha']}`)
  expect(gone.status).toBe(200)
  expect((await ask('GET', '/branches/wanda/files/notes/%C3%BC%20plan.md')).status).toBe(404)
  expect(git(folder, 'log', '-3', '--format=%an: %s').trim().split('\n')).toEqual([
    'The gateway’s operator: Delete notes/ü plan.md by the files API',
    'The gateway’s operator: Edit notes/ü plan.md by the files API',
    'The gateway’s operator: Create notes/ü plan.md by the files API',
  ])
  expect(git(folder, 'status', '--porcelain')).toBe('')
})

it('is for the operator alone, and for no web page', async () => {
  const { gateway, ask } = await setUp()
  const path = '/branches/wanda/files/SOUL.md'
  const agents = await readFile(join(gateway.context.home, 'agent-tokens/wanda'), 'utf8')
  for (const authorization of ['', 'Bearer', 'Bearer hqo_wrong-wrong-wrong', 'Basic x', `Bearer ${agents}`])
    for (const [method, body] of [
      ['GET'],
      ['PUT', { content: 'x', sha: 'a'.repeat(40) }],
      ['POST', { content: 'x' }],
      ['DELETE'],
    ] as const) {
      const { status } = await ask(method, path, body, { authorization })
      expect([401, 403], `${method} with ${authorization}`).toContain(status)
    }
  for (const headers of [{ host: 'evil.example' }, { origin: 'https://evil.example' }, { origin: 'null' }])
    expect((await ask('GET', path, undefined, headers)).status).toBe(403)
})

it.each([
  '../../credentials.json',
  '..%2f..%2fcredentials.json',
  '%2e%2e/%2e%2e/credentials.json',
  '%2e%2e%2f%2e%2e%2fcredentials.json',
  '..%5c..%5ccredentials.json',
  '.%2e/credentials.json',
  'notes/../../../credentials.json',
  'notes%2f..%2f..%2f..%2fcredentials.json',
  '%2fetc%2fpasswd',
  '/etc/passwd',
  '//etc/passwd',
  '%252e%252e%252fcredentials.json',
  'SOUL.md%00.txt',
  '.git',
  '.git/config',
  '.GIT%2fconfig',
  '.git%20/config',
  'git~1/config',
  '.hq-agent.json',
  '.HQ-AGENT.json',
  'out/secret',
  'out',
  'link',
  '',
  '%',
])('%j leads nowhere', async (path) => {
  const { gateway, ask, folder } = await setUp()
  const outside = join(gateway.context.home, '../outside')
  await mkdir(outside)
  await writeFile(join(outside, 'secret'), 'SECRET')
  await writeFile(join(gateway.context.home, 'credentials.json'), 'SECRET')
  await symlink(outside, join(folder, 'out'))
  await symlink(join(outside, 'secret'), join(folder, 'link'))
  const head = await gateway.context.workspaces.head('wanda')
  const at = `/branches/wanda/files/${path}`
  for (const answer of [
    await ask('GET', at),
    await ask('PUT', at, { content: 'x', sha: 'a'.repeat(40) }),
    // A name that merely looks like something may be made.
    ...(path.includes('%25') || path === '%' ? [] : [await ask('POST', at, { content: 'x' })]),
    await ask('DELETE', `${at}?sha=${'a'.repeat(40)}`),
  ]) {
    expect(answer.status).toBeGreaterThanOrEqual(400)
    expect(answer.status).toBeLessThan(500)
    expect(JSON.stringify(answer.body)).not.toContain('SECRET')
  }
  expect(await gateway.context.workspaces.head('wanda')).toBe(head)
  expect(await readFile(join(outside, 'secret'), 'utf8')).toBe('SECRET')
})

it('refuses what is no text, too large, no branch or no body, with a sentence', async () => {
  const { ask, folder } = await setUp()
  await writeFile(join(folder, 'b.bin'), Buffer.from([0, 1]))
  await writeFile(join(folder, 'huge.md'), 'x'.repeat(1024 * 1024 + 1))
  for (const [status, method, path, body] of [
    [415, 'GET', 'wanda/files/b.bin', undefined],
    [415, 'GET', 'wanda/files/huge.md', undefined],
    [415, 'POST', 'wanda/files/new.md', { content: 'x'.repeat(1024 * 1024 + 1) }],
    [404, 'GET', 'nobody/tree', undefined],
    [404, 'GET', 'template%2Fwriter/tree', undefined],
    [404, 'GET', '..%2F..%2Fwanda..%2F/tree', undefined],
    [400, 'PUT', 'wanda/files/SOUL.md', { content: 'x' }],
    [400, 'PUT', 'wanda/files/SOUL.md', undefined],
    [400, 'DELETE', 'wanda/files/SOUL.md', undefined],
  ] as const) {
    const answer = await ask(method, `/branches/${path}`, body)
    expect(answer, `${method} ${path}`).toMatchObject({ status, body: { message: expect.stringMatching(/\w/) } })
  }
})
