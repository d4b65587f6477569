/**
 * A full disk under a replica's outbox: what cannot be saved is refused in words, what was acknowledged is kept, reading goes on, and with space again
 * writing does too. A full disk under the server's Postgres: replicas go on and wait, and with space again everything arrives once.
 * The disks are small tmpfs; mounting one takes root.
 */
import { spawnSync } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openNodeReplica, readMigrations } from '@hq/shared/sync/adapter-node.ts'
import type { Replica } from '@hq/shared/sync/contract.ts'
import { DiskFullError } from '@hq/shared/sync/replica.ts'
import { startEmbeddedPostgres } from '@hq/sync-server/database/embedded.ts'
import { startServer } from '@hq/sync-server/server.ts'
import { newGatewayIdentity } from '@hq/sync-server/testing/workspace.ts'
import { expect, test } from 'vitest'
import { eventually } from './support/browser.ts'
import { openReplicaOf } from './support/node-replica.ts'

const owner = randomUUID()
const tenant = randomUUID()

const open = (folder: string): Promise<Replica> =>
  openNodeReplica({
    directory: join(folder, 'replica'),
    migrations: readMigrations(),
    identity: { kind: 'gateway', ownerId: owner, tenantId: tenant },
    serverUrl: 'http://server.test',
    environment: {
      now: Date.now,
      randomUuid: randomUUID,
      fetch: () => Promise.reject(new TypeError('no network')),
      log: () => undefined,
    },
  })

const add = async (replica: Replica, description: string): Promise<string> => {
  const id = randomUUID()
  await replica.write((tx) =>
    tx.query("insert into tasks (id, tenant_id, title, description) values ($1, $2, 'Note', $3)", [
      id,
      tenant,
      description,
    ]),
  )
  return id
}

/** Mounts a small disk; undefined where that is not allowed. */
function smallDisk(megabytes: number): { folder: string; unmount: () => void } | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'hq-small-disk-'))
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder])
  if (status !== 0) {
    rmSync(folder, { recursive: true, force: true })
    return undefined
  }
  return {
    folder,
    unmount: () => {
      spawnSync('umount', ['-l', folder])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

test('a full disk refuses what it cannot keep and loses nothing that it had acknowledged', async (context) => {
  const disk = smallDisk(72)
  if (!disk) return context.skip('mounting a small disk is not allowed here')
  try {
    const ballast = join(disk.folder, 'ballast')
    writeFileSync(ballast, Buffer.alloc(8 * 1024 * 1024))
    let replica = await open(disk.folder)
    const acknowledged: string[] = []
    const fill = async () => {
      for (;;) acknowledged.push(await add(replica, randomUUID().repeat(600)))
    }
    const refusal = await fill().catch((error: Error) => error)
    expect(refusal).toBeInstanceOf(DiskFullError)
    expect(refusal.message).toMatch(/no space left.*Free some space/)
    const rows = async () => new Set((await replica.query<{ id: string }>('select id from tasks')).map(({ id }) => id))
    expect(await rows()).toEqual(new Set(acknowledged))
    expect(replica.status().pending).toBe(acknowledged.length)
    await replica.close()

    rmSync(ballast)
    replica = await open(disk.folder)
    expect(await rows()).toEqual(new Set(acknowledged))
    const later = await add(replica, 'with space again')
    expect(await rows()).toContain(later)
    await replica.close()
  } finally {
    disk.unmount()
  }
})

test('a full disk under the server’s Postgres: the server says so, replicas wait, and with space again everything arrives once', async (context) => {
  const disk = smallDisk(220)
  if (!disk) return context.skip('mounting a small disk is not allowed here')
  const elsewhere = await mkdtemp(join(tmpdir(), 'hq-disk-full-'))
  const ballast = join(disk.folder, 'ballast')
  /** What the replica was told. */
  const said: string[] = []
  // Little log, so that it is the tables that do not fit.
  const settings = { max_wal_size: '48MB', min_wal_size: '32MB', shared_buffers: '16MB', fsync: 'off' }
  const startPostgres = (preferredPort = 0) => startEmbeddedPostgres({ home: disk.folder, settings, preferredPort })
  let postgres = await startPostgres()
  const server = await startServer({ databaseUrl: postgres.url, home: elsewhere })
  const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(server.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    })
  const setup = {
    name: 'O',
    email: 'o@example.com',
    password: 'correct horse battery',
    workspace_name: 'Acme',
    timezone: 'UTC',
  }
  const owner = await post('/v1/setup', setup)
  const cookie = owner.headers
    .getSetCookie()
    .map((line) => line.split(';')[0])
    .join('; ')
  const { token } = (await (await post('/v1/gateways/tokens', { label: 'one' }, { cookie })).json()) as {
    token: string
  }
  const identity = newGatewayIdentity()
  const asked = { token, slug: 'one', label: 'one', ...identity.register }
  const registered = (await (await post('/v1/gateways/register', asked)).json()) as object
  await writeFile(join(elsewhere, 'credentials.json'), JSON.stringify({ ...registered, token: identity.token }))
  const replica = await openReplicaOf({ home: elsewhere }, server.url, (answer) => {
    if (answer.status >= 500) void answer.text().then((text) => said.push(`${answer.status} ${text}`))
  })
  try {
    const { tenantId } = replica.identity
    const made: string[] = []
    const write = async (kilobytes: number): Promise<void> => {
      const id = randomUUID()
      const text = randomBytes(kilobytes * 512).toString('hex')
      await replica.write((tx) =>
        tx.query("insert into tasks (id, tenant_id, title, description) values ($1, $2, 'Note', $3)", [
          id,
          tenantId,
          text,
        ]),
      )
      made.push(id)
    }
    await write(1)
    await eventually('it is settled', async () => replica.status().pending === 0)

    const { bavail, bsize } = statfsSync(disk.folder)
    writeFileSync(ballast, Buffer.alloc(Math.max(0, bavail * bsize - 3 * 1024 * 1024)))
    // Postgres has some room in files that are there already.
    for (let n = 0; n < 60 && said.length === 0; n++) await write(800)
    await eventually('the replica is told', async () => said.length > 0, 30_000)
    expect(said[0]).toMatch(/^503 .*its disk is full/)
    expect(replica.status().pending).toBeGreaterThan(0)
    // It lives, and so does the replica.
    expect((await fetch(`${server.url}/v1/health`)).ok).toBe(true)
    await write(1)
    expect(await replica.query('select id from tasks')).toHaveLength(made.length)

    rmSync(ballast)
    // Postgres itself ends when its own log does not fit; the supervisor starts it again.
    const ended = await Promise.race([
      postgres.exited.then(() => true),
      new Promise((resolve) => setTimeout(resolve, 500)),
    ])
    if (ended) postgres = await startPostgres(postgres.port)
    await eventually('everything has arrived', async () => replica.status().pending === 0, 60_000)
    const { rows } = await server.pool.query<{ id: string }>('select id from tasks')
    expect(new Set(rows.map(({ id }) => id))).toEqual(new Set(made))
    const { rows: twice } = await server.pool.query(
      'select entity_id from audit_log group by entity_id, action having count(*) > 1',
    )
    expect(twice).toEqual([])
  } finally {
    await replica.close()
    await server.stop()
    await postgres.stop()
    disk.unmount()
    await rm(elsewhere, { recursive: true, force: true })
  }
})
