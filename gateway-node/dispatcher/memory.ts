/**
 * What the dispatcher must remember beside the rows: when a person last did something that lets a stalled agent try again (resumed it, chose another
 * model, gave it new work while it was stalled). Kept in `<home>/dispatcher.json`; a lost or broken file only means that an agent stays stalled longer.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { z } from 'zod'

const format = z.object({ acted: z.record(z.string(), z.number()) })

export interface Memory {
  load(): Promise<void>
  /** Milliseconds since 1970; 0: never. */
  actedAt(agentId: string): number
  acted(agentId: string, now: number): void
  save(): Promise<void>
}

export function createMemory(file: string, onProblem: (message: string) => void): Memory {
  let acted = new Map<string, number>()
  let dirty = false
  return {
    async load() {
      try {
        acted = new Map(Object.entries(format.parse(JSON.parse(await readFile(file, 'utf8'))).acted))
      } catch (error) {
        if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT'))
          onProblem(`${file} cannot be read; it will be written anew.`)
      }
    },
    actedAt: (agentId) => acted.get(agentId) ?? 0,
    acted(agentId, now) {
      acted.set(agentId, now)
      dirty = true
    },
    async save() {
      if (!dirty) return
      dirty = false
      await mkdir(dirname(file), { recursive: true })
      await writeFile(`${file}.new`, JSON.stringify({ acted: Object.fromEntries(acted) }), { mode: 0o600 })
      await rename(`${file}.new`, file)
    },
  }
}
