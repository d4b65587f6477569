/** What is wrong with this gateway right now. */
import type { Problem, Problems } from './service.ts'

export function createProblems(): Problems {
  const present = new Map<string, Problem>()
  const listeners = new Set<() => void>()
  const changed = (): void => {
    for (const listener of [...listeners]) listener()
  }
  return {
    report: (code, message) => {
      if (present.get(code)?.message === message) return
      present.set(code, { code, message })
      changed()
    },
    clear: (code) => {
      if (present.delete(code)) changed()
    },
    list: () => [...present.values()],
    onChange: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
  }
}
