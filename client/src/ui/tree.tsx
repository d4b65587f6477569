import { ChevronRight } from 'lucide-react'
import { type KeyboardEvent, type ReactNode, useRef, useState } from 'react'
import { cx } from './cx.ts'

export type TreeNode = {
  id: string
  label: string
  icon?: ReactNode
  /** At the right end: a size, a status. */
  trailing?: ReactNode
  /** An empty list is a folder without contents; undefined is a leaf. */
  children?: readonly TreeNode[] | undefined
}

export type TreeProps = {
  label: string
  nodes: readonly TreeNode[]
  expanded: ReadonlySet<string>
  onExpandedChange: (expanded: ReadonlySet<string>) => void
  selected: string | null
  onSelect: (node: TreeNode) => void
  className?: string | undefined
}

type Flat = { node: TreeNode; level: number; position: number; siblings: number; parent: string | null }

function flatten(
  nodes: readonly TreeNode[],
  expanded: ReadonlySet<string>,
  level = 1,
  parent: string | null = null,
): Flat[] {
  return nodes.flatMap((node, i) => [
    { node, level, position: i + 1, siblings: nodes.length, parent },
    ...(node.children && expanded.has(node.id) ? flatten(node.children, expanded, level + 1, node.id) : []),
  ])
}

/** Files and pages. Arrows move, open and close; letters jump; Enter selects. */
export function Tree({ label, nodes, expanded, onExpandedChange, selected, onSelect, className }: TreeProps) {
  const list = useRef<HTMLDivElement>(null)
  const rows = flatten(nodes, expanded)
  const [focused, setFocused] = useState<string | null>(null)
  const current = rows.some((row) => row.node.id === focused)
    ? focused
    : (rows.find((r) => r.node.id === selected)?.node.id ?? rows[0]?.node.id)

  const setOpen = (id: string, open: boolean) => {
    const next = new Set(expanded)
    if (open) next.add(id)
    else next.delete(id)
    onExpandedChange(next)
  }
  const focus = (id: string | null | undefined) => {
    if (!id) return
    setFocused(id)
    list.current?.querySelector<HTMLElement>(`[data-node="${CSS.escape(id)}"]`)?.focus()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const at = rows.findIndex((row) => row.node.id === current)
    const row = rows[at]
    if (!row || event.metaKey || event.ctrlKey || event.altKey) return
    const isOpen = expanded.has(row.node.id)
    if (event.key === 'ArrowDown') focus(rows[at + 1]?.node.id)
    else if (event.key === 'ArrowUp') focus(rows[at - 1]?.node.id)
    else if (event.key === 'Home') focus(rows[0]?.node.id)
    else if (event.key === 'End') focus(rows.at(-1)?.node.id)
    else if (event.key === 'ArrowRight') {
      if (!row.node.children) return
      if (!isOpen) setOpen(row.node.id, true)
      else focus(row.node.children[0]?.id)
    } else if (event.key === 'ArrowLeft') {
      if (row.node.children && isOpen) setOpen(row.node.id, false)
      else focus(row.parent)
    } else if (event.key === 'Enter' || event.key === ' ') {
      if (row.node.children) setOpen(row.node.id, !isOpen)
      onSelect(row.node)
    } else if (event.key.length === 1) {
      const letter = event.key.toLowerCase()
      const found = [...rows.slice(at + 1), ...rows.slice(0, at)].find((r) =>
        r.node.label.toLowerCase().startsWith(letter),
      )
      focus(found?.node.id)
    } else return
    event.preventDefault()
  }
  return (
    <div ref={list} role="tree" aria-label={label} onKeyDown={onKeyDown} className={className}>
      {rows.map(({ node, level, position, siblings }) => {
        const folder = node.children !== undefined
        const isOpen = folder && expanded.has(node.id)
        return (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the tree handles the keys
          <div
            key={node.id}
            role="treeitem"
            data-node={node.id}
            aria-level={level}
            aria-posinset={position}
            aria-setsize={siblings}
            aria-selected={node.id === selected}
            aria-expanded={folder ? isOpen : undefined}
            tabIndex={node.id === current ? 0 : -1}
            onFocus={() => setFocused(node.id)}
            onClick={() => {
              if (folder) setOpen(node.id, !isOpen)
              onSelect(node)
            }}
            style={{ paddingLeft: (level - 1) * 16 + 4 }}
            className={cx(
              'flex h-7 items-center gap-1.5 rounded-control pr-2 select-none touch:h-11 focus-visible:-outline-offset-2',
              node.id === selected ? 'bg-surface-3 font-medium' : 'text-text-2 hover:bg-surface-2 hover:text-text-1',
            )}
          >
            <ChevronRight
              aria-hidden="true"
              className={cx(
                'size-3.5 shrink-0 text-text-3 transition-transform',
                !folder && 'invisible',
                isOpen && 'rotate-90',
              )}
            />
            {node.icon && (
              <span className="grid shrink-0 place-items-center text-text-3 [&_svg]:size-4">{node.icon}</span>
            )}
            <span className="min-w-0 flex-1 truncate">{node.label}</span>
            {node.trailing && <span className="nums shrink-0 text-xs text-text-3">{node.trailing}</span>}
          </div>
        )
      })}
    </div>
  )
}
