import type { TableName } from '@hq/shared/schema/tables.ts'
import { useNavigate } from '@tanstack/react-router'
import { SyncDot } from '../../ui/sync-dot.tsx'
import { type RowMark, useRowMark } from './row-marks.ts'

/** The mark beside a row that is not in sync; it leads to the row's entry on the sync page. */
export function RowMarkView({ mark, tabIndex }: { mark: RowMark | undefined; tabIndex?: number | undefined }) {
  const navigate = useNavigate()
  if (!mark) return null
  return (
    <SyncDot
      state={mark.state}
      reason={mark.reason}
      tabIndex={tabIndex}
      onOpen={() => void navigate({ to: '/sync', hash: mark.anchor })}
    />
  )
}

/** The same for one row that nobody else asks about. */
export function MarkOf({ table, id }: { table: TableName; id: string }) {
  return <RowMarkView mark={useRowMark(table, id)} />
}
