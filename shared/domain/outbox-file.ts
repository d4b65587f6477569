/**
 * The file with everything that waits on a device: for the day when it cannot be sent from there (revoked, signed out for good, a broken disk).
 *
 * JSON lines. The first says what this is, for a person who opens it and for the import; each of the others is one change of `sync.entries`,
 * as `importOutbox` takes it.
 *
 * O1 What `outboxFile` wrote, `readOutboxFile` reads, every change once and in order.
 * O2 A file of another workspace, of a newer version, cut short or not of HQ at all is refused whole, with what is wrong with it.
 */

export interface OutboxFileHead {
  readonly tenantId: string
  readonly workspace: string
  readonly person: string
  readonly device: string
  /** ISO time. */
  readonly at: string
}

const VERSION = 1

export function outboxFile(head: OutboxFileHead, lines: readonly string[]): string {
  const count = lines.length === 1 ? '1 change' : `${lines.length} changes`
  const first = {
    hq_outbox: VERSION,
    about: `${count} of ${head.person} in the workspace ${head.workspace} that had not reached the server. To bring them back: open HQ, Sync, “Import a file”.`,
    changes: lines.length,
    workspace: head.workspace,
    tenant_id: head.tenantId,
    person: head.person,
    device: head.device,
    exported_at: head.at,
  }
  return `${[JSON.stringify(first), ...lines].join('\n')}\n`
}

/** `hq-acme-waiting-2026-12-01.jsonl` */
export const outboxFileName = ({ workspace, at }: OutboxFileHead): string => {
  const slug = workspace
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^-|-$/g, '')
  return `hq-${slug || 'workspace'}-waiting-${at.slice(0, 10)}.jsonl`
}

export type OutboxFileRead =
  | {
      readonly ok: true
      readonly lines: readonly string[]
      readonly person: string
      readonly device: string
      readonly at: string
    }
  | { readonly ok: false; readonly message: string }

const refuse = (message: string): OutboxFileRead => ({ ok: false, message })

export function readOutboxFile(text: string, tenantId: string): OutboxFileRead {
  const [first, ...rest] = text.split('\n').filter((line) => line.trim() !== '')
  const head = first === undefined ? undefined : objectIn(first)
  if (!head || typeof head['hq_outbox'] !== 'number')
    return refuse('This is not a file of changes that HQ has exported. Its first line should say “hq_outbox”.')
  if (head['hq_outbox'] > VERSION) return refuse('A newer version of HQ wrote this file. Reload HQ, then try again.')
  if (head['tenant_id'] !== tenantId)
    return refuse(`This file belongs to another workspace (${String(head['workspace'])}). Import it there.`)
  for (const [index, line] of rest.entries()) {
    const entry = objectIn(line)
    const sound =
      entry &&
      typeof entry['mutation_id'] === 'string' &&
      Array.isArray(entry['patches']) &&
      entry['patches'].length > 0
    if (!sound) return refuse(`Line ${index + 2} of this file is damaged; nothing of it was imported.`)
  }
  if (rest.length !== head['changes'])
    return refuse(
      `This file should have ${String(head['changes'])} changes and has ${rest.length}: it was cut short. Nothing was imported.`,
    )
  const word = (key: string): string => (typeof head[key] === 'string' ? head[key] : '')
  return { ok: true, lines: rest, person: word('person'), device: word('device'), at: word('exported_at') }
}

function objectIn(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined // not JSON; the caller says which line
  }
}
