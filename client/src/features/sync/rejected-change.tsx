import type { OutboxEntry } from '@hq/shared/sync/contract.ts'
import { useState } from 'react'
import type { Corrections } from '../../replica/messages.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { Input } from '../../ui/input.tsx'
import { RelativeTime } from '../../ui/relative-time.tsx'
import { StatusShape } from '../../ui/status.tsx'
import { toast } from '../../ui/toast.tsx'
import { adviceOf, describe, type FieldChange, fieldsOf, valueText } from './describe.ts'

export type RejectedChangeProps = {
  entry: OutboxEntry
  onRetry: (seq: number, set?: Corrections) => Promise<void>
  onDiscard: (seq: number) => Promise<void>
}

/** A refused change: why, what was in it, and the ways on (correct and send again, copy, discard). */
export function RejectedChange({ entry, onRetry, onDiscard }: RejectedChangeProps) {
  const [open, setOpen] = useState(false)
  const [edits, setEdits] = useState<ReadonlyMap<string, string>>(new Map())
  const [discarding, setDiscarding] = useState(false)
  const [busy, setBusy] = useState(false)
  const { code, message } = entry.rejection ?? { code: 'invalid', message: 'The server gave no reason.' }
  const fields = fieldsOf(entry)
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
    <article className="rounded-card border border-line bg-surface-1 shadow-[inset_2px_0_0_var(--warning)]">
      <div className="flex items-start gap-3 p-3">
        <StatusShape shape="triangle" meaning="warning" className="mt-[3px]" />
        <div className="min-w-0 flex-1">
          <p className="font-medium">{describe(entry)}</p>
          <p className="text-text-2">{message}</p>
          <p className="text-xs text-text-3">
            {adviceOf(code)} <RelativeTime at={entry.createdAt} words />
          </p>
        </div>
      </div>
      {open && <Details fields={fields} edits={edits} onEdit={setEdits} />}
      <div className="flex flex-wrap gap-2 border-t border-line px-3 py-2">
        <Button size="sm" busy={busy} onClick={() => void run(() => onRetry(entry.seq, correctionsOf(fields, edits)))}>
          {edits.size > 0 ? 'Send corrected' : 'Try again'}
        </Button>
        <Button size="sm" variant="ghost" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Hide details' : 'Details'}
        </Button>
        <Button
          size="sm"
          variant="ghost"
          onClick={() =>
            void run(async () => {
              await navigator.clipboard.writeText(copyOf(entry, fields))
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
        onConfirm={() => void run(() => onDiscard(entry.seq))}
      >
        {describe(entry)}. It is gone for good; nothing else is affected.
      </Confirm>
    </article>
  )
}

const keyOf = ({ table, id, column }: FieldChange): string => `${table} ${id} ${column}`

function Details(props: {
  fields: readonly FieldChange[]
  edits: ReadonlyMap<string, string>
  onEdit: (edits: ReadonlyMap<string, string>) => void
}) {
  const { fields, edits, onEdit } = props
  return (
    <div className="flex max-h-96 flex-col gap-3 overflow-auto border-t border-line p-3">
      {fields.map((field) =>
        field.editable ? (
          <Input
            key={keyOf(field)}
            label={field.column.replaceAll('_', ' ')}
            value={edits.get(keyOf(field)) ?? (typeof field.after === 'string' ? field.after : '')}
            hint={field.before === undefined ? undefined : `before: ${valueText(field.before)}`}
            onChange={(event) => onEdit(new Map(edits).set(keyOf(field), event.target.value))}
          />
        ) : (
          <div key={keyOf(field)}>
            <p className="label">{field.column.replaceAll('_', ' ')}</p>
            <p className="font-mono text-xs text-text-2">
              {field.before === undefined ? '' : `${valueText(field.before)} → `}
              {valueText(field.after)}
            </p>
          </div>
        ),
      )}
    </div>
  )
}

function correctionsOf(fields: readonly FieldChange[], edits: ReadonlyMap<string, string>): Corrections | undefined {
  if (edits.size === 0) return undefined
  const set: Corrections = {}
  for (const field of fields) {
    const value = edits.get(keyOf(field))
    if (value === undefined) continue
    const rows = set[field.table] ?? {}
    set[field.table] = { ...rows, [field.id]: { ...rows[field.id], [field.column]: value } }
  }
  return set
}

const copyOf = (entry: OutboxEntry, fields: readonly FieldChange[]): string =>
  [
    describe(entry),
    `refused: ${entry.rejection?.message ?? ''} (${entry.rejection?.code ?? ''})`,
    ...fields.map((field) => `${field.table}.${field.column}: ${valueText(field.after)}`),
  ].join('\n')
