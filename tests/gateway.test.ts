/**
 * A gateway as a process, with a real server, a real Postgres and the real git: registration, provisioning, SIGKILL in the middle of a command, work without a
 * server, stopping.
 */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type GatewayProcess, holdableGit, startGatewayProcess } from '@hq/gateway-node/testing/process.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { insert, startWorkspace, update, type Workspace, type Writer } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'

let workspace: Workspace
let folder: string
let git: Awaited<ReturnType<typeof holdableGit>>
const processes: GatewayProcess[] = []

beforeAll(async () => {
  workspace = await startWorkspace()
})
afterAll(() => workspace.stop())

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hq-gateway-process-'))
  git = await holdableGit(join(folder, 'bin'))
})
afterEach(async () => {
  await rm(git.hold, { force: true })
  await Promise.all(processes.splice(0).map((gateway) => gateway.end('SIGKILL')))
  await rm(folder, { recursive: true, force: true, maxRetries: 5 })
})

const home = (): string => join(folder, 'home')

function start(env: Record<string, string> = {}): GatewayProcess {
  const gateway = startGatewayProcess({ HQ_GATEWAY_HOME: home(), PATH: git.path, ...env })
  processes.push(gateway)
  return gateway
}

/** A registered gateway that is ready, and a person's writer. */
async function begin(slug: string): Promise<{ gateway: GatewayProcess; gatewayId: string; writer: Writer }> {
  const made = await workspace.request(workspace.owner, '/v1/gateways/tokens', {
    method: 'POST',
    body: JSON.stringify({ label: slug }),
  })
  const { token } = (await made.json()) as { token: string }
  const gateway = start({ HQ_SERVER_URL: workspace.url, HQ_REGISTRATION_TOKEN: token, HQ_GATEWAY_SLUG: slug })
  const { gateway: gatewayId } = await gateway.ready()
  return { gateway, gatewayId: String(gatewayId), writer: workspace.writer(workspace.owner) }
}

const agentPatch = (gatewayId: string, slug: string, id = newId()) =>
  insert(
    'agents',
    {
      tenant_id: workspace.tenantId,
      gateway_id: gatewayId,
      name: slug,
      slug,
      meta: { template: 'writer', emoji: '🦊' },
    },
    id,
  )

/** As a replica makes it: with the time of its making, which is the order in which commands are run. */
const commandPatch = (gatewayId: string, agentId: string | null, action: string, id = newId()) => {
  made = Math.max(made + 1, Date.now())
  const row = { tenant_id: workspace.tenantId, gateway_id: gatewayId, agent_id: agentId, action }
  return insert('agent_commands', { ...row, created_at: new Date(made).toISOString() }, id)
}
let made = 0

type Row = Record<string, unknown>

