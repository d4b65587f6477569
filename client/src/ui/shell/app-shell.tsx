import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { cx } from '../cx.ts'
import { useShortcuts } from '../keyboard.ts'
import { usePhone } from '../media.ts'
import { usePersisted } from '../persisted.ts'
import { Sheet } from '../sheet.tsx'
import { toast } from '../toast.tsx'
import { undoLast } from '../undo.ts'
import { BottomBar } from './bottom-bar.tsx'
import { KeyboardHelp } from './keyboard-help.tsx'
import type { ShellProps } from './nav.ts'
import { Sidebar } from './sidebar.tsx'

/**
 * The frame of the app. Sidebar (⌘B), a bottom bar on a phone, the global keys (⌘K, C, ?, ⌘Z, G then a letter). Needs
 * `TooltipProvider` above it and one `Toaster` in the app; its children are a `Page`.
 */
export function AppShell(props: ShellProps) {
  const { groups, phoneItems, onSearch, onCreate, banner, children } = props
  const navigate = useNavigate()
  const phone = usePhone()
  const [sidebar, setSidebar] = usePersisted<'open' | 'closed'>('sidebar', 'open')
  const [help, setHelp] = useState(false)
  const [more, setMore] = useState(false)
  const closed = sidebar === 'closed'
  const toggle = () => setSidebar(closed ? 'open' : 'closed')
  const items = groups.flatMap((group) => group.items)

  const undo = async () => {
    try {
      const label = await undoLast()
      toast(
        label === null ? { title: 'Nothing to undo', id: 'undo' } : { title: 'Undone', description: label, id: 'undo' },
      )
    } catch (error) {
      toast({
        title: 'Could not undo that',
        description: error instanceof Error ? error.message : String(error),
        meaning: 'danger',
        id: 'undo',
      })
    }
  }
  useShortcuts([
    { keys: 'mod+k', label: 'Find or do anything', group: 'Everywhere', run: onSearch, everywhere: true },
    ...(onCreate ? [{ keys: 'c', label: 'Create', group: 'Everywhere', run: onCreate }] : []),
    { keys: 'mod+b', label: 'Open or close the sidebar', group: 'Everywhere', run: toggle },
    { keys: 'mod+z', label: 'Undo', group: 'Everywhere', run: () => void undo() },
    { keys: '?', label: 'This help', group: 'Everywhere', run: () => setHelp(true) },
    ...items.flatMap((item) =>
      item.shortcut
        ? [{ keys: item.shortcut, label: item.label, group: 'Go to', run: () => void navigate({ to: item.to }) }]
        : [],
    ),
  ])

  return (
    <div className="flex h-dvh flex-col overflow-hidden bg-bg">
      <a
        href="#content"
        className="absolute top-2 left-2 z-60 -translate-y-16 rounded-control bg-accent px-3 py-1.5 text-on-accent focus:translate-y-0"
      >
        Skip to content
      </a>
      {banner}
      <div className="flex min-h-0 flex-1">
        {!phone && (
          <div className={cx('shrink-0', closed ? 'w-(--sidebar-closed)' : 'w-(--sidebar)')}>
            <Sidebar {...props} closed={closed} onToggle={toggle} />
          </div>
        )}
        <div
          id="content"
          tabIndex={-1}
          className={cx('flex min-w-0 flex-1 flex-col bg-surface-1 outline-none', !phone && 'border-l border-line')}
        >
          {children}
        </div>
      </div>
      {phone && (
        <BottomBar
          items={phoneItems.flatMap((id) => items.filter((item) => item.id === id))}
          sync={props.sync}
          onMore={() => setMore(true)}
        />
      )}
      <Sheet open={more && phone} onOpenChange={setMore} title="Menu" hideTitle side="left">
        <Sidebar {...props} closed={false} onNavigate={() => setMore(false)} />
      </Sheet>
      <KeyboardHelp open={help} onOpenChange={setHelp} />
    </div>
  )
}
