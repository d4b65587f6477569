/**
 * The builtin runtime: reads the configuration, builds prompt and model, and runs the loop. Never throws (X2).
 *
 *  B1 BOOT.md, where enabled (`HQ_AGENT_BOOT=on`, or `boot` in the agent's `meta`), is in the instructions of the first wake after the gateway's start, and only
 *     then. It wakes nobody: without work there is no model call.
 *  B2 Ollama without a model named: the first that it has. It is asked for five seconds at most.
 */
import { cut } from '@hq/shared/domain/runs.ts'
import type { GatewayContext } from '../../service.ts'
import { isOn } from '../../switches.ts'
import type { AgentRuntime, RunInput } from '../runtime.ts'
import { type ConfigResult, type ModelConfig, modelFor, readModelConfig } from './config.ts'
import { createDemoModel } from './demo-model.ts'
import { describeError } from './errors.ts'
import { CAPS, type Caps, runLoop } from './loop.ts'
import { instructionsFor, wakeMessage } from './prompt.ts'
import { languageModel, listModels } from './providers.ts'

export interface BuiltinOptions {
  readonly caps?: Partial<Caps>
  /** ms between the words of the demo model. */
  readonly demoPaceMs?: number
  /** ms that Ollama has to say which models it has. */
  readonly discoveryMs?: number
  /** Which model the gateway asks; default: what the environment says. */
  readonly model?: () => Promise<ConfigResult>
}

// The library prints its warnings to the console by default; what matters is in the run's log.
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })

export function createBuiltin(
  context: Pick<GatewayContext, 'home' | 'env' | 'now' | 'log' | 'problems'>,
  options: BuiltinOptions = {},
): AgentRuntime {
  /** Agents that have been woken since this process began (B1). */
  const woken = new Set<string>()
  return {
    name: 'builtin',
    async run(input, hooks, signal) {
      const none = { summary: null, turns: 0, toolCalls: 0 }
      const read = await (options.model?.() ?? readModelConfig(context.home, context.env))
      if (!read.ok) {
        context.problems.report('models', read.message)
        return { ...none, status: 'failed', error: { code: 'not_configured', message: read.message } }
      }
      if (read.warning) context.problems.report('models', read.warning)
      else context.problems.clear('models')
      const config = await discovered(modelFor(read.config, input.model), read.config, input.model, options, signal)
      if ('problem' in config)
        return { ...none, status: 'failed', error: { code: 'not_configured', message: config.problem } }
      const demo = config.provider === 'demo'
      try {
        await hooks.onModel({ provider: config.provider, model: config.model ?? '', demo })
        const boot = woken.has(input.agent.id) ? '' : await bootNote(input, context.env)
        const outcome = await runLoop(
          {
            model: demo ? createDemoModel(input, options.demoPaceMs ?? 12) : languageModel(config),
            config,
            instructions: `${await instructionsFor(input)}${boot}`,
            wake: wakeMessage(input),
            thinking: input.thinking satisfies RunInput['thinking'],
            caps: { ...CAPS, ...options.caps },
            now: context.now,
          },
          hooks,
          signal,
        )
        if (outcome.turns > 0) woken.add(input.agent.id)
        return outcome
      } catch (error) {
        const failure = describeError(error, config)
        context.log('error', 'the builtin runtime failed', { agent: input.agent.slug, error: failure.message })
        return { ...none, status: 'failed', error: { code: 'internal', message: failure.message } }
      }
    },
  }
}

const BOOT_CHARS = 6_000

/** (B1) */
async function bootNote(input: RunInput, env: GatewayContext['env']): Promise<string> {
  if (!input.files || !(input.boot || isOn(env, 'HQ_AGENT_BOOT'))) return ''
  const file = await input.files.read('BOOT.md')
  if (!file.ok || file.value.trim() === '') return ''
  return `\n\n# BOOT.md\nThis is your first wake since the gateway was started. Do first what this says, then your work.\n${cut(file.value.trim(), BOOT_CHARS).text}`
}

type Chosen = ReturnType<typeof modelFor>

/** (B2) */
async function discovered(
  chosen: Chosen,
  config: ModelConfig,
  wanted: string | null,
  { discoveryMs }: BuiltinOptions,
  signal: AbortSignal,
): Promise<Chosen> {
  if (!('problem' in chosen) || config.provider !== 'ollama' || config.model !== undefined) return chosen
  const listing = await listModels(config, signal, discoveryMs)
  if (!listing.ok) return { problem: `No model is chosen, and Ollama could not be asked for one. ${listing.message}` }
  const [first] = listing.models
  return first
    ? modelFor({ ...config, model: first.model }, wanted)
    : { problem: 'Ollama has no model yet. Get one, for example with: ollama pull qwen3' }
}