async function rowWhen(table: string, id: string, is: (row: Row) => boolean, ms = 60_000): Promise<Row> {
  const end = Date.now() + ms
  for (;;) {
    const [row] = await workspace.rows<Row>(`select * from ${table} where id = $1`, [id])
    if (row && is(row)) return row
    if (Date.now() > end)
      throw new Error(`${table} ${id} never became so: ${JSON.stringify(row)}\n${processes.at(-1)?.text()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

const isEnded = (row: Row): boolean => !['pending', 'leased', 'running'].includes(String(row['status']))
const fileWhen = async (path: string): Promise<string> => {
  const end = Date.now() + 60_000
  while (!existsSync(path)) {
    if (Date.now() > end) throw new Error(`${path} never came\n${processes.at(-1)?.text()}`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return readFile(path, 'utf8')
}

describe('a gateway', () => {
  it('registers, shows itself and its templates, provisions, removes; and no secret is in its log', async () => {
    const { gateway, gatewayId, writer } = await begin('first')
    const shown = await rowWhen(
      'gateways',
      gatewayId,
      ({ meta, last_seen_at }) => last_seen_at !== null && Object.hasOwn(meta as Row, 'git'),
    )
    expect(shown).toMatchObject({
      status: 'ready',
      meta: { version: '0.1.0', runtimes: ['builtin'], problems: [], git: expect.stringMatching(/^2\./) },
    })
    const templates = await workspace.rows<Row>(
      'select slug, error, domains from agent_templates where gateway_id = $1 order by slug',
      [gatewayId],
    )
    expect(templates.map(({ slug, error }) => [slug, error])).toEqual(
      ['analyst', 'assistant', 'chief-of-staff', 'operator', 'researcher', 'writer'].map((slug) => [slug, null]),
    )

    const [agent, command] = [newId(), newId()]
    await writer.apply([agentPatch(gatewayId, 'wanda', agent), commandPatch(gatewayId, agent, 'provision', command)])
    expect(await rowWhen('agent_commands', command, isEnded)).toMatchObject({
      status: 'done',
      attempt_count: 1,
      error_message: null,
    })
    expect(await rowWhen('agents', agent, () => true)).toMatchObject({ status: 'ready' })
    const files = await workspace.rows<Row>(
      'select path, content from agent_files where agent_id = $1 and deleted_at is null',
      [agent],
    )
    expect(files.map(({ path }) => path)).toEqual(
      expect.arrayContaining(['IDENTITY.md', 'SOUL.md', 'AGENTS.md', 'USER.md', 'skills/hq/SKILL.md']),
    )
    expect(files.find(({ path }) => path === 'USER.md')?.['content']).toContain('Olga Owner')
    expect(files.map(({ path }) => path)).not.toContain('.hq-agent.json')
    expect(
      execFileSync('git', ['-C', join(home(), 'agents/wanda'), 'status', '--porcelain'], { encoding: 'utf8' }),
    ).toBe('')

    const removal = newId()
    await writer.apply([commandPatch(gatewayId, agent, 'remove', removal)])
    expect(await rowWhen('agent_commands', removal, isEnded)).toMatchObject({ status: 'done' })
    expect(await rowWhen('agents', agent, () => true)).toMatchObject({ deleted_at: expect.anything() })
    expect(await readdir(join(home(), 'agents'))).toEqual([])

    const credentials = JSON.parse(await readFile(join(home(), 'credentials.json'), 'utf8')) as { token: string }
    expect((await stat(join(home(), 'credentials.json'))).mode & 0o777).toBe(0o600)
    expect((await stat(home())).mode & 0o777).toBe(0o700)
    expect(gateway.text()).not.toContain(credentials.token)
    expect(gateway.text()).not.toContain('hqreg_')
    expect(await gateway.end('SIGTERM')).toBe(0)
  })

  it('that is killed in the middle of a command tries it once more, and only once', async () => {
    const { gateway, gatewayId, writer } = await begin('killed')
    const [agent, command] = [newId(), newId()]
    await writeFile(git.hold, '')
    await writer.apply([agentPatch(gatewayId, 'kurt', agent), commandPatch(gatewayId, agent, 'provision', command)])
    await fileWhen(git.held)
    await rowWhen('agent_commands', command, ({ status }) => status === 'running')
    await gateway.end('SIGKILL')
    await rm(git.hold)
    const second = start()
    await second.ready()
    expect(await rowWhen('agent_commands', command, isEnded)).toMatchObject({ status: 'done', attempt_count: 2 })
    expect(await rowWhen('agents', agent, () => true)).toMatchObject({ status: 'ready' })
    expect((await readFile(git.held, 'utf8')).trim().split('\n')).toHaveLength(1)
    const folder = join(home(), 'agents/kurt')
    expect(execFileSync('git', ['-C', folder, 'status', '--porcelain'], { encoding: 'utf8' })).toBe('')
    expect(
      execFileSync('git', ['-C', join(home(), 'repo.git'), 'fsck', '--strict', '--no-dangling'], { encoding: 'utf8' }),
    ).toBe('')
  })

  it('that is killed twice leaves a dead letter, and the next command runs', async () => {
    const { gateway, gatewayId, writer } = await begin('killed-twice')
    const [agent, command] = [newId(), newId()]
    await writeFile(git.hold, '')
    await writer.apply([agentPatch(gatewayId, 'doro', agent), commandPatch(gatewayId, agent, 'provision', command)])
    await fileWhen(git.held)
    await gateway.end('SIGKILL')
    const second = start()
    await rowWhen('agent_commands', command, ({ status, attempt_count }) => status === 'running' && attempt_count === 2)
    while ((await readFile(git.held, 'utf8')).trim().split('\n').length < 2)
      await new Promise((resolve) => setTimeout(resolve, 20))
    await second.end('SIGKILL')
    await rm(git.hold)
    const third = start()
    await third.ready()
    expect(await rowWhen('agent_commands', command, isEnded)).toMatchObject({ status: 'dead_letter', attempt_count: 2 })
    expect(await rowWhen('agents', agent, ({ status }) => status === 'error')).toMatchObject({
      status_reason: expect.stringContaining('ended twice'),
    })
    const again = newId()
    await writer.apply([commandPatch(gatewayId, agent, 'provision', again)])
    expect(await rowWhen('agent_commands', again, isEnded)).toMatchObject({ status: 'done' })
  })

  it('finishes its queue without the server, and reports when it is back', async () => {
    const { gateway, gatewayId, writer } = await begin('alone')
    const agents = ['ann', 'bob'].map((slug) => ({ slug, id: newId(), provision: newId(), update: newId() }))
    await writeFile(git.hold, '')
    await writer.apply(
      ...agents.map(({ slug, id, provision, update }) => [
        agentPatch(gatewayId, slug, id),
        commandPatch(gatewayId, id, 'provision', provision),
        commandPatch(gatewayId, id, 'update', update),
      ]),
    )
    for (const { provision } of agents) await rowWhen('agent_commands', provision, ({ status }) => status === 'running')
    await workspace.server.stop()
    await rm(git.hold)
    for (const { update } of agents)
      await gateway.line(({ message, command }) => message === 'Command ended' && command === update)
    // A later process, still without the server: what is done stays done.
    expect(await gateway.end('SIGTERM')).toBe(0)
    const second = start()
    await second.ready()
    await workspace.restart()
    for (const { id, provision, update } of agents) {
      expect(await rowWhen('agent_commands', provision, isEnded)).toMatchObject({ status: 'done', attempt_count: 1 })
      expect(await rowWhen('agent_commands', update, isEnded)).toMatchObject({ status: 'done', attempt_count: 1 })
      expect(await rowWhen('agents', id, ({ status }) => status === 'ready')).toMatchObject({ status: 'ready' })
    }
  })

  it('answers a pause in its status; a second process, a home that cannot be written and an unknown token are refused', async () => {
    const { gateway, gatewayId, writer } = await begin('pausing')
    const { pause_requested_at: none } = await rowWhen('gateways', gatewayId, ({ status }) => status === 'ready')
    const time = new Date().toISOString()
    await writer.apply([update('gateways', gatewayId, { pause_requested_at: none }, { pause_requested_at: time })])
    await rowWhen('gateways', gatewayId, ({ status }) => status === 'paused')
    await writer.apply([update('gateways', gatewayId, { pause_requested_at: time }, { pause_requested_at: null })])
    await rowWhen('gateways', gatewayId, ({ status }) => status === 'ready')

    const second = start()
    expect(await second.ended).toBe(3)
    expect(second.text()).toContain(`process ${gateway.pid}`)
    await writeFile(join(folder, 'a-file'), '')
    const unwritable = start({ HQ_GATEWAY_HOME: join(folder, 'a-file/home') })
    expect(await unwritable.ended).toBe(2)
    expect(unwritable.text()).toContain("can't write to its folder")
    const unknown = start({
      HQ_GATEWAY_HOME: join(folder, 'other'),
      HQ_SERVER_URL: workspace.url,
      HQ_REGISTRATION_TOKEN: 'hqreg_no-such-token',
    })
    expect(await unknown.ended).toBe(2)
    expect(unknown.text()).toContain('refused to register')
    expect(unknown.text()).not.toContain('no-such-token')
  })

  it('registers anew when the server forgot it, and keeps what it had', async () => {
    const { gateway, gatewayId } = await begin('forgotten')
    await gateway.end('SIGTERM')
    const response = await workspace.request(workspace.owner, `/v1/gateways/${gatewayId}`, { method: 'DELETE' })
    expect(response.status).toBe(200)
    const made = await workspace.request(workspace.owner, '/v1/gateways/tokens', {
      method: 'POST',
      body: JSON.stringify({ label: 'again' }),
    })
    const { token } = (await made.json()) as { token: string }
    await writeFile(
      join(home(), 'registration.json'),
      JSON.stringify({ url: workspace.url, token, slug: 'again', label: 'Again' }),
    )
    const next = start()
    const { gateway: nextId } = await next.ready()
    expect(nextId).not.toBe(gatewayId)
    expect(existsSync(join(home(), 'registration.json'))).toBe(false)
    const [former] = (await readdir(home())).filter((name) => name.startsWith('former-'))
    expect(await readdir(join(home(), former ?? ''))).toEqual(
      expect.arrayContaining(['credentials.json', 'replica', 'repo.git']),
    )
  })
})
