/**
 * OpenClaw's configuration, from what HQ knows. Pure.
 *
 *  K1 Loopback only, a token of this process, no updates, no channels, no discovery, no control interface.
 *  K2 An agent reaches its own worktree, HQ's tools, and a shell only where the owner of the machine and the agent's policy both say so.
 *  K3 No key is in it: names of variables stand for them.
 */
import type { ModelConfig } from '../builtin/config.ts'
import { HOOK_MS } from './permit.ts'

export const PLUGIN_ID = 'hq'
export const PROVIDER_ID = 'hq'
/** Variables that the configuration names (K3). */
export const TOKEN_VARIABLE = 'OPENCLAW_GATEWAY_TOKEN'
export const MODEL_KEY_VARIABLE = 'HQ_OPENCLAW_MODEL_KEY'

export interface OpenClawAgent {
  readonly slug: string
  /** Absolute path of its worktree. */
  readonly workspace: string
  /** What it may do with a shell. */
  readonly exec: 'deny' | 'ask' | 'allow'
  /** Names of HQ's tools that it has (`hq_…`). */
  readonly tools: readonly string[]
  /** Null: the default. */
  readonly model: string | null
}

export interface ConfigInput {
  readonly port: number
  readonly pluginFolder: string
  readonly logFile: string
  readonly agents: readonly OpenClawAgent[]
  readonly model: ModelConfig
  /** Further models that single tasks ask for. */
  readonly extraModels?: readonly string[]
}

/** What OpenClaw calls an agent. */
export const agentIdOf = (slug: string): string => slug

/** `openai-completions` and so on; undefined: OpenClaw can't use this provider. */
function apiOf({ provider }: ModelConfig): string | undefined {
  if (provider === 'anthropic') return 'anthropic-messages'
  if (provider === 'ollama') return 'ollama'
  return provider === 'demo' ? undefined : 'openai-completions'
}

/** OpenClaw adds the paths of the interfaces itself, each in its own way. */
function baseUrlOf({ provider, baseUrl }: ModelConfig): string | undefined {
  if (baseUrl === undefined) return undefined
  if (provider === 'ollama') return baseUrl.replace(/\/api$/, '')
  return provider === 'anthropic' ? baseUrl.replace(/\/v1$/, '') : baseUrl
}

/** A sentence when this model can't be used by OpenClaw. */
export function modelProblem(model: ModelConfig): string | undefined {
  if (apiOf(model) === undefined)
    return 'OpenClaw needs a real model: connect one under Models in the app. The built-in demo model works only in the builtin runtime.'
  if (model.bearer && model.provider === 'anthropic')
    return 'OpenClaw takes a key for Anthropic, no sign-in. Let this agent use the builtin runtime, or connect Anthropic with a key.'
  return model.model === undefined
    ? `No model is chosen for the provider “${model.provider}”. Choose one for the agent, or connect one under Models in the app.`
    : undefined
}

export function openClawConfig({
  port,
  pluginFolder,
  logFile,
  agents,
  model,
  extraModels = [],
}: ConfigInput): Record<string, unknown> {
  const names = [...new Set([model.model, ...agents.map((agent) => agent.model), ...extraModels])].filter(
    (name) => name != null,
  )
  const sorted = [...agents].sort((a, b) => (a.slug < b.slug ? -1 : 1))
  return {
    gateway: {
      mode: 'local',
      port,
      bind: 'loopback',
      auth: { mode: 'token', token: `\${${TOKEN_VARIABLE}}` },
      controlUi: { enabled: false },
    },
    update: { checkOnStart: false },
    logging: { file: logFile, level: 'info' },
    models: {
      mode: 'replace',
      providers: {
        [PROVIDER_ID]: {
          baseUrl: baseUrlOf(model),
          ...(model.apiKey === undefined ? { apiKey: 'none' } : { apiKey: `\${${MODEL_KEY_VARIABLE}}` }),
          api: apiOf(model),
          models: names.map((id) => ({
            id,
            name: id,
            reasoning: false,
            input: ['text'],
            // HQ reckons the cost itself, from its own price list.
            cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
            contextWindow: model.contextTokens,
            maxTokens: 8_192,
          })),
        },
      },
    },
    agents: {
      ownership: 'explicit',
      defaults: {
        model: { primary: `${PROVIDER_ID}/${model.model}` },
        skipBootstrap: true,
        heartbeat: { every: '0m' },
        ...(sorted[0] ? { systemAgent: { agentId: agentIdOf(sorted[0].slug) } } : {}),
      },
      entries: Object.fromEntries(
        sorted.map((agent) => [
          agentIdOf(agent.slug),
          {
            workspace: agent.workspace,
            ...(agent.model === null ? {} : { model: { primary: `${PROVIDER_ID}/${agent.model}` } }),
            tools: {
              allow: [
                'read',
                'write',
                'edit',
                'apply_patch',
                ...agent.tools,
                ...(agent.exec === 'deny' ? [] : ['exec']),
              ],
              // Who is to be asked is asked by HQ, before the call (`permit.ts`): OpenClaw itself can't wait for an answer here.
              exec: { mode: agent.exec === 'deny' ? 'deny' : 'full' },
            },
          },
        ]),
      ),
    },
    plugins: {
      allow: [PLUGIN_ID],
      slots: { memory: 'none' },
      load: { paths: [pluginFolder] },
      entries: {
        [PLUGIN_ID]: {
          enabled: true,
          hooks: { allowConversationAccess: true, timeouts: { before_tool_call: HOOK_MS, before_agent_run: 60_000 } },
        },
      },
    },
    tools: {
      toolSearch: false,
      fs: { workspaceOnly: true },
      elevated: { enabled: false },
      agentToAgent: { enabled: false },
      loopDetection: { enabled: true },
    },
  }
}
