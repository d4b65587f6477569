/** Ids of new rows: UUID v7, so that rows made later sort later. Ids made within one millisecond keep their order. */

let lastMs = 0
let counter = 0

/** A UUID v7 of `now` (milliseconds since 1970). */
export function newId(now = Date.now()): string {
  if (now > lastMs) {
    lastMs = now
    counter = 0
  } else {
    counter += 1
    // 12 bits of counter; when they run out, borrow from the clock.
    if (counter > 0xfff) {
      lastMs += 1
      counter = 0
    }
  }
  const random = crypto.getRandomValues(new Uint8Array(8))
  random[0] = ((random[0] ?? 0) & 0x3f) | 0x80
  const time = lastMs.toString(16).padStart(12, '0')
  const tail = Array.from(random, (byte) => byte.toString(16).padStart(2, '0')).join('')
  return `${time.slice(0, 8)}-${time.slice(8)}-7${counter.toString(16).padStart(3, '0')}-${tail.slice(0, 4)}-${tail.slice(4)}`
}
