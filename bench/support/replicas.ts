/** Real replicas of a real server, for benches: PGlite in a folder, one WebSocket each. */
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { openNodeReplica, readMigrations } from '@hq/shared/sync/adapter-node.ts'
import type { Replica } from '@hq/shared/sync/contract.ts'
import { createMultiplexer, type WebSocketLike } from '@hq/shared/sync/transport.ts'
import { WebSocket } from 'ws'
import type { Caller } from '../../sync-server/testing/workspace.ts'

const seed = join(import.meta.dirname, '../../client/dist-seed/seed.tar.gz')

export interface BenchReplica {
  readonly replica: Replica
  close(): Promise<void>
}

/** Opens a replica of `caller` in `folder` and waits until the workspace is in it, unless `empty` will do. */
export async function openBenchReplica(
  url: string,
  caller: Caller,
  folder: string,
  { empty = false }: { readonly empty?: boolean } = {},
): Promise<BenchReplica> {
  const { principal } = caller
  const transport = createMultiplexer({
    url: `${url.replace(/^http/, 'ws')}/v1/sync`,
    openSocket: (address, protocol) =>
      new WebSocket(address, protocol, { headers: { ...caller.headers }, origin: url }) as unknown as WebSocketLike,
  })
  const replica = await openNodeReplica({
    directory: join(folder, 'replica'),
    // As it is shipped; without it (nothing was built yet) a new cluster takes seconds.
    seed,
    migrations: readMigrations(),
    identity:
      principal.kind === 'person'
        ? { kind: 'browser', ownerId: principal.person_id, tenantId: principal.tenant_id }
        : { kind: 'gateway', ownerId: principal.gateway_id, tenantId: principal.tenant_id },
    serverUrl: url,
    environment: {
      now: Date.now,
      randomUuid: randomUUID,
      fetch: transport.fetch,
      log: (level, message, detail) => {
        if (level === 'error') console.error(message, detail)
      },
    },
    transport,
  })
  if (!empty) await until(replica, () => replica.status().initial.done)
  return {
    replica,
    close: async () => {
      await replica.close()
      transport.close()
    },
  }
}

/** Resolves when `condition` holds, asked again after each change of the replica or its status. */
export async function until(replica: Replica, condition: () => boolean | Promise<boolean>): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const look = () => Promise.resolve(condition()).then((holds) => holds && resolve(), reject)
  const ends = [replica.onChange(look), replica.onStatus(look)]
  const timer = setTimeout(() => reject(new Error('not within two minutes')), 120_000)
  await look()
  await promise.finally(() => {
    clearTimeout(timer)
    for (const end of ends) end()
  })
}

/** The value below which `part` of the numbers lie. */
export const quantile = (numbers: readonly number[], part: number): number => {
  const sorted = [...numbers].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}
