/**
 * What the parts of a gateway give each other. `daemon.ts` makes one `GatewayContext` and hands it to each part's factory:
 *
 *   gateway-node/runtime/registry.ts      createRuntimes(context)                → RuntimeRegistry
 *   gateway-node/runner/runner.ts         createRunner(context, runtimes)        → Service
 *   gateway-node/dispatcher/dispatcher.ts createDispatcher(context, {runtimes})  → Service
 *   gateway-node/local-api/server.ts      createLocalApi(context)                → Service
 *
 * Parts know each other only through this file.
 */
import type { Replica } from '@hq/shared/sync/contract.ts'
import type { Workspaces } from './workspaces/contract.ts'

/**
 * `start` returns when the part is ready; a part that cannot work reports a problem and lets the others go on, it throws only when the gateway as a
 * whole must not run. `stop` ends everything the part began, waits for it, and may be called twice.
 */
export interface Service {
  start(): Promise<void>
  stop(): Promise<void>
}

export type LogLevel = 'debug' | 'info' | 'warn' | 'error'

/** One structured line. Never give it a secret; names of fields that look like one are masked. */
export type Log = (level: LogLevel, message: string, detail?: Readonly<Record<string, unknown>>) => void

/** Something wrong with this gateway that a person should see (`gateways.meta.problems`). */
export interface Problem {
  readonly code: string
  /** What, why, what next. */
  readonly message: string
}

export interface Problems {
  /** Reported until cleared; the same code again replaces the message. Published with the next heartbeat, which comes at once. */
  report(code: string, message: string): void
  clear(code: string): void
  list(): readonly Problem[]
  /** Returns the end of the subscription. */
  onChange(listener: () => void): () => void
}

export interface ModelInfo {
  readonly provider: string
  readonly model: string
  /** True: the built-in demo model, no real one. */
  readonly demo: boolean
}

/** What can run agents here. */
export interface RuntimeRegistry {
  /** Names of the runtimes that can be used now, such as `builtin`. */
  runtimes(): readonly string[]
  /** Asks the configured providers; those that don't answer within a few seconds are left out and reported as problems. */
  models(signal?: AbortSignal): Promise<readonly ModelInfo[]>
  /** Tries the connections that people made for this gateway and reports how they are. */
  check?(signal?: AbortSignal): Promise<void>
  /** A runtime that is installed on demand and runs as a process of its own; undefined when this one doesn't. */
  managed?(name: string): ManagedRuntime | undefined
}

/** Both throw a sentence for people. */
export interface ManagedRuntime {
  /** `tell` gets the installer's words. */
  install(tell: (text: string) => void, signal: AbortSignal): Promise<void>
  /** What works in it is begun again. */
  restart(): Promise<void>
  state(): { readonly version: string; readonly state: string; readonly installed: boolean }
}

export type AgentStopCode = 'removed' | 'moved'

/** Ending an agent's work from outside the dispatcher (a `remove`, for example). */
export interface AgentStops {
  /** The listener ends the agent's runs and resolves when none is alive any more. Returns the end of the subscription. */
  onStop(listener: (agentId: string, reason: string, code?: AgentStopCode) => Promise<void>): () => void
  /** Asks all listeners and waits for them. `moved`: the work is begun again elsewhere; `removed` (the default): it is over. */
  stop(agentId: string, reason: string, code?: AgentStopCode): Promise<void>
}

export interface GatewayContext {
  readonly replica: Replica
  readonly gatewayId: string
  readonly tenantId: string
  /** The gateway's slug. */
  readonly slug: string
  /** Folder of everything this gateway keeps; exists, and only its owner may read it. */
  readonly home: string
  readonly workspaces: Workspaces
  /** Commits what changed in the worktree under the agent's name and mirrors it into `agent_files`. Call it after each run. */
  readonly publishFiles: (agentId: string, message: string) => Promise<void>
  readonly agentStops: AgentStops
  readonly problems: Problems
  readonly log: Log
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** A new UUID v7. */
  readonly newId: () => string
  /**
   * Unique to this process's life: `<replica id>/<pid>-<random>`. The owner of a lease begins with it, so that a later process knows which leases belong to a dead
   * process of its own data folder.
   */
  readonly processToken: string
  /** Aborted when the gateway begins to stop. */
  readonly signal: AbortSignal
  /** Environment (providers' keys and addresses); never logged. */
  readonly env: Readonly<Record<string, string | undefined>>
}
