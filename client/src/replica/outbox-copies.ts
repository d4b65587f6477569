/**
 * Keeps a copy of each waiting change outside the database (device.ts), a moment after it was made. The database itself is
 * durable; the copy is for the day when it can no longer be read.
 */
import type { PGlite } from '@electric-sql/pglite'
import type { SafetyCopy } from '@hq/shared/sync/replica.ts'
import type { Device } from './device.ts'

const DELAY_MS = 250

export class OutboxCopies implements SafetyCopy {
  readonly #device: Device
  readonly #name: string
  readonly #db: PGlite
  #lines: string[] = []
  #timer: ReturnType<typeof setTimeout> | undefined
  #again = false
  /** What the last round took: with a long outbox, rounds are rarer. */
  #tookMs = 0

  constructor(device: Device, name: string, db: PGlite) {
    this.#device = device
    this.#name = name
    this.#db = db
  }

  written(line: string): void {
    this.#lines.push(line)
    this.#schedule()
  }

  /** What is settled goes with the next round. */
  drained(): void {
    this.#schedule()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #schedule(): void {
    this.#again = true
    this.#timer ??= setTimeout(() => void this.#round(), DELAY_MS + 10 * this.#tookMs)
  }

  async #round(): Promise<void> {
    const started = performance.now()
    this.#again = false
    const added = new Map(this.#lines.map((line) => [mutationIdOf(line), line]))
    this.#lines = []
    try {
      const { rows } = await this.#db.query<{ mutation_id: string }>('select mutation_id from sync.outbox')
      await this.#device.keepCopies(this.#name, added, new Set(rows.map((row) => row.mutation_id)))
    } catch (error) {
      console.warn('The safety copy of waiting changes could not be written; the changes themselves are safe.', error)
    }
    this.#tookMs = performance.now() - started
    this.#timer = undefined
    if (this.#again) this.#schedule()
  }
}

/** From a line of the outbox's export format. */
export const mutationIdOf = (line: string): string => (JSON.parse(line) as { mutation_id: string }).mutation_id
