/**
 * Which model the builtin runtime asks: from the environment, else from `<home>/models.json`; each value of the environment wins over the file's.
 * Read anew for every run, so that a new key works at once. Nothing set: the demo model. Something wrong: an error in a sentence, never the demo model.
 */
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { PRICES, type Price } from './prices.ts'

export const PROVIDERS = ['openai', 'anthropic', 'ollama', 'demo'] as const
export type ProviderName = (typeof PROVIDERS)[number]

export interface ModelConfig {
  readonly provider: ProviderName
  /** Without a trailing slash; undefined: the provider's own address. */
  readonly baseUrl: string | undefined
  /** Never logged. */
  readonly apiKey: string | undefined
  /** It is the token of a sign-in, for providers that take a key in another way than a token. */
  readonly bearer?: boolean
  readonly model: string | undefined
  /** Size of the model's window, in tokens. */
  readonly contextTokens: number
  readonly prices: Readonly<Record<string, Price>>
}

export type ConfigResult =
  | { readonly ok: true; readonly config: ModelConfig; readonly warning?: string }
  | { readonly ok: false; readonly message: string }

const price = z.object({
  input: z.number().nonnegative(),
  output: z.number().nonnegative(),
  cacheRead: z.number().nonnegative().optional(),
  cacheWrite: z.number().nonnegative().optional(),
})

const fileFormat = z.object({
  provider: z.string().optional(),
  base_url: z.string().optional(),
  api_key: z.string().optional(),
  model: z.string().optional(),
  context_tokens: z.int().min(2_000).optional(),
  prices: z.record(z.string(), price).optional(),
})

export const DEFAULT_URL: Record<ProviderName, string | undefined> = {
  openai: 'https://api.openai.com/v1',
  anthropic: 'https://api.anthropic.com/v1',
  ollama: 'http://127.0.0.1:11434/api',
  demo: undefined,
}

export const WINDOW: Record<ProviderName, number> = {
  openai: 128_000,
  anthropic: 200_000,
  ollama: 32_000,
  demo: 128_000,
}

export const DEMO_CONFIG: ModelConfig = {
  provider: 'demo',
  baseUrl: undefined,
  apiKey: undefined,
  model: 'demo',
  contextTokens: WINDOW.demo,
  prices: {},
}

export async function readModelConfig(
  home: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<ConfigResult> {
  const file = await readFileConfig(join(home, 'models.json'))
  if (!file.ok) return file
  const named = blank(env['HQ_MODEL_PROVIDER']) ?? blank(file.value.provider)
  if (named === undefined) return { ok: true, config: DEMO_CONFIG, ...(file.warning ? { warning: file.warning } : {}) }
  const provider = PROVIDERS.find((name) => name === named.toLowerCase())
  if (!provider)
    return {
      ok: false,
      message: `There is no model provider “${named}”; use ${PROVIDERS.join(', ')} in HQ_MODEL_PROVIDER.`,
    }
  if (provider === 'demo') return { ok: true, config: DEMO_CONFIG }
  const baseUrl = (blank(env['HQ_MODEL_BASE_URL']) ?? blank(file.value.base_url) ?? DEFAULT_URL[provider])?.replace(
    /\/+$/,
    '',
  )
  if (baseUrl !== undefined && !/^https?:$/.test(URL.canParse(baseUrl) ? new URL(baseUrl).protocol : '')) {
    return {
      ok: false,
      message: `The address of the model provider (HQ_MODEL_BASE_URL) is not an http(s) address: ${baseUrl.slice(0, 80)}`,
    }
  }
  return {
    ok: true,
    config: {
      provider,
      baseUrl,
      apiKey: blank(env['HQ_MODEL_API_KEY']) ?? blank(file.value.api_key),
      model: blank(env['HQ_MODEL']) ?? blank(file.value.model),
      contextTokens: file.value.context_tokens ?? WINDOW[provider],
      prices: { ...PRICES, ...(file.value.prices as Record<string, Price> | undefined) },
    },
    ...(file.warning ? { warning: file.warning } : {}),
  }
}

/**
 * The model of one run: the agent's or task's own, else the gateway's. `provider/model` names the provider too; other models with a slash in
 * their name (as routers have them) stay as they are.
 */
export function modelFor(config: ModelConfig, wanted: string | null): ModelConfig | { readonly problem: string } {
  const own = blank(wanted ?? undefined)
  if (config.provider === 'demo' || own === 'demo' || own?.startsWith('demo/')) return DEMO_CONFIG
  const router = config.baseUrl?.includes('openrouter') ?? false
  const model =
    own?.startsWith(`${config.provider}/`) && !router ? own.slice(config.provider.length + 1) : (own ?? config.model)
  if (model === undefined)
    return {
      problem: `No model is chosen. Set HQ_MODEL for the provider “${config.provider}”, or choose one for the agent.`,
    }
  if (config.provider === 'anthropic' && config.apiKey === undefined)
    return { problem: 'The provider “anthropic” needs a key: set HQ_MODEL_API_KEY.' }
  return { ...config, model }
}

type FileConfig = { ok: true; value: z.infer<typeof fileFormat>; warning?: string } | { ok: false; message: string }

async function readFileConfig(path: string): Promise<FileConfig> {
  let text: string
  let open: boolean
  try {
    open = ((await stat(path)).mode & 0o077) !== 0
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return { ok: true, value: {} }
    return {
      ok: false,
      message: `models.json cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    }
  }
  let data: unknown
  try {
    data = JSON.parse(text)
  } catch {
    // The parser's message quotes the file, and the file holds a key.
    return { ok: false, message: 'models.json is not JSON; correct it in the gateway’s folder.' }
  }
  const parsed = fileFormat.safeParse(data)
  if (!parsed.success) {
    const where = parsed.error.issues.map((issue) => issue.path.join('.') || '(all of it)').join(', ')
    return { ok: false, message: `models.json has a wrong value at: ${where}` }
  }
  const warning = open ? 'models.json can be read by others on this machine; run: chmod 600 models.json' : undefined
  return { ok: true, value: parsed.data, ...(warning ? { warning } : {}) }
}

const blank = (text: string | undefined): string | undefined =>
  text === undefined || text.trim() === '' ? undefined : text.trim()
