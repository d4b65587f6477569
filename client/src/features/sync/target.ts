/** The entry of the sync page that an address names (`/sync#change-12`, `/sync#conflict-…`): brought into view, and with the focus on it. */
import { useLocation } from '@tanstack/react-router'
import { useEffect } from 'react'
import { useRow } from '../../replica/hooks.ts'

export interface Target {
  readonly seq: number | undefined
  readonly conflict: string | undefined
}

/** Pure. */
export function targetOf(hash: string): Target {
  const seq = /^change-(\d{1,15})$/.exec(hash)?.[1]
  const conflict = /^conflict-([0-9a-f-]{36})$/.exec(hash)?.[1]
  return { seq: seq === undefined ? undefined : Number(seq), conflict }
}

const LOOK_FOR_MS = 10_000

export function useTarget(): Target & { readonly gone: boolean } {
  const hash = useLocation({ select: (location) => location.hash })
  const target = targetOf(hash)
  useEffect(() => {
    if (hash === '') return
    const find = (): boolean => {
      const entry = document.getElementById(hash)
      if (!entry) return false
      entry.scrollIntoView({ block: 'center' })
      entry.focus({ preventScroll: true })
      return true
    }
    if (find()) return
    const observer = new MutationObserver(() => find() && observer.disconnect())
    observer.observe(document.body, { childList: true, subtree: true })
    const timer = setTimeout(() => observer.disconnect(), LOOK_FOR_MS)
    return () => {
      clearTimeout(timer)
      observer.disconnect()
    }
  }, [hash])
  const known = useRow('select 1 from sync.outbox where seq = $1', [target.seq ?? 0], {
    tables: ['sync'],
    enabled: target.seq !== undefined,
  })
  return { ...target, gone: target.seq !== undefined && known.ready && known.row === undefined }
}
