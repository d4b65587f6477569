/** `hq` as a real process, against the local API over a real replica and a real worktree. */
import { spawn } from 'node:child_process'
import { mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openTestGateway, type TestGateway, until } from '../dispatcher/testing.ts'
import { createLocalApi, type LocalApi } from '../local-api/server.ts'
import { temporaryFolder } from '../testing/folder.ts'
import { profile, smallTemplates, writeFiles } from '../testing/templates.ts'
import { createWorkspaces } from '../workspaces/workspaces.ts'

const HQ = fileURLToPath(new URL('./hq.mjs', import.meta.url))

let root: string
let gateway: TestGateway
let api: LocalApi
let agent: string
let other: string
let worktree: string
let task: string

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'hq-cli-'))
  await writeFiles(join(root, 'templates'), smallTemplates())
  const workspaces = await createWorkspaces({
    home: join(root, 'home'),
    templates: join(root, 'templates'),
    now: Date.now,
  })
  await workspaces.seedTemplates()
  gateway = await openTestGateway({ workspaces })
  agent = await gateway.agent('Wanda')
  other = await gateway.agent('Bob')
  await workspaces.createBranch(profile({ agentId: agent, slug: 'wanda' }))
  worktree = await workspaces.createWorktree('wanda')
  api = createLocalApi(gateway.context)
  await api.start()
}, 60_000)

afterAll(async () => {
  await api.stop()
  await gateway.close()
  await rm(root, { recursive: true, force: true })
})

beforeEach(async () => {
  task = await gateway.task('Write the launch note', agent, { description: 'Short, please.', priority: 'high' })
})

interface Ran {
  code: number | null
  out: string
  err: string
}

function hq(
  args: readonly string[],
  options: { cwd?: string; input?: string; env?: Record<string, string> } = {},
): Promise<Ran> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [HQ, ...args], {
      cwd: options.cwd ?? worktree,
      env: { PATH: process.env['PATH'] ?? '', ...options.env },
    })
    let out = ''
    let err = ''
    child.stdout.on('data', (chunk) => (out += String(chunk)))
    child.stderr.on('data', (chunk) => (err += String(chunk)))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, out, err }))
    child.stdin.end(options.input ?? '')
  })
}

