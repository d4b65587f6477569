/**
 * Columns that are merged by their differences, as both sides compute them: the server when it merges, a replica when it shows a pending change over
 * what the server has by now (there in SQL: `sync.by_difference`).
 *
 * D1 `increment`: present + (next − base), to the last digit. Nothing counts as 0.
 * D2 `add_remove`: what was added is added and what was removed is removed: present ∪ (next − base) ∖ (base − next). What is there keeps its order, what is
 *    new follows in its own.
 * D3 A base equal to the present value gives `next` itself, its order included.
 * D4 Doing `add_remove` twice is doing it once. `increment` is no such thing: it counts each time.
 * D5 An insert has no base. Over a row that is there it adds its elements to a set, and leaves a sum alone, which has counted it already.
 */
import type { MergeRule } from './columns.ts'

export type DifferenceRule = 'increment' | 'add_remove'

export const isDifferenceRule = (rule: MergeRule | undefined): rule is DifferenceRule =>
  rule === 'increment' || rule === 'add_remove'

export const addDifference = (rule: DifferenceRule, present: unknown, base: unknown, next: unknown): unknown =>
  rule === 'increment' ? sum(present, base, next) : addAndRemove(present, base, next)

/** D5 */
export const insertOver = (rule: DifferenceRule, present: unknown, next: unknown): unknown =>
  rule === 'increment' ? (present ?? next) : addAndRemove(present, [], next)

/** One value in two forms: a number and its text, an array and what Postgres prints for it. */
export const sameDifference = (rule: DifferenceRule, a: unknown, b: unknown): boolean => {
  if (a === null || b === null) return a === b
  if (rule === 'increment') return /^-?[0.]+$/.test(sum(a, b, 0))
  return JSON.stringify(elements(a)) === JSON.stringify(elements(b))
}

const NUMBER = /^[+-]?\d{1,1000}(\.\d{1,1000})?([eE][+-]?\d{1,3})?$/
const DECIMAL = /^([+-]?\d+)(?:\.(\d+))?$/

/** As text, like all numbers that must keep their digits. */
function sum(present: unknown, base: unknown, next: unknown): string {
  const texts = [present, base, next].map((value) => String(value ?? 0).trim())
  const parts = texts.map((text) => DECIMAL.exec(text))
  const [p, b, n] = texts.map(Number)
  // With an exponent, or not finite: what floating point makes of it.
  if (parts.includes(null)) return String((p ?? 0) + (n ?? 0) - (b ?? 0))
  const scale = Math.max(...parts.map((part) => part?.[2]?.length ?? 0))
  const [presentDigits, baseDigits, nextDigits] = parts.map((part) =>
    BigInt(`${part?.[1]}${(part?.[2] ?? '').padEnd(scale, '0')}`),
  )
  const total = (presentDigits ?? 0n) + (nextDigits ?? 0n) - (baseDigits ?? 0n)
  if (scale === 0) return String(total)
  const digits = String(total < 0n ? -total : total).padStart(scale + 1, '0')
  return `${total < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`
}

/** By sets: what a stranger sends may be long. */
function addAndRemove(present: unknown, base: unknown, next: unknown): unknown[] {
  const [is, was, wanted] = [elements(present), elements(base), elements(next)]
  if (is.length === was.length && is.every((element, index) => element === was[index])) return [...wanted] // D3
  const [here, before, after] = [new Set(is), new Set(was), new Set(wanted)]
  const kept = is.filter((element) => !before.has(element) || after.has(element))
  const added = [...after].filter((element) => !before.has(element) && !here.has(element))
  return [...kept, ...added]
}

/** Whether a value that somebody sent can be counted with at all; nothing at all can. */
export const hasDifference = (rule: DifferenceRule, value: unknown): boolean => {
  if (value === null || value === undefined) return true
  if (rule === 'increment') return typeof value === 'number' || (typeof value === 'string' && NUMBER.test(value))
  return Array.isArray(value) && value.every((element) => element === null || typeof element === 'string')
}

const elements = (value: unknown): readonly unknown[] => {
  if (Array.isArray(value)) return value
  return typeof value === 'string' ? parseTextArray(value) : []
}

/** Postgres' text of a `text[]`: `{a,"b c",NULL}`. */
export function parseTextArray(text: string): (string | null)[] {
  const found: (string | null)[] = []
  const element = /"((?:[^"\\]|\\.)*)"|((?:[^",{}\\]|\\.)+)/gs
  for (const [, quoted, bare] of text.slice(1, -1).matchAll(element)) {
    if (quoted === undefined && bare?.toLowerCase() === 'null') found.push(null)
    else found.push((quoted ?? bare ?? '').replace(/\\(.)/gs, '$1'))
  }
  return found
}
