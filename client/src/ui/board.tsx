import {
  DndContext,
  type DragMoveEvent,
  DragOverlay,
  MouseSensor,
  pointerWithin,
  TouchSensor,
  useSensor,
  useSensors,
} from '@dnd-kit/core'
import { type KeyboardEvent, type ReactNode, useEffect, useRef, useState } from 'react'
import { BoardColumnView } from './board-column.tsx'
import { usePhone } from './media.ts'

export type BoardColumn<T> = {
  id: string
  title: string
  /** A status shape. */
  leading?: ReactNode
  count: number
  /** Undefined: not read yet. */
  getCard: (index: number) => T | undefined
  /** At the column's head: add a card. */
  action?: ReactNode
}

export type BoardMove = {
  key: string
  from: string
  to: string
  /** The card it now stands before; null at the end. */
  before: string | null
}

export type BoardProps<T> = {
  label: string
  columns: readonly BoardColumn<T>[]
  cardKey: (card: T) => string
  /** The card's name in announcements while it is moved. */
  cardLabel: (card: T) => string
  renderCard: (card: T) => ReactNode
  onMove: (move: BoardMove) => void
  onOpen: (card: T) => void
  /** Px, a first guess; real heights are measured. */
  cardHeight?: number
  /** The window looked at in a column. */
  onRange?: ((column: string, first: number, last: number) => void) | undefined
}

/** A place between cards: before `index` of a column. */
export type Slot = { column: string; index: number }
export type Place = { column: string; index: number }

/**
 * Columns of cards, each column virtual. By pointer: drag; a line shows where the card would land, nothing shuffles.
 * By keyboard: arrows (or H J K L) move, Enter opens, Space lifts, arrows choose the place, Space drops, Esc puts back.
 */
