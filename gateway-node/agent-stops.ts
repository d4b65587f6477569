/** Lets one part of a gateway end an agent's work that another part does. */
import type { AgentStopCode, AgentStops } from './service.ts'

export function createAgentStops(): AgentStops {
  const listeners = new Set<(agentId: string, reason: string, code?: AgentStopCode) => Promise<void>>()
  return {
    onStop: (listener) => {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    stop: async (agentId, reason, code) => {
      await Promise.all([...listeners].map((listener) => listener(agentId, reason, code)))
    },
  }
}
