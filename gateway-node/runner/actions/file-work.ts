/**
 * What the `file_*` actions have in common: the agent whose files they are, the person who asked, the mirror, and how a conflict is told.
 *
 *  FW1 The author of a commit is the person of `requested_by` by name, or the agent that asked; never a name from the payload.
 *  FW2 A conflict ends the command as `failed` with `result: {conflict: {sha, text}}`: what is there now (null: no such file, or no text that fits).
 *  FW3 A result has at most 256 KiB; what does not fit is left out and said to be (`truncated`).
 *  FW4 Whatever was written, `agent_files` says so before the command is done.
 */
import { z } from 'zod'
import { type Author, agentAuthor, WorkspaceConflict } from '../../workspaces/contract.ts'
import { publishFiles } from '../../workspaces/publish.ts'
import { isNeverCommitted } from '../../workspaces/repository.ts'
import { ActionError, type Agent, type Job } from '../action.ts'

export const MAX_RESULT = 256 * 1024
/** JSON makes text longer: quotes, line ends. */
export const MAX_RESULT_TEXT = 200 * 1024
/** What a command can carry, with room for the rest of its row. */
export const MAX_WRITE = 1024 * 1024

export const filePath = z
  .string()
  .min(1)
  .max(1024)
  .refine((path) => !isNeverCommitted(path), 'names a file that HQ keeps there for itself')
export const commitId = z.string().regex(/^[0-9a-f]{40}$/, 'must be a commit')
export const blobId = z.string().regex(/^[0-9a-f]{40}$/, 'must be the sha that was read')

export async function workspaceOf({ context, agent }: Job): Promise<Agent> {
  if (!agent) throw new ActionError('There is no agent whose files these are.')
  if (await context.workspaces.exists(agent.slug)) return agent
  throw new ActionError(`${agent.name} has no workspace on this gateway. Provision it first.`)
}

/** FW1. */
export async function authorOf({ context: { replica }, command }: Job): Promise<Author> {
  if (command.requested_by_agent_id !== null) {
    const [agent] = await replica.query<{ name: string; slug: string }>('select name, slug from agents where id = $1', [
      command.requested_by_agent_id,
    ])
    if (agent) return agentAuthor(agent)
  }
  const [person] =
    command.requested_by === null
      ? []
      : await replica.query<{ name: string }>('select name from people where id = $1', [command.requested_by])
  // Angle brackets and line ends would break the line in the commit.
  const name = (person?.name ?? '').replaceAll(/[<>\p{Cc}]/gu, ' ').trim()
  return { name: name || 'A person', email: `${command.requested_by ?? 'nobody'}@people.hq.local` }
}

/** FW2. */
export async function tellConflicts<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (!(error instanceof WorkspaceConflict)) throw error
    const { sha, text } = error
    const fits = text !== null && jsonBytes(text) <= MAX_RESULT - 1024
    throw new ActionError(error.message, {
      cause: error,
      result: { conflict: { sha, text: fits ? text : null, ...(text !== null && !fits && { truncated: true }) } },
    })
  }
}

/** FW4. */
export async function publish({ context, step }: Job, agent: Agent): Promise<void> {
  step('publish')
  await publishFiles(context, agent)
}

/** The longest beginning of `text` that fits into a result (FW3). */
export function fitting(text: string): { text: string; truncated: boolean } {
  if (jsonBytes(text) <= MAX_RESULT - 2048) return { text, truncated: false }
  let length = Math.min(text.length, MAX_RESULT_TEXT)
  while (jsonBytes(text.slice(0, length)) > MAX_RESULT - 2048) length = Math.floor(length * 0.8)
  return { text: text.slice(0, length), truncated: true }
}

export const jsonBytes = (value: unknown): number => Buffer.byteLength(JSON.stringify(value))

export const PUBLISH = { key: 'publish', label: 'Publish files' } as const
