/**
 * The real OpenClaw as a runtime: installed by a command, started by the first run, steered by HQ. The server, the gateway process, OpenClaw from npm and
 * its plugin are real; the model is a provider on the loopback that speaks OpenAI's format and says what each test wants.
 *
 * HQ_TEST_OPENCLAW: a folder with an installation, to spare the download when the tests are run again and again.
 */
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Loopback, type Reply, startLoopback } from '@hq/gateway-node/runtime/builtin/loopback-provider.ts'
import { OPENCLAW_VERSION } from '@hq/gateway-node/runtime/openclaw/install.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { insert, update } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { connectNode } from './support/openclaw-node.ts'
import { type Gateway, type Row, type System, startSystem } from './support/system.ts'

const KEY = 'sk-loopback-3f9a1c7e5b2d8406'
const installed = process.env['HQ_TEST_OPENCLAW']
const NPM = /^(?:HOME|npm_config_.*|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|SSL_CERT_DIR)$/i
const HQ = fileURLToPath(new URL('../gateway-node/cli/hq.ts', import.meta.url))

let system: System
let provider: Loopback
let gateway: Gateway

beforeAll(async () => {
  provider = await startLoopback('openai')
  system = await startSystem()
  gateway = await system.gateway('claws', {
    env: {
      HQ_MODEL_PROVIDER: 'openai',
      HQ_MODEL_BASE_URL: provider.url,
      HQ_MODEL_API_KEY: KEY,
      HQ_MODEL: 'm-1',
      HQ_AGENT_EXEC: 'on',
      // As for people: npm finds its registry by its own settings.
      ...Object.fromEntries(
        Object.entries(process.env).flatMap(([name, value]) => (NPM.test(name) && value ? [[name, value]] : [])),
      ),
      ...(installed ? { HQ_OPENCLAW_FOLDER: installed } : {}),
    },
  })
})
afterAll(async () => {
  await system?.stop()
  await provider?.close()
})

/** By the messages of the run: what the model says next. A reply for each number of answers that it has given before in this session's last turn. */
const says = (...replies: readonly Reply[]): void =>
  provider.script((body) => {
    const messages = body['messages'] as { role: string; content?: unknown }[]
    // A turn begins with what HQ says; OpenClaw may add a message of its own behind it.
    const begin = messages.findLastIndex(
      ({ role, content }) => role === 'user' && /task|comment/i.test(JSON.stringify(content)),
    )
    const given = messages.slice(begin).filter(({ role }) => role === 'assistant').length
    return replies[Math.min(given, replies.length - 1)] ?? { text: 'Nothing.' }
  })

const rows = <T = Row>(sql: string, params: unknown[] = []): Promise<T[]> => system.rows<T>(sql, params)
const when = (what: string, sql: string, params: unknown[], ms = 120_000): Promise<Row> =>
  system.when(what, async () => (await rows(sql, params))[0], ms)

async function command(action: string, payload: Row, agent: string | null = null): Promise<string> {
  const id = newId()
  await system
    .writer()
    .apply([
      insert(
        'agent_commands',
        { tenant_id: system.tenantId, gateway_id: gateway.id, agent_id: agent, action, payload },
        id,
      ),
    ])
  return id
}

async function agentCalled(slug: string, set: Row = {}): Promise<string> {
  const id = newId()
  await system.writer().apply([
    insert(
      'agents',
      {
        tenant_id: system.tenantId,
        gateway_id: gateway.id,
        name: slug,
        slug,
        runtime: 'openclaw',
        meta: { template: 'writer' },
        ...set,
      },
      id,
    ),
  ])
  await command('provision', {}, id)
  await when(`${slug} is ready`, `select id from agents where id = $1 and status = 'ready'`, [id])
  return id
}

async function assign(agent: string, title: string, set: Row = {}, id: string = newId()): Promise<string> {
  await system.writer().apply([
    insert(
      'tasks',
      {
        tenant_id: system.tenantId,
        title,
        assignee_type: 'agent',
        assignee_agent_id: agent,
        created_by_type: 'human',
        created_by_id: system.owner.principal.person_id,
        ...set,
      },
      id,
    ),
  ])
  return id
}

const runOf = (task: string, status: string, ms?: number): Promise<Row> =>
  when(
    `a run of the task is ${status}`,
    'select * from agent_runs where task_id = $1 and status = $2',
    [task, status],
    ms,
  )

