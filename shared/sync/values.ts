/**
 * How values of a replica reach TypeScript: `timestamptz` an ISO string, `date` as `YYYY-MM-DD`, `numeric` and `bigint` numbers, `jsonb` parsed,
 * `bytea` a Uint8Array (PGlite's own). Adapters pass `PGLITE_PARSERS` to `PGlite.create({ parsers })`.
 *
 * A timestamp keeps its microseconds: three digits when the rest is zero (what `Date` prints), else six. So a value that was read finds its row again.
 */
export const PGLITE_PARSERS: { readonly [oid: number]: (text: string) => unknown } = {
  20: Number,
  1700: Number,
  1082: (text) => text,
  1114: (text) => text,
  1184: timestampToIso,
}

const TIMESTAMP = /^(\d{4,6}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?([+-]\d\d(?::?\d\d)?)$/

/** Postgres' text of a timestamptz to ISO 8601 in UTC; `infinity` and years before Christ stay as they are. */
export function timestampToIso(text: string): string {
  const match = TIMESTAMP.exec(text)
  if (!match) return text
  const [, date = '', time = '', fraction = '', zone = ''] = match
  if (zone === '+00') return `${date}T${time}.${digits(fraction)}Z`
  const offset = zone.length === 3 ? `${zone}:00` : zone
  const seconds = new Date(`${date}T${time}${offset}`).toISOString().slice(0, 19)
  return `${seconds}.${digits(fraction)}Z`
}

const digits = (fraction: string): string => {
  const six = fraction.padEnd(6, '0')
  return six.endsWith('000') ? six.slice(0, 3) : six
}
