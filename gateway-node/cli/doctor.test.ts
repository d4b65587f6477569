/** `hq doctor` and `hq audit` as real processes, and what they make of facts that cannot be had here. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { VERSION } from '../config.ts'
import { auditSettings } from './audit.ts'
import { checkNode, saysOfGateway, saysOfServer } from './doctor.ts'
import { type Finding, printFindings, sorted, worst } from './findings.ts'

const HQ = fileURLToPath(new URL('./hq.ts', import.meta.url))
const SECRET = 'sk-never-to-be-seen-4711'

let folder: string
let home: string
let server: Server
let url: string
/** What the server says at /v1/health. */
let health: unknown

beforeAll(async () => {
  server = createServer((request, response) => {
    if (request.url === '/v1/health') response.end(JSON.stringify(health))
    else if (request.url === '/models') response.end(JSON.stringify({ data: [{ id: 'small' }] }))
    else response.writeHead(404).end()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
})
beforeEach(async () => {
  health = { service: 'hq', version: VERSION }
  folder = await mkdtemp(join(tmpdir(), 'hq-doctor-'))
  home = join(folder, 'gateway')
})
afterEach(() => rm(folder, { recursive: true, force: true }))
afterAll(() => void server.close())

async function hq(args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(process.execPath, [HQ, ...args], {
    cwd: folder,
    env: { PATH: process.env['PATH'] ?? '', HQ_GATEWAY_HOME: home, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [out, err, [code]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, 'exit')])
  return { out, err, code: code as number }
}
const found = async (args: readonly string[], env: Record<string, string> = {}) => {
  const { out, code } = await hq([...args, '--json'], env)
  const { findings } = JSON.parse(out) as { findings: Finding[] }
  return { code, by: Object.fromEntries(findings.map((finding) => [finding.subject, finding])) }
}

const register = async (): Promise<void> => {
  await mkdir(home, { mode: 0o700 })
  await writeFile(join(home, 'credentials.json'), JSON.stringify({ url, token: SECRET }), { mode: 0o600 })
}

describe('hq doctor', () => {
  test('a machine on which nothing was done yet: what to do first, and exit code 1', async () => {
    const { code, out } = await hq(['doctor'])
    expect(code).toBe(1)
    expect(out).toMatch(/FAIL {2}folder: .* is not there\n +→ Start the gateway once/)
    expect(out).toMatch(/FAIL {2}registration: .*\n +→ In the app: Gateways, Add a gateway/)
    expect(out).toMatch(/^ok {4}node: 24\./m)
    expect(out).toMatch(/\d problems, \d warning/)
  })

  test('a registered gateway that does not run: everything else is looked at, and no secret is printed', async () => {
    await register()
    const { code, by } = await found(['doctor'], {
      HQ_MODEL_PROVIDER: 'openai',
      HQ_MODEL_BASE_URL: url,
      HQ_MODEL_API_KEY: SECRET,
      HQ_MODEL: 'small',
    })
    expect(code).toBe(1)
    expect(by).toMatchObject({
      folder: { severity: 'ok' },
      registration: { severity: 'ok' },
      gateway: { severity: 'problem', advice: expect.stringMatching(/Start it/) },
      server: { severity: 'ok', says: `${url} answers, version ${VERSION}` },
      model: { severity: 'ok', says: 'openai answers, 1 models' },
      openclaw: { severity: 'ok', says: expect.stringContaining('not installed') },
    })
    const { out } = await hq(['doctor'], {
      HQ_MODEL_PROVIDER: 'openai',
      HQ_MODEL_BASE_URL: url,
      HQ_MODEL_API_KEY: SECRET,
    })
    expect(out).not.toContain(SECRET)
  })

  test('a server that is away, another one, and a model that is not offered', async () => {
    await register()
    const model = { HQ_MODEL_PROVIDER: 'openai', HQ_MODEL_BASE_URL: url, HQ_MODEL: 'large' }
    health = { hello: 'world' }
    expect((await found(['doctor'], model)).by).toMatchObject({
      server: { severity: 'problem', says: expect.stringMatching(/something else/) },
      model: { severity: 'warning', says: 'openai does not list the model large', advice: 'It has small.' },
    })
    expect((await found(['doctor'], { HQ_SERVER_URL: 'http://127.0.0.1:9' })).by['server']).toMatchObject({
      severity: 'problem',
      says: 'http://127.0.0.1:9 does not answer',
    })
    expect((await found(['doctor'], { HQ_SERVER_URL: 'nonsense' })).by['settings']).toMatchObject({
      severity: 'problem',
    })
  })

  test('what is said of clocks, versions, Node and the running gateway', () => {
    const of = (skew: number) => saysOfServer('http://x', VERSION, skew).severity
    expect([of(0), of(Number.NaN), of(70_000), of(-70_000), of(400_000)]).toEqual([
      'ok',
      'ok',
      'warning',
      'warning',
      'problem',
    ])
    expect(saysOfServer('http://x', VERSION, -90_000).says).toContain('90 s behind')
    expect(saysOfServer('http://x', '9.9.9', 0)).toMatchObject({ severity: 'warning' })
    expect(
      [checkNode('20.20.2'), checkNode('24.15.0'), checkNode('24.16.0'), checkNode('26.1.0')].map(
        ({ severity }) => severity,
      ),
    ).toEqual(['problem', 'problem', 'ok', 'ok'])
    const gateway = (body: object) =>
      saysOfGateway({ connection: 'online', pending: 1, rejected: 0, parked: null, ...body })
    expect(gateway({})).toMatchObject({ severity: 'ok', says: expect.stringContaining('1 change waiting') })
    expect(gateway({ connection: 'offline' })).toMatchObject({ severity: 'warning' })
    expect(gateway({ rejected: 2 })).toMatchObject({ severity: 'warning', says: expect.stringContaining('2 changes') })
    expect(gateway({ parked: 'disk_full' })).toMatchObject({
      severity: 'problem',
      says: expect.stringContaining('disk full'),
    })
  })
})

describe('hq audit', () => {
  const severities = (env: Record<string, string>) =>
    Object.fromEntries(auditSettings(env).map(({ subject, severity }) => [subject, severity]))

  test('nothing set is nothing risky', () => {
    expect(new Set(auditSettings({}).map(({ severity }) => severity))).not.toContain('problem')
    expect(new Set(auditSettings({}).map(({ severity }) => severity))).not.toContain('warning')
  })

  test.each([
    [{ HQ_HOST: '0.0.0.0' }, 'bind address', 'problem'],
    [{ HQ_HOST: '::', HQ_PUBLIC_URL: 'https://hq.example' }, 'bind address', 'warning'],
    [{ HQ_HOST: '127.0.0.1' }, 'bind address', 'ok'],
    [{ HQ_SERVER_URL: 'http://hq.example' }, 'server address', 'problem'],
    [{ HQ_SERVER_URL: 'https://hq.example' }, 'server address', 'ok'],
    [{ HQ_SERVER_URL: 'http://[::1]:3210' }, 'server address', 'ok'],
    [{ HQ_REGISTRATION_TOKEN: 'x' }, 'registration token', 'warning'],
    [{ DATABASE_URL: 'postgres://u:p@db.example/hq' }, 'database', 'warning'],
    [{ DATABASE_URL: 'postgres://u:p@db.example/hq?sslmode=verify-full' }, 'database', 'ok'],
    [{ DATABASE_URL: 'postgres://u:p@127.0.0.1/hq' }, 'database', 'ok'],
    [{ HQ_MODEL_BASE_URL: 'http://models.example/v1' }, 'model provider', 'warning'],
    [{ HQ_MODEL_BASE_URL: 'http://127.0.0.1:11434' }, 'model provider', 'ok'],
    [{ HQ_AGENT_WEB: 'on' }, 'web', 'info'],
    [{ HQ_AGENT_EXEC: 'on' }, 'exec', 'warning'],
    [{ HQ_RUN_SHELL: 'on' }, 'shell', 'warning'],
  ] as const)('%j: %s is %s', (env, subject, severity) => {
    expect(severities(env)[subject]).toBe(severity)
    for (const finding of auditSettings(env))
      if (finding.severity === 'problem' || finding.severity === 'warning') expect(finding.advice).toBeTruthy()
  })

  test('files that other users can read are named, the worst first; a closed folder closes what is in it; no secret is printed', async () => {
    await register()
    expect((await found(['audit'])).by['files']).toMatchObject({ severity: 'ok' })
    await writeFile(join(home, 'models.json'), '{}')
    await chmod(join(home, 'models.json'), 0o644)
    expect((await found(['audit'])).by['files']).toMatchObject({ severity: 'ok' })
    await chmod(home, 0o755)
    const env = {
      DATABASE_URL: `postgres://hq:${SECRET}@db.example/hq`,
      HQ_REGISTRATION_TOKEN: SECRET,
      HQ_MODEL_API_KEY: SECRET,
    }
    const { out, code } = await hq(['audit'], env)
    expect(code).toBe(1)
    expect(out).toMatch(/^FAIL {2}files: .*models\.json\n +→ chmod/)
    expect(out).not.toContain('credentials.json')
    expect(out).not.toContain(SECRET)
  })

  test('too much is wrong usage', async () => {
    expect((await hq(['audit', 'everything'])).code).toBe(2)
    expect((await hq(['doctor', '--mine'])).code).toBe(2)
  })
})

test('hq backup FILE and hq restore FILE are the server’s own program: its words and its exit code', async () => {
  const none = await hq(['backup', join(folder, 'x.hq')], { HQ_HOME: join(folder, 'no-hq') })
  expect(none).toMatchObject({ code: 2, err: expect.stringContaining('There is no HQ in') })
  expect((await hq(['restore', join(folder, 'missing')], { HQ_HOME: folder })).err).toContain('There is no file')
  expect((await hq(['restore'])).err).toContain('hq restore FILE')
})

test('findings are sorted by weight, and the worst decides', () => {
  const of = (severity: Finding['severity']): Finding => ({ subject: severity, severity, says: 'x' })
  const all = [of('ok'), of('warning'), of('info'), of('problem')]
  expect(sorted(all).map(({ severity }) => severity)).toEqual(['problem', 'warning', 'info', 'ok'])
  expect([worst(all), worst([of('ok')]), worst([])]).toEqual(['problem', 'ok', 'ok'])
  expect(printFindings([of('ok')])).toContain('Nothing to put right.')
})
