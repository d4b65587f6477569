/** For tests: a gateway's context over a real replica in a folder, whose server can never be reached. */
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { uuidV7 } from '@hq/shared/domain/ids.ts'
import { openNodeReplica, readMigrations } from '@hq/shared/sync/adapter-node.ts'
import type { Replica, SyncStatus } from '@hq/shared/sync/contract.ts'
import type { GatewayContext } from '../service.ts'
import type { Workspaces } from '../workspaces/contract.ts'

export interface RealGateway {
  readonly context: GatewayContext
  readonly replica: Replica
  advance(ms: number): void
}

export async function openRealGateway(folder: string, gatewayId: string, tenantId: string): Promise<RealGateway> {
  let shift = 0
  const now = (): number => Date.now() + shift
  await mkdir(folder, { recursive: true })
  const opened = await openNodeReplica({
    directory: join(folder, 'replica'),
    migrations: readMigrations(),
    identity: { kind: 'gateway', ownerId: gatewayId, tenantId },
    serverUrl: 'http://127.0.0.1:1',
    environment: {
      now,
      randomUuid: randomUUID,
      fetch: () => Promise.reject(new TypeError('no network')),
      log: () => undefined,
    },
  })
  // Filled by the test itself: there is no server to load from.
  const replica: Replica = Object.assign(Object.create(opened) as Replica, {
    status: (): SyncStatus => ({ ...opened.status(), initial: { ...opened.status().initial, done: true } }),
  })
  const stops = new Set<(agentId: string, reason: string) => Promise<void>>()
  return {
    replica,
    advance: (ms) => {
      shift += ms
    },
    context: {
      replica,
      gatewayId,
      tenantId,
      slug: 'real',
      home: folder,
      workspaces: {
        exists: async () => false,
        folder: (slug: string) => join(tmpdir(), `no-such-${slug}`),
      } as unknown as Workspaces,
      publishFiles: async () => undefined,
      agentStops: {
        onStop: (listener) => {
          stops.add(listener)
          return () => stops.delete(listener)
        },
        stop: async (agentId, reason) => {
          await Promise.all([...stops].map((listener) => listener(agentId, reason)))
        },
      },
      problems: { report: () => undefined, clear: () => undefined, list: () => [], onChange: () => () => undefined },
      log: (level, message, detail) => {
        if (level === 'error') console.error(message, detail)
      },
      now,
      newId: () => uuidV7(now(), randomBytes(10)),
      processToken: randomUUID(),
      signal: new AbortController().signal,
      env: {},
    },
  }
}
