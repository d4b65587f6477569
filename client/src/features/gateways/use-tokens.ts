/** The registration tokens of this workspace, from the server; they are no rows, because nobody but an admin may know of them. */
import { useCallback, useEffect, useRef, useState } from 'react'
import { useSyncStatus } from '../../replica/hooks.ts'
import { request } from '../../session/api.ts'
import type { ListedToken } from './gateway-state.ts'

export interface Tokens {
  /** Undefined: not heard yet. */
  readonly list: readonly ListedToken[] | undefined
  /** Why the list may be old. */
  readonly problem: string | null
  readonly reload: () => Promise<void>
  /** One that was made just now; an answer that is still under way does not know it. */
  readonly add: (token: ListedToken) => void
}

/** @param cue asked anew whenever it changes: which gateways are here and heard of, because one that comes has used a token */
export function useTokens(enabled: boolean, cue: string): Tokens {
  const online = useSyncStatus().connection === 'online'
  const [list, setList] = useState<readonly ListedToken[]>()
  const [problem, setProblem] = useState<string | null>(null)
  const asked = useRef(0)
  const reload = useCallback(async () => {
    const turn = ++asked.current
    try {
      const answer = (await request('GET', '/v1/gateways/tokens')) as { tokens: ListedToken[] }
      if (turn !== asked.current) return
      setList(answer.tokens)
      setProblem(null)
    } catch (error) {
      if (turn === asked.current) setProblem(words(error))
    }
  }, [])
  const add = useCallback((token: ListedToken) => {
    asked.current++
    setList((list = []) => [token, ...list])
  }, [])
  // biome-ignore lint/correctness/useExhaustiveDependencies: `cue` is not read, it says when
  useEffect(() => {
    if (enabled && online) void reload()
  }, [enabled, online, cue, reload])
  return { list, problem, reload, add }
}

export const words = (error: unknown): string => (error instanceof Error ? error.message : String(error))
