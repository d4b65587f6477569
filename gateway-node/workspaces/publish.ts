/**
 * Mirrors the files of an agent's newest commit into `agent_files`, so that they can be read in every browser, offline too.
 *
 *  M1 Only what changed is written (blob id against blob id); the id of a row comes from agent and path, so that a file that comes back is the same row.
 *  M2 `content` is text of at most 64 KiB, else null. At most 2,000 files, 8 MiB of content in all; beyond that content is null, then rows are missing, and it is
 *     said (`truncated`).
 *  M3 A transaction carries at most 256 KiB, far below what one mutation may hold.
 *  M4 Only rows of this gateway are touched.
 *  M5 One at a time: two mirrors of one agent would make the same row twice.
 */
import { derivedId } from '@hq/shared/domain/ids.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Tx } from '@hq/shared/sync/contract.ts'
import type { GatewayContext } from '../service.ts'
import { asText } from './files.ts'
import { createMutex } from './mutex.ts'

export const MAX_CONTENT = 64 * 1024
const MAX_TOTAL = 8 * 1024 * 1024
const MAX_FILES = 2_000
const BATCH_BYTES = 256 * 1024
const BATCH_ROWS = 500

export interface Published {
  /** Files of the commit. */
  readonly total: number
  readonly changed: number
  readonly removed: number
  readonly truncated: boolean
}

type Context = Pick<GatewayContext, 'replica' | 'workspaces' | 'gatewayId' | 'tenantId' | 'now'>
type Known = Pick<Row<'agent_files'>, 'id' | 'path' | 'sha' | 'size' | 'deleted_at'> & { bytes: number }

export const publishFiles = (
  context: Context,
  agent: { readonly id: string; readonly slug: string },
): Promise<Published> => exclusively(context, () => publish(context, agent))

/** Takes all of an agent's files out; how many there were. */
export const unpublishFiles = (context: Context, agentId: string): Promise<number> =>
  exclusively(context, () => unpublish(context, agentId))

const queues = new WeakMap<Context['workspaces'], ReturnType<typeof createMutex>>()

/** M5. */
function exclusively<T>({ workspaces }: Context, work: () => Promise<T>): Promise<T> {
  const queue = queues.get(workspaces) ?? createMutex()
  queues.set(workspaces, queue)
  return queue(work)
}

async function publish(context: Context, agent: { readonly id: string; readonly slug: string }): Promise<Published> {
  const { workspaces, gatewayId, tenantId } = context
  const commit = await workspaces.head(agent.slug)
  const all = await workspaces.list(agent.slug)
  const files = all.slice(0, MAX_FILES)
  const known = new Map((await knownFiles(context, agent.id)).map((row) => [row.path, row]))
  const writer = createBatches(context)
  let changed = 0
  let content = 0
  for (const { path, sha } of files) {
    const row = known.get(path)
    known.delete(path)
    if (row && row.sha === sha && row.deleted_at === null) {
      content += row.bytes
      continue
    }
    const bytes = await workspaces.readBlob(sha)
    const text = bytes.length <= MAX_CONTENT && content + bytes.length <= MAX_TOTAL ? asText(bytes) : null
    content += text === null ? 0 : bytes.length
    changed += 1
    const values = [bytes.length, sha, text, commit]
    await writer.add((row?.bytes ?? 0) + bytes.length, (tx) =>
      row
        ? tx.query(
            'update agent_files set size = $2, sha = $3, content = $4, commit = $5, deleted_at = null where id = $1',
            [row.id, ...values],
          )
        : tx.query(
            'insert into agent_files (id, tenant_id, gateway_id, agent_id, path, size, sha, content, commit) values ($1, $2, $3, $4, $5, $6, $7, $8, $9)',
            [derivedId('agent_file', agent.id, path), tenantId, gatewayId, agent.id, path, ...values],
          ),
    )
  }
  const gone = [...known.values()].filter(({ deleted_at }) => deleted_at === null)
  for (const { id } of gone) await writer.add(0, (tx) => tombstone(tx, id, context.now()))
  await writer.end()
  return { total: all.length, changed, removed: gone.length, truncated: all.length > MAX_FILES || content > MAX_TOTAL }
}

async function unpublish(context: Context, agentId: string): Promise<number> {
  const living = (await knownFiles(context, agentId)).filter(({ deleted_at }) => deleted_at === null)
  const writer = createBatches(context)
  for (const { id } of living) await writer.add(0, (tx) => tombstone(tx, id, context.now()))
  await writer.end()
  return living.length
}

const knownFiles = ({ replica, gatewayId }: Context, agentId: string): Promise<Known[]> =>
  replica.query<Known>(
    `select id, path, sha, size, deleted_at, coalesce(octet_length(content), 0) as bytes from agent_files where agent_id = $1 and gateway_id = $2`,
    [agentId, gatewayId],
  )

const tombstone = (tx: Tx, id: string, now: number): Promise<unknown> =>
  tx.query('update agent_files set deleted_at = $2 where id = $1', [id, new Date(now)])

/** Collects statements and runs them in transactions of bounded size (M3). */
function createBatches({ replica }: Context) {
  let waiting: ((tx: Tx) => Promise<unknown>)[] = []
  let bytes = 0
  async function end(): Promise<void> {
    const batch = waiting
    waiting = []
    bytes = 0
    if (batch.length === 0) return
    await replica.write(async (tx) => {
      for (const statement of batch) await statement(tx)
    })
  }
  return {
    end,
    add: async (size: number, statement: (tx: Tx) => Promise<unknown>): Promise<void> => {
      if (waiting.length >= BATCH_ROWS || (waiting.length > 0 && bytes + size > BATCH_BYTES)) await end()
      waiting.push(statement)
      bytes += size
    },
  }
}
