/**
 * Questions that gateways put to people: what is read, how each stands, what an answer writes. Pure.
 *
 *  Q1 An answer is one transaction and counts only for a question that is still open; “always” writes the agent's policy in the same one, so that both stand
 *     or fall together (the server takes the first answer; a later one is refused as a whole).
 *  Q2 What is shown is what will be done: characters that cannot be seen, or turn the order of others round, are shown by their numbers.
 *  Q3 How a question stands says who must act next: a person, the gateway, or nobody.
 */
import { withVerdict } from '@hq/shared/domain/tool-policy.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Statement } from '@hq/shared/sync/contract.ts'
import type { Meaning } from '../../ui/cx.ts'
import type { Shape } from '../../ui/status.tsx'
import { isSilent } from '../agents/agent-state.ts'

export interface ApprovalRow extends Row<'approvals'> {
  readonly agent_name: string | null
  readonly agent_slug: string | null
  readonly agent_meta: Record<string, unknown> | null
  readonly tool_policy: unknown
  readonly task_title: string | null
  readonly gateway_label: string | null
  readonly gateway_seen_at: string | null
  readonly decided_by_name: string | null
}

/** Open ones first, the oldest first; then what was answered, the newest first. */
export const APPROVALS_SQL = `
  select p.*, a.name as agent_name, a.slug as agent_slug, a.meta as agent_meta, a.tool_policy, t.title as task_title, g.label as gateway_label,
    g.last_seen_at as gateway_seen_at, who.name as decided_by_name
  from approvals p left join agents a on a.id = p.agent_id left join tasks t on t.id = p.task_id left join gateways g on g.id = p.gateway_id
    left join people who on who.id = p.decided_by
  where p.deleted_at is null
  order by (p.status = 'pending') desc, case when p.status = 'pending' then p.created_at end, coalesce(p.decided_at, p.updated_at) desc, p.id
  limit 200`
export const APPROVAL_TABLES = ['approvals', 'agents', 'tasks', 'gateways', 'people'] as const

/** Those that somebody can still answer. */
export const OPEN_COUNT_SQL = `select count(*) from approvals
  where status = 'pending' and deleted_at is null and (expires_at is null or expires_at > now())`

export interface ApprovalState {
  /** `open`: an answer would be taken. */
  readonly key: 'open' | 'late' | 'sent' | 'over'
  readonly label: string
  readonly shape: Shape
  readonly meaning: Meaning
  readonly detail?: string
}

type Facts = Pick<
  ApprovalRow,
  'status' | 'expires_at' | 'applied_at' | 'error_message' | 'gateway_label' | 'gateway_seen_at'
>

/** (Q3) @param now milliseconds since 1970 */
export function approvalState(row: Facts, now: number): ApprovalState {
  const gateway = `“${row.gateway_label ?? 'its gateway'}”`
  const away = isSilent(row.gateway_seen_at, now)
  switch (row.status) {
    case 'pending':
      if (row.expires_at !== null && Date.parse(row.expires_at) <= now)
        return {
          key: 'late',
          label: 'Too late',
          shape: 'clock',
          meaning: 'neutral',
          detail: 'Nobody answered in time; the agent goes on without it.',
        }
      return away
        ? {
            key: 'open',
            label: 'Waits for you',
            shape: 'off',
            meaning: 'waiting',
            detail: `Gateway ${gateway} is offline. Your answer is kept and reaches it when it is back.`,
          }
        : { key: 'open', label: 'Waits for you', shape: 'clock', meaning: 'waiting' }
    case 'allowed':
    case 'denied': {
      const label = row.status === 'allowed' ? 'Allowed' : 'Denied'
      if (row.error_message !== null)
        return { key: 'over', label, shape: 'slash', meaning: 'warning', detail: row.error_message }
      if (row.applied_at === null)
        return {
          key: 'sent',
          label,
          shape: away ? 'off' : 'clock',
          meaning: 'waiting',
          detail: away ? `Will be taken when gateway ${gateway} is back.` : 'On its way to the gateway.',
        }
      return row.status === 'allowed'
        ? { key: 'over', label, shape: 'check', meaning: 'good' }
        : { key: 'over', label, shape: 'cross', meaning: 'danger' }
    }
    case 'expired':
      return { key: 'over', label: 'Expired', shape: 'clock', meaning: 'neutral', detail: 'Nobody answered in time.' }
    case 'cancelled':
      return {
        key: 'over',
        label: 'Withdrawn',
        shape: 'slash',
        meaning: 'neutral',
        ...(row.error_message === null ? {} : { detail: row.error_message }),
      }
  }
}

export type Verdict = 'once' | 'always' | 'deny'

/** Whether “always” means something: about a tool of an agent that is still there. */
export const canBeStanding = (row: Pick<ApprovalRow, 'kind' | 'agent_slug'>): boolean =>
  row.kind !== 'pairing' && row.agent_slug !== null

/** (Q1) The first statement returns the row if the answer counted here. */
export function answer(
  row: Pick<ApprovalRow, 'id' | 'agent_id' | 'subject' | 'tool_policy'>,
  verdict: Verdict,
  note: string,
  me: string,
): Statement[] {
  const statements: Statement[] = [
    {
      sql: `update approvals set status = $2::text, note = $3::text, decided_by = $4::uuid, decided_at = now()
        where id = $1::uuid and status = 'pending' returning id`,
      params: [row.id, verdict === 'deny' ? 'denied' : 'allowed', note.trim() || null, me],
    },
  ]
  if (verdict === 'always')
    statements.push({
      sql: `update agents set tool_policy = $2::text::jsonb where id = $1::uuid
        and exists (select 1 from approvals where id = $3::uuid and status = 'allowed' and decided_by = $4::uuid)`,
      params: [row.agent_id, JSON.stringify(withVerdict(row.tool_policy, row.subject, 'allow')), row.id, me],
    })
  return statements
}

const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u00a0\u115f\u1160\u3164\uffa0]/gu

/** (Q2) */
export const visible = (text: string): string =>
  text.replaceAll(UNSEEN, (each) =>
    each === '\n' || each === '\t'
      ? each
      : `⟨U+${(each.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}⟩`,
  )

export interface Fact {
  readonly name: string
  readonly text: string
}

/** What will be done, in full: the longest text (a command, what is written) apart from the small facts. */
export function detailOf(detail: Readonly<Record<string, unknown>>): {
  main: Fact | undefined
  facts: readonly Fact[]
} {
  const facts = Object.entries(detail)
    .filter(([, value]) => value !== null && value !== undefined)
    .map(
      ([name, value]): Fact => ({
        name: visible(name),
        text: visible(typeof value === 'string' ? value : JSON.stringify(value, null, 2)),
      }),
    )
  const main =
    facts.find(({ name }) => name === 'command') ?? facts.find(({ text }) => text.includes('\n') || text.length > 80)
  return { main, facts: facts.filter((fact) => fact !== main) }
}

const WORDS: Readonly<Record<string, string>> = { timeout_s: 'time limit in seconds', task_id: 'task' }

export const factName = (name: string): string => WORDS[name] ?? name.replaceAll('_', ' ')
