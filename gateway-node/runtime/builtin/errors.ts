/**
 * What went wrong with a model call, in one plain sentence and a code. The sentence never holds a key, and at most a short piece of what the provider said.
 */
import type { FailureCode } from '@hq/shared/domain/runs.ts'
import {
  APICallError,
  InvalidResponseDataError,
  JSONParseError,
  LoadAPIKeyError,
  NoOutputGeneratedError,
  NoSuchModelError,
  RetryError,
  TypeValidationError,
} from 'ai'
import type { ModelConfig } from './config.ts'

export interface Failure {
  readonly code: FailureCode
  readonly message: string
  /** How long the provider asks to be left alone, in ms. */
  readonly retryAfterMs?: number
}

export function describeError(error: unknown, config: ModelConfig): Failure {
  const failure = classify(error, config)
  const retryAfterMs = retryAfterOf(error, Date.now())
  return {
    ...failure,
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    message: withoutSecret(failure.message, config.apiKey),
  }
}

/** Of `retry-after-ms` or `retry-after` (seconds or a date); undefined: nothing that can be understood. Exported for its test. */
export function retryAfterOf(thrown: unknown, now: number): number | undefined {
  const error = RetryError.isInstance(thrown) ? thrown.lastError : thrown
  if (!APICallError.isInstance(error)) return undefined
  const headers = error.responseHeaders ?? {}
  const ms = Number(headers['retry-after-ms'] ?? Number.NaN)
  if (Number.isFinite(ms) && ms >= 0) return ms
  const text = headers['retry-after']?.trim()
  if (!text) return undefined
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text) * 1000
  const at = Date.parse(text)
  return Number.isNaN(at) ? undefined : Math.max(0, at - now)
}

function classify(thrown: unknown, config: ModelConfig): Failure {
  const error = RetryError.isInstance(thrown) ? thrown.lastError : thrown
  const who = providerName(config)
  if (APICallError.isInstance(error)) {
    if (error.statusCode === undefined || (error.statusCode >= 200 && error.statusCode < 300))
      return fromCause(error.cause ?? error, who)
    return fromStatus(error.statusCode, said(error), config, who)
  }
  if (LoadAPIKeyError.isInstance(error))
    return { code: 'not_configured', message: `${who} needs a key: set HQ_MODEL_API_KEY.` }
  if (NoSuchModelError.isInstance(error)) return missingModel(config, who)
  if (
    JSONParseError.isInstance(error) ||
    TypeValidationError.isInstance(error) ||
    InvalidResponseDataError.isInstance(error) ||
    NoOutputGeneratedError.isInstance(error)
  ) {
    return { code: 'bad_stream', message: `${who} sent an answer that cannot be understood.` }
  }
  const inStream = errorInStream(error)
  if (inStream) return fromStream(inStream, config, who)
  return fromCause(error, who)
}

function fromStatus(status: number, detail: string, config: ModelConfig, who: string): Failure {
  const tail = detail === '' ? '.' : `: ${detail}`
  if (status === 401) return { code: 'unauthorized', message: `${who} refused the key (401). Check HQ_MODEL_API_KEY.` }
  if (status === 403) return { code: 'forbidden', message: `${who} does not allow this (403)${tail}` }
  if (status === 404) return missingModel(config, who)
  if (status === 408) return { code: 'timeout', message: `${who} took too long (408).` }
  if (status === 429 && /quota|billing|credit/i.test(detail))
    return { code: 'forbidden', message: `The account at ${who} has no credit left (429)${tail}` }
  if (status === 429)
    return { code: 'rate_limited', message: `${who} is asked too often (429); the work goes on after a rest.` }
  if (status >= 500) return { code: 'provider_down', message: `${who} has a problem of its own (${status})${tail}` }
  if (/context.{0,20}(length|window)|too many tokens|prompt is too long|maximum context/i.test(detail)) {
    return { code: 'context_full', message: `The conversation is too long for the model “${config.model}”.` }
  }
  return { code: 'bad_request', message: `${who} refused the request (${status})${tail}` }
}

