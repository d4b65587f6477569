/**
 * Hears from Postgres that access has changed, whoever changed it: another server, a command, SQL by hand (triggers in 0003_server.sql).
 *
 *  1. One connection that LISTENs; when it is lost, it is made anew, and as much may have been missed meanwhile, that counts as a change.
 *  2. Where it can't listen at all (a pooler in between) only the half-minute checks remain. It never ends the process and never keeps it from starting.
 */
import pg from 'pg'
import type { AccessChanges, Log } from '../http/context.ts'

export interface AccessFeed {
  stop(): Promise<void>
}

const RETRY_MS = 1_000
/** So that a hundred sessions that end at once are looked at once. */
const GATHER_MS = 20

export async function followAccess(connectionString: string, changes: AccessChanges, log: Log): Promise<AccessFeed> {
  let client: pg.Client | undefined
  let stopped = false
  let retrying: NodeJS.Timeout | undefined
  let gathering: NodeJS.Timeout | undefined

  const announceSoon = (): void => {
    gathering ??= setTimeout(() => {
      gathering = undefined
      changes.announce()
    }, GATHER_MS)
  }
  const lost = (reason: string): void => {
    if (stopped || retrying) return
    log('debug', 'Changes of access are not heard just now.', { reason })
    client = undefined
    retrying = setTimeout(() => {
      retrying = undefined
      void connect().then((listening) => listening && announceSoon())
    }, RETRY_MS)
  }
  const connect = async (): Promise<boolean> => {
    const next = new pg.Client({ connectionString, keepAlive: true, application_name: 'hq sync-server access' })
    next.on('error', (error) => lost(error.message))
    next.on('end', () => lost('the connection was closed'))
    next.on('notification', announceSoon)
    try {
      await next.connect()
      await next.query('listen hq_access')
    } catch (error) {
      lost(error instanceof Error ? error.message : String(error))
      await next.end().catch((closing: unknown) => log('debug', 'Closing failed.', { error: String(closing) }))
      return false
    }
    if (stopped) await next.end()
    else client = next
    return true
  }
  await connect()
  return {
    async stop() {
      stopped = true
      clearTimeout(retrying)
      clearTimeout(gathering)
      await client?.end()
    },
  }
}
