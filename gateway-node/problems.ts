/** What is wrong with this gateway right now. `onChange` tells the heartbeat, which publishes it. */
import type { Problem, Problems } from './service.ts'

export function createProblems(onChange: () => void = () => undefined): Problems {
  const present = new Map<string, Problem>()
  return {
    report: (code, message) => {
      if (present.get(code)?.message === message) return
      present.set(code, { code, message })
      onChange()
    },
    clear: (code) => {
      if (present.delete(code)) onChange()
    },
    list: () => [...present.values()],
  }
}
