/**
 * What an agent is doing, or the one reason why it isn't. Derived, never stored: from its own row, its gateway's, and its live run.
 *
 *  A1 The first reason that holds is shown, the one nearest to the cause first: being removed, not set up, failed, no gateway, gateway
 *     silent, paused, asking, working, held back by a gate, ready.
 *  A2 'Online' is when the gateway was last heard of; nothing a silent gateway said about running work is shown as running now.
 */
import type { Enum } from '@hq/shared/schema/enums.ts'
import type { Meaning } from '../../ui/cx.ts'
import { relative } from '../../ui/relative-time.tsx'
import type { Shape } from '../../ui/status.tsx'

/** A gateway sends a heartbeat every 20–30 s; three missed ones are silence. */
export const SILENT_AFTER_MS = 90_000

export interface AgentFacts {
  readonly status: Enum<'agent_status'>
  readonly status_reason: string | null
  readonly pause_requested_at: string | null
  readonly paused_by_name: string | null
  readonly gate: string | null
  readonly gate_detail: string | null
  readonly gate_until: string | null
  readonly gateway_label: string | null
  readonly gateway_status: Enum<'gateway_status'> | null
  readonly gateway_seen_at: string | null
  readonly removing: boolean
  readonly run_started_at: string | null
  readonly run_task_title: string | null
  /** Deliverables of its that wait for a person. */
  readonly reviews: number
  /** What it asks people to allow, where a run of its waits for the answer. */
  readonly question?: string | null
}

export interface AgentState {
  readonly key:
    | 'removing'
    | 'provisioning'
    | 'error'
    | 'homeless'
    | 'silent'
    | 'paused'
    | 'asking'
    | 'working'
    | 'held'
    | 'ready'
  readonly meaning: Meaning
  readonly shape: Shape
  readonly label: string
  readonly detail: string | undefined
}

export const isSilent = (seenAt: string | null, now: number): boolean =>
  seenAt === null || now - Date.parse(seenAt) > SILENT_AFTER_MS

/** Gates that say 'nothing to do' rather than 'may not'. */
const QUIET_GATES = new Set(['no_work', 'working', 'open'])

/** @param now milliseconds since 1970 */
export function agentState(agent: AgentFacts, now: number): AgentState {
  const gateway = agent.gateway_label ?? 'its gateway'
  const silent = isSilent(agent.gateway_seen_at, now)
  const heard = agent.gateway_seen_at
    ? `Gateway “${gateway}” last heard ${relative(Date.parse(agent.gateway_seen_at), now, true)}`
    : `Gateway “${gateway}” has not been heard of yet`

  if (agent.removing || agent.status === 'removing')
    return state('removing', 'waiting', 'clock', 'Being removed', silent ? heard : undefined)
  if (agent.status === 'error')
    return state('error', 'danger', 'cross', 'Needs attention', agent.status_reason ?? 'Setting it up failed.')
  if (agent.gateway_label === null)
    return state('homeless', 'warning', 'triangle', 'No gateway', 'Choose a gateway to run it on.')
  if (agent.status === 'provisioning')
    return state(
      'provisioning',
      silent ? 'waiting' : 'busy',
      silent ? 'clock' : 'arc',
      'Setting up',
      silent ? heard : undefined,
    )
  if (silent) return state('silent', 'waiting', 'off', 'Waiting', heard)
  if (agent.pause_requested_at || agent.status === 'paused')
    return state(
      'paused',
      'neutral',
      'pause',
      'Paused',
      agent.paused_by_name ? `by ${agent.paused_by_name}` : undefined,
    )
  if (agent.question) return state('asking', 'waiting', 'clock', 'Asks you', agent.question)
  if (agent.run_started_at) return state('working', 'busy', 'arc', 'Working', agent.run_task_title ?? undefined)
  if (agent.gateway_status === 'paused')
    return state('held', 'neutral', 'pause', 'Gateway paused', `“${gateway}” is paused`)
  if (agent.gate && !QUIET_GATES.has(agent.gate))
    return state('held', agent.gate === 'stalled' ? 'danger' : 'waiting', 'clock', 'Waiting', heldDetail(agent, now))
  return state('ready', 'good', 'check', 'Ready', readyDetail(agent.reviews))
}

const state = (
  key: AgentState['key'],
  meaning: Meaning,
  shape: Shape,
  label: string,
  detail: string | undefined,
): AgentState => ({ key, meaning, shape, label, detail })

const readyDetail = (reviews: number): string =>
  reviews === 0 ? 'Nothing to do' : reviews === 1 ? 'Waits for your review' : `Waits for ${reviews} reviews`

function heldDetail({ gate_detail, gate_until }: AgentFacts, now: number): string | undefined {
  const until = gate_until ? Date.parse(gate_until) : undefined
  const when =
    until && until > now
      ? `until ${new Date(until).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })}`
      : ''
  return [gate_detail, when].filter(Boolean).join(' ') || undefined
}
