/**
 * A text field that saves itself: a moment after the last key, on leaving the field, the page or the tab. Every key is kept in this
 * tab's storage until the database has it, so that a crash loses nothing.
 */
import { useEffect, useReducer, useRef } from 'react'
import { beginDraft, type Draft, isDirty, mustSave, reduceDraft } from './draft.ts'

const PAUSE_MS = 600

export interface DraftField {
  readonly draft: Draft
  readonly type: (text: string) => void
  /** Saves now what is to be saved. */
  readonly flush: () => void
  readonly keepMine: () => void
  readonly takeTheirs: () => void
}

/** @param name of the field, unique in the workspace. @param value what the database holds. @param save rejects when it could not be saved. */
export function useDraft(
  name: string,
  value: string,
  save: (text: string) => Promise<void>,
  onError: (error: unknown) => void,
): DraftField {
  const [draft, dispatch] = useReducer(reduceDraft, undefined, () => beginDraft(value, readKept(name)))
  const latest = useRef({ draft, save, onError })
  latest.current = { draft, save, onError }
  const running = useRef(false)

  const flush = useRef(() => {
    const { draft, save, onError } = latest.current
    if (!mustSave(draft) || running.current) return
    running.current = true
    dispatch({ type: 'saving' })
    save(draft.text)
      .then(
        () => {
          if (latest.current.draft.text === draft.text) forget(name)
          dispatch({ type: 'saved' })
        },
        (error: unknown) => {
          dispatch({ type: 'failed' })
          onError(error)
        },
      )
      .finally(() => {
        running.current = false
      })
  }).current

  useEffect(() => dispatch({ type: 'arrived', value }), [value])
  useEffect(() => {
    if (isDirty(draft)) keep(name, draft)
    else if (draft.theirs === undefined) forget(name)
    if (!mustSave(draft)) return
    const timer = setTimeout(flush, PAUSE_MS)
    return () => clearTimeout(timer)
  }, [draft, name, flush])
  useEffect(() => {
    const leave = () => flush()
    window.addEventListener('pagehide', leave)
    document.addEventListener('visibilitychange', leave)
    return () => {
      window.removeEventListener('pagehide', leave)
      document.removeEventListener('visibilitychange', leave)
      flush()
    }
  }, [flush])

  return {
    draft,
    type: (text) => dispatch({ type: 'typed', text }),
    flush,
    keepMine: () => dispatch({ type: 'keep-mine' }),
    takeTheirs: () => dispatch({ type: 'take-theirs' }),
  }
}

const storageKey = (name: string): string => `hq.draft.${name}`

export function readKept(name: string): { base: string; text: string } | undefined {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(storageKey(name)) ?? 'null')
    if (typeof kept !== 'object' || kept === null || !('text' in kept) || !('base' in kept)) return undefined
    return typeof kept.text === 'string' && typeof kept.base === 'string'
      ? { base: kept.base, text: kept.text }
      : undefined
  } catch {
    // Storage blocked or another program's text: there is nothing kept.
    return undefined
  }
}

export function keep(name: string, { base, text }: { readonly base: string; readonly text: string }): void {
  try {
    localStorage.setItem(storageKey(name), JSON.stringify({ base, text }))
  } catch {
    // Storage full or blocked: the text is still in the field, and is saved in a moment.
  }
}

export function forget(name: string): void {
  try {
    localStorage.removeItem(storageKey(name))
  } catch {
    // Storage blocked: nothing was kept.
  }
}
