/**
 * One token per agent, for this life of the gateway.
 *
 *  K1 A token is 32 random bytes. It stands in `<home>/agent-tokens/<slug>`, readable by the owner only; in memory there are digests. Not in the
 *     worktree: files of a worktree are shown to everybody.
 *  K2 Comparing takes the same time whatever the token is.
 *  K3 A new start makes new tokens; an agent that leaves loses its own at once.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export interface TokenAgent {
  readonly id: string
  readonly slug: string
  readonly name: string
}

export interface Tokens {
  /** Gives each of these agents a token, and takes it from all others. */
  assign(agents: readonly TokenAgent[]): Promise<void>
  /** The agent that a token belongs to. */
  agentOf(token: string): TokenAgent | undefined
  /** The file with the agent's token. */
  file(slug: string): string
  /** Removes all tokens. */
  clear(): Promise<void>
}

const digest = (token: string): Buffer => createHash('sha256').update(token).digest()

export function createTokens(home: string): Tokens {
  const folder = join(home, 'agent-tokens')
  const held = new Map<string, { agent: TokenAgent; digest: Buffer }>()
  const file = (slug: string): string => join(folder, slug)

  return {
    file,
    async assign(agents) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      for (const agent of agents) {
        const known = held.get(agent.id)
        if (known?.agent.slug === agent.slug) {
          held.set(agent.id, { ...known, agent })
          continue
        }
        const token = `hqa_${randomBytes(32).toString('base64url')}`
        await writeFile(`${file(agent.slug)}.new`, token, { mode: 0o600 })
        await rename(`${file(agent.slug)}.new`, file(agent.slug))
        held.set(agent.id, { agent, digest: digest(token) })
      }
      for (const id of held.keys()) if (!agents.some((agent) => agent.id === id)) held.delete(id)
      const slugs = new Set(agents.map((agent) => agent.slug))
      for (const name of await readdir(folder)) if (!slugs.has(name)) await rm(join(folder, name), { force: true })
    },
    agentOf(token) {
      const wanted = digest(token)
      let found: TokenAgent | undefined
      // All are compared, so that the time says nothing about which one it was (K2).
      for (const { agent, digest: known } of held.values()) if (timingSafeEqual(known, wanted)) found = agent
      return found
    },
    async clear() {
      held.clear()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
