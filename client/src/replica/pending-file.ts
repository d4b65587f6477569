/**
 * Everything that waits on this device as a file, and back. Works offline, revoked and signed out, because it only reads what is here: the
 * database's outbox and what was rescued from a former one; when the database does not answer, the copies beside it (device.ts).
 */
import {
  type OutboxFileHead,
  type OutboxFileRead,
  outboxFile,
  outboxFileName,
  readOutboxFile,
} from '@hq/shared/domain/outbox-file.ts'
import type { ReplicaConnection } from './connection.ts'
import { databaseName } from './database-files.ts'
import { openDevice } from './device.ts'
import { deviceLabel } from './device-label.ts'
import type { DatabaseIdentity, ImportedChanges } from './messages.ts'

export interface PendingFile {
  readonly name: string
  readonly text: string
  readonly changes: number
  /** The database did not answer; these are the copies, which may lack the last quarter of a second. */
  readonly fromCopies: boolean
}

const LINES = 'select to_jsonb(e)::text as line from sync.entries e order by e.seq'

export async function pendingFile(
  identity: DatabaseIdentity,
  who: { readonly workspace: string; readonly person: string },
  connection?: ReplicaConnection,
): Promise<PendingFile> {
  const device = await openDevice()
  const name = databaseName(identity)
  const rescued = linesOf((await device.rescued(name))?.lines)
  const asked = await connection?.query<{ line: string }>(LINES).then(
    (rows) => rows.map((row) => row.line),
    (error: unknown) => {
      console.warn('The database does not answer; the copies of what waits are exported.', error)
      return undefined
    },
  )
  const lines = [...rescued, ...(asked ?? linesOf(await device.copies(name)))]
  const head: OutboxFileHead = {
    tenantId: identity.tenantId,
    workspace: who.workspace,
    person: who.person,
    device: deviceLabel(navigator.userAgent),
    at: new Date().toISOString(),
  }
  return {
    name: outboxFileName(head),
    text: outboxFile(head, lines),
    changes: lines.length,
    fromCopies: asked === undefined,
  }
}

/** Hands the file to the browser, which puts it where downloads go. */
export function download({ name, text }: PendingFile): void {
  const address = URL.createObjectURL(new Blob([text], { type: 'application/jsonl' }))
  const link = document.createElement('a')
  link.href = address
  link.download = name
  document.body.append(link)
  link.click()
  link.remove()
  // The download has its own hold on the bytes once it has begun.
  setTimeout(() => URL.revokeObjectURL(address), 60_000)
}

export type ImportResult =
  | { readonly ok: true; readonly result: ImportedChanges; readonly read: Extract<OutboxFileRead, { ok: true }> }
  | { readonly ok: false; readonly message: string }

export async function importPendingFile(connection: ReplicaConnection, text: string): Promise<ImportResult> {
  const read = readOutboxFile(text, connection.identity.tenantId)
  if (!read.ok) return read
  return { ok: true, result: await connection.importChanges(read.lines), read }
}

const linesOf = (text: string | undefined): string[] => (text ?? '').split('\n').filter((line) => line.trim() !== '')
