/**
 * The two files that say who an agent is, and what is on its way to them. Pure.
 *
 *  P1 While a change waits or is being made, its text is what is shown; then the file is, as soon as the mirror is of that time.
 *  P2 A change that failed keeps its text, so that it can be gone on with from there, upon what is in the file now: the mirror's, or what the gateway met.
 */
import type { Row } from '@hq/shared/schema/tables.ts'

export const PERSONALITY = [
  { path: 'IDENTITY.md', title: 'Identity', about: 'Name, role and manner, as others meet them.' },
  { path: 'SOUL.md', title: 'Soul', about: 'What it holds to, how it decides, what it never does.' },
] as const

export type FileRow = Pick<Row<'agent_files'>, 'id' | 'path' | 'sha' | 'content' | 'updated_at'>
export type WriteRow = Pick<
  Row<'agent_commands'>,
  'id' | 'status' | 'payload' | 'error_message' | 'result' | 'completed_at'
>

export interface FileView {
  /** Undefined: not to be shown as text; null: there is no such file. */
  readonly text: string | null | undefined
  /** What a change begins from; null: a file that is to be new. */
  readonly sha: string | null
  readonly state: 'there' | 'waiting' | 'failed'
  /** Why it failed. */
  readonly reason: string | undefined
  /** Of the change that failed. */
  readonly lost: string | undefined
}

const LIVE: ReadonlySet<WriteRow['status']> = new Set(['pending', 'leased', 'running'])

/** @param last the newest change of the file that was asked for */
export function fileView(file: FileRow | undefined, last: WriteRow | undefined): FileView {
  const there: FileView = {
    text: file ? (file.content ?? undefined) : null,
    sha: file?.sha ?? null,
    state: 'there',
    reason: undefined,
    lost: undefined,
  }
  const text = last?.payload['text']
  if (!last || typeof text !== 'string') return there
  if (LIVE.has(last.status)) return { ...there, text, state: 'waiting' }
  // The mirror's row and the command's come each by itself.
  const isLater =
    file !== undefined && last.completed_at !== null && Date.parse(file.updated_at) > Date.parse(last.completed_at)
  if (last.status === 'done') {
    const behind = !isLater && last.result?.['sha'] !== there.sha && last.payload['sha'] === there.sha
    return behind ? { ...there, text, state: 'waiting' } : there
  }
  if (last.status === 'cancelled') return there
  const failed = {
    ...there,
    state: 'failed',
    reason: last.error_message ?? 'Its gateway gave no reason.',
    lost: text,
  } as const
  // What the agent has changed and not yet committed is not in the mirror; its gateway saw it.
  const conflict = conflictOf(last)
  return conflict && !isLater ? { ...failed, ...conflict } : failed
}

function conflictOf({ result }: WriteRow): Pick<FileView, 'text' | 'sha'> | undefined {
  const conflict = result?.['conflict']
  if (typeof conflict !== 'object' || conflict === null || !('sha' in conflict) || !('text' in conflict))
    return undefined
  const { sha, text } = conflict
  if (sha === null) return { sha, text: null }
  return typeof sha === 'string' ? { sha, text: typeof text === 'string' ? text : undefined } : undefined
}
