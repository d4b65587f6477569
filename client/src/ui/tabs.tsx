import { Tabs as Radix } from 'radix-ui'
import { type ReactNode, useEffect, useRef } from 'react'
import { cx } from './cx.ts'

export type Tab<V extends string> = { value: V; label: string; count?: number | undefined; icon?: ReactNode }

export type TabsProps<V extends string> = {
  label: string
  value: V
  onValueChange: (value: V) => void
  tabs: readonly Tab<V>[]
  /** `line` under a header; `segment` for a small choice of views. */
  look?: 'line' | 'segment'
  /** At the right end of the row. */
  trailing?: ReactNode
  /** The chosen tab's content; leave out when a route shows it. */
  children?: ReactNode
  className?: string | undefined
}

/** Tabs. Arrow keys move; the row scrolls sideways when it must. */
export function Tabs<V extends string>(props: TabsProps<V>) {
  const { label, value, onValueChange, tabs, look = 'line', trailing, children, className } = props
  const list = useRef<HTMLDivElement>(null)
  // Also of a page that opens with a tab that the row has no room for. Only the row scrolls, not the page.
  useEffect(() => {
    const row = list.current?.getBoundingClientRect()
    const chosen = list.current
      ?.querySelector(`[role=tab][id$="-trigger-${CSS.escape(value)}"]`)
      ?.getBoundingClientRect()
    if (!row || !chosen) return
    const over = Math.max(0, chosen.right - row.right) || Math.min(0, chosen.left - row.left)
    if (over !== 0) list.current?.scrollBy({ left: over })
  }, [value])
  return (
    <Radix.Root value={value} onValueChange={(next) => onValueChange(next as V)} className={cx('min-w-0', className)}>
      <div className={cx('flex items-center gap-3', look === 'line' && 'border-b border-line')}>
        <Radix.List
          ref={list}
          aria-label={label}
          className={cx(
            'flex min-w-0 overflow-x-auto [scrollbar-width:none]',
            look === 'line' ? '-mb-px gap-4 px-px' : 'gap-0.5 rounded-control bg-surface-2 p-0.5',
          )}
        >
          {tabs.map((tab) => (
            <Radix.Trigger
              key={tab.value}
              value={tab.value}
              // Without a panel of its own there is nothing to control.
              {...(children === undefined ? { 'aria-controls': undefined } : {})}
              className={cx(
                'flex shrink-0 items-center gap-1.5 font-medium whitespace-nowrap text-text-3 transition-colors select-none hover:text-text-1 focus-visible:-outline-offset-2',
                'data-[state=active]:text-text-1',
                look === 'line'
                  ? 'h-9 border-b-2 border-transparent px-px data-[state=active]:border-accent touch:h-11'
                  : 'h-6 rounded-sm px-2 text-xs data-[state=active]:bg-float data-[state=active]:shadow-control touch:h-9',
              )}
            >
              {tab.icon}
              {tab.label}
              {tab.count !== undefined && <span className="nums text-xs font-normal text-text-3">{tab.count}</span>}
            </Radix.Trigger>
          ))}
        </Radix.List>
        {trailing && <div className="ml-auto flex items-center gap-1">{trailing}</div>}
      </div>
      {children !== undefined && (
        <Radix.Content value={value} className="outline-none">
          {children}
        </Radix.Content>
      )}
    </Radix.Root>
  )
}
