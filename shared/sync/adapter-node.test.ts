/** The replica in a folder (adapter-node.ts, lock.ts). */
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { LockedError, openNodeReplica } from './adapter-node.ts'
import type { Replica } from './contract.ts'
import { lockFile } from './lock.ts'
import { createFakeServer, type FakeServer } from './testing/fake-server.ts'
import { addTask, migrations, openDatabase, PERSON, settled, TENANT, titles, until } from './testing/harness.ts'

// Databases are opened and thrown away in each test; on a busy machine that takes its time.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

const cleanups: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})
const newFolder = (): string => {
  const folder = mkdtempSync(join(tmpdir(), 'hq-replica-'))
  cleanups.push(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}
const newServer = (): FakeServer => {
  const server = createFakeServer({ tenantId: TENANT })
  cleanups.push(() => server.close())
  return server
}
const open = async (directory: string, server: FakeServer, logged: string[] = []): Promise<Replica> => {
  if (!existsSync(directory)) {
    // The image of the tests instead of initdb: seconds less.
    const db = await openDatabase(directory)
    await db.close()
  }
  const replica = await openNodeReplica({
    directory,
    migrations,
    identity: { kind: 'browser', ownerId: PERSON, tenantId: TENANT },
    serverUrl: 'http://server.test',
    tables: ['tasks'],
    transport: server.signals,
    environment: {
      now: Date.now,
      randomUuid: randomUUID,
      fetch: server.fetch,
      log: (level, message) => logged.push(`${level}: ${message}`),
    },
  })
  cleanups.push(() => replica.close())
  return replica
}

test('G1, K1: a second opening of the same folder is refused and disturbs nothing; afterwards the folder is free', async () => {
  const directory = join(newFolder(), 'db')
  const server = newServer()
  const replica = await open(directory, server)
  await expect(open(directory, server)).rejects.toThrow(LockedError)
  await expect(open(directory, server)).rejects.toThrow(`in use by process ${process.pid}`)
  await addTask(replica, 'a')
  await settled(replica)
  await replica.close()
  const again = await open(directory, server)
  expect(again.identity.replicaId).toBe(replica.identity.replicaId)
  expect(await titles(again)).toEqual(['a'])
})

test('K1, K2: another process is refused while the lock’s holder lives, and takes over when it was killed', async () => {
  const path = join(newFolder(), 'db.lock')
  const script = `import { lockFile } from '${new URL('./lock.ts', import.meta.url).href}'; lockFile(process.argv[1]); console.log('locked'); setInterval(() => {}, 1000)`
  const holder = spawn(process.execPath, ['--input-type=module', '-e', script, path], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  cleanups.push(() => holder.kill('SIGKILL'))
  await new Promise((resolve) => holder.stdout.once('data', resolve))
  expect(() => lockFile(path)).toThrow(`in use by process ${holder.pid}`)
  const ended = new Promise((resolve) => holder.once('exit', resolve))
  holder.kill('SIGKILL')
  await ended
  const unlock = lockFile(path)
  expect(() => lockFile(path)).toThrow(LockedError)
  unlock()
  expect(existsSync(path)).toBe(false)
})

test('K2: a process number that was used again since does not keep the lock', () => {
  const path = join(newFolder(), 'db.lock')
  const unlock = lockFile(path)
  const holder = JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>
  unlock()
  writeFileSync(path, JSON.stringify({ ...holder, started: '1' }))
  lockFile(path)()
})

test('G2: a copied folder, guard and all, becomes a replica of its own', async () => {
  const folder = newFolder()
  const server = newServer()
  const original = await open(join(folder, 'db'), server)
  await addTask(original, 'a')
  await settled(original)
  await original.close()
  cpSync(folder, join(folder, '..', `${folder.split('/').at(-1)}-copy`), { recursive: true })
  const copied = `${folder}-copy`
  cleanups.push(() => rmSync(copied, { recursive: true, force: true }))
  const first = await open(join(folder, 'db'), server)
  const second = await open(join(copied, 'db'), server)
  expect(first.identity.replicaId).toBe(original.identity.replicaId)
  expect(second.identity.replicaId).not.toBe(original.identity.replicaId)
  await addTask(first, 'b')
  await addTask(second, 'c')
  await settled(first)
  await settled(second)
  await until(async () => (await titles(first)).length === 3 && (await titles(second)).length === 3)
})

test('G3: what is pending is in the safety copy, and leaves it when it is settled', async () => {
  const directory = join(newFolder(), 'db')
  const server = newServer()
  server.faults.online = false
  const replica = await open(directory, server)
  const id = await addTask(replica, 'a')
  const line = JSON.parse(readFileSync(`${directory}.outbox.jsonl`, 'utf8')) as { patches: { id: string }[] }
  expect(line.patches[0]?.id).toBe(id)
  server.faults.online = true
  await settled(replica)
  await until(() => readFileSync(`${directory}.outbox.jsonl`, 'utf8') === '')
})

test('G4: a database that does not open is set aside and built anew; what was pending comes back', async () => {
  const folder = newFolder()
  const directory = join(folder, 'db')
  const server = newServer()
  const logged: string[] = []
  const first = await open(directory, server)
  await addTask(first, 'on the server')
  await settled(first)
  server.faults.online = false
  await addTask(first, 'only here')
  await first.close()
  // What a power cut can leave: the control file is rubbish.
  writeFileSync(join(directory, 'global', 'pg_control'), Buffer.alloc(8192, 7))
  server.faults.online = true
  const second = await open(directory, server, logged)
  await until(async () => (await titles(second)).length === 2, 'both tasks', 30_000)
  await settled(second)
  expect(await titles(second)).toEqual(['on the server', 'only here'])
  expect(server.rows('tasks')).toHaveLength(2)
  expect(second.identity.replicaId).not.toBe(first.identity.replicaId)
  expect(logged.some((line) => line.includes('is kept as'))).toBe(true)
  expect(readdirSync(folder).some((name) => name.startsWith('db.broken-'))).toBe(true)
  await until(() => !existsSync(`${directory}.rescue.jsonl`))
})

const openSeeded = async (directory: string, seed: string): Promise<Replica> => {
  const server = newServer()
  const replica = await openNodeReplica({
    directory,
    seed,
    migrations,
    identity: { kind: 'browser', ownerId: PERSON, tenantId: TENANT },
    serverUrl: 'http://server.test',
    tables: ['tasks'],
    transport: server.signals,
    environment: { now: Date.now, randomUuid: randomUUID, fetch: server.fetch, log: () => undefined },
  })
  cleanups.push(() => replica.close())
  return replica
}

test('a seed is what a new replica starts from, also after unpacking was cut short; one of no use is passed over', async () => {
  const folder = newFolder()
  const source = await openDatabase(join(folder, 'source'))
  await source.exec('create table seeded (id int)')
  const good = join(folder, 'seed.tar.gz')
  writeFileSync(good, Buffer.from(await (await source.dumpDataDir('gzip')).arrayBuffer()))
  await source.close()

  // What a crash in the middle of unpacking leaves.
  const directory = join(folder, 'db')
  mkdirSync(directory)
  writeFileSync(join(directory, 'half'), '')
  writeFileSync(`${directory}.unpacking`, '')
  const seeded = await openSeeded(directory, good)
  expect(await seeded.query("select to_regclass('seeded')::text as found")).toEqual([{ found: 'seeded' }])

  const bad = join(folder, 'bad.tar.gz')
  writeFileSync(bad, 'no archive')
  const plain = await openSeeded(join(folder, 'plain'), bad)
  expect(await plain.query("select to_regclass('seeded')::text as found")).toEqual([{ found: null }])
})

test('B3, G4: a seed of another version is passed over; a database of one is set aside, and what waited is written again', async () => {
  const folder = newFolder()
  const source = await openDatabase(join(folder, 'source'))
  await source.exec("create table seeded (id int); update sync.migrations set fingerprint = 'of another version'")
  const stale = join(folder, 'seed.tar.gz')
  writeFileSync(stale, Buffer.from(await (await source.dumpDataDir('gzip')).arrayBuffer()))
  await source.close()
  const plain = await openSeeded(join(folder, 'plain'), stale)
  expect(await plain.query("select to_regclass('seeded')::text as found")).toEqual([{ found: null }])

  const directory = join(folder, 'db')
  const server = newServer()
  server.faults.online = false
  const former = await open(directory, server)
  await addTask(former, 'only here')
  await former.close()
  const db = await openDatabase(directory, true)
  await db.exec("update sync.migrations set fingerprint = 'of another version' where name = '0002_replica.sql'")
  await db.close()
  server.faults.online = true
  const logged: string[] = []
  const anew = await open(directory, server, logged)
  await until(async () => (await titles(anew)).length === 1, 'the task', 30_000)
  await settled(anew)
  expect(server.rows('tasks')).toHaveLength(1)
  expect(logged.some((line) => line.includes('0002_replica.sql') && line.includes('is kept as'))).toBe(true)
})
