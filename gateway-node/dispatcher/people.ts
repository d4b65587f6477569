/**
 * What people do to let a stalled agent try again: they resume it, choose another model or runtime, send it a command, or give it new work.
 *
 * Commands and work are rows with a time. The rest is noticed by comparing an agent with how the last pass saw it, and remembered in
 * `<home>/dispatcher.json`; when that file is lost or broken, an agent merely stays stalled until somebody acts once more.
 *
 *  A1 Nobody has acted in the future: a time ahead of this gateway's clock (a device that is ahead, a clock that was put back) counts as the moment at which it was
 *     first seen. Otherwise failures would not count until then, and a failing agent would neither rest nor give up.
 */
import { readFile, rename, writeFile } from 'node:fs/promises'
import { z } from 'zod'
import type { Item, Snapshot } from './store.ts'

const format = z.object({ acted: z.record(z.string(), z.number()) })

export interface People {
  load(): Promise<void>
  /** Compares with the last snapshot, and remembers what people did since. */
  notice(rows: Snapshot, now: number): Promise<void>
  /** When a person last acted on the agent, in milliseconds since 1970; 0: never. */
  actedAt(rows: Snapshot, agentId: string, now: number): number
}

interface Seen {
  readonly paused: boolean
  readonly model: string | null
  readonly runtime: string
  readonly items: ReadonlySet<string>
}

export function createPeople(file: string, onProblem: (message: string) => void): People {
  let acted = new Map<string, number>()
  const seen = new Map<string, Seen>()
  /** By agent: a time of its rows that was ahead when it was first seen (A1). */
  const ahead = new Map<string, number>()

  return {
    async load() {
      try {
        acted = new Map(Object.entries(format.parse(JSON.parse(await readFile(file, 'utf8'))).acted))
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return
        onProblem(`${file} cannot be read; it will be written anew.`)
      }
    },

    async notice(rows, now) {
      let changed = false
      for (const agent of rows.agents) {
        const before = seen.get(agent.id)
        const items = rows.items.filter((item) => item.agent_id === agent.id)
        const after = {
          paused: agent.pause_requested_at !== null,
          model: agent.model,
          runtime: agent.runtime,
          items: new Set(items.map((item) => item.id)),
        }
        seen.set(agent.id, after)
        const asked = rows.asked.get(agent.id) ?? 0
        const isAhead = asked > now && ahead.get(agent.id) !== asked
        if (isAhead) ahead.set(agent.id, asked)
        if (isAhead || (acted.get(agent.id) ?? 0) > now) {
          acted.set(agent.id, now)
          changed = true
        }
        if (!before) continue
        const resumed = before.paused && !after.paused
        const other = before.model !== after.model || before.runtime !== after.runtime
        if (!resumed && !other && !items.some((item) => isNewFromPerson(item) && !before.items.has(item.id))) continue
        acted.set(agent.id, now)
        changed = true
      }
      if (!changed) return
      await writeFile(`${file}.new`, JSON.stringify({ acted: Object.fromEntries(acted) }), { mode: 0o600 })
      await rename(`${file}.new`, file)
    },

    actedAt(rows, agentId, now) {
      const asked = rows.asked.get(agentId) ?? 0
      return Math.max(acted.get(agentId) ?? 0, asked > now || asked === ahead.get(agentId) ? 0 : asked)
    },
  }
}

/** Never leased yet, and a person is behind it. */
const isNewFromPerson = (item: Item): boolean =>
  item.lease_token === 0 &&
  (item.context['actor_type'] ?? 'human') === 'human' &&
  item.event_type !== 'blocker_resolved'
