/**
 * A full disk under a replica's outbox: what cannot be saved is refused in words, what was acknowledged is kept, reading goes on, and with space again
 * writing does too. The disk is a small tmpfs; mounting one takes root.
 */
import { spawnSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openNodeReplica, readMigrations } from '@hq/shared/sync/adapter-node.ts'
import type { Replica } from '@hq/shared/sync/contract.ts'
import { DiskFullError } from '@hq/shared/sync/replica.ts'
import { expect, test } from 'vitest'

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
function smallDisk(): { folder: string; unmount: () => void } | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'hq-small-disk-'))
  const { status } = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=72m', 'tmpfs', folder])
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
  const disk = smallDisk()
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
