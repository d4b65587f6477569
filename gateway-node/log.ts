/**
 * The gateway's log: one JSON object a line on stdout.
 *
 *  1. Fields whose name looks like a secret are masked, and so is every known secret value wherever it stands in a text.
 *  2. Logging never throws, and never stops the program when nobody reads any more.
 */
import type { Log, LogLevel } from './service.ts'

const SECRET_NAME = /token(?!s$|_count$)|secret|password|passwd|authorization|api_?key|cookie|credential/i
const SECRET_TEXT = /\b(?:hqgw|hqreg|hqagent)_[\w-]{8,}|\bBearer\s+[\w.~+/=-]{8,}|\bsk-[\w-]{12,}/g
/** Lease tokens and process tokens are numbers and names of processes, no secrets. */
const NO_SECRET = new Set(['lease_token', 'input_tokens', 'output_tokens', 'processToken'])
const MASK = '[hidden]'
const ORDER: Record<LogLevel, number> = { debug: 0, info: 1, warn: 2, error: 3 }

export interface LogOptions {
  readonly write?: (line: string) => void
  readonly now?: () => number
  /** The lowest level that is written. */
  readonly level?: LogLevel
  /** Values that must never be seen, for instance from the environment. */
  readonly secrets?: readonly string[]
}

/** Whether the value of a field of this name is hidden. */
export const isSecretName = (name: string): boolean => SECRET_NAME.test(name) && !NO_SECRET.has(name)

/** Hides what looks like a key in a text. */
export const maskKeys = (text: string): string => text.replaceAll(SECRET_TEXT, MASK)

/** A log that can also be asked to hide what it knows to be secret. */
export type MaskingLog = Log & { addSecret(value: string): void; maskText(text: string): string }

export function createLog(options: LogOptions = {}): MaskingLog {
  const write = options.write ?? ((line: string) => void process.stdout.write(line))
  const now = options.now ?? Date.now
  const lowest = ORDER[options.level ?? 'info']
  const secrets = new Set((options.secrets ?? []).filter((value) => value.length >= 8))

  const maskText = (text: string): string => {
    let masked = maskKeys(text)
    for (const secret of secrets) masked = masked.replaceAll(secret, MASK)
    return masked
  }

  function clean(value: unknown, depth = 0): unknown {
    if (typeof value === 'string') return maskText(value)
    if (typeof value === 'bigint') return value.toString()
    if (typeof value !== 'object' || value === null) return value
    if (depth > 5) return '…'
    if (value instanceof Error) {
      const { name, message, stack, cause } = value
      const code = 'code' in value ? { code: value.code } : {}
      const because = cause === undefined ? {} : { cause: clean(cause, depth + 1) }
      return { name, message: maskText(message), ...code, stack: maskText(stack ?? ''), ...because }
    }
    if (value instanceof Date) return value.toJSON()
    if (Array.isArray(value)) return value.slice(0, 100).map((item) => clean(item, depth + 1))
    return Object.fromEntries(
      Object.entries(value).map(([name, item]) => [
        name,
        isSecretName(name) && item !== null && item !== undefined ? MASK : clean(item, depth + 1),
      ]),
    )
  }

  const log: Log = (level, message, detail) => {
    if (ORDER[level] < lowest) return
    const head = { time: new Date(now()).toISOString(), level, message: maskText(message) }
    write(`${JSON.stringify({ ...(detail ? (clean(detail) as object) : {}), ...head })}\n`)
  }
  return Object.assign(log, {
    maskText,
    addSecret: (value: string) => {
      if (value.length >= 8) secrets.add(value)
    },
  })
}

/** Values of variables whose names look like secrets. */
export const secretsOf = (env: Readonly<Record<string, string | undefined>>): string[] =>
  Object.entries(env).flatMap(([name, value]) => (value && SECRET_NAME.test(name) ? [value] : []))
