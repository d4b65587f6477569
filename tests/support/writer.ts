/**
 * A part of a gateway that writes without end, for tests that kill it: what it has said to be acknowledged must never be lost or doubled.
 *
 * In turn: one task; a change of that task; two tasks in one transaction, of which the second names the first as its parent. Each is said on stdout, in one
 * line that the kernel has when the call returns, after the write has returned: `{"message":"acknowledged","made":[ids],"changed":id}`.
 */
import { writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { GatewayContext, Service } from '@hq/gateway-node/service.ts'

const PAUSE_MS = 8

export interface Acknowledged {
  /** Tasks that were made, in one transaction. */
  readonly made: readonly string[]
  /** A task whose description is now its own id. */
  readonly changed?: string
}

export function createTestWriter({ replica, tenantId, newId, signal, log }: GatewayContext, word: string): Service {
  const stopping = new AbortController()
  let running: Promise<void> | undefined
  const say = (acknowledged: Acknowledged): void => {
    writeSync(1, `${JSON.stringify({ level: 'info', message: 'acknowledged', ...acknowledged })}\n`)
  }
  const insert = 'insert into tasks (id, tenant_id, title, parent_id) values ($1, $2, $3, $4)'

  const write = async (): Promise<void> => {
    for (let n = 0; !stopping.signal.aborted; n++) {
      const [task, parent, child] = [newId(), newId(), newId()]
      await replica.write((tx) => tx.query(insert, [task, tenantId, `${word} alone ${n}`, null]))
      say({ made: [task] })
      await replica.write((tx) => tx.query('update tasks set description = id::text where id = $1', [task]))
      say({ made: [], changed: task })
      await replica.write(async (tx) => {
        await tx.query(insert, [parent, tenantId, `${word} parent ${n}`, null])
        await tx.query(insert, [child, tenantId, `${word} child ${n}`, parent])
      })
      say({ made: [parent, child] })
      await sleep(PAUSE_MS)
    }
  }
  return {
    async start() {
      signal.addEventListener('abort', () => stopping.abort())
      running = write().catch((error: unknown) => {
        if (!stopping.signal.aborted) log('error', 'The writer of the test failed', { error })
      })
    },
    async stop() {
      stopping.abort()
      await running
    },
  }
}