describe('an agent’s steps', () => {
  test('my tasks, show, claim, comment, submit, and complete only after approval', async () => {
    const mine = await hq(['my-tasks'])
    expect(mine).toMatchObject({ code: 0, err: '' })
    expect(mine.out).toContain(`${task}  Write the launch note  (todo, high)`)

    expect(await hq(['task', 'claim', task])).toMatchObject({ code: 0 })
    expect(await gateway.one('select status from tasks where id = $1', [task])).toEqual({ status: 'in_progress' })

    expect(await hq(['comment', task, '--body', '-'], { input: 'Begun. @bob knows more.\n' })).toMatchObject({
      code: 0,
      out: 'Commented.\n',
    })
    expect(
      await gateway.one('select actor_type, actor_agent_id, mentions, body from comments where entity_id = $1', [task]),
    ).toEqual({
      actor_type: 'agent',
      actor_agent_id: agent,
      mentions: ['bob'],
      body: 'Begun. @bob knows more.',
    })
    // A mention wakes the other agent of this gateway, also without a server.
    expect(await gateway.one(`select agent_id, event_type from agent_inbox_items where task_id = $1`, [task])).toEqual({
      agent_id: other,
      event_type: 'task_comment_mention',
    })

    const submitted = await hq([
      'submit-deliverable',
      task,
      '--label',
      'Note',
      '--text',
      '# Friday\nWe launch.',
      '--json',
    ])
    expect(submitted).toMatchObject({ code: 0 })
    const { id } = JSON.parse(submitted.out) as { id: string }
    const again = await hq(['submit-deliverable', task, '--label', 'note', '--text', '# Friday\nWe launch.'])
    expect(again.out).toContain('already')
    expect(await gateway.one('select count(*)::int as n from entity_links where owner_id = $1', [task])).toEqual({
      n: 1,
    })

    const early = await hq(['task', 'complete', task])
    expect(early).toMatchObject({ code: 1, out: '' })
    expect(early.err).toContain('waits for review')

    await gateway.replica.write((tx) =>
      tx.query(`update entity_links set review_status = 'revision_requested', review_note = 'Shorter.' where id = $1`, [
        id,
      ]),
    )
    const shown = await hq(['task', 'show', task])
    expect(shown.out).toContain('Deliverable “Note”: revision requested')
    expect(shown.out).toContain('Shorter.')
    expect((await hq(['task', 'complete', task])).err).toContain('waits for your revision')
    expect(await hq(['submit-deliverable', task, '--label', 'Note', '--text', 'Friday.'])).toMatchObject({ code: 0 })
    const second = await gateway.one<{ id: string }>('select * from entity_links where supersedes_id = $1', [id])
    expect(second).toMatchObject({ review_status: 'submitted', body: 'Friday.' })
    await gateway.replica.write((tx) =>
      tx.query(`update entity_links set review_status = 'approved' where id = $1`, [second.id]),
    )
    expect(await hq(['task', 'complete', task, '--summary', 'All done.'])).toMatchObject({ code: 0 })
    expect(await gateway.one('select status, completed_at is not null as at from tasks where id = $1', [task])).toEqual(
      { status: 'done', at: true },
    )
  }, 60_000)

  test('a file of the worktree is committed and submitted by its path, from a folder below too', async () => {
    await mkdir(join(worktree, 'out'), { recursive: true })
    await writeFile(join(worktree, 'out', 'note.md'), 'Hello')
    expect(
      await hq(['submit-deliverable', task, '--label', 'File', '--file', 'note.md'], { cwd: join(worktree, 'out') }),
    ).toMatchObject({ code: 0, err: '' })
    expect(await gateway.one('select target_type, url from entity_links where owner_id = $1', [task])).toEqual({
      target_type: 'agent_file',
      url: 'out/note.md',
    })
    for (const path of ['../../secrets', '/etc/passwd', '.git/config', '.hq-agent.json']) {
      expect(await hq(['submit-deliverable', task, '--label', 'Bad', '--file', path]), path).toMatchObject({ code: 1 })
    }
    expect(await hq(['submit-deliverable', task, '--label', 'Bad', '--file', 'missing.md'])).toMatchObject({ code: 1 })
  }, 60_000)

  test('other people’s tasks are shown and found, but not changed', async () => {
    const theirs = await gateway.task('Bob’s budget', other, { description: 'secret sauce' })
    expect((await hq(['tasks', 'search', 'sauce', 'budget', '--json'])).out).toContain(theirs)
    expect((await hq(['tasks', 'search', 'sauce', '--mine'])).out).toBe('No task was found.\n')
    expect(await hq(['task', 'show', theirs])).toMatchObject({ code: 0 })
    for (const args of [
      ['task', 'claim', theirs],
      ['comment', theirs, '--body', 'hi'],
      ['submit-deliverable', theirs, '--label', 'x', '--url', 'https://example.com'],
      ['task', 'complete', theirs],
    ]) {
      const ran = await hq(args)
      expect(ran, args.join(' ')).toMatchObject({ code: 1 })
      expect(ran.err).toContain('not assigned to you')
    }
  }, 60_000)

  test('status says what holds the agent back', async () => {
    await gateway.replica.write((tx) =>
      tx.query(`update agents set gate = 'paused', gate_detail = 'A person has paused this agent.' where id = $1`, [
        agent,
      ]),
    )
    expect((await hq(['status'])).out).toContain('Gate: A person has paused this agent.')
  })
})

