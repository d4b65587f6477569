import { useCallback, useRef, useState } from 'react'
import { ApiError } from './api.ts'

export interface Submit {
  readonly busy: boolean
  /** The problem of the last try; cleared when another begins. */
  readonly error: ApiError | undefined
  /** What is wrong with a field, if anything. */
  readonly fieldError: (name: string) => string | undefined
  readonly submit: () => void
}

/** Runs a form's action once at a time and keeps its problem. */
export function useSubmit(action: () => Promise<void>): Submit {
  const [busy, setBusy] = useState(false)
  const [error, setError] = useState<ApiError>()
  const running = useRef(false)
  const submit = useCallback(() => {
    if (running.current) return
    running.current = true
    setBusy(true)
    setError(undefined)
    action()
      .catch((problem: unknown) => {
        const message = problem instanceof Error ? problem.message : String(problem)
        setError(problem instanceof ApiError ? problem : new ApiError('unknown', message))
      })
      .finally(() => {
        running.current = false
        setBusy(false)
      })
  }, [action])
  return { busy, error, fieldError: (name) => error?.fields[name], submit }
}
