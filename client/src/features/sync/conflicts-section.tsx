/** Values that lost against a change made elsewhere at the same time: both, by whom and when, and the way to take the other. */
import { nounOf } from '@hq/shared/domain/change-words.ts'
import { quote } from '@hq/shared/schema/sql.ts'
import { isTableName, type Row, type TableName } from '@hq/shared/schema/tables.ts'
import { textToHlc } from '@hq/shared/sync/hlc.ts'
import { useContext, useMemo, useState } from 'react'
import { useCount, useRows, useSession, useWrite } from '../../replica/hooks.ts'
import { SessionContext } from '../../session/session.ts'
import { Button } from '../../ui/button.tsx'
import { cx } from '../../ui/cx.ts'
import { RelativeTime } from '../../ui/relative-time.tsx'
import { SyncDot } from '../../ui/sync-dot.tsx'
import { toast } from '../../ui/toast.tsx'
import { columnWords, valueText } from './describe.ts'
import { referenceOf, useNames, want } from './names.ts'
import { conflictAnchor } from './row-marks.ts'

type Conflict = Row<'conflicts'> & { readonly table_name: TableName }

const FIRST = 20
const OPEN = 'resolved_at is null and deleted_at is null'
const CONFLICTS = `select * from conflicts where ${OPEN}
  order by (id::text = $2) desc, (loser_actor->>'id' = $3) desc nulls last, created_at desc limit $1`
const TABLES = { tables: ['conflicts'] } as const

const useConflictCount = (): number => useCount(`select count(*) from conflicts where ${OPEN}`, undefined, TABLES) ?? 0

/** Those in which this person's value was set aside: they are for nobody else to notice. */
export function useMyConflictCount(personId?: string): number {
  const me = useContext(SessionContext)?.principal.person_id ?? personId
  const sql = `select count(*) from conflicts where ${OPEN} and loser_actor->>'id' = $1`
  return useCount(sql, [me ?? ''], TABLES) ?? 0
}

export function ConflictsSection({ target }: { target: string | undefined }) {
  const [most, setMost] = useState(FIRST)
  const { principal } = useSession()
  const total = useConflictCount()
  const { rows } = useRows<Conflict>(CONFLICTS, [most, target ?? '', principal.person_id], TABLES)
  const known = useMemo(() => rows.filter((row) => isTableName(row.table_name)), [rows])
  const names = useNames(useMemo(() => namedIn(known), [known]))
  if (known.length === 0) return null
  const left = total - rows.length
  return (
    <section aria-label="Changed in two places" className="flex flex-col gap-3">
      <h2 className="section-title">
        Changed in two places
        <span className="nums ml-2 font-normal text-text-3">{Math.max(total, known.length).toLocaleString('en')}</span>
      </h2>
      <p className="-mt-2 text-text-2">
        The same thing was changed by two who had not seen each other’s change. The later one stands; the other is kept
        here.
      </p>
      {known.map((conflict) => (
        <ConflictCard key={conflict.id} conflict={conflict} names={names} targeted={conflict.id === target} />
      ))}
      {left > 0 && (
        <div>
          <Button size="sm" variant="ghost" onClick={() => setMost(most + 100)}>
            Show {Math.min(100, left).toLocaleString('en')} more of {left.toLocaleString('en')}
          </Button>
        </div>
      )}
    </section>
  )
}

function ConflictCard(props: { conflict: Conflict; names: ReturnType<typeof useNames>; targeted: boolean }) {
  const { conflict, names, targeted } = props
  const { canWrite } = useSession()
  const write = useWrite()
  const { table_name: table, row_id: row, column_name: column } = conflict
  const of = { table, column }
  const name = names(table, row)
  const title = `${nounOf(table)}${name ? ` “${name}”` : ''}: ${columnWords(column)}`
  const resolved = { sql: 'update conflicts set resolved_at = now() where id = $1::uuid', params: [conflict.id] }
  const take = {
    sql: `update ${quote(table)} t set ${quote(column)} = r.${quote(column)} from jsonb_populate_record(null::${quote(table)}, $1::text::jsonb) r where t.id = $2::uuid`,
    params: [JSON.stringify({ [column]: conflict.loser }), row],
  }
  const run = (statements: Parameters<typeof write>[0], done: string) =>
    write(statements).then(
      () => toast({ title: done, meaning: 'good' }),
      (error: unknown) =>
        toast({
          title: 'That did not work',
          description: error instanceof Error ? error.message : String(error),
          meaning: 'danger',
        }),
    )
  return (
    <article
      id={conflictAnchor(conflict.id)}
      tabIndex={-1}
      aria-label={`Changed in two places: ${title}`}
      className={cx(
        'rounded-card border border-line bg-surface-1',
        targeted && 'outline-2 outline-offset-2 outline-accent',
      )}
    >
      <div className="flex items-start gap-3 p-3">
        <span className="mt-1">
          <SyncDot state="conflict" />
        </span>
        <h3 className="min-w-0 font-medium first-letter:uppercase [overflow-wrap:anywhere]">{title}</h3>
      </div>
      <dl className="grid border-t border-line sm:grid-cols-2 sm:divide-x sm:divide-line">
        <Side
          title="Stands"
          text={valueText(conflict.winner, of, names)}
          who={actorName(conflict.winner_actor, names)}
          at={timeOf(conflict.winner_hlc)}
        />
        <Side
          title="Was set aside"
          text={valueText(conflict.loser, of, names)}
          who={actorName(conflict.loser_actor, names)}
          at={timeOf(conflict.loser_hlc)}
        />
      </dl>
      {canWrite && (
        <div className="flex flex-wrap gap-2 border-t border-line px-3 py-2">
          <Button size="sm" onClick={() => void run([take, resolved], 'The other value was taken')}>
            Take the other
          </Button>
          <Button size="sm" variant="ghost" onClick={() => void run([resolved], 'Left as it is')}>
            Leave it as it is
          </Button>
        </div>
      )}
    </article>
  )
}

function Side({ title, text, who, at }: { title: string; text: string; who: string; at: number | undefined }) {
  return (
    <div className="min-w-0 p-3 max-sm:not-first:border-t max-sm:not-first:border-line">
      <dt className="text-xs text-text-3">
        {title}, by {who}
        {at !== undefined && (
          <>
            {', '}
            <RelativeTime at={at} words />
          </>
        )}
      </dt>
      <dd className="line-clamp-6 whitespace-pre-line [overflow-wrap:anywhere]">{text}</dd>
    </div>
  )
}

const timeOf = (hlc: string | null): number | undefined => (hlc ? textToHlc(hlc)?.ms : undefined)

function actorName(actor: Record<string, unknown>, names: ReturnType<typeof useNames>): string {
  const id = actor['id']
  if (typeof id === 'string') return names('people', id) ?? names('agents', id) ?? 'somebody who left'
  return actor['type'] === 'system' ? 'HQ' : 'somebody'
}

function namedIn(conflicts: readonly Conflict[]) {
  const wanted = new Map<TableName, Set<string>>()
  for (const { table_name: table, row_id, column_name, winner, loser, winner_actor, loser_actor } of conflicts) {
    want(wanted, table, row_id)
    const target = referenceOf(table, column_name)
    if (target) for (const value of [winner, loser]) want(wanted, target, value)
    for (const actor of [winner_actor, loser_actor])
      for (const kind of ['people', 'agents'] as const) want(wanted, kind, actor['id'])
  }
  return wanted
}
