import { useVirtualizer } from '@tanstack/react-virtual'
import { Check } from 'lucide-react'
import { type KeyboardEvent, type MouseEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react'
import { cx } from './cx.ts'
import { useShortcuts } from './keyboard.ts'
import { useRowHeight } from './media.ts'
import { SkeletonRow } from './skeleton.tsx'

export type ListAction<T> = {
  /** As in keyboard.ts: `e`, `.`, `a`. */
  keys: string
  label: string
  /** The selection, or the active row alone. `row` is the active row, if loaded. */
  run: (keys: readonly string[], row: T | undefined) => void
}

export type VirtualListProps<T> = {
  label: string
  /** All rows there are; only the visible ones are asked for. */
  count: number
  /** Undefined: not read yet, a skeleton stands in. */
  getRow: (index: number) => T | undefined
  rowKey: (row: T) => string
  renderRow: (row: T, state: { index: number; active: boolean; selected: boolean }) => ReactNode
  /** Group headings among the rows: not selectable, skipped by the keyboard. */
  isHeader?: ((row: T) => boolean) | undefined
  rowClass?: ((row: T) => string) | undefined
  /** Px; 32 (44 on touch) when left out. */
  rowHeight?: number | undefined
  /** The window that is looked at, inclusive: move the data source's window to it. */
  onRange?: ((first: number, last: number) => void) | undefined
  /** Without it there is no selection. */
  onSelectedChange?: ((selected: ReadonlySet<string>) => void) | undefined
  selected?: ReadonlySet<string> | undefined
  onOpen?: ((row: T, index: number) => void) | undefined
  onActiveChange?: ((row: T | undefined, index: number) => void) | undefined
  actions?: readonly ListAction<T>[] | undefined
  empty?: ReactNode
  className?: string | undefined
}

const NONE: ReadonlySet<string> = new Set()

/**
 * A list of any length. J/K and arrows move, X selects (⇧ extends), Enter opens, Esc clears; `actions` add keys that
 * work on the selection. Focus stays on the list itself (`aria-activedescendant`), so that scrolling a row away never
 * loses it; controls inside rows should be `tabIndex={-1}` and have a key.
 */
export function VirtualList<T>(props: VirtualListProps<T>) {
  const {
    label,
    count,
    getRow,
    rowKey,
    renderRow,
    isHeader,
    rowClass,
    onRange,
    onSelectedChange,
    onOpen,
    onActiveChange,
    empty,
  } = props
  const selected = props.selected ?? NONE
  const touchHeight = useRowHeight()
  const rowHeight = props.rowHeight ?? touchHeight
  const id = useId()
  const scroller = useRef<HTMLDivElement>(null)
  const [active, setActive] = useState(-1)
  const anchor = useRef(-1)

  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  })
  // biome-ignore lint/correctness/useExhaustiveDependencies: a new row height means measuring again
  useEffect(() => virtual.measure(), [rowHeight, virtual])

  const items = virtual.getVirtualItems()
  const first = items[0]?.index ?? 0
  const last = items.at(-1)?.index ?? 0
  useEffect(() => onRange?.(first, last), [first, last, onRange])
  useEffect(() => {
    if (active >= count) setActive(count - 1)
  }, [active, count])

  const header = (index: number): boolean => {
    const row = getRow(index)
    return row !== undefined && (isHeader?.(row) ?? false)
  }
  const goTo = (index: number, direction: 1 | -1, extend = false) => {
    let to = Math.max(0, Math.min(count - 1, index))
    while (to >= 0 && to < count && header(to)) to += direction
    if (to < 0 || to >= count) return
    if (extend && onSelectedChange) selectRange(anchor.current < 0 ? active : anchor.current, to)
    else anchor.current = to
    setActive(to)
    onActiveChange?.(getRow(to), to)
    // The heading above is part of what one goes to, when one comes from below.
    const top = header(to - 1) ? to - 1 : to
    if ((scroller.current?.scrollTop ?? 0) > top * rowHeight) virtual.scrollToIndex(top, { align: 'start' })
    else virtual.scrollToIndex(to, { align: 'auto' })
  }
  const move = (by: 1 | -1, extend = false) => {
    scroller.current?.focus({ preventScroll: true })
    goTo(active < 0 ? (by > 0 ? first : 0) : active + by, by, extend)
  }
  const selectRange = (from: number, to: number) => {
    const next = new Set(selected)
    for (let i = Math.max(0, Math.min(from, to)); i <= Math.max(from, to); i++) {
      const row = getRow(i)
      if (row !== undefined && !header(i)) next.add(rowKey(row))
    }
    onSelectedChange?.(next)
  }
  const toggle = (index: number) => {
    const row = getRow(index)
    if (row === undefined || header(index)) return
    const next = new Set(selected)
    if (!next.delete(rowKey(row))) next.add(rowKey(row))
    anchor.current = index
    onSelectedChange?.(next)
  }
  const open = (index: number) => {
    const row = getRow(index)
    if (row !== undefined && !header(index)) onOpen?.(row, index)
  }

  /** This list is meant: it has focus, or no other list has. */
  const mine = () => {
    const focused = document.activeElement?.closest('[data-list]')
    return count > 0 && (!focused || focused === scroller.current)
  }
  const onBody = () =>
    mine() && (document.activeElement === document.body || document.activeElement === scroller.current)
  const targets = (): string[] => {
    if (selected.size > 0) return [...selected]
    const row = active >= 0 ? getRow(active) : undefined
    return row === undefined ? [] : [rowKey(row)]
  }
  useShortcuts([
    { keys: 'j', label: 'Next', group: 'Lists', run: () => move(1), when: mine },
    { keys: 'k', label: 'Previous', group: 'Lists', run: () => move(-1), when: mine },
    ...(onOpen
      ? [{ keys: 'enter', label: 'Open', group: 'Lists', run: () => open(active), when: () => active >= 0 && onBody() }]
      : []),
    ...(onSelectedChange
      ? [
          { keys: 'x', label: 'Select', group: 'Lists', run: () => toggle(active), when: () => active >= 0 && mine() },
          { keys: 'shift+j', label: 'Extend the selection down', group: 'Lists', run: () => move(1, true), when: mine },
          { keys: 'shift+k', label: 'Extend the selection up', group: 'Lists', run: () => move(-1, true), when: mine },
          {
            keys: 'escape',
            label: 'Clear the selection',
            group: 'Lists',
            run: () => onSelectedChange(NONE),
            when: () => selected.size > 0 && mine(),
          },
        ]
      : []),
    ...(props.actions ?? []).map((action) => ({
      keys: action.keys,
      label: action.label,
      group: 'Lists',
      run: () => action.run(targets(), active >= 0 ? getRow(active) : undefined),
      when: () => mine() && targets().length > 0,
    })),
  ])

  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== scroller.current) return
    const page = Math.max(1, Math.floor((scroller.current?.clientHeight ?? 320) / rowHeight) - 1)
    if (event.key === 'ArrowDown') move(1, event.shiftKey)
    else if (event.key === 'ArrowUp') move(-1, event.shiftKey)
    else if (event.key === 'PageDown') goTo(active + page, 1)
    else if (event.key === 'PageUp') goTo(active - page, -1)
    else if (event.key === 'Home') goTo(0, 1)
    else if (event.key === 'End') goTo(count - 1, -1)
    else if (event.key === ' ' && onSelectedChange && active >= 0) toggle(active)
    else if (event.key === 'a' && (event.metaKey || event.ctrlKey) && onSelectedChange) selectRange(0, count - 1)
    else return
    event.preventDefault()
  }
  const onRowClick = (event: MouseEvent, index: number) => {
    setActive(index)
    onActiveChange?.(getRow(index), index)
    if (onSelectedChange && event.shiftKey) selectRange(anchor.current < 0 ? index : anchor.current, index)
    else if (onSelectedChange && (event.metaKey || event.ctrlKey)) toggle(index)
    else open(index)
  }

  if (count === 0) return <>{empty}</>
  return (
    // biome-ignore lint/a11y/useSemanticElements: rows are positioned, a table's parts cannot be
    <div
      ref={scroller}
      data-list
      role="grid"
      aria-label={label}
      aria-rowcount={count}
      aria-multiselectable={onSelectedChange ? true : undefined}
      aria-activedescendant={active >= 0 && active >= first && active <= last ? `${id}-${active}` : undefined}
      tabIndex={0}
      onKeyDown={onKeyDown}
      onFocus={(event) => {
        if (event.target === scroller.current && active < 0 && scroller.current.matches(':focus-visible'))
          goTo(first, 1)
      }}
      className={cx(
        'group/list relative min-h-0 overflow-auto outline-none [contain:strict]',
        props.className ?? 'h-full',
      )}
    >
      {/* biome-ignore lint/a11y/useSemanticElements: as above */}
      <div role="rowgroup" style={{ height: virtual.getTotalSize() }} className="relative w-full">
        {items.map(({ index, start, size }) => {
          const row = getRow(index)
          const isHead = row !== undefined && (isHeader?.(row) ?? false)
          const isSelected = row !== undefined && selected.has(rowKey(row))
          const isActive = index === active
          return (
            // biome-ignore lint/a11y/useSemanticElements: as above
            // biome-ignore lint/a11y/useKeyWithClickEvents: the list handles the keys
            // biome-ignore lint/a11y/useFocusableInteractive: focus stays on the list
            <div
              key={row === undefined ? `index-${index}` : rowKey(row)}
              id={`${id}-${index}`}
              role="row"
              aria-rowindex={index + 1}
              aria-selected={onSelectedChange && !isHead ? isSelected : undefined}
              data-active={isActive || undefined}
              onClick={row === undefined || isHead ? undefined : (event) => onRowClick(event, index)}
              style={{ transform: `translateY(${start}px)`, height: size }}
              className={cx(
                'group/row absolute inset-x-0 top-0 flex items-stretch outline-none',
                !isHead && (isSelected ? 'bg-accent-soft' : 'hover:bg-surface-2 data-active:bg-surface-2'),
                'group-focus-visible/list:data-active:shadow-[inset_0_0_0_2px_var(--focus)]',
                row !== undefined && rowClass?.(row),
              )}
            >
              {onSelectedChange && !isHead && row !== undefined && (
                // A pointer's way to X; for everybody else the row carries aria-selected.
                <span
                  aria-hidden="true"
                  onClick={(event) => {
                    event.stopPropagation()
                    setActive(index)
                    if (event.shiftKey) selectRange(anchor.current < 0 ? index : anchor.current, index)
                    else toggle(index)
                  }}
                  className="absolute inset-y-0 left-0 z-10 grid w-8 place-items-center touch:w-11"
                >
                  <span
                    className={cx(
                      'grid size-3.5 place-items-center rounded-sm border',
                      isSelected
                        ? 'border-accent bg-accent text-on-accent'
                        : 'border-text-3 bg-surface-1 opacity-0 group-hover/row:opacity-100 group-data-active/row:opacity-100 touch:opacity-100',
                    )}
                  >
                    {isSelected && <Check className="size-3" strokeWidth={3} />}
                  </span>
                </span>
              )}
              {/* biome-ignore lint/a11y/useSemanticElements: as above */}
              {/* biome-ignore lint/a11y/useFocusableInteractive: as above */}
              <div role="gridcell" className={cx('min-w-0 flex-1', onSelectedChange && !isHead && 'pl-8 touch:pl-11')}>
                {row === undefined ? (
                  <SkeletonRow index={index} />
                ) : (
                  renderRow(row, { index, active: isActive, selected: isSelected })
                )}
              </div>
            </div>
          )
        })}
      </div>
    </div>
  )
}
