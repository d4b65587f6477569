/** What OpenClaw is told (config.ts, K1–K3), and what is said of its installation (install.ts, I1). */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { DEMO_CONFIG, type ModelConfig } from '../builtin/config.ts'
import { modelProblem, openClawConfig, TOKEN_VARIABLE } from './config.ts'
import { findInstallation, isNewEnough, OPENCLAW_VERSION } from './install.ts'
import { verdictOf } from './permit.ts'

const model: ModelConfig = {
  provider: 'anthropic',
  baseUrl: 'https://api.anthropic.com/v1',
  apiKey: 'sk-very-secret',
  model: 'claude-sonnet-4-5',
  contextTokens: 200_000,
  prices: {},
}
const made = (more: Partial<Parameters<typeof openClawConfig>[0]> = {}) =>
  openClawConfig({ port: 4_000, pluginFolder: '/p', logFile: '/l', agents: [], model, ...more }) as {
    gateway: unknown
    models: { providers: { hq: Record<string, unknown> & { models: { id: string }[] } } }
    agents: { entries: Record<string, { tools: { allow: string[]; exec: unknown }; model?: unknown }> }
  }

test('loopback only, with a token that is no word of the file; no key either (K1, K3)', () => {
  expect(made().gateway).toMatchObject({
    bind: 'loopback',
    auth: { mode: 'token', token: `\${${TOKEN_VARIABLE}}` },
    controlUi: { enabled: false },
  })
  expect(JSON.stringify(made())).not.toContain('sk-very-secret')
})

test('addresses as each interface wants them; a model that a task names is known', () => {
  expect(made().models.providers.hq).toMatchObject({ api: 'anthropic-messages', baseUrl: 'https://api.anthropic.com' })
  const ollama = made({
    model: { ...model, provider: 'ollama', apiKey: undefined, baseUrl: 'http://127.0.0.1:11434/api' },
    extraModels: ['big'],
  })
  expect(ollama.models.providers.hq).toMatchObject({ api: 'ollama', baseUrl: 'http://127.0.0.1:11434' })
  expect(ollama.models.providers.hq.models.map(({ id }) => id)).toEqual(['claude-sonnet-4-5', 'big'])
})

test('a shell only for who may have one; the order of agents changes nothing (K2)', () => {
  const agent = (slug: string, exec: 'deny' | 'ask' | 'allow') => ({
    slug,
    workspace: `/w/${slug}`,
    exec,
    tools: ['hq_comment'],
    model: null,
  })
  const one = made({ agents: [agent('b', 'deny'), agent('a', 'ask')] })
  expect(one).toEqual(made({ agents: [agent('a', 'ask'), agent('b', 'deny')] }))
  expect(one.agents.entries['b']?.tools).toMatchObject({ exec: { mode: 'deny' } })
  expect(one.agents.entries['b']?.tools.allow).not.toContain('exec')
  expect(one.agents.entries['a']?.tools.allow).toContain('exec')
})

test('the demo model, or none, is said in a sentence', () => {
  expect(modelProblem(DEMO_CONFIG)).toContain('needs a real model')
  expect(modelProblem({ ...model, model: undefined })).toContain('No model is chosen')
  expect(modelProblem(model)).toBeUndefined()
})

test('its own tools go by HQ’s policy; exec takes the machine’s owner as well', () => {
  const on = { HQ_AGENT_EXEC: 'on' }
  expect(verdictOf({ tools: { exec: 'allow' } }, 'exec', {})).toBe('deny')
  expect(verdictOf({ tools: { exec: 'ask' } }, 'exec', on)).toBe('ask')
  expect(verdictOf({ tools: { write_file: 'ask' } }, 'apply_patch', on)).toBe('ask')
  expect(verdictOf({}, 'read', on)).toBe('allow')
  expect(verdictOf({}, 'gateway', on)).toBe('deny')
  expect(verdictOf('nonsense', 'exec', on)).toBe('deny')
})

test('missing, broken, of another version, on an old Node: each is said (I1)', async () => {
  const home = await mkdtemp(join(tmpdir(), 'hq-openclaw-'))
  onTestFinished(() => rm(home, { recursive: true, force: true }))
  const where = { home, env: {} }
  expect(await findInstallation(where)).toMatchObject({ ok: false, reason: 'missing' })
  const folder = join(home, 'openclaw', OPENCLAW_VERSION, 'node_modules/openclaw')
  await mkdir(folder, { recursive: true })
  await writeFile(join(folder, 'openclaw.mjs'), '')
  await writeFile(join(folder, 'package.json'), '{ not json')
  expect(await findInstallation(where)).toMatchObject({ ok: false, reason: 'broken' })
  await writeFile(join(folder, 'package.json'), '{"version":"2025.1.1"}')
  expect(await findInstallation(where)).toMatchObject({ ok: false, reason: 'other_version' })
  await writeFile(join(folder, 'package.json'), JSON.stringify({ version: OPENCLAW_VERSION }))
  expect(await findInstallation(where, '24.10.0')).toMatchObject({ ok: false, reason: 'node' })
  expect(await findInstallation(where, '24.22.3')).toMatchObject({ ok: true, version: OPENCLAW_VERSION })
  expect(['22.9.0', '24.15.9', '25.1.0', '26.0.9'].filter(isNewEnough)).toEqual([])
  expect(['24.16.0', '26.1.0', '27.0.0'].every((version) => isNewEnough(version))).toBe(true)
})
