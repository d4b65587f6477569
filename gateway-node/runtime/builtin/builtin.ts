/** The builtin runtime: reads the configuration, builds prompt and model, and runs the loop. Never throws (X2). */
import type { GatewayContext } from '../../service.ts'
import type { AgentRuntime, RunInput } from '../runtime.ts'
import { modelFor, readModelConfig } from './config.ts'
import { createDemoModel } from './demo-model.ts'
import { describeError } from './errors.ts'
import { CAPS, type Caps, runLoop } from './loop.ts'
import { instructionsFor, wakeMessage } from './prompt.ts'
import { languageModel } from './providers.ts'

export interface BuiltinOptions {
  readonly caps?: Partial<Caps>
  /** ms between the words of the demo model. */
  readonly demoPaceMs?: number
}

// The library prints its warnings to the console by default; what matters is in the run's log.
Object.assign(globalThis, { AI_SDK_LOG_WARNINGS: false })

export function createBuiltin(
  context: Pick<GatewayContext, 'home' | 'env' | 'now' | 'log' | 'problems'>,
  options: BuiltinOptions = {},
): AgentRuntime {
  return {
    name: 'builtin',
    async run(input, hooks, signal) {
      const none = { summary: null, turns: 0, toolCalls: 0 }
      const read = await readModelConfig(context.home, context.env)
      if (!read.ok) {
        context.problems.report('models', read.message)
        return { ...none, status: 'failed', error: { code: 'not_configured', message: read.message } }
      }
      if (read.warning) context.problems.report('models', read.warning)
      else context.problems.clear('models')
      const config = modelFor(read.config, input.model)
      if ('problem' in config)
        return { ...none, status: 'failed', error: { code: 'not_configured', message: config.problem } }
      const demo = config.provider === 'demo'
      try {
        await hooks.onModel({ provider: config.provider, model: config.model ?? '', demo })
        return await runLoop(
          {
            model: demo ? createDemoModel(input, options.demoPaceMs ?? 12) : languageModel(config),
            config,
            instructions: await instructionsFor(input),
            wake: wakeMessage(input),
            thinking: input.thinking satisfies RunInput['thinking'],
            caps: { ...CAPS, ...options.caps },
            now: context.now,
          },
          hooks,
          signal,
        )
      } catch (error) {
        const failure = describeError(error, config)
        context.log('error', 'the builtin runtime failed', { agent: input.agent.slug, error: failure.message })
        return { ...none, status: 'failed', error: { code: 'internal', message: failure.message } }
      }
    },
  }
}
