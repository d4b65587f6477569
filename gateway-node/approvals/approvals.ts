/**
 * Asks people before something is done, and waits for their answer.
 *
 *  A1 A question is a row (`approvals`, `pending`) before anybody waits for it; the answer is that row's `status`, however long its way was.
 *  A2 `ask` ends once, with one of four verdicts, and never throws: answered (`allowed`, `denied`), too late (`expired`), or nobody waits any more
 *     (`cancelled`: the caller's signal, a stop of the gateway, a question that the server refused). Whatever is not `allowed` means: don't.
 *  A3 A question that no one in this process waits for is withdrawn (`cancelled`), also one of a process that was killed. An answer that comes to such a
 *     question is kept, with a word in `error_message` that nothing was done.
 *  A4 `applied_at` is set when the answer was taken by the one who waits.
 *  A5 No secret in title or detail: fields with the name of one are hidden, and so are known secrets and keys within texts. Nothing else is left out
 *     silently; a very long text says how much of it is missing.
 */
import { createHash } from 'node:crypto'
import type { Enum } from '@hq/shared/schema/enums.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Changes, SqlValue } from '@hq/shared/sync/contract.ts'
import { isSecretName, maskKeys } from '../log.ts'
import type { GatewayContext, Log, Service } from '../service.ts'

export interface Question {
  /** Null: about the gateway itself. */
  readonly agentId: string | null
  readonly runId: string | null
  readonly taskId: string | null
  readonly kind: Enum<'approval_kind'>
  /** The tool or device: what “always” would be about. */
  readonly subject: string
  /** One line for people. */
  readonly title: string
  /** What will be done, in full. */
  readonly detail: Readonly<Record<string, unknown>>
  /** ISO time; null: the question stands until it is answered or withdrawn. */
  readonly expiresAt: string | null
}

export interface Answer {
  readonly verdict: 'allowed' | 'denied' | 'expired' | 'cancelled'
  /** What the person said to it, or why there is no answer. */
  readonly note: string | null
}

export interface Approvals extends Service {
  ask(question: Question, signal: AbortSignal): Promise<Answer>
}

export type ApprovalsContext = Pick<
  GatewayContext,
  'replica' | 'gatewayId' | 'tenantId' | 'now' | 'newId' | 'signal'
> & {
  readonly log: Log & { maskText?(text: string): string }
}

/** Longer texts are cut, visibly. */
export const TEXT_CHARS = 20_000
const TITLE_CHARS = 200
/** The longest that a timer can wait. */
const TIMER_MS = 2 ** 31 - 1

const TOO_LATE = 'The answer came when nobody waited for it any more: nothing was done.'
const LEFT = 'The gateway was restarted; whoever asked does not wait any more.'

type Approval = Row<'approvals'>

interface Waiting {
  readonly id: string
  readonly runId: string | null
  readonly end: (answer: Answer) => void
}

/** One for a gateway: who waits is known only within it (A3). */
const made = new WeakMap<object, Approvals>()

/** The approvals of this gateway, for parts that are made at different times. */
export function approvalsOf(context: ApprovalsContext): Approvals {
  const known = made.get(context)
  if (known) return known
  const approvals = createApprovals(context)
  made.set(context, approvals)
  return approvals
}

