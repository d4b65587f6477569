/**
 * The output of one command, cut into rows. Pure.
 *
 *  O1 A piece is at most 4 KiB of UTF-8 and never ends within a character.
 *  O2 All pieces of a command together hold at most 256 KiB; then one notice, then nothing more.
 *  O3 What Postgres can't hold in a text (NUL, half a surrogate pair) is replaced.
 */
import type { Enum } from '@hq/shared/schema/enums.ts'

export type Stream = Enum<'output_stream'>

export interface Piece {
  readonly stream: Stream
  readonly text: string
}

export const PIECE_BYTES = 4096
export const TOTAL_BYTES = 256 * 1024
export const CUT_NOTICE = 'There is more output than the 256 KiB that are kept; the rest is left out.\n'

export interface OutputBuffer {
  add(stream: Stream, text: string): void
  /** What came since the last call; neighbours of one stream are joined. */
  take(): Piece[]
}

/** `spent`: bytes that earlier attempts of the command have already used. */
export function createOutputBuffer(spent = 0): OutputBuffer {
  let total = spent
  let cut = spent >= TOTAL_BYTES
  let waiting: { stream: Stream; text: string }[] = []

  function keep(stream: Stream, text: string): void {
    const last = waiting.at(-1)
    if (last?.stream === stream) last.text += text
    else waiting.push({ stream, text })
  }

  return {
    add: (stream, raw) => {
      if (cut || raw === '') return
      const text = raw.toWellFormed().replaceAll('\0', '\ufffd')
      const room = TOTAL_BYTES - total
      const kept = firstBytes(text, room)
      total += Buffer.byteLength(kept)
      keep(stream, kept)
      if (kept.length === text.length) return
      cut = true
      keep('progress', CUT_NOTICE)
    },
    take: () => {
      const pieces = waiting.flatMap(({ stream, text }) => split(text).map((part) => ({ stream, text: part })))
      waiting = []
      return pieces
    },
  }
}

/** O1. */
function split(text: string): string[] {
  const parts: string[] = []
  for (let rest = text; rest !== ''; ) {
    const part = firstBytes(rest, PIECE_BYTES)
    parts.push(part)
    rest = rest.slice(part.length)
  }
  return parts
}

/** The longest beginning of `text` that takes at most `limit` bytes and ends at a character's end. */
function firstBytes(text: string, limit: number): string {
  if (text.length * 3 <= limit || Buffer.byteLength(text) <= limit) return text
  const { read } = new TextEncoder().encodeInto(text, new Uint8Array(Math.max(0, limit)))
  return text.slice(0, read)
}
