import fc from 'fast-check'
import { expect, it } from 'vitest'
import { CUT_NOTICE, createOutputBuffer, PIECE_BYTES, TOTAL_BYTES } from './output.ts'

const bytes = (text: string): number => Buffer.byteLength(text)

it('gives back what was put in, in pieces of at most 4 KiB that end at characters (O1)', () => {
  const text = fc.array(
    fc.tuple(fc.constantFrom('stdout' as const, 'stderr' as const), fc.string({ unit: 'grapheme', maxLength: 6000 })),
  )
  fc.assert(
    fc.property(text, (added) => {
      const buffer = createOutputBuffer()
      for (const [stream, part] of added) buffer.add(stream, part)
      const pieces = buffer.take()
      for (const piece of pieces) {
        expect(bytes(piece.text)).toBeLessThanOrEqual(PIECE_BYTES)
        expect(piece.text.isWellFormed()).toBe(true)
      }
      for (const stream of ['stdout', 'stderr']) {
        const whole = added.filter(([name]) => name === stream).map(([, part]) => part.replaceAll('\0', '\ufffd'))
        expect(
          pieces
            .filter((piece) => piece.stream === stream)
            .map((piece) => piece.text)
            .join(''),
        ).toBe(whole.join(''))
      }
    }),
    { numRuns: 60 },
  )
})

it('keeps 256 KiB, says once that there is more, and then nothing (O2)', () => {
  const buffer = createOutputBuffer()
  let kept = 0
  const notices: string[] = []
  for (let round = 0; round < 20; round++) {
    buffer.add('stdout', '✍️x'.repeat(5000))
    for (const { stream, text } of buffer.take()) {
      if (stream === 'progress') notices.push(text)
      else kept += bytes(text)
    }
  }
  expect(notices).toEqual([CUT_NOTICE])
  expect(kept).toBeLessThanOrEqual(TOTAL_BYTES)
  expect(kept).toBeGreaterThan(TOTAL_BYTES - 4)
})

it('replaces what Postgres cannot hold (O3)', () => {
  const buffer = createOutputBuffer()
  buffer.add('stdout', 'a\0b\ud800c')
  expect(buffer.take()).toEqual([{ stream: 'stdout', text: 'a\ufffdb\ufffdc' }])
})
