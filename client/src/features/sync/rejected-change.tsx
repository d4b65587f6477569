import { describeChange, nounOf } from '@hq/shared/domain/change-words.ts'
import { quote } from '@hq/shared/schema/sql.ts'
import { isTableName, type TableName } from '@hq/shared/schema/tables.ts'
import type { OutboxEntry } from '@hq/shared/sync/contract.ts'
import { useId, useMemo, useState } from 'react'
import { replica, useRows } from '../../replica/hooks.ts'
import type { Corrections } from '../../replica/messages.ts'
import { Button } from '../../ui/button.tsx'
import { cx } from '../../ui/cx.ts'
import { Confirm } from '../../ui/dialog.tsx'
import { Input } from '../../ui/input.tsx'
import { RelativeTime } from '../../ui/relative-time.tsx'
import { Select } from '../../ui/select.tsx'
import { StatusShape } from '../../ui/status.tsx'
import { Textarea } from '../../ui/textarea.tsx'
import { toast } from '../../ui/toast.tsx'
import { adviceOf, columnWords, type FieldChange, fieldsOf, valueText } from './describe.ts'
import { referenceOf, useNames, want } from './names.ts'
import { changeAnchor } from './row-marks.ts'

type Edits = ReadonlyMap<string, string>
type Names = ReturnType<typeof useNames>

/** A refused change: why, what was in it, what the server has, and the ways on (correct and send again, copy, discard). */
export function RejectedChange({ entry, targeted }: { entry: OutboxEntry; targeted: boolean }) {
  const [open, setOpen] = useState(targeted)
  const [edits, setEdits] = useState<Edits>(new Map())
  const [discarding, setDiscarding] = useState(false)
  const [busy, setBusy] = useState(false)
  const details = useId()
  const { code, message } = entry.rejection ?? { code: 'invalid', message: 'The server gave no reason.' }
  const fields = useMemo(() => fieldsOf(entry), [entry])
  const now = useServerNow(entry, open)
  const names = useNames(useMemo(() => namedIn(entry, fields, now), [entry, fields, now]))
  const title = describeChange(entry.patches, names)
  const run = async (work: () => Promise<void>) => {
    setBusy(true)
    try {
      await work()
    } catch (error) {
      const description = error instanceof Error ? error.message : String(error)
      toast({ title: 'That did not work', description, meaning: 'danger' })
    } finally {
      setBusy(false)
    }
  }
  return (
    <article
      id={changeAnchor(entry.seq)}
      tabIndex={-1}
      aria-label={`Refused: ${title}`}
      className={cx(
        'rounded-card border border-line bg-surface-1 shadow-[inset_2px_0_0_var(--warning)]',
        targeted && 'outline-2 outline-offset-2 outline-accent',
      )}
    >
      <div className="flex items-start gap-3 p-3">
        <StatusShape shape="triangle" meaning="warning" className="mt-[3px]" />
        <div className="min-w-0 flex-1">
          <h3 className="font-medium [overflow-wrap:anywhere]">{title}</h3>
          <p className="text-text-2">{message}</p>
          <p className="text-xs text-text-3">
            {adviceOf(code)} Made <RelativeTime at={entry.createdAt} words />.
          </p>
        </div>
      </div>
      {open && (
        <div id={details} className="max-h-[28rem] overflow-auto border-t border-line p-3">
          <Details fields={fields} edits={edits} now={now} names={names} onEdit={setEdits} />
        </div>
      )}
      <div className="flex flex-wrap gap-2 border-t border-line px-3 py-2">
        <Button
          size="sm"
          busy={busy}
          onClick={() => void run(() => replica().retry(entry.seq, correctionsOf(fields, edits)))}
        >
          {edits.size > 0 ? 'Send corrected' : 'Try again'}
        </Button>
        <Button
          size="sm"
          variant="ghost"
          aria-expanded={open}
          aria-controls={open ? details : undefined}
          onClick={() => setOpen(!open)}
        >
          {open ? 'Hide details' : 'Edit and compare'}
        </Button>
        <Button
          size="sm"
          variant="ghost"
          onClick={() =>
            void run(async () => {
              await navigator.clipboard.writeText(copyOf(title, entry, fields, names))
              toast({ title: 'Copied', meaning: 'good' })
            })
          }
        >
          Copy
        </Button>
        <Button size="sm" variant="ghost" className="ml-auto" onClick={() => setDiscarding(true)}>
          Discard…
        </Button>
      </div>
      <Confirm
        open={discarding}
        onOpenChange={setDiscarding}
        title="Discard this change?"
        confirm="Discard"
        danger
        onConfirm={() => void run(() => replica().discard(entry.seq))}
      >
        {title}. It is gone for good; nothing else is affected.
      </Confirm>
    </article>
  )
}

const keyOf = ({ table, id, column }: FieldChange): string => `${table} ${id} ${column}`
/** The rows as the server has them, by `table id`; null: it has no such row. Undefined: not asked yet. */
type ServerNow = ReadonlyMap<string, Record<string, unknown> | null>

