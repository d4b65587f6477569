import type { LucideIcon } from 'lucide-react'
import type { ReactNode } from 'react'
import type { MenuEntry } from '../menu.tsx'
import type { SyncPillProps } from './sync-pill.tsx'

/** What the shell shows around a screen. All of it comes from the owner; the shell knows no data. */
export type NavItem = {
  id: string
  label: string
  /** An address; it counts as current for everything below it (except `/`). */
  to: string
  icon?: LucideIcon | undefined
  /** In place of an icon: an agent's tile. */
  leading?: ReactNode
  count?: number | undefined
  /** What the count means, spoken: "3 approvals waiting". */
  countLabel?: string | undefined
  /** The count asks for a person. */
  urgent?: boolean | undefined
  /** A sequence, `g t`. Registered by the shell. */
  shortcut?: string | undefined
}

export type NavGroup = { id: string; label?: string | undefined; items: readonly NavItem[] }

export type ShellProps = {
  workspace: { name: string; menu: readonly MenuEntry[] }
  person: { id: string; name: string; menu: readonly MenuEntry[] }
  groups: readonly NavGroup[]
  /** Ids for the phone's bottom bar, at most four; everything else is under More. */
  phoneItems: readonly string[]
  sync: SyncPillProps
  /** ⌘K. */
  onSearch: () => void
  /** C. */
  onCreate?: (() => void) | undefined
  /** Across the top: demo model, update ready. */
  banner?: ReactNode
  children: ReactNode
}
