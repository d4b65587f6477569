/**
 * OpenClaw as a runtime: installed on demand, started with the first run that wants it, told which agents there are, one WebSocket for all of them.
 *
 *  C1 Missing, broken, of another version, not to be started: the run ends with a sentence; the gateway and the builtin runtime go on.
 *  C2 An agent comes and goes by a new configuration that the running process reads; the others go on. Only another key of the model provider takes a
 *     restart, when no run is alive.
 *  C3 A task is a session (`agent:<slug>:task-<id>`), so that an agent remembers what it has done in it.
 *  C4 A run ends in bounded time: by its answer, by an abort after a stop or a cap, or with the process.
 */
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { VERSION } from '../../config.ts'
import type { GatewayContext, Log, ManagedRuntime, Service } from '../../service.ts'
import { type ConfigResult, type ModelConfig, modelFor } from '../builtin/config.ts'
import { CAPS, type Caps } from '../builtin/loop.ts'
import { instructionsAbout, wakeMessage } from '../builtin/prompt.ts'
import type { AgentRuntime, RunHooks, RunInput, RunOutcome } from '../runtime.ts'
import { askOpenClaw, failureOf } from './ask.ts'
import { type Bridge, createBridge } from './bridge.ts'
import { agentIdOf, MODEL_KEY_VARIABLE, modelProblem, openClawConfig, PROVIDER_ID, TOKEN_VARIABLE } from './config.ts'
import { agentEventSchema } from './frames.ts'
import { findInstallation, install, OPENCLAW_VERSION } from './install.ts'
import { createPairing, type Pairing } from './pairing.ts'
import { permitTool } from './permit.ts'
import { type ToolFacts, writePlugin } from './plugin-files.ts'
import { connectOpenClaw, type OpenClawSocket } from './socket.ts'
import { createSupervisor } from './supervisor.ts'
import { createTurn, type Turn } from './turn.ts'
import { wantedAgents } from './wanted.ts'

export interface OpenClawOptions {
  /** Which model the gateway asks. */
  readonly model: () => Promise<ConfigResult>
  /** All tools that an agent of this gateway can have. */
  readonly tools: readonly ToolFacts[]
  readonly caps?: Partial<Caps>
}

export interface OpenClaw extends Service, ManagedRuntime {
  readonly runtime: AgentRuntime
  /** A question to the running process, such as `sessions.list`; undefined when it doesn't run. */
  ask(method: string, params: object): Promise<unknown>
}

const RELOAD_MS = 30_000

