/**
 * What a gateway says of itself in its own row of `gateways`.
 *
 *  H1 `last_seen_at` every 25 s, only while the server is connected: an offline gateway fills no outbox with signs of life.
 *  H2 `status` answers a pause at once; `meta` is written when something in it changed, problems at once.
 *  H3 The row is only changed, never made: it comes from the registration. Until it has arrived, there is nothing to do.
 */
import { statfs } from 'node:fs/promises'
import { hostname, totalmem, type } from 'node:os'
import type { Row } from '@hq/shared/schema/tables.ts'
import { VERSION } from './config.ts'
import type { GatewayContext, ModelInfo, RuntimeRegistry, Service } from './service.ts'

export interface HeartbeatOptions {
  readonly everyMs?: number
  readonly modelsEveryMs?: number
}

type Own = Pick<Row<'gateways'>, 'status' | 'last_seen_at' | 'started_at' | 'pause_requested_at' | 'meta'>

export function createHeartbeat(
  context: GatewayContext,
  runtimes: RuntimeRegistry,
  options: HeartbeatOptions = {},
): Service {
  const { replica, gatewayId, log, problems, workspaces } = context
  const everyMs = options.everyMs ?? 25_000
  const startedAt = new Date(context.now()).toISOString()
  let models: readonly ModelInfo[] = []
  let stopped = false
  let beating: Promise<void> = Promise.resolve()
  let queued = false
  let timer: NodeJS.Timeout | undefined
  let modelTimer: NodeJS.Timeout | undefined
  const ends: (() => void)[] = []

  async function beat(): Promise<void> {
    const [own] = await replica.query<Own>(
      'select status, last_seen_at, started_at, pause_requested_at, meta from gateways where id = $1 and deleted_at is null',
      [gatewayId],
    )
    if (!own || own.status === 'retired') return
    const set: Record<string, string> = {}
    const status = own.pause_requested_at === null ? 'ready' : 'paused'
    if (own.status !== status) set['status'] = status
    if (own.started_at === null || Date.parse(own.started_at) !== Date.parse(startedAt)) set['started_at'] = startedAt
    const meta: Record<string, unknown> = { ...own.meta, ...(await describe()) }
    // Goes up and down by itself: nothing that should wait in an outbox (H1).
    if (replica.status().connection !== 'online') meta['process_mb'] = own.meta['process_mb']
    if (stable(meta) !== stable(own.meta)) set['meta'] = JSON.stringify(meta)
    const seen = own.last_seen_at === null ? 0 : Date.parse(own.last_seen_at)
    const due = context.now() - seen >= everyMs * 0.8 && replica.status().connection === 'online'
    if (due) set['last_seen_at'] = new Date(context.now()).toISOString()
    const names = Object.keys(set)
    if (names.length === 0) return
    await replica.write((tx) =>
      tx.query(
        `update gateways set ${names.map((name, index) => `${name} = $${index + 2}`).join(', ')} where id = $1`,
        [gatewayId, ...Object.values(set)],
      ),
    )
  }

  async function describe(): Promise<Record<string, unknown>> {
    const disk = await statfs(context.home)
    const openclaw = runtimes.managed?.('openclaw')
    return {
      version: VERSION,
      hostname: context.env['HQ_HOSTNAME'] || hostname(),
      os: type(),
      node: process.versions.node,
      memory_mb: Math.round(totalmem() / 1024 ** 2),
      // In steps of 256 MiB, so that a log file doesn't make a change of it.
      disk_free_mb: Math.floor((disk.bavail * disk.bsize) / 1024 ** 2 / 256) * 256,
      git: await workspaces.gitVersion(),
      // In steps of 32 MiB, for the same reason.
      process_mb: Math.round(process.memoryUsage.rss() / 1024 ** 2 / 32) * 32,
      runtimes: runtimes.runtimes(),
      ...(openclaw ? { openclaw: openclaw.state() } : {}),
      models,
      problems: problems.list(),
    }
  }

  function poke(): void {
    if (queued || stopped) return
    queued = true
    beating = beating.then(async () => {
      queued = false
      if (stopped) return
      try {
        await beat()
      } catch (error) {
        log('warn', 'The gateway could not say how it is', { error })
      }
    })
  }

  async function askModels(): Promise<void> {
    try {
      models = await runtimes.models(context.signal)
      poke()
    } catch (error) {
      if (!stopped) log('warn', 'The models could not be listed', { error })
    }
  }

  return {
    start: async () => {
      ends.push(
        replica.onChange((changes) => {
          if (changes.has('gateways')) poke()
          if (changes.has('model_connections')) void askModels()
        }),
      )
      ends.push(problems.onChange(poke))
      let connection = replica.status().connection
      ends.push(
        replica.onStatus((status) => {
          if (status.connection !== connection && status.connection === 'online') poke()
          connection = status.connection
        }),
      )
      timer = setInterval(poke, everyMs)
      modelTimer = setInterval(() => void askModels(), options.modelsEveryMs ?? 300_000)
      poke()
      void askModels()
    },
    stop: async () => {
      stopped = true
      clearInterval(timer)
      clearInterval(modelTimer)
      for (const end of ends.splice(0)) end()
      await beating
    },
  }
}

/** JSON with sorted keys: `jsonb` gives them back in its own order. */
function stable(value: unknown): string {
  return JSON.stringify(value, (_key, item: unknown) =>
    typeof item === 'object' && item !== null && !Array.isArray(item)
      ? Object.fromEntries(Object.entries(item).sort(([a], [b]) => (a < b ? -1 : 1)))
      : item,
  )
}
