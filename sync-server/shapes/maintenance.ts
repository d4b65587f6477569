/** What happens from time to time: tables that changed unnoticed, space of dead shapes, retention. */
import type { Lifecycle } from './lifecycle.ts'
import type { Logger } from './protocol.ts'
import type { Shapes } from './shapes.ts'
import type { Store } from './store.ts'

export interface MaintenanceOptions {
  readonly store: Store
  readonly shapes: Shapes
  readonly lifecycle: Lifecycle
  readonly logger: Logger
  readonly retentionMs: number
  readonly retentionBytes: number
  readonly idleShapeMs: number
}

const TABLES_MS = 2000

export const createMaintenance = ({ lifecycle, logger }: MaintenanceOptions) => {
  let checking = false
  const tables = setInterval(() => {
    if (checking) return
    checking = true
    lifecycle
      .checkTables()
      .catch((error) => logger.debug('the tables could not be checked', { reason: String(error) }))
      .finally(() => {
        checking = false
      })
  }, TABLES_MS)
  return { stop: () => clearInterval(tables) }
}