export function createOpenClaw(context: GatewayContext, options: OpenClawOptions): OpenClaw {
  const { home, problems, env } = context
  const log: Log & { addSecret?(value: string): void } = context.log
  const folder = join(home, 'openclaw')
  const configFile = join(folder, 'openclaw.json')
  const bridge: Bridge = createBridge(log)
  const live = new Map<string, { readonly turn: Turn; readonly runId: string }>()
  /** Runs that OpenClaw works on. */
  const asked = new Set<Turn>()
  let socket: OpenClawSocket | undefined
  let socketPort: number | undefined
  let pairing: Pairing | undefined
  let token = ''
  let port = 0
  let keyInProcess: string | undefined
  let written = ''
  const extraModels = new Set<string>()
  let installed = false
  let stopListening: (() => void) | undefined
  /** Changes of configuration and starts, one at a time. */
  let turnstile: Promise<unknown> = Promise.resolve()

  const supervisor = createSupervisor({
    folder,
    log,
    now: context.now,
    prepare,
    onProblem: (message) => (message ? problems.report('openclaw', message) : problems.clear('openclaw')),
    onExit: (words) => {
      for (const turn of asked) turn.stop({ code: 'crashed', message: words })
    },
  })

  async function prepare() {
    const found = await findInstallation(context)
    if (!found.ok) throw new Error(found.message)
    const model = await usableModel(null)
    if ('problem' in model) throw new Error(model.problem)
    await mkdir(join(folder, 'state'), { recursive: true, mode: 0o700 })
    await bridge.start()
    await writePlugin(join(folder, 'plugin'), options.tools)
    token = randomBytes(32).toString('base64url')
    log.addSecret?.(token)
    log.addSecret?.(bridge.token)
    port = await freePort()
    written = ''
    await writeConfig(model)
    keyInProcess = fingerprint(model)
    return { script: found.script, port, env: environment(model) }
  }

  /** Of the gateway's own environment only what a program needs to run: the rest may hold keys. */
  function environment(model: ModelConfig): Record<string, string> {
    const { PATH = '/usr/local/bin:/usr/bin:/bin', LANG = 'C.UTF-8', TZ } = env
    return {
      PATH,
      LANG,
      ...(TZ ? { TZ } : {}),
      HOME: folder,
      OPENCLAW_HOME: folder,
      OPENCLAW_STATE_DIR: join(folder, 'state'),
      OPENCLAW_CONFIG_PATH: configFile,
      OPENCLAW_GATEWAY_PORT: String(port),
      [TOKEN_VARIABLE]: token,
      ...(model.apiKey === undefined ? {} : { [MODEL_KEY_VARIABLE]: model.apiKey }),
      HQ_BRIDGE_URL: bridge.url(),
      HQ_BRIDGE_TOKEN: bridge.token,
      OPENCLAW_DISABLE_BONJOUR: '1',
      OPENCLAW_EXEC_SHELL_SNAPSHOT: '0',
      OPENCLAW_NO_RESPAWN: '1',
      OPENCLAW_NO_AUTO_UPDATE: '1',
      OPENCLAW_OFFLINE: '1',
      OPENCLAW_SKIP_CHANNELS: '1',
    }
  }

  /** True when something in it changed. */
  async function writeConfig(model: ModelConfig): Promise<boolean> {
    const agents = await wantedAgents(context, model, options.tools)
    const config = openClawConfig({
      port,
      pluginFolder: join(folder, 'plugin'),
      logFile: join(folder, 'openclaw.log'),
      agents,
      model,
      extraModels: [...extraModels],
    })
    const text = JSON.stringify(config, null, 1)
    if (text === written) return false
    // Kept beside: the process may rewrite its own.
    await writeFile(`${configFile}.new`, text, { mode: 0o600 })
    await rename(`${configFile}.new`, configFile)
    written = text
    return true
  }

  async function usableModel(wanted: string | null): Promise<ModelConfig | { readonly problem: string }> {
    const read = await options.model()
    if (!read.ok) return { problem: read.message }
    const model = modelFor(read.config, wanted)
    if ('problem' in model) return model
    const problem = modelProblem(model)
    return problem === undefined ? model : { problem }
  }

  /** Everything that a run of this agent needs is there; the socket to ask it by. */
  function ensure(slug: string, model: ModelConfig, signal: AbortSignal): Promise<OpenClawSocket> {
    const next = turnstile.then(async () => {
      signal.throwIfAborted()
      if (model.model) extraModels.add(model.model)
      if (supervisor.state() === 'ready' && keyInProcess !== fingerprint(model)) {
        // Not those that wait here themselves.
        await Promise.all([...asked].map((turn) => turn.ended))
        signal.throwIfAborted()
        await supervisor.restart()
      }
      const base = await usableModel(null)
      const changed = supervisor.state() === 'ready' && (await writeConfig('problem' in base ? model : base))
      const ready = await supervisor.ready(signal)
      const connection = connect(ready)
      await connection.up(AbortSignal.any([signal, AbortSignal.timeout(RELOAD_MS)]))
      if (changed || !(await knows(connection, slug))) await untilKnown(connection, slug, signal)
      return connection
    })
    turnstile = next.catch(() => undefined)
    return next
  }

  function connect(to: number): OpenClawSocket {
    if (socket && socketPort === to) return socket
    socket?.close()
    pairing?.stop()
    socketPort = to
    const opened = createPairing(context, () => socket)
    pairing = opened
    socket = connectOpenClaw({
      url: `ws://127.0.0.1:${to}`,
      token,
      version: VERSION,
      log,
      onUp: () => opened.look(),
      onGap: () => {
        for (const { turn } of live.values()) turn.gap()
      },
      onEvent: (event, payload) => {
        opened.onEvent(event, payload)
        if (event !== 'agent') return
        const read = agentEventSchema.safeParse(payload)
        if (!read.success || read.data.sessionKey === undefined) return
        const run = live.get(read.data.sessionKey)
        if (run?.runId === read.data.runId) run.turn.event(read.data)
      },
    })
    return socket
  }

  /** An agent is known when OpenClaw lists it. */
  async function knows(connection: OpenClawSocket, slug: string): Promise<boolean> {
    const listing: unknown = await connection.request('agents.list', {})
    return JSON.stringify(listing).includes(`"${agentIdOf(slug)}"`)
  }

  async function untilKnown(connection: OpenClawSocket, slug: string, signal: AbortSignal): Promise<void> {
    const end = context.now() + RELOAD_MS
    for (;;) {
      signal.throwIfAborted()
      if (connection.connected() && (await knows(connection, slug).catch(() => false))) return
      if (context.now() > end) throw new Error(`OpenClaw did not take up the agent ${slug} within 30 s.`)
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
  }

  /** The configuration follows the agents while the process runs (C2). */
  function follow(): void {
    if (supervisor.state() !== 'ready') return
    turnstile = turnstile
      .then(async () => {
        const model = await usableModel(null)
        if (!('problem' in model)) await writeConfig(model)
      })
      .catch((error: unknown) => log('warn', 'OpenClaw’s configuration could not be written', { error: String(error) }))
  }

  async function run(input: RunInput, hooks: RunHooks, signal: AbortSignal): Promise<RunOutcome> {
    const none = { summary: null, turns: 0, toolCalls: 0 }
    const failed = (
      code: 'no_runtime' | 'not_configured' | 'no_workspace' | 'crashed',
      message: string,
    ): RunOutcome => ({
      ...none,
      status: signal.aborted ? 'cancelled' : 'failed',
      error: { code, message },
    })
    const found = await findInstallation(context)
    if (!found.ok) return failed('no_runtime', found.message)
    const model = await usableModel(input.model)
    if ('problem' in model) return failed('not_configured', model.problem)
    if (!(await context.workspaces.exists(input.agent.slug)))
      return failed('no_workspace', 'This agent has no workspace yet.')
    const sessionKey = sessionKeyOf(input)
    if (live.has(sessionKey)) return failed('crashed', 'This agent is at work on this already.')
    await hooks.onModel({ provider: model.provider, model: model.model ?? '', demo: false })
    const asking = {
      agentId: input.agent.id,
      agentName: input.agent.name,
      runId: input.runId,
      taskId: input.task?.id ?? null,
      signal,
    }
    const turn = createTurn({
      hooks,
      caps: { ...CAPS, ...options.caps },
      provider: model.provider,
      model: model.model ?? '',
      prices: model.prices,
      system: instructionsAbout(input, 'Its tools are called hq_… here: hq_task_show for task_show, and so on.'),
      now: context.now,
      permit: (tool, args) => permitTool(context, asking, tool, args),
    })
    live.set(sessionKey, { turn, runId: input.runId })
    bridge.add(sessionKey, turn)
    try {
      const connection = await ensure(input.agent.slug, model, signal)
      asked.add(turn)
      return await askOpenClaw({
        socket: connection,
        turn,
        signal,
        now: context.now,
        agentId: agentIdOf(input.agent.slug),
        sessionKey,
        runId: input.runId,
        message: wakeMessage(input),
        model: `${PROVIDER_ID}/${model.model}`,
        thinking: input.thinking,
      })
    } catch (error) {
      if (signal.aborted) return { ...none, status: 'cancelled' }
      const { code, message } = failureOf(error)
      log('warn', 'OpenClaw could not be asked', { agent: input.agent.slug, reason: message })
      return { ...none, status: 'failed', error: { code, message } }
    } finally {
      turn.end()
      asked.delete(turn)
      bridge.remove(sessionKey)
      live.delete(sessionKey)
    }
  }

  return {
    runtime: { name: 'openclaw', run },
    install: async (tell, signal) => {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      await supervisor.stop()
      await install(context, tell, signal)
      installed = true
      problems.clear('openclaw')
    },
    restart: () => supervisor.restart(),
    state: () => ({ version: OPENCLAW_VERSION, state: supervisor.state(), installed }),
    ask: (method, params) => (socket?.connected() ? socket.request(method, params) : Promise.resolve(undefined)),
    async start() {
      installed = (await findInstallation(context)).ok
      stopListening = context.replica.onChange((changes) => {
        if (changes.has('agents') || changes.has('model_connections')) follow()
      })
    },
    async stop() {
      stopListening?.()
      pairing?.stop()
      socket?.close()
      await supervisor.stop()
      await bridge.stop()
    },
  }
}

const sessionKeyOf = ({ agent, task, item }: RunInput): string =>
  `agent:${agentIdOf(agent.slug)}:${task ? `task-${task.id}` : `item-${item.id}`}`

/** So that a key is compared without being kept. */
const fingerprint = ({ provider, apiKey }: ModelConfig): string =>
  createHash('sha256')
    .update(`${provider} ${apiKey ?? ''}`)
    .digest('hex')

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', resolve)
  })
  const address = server.address()
  await new Promise((resolve) => server.close(resolve))
  if (address === null || typeof address === 'string') throw new Error('This machine gave no port.')
  return address.port
}