describe('usage and failures', () => {
  test.each([
    [[], 2],
    [['--help'], 0],
    [['nonsense'], 2],
    [['task', 'show'], 2],
    [['task', 'show', 'x'], 2],
    [['my-tasks', '--body', 'x'], 2],
    [['comment', '00000000-0000-7000-8000-000000000000'], 2],
    [
      [
        'submit-deliverable',
        '00000000-0000-7000-8000-000000000000',
        '--label',
        'x',
        '--text',
        'a',
        '--url',
        'https://a.b',
      ],
      2,
    ],
    [['--nope'], 2],
    [['task', 'show', '00000000-0000-7000-8000-000000000000'], 1],
    [['submit-deliverable', '00000000-0000-7000-8000-000000000000', '--label', 'x', '--url', 'file:///etc/passwd'], 1],
  ])('hq %j ends with %i', async (args, code) => {
    expect((await hq(args)).code).toBe(code)
  })

  test('without a gateway: exit 3 and what to do', async () => {
    const nowhere = await temporaryFolder()
    expect(await hq(['my-tasks'], { cwd: nowhere })).toMatchObject({ code: 3 })
    const tokenFile = join(nowhere, 'token')
    await writeFile(tokenFile, 'hqa_wrong_wrong_wrong')
    const gone = { HQ_AGENT_URL: 'http://127.0.0.1:1', HQ_AGENT_TOKEN_FILE: tokenFile }
    expect(await hq(['my-tasks'], { cwd: nowhere, env: gone })).toMatchObject({
      code: 3,
      err: expect.stringContaining('Is it running?'),
    })
    const wrong = { HQ_AGENT_URL: api.url() ?? '', HQ_AGENT_TOKEN_FILE: tokenFile }
    expect(await hq(['my-tasks'], { cwd: nowhere, env: wrong })).toMatchObject({
      code: 3,
      err: expect.stringContaining('does not know this token'),
    })
    const abroad = { HQ_AGENT_URL: 'http://example.com:80', HQ_AGENT_TOKEN_FILE: tokenFile }
    expect(await hq(['my-tasks'], { cwd: nowhere, env: abroad })).toMatchObject({
      code: 3,
      err: expect.stringContaining('of this machine'),
    })
  }, 30_000)
})

describe('the local API', () => {
  const get = (path: string, headers: Record<string, string>): Promise<number> =>
    new Promise((resolve, reject) => {
      const { port } = new URL(api.url() ?? '')
      request({ host: '127.0.0.1', port, path, headers }, (response) => {
        response.resume()
        resolve(response.statusCode ?? 0)
      })
        .on('error', reject)
        .end()
    })

  test('tokens: one per agent, owner-only, outside the worktree, and worthless when wrong (H1, K1)', async () => {
    const { token_file } = JSON.parse(await readFile(join(worktree, '.hq-agent.json'), 'utf8')) as {
      token_file: string
    }
    const token = await readFile(token_file, 'utf8')
    expect((await stat(token_file)).mode & 0o777).toBe(0o600)
    expect(token_file.startsWith(worktree)).toBe(false)
    expect(await readFile(join(worktree, '.hq-agent.json'), 'utf8')).not.toContain(token)
    expect(await get('/v1/my-tasks', { authorization: `Bearer ${token}` })).toBe(200)
    for (const bad of ['', 'Bearer ', `Bearer ${token}x`, `Basic ${token}`, `Bearer ${token.slice(0, -1)}`]) {
      expect(await get('/v1/my-tasks', { authorization: bad }), bad).toBe(401)
    }
    expect(await get('/v1/health', {})).toBe(200)
  })

  test('pages in browsers get nothing (H2)', async () => {
    const token = await readFile(api.environment('wanda')['HQ_AGENT_TOKEN_FILE'] ?? '', 'utf8')
    const authorization = `Bearer ${token}`
    expect(await get('/v1/my-tasks', { authorization, host: 'evil.example' })).toBe(403)
    expect(await get('/v1/my-tasks', { authorization, origin: 'http://127.0.0.1:3210' })).toBe(403)
    expect(await get('/v1/nothing', { authorization })).toBe(404)
  })

  test('an agent that is removed loses its token at once (S1)', async () => {
    const gone = await gateway.agent('Gone')
    const file = api.environment('gone')['HQ_AGENT_TOKEN_FILE'] ?? ''
    let token = ''
    await until('it has a token', async () => {
      token = await readFile(file, 'utf8').catch(() => '')
      return token !== ''
    })
    expect(await get('/v1/status', { authorization: `Bearer ${token}` })).toBe(200)
    await gateway.replica.write((tx) => tx.query('update agents set deleted_at = now() where id = $1', [gone]))
    await until(
      'the token is refused',
      async () => (await get('/v1/status', { authorization: `Bearer ${token}` })) === 401,
    )
  })
})
