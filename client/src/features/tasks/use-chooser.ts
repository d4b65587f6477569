/** Which palette of choices is open, for whom. */
import { useCallback, useState } from 'react'
import type { ChoiceKind } from './choices.tsx'

export interface Chosen {
  readonly kind: ChoiceKind
  readonly ids: readonly string[]
  readonly name: string
}

export function useChooser() {
  const [chosen, setChosen] = useState<Chosen>()
  const choose = useCallback(
    (kind: ChoiceKind, ids: readonly string[], name: string) => setChosen({ kind, ids, name }),
    [],
  )
  const close = useCallback(() => setChosen(undefined), [])
  return { chosen, choose, close }
}
