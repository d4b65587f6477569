/** A replica of a registered gateway in the process of the test, over plain HTTP: each request a connection of its own, as it may be without the multiplexer. `heard`: each answer. */
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openNodeReplica, readMigrations } from '@hq/shared/sync/adapter-node.ts'
import type { Replica } from '@hq/shared/sync/contract.ts'
import type { Gateway } from './system.ts'

const SEED = join(import.meta.dirname, '../../client/dist-seed/seed.tar.gz')

export async function openReplicaOf(
  gateway: Pick<Gateway, 'home'>,
  url: string,
  heard: (answer: Response) => void = () => undefined,
): Promise<Replica> {
  const credentials = JSON.parse(readFileSync(join(gateway.home, 'credentials.json'), 'utf8')) as {
    readonly gateway_id: string
    readonly tenant_id: string
    readonly token: string
  }
  return openNodeReplica({
    directory: join(gateway.home, 'replica'),
    seed: SEED,
    migrations: readMigrations(),
    identity: { kind: 'gateway', ownerId: credentials.gateway_id, tenantId: credentials.tenant_id },
    serverUrl: url,
    environment: {
      now: Date.now,
      randomUuid: randomUUID,
      fetch: async (input, init = {}) => {
        const headers = new Headers(init.headers)
        headers.set('authorization', `Bearer ${credentials.token}`)
        const answer = await fetch(input, { ...init, headers })
        heard(answer.clone())
        return answer
      },
      log: (level, message) => {
        if (process.env['HQ_DEBUG']) console.log(`[replica] ${level}: ${message}`)
      },
    },
  })
}