/** What was refused has no effect any more, so the rows are the server's, but for other changes that still wait. */
function useServerNow(entry: OutboxEntry, enabled: boolean): ServerNow | undefined {
  const ids = new Map<TableName, string[]>()
  for (const { table, id } of entry.patches) ids.set(table, [...(ids.get(table) ?? []), id])
  const tables = [...ids.keys()]
  const sql = tables
    .map(
      (table, index) => `select '${table}' as table_name, t.id,
        coalesce((select b."row" from sync.pending_base b where b.table_name = '${table}' and b.row_id = t.id), to_jsonb(t)) as row
      from ${quote(table)} t where t.id = any($${index + 1}::uuid[])`,
    )
    .join(' union all ')
  const { rows, ready } = useRows<{ table_name: string; id: string; row: Record<string, unknown> | null }>(
    sql || 'select 1 where false',
    tables.map((table) => ids.get(table) ?? []),
    { tables: [...tables, 'sync'], enabled: enabled && tables.length > 0 },
  )
  return useMemo(
    () => (ready ? new Map(rows.map(({ table_name, id, row }) => [`${table_name} ${id}`, row])) : undefined),
    [rows, ready],
  )
}

function Details(props: {
  fields: readonly FieldChange[]
  edits: Edits
  now: ServerNow | undefined
  names: Names
  onEdit: (edits: Edits) => void
}) {
  const { fields, edits, now, names, onEdit } = props
  if (fields.length === 0) return <p className="text-text-2">There is nothing in it that could be corrected.</p>
  const several = new Set(fields.map(({ table, id }) => `${table} ${id}`)).size > 1
  return (
    <div className="flex flex-col gap-4">
      {fields.map((field) => (
        <div key={keyOf(field)} className="grid gap-x-4 gap-y-1 sm:grid-cols-2">
          <FieldEditor
            field={field}
            label={
              several
                ? `${nounOf(field.table)} “${names(field.table, field.id) ?? 'new'}”: ${columnWords(field.column)}`
                : `Your ${columnWords(field.column)}`
            }
            edits={edits}
            names={names}
            onEdit={onEdit}
          />
          <div className="min-w-0">
            <p className="label">The server has</p>
            <p className="line-clamp-6 py-1 text-text-2 [overflow-wrap:anywhere]">{serverText(field, now, names)}</p>
          </div>
        </div>
      ))}
    </div>
  )
}

function serverText(field: FieldChange, now: ServerNow | undefined, names: Names): string {
  if (!now) return '…'
  const row = now.get(`${field.table} ${field.id}`)
  return row ? valueText(row[field.column], field, names) : `no such ${nounOf(field.table)}`
}

function FieldEditor(props: {
  field: FieldChange
  label: string
  edits: Edits
  names: Names
  onEdit: (edits: Edits) => void
}) {
  const { field, label, edits, names, onEdit } = props
  const key = keyOf(field)
  const original = field.after === null || field.after === undefined ? '' : String(field.after)
  const value = edits.get(key) ?? original
  const change = (text: string) => {
    const next = new Map(edits)
    if (text === original) next.delete(key)
    else next.set(key, text)
    onEdit(next)
  }
  switch (field.input.kind) {
    case 'none':
      return (
        <div className="min-w-0">
          <p className="label">{label}</p>
          <p className="line-clamp-6 py-1 text-text-2 [overflow-wrap:anywhere]">
            {valueText(field.after, field, names)}
          </p>
        </div>
      )
    case 'choice':
      return (
        <Select
          label={label}
          value={value === '' ? null : value}
          options={field.input.options.map((option) => ({ value: option, label: option.replaceAll('_', ' ') }))}
          onValueChange={change}
        />
      )
    case 'text':
      return <Textarea label={label} value={value} onChange={(event) => change(event.target.value)} />
    case 'line':
      return <Input label={label} value={value} onChange={(event) => change(event.target.value)} />
  }
}

/** Ids in values and the rows themselves. */
function namedIn(entry: OutboxEntry, fields: readonly FieldChange[], now: ServerNow | undefined) {
  const wanted = new Map<TableName, Set<string>>()
  for (const { table, id } of entry.patches) want(wanted, table, id)
  for (const field of fields) {
    const target = referenceOf(field.table, field.column)
    if (!target) continue
    want(wanted, target, field.after)
    want(wanted, target, now?.get(`${field.table} ${field.id}`)?.[field.column])
  }
  return wanted
}

function correctionsOf(fields: readonly FieldChange[], edits: Edits): Corrections | undefined {
  if (edits.size === 0) return undefined
  const set: Corrections = {}
  for (const field of fields) {
    const text = edits.get(keyOf(field))
    if (text === undefined || !isTableName(field.table)) continue
    const empty = text === '' && 'nullable' in field.input && field.input.nullable
    const rows = set[field.table] ?? {}
    set[field.table] = { ...rows, [field.id]: { ...rows[field.id], [field.column]: empty ? null : text } }
  }
  return set
}

const copyOf = (title: string, entry: OutboxEntry, fields: readonly FieldChange[], names: Names): string =>
  [
    title,
    `Refused: ${entry.rejection?.message ?? ''} (${entry.rejection?.code ?? ''})`,
    ...fields.map((field) => `${columnWords(field.column)}: ${valueText(field.after, field, names)}`),
  ].join('\n')