test('without OpenClaw an agent that wants it waits with the reason, the gateway goes on; a command installs it', async () => {
  if (!installed) {
    const early = await agentCalled('early')
    const task = await assign(early, 'Too early')
    const failed = await runOf(task, 'failed')
    expect(failed['error_message']).toContain('OpenClaw is not installed on this gateway')
    await system.writer().apply([update('tasks', task, { status: 'in_progress' }, { status: 'cancelled' })])
    const id = await command('install_runtime', { runtime: 'openclaw' })
    const done = await when(
      'the installation',
      `select * from agent_commands where id = $1 and status in ('done', 'failed')`,
      [id],
      280_000,
    )
    expect(done).toMatchObject({
      status: 'done',
      error_message: null,
      result: { runtime: 'openclaw', version: OPENCLAW_VERSION },
    })
    expect((await rows('select 1 from command_output where command_id = $1', [id])).length).toBeGreaterThan(0)
  }
  await when('the gateway says so', `select id from gateways where id = $1 and meta->'runtimes' ? 'openclaw'`, [
    gateway.id,
  ])
})

let writer: string

test('a task is worked on with HQ’s tools and OpenClaw’s own: log, usage, files, deliverable', async () => {
  writer = await agentCalled('writer')
  const task = newId()
  const call = (name: string, input: Row): Reply => ({ calls: [{ name, input: { task_id: task, ...input } }] })
  says(
    { text: 'I look first.', calls: [{ name: 'hq_task_show', input: { task_id: task } }] },
    { calls: [{ name: 'write', input: { path: 'notes/haiku.md', content: 'Claws on the keyboard\n' } }] },
    call('hq_submit_deliverable', { label: 'Haiku', text: 'Claws on the keyboard' }),
    { text: 'The haiku is up for review.' },
  )
  await assign(writer, 'A haiku about claws', {}, task)
  const run = await runOf(task, 'done', 180_000)
  expect(run).toMatchObject({ runtime: 'openclaw', provider: 'openai', model: 'm-1', demo: false, error_message: null })
  const [link] = await rows('select * from entity_links where owner_id = $1', [task])
  expect(link).toMatchObject({
    label: 'Haiku',
    review_status: 'submitted',
    submitted_by_agent_id: writer,
    run_id: run['id'],
  })
  const events = await rows<{ kind: string; data: Row }>(
    'select kind, data from agent_run_events where run_id = $1 order by seq',
    [run['id']],
  )
  const called = events.filter(({ kind }) => kind === 'tool_call').map(({ data }) => data['tool'])
  expect(called).toEqual(['hq_task_show', 'write', 'hq_submit_deliverable'])
  const answered = events.filter(({ kind }) => kind === 'tool_result').map(({ data }) => data['ok'])
  expect(answered).toEqual([true, true, true])
  const text = events
    .filter(({ kind }) => kind === 'message')
    .map(({ data }) => data['text'])
    .join('')
  expect(text).toContain('I look first.')
  expect(text.split('The haiku is up for review.')).toHaveLength(2)
  const usage = await rows('select * from agent_usage where run_id = $1 order by occurred_at', [run['id']])
  expect(usage).toHaveLength(4)
  expect(usage[0]).toMatchObject({
    provider: 'openai',
    model: 'm-1',
    input_tokens: '100',
    output_tokens: '20',
    task_id: task,
  })
  expect(run).toMatchObject({ input_tokens: '400', output_tokens: '80', turns: 4, tool_calls: 3 })
  await when(
    'the file is in the mirror',
    `select id from agent_files where agent_id = $1 and path = 'notes/haiku.md'`,
    [writer],
  )
  const log = execFileSync('git', ['log', '--format=%an', '-1'], {
    cwd: join(gateway.home, 'agents/writer'),
  }).toString()
  expect(log.trim()).toBe('writer')
  // What the model was told: who it is (its own files), HQ's rules, why it was woken.
  const first = JSON.stringify(
    provider.requests.find(({ body }) => JSON.stringify(body).includes('A haiku about claws'))?.body,
  )
  for (const words of ['You work in HQ', 'IDENTITY.md', 'A task was assigned to you']) expect(first).toContain(words)
})

/** What the person saw: the gateway's clock may be ahead of theirs. */
const UNANSWERED = { status: 'pending', decided_by: null, decided_at: null, note: null }

const eventsOf = (run: Row): Promise<{ kind: string; data: Row }[]> =>
  rows('select kind, data from agent_run_events where run_id = $1 order by seq', [run['id']])

test('what OpenClaw remembers can be read by who runs the gateway', async () => {
  const hq = (...words: string[]): string =>
    execFileSync(process.execPath, [HQ, ...words], { env: { HQ_GATEWAY_HOME: gateway.home }, encoding: 'utf8' })
  const session = /agent:writer:task-[0-9a-f-]{36}/.exec(hq('openclaw', 'sessions', 'writer'))?.[0] ?? ''
  const transcript = hq('openclaw', 'transcript', session)
  for (const words of ['user', 'A haiku about claws', 'The haiku is up for review.'])
    expect(transcript).toContain(words)
  expect(() => hq('openclaw', 'transcript', 'agent:writer:main')).toThrow('not the key of a session')
})

