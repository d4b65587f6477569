/**
 * Text that is being written while the same text may change elsewhere. Pure; `use-draft.ts` adds time and storage.
 *
 * T1 What was typed is never replaced without a person's say: a change from elsewhere is set beside it (`theirs`).
 * T2 While nothing is typed, the newest value is shown.
 * T3 The echo of one's own save is not a change from elsewhere.
 */
export interface Draft {
  /** The stored value that the text began from. */
  readonly base: string
  readonly text: string
  /** What is on its way into the database. */
  readonly saving: string | undefined
  /** What somebody else has made of it meanwhile. */
  readonly theirs: string | undefined
}

export type DraftEvent =
  | { readonly type: 'typed'; readonly text: string }
  | { readonly type: 'arrived'; readonly value: string }
  | { readonly type: 'saving' }
  | { readonly type: 'saved' }
  | { readonly type: 'failed' }
  | { readonly type: 'keep-mine' }
  | { readonly type: 'take-theirs' }

/** `kept`: text found again after a crash, with what it began from. */
export function beginDraft(value: string, kept?: { readonly base: string; readonly text: string }): Draft {
  if (!kept || kept.text === value) return { base: value, text: value, saving: undefined, theirs: undefined }
  return { base: kept.base, text: kept.text, saving: undefined, theirs: kept.base === value ? undefined : value }
}

export const isDirty = (draft: Draft): boolean => draft.text !== draft.base
export const mustSave = (draft: Draft): boolean =>
  isDirty(draft) && draft.theirs === undefined && draft.saving === undefined

export function reduceDraft(draft: Draft, event: DraftEvent): Draft {
  switch (event.type) {
    case 'typed':
      return { ...draft, text: event.text }
    case 'arrived': {
      const { value } = event
      if (value === draft.base) return draft.theirs === undefined ? draft : { ...draft, theirs: undefined }
      if (value === draft.text) return { ...draft, base: value, theirs: undefined }
      if (value === draft.saving) return { ...draft, base: value }
      if (!isDirty(draft)) return { ...draft, base: value, text: value, theirs: undefined }
      return { ...draft, theirs: value }
    }
    case 'saving':
      return { ...draft, saving: draft.text }
    case 'saved':
      return draft.saving === undefined ? draft : { ...draft, base: draft.saving, saving: undefined }
    case 'failed':
      return { ...draft, saving: undefined }
    case 'keep-mine':
      return draft.theirs === undefined ? draft : { ...draft, base: draft.theirs, theirs: undefined }
    case 'take-theirs':
      return draft.theirs === undefined
        ? draft
        : { ...draft, base: draft.theirs, text: draft.theirs, theirs: undefined }
  }
}
