/** What a gateway says of itself (`gateways.meta`, gateway-node/heartbeat.ts); anything may be missing from an older one. Pure. */

export interface GatewayMeta {
  readonly version?: string
  readonly hostname?: string
  readonly os?: string
  readonly node?: string
  readonly git?: string | null
  readonly memory_mb?: number
  /** Of the gateway's process. */
  readonly process_mb?: number
  readonly disk_free_mb?: number
  readonly runtimes?: readonly string[]
  readonly openclaw?: { readonly version: string; readonly installed: boolean; readonly state: string }
  readonly models?: readonly { readonly provider: string; readonly model: string; readonly demo: boolean }[]
  readonly problems?: readonly { readonly code: string; readonly message: string }[]
}

/** "120 MB", "3.9 GB". */
export const megabytes = (mb: number): string =>
  mb < 1_024 ? `${Math.round(mb)} MB` : `${(mb / 1_024).toFixed(mb < 10_240 ? 1 : 0)} GB`

/** Below this much free room a gateway can't be expected to work for long. */
const LITTLE_MB = 2_048

/** Facts with their names, in the order in which somebody who looks for trouble asks. */
export function factsOf(
  meta: GatewayMeta,
): readonly { readonly name: string; readonly value: string; readonly low?: boolean }[] {
  const facts: { name: string; value: string; low?: boolean }[] = []
  const add = (name: string, value: string | undefined, low = false): void => {
    if (value !== undefined && value !== '') facts.push(low ? { name, value, low } : { name, value })
  }
  add('Host', meta.hostname)
  add('System', meta.os)
  add('HQ', meta.version)
  add('Node', meta.node)
  add('git', meta.git === null ? 'not installed' : meta.git, meta.git === null)
  add('Memory', meta.memory_mb === undefined ? undefined : megabytes(meta.memory_mb))
  add('Used by the gateway', meta.process_mb === undefined ? undefined : megabytes(meta.process_mb))
  const free = meta.disk_free_mb
  add('Free on its disk', free === undefined ? undefined : megabytes(free), free !== undefined && free < LITTLE_MB)
  return facts
}

export interface RuntimeFacts {
  readonly name: string
  readonly label: string
  readonly detail: string
  readonly state: 'ready' | 'missing' | 'unknown'
  /** Can be installed by a command. */
  readonly installable: boolean
}

export function runtimesOf(meta: GatewayMeta): readonly RuntimeFacts[] {
  const builtin: RuntimeFacts = {
    name: 'builtin',
    label: 'Builtin',
    detail: 'comes with HQ',
    state: 'ready',
    installable: false,
  }
  const claw = meta.openclaw
  if (!claw)
    return [
      builtin,
      {
        name: 'openclaw',
        label: 'OpenClaw',
        detail: 'this gateway has not said',
        state: 'unknown',
        installable: false,
      },
    ]
  const running =
    claw.state === 'ready' ? ', running' : claw.state === 'stopped' ? ', starts with the first run' : `, ${claw.state}`
  return [
    builtin,
    {
      name: 'openclaw',
      label: 'OpenClaw',
      detail: claw.installed ? `${claw.version}${running}` : `${claw.version}, not installed (about 650 MB)`,
      state: claw.installed ? 'ready' : 'missing',
      installable: true,
    },
  ]
}