test('left alone it repeats a call for ever: HQ ends the run, and says why', async () => {
  const before = provider.requests.length
  provider.script({ calls: [{ name: 'hq_my_tasks', input: {} }] })
  const task = await assign(writer, 'Round and round')
  const run = await runOf(task, 'failed')
  expect(run['error_message']).toContain('hq_my_tasks was called 5 times with the same input')
  expect(run['tool_calls']).toBe(5)
  // Aborted there too: nobody asks the model any more.
  const asked = provider.requests.length
  expect(asked - before).toBeLessThan(10)
  await system.writer().apply([update('tasks', task, { status: 'in_progress' }, { status: 'cancelled' })])
  await when('nothing waits', `select id from agents where id = $1 and gate = 'no_work'`, [writer])
})

test('a shell only when a person allows it; a refusal is an answer; no token and no key for the command', async () => {
  const careful = await agentCalled('careful', { tool_policy: { tools: { exec: 'ask' } } })
  const task = newId()
  const run = (words: string): Reply => ({ calls: [{ name: 'exec', input: { command: words } }] })
  says(
    run('env; pwd'),
    run('rm -rf notes'),
    { calls: [{ name: 'hq_complete', input: { task_id: task } }] },
    { text: 'Done.' },
  )
  await assign(careful, 'Look around', {}, task)
  const answer = async (words: string, status: 'allowed' | 'denied'): Promise<void> => {
    const asked = await when(
      words,
      `select * from approvals where agent_id = $1 and status = 'pending' and title like $2`,
      [careful, `%${words}%`],
    )
    expect(asked).toMatchObject({ kind: 'exec', subject: 'exec', task_id: task, detail: { command: words } })
    await system.writer().apply([
      update('approvals', String(asked['id']), UNANSWERED, {
        status,
        decided_by: system.owner.principal.person_id,
        decided_at: new Date().toISOString(),
        note: 'Because.',
      }),
    ])
  }
  await answer('env; pwd', 'allowed')
  await answer('rm -rf notes', 'denied')
  const done = await runOf(task, 'done')
  const results = (await eventsOf(done)).filter(({ kind }) => kind === 'tool_result').map(({ data }) => data)
  const [looked, removed] = results
  expect(looked).toMatchObject({ tool: 'exec', ok: true })
  const output = String(looked?.['output'])
  expect(output).toContain(join(gateway.home, 'agents/careful'))
  expect(output).not.toContain(KEY)
  expect(output).not.toMatch(/(HQ_BRIDGE_TOKEN|OPENCLAW_GATEWAY_TOKEN|HQ_MODEL_API_KEY)=./)
  expect(removed).toMatchObject({ tool: 'exec', ok: false })
  expect(String(removed?.['output'])).toContain('Because.')
})

test('an agent comes while another works, and the other goes on', async () => {
  const [slow, quick] = [newId(), newId()]
  let release: () => void = () => undefined
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  const complete = (task: string): Reply => ({ calls: [{ name: 'hq_complete', input: { task_id: task } }] })
  provider.script(async (body) => {
    const text = JSON.stringify(body)
    const task = text.includes(slow) ? slow : quick
    if (text.includes('Nothing to do for the moment')) return { text: 'Done.' }
    const again = (body['messages'] as { role: string }[]).at(-1)?.role === 'tool'
    if (task === slow && !again) await held
    return again ? { text: 'Done.' } : complete(task)
  })
  const pid = pidOf()
  await assign(writer, 'The slow one', {}, slow)
  const running = await runOf(slow, 'running')
  const second = await agentCalled('second')
  await assign(second, 'The quick one', {}, quick)
  await runOf(quick, 'done')
  expect(await rows(`select id from agent_runs where id = $1 and status = 'running'`, [running['id']])).toHaveLength(1)
  release()
  await runOf(slow, 'done')
  expect(pidOf()).toBe(pid)
})

test('taken from the agent in the middle: aborted, no word of it afterwards', async () => {
  let asked = 0
  let hungUp = 0
  provider.script({
    raw: (response) => {
      asked += 1
      response.once('close', () => (hungUp += 1))
    },
  })
  const task = await assign(writer, 'To be taken away')
  await system.when('the model is asked', async () => asked > 0)
  const run = await runOf(task, 'running')
  await system.writer().apply([update('tasks', task, { status: 'in_progress' }, { status: 'cancelled' })])
  await when('it has ended', `select * from agent_runs where id = $1 and status = 'cancelled'`, [run['id']])
  await system.when('OpenClaw has hung up on the model', async () => hungUp === asked)
})

