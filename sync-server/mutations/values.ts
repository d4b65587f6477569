/**
 * Values as they travel (`shared/sync/protocol.ts`): whether two mean the same, and whether Postgres can take them at all.
 *
 *  1. Equal means equal to Postgres: `1.0` and `1.00` are one numeric, `…T10:00:00+00:00` and `…T12:00:00+02:00` one time, key order in jsonb is nothing.
 *  2. What no Postgres value can hold (NUL, half a surrogate pair, nesting without end) is refused before it is sent there: inside a
 *     batch it would fail all of it.
 */
import type { SqlType } from '@hq/shared/schema/columns.ts'

/** Types whose values travel as text so that no digit is lost. */
export const TRAVELS_AS_TEXT: ReadonlySet<SqlType> = new Set(['bigint', 'numeric', 'double precision'])

export function sameValue(type: SqlType, a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (a === null || a === undefined || b === null || b === undefined) return (a ?? null) === (b ?? null)
  switch (type) {
    case 'timestamptz':
      return sameTime(String(a), String(b))
    case 'integer':
    case 'bigint':
    case 'numeric':
    case 'double precision':
      return canonicalNumber(String(a)) === canonicalNumber(String(b))
    case 'uuid':
    case 'bytea':
      return String(a).toLowerCase() === String(b).toLowerCase()
    case 'jsonb':
    case 'text[]':
      return sameJson(a, b)
    default:
      return false
  }
}

function sameTime(a: string, b: string): boolean {
  const [first, second] = [Date.parse(a.replace(' ', 'T')), Date.parse(b.replace(' ', 'T'))]
  if (Number.isNaN(first) || Number.isNaN(second)) return a === b
  return first === second && microseconds(a) === microseconds(b)
}

/** The digits below a millisecond, which `Date` loses. */
const microseconds = (time: string): string => (/\.(\d+)/.exec(time)?.[1] ?? '').padEnd(6, '0').slice(3, 6)

/** A microsecond after the later of two times; undefined when one of them is none. */
export function laterTime(a: string, b: string): string | undefined {
  const [first, second] = [a, b].map((time) => {
    const ms = Date.parse(time.replace(' ', 'T'))
    return Number.isNaN(ms) ? undefined : BigInt(ms) * 1000n + BigInt(microseconds(time))
  })
  if (first === undefined || second === undefined) return undefined
  let after = first + 1n
  if (second > first) after = second + 1n
  const ms = new Date(Number(after / 1000n)).toISOString()
  return `${ms.slice(0, -1)}${String(after % 1000n).padStart(3, '0')}Z`
}

function canonicalNumber(text: string): string {
  const match = /^([+-]?)0*(\d+)(?:\.(\d+))?$/.exec(text.trim())
  if (!match) return String(Number(text)) // with an exponent, or not finite
  const fraction = (match[3] ?? '').replace(/0+$/, '')
  const digits = fraction ? `${match[2]}.${fraction}` : (match[2] ?? '')
  return match[1] === '-' && digits !== '0' ? `-${digits}` : digits
}

function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false
  if (Array.isArray(a) || Array.isArray(b)) {
    return (
      Array.isArray(a) &&
      Array.isArray(b) &&
      a.length === b.length &&
      a.every((value, index) => sameJson(value, b[index]))
    )
  }
  const keys = Object.keys(a)
  if (keys.length !== Object.keys(b).length) return false
  return keys.every(
    (key) =>
      Object.hasOwn(b, key) && sameJson((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]),
  )
}

const MAX_DEPTH = 60

/** What makes a JSON value impossible to store, in words; undefined when nothing does. */
export function unstorable(value: unknown, depth = 0): string | undefined {
  if (typeof value === 'string') {
    if (value.includes('\0')) return 'it holds a NUL character'
    return value.isWellFormed() ? undefined : 'it holds half a surrogate pair'
  }
  if (typeof value !== 'object' || value === null) return undefined
  if (depth >= MAX_DEPTH) return `it is nested more than ${MAX_DEPTH} levels deep`
  for (const [key, part] of Object.entries(value)) {
    const problem = unstorable(key) ?? unstorable(part, depth + 1)
    if (problem) return problem
  }
  return undefined
}
