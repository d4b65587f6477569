/**
 * `window.__hq`: what support (and a test) may look at from the console. Reading only; statements that would write are
 * refused.
 */
import type { SqlValue } from '@hq/shared/sync/contract.ts'
import type { ReplicaConnection, ReplicaState } from './connection.ts'

export interface Diagnostics {
  /** Rows of a single SELECT. */
  query(sql: string, params?: readonly SqlValue[]): Promise<unknown[]>
  status(): ReplicaState
  outbox(): Promise<unknown[]>
}

declare global {
  interface Window {
    __hq?: Diagnostics | undefined
  }
}

export function exposeDiagnostics(connection: ReplicaConnection): () => void {
  window.__hq = {
    query: (sql, params) => {
      if (!/^\s*(select|with|values)\b/i.test(sql)) return Promise.reject(new Error('Only reading: begin with SELECT.'))
      // As a subquery it can be nothing but a read.
      return connection.query(`select * from (${sql.replace(/;\s*$/, '')}) as asked`, params)
    },
    status: () => connection.state(),
    outbox: () => connection.outbox(),
  }
  return () => {
    window.__hq = undefined
  }
}
