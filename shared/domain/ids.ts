/**
 * Ids. Pure: time and randomness are arguments.
 *
 * I1 A row made by somebody has a UUID v7: it sorts by the time it was made.
 * I2 A row computed from a cause has a UUID v5 of that cause, so that two sides computing it make one row (P7).
 */
import { v5 } from 'uuid'

/** HQ's own namespace for derived ids. */
const NAMESPACE = '5b0c9a52-7d0f-5a57-9d5e-3f1c2a8e4b60'

/** The id of a row derived from `cause`, for instance `derivedId('inbox', tenantId, dedupKey)`. */
export const derivedId = (...cause: readonly string[]): string => v5(cause.join('\u001f'), NAMESPACE)

/** `notification_reads.id`: reading twice is one row. */
export const notificationReadId = (notificationId: string, personId: string): string =>
  derivedId('notification_read', notificationId, personId)

/** UUID v7 from a time in milliseconds and ten random bytes. */
export function uuidV7(milliseconds: number, random: Uint8Array): string {
  const time = Math.floor(milliseconds).toString(16).padStart(12, '0')
  const [a = 0, b = 0, c = 0, ...rest] = random
  const hex = (byte: number) => byte.toString(16).padStart(2, '0')
  const tail = rest.slice(0, 7).map(hex).join('').padEnd(14, '0')
  const version = `7${hex(a).slice(1)}${hex(b)}`
  const variant = hex((c & 0x3f) | 0x80)
  return `${time.slice(0, 8)}-${time.slice(8)}-${version}-${variant}${tail.slice(0, 2)}-${tail.slice(2)}`
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
export const isUuid = (text: unknown): text is string => typeof text === 'string' && UUID.test(text)
