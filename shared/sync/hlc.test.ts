import fc from 'fast-check'
import { expect, test } from 'vitest'
import { clampHlc, compareHlc, hlcToText, textToHlc, tick } from './hlc.ts'

const REPLICA = '0197f000-0000-7000-8000-00000000000a'

test('H1: every tick is later than the last, whatever the machine’s clock says', () => {
  const clocks = fc.array(fc.integer({ min: 0, max: 2 ** 44 }), { minLength: 2, maxLength: 50 })
  fc.assert(
    fc.property(clocks, (nows) => {
      let hlc = { ms: 0, counter: 0 }
      let text = hlcToText(hlc, REPLICA)
      for (const now of nows) {
        hlc = tick(hlc, now)
        const next = hlcToText(hlc, REPLICA)
        expect(compareHlc(text, next)).toBeLessThan(0)
        text = next
      }
    }),
  )
})

test('H1: the counter runs over into the next millisecond', () => {
  expect(tick({ ms: 7, counter: 0xffff }, 3)).toEqual({ ms: 8, counter: 0 })
})

test('H2: text and back', () => {
  expect(textToHlc(hlcToText({ ms: 1_700_000_000_000, counter: 42 }, REPLICA))).toEqual({
    ms: 1_700_000_000_000,
    counter: 42,
    replicaId: REPLICA,
  })
  expect(textToHlc('yesterday')).toBeUndefined()
})

test('H3: a clock too far ahead is clamped to now, one within the drift stays', () => {
  const ahead = hlcToText({ ms: 1_000_000, counter: 3 }, REPLICA)
  expect(textToHlc(clampHlc(ahead, 500_000, 300_000))?.ms).toBe(500_000)
  expect(clampHlc(ahead, 800_000, 300_000)).toBe(ahead)
})
