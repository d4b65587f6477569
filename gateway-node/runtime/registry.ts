/** The runtimes of this gateway: `builtin` always, `openclaw` where it is installed. */
import type { Enum } from '@hq/shared/schema/enums.ts'
import type { GatewayContext, ModelInfo, RuntimeRegistry } from '../service.ts'
import { type BuiltinOptions, createBuiltin } from './builtin/builtin.ts'
import { readModelConfig } from './builtin/config.ts'
import { listModels } from './builtin/providers.ts'
import type { OpenClaw } from './openclaw/openclaw.ts'
import type { AgentRuntime } from './runtime.ts'

export interface Runtimes extends RuntimeRegistry {
  get(name: Enum<'agent_runtime'>): AgentRuntime | undefined
  /** Is to be started and stopped with the gateway. */
  readonly openclaw: OpenClaw | undefined
}

export function createRuntimes(
  context: Pick<GatewayContext, 'home' | 'env' | 'now' | 'log' | 'problems'>,
  options: BuiltinOptions & {
    readonly runtimes?: readonly AgentRuntime[]
    readonly openclaw?: OpenClaw
    readonly check?: (signal?: AbortSignal) => Promise<void>
  } = {},
): Runtimes {
  const { openclaw } = options
  const all = options.runtimes ?? [createBuiltin(context, options), ...(openclaw ? [openclaw.runtime] : [])]
  return {
    openclaw,
    get: (name) => all.find((runtime) => runtime.name === name),
    runtimes: () =>
      all.map((runtime) => runtime.name).filter((name) => name !== 'openclaw' || openclaw?.state().installed !== false),
    check: (signal) => options.check?.(signal) ?? Promise.resolve(),
    managed: (name) => (name === 'openclaw' ? openclaw : undefined),
    async models(signal): Promise<readonly ModelInfo[]> {
      const read = await (options.model?.() ?? readModelConfig(context.home, context.env))
      if (!read.ok) {
        context.problems.report('models', read.message)
        return []
      }
      const { config } = read
      const listing = await listModels(config, signal)
      if (listing.ok) {
        context.problems.clear('model_list')
        return listing.models
      }
      context.problems.report('model_list', listing.message)
      return config.model === undefined ? [] : [{ provider: config.provider, model: config.model, demo: false }]
    },
  }
}
