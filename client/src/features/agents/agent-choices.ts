/** What can be chosen for an agent, from what its gateway says of itself. Pure. */
import type { Enum } from '@hq/shared/schema/enums.ts'
import type { GatewayMeta } from '../gateways/gateway-meta.ts'

export interface Choice<V extends string> {
  readonly value: V
  readonly label: string
  readonly hint?: string
  readonly disabled?: boolean
}

/** Stands for “the gateway’s own” in a menu; no model is called so. */
export const OWN_MODEL = '·'

/** What is chosen now can always be kept, also where it could not be chosen. */
export function runtimeOptions(meta: GatewayMeta, now: Enum<'agent_runtime'>): Choice<Enum<'agent_runtime'>>[] {
  const there = meta.openclaw?.installed === true
  const missing = meta.openclaw ? 'not installed on its gateway' : 'its gateway has not said'
  return [
    { value: 'builtin', label: 'Builtin', hint: 'comes with HQ' },
    there
      ? { value: 'openclaw', label: 'OpenClaw', hint: meta.openclaw?.version ?? '' }
      : { value: 'openclaw', label: 'OpenClaw', hint: missing, disabled: now !== 'openclaw' },
  ]
}

const MOST = 100

export function modelOptions(meta: GatewayMeta, now: string | null): Choice<string>[] {
  const names = [...new Set((meta.models ?? []).filter(({ demo }) => !demo).map(({ model }) => model))].slice(0, MOST)
  const options: Choice<string>[] = [
    { value: OWN_MODEL, label: 'The gateway’s own' },
    ...names.map((model) => ({ value: model, label: model })),
  ]
  if (now !== null && !names.includes(now)) options.push({ value: now, label: now, hint: 'not listed by its gateway' })
  return options
}
