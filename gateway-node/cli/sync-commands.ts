/** `hq sync …`: what waits to be sent, what was refused and what to do about it. */
import { writeFile } from 'node:fs/promises'
import { createInterface } from 'node:readline/promises'
import { type Answer, type Connection, call } from './connection.ts'
import { printOutbox, printSync } from './print.ts'

export const SYNC_HELP = `hq sync: what this gateway has not sent yet

  hq sync status                      connection, what waits and since when, what was refused, why nothing is sent
  hq sync outbox [--limit N]          each change in words, refused ones first (default 100)
  hq sync retry <seq> [--set TABLE.ID.COLUMN=VALUE]…
                                      send a refused change again, with other values where --set names them
  hq sync discard <seq> [--yes]       give a refused change up, for good; asks first (operator only)
  hq sync export <file>               everything that waits or was refused as a file; HQ's sync page imports it

  --json    print the gateway's answer as JSON

An agent sees its own changes. The gateway's operator sees everybody's: call hq where the gateway's folder can be read (HQ_HOME, or .hq in
this folder or one above).

The same by SQL, in the gateway's replica:
  select * from sync.entries      one row a change: seq, mutation_id, state (pending, accepted, rejected), created_at, actor_type, actor_id,
                                  run_id, code, message, patches [{table, id, op, set, base, local}]
  select * from sync.row_states   one row for each row that is not in sync: table_name, row_id, state, seq, code, message`

export interface SyncValues {
  readonly limit?: string | undefined
  readonly set?: readonly string[] | undefined
  readonly yes?: boolean | undefined
}

/** Raised for wrong usage; the message says what is right. */
export class SyncUsage extends Error {}

export const syncStatus = (connection: Connection): Promise<Answer> => call(connection, 'GET', '/v1/sync/status')
export const syncOutbox = (connection: Connection, { limit }: SyncValues): Promise<Answer> =>
  call(connection, 'GET', `/v1/sync/outbox${limit === undefined ? '' : `?limit=${encodeURIComponent(limit)}`}`)

export const syncRetry = (connection: Connection, args: readonly string[], { set }: SyncValues): Promise<Answer> =>
  call(connection, 'POST', `/v1/sync/${seqIn(args)}/retry`, set === undefined ? {} : { set: corrections(set) })

export async function syncDiscard(
  connection: Connection,
  args: readonly string[],
  { yes }: SyncValues,
): Promise<Answer> {
  const seq = seqIn(args)
  if (!yes) {
    if (!process.stdin.isTTY) throw new SyncUsage('Discarding cannot be undone. Say --yes when nobody can be asked.')
    const lines = createInterface({ input: process.stdin, output: process.stderr })
    const said = await lines.question(`Discard change ${seq} for good? (y/N) `)
    lines.close()
    if (!/^y(es)?$/i.test(said.trim()))
      return { status: 409, body: { code: 'not_confirmed', message: 'Nothing was discarded.' } }
  }
  return call(connection, 'POST', `/v1/sync/${seq}/discard`, {})
}

/** Never over a file that is there: it may be the only copy of something. */
export async function syncExport(connection: Connection, args: readonly string[]): Promise<Answer> {
  const [file, ...more] = args
  if (file === undefined || more.length > 0)
    throw new SyncUsage('The name of one file is needed: hq sync export waiting.jsonl')
  const answer = await call(connection, 'GET', '/v1/sync/export')
  const { text, changes } = answer.body
  if (answer.status >= 400 || typeof text !== 'string') return answer
  try {
    await writeFile(file, text, { flag: 'wx', mode: 0o600 })
  } catch (error) {
    const exists = error instanceof Error && 'code' in error && error.code === 'EEXIST'
    const why = exists
      ? `${file} is there already; give another name.`
      : `${file} cannot be written: ${error instanceof Error ? error.message : String(error)}`
    return { status: 409, body: { code: 'not_written', message: why } }
  }
  return { status: 200, body: { file, changes } }
}

export { printOutbox, printSync }

function seqIn(args: readonly string[]): string {
  const [seq, ...more] = args
  if (seq === undefined || !/^\d{1,15}$/.test(seq) || more.length > 0)
    throw new SyncUsage('The number of one change is needed; “hq sync outbox” shows them.')
  return seq
}

/** `tasks.<id>.title=Other words` → `{tasks: {<id>: {title: 'Other words'}}}` */
function corrections(settings: readonly string[]): Record<string, Record<string, Record<string, string>>> {
  const set: Record<string, Record<string, Record<string, string>>> = {}
  for (const setting of settings) {
    const match = /^([a-z_]+)\.([0-9a-f-]{36})\.([a-z_]+)=([\s\S]*)$/i.exec(setting)
    if (!match)
      throw new SyncUsage(`--set is TABLE.ID.COLUMN=VALUE, such as tasks.0190….title=Other words; not “${setting}”.`)
    const [, table = '', id = '', column = '', value = ''] = match
    const rows = set[table] ?? {}
    set[table] = { ...rows, [id]: { ...rows[id], [column]: value } }
  }
  return set
}