/** Errors that a provider reports within a stream that began well. */
function fromStream({ type, message }: { type: string; message: string }, config: ModelConfig, who: string): Failure {
  if (/overloaded|server_error|api_error|unavailable/i.test(type))
    return { code: 'provider_down', message: `${who} broke off: ${message}` }
  if (/rate/i.test(type)) return fromStatus(429, message, config, who)
  if (/auth/i.test(type)) return fromStatus(401, message, config, who)
  return { code: 'bad_request', message: `${who} broke off: ${message}` }
}

function fromCause(error: unknown, who: string): Failure {
  const chain: string[] = []
  for (let at: unknown = error, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    chain.push(at.name, at.message, 'code' in at ? String(at.code) : '')
  }
  const text = chain.join(' ')
  if (/TimeoutError|UND_ERR_(HEADERS|BODY)_TIMEOUT|timed? ?out/i.test(text))
    return { code: 'timeout', message: `${who} did not answer in time.` }
  if (/ECONNREFUSED/.test(text))
    return { code: 'unreachable', message: `${who} cannot be reached: the connection was refused.` }
  if (/ENOTFOUND|EAI_AGAIN/.test(text))
    return { code: 'unreachable', message: `${who} cannot be reached: its name was not found (is the network down?).` }
  if (/CERT|SSL|TLS/.test(text))
    return { code: 'not_configured', message: `${who} has a certificate that this machine does not trust.` }
  if (/terminated|ECONNRESET|UND_ERR_SOCKET|other side closed|socket|premature|aborted/i.test(text)) {
    return { code: 'unreachable', message: `The connection to ${who} was cut in the middle of an answer.` }
  }
  if (/fetch failed|Cannot connect|EHOSTUNREACH|ENETUNREACH/i.test(text))
    return { code: 'unreachable', message: `${who} cannot be reached.` }
  if (/JSON|parse|unexpected token/i.test(text))
    return { code: 'bad_stream', message: `${who} sent an answer that cannot be understood.` }
  return {
    code: 'internal',
    message: `The call to ${who} failed: ${short(error instanceof Error ? error.message : String(error))}`,
  }
}

const missingModel = (config: ModelConfig, who: string): Failure => ({
  code: 'model_missing',
  message: `${who} has no model “${config.model}” (404). Choose another one, or check HQ_MODEL_BASE_URL.`,
})

/** `{type, message}` objects, as OpenAI and Anthropic put them into their streams, however the library wraps them. */
function errorInStream(error: unknown): { type: string; message: string } | undefined {
  if (typeof error === 'string') return { type: '', message: short(error) }
  if (typeof error !== 'object' || error === null) return undefined
  if ('error' in error && !(error instanceof TypeError)) return errorInStream(error.error)
  if ('data' in error && error instanceof Error) return errorInStream(error.data)
  if (error instanceof Error || !('message' in error) || typeof error.message !== 'string') return undefined
  return { type: 'type' in error ? String(error.type) : '', message: short(error.message) }
}

function said(error: APICallError): string {
  try {
    const body: unknown = JSON.parse(error.responseBody ?? '')
    return errorInStream(body)?.message ?? ''
  } catch {
    return short(error.responseBody ?? '') // not JSON: a proxy's page; its first words must do
  }
}

export function providerName({ provider, baseUrl }: ModelConfig): string {
  const host = baseUrl && URL.canParse(baseUrl) ? new URL(baseUrl).host : undefined
  const name = { openai: 'The model provider', anthropic: 'Anthropic', ollama: 'Ollama', demo: 'The demo model' }[
    provider
  ]
  return host ? `${name} (${host})` : name
}

const short = (text: string): string => {
  const line = text
    .replaceAll(/<[^>]*>/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
  return line.length > 160 ? `${line.slice(0, 160)}…` : line
}

/** Keys never leave, whole or in the forms in which providers echo them (`sk-…abcd`). */
export function withoutSecret(text: string, secret: string | undefined): string {
  const plain = secret === undefined || secret.length < 4 ? text : text.replaceAll(secret, '•••')
  return plain.replaceAll(/\b(sk|key|pk|xai|gsk)-[A-Za-z0-9_*-]{6,}/g, '•••')
}