export function createApprovals(context: ApprovalsContext): Approvals {
  const { replica, gatewayId, tenantId, now, newId, log } = context
  const waiting = new Map<string, Waiting>()
  let ends: (() => void)[] = []
  let stopped = false
  let looking: Promise<void> | undefined
  let again = false
  let listening: (() => void) | undefined

  const warn = (message: string) => (error: unknown) => log('warn', message, { error })

  /** Serial: looks at what changed until nothing more has. */
  function look(): Promise<void> {
    if (looking) {
      again = true
      return looking
    }
    looking = once()
      .catch(warn('The approvals could not be read'))
      .finally(() => {
        looking = undefined
        if (!again) return
        again = false
        return look()
      })
    return looking
  }

  async function once(): Promise<void> {
    const ids = [...waiting.keys()]
    if (ids.length > 0) {
      const rows = await replica.query<Approval>('select * from approvals where id = any($1::uuid[])', [ids])
      for (const id of ids)
        settle(
          id,
          rows.find((row) => row.id === id),
        )
    }
    // Before the workspace has come, a question of an earlier process may be missing; afterwards it is found here.
    if (!stopped && ends.length > 0 && replica.status().initial.done) await withdrawLeft()
  }

  function settle(id: string, row: Approval | undefined): void {
    const asked = waiting.get(id)
    if (!asked) return
    if (!row || row.deleted_at !== null)
      asked.end({ verdict: 'cancelled', note: 'The question was refused by the server.' })
    else if (row.status !== 'pending') asked.end({ verdict: row.status, note: row.note })
  }

  /** (A3) */
  async function withdrawLeft(): Promise<void> {
    const rows = await replica.query<Approval>(
      `select * from approvals where gateway_id = $1 and deleted_at is null and applied_at is null and error_message is null
         and status in ('pending', 'allowed', 'denied')`,
      [gatewayId],
    )
    const left = rows.filter(({ id }) => !waiting.has(id))
    if (left.length === 0) return
    await replica.write(async (tx) => {
      for (const { id, status } of left) {
        if (status === 'pending')
          await tx.query(
            `update approvals set status = 'cancelled', error_message = $2 where id = $1 and status = 'pending'`,
            [id, LEFT],
          )
        else await tx.query('update approvals set error_message = $2 where id = $1', [id, TOO_LATE])
      }
    })
  }

  function onChange(changes: Changes): void {
    if (changes.has('approvals')) void look()
  }

  /** Writes the end of a question; an answer that is there already stands. */
  async function close(
    id: string,
    runId: string | null,
    verdict: Answer['verdict'],
    note: string | null,
  ): Promise<void> {
    const sql =
      verdict === 'allowed' || verdict === 'denied'
        ? { text: 'update approvals set applied_at = $2 where id = $1', values: [id, new Date(now()).toISOString()] }
        : {
            text: `update approvals set status = $2, error_message = $3 where id = $1 and status = 'pending'`,
            values: [id, verdict, note],
          }
    await replica.write((tx) => tx.query(sql.text, sql.values), runId === null ? {} : { runId })
  }

  async function ask(question: Question, signal: AbortSignal): Promise<Answer> {
    const gone = (): Answer | undefined =>
      stopped || signal.aborted || context.signal.aborted
        ? { verdict: 'cancelled', note: 'The work that asked was stopped.' }
        : undefined
    const over = gone()
    if (over) return over
    const id = newId()
    let timer: NodeJS.Timeout | undefined
    const { promise, resolve } = Promise.withResolvers<Answer>()
    // Known as waited for before the row is there, so that no look takes it for one that was left (A3).
    waiting.set(id, { id, runId: question.runId, end: resolve })
    listening ??= replica.onChange(onChange)
    const onAbort = (): void => resolve(gone() ?? { verdict: 'cancelled', note: null })
    signal.addEventListener('abort', onAbort, { once: true })
    context.signal.addEventListener('abort', onAbort, { once: true })
    const expire = (): void => {
      const left = Date.parse(question.expiresAt ?? '') - now()
      if (left <= 0) resolve({ verdict: 'expired', note: 'Nobody answered in time.' })
      else timer = setTimeout(expire, Math.min(left, TIMER_MS))
    }
    try {
      await put(id, question)
      const later = gone()
      if (later) resolve(later)
      if (question.expiresAt !== null) expire()
      const answer = await promise
      await close(id, question.runId, answer.verdict, answer.note).catch(
        warn('The end of an approval could not be written'),
      )
      return answer
    } catch (error) {
      warn('A question could not be put to people')(error)
      return { verdict: 'cancelled', note: 'The question could not be written to this gateway’s disk.' }
    } finally {
      clearTimeout(timer)
      waiting.delete(id)
      signal.removeEventListener('abort', onAbort)
      context.signal.removeEventListener('abort', onAbort)
      if (waiting.size === 0 && ends.length === 0) {
        listening?.()
        listening = undefined
      }
    }
  }

  async function put(id: string, question: Question): Promise<void> {
    const { agentId, runId, taskId, kind, subject, title, detail, expiresAt } = question
    const maskText = (text: string): string => log.maskText?.(text) ?? maskKeys(text)
    const line = maskText(title).replaceAll(/\s+/g, ' ').trim()
    const values: SqlValue[] = [
      id,
      tenantId,
      gatewayId,
      agentId,
      runId,
      taskId,
      kind,
      subject,
      line.length > TITLE_CHARS ? `${line.slice(0, TITLE_CHARS)}…` : line,
      JSON.stringify(withoutSecrets(detail, maskText)),
      expiresAt,
      new Date(now()).toISOString(),
    ]
    await replica.write(
      (tx) =>
        tx.query(
          `insert into approvals (id, tenant_id, gateway_id, agent_id, run_id, task_id, kind, subject, title, detail, expires_at, created_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
          values,
        ),
      runId === null ? {} : { runId },
    )
  }

  return {
    ask,
    async start() {
      stopped = false
      listening ??= replica.onChange(onChange)
      ends = [replica.onStatus(({ initial }) => void (initial.done && look()))]
      await look()
    },
    async stop() {
      stopped = true
      for (const { end } of [...waiting.values()])
        end({ verdict: 'cancelled', note: 'The gateway was stopped; ask again when it is back.' })
      for (const end of ends.splice(0)) end()
      listening?.()
      listening = undefined
      await looking
    },
  }
}

/** (A5) */
export function withoutSecrets(value: unknown, maskText: (text: string) => string = maskKeys): unknown {
  if (typeof value === 'string') {
    const text = maskText(value)
    if (text.length <= TEXT_CHARS) return text
    const print = createHash('sha256').update(value).digest('hex').slice(0, 16)
    return `${text.slice(0, TEXT_CHARS)}… (${text.length - TEXT_CHARS} more characters are not shown; sha256 of the whole: ${print}…)`
  }
  if (Array.isArray(value)) return value.map((item) => withoutSecrets(item, maskText))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [
      maskText(name),
      isSecretName(name) && item !== null && item !== undefined ? '[hidden]' : withoutSecrets(item, maskText),
    ]),
  )
}