test('OpenClaw is killed in the middle: the work is begun again, and done once', async () => {
  const task = newId()
  const held = { asked: false }
  provider.script(async (body) => {
    const last = (body['messages'] as { role: string }[]).at(-1)?.role
    if (!held.asked) {
      held.asked = true
      return { raw: () => undefined }
    }
    return last === 'tool' ? { text: 'Done.' } : { calls: [{ name: 'hq_complete', input: { task_id: task } }] }
  })
  await assign(writer, 'Survive', {}, task)
  await system.when('the model is asked', async () => held.asked)
  process.kill(pidOf(), 'SIGKILL')
  const failed = await runOf(task, 'failed')
  expect(failed['error_message']).toContain('OpenClaw ended in the middle of the work')
  gateway.skipMinute()
  await runOf(task, 'done', 200_000)
  expect(await rows(`select id from tasks where id = $1 and status = 'done'`, [task])).toHaveLength(1)
})

test('a gateway that is killed leaves an OpenClaw behind, which the next one ends', async () => {
  const left = pidOf()
  await gateway.kill()
  expect(isAlive(left)).toBe(true)
  await gateway.start()
  const task = newId()
  provider.script((body) =>
    (body['messages'] as { role: string }[]).at(-1)?.role === 'tool'
      ? { text: 'Done.' }
      : { calls: [{ name: 'hq_complete', input: { task_id: task } }] },
  )
  await assign(writer, 'After the kill', {}, task)
  await runOf(task, 'done', 200_000)
  expect(isAlive(left)).toBe(false)
  expect(pidOf()).not.toBe(left)
})

test('a provider that refuses the key is told plainly', async () => {
  provider.script({
    status: 401,
    body: JSON.stringify({ error: { message: 'Incorrect API key provided', type: 'invalid_request_error' } }),
  })
  const task = await assign(writer, 'With a bad key')
  const run = await runOf(task, 'failed')
  expect(run['error_message']).toMatch(/401|key/i)
  expect(String(run['error_message'])).not.toContain(KEY)
  await system.writer().apply([update('tasks', task, { status: 'in_progress' }, { status: 'cancelled' })])
})

test('a device that wants to pair is a question in the browser; allowed there, it is paired', async () => {
  const words = readFileSync(`/proc/${pidOf()}/environ`, 'utf8').split('\0')
  const value = (name: string): string =>
    words.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1) ?? ''
  const device = await connectNode(Number(value('OPENCLAW_GATEWAY_PORT')), value('OPENCLAW_GATEWAY_TOKEN'))
  onTestFinished(() => device.close())
  const asked = await when('the question', `select * from approvals where kind = 'pairing' and status = 'pending'`, [])
  expect(asked).toMatchObject({
    agent_id: null,
    gateway_id: gateway.id,
    detail: { commands: ['system.notify'], caps: ['canvas'] },
  })
  await system.writer().apply([
    update('approvals', String(asked['id']), UNANSWERED, {
      status: 'allowed',
      decided_by: system.owner.principal.person_id,
      decided_at: new Date().toISOString(),
    }),
  ])
  await when('the answer is taken', 'select id from approvals where id = $1 and applied_at is not null', [asked['id']])
  await system.when('OpenClaw has paired it', async () => device.paired())
})

test('key and tokens are in no configuration, log, row or argument; stopping the gateway ends OpenClaw', async () => {
  const pid = pidOf()
  const config = readFileSync(join(gateway.home, 'openclaw/openclaw.json'), 'utf8')
  const log = readFileSync(join(gateway.home, 'openclaw/openclaw.log'), 'utf8')
  const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  const token = /OPENCLAW_GATEWAY_TOKEN=([^\0]+)/.exec(readFileSync(`/proc/${pid}/environ`, 'utf8'))?.[1]
  expect(token).toMatch(/^[\w-]{43}$/)
  for (const secret of [KEY, String(token)]) {
    for (const text of [config, log, words, gateway.text()]) expect(text.includes(secret)).toBe(false)
    for (const table of ['agent_run_events', 'agent_runs', 'command_output', 'gateways', 'approvals'])
      expect(await rows(`select id from ${table} t where t::text like $1`, [`%${secret}%`]), table).toEqual([])
  }
  await gateway.end()
  expect(isAlive(pid)).toBe(false)
  expect(execFileSync('git', ['fsck', '--full'], { cwd: join(gateway.home, 'repo.git') }).toString()).not.toMatch(
    /error|missing|corrupt/,
  )
})

/** Of the OpenClaw that runs for this gateway. */
const pidOf = (): number => Number(readFileSync(join(gateway.home, 'openclaw/pid'), 'utf8').split(' ')[0])

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    // A zombie is no process any more.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}
