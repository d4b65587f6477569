import { ArrowDown, ArrowUp } from 'lucide-react'
import type { ReactNode } from 'react'
import { cx } from './cx.ts'

export type Column<T> = {
  id: string
  header: string
  cell: (row: T) => ReactNode
  /** After the cell and not part of its button: a sync mark. */
  mark?: ((row: T) => ReactNode) | undefined
  align?: 'left' | 'right'
  /** CSS width; the rest shares what is left. */
  width?: string | undefined
  sortable?: boolean
  /** Hidden below this container width. */
  from?: 'sm' | 'md' | undefined
}
export type Sort = { column: string; direction: 'asc' | 'desc' }

export type TableProps<T> = {
  /** The table's spoken name. */
  label: string
  columns: readonly Column<T>[]
  rows: readonly T[]
  rowKey: (row: T) => string
  sort?: Sort | undefined
  onSortChange?: ((sort: Sort) => void) | undefined
  /** Makes the first cell a button that opens the row; the whole row is its target. */
  onOpen?: ((row: T) => void) | undefined
  rowClass?: ((row: T) => string) | undefined
  empty?: ReactNode
}

/** Up to a few hundred rows that are compared column by column. Longer: VirtualList. */
export function Table<T>({ label, columns, rows, rowKey, sort, onSortChange, onOpen, rowClass, empty }: TableProps<T>) {
  const hide = { sm: '@max-lg:hidden', md: '@max-2xl:hidden' }
  return (
    <div className="@container overflow-x-auto">
      <table aria-label={label} className="w-full border-collapse text-left">
        <thead>
          <tr className="border-b border-line">
            {columns.map((column) => {
              const sorted = sort?.column === column.id ? sort.direction : null
              const Arrow = sorted === 'desc' ? ArrowDown : ArrowUp
              return (
                <th
                  key={column.id}
                  scope="col"
                  style={column.width ? { width: column.width } : undefined}
                  aria-sort={sorted ? (sorted === 'asc' ? 'ascending' : 'descending') : undefined}
                  className={cx(
                    'h-8 px-3 text-xs font-normal text-text-3 first:pl-4 last:pr-4',
                    column.align === 'right' && 'text-right',
                    column.from && hide[column.from],
                  )}
                >
                  {column.sortable && onSortChange ? (
                    <button
                      type="button"
                      onClick={() => onSortChange({ column: column.id, direction: sorted === 'asc' ? 'desc' : 'asc' })}
                      className={cx(
                        'inline-flex items-center gap-1 rounded-sm hover:text-text-1',
                        sorted && 'font-medium text-text-1',
                      )}
                    >
                      {column.header}
                      {sorted && <Arrow className="size-3" aria-hidden="true" />}
                    </button>
                  ) : (
                    column.header
                  )}
                </th>
              )
            })}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr
              key={rowKey(row)}
              className={cx(
                'relative border-b border-line last:border-0',
                onOpen && 'hover:bg-surface-2 has-[[data-open]:focus-visible]:bg-surface-2',
                rowClass?.(row),
              )}
            >
              {columns.map((column, i) => (
                <td
                  key={column.id}
                  className={cx(
                    'h-(--row) max-w-0 px-3 first:pl-4 last:pr-4',
                    column.align === 'right' && 'nums text-right',
                    column.from && hide[column.from],
                  )}
                >
                  {i === 0 && onOpen ? (
                    <div className="flex min-w-0 items-center gap-1">
                      <button
                        type="button"
                        data-open
                        onClick={() => onOpen(row)}
                        className="block min-w-0 truncate rounded-sm text-left after:absolute after:inset-0"
                      >
                        {column.cell(row)}
                      </button>
                      {column.mark?.(row)}
                    </div>
                  ) : column.mark ? (
                    <div className="flex min-w-0 items-center gap-1">
                      <div className="min-w-0 truncate">{column.cell(row)}</div>
                      {column.mark(row)}
                    </div>
                  ) : (
                    <div className="truncate">{column.cell(row)}</div>
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && (empty ?? <p className="px-4 py-6 text-text-3">Nothing here yet.</p>)}
    </div>
  )
}
