/** What the replica gets from the browser: clock, ids, log, the migrations of this version, and the way to the server. */
import type { Migration } from '@hq/shared/schema/migrations.ts'
import type { ReplicaEnvironment } from '@hq/shared/sync/contract.ts'
import { createMultiplexer, type Multiplexer, type WebSocketLike } from '@hq/shared/sync/transport.ts'
import { deviceLabel } from './device-label.ts'
import { newId } from './id.ts'

const files = import.meta.glob<string>('../../../migrations/*.sql', { query: '?raw', import: 'default', eager: true })

export const MIGRATIONS: readonly Migration[] = Object.entries(files).map(([path, sql]) => ({
  name: path.slice(path.lastIndexOf('/') + 1),
  sql,
}))

/** All requests of this replica over one WebSocket; the session's cookie goes with it. */
export function openTransport(): Multiplexer {
  const url = new URL('/v1/sync', self.location.origin)
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:'
  const transport = createMultiplexer({
    url: url.href,
    openSocket: (address, protocol) => new WebSocket(address, protocol) as unknown as WebSocketLike,
  })
  self.addEventListener('online', transport.wake)
  return transport
}

/** What this device is called in the list of devices. */
const LABEL = deviceLabel(navigator.userAgent)

/** @param onAccess whether the server says that this device was taken out of the workspace; also when nothing waits that it could refuse */
export const environmentFor = (transport: Multiplexer, onAccess: (revoked: boolean) => void): ReplicaEnvironment => ({
  now: Date.now,
  randomUuid: () => newId(),
  fetch: async (input, init = {}) => {
    const headers = new Headers(init.headers)
    headers.set('x-hq-label', LABEL)
    const response = await transport.fetch(input, { ...init, headers })
    if (response.ok) onAccess(false)
    else if (response.status === 403 && /"code"\s*:\s*"revoked"/.test(await response.clone().text())) onAccess(true)
    return response
  },
  log: (level, message, detail) => console[level](message, ...(detail ? [detail] : [])),
})
