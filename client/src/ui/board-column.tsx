import { useDraggable, useDroppable } from '@dnd-kit/core'
import { useVirtualizer } from '@tanstack/react-virtual'
import { type ReactNode, type Ref, useEffect, useRef } from 'react'
import type { BoardColumn } from './board.tsx'
import { cx } from './cx.ts'
import { Skeleton } from './skeleton.tsx'

type ColumnProps<T> = {
  column: BoardColumn<T>
  cardHeight: number
  cardKey: (card: T) => string
  renderCard: (card: T) => ReactNode
  onOpen: (card: T) => void
  onRange: ((column: string, first: number, last: number) => void) | undefined
  /** The card that Tab reaches, if it is in this column. */
  focusIndex: number | null
  onFocusCard: (index: number) => void
  /** Where the held card would land. */
  slot: number | null
  heldKey: string | null
}

const GAP = 6

/** One virtual column of a Board. Internal to board.tsx. */
export function BoardColumnView<T>(props: ColumnProps<T>) {
  const { column, cardHeight, cardKey, focusIndex, onRange, slot, heldKey } = props
  const scroller = useRef<HTMLDivElement>(null)
  const { setNodeRef } = useDroppable({ id: `column:${column.id}`, data: { column: column.id, index: null } })
  const virtual = useVirtualizer({
    count: column.count,
    getScrollElement: () => scroller.current,
    estimateSize: () => cardHeight,
    gap: GAP,
    overscan: 4,
    getItemKey: (index) => {
      const card = column.getCard(index)
      return card === undefined ? index : cardKey(card)
    },
  })
  const items = virtual.getVirtualItems()
  const first = items[0]?.index ?? 0
  const last = items.at(-1)?.index ?? 0
  useEffect(() => onRange?.(column.id, first, last), [column.id, first, last, onRange])
  useEffect(() => {
    if (focusIndex !== null && focusIndex > 0) virtual.scrollToIndex(focusIndex, { align: 'auto' })
  }, [focusIndex, virtual])
  useEffect(() => {
    if (slot !== null && slot > 0 && heldKey) virtual.scrollToIndex(Math.min(slot, column.count - 1), { align: 'auto' })
  }, [slot, heldKey, column.count, virtual])

  const slotTop = (): number => {
    if (slot === null || items.length === 0) return 0
    const after = items.find((item) => item.index === slot)
    if (after) return after.start - GAP / 2
    const before = items.find((item) => item.index === slot - 1)
    return before ? before.end + GAP / 2 - 1 : 0
  }

  return (
    <section
      aria-label={`${column.title}, ${column.count}`}
      className="flex w-[272px] shrink-0 snap-center flex-col max-[719px]:w-[82vw]"
    >
      <header className="flex h-9 items-center gap-2 px-1">
        {column.leading}
        <h3 className="font-medium">{column.title}</h3>
        <span className="nums text-text-3">{column.count}</span>
        {column.action && <span className="ml-auto">{column.action}</span>}
      </header>
      <div
        ref={(element) => {
          scroller.current = element
          setNodeRef(element)
        }}
        className={cx(
          'min-h-24 flex-1 overflow-y-auto rounded-card p-1.5 pb-6 transition-colors',
          slot !== null ? 'bg-surface-3' : 'bg-bg',
        )}
      >
        <div className="relative" style={{ height: virtual.getTotalSize() }}>
          {items.map(({ index, start, key }) => {
            const card = column.getCard(index)
            return (
              <div
                key={key}
                ref={virtual.measureElement}
                data-index={index}
                className="absolute inset-x-0 top-0"
                style={{ transform: `translateY(${start}px)` }}
              >
                {card === undefined ? (
                  <div className="rounded-control bg-surface-1 p-3" style={{ height: cardHeight }}>
                    <Skeleton />
                  </div>
                ) : (
                  <Card {...props} card={card} index={index} />
                )}
              </div>
            )
          })}
          {slot !== null && (
            <span
              aria-hidden="true"
              className="absolute inset-x-0 h-0.5 rounded-full bg-accent"
              style={{ top: slotTop() - 1 }}
            />
          )}
        </div>
      </div>
    </section>
  )
}

function Card<T>(props: ColumnProps<T> & { card: T; index: number }) {
  const { card, index, column, cardKey, renderCard, onOpen, focusIndex, onFocusCard, heldKey } = props
  const key = cardKey(card)
  const data = { column: column.id, index, card }
  const drag = useDraggable({ id: `card:${key}`, data })
  const over = useDroppable({ id: `card:${key}`, data })
  const ref: Ref<HTMLDivElement> = (element) => {
    drag.setNodeRef(element)
    over.setNodeRef(element)
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a card holds more than a button's text; the board handles its keys
    // biome-ignore lint/a11y/useKeyWithClickEvents: as above
    <div
      ref={ref}
      role="button"
      data-card={key}
      aria-roledescription="card"
      tabIndex={focusIndex === index ? 0 : -1}
      {...drag.listeners}
      onFocus={() => onFocusCard(index)}
      onClick={() => onOpen(card)}
      className={cx(
        'rounded-control border border-line bg-surface-1 px-3 py-2 shadow-control select-none dark:bg-surface-2 hover:border-line-strong',
        heldKey === key && 'outline-2 outline-dashed outline-focus',
        drag.isDragging && 'opacity-45',
      )}
    >
      {renderCard(card)}
    </div>
  )
}
