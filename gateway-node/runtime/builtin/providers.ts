/** From a `ModelConfig` to a model of the AI SDK, and the models that a provider offers. */
import { createAnthropic } from '@ai-sdk/anthropic'
import { createOpenAICompatible } from '@ai-sdk/openai-compatible'
import type { LanguageModel } from 'ai'
import { createOllama } from 'ollama-ai-provider-v2'
import { z } from 'zod'
import type { ModelInfo } from '../../service.ts'
import type { ModelConfig } from './config.ts'
import { describeError } from './errors.ts'

/** Time a provider has to list its models, in ms (seed 003: a server that hangs must not hang the gateway). */
export const LIST_TIMEOUT_MS = 5_000

/** Not for `demo`, which is made per run. */
export function languageModel(config: ModelConfig): LanguageModel {
  const model = config.model ?? ''
  const base = config.baseUrl ?? ''
  const key = config.apiKey
  switch (config.provider) {
    case 'anthropic':
      return createAnthropic({ baseURL: base, ...(config.bearer ? { authToken: key ?? '' } : { apiKey: key ?? '' }) })(
        model,
      )
    case 'ollama':
      return createOllama({
        baseURL: base,
        compatibility: 'strict',
        ...(key ? { headers: { authorization: `Bearer ${key}` } } : {}),
      })(model)
    case 'openai':
    case 'demo':
      return createOpenAICompatible({
        name: 'openai',
        baseURL: base,
        includeUsage: true,
        ...(key ? { apiKey: key } : {}),
      })(model)
  }
}

const openAiList = z.object({ data: z.array(z.object({ id: z.string() })) })
const ollamaList = z.object({ models: z.array(z.object({ name: z.string() })) })

export type Listing =
  | { readonly ok: true; readonly models: readonly ModelInfo[] }
  | { readonly ok: false; readonly message: string }

/** What the provider offers. A provider that doesn't answer is a sentence, not an exception. */
export async function listModels(
  config: ModelConfig,
  signal?: AbortSignal,
  timeoutMs = LIST_TIMEOUT_MS,
): Promise<Listing> {
  const { provider, baseUrl, apiKey } = config
  if (provider === 'demo') return { ok: true, models: [{ provider: 'demo', model: 'demo', demo: true }] }
  const limit = AbortSignal.timeout(timeoutMs)
  const headers: Record<string, string> = { accept: 'application/json' }
  if (apiKey !== undefined && provider === 'anthropic' && !config.bearer) headers['x-api-key'] = apiKey
  else if (apiKey !== undefined) headers['authorization'] = `Bearer ${apiKey}`
  if (provider === 'anthropic') headers['anthropic-version'] = '2023-06-01'
  try {
    const response = await fetch(`${baseUrl}${provider === 'ollama' ? '/tags' : '/models'}`, {
      headers,
      redirect: 'error',
      signal: signal ? AbortSignal.any([signal, limit]) : limit,
    })
    if (!response.ok) return { ok: false, message: `The list of models was refused with status ${response.status}.` }
    const body: unknown = await response.json()
    const names =
      provider === 'ollama'
        ? ollamaList.parse(body).models.map(({ name }) => name)
        : openAiList.parse(body).data.map(({ id }) => id)
    return { ok: true, models: names.slice(0, 500).map((model) => ({ provider, model, demo: false })) }
  } catch (error) {
    if (error instanceof z.ZodError) return { ok: false, message: 'The list of models cannot be understood.' }
    return { ok: false, message: describeError(error, config).message }
  }
}