export function Board<T>(props: BoardProps<T>) {
  const { label, columns, cardKey, cardLabel, renderCard, onMove, onOpen, cardHeight = 88, onRange } = props
  const phone = usePhone()
  const root = useRef<HTMLDivElement>(null)
  const [focus, setFocus] = useState<Place | null>(null)
  const [wantFocus, setWantFocus] = useState<string | null>(null)
  const [lifted, setLifted] = useState<{ key: string; from: Place } | null>(null)
  const [dragged, setDragged] = useState<{ key: string; card: T; from: Place } | null>(null)
  const [slot, setSlot] = useState<Slot | null>(null)
  const [spoken, setSpoken] = useState('')
  const sensors = useSensors(
    useSensor(MouseSensor, { activationConstraint: { distance: 5 } }),
    useSensor(TouchSensor, { activationConstraint: { delay: 220, tolerance: 8 } }),
  )

  const columnAt = (id: string) => columns.find((column) => column.id === id)
  const keyAt = ({ column, index }: Place): string | null => {
    const card = columnAt(column)?.getCard(index)
    return card === undefined ? null : cardKey(card)
  }
  const current: Place | null =
    focus && (columnAt(focus.column)?.count ?? 0) > focus.index
      ? focus
      : (columns.filter((c) => c.count > 0).map((c) => ({ column: c.id, index: 0 }))[0] ?? null)

  // A card that was just moved or moved to by keyboard gets the focus as soon as it is drawn.
  useEffect(() => {
    if (!wantFocus) return
    const card = root.current?.querySelector<HTMLElement>(`[data-card="${CSS.escape(wantFocus)}"]`)
    if (!card) return
    setWantFocus(null)
    if (document.activeElement !== card) card.focus()
  })

  const drop = (key: string, from: Place, to: Slot | null) => {
    if (!to || (to.column === from.column && (to.index === from.index || to.index === from.index + 1))) return
    onMove({ key, from: from.column, to: to.column, before: keyAt(to) })
  }
  const beside = (column: string, by: number): BoardColumn<T> | undefined => {
    const at = columns.findIndex((c) => c.id === column)
    return columns[at + by]
  }
  const focusCard = (place: Place) => {
    setFocus(place)
    setWantFocus(keyAt(place))
  }

  const moveFocus = (dx: number, dy: number) => {
    if (!current) return
    if (dy !== 0) {
      const index = current.index + dy
      if (index >= 0 && index < (columnAt(current.column)?.count ?? 0)) focusCard({ column: current.column, index })
      return
    }
    let next = beside(current.column, dx)
    while (next && next.count === 0) next = beside(next.id, dx)
    if (next) focusCard({ column: next.id, index: Math.min(current.index, next.count - 1) })
  }
  const moveSlot = (dx: number, dy: number) => {
    if (!slot || !lifted) return
    const column = dx === 0 ? columnAt(slot.column) : beside(slot.column, dx)
    if (!column) return
    // Before and after its own place are the same: step over.
    let index = slot.index + dy
    const own = column.id === lifted.from.column && (index === lifted.from.index || index === lifted.from.index + 1)
    if (own && dy !== 0)
      index = dy > 0 ? lifted.from.index + 2 : lifted.from.index - (slot.index > lifted.from.index ? 0 : 1)
    index = Math.max(0, Math.min(column.count, index))
    setSlot({ column: column.id, index })
    setSpoken(`${column.title}, place ${index + 1} of ${column.count + (column.id === lifted.from.column ? 0 : 1)}`)
  }

  const onKeyDown = (event: KeyboardEvent) => {
    const card = current && columnAt(current.column)?.getCard(current.index)
    if (
      !(event.target instanceof HTMLElement) ||
      !event.target.dataset.card ||
      !current ||
      card === undefined ||
      card === null
    )
      return
    if (event.metaKey || event.ctrlKey || event.altKey) return
    const arrows: Record<string, [number, number]> = {
      arrowleft: [-1, 0],
      h: [-1, 0],
      arrowright: [1, 0],
      l: [1, 0],
      arrowup: [0, -1],
      k: [0, -1],
      arrowdown: [0, 1],
      j: [0, 1],
    } // prettier: a table
    const arrow = arrows[event.key.toLowerCase()]
    if (arrow) {
      if (lifted) moveSlot(...arrow)
      else moveFocus(...arrow)
    } else if (event.key === ' ' || (event.key === 'Enter' && lifted)) {
      if (lifted) {
        drop(lifted.key, lifted.from, slot)
        setSpoken('Dropped.')
        setWantFocus(lifted.key)
        setLifted(null)
        setSlot(null)
      } else {
        setLifted({ key: cardKey(card), from: current })
        setSlot({ column: current.column, index: current.index })
        setSpoken(`Lifted ${cardLabel(card)}. Arrows choose a place, Space drops, Escape puts it back.`)
      }
    } else if (event.key === 'Escape' && lifted) {
      setLifted(null)
      setSlot(null)
      setSpoken('Put back.')
    } else if (event.key === 'Enter') onOpen(card)
    else return
    event.preventDefault()
    event.stopPropagation()
  }

  const onDragMove = ({ active, over, activatorEvent, delta }: DragMoveEvent) => {
    const place = over?.data.current as { column: string; index: number | null } | undefined
    if (!over || !place) return setSlot(null)
    const column = columnAt(place.column)
    if (place.index === null) return setSlot(column ? { column: column.id, index: column.count } : null)
    const start =
      activatorEvent instanceof MouseEvent ? activatorEvent.clientY : (active.rect.current.initial?.top ?? 0)
    const lower = start + delta.y > over.rect.top + over.rect.height / 2
    setSlot({ column: place.column, index: place.index + (lower ? 1 : 0) })
  }

  return (
    <DndContext
      sensors={sensors}
      collisionDetection={(args) => {
        const hits = pointerWithin(args)
        return [...hits.filter((hit) => String(hit.id).startsWith('card:')), ...hits]
      }}
      onDragStart={({ active }) => {
        const data = active.data.current as { card: T; column: string; index: number } | undefined
        if (data)
          setDragged({ key: cardKey(data.card), card: data.card, from: { column: data.column, index: data.index } })
      }}
      onDragMove={onDragMove}
      // The last move of a quick drag still names the place before: the new place comes as "over".
      onDragOver={onDragMove}
      onDragEnd={() => {
        if (dragged) drop(dragged.key, dragged.from, slot)
        setDragged(null)
        setSlot(null)
      }}
      onDragCancel={() => {
        setDragged(null)
        setSlot(null)
      }}
    >
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset is for forms */}
      <div
        ref={root}
        role="group"
        aria-label={label}
        onKeyDown={onKeyDown}
        className={
          phone
            ? 'flex h-full snap-x snap-mandatory gap-2 overflow-x-auto px-3'
            : 'flex h-full gap-2 overflow-x-auto px-3'
        }
      >
        {columns.map((column) => (
          <BoardColumnView
            key={column.id}
            column={column}
            cardHeight={cardHeight}
            cardKey={cardKey}
            renderCard={renderCard}
            onOpen={onOpen}
            onRange={onRange}
            focusIndex={current?.column === column.id ? current.index : null}
            onFocusCard={(index) => setFocus({ column: column.id, index })}
            slot={slot?.column === column.id && (dragged || lifted) ? slot.index : null}
            heldKey={dragged?.key ?? lifted?.key ?? null}
          />
        ))}
      </div>
      <p aria-live="assertive" className="sr-only">
        {spoken}
      </p>
      <DragOverlay dropAnimation={null}>
        {dragged && <div className="float cursor-grabbing rounded-control px-3 py-2">{renderCard(dragged.card)}</div>}
      </DragOverlay>
    </DndContext>
  )
}
