/** What agents and gateways ask people to allow: open questions first, then what became of the others. */
import { useMemo } from 'react'
import { useRows } from '../../replica/hooks.ts'
import { EmptyState } from '../../ui/empty-state.tsx'
import { useShortcuts } from '../../ui/keyboard.ts'
import { useNow } from '../../ui/relative-time.tsx'
import { Page } from '../../ui/shell/page.tsx'
import { useRowMarks } from '../sync/row-marks.ts'
import { APPROVAL_TABLES, APPROVALS_SQL, type ApprovalRow, approvalState } from './approval.ts'
import { ApprovalCard } from './approval-card.tsx'

export function ApprovalsPage() {
  const { rows, ready } = useRows<ApprovalRow>(APPROVALS_SQL, [], { tables: APPROVAL_TABLES })
  const marks = useRowMarks('approvals', rows)
  const now = useNow()
  // An answer of this person's that was refused stays in sight until it is understood.
  const [open, over] = useMemo(() => {
    const isOpen = (row: ApprovalRow): boolean =>
      approvalState(row, now).key === 'open' || marks.get(row.id)?.state === 'rejected'
    return [rows.filter(isOpen), rows.filter((row) => !isOpen(row))]
  }, [rows, marks, now])
  useShortcuts([
    { keys: 'j', label: 'Next question', group: 'Approvals', run: () => step(1) },
    { keys: 'k', label: 'Previous question', group: 'Approvals', run: () => step(-1) },
  ])
  return (
    <Page title="Approvals">
      <div className="mx-auto grid w-full max-w-[860px] gap-8 px-4 py-6">
        <section aria-labelledby="approvals-open" className="grid min-w-0 gap-3">
          <h2 id="approvals-open" className="section-title">
            Waiting for an answer
            {open.length > 0 && <span className="nums ml-2 font-normal text-text-3">{open.length}</span>}
          </h2>
          {open.map((row) => (
            <ApprovalCard key={row.id} row={row} mark={marks.get(row.id)} />
          ))}
          {open.length > 0 && (
            <p className="text-xs text-text-3 max-sm:hidden touch:hidden">
              J and K go from question to question. On the one in focus, A allows once, D denies.
            </p>
          )}
          {ready && open.length === 0 && (
            <EmptyState drawing="inbox" title="Nobody asks for anything" className="rounded-card border border-line">
              What an agent may not do by itself comes here first: a command to run, a tool to use, a device that wants
              in. You allow or deny it, here or on any of your devices.
            </EmptyState>
          )}
        </section>
        {over.length > 0 && (
          <section aria-labelledby="approvals-over" className="grid min-w-0 gap-3">
            <h2 id="approvals-over" className="section-title">
              Answered and over
            </h2>
            {over.map((row) => (
              <ApprovalCard key={row.id} row={row} mark={marks.get(row.id)} />
            ))}
          </section>
        )}
      </div>
    </Page>
  )
}

/** Moves the focus from card to card. */
function step(by: 1 | -1): void {
  const cards = [...document.querySelectorAll<HTMLElement>('[data-approval]')]
  const at = cards.findIndex((card) => card.contains(document.activeElement))
  const next = cards[at === -1 ? 0 : Math.min(cards.length - 1, Math.max(0, at + by))]
  next?.focus()
  next?.scrollIntoView({ block: 'nearest' })
}
