import { randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import tar from 'tar-stream'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { extractArchive, readArchive, writeArchive } from './archive.ts'
import { BackupError, openSealed, type Secret, seal } from './sealed-file.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'hq-archive-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const key = { key: randomBytes(32) }
const kind = 'gateway'
const at = '2026-12-01T00:00:00.000Z'

async function* parts(content: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let from = 0; from < content.length; from += size) yield content.subarray(from, from + size)
}
const collect = async (source: AsyncIterable<Buffer>): Promise<Buffer> => {
  const all: Buffer[] = []
  for await (const part of source) all.push(part)
  return Buffer.concat(all)
}
const sealed = (content: Buffer, secret: Secret = key, size = 10_000) =>
  collect(seal(parts(content, size), { kind, secret, at }))
const opened = async (file: Buffer, secret: Secret = key, size = 7_777): Promise<Buffer> =>
  collect((await openSealed(parts(file, size), { kind, secret })).content)

const PIECE = 64 * 1024 + 16

test.each([0, 1, 65_535, 65_536, 65_537, 131_072, 200_000])('%i bytes come back as they were', async (length) => {
  const content = randomBytes(length)
  const file = await sealed(content)
  expect((await opened(file)).equals(content)).toBe(true)
  // Nothing of it can be read, and no two are alike.
  if (length > 100) expect(file.includes(content.subarray(0, 32))).toBe(false)
  expect((await sealed(content)).equals(file)).toBe(false)
})

test('every changed bit, every cut, and pieces in another order, twice, left out or added are refused', async () => {
  const content = randomBytes(3 * 65_536)
  const file = await sealed(content)
  const start = 12 + file.readUInt32BE(8)
  const piece = (n: number) => file.subarray(start + n * PIECE, start + (n + 1) * PIECE)
  const head = file.subarray(0, start)
  const bad: [string, Buffer][] = [
    ['cut at a piece', file.subarray(0, start + 2 * PIECE)],
    ['cut after the header', head],
    ['cut in a piece', file.subarray(0, file.length - 1)],
    ['cut in the header', file.subarray(0, 20)],
    ['empty', Buffer.alloc(0)],
    ['swapped', Buffer.concat([head, piece(1), piece(0), piece(2)])],
    ['left out', Buffer.concat([head, piece(0), piece(2)])],
    ['twice', Buffer.concat([head, piece(0), piece(0), piece(1), piece(2)])],
    ['last twice', Buffer.concat([file, piece(2)])],
    ['one byte more', Buffer.concat([file, Buffer.from('x')])],
  ]
  for (let n = 0; n < 60; n++) {
    const flipped = Buffer.from(file)
    const place = n < 20 ? Math.floor((n / 20) * start) : Math.floor(Math.random() * file.length)
    flipped[place] = (flipped[place] ?? 0) ^ (1 << Math.floor(Math.random() * 8))
    bad.push([`bit of byte ${place}`, flipped])
  }
  for (const [what, text] of bad) {
    const error = await opened(text).then(
      () => undefined,
      (cause: unknown) => cause,
    )
    expect(error, what).toBeInstanceOf(BackupError)
  }
  expect((await opened(file)).equals(content)).toBe(true)
})

test('another key, another passphrase and another kind are told apart', async () => {
  const file = await sealed(Buffer.from('x'))
  await expect(opened(file, { key: randomBytes(32) })).rejects.toMatchObject({ code: 'wrong_key' })
  await expect(opened(file, { passphrase: 'x' })).rejects.toMatchObject({ code: 'wrong_key' })
  const words = await sealed(Buffer.from('plain'), { passphrase: 'correct horse' })
  expect(String(await opened(words, { passphrase: 'correct horse' }))).toBe('plain')
  await expect(opened(words, { passphrase: 'correct horsf' })).rejects.toMatchObject({ code: 'wrong_key' })
  await expect(openSealed(parts(file, 100), { kind: 'workspace', secret: key })).rejects.toMatchObject({
    code: 'wrong_kind',
  })
})

test('files keep name, mode and content; a damaged archive leaves no folder behind', async () => {
  const big = join(folder, 'big')
  await writeFile(big, randomBytes(300_000))
  const path = join(folder, 'one.hqbackup')
  const written = await writeArchive(
    path,
    [
      { name: 'a.json', content: '{}' },
      { name: 'agents/writer.env', content: 'SECRET=1', mode: 0o600 },
      { name: 'big', content: { path: big, size: 300_000 }, mode: 0o644 },
      { name: 'none', content: '' },
    ],
    { kind, secret: key, at },
  )
  expect((await stat(path)).size).toBe(written.size)
  const into = join(folder, 'into')
  await extractArchive(createReadStream(path), { kind, secret: key }, into)
  expect((await readdir(into)).sort()).toEqual(['a.json', 'agents', 'big', 'none'])
  expect((await readFile(join(into, 'big'))).equals(await readFile(big))).toBe(true)
  expect((await stat(join(into, 'agents/writer.env'))).mode & 0o777).toBe(0o600)
  const file = await readFile(path)
  const cut = join(folder, 'cut')
  for (const length of [file.length - 1, file.length - 70_000, 300]) {
    const broken = parts(file.subarray(0, length), 10_000)
    await expect(extractArchive(broken, { kind, secret: key }, cut)).rejects.toBeInstanceOf(BackupError)
    expect(await readdir(folder)).not.toContain('cut')
  }
})

test.each(['../x', '/etc/x', 'a/../../x', 'a//b', '.', 'a\\..\\b'])('%s is no name', async (name) => {
  const path = join(folder, 'names.hqbackup')
  await expect(writeArchive(path, [{ name, content: 'x' }], { kind, secret: key, at })).rejects.toMatchObject({
    code: 'refused',
  })
  expect(await readdir(folder)).not.toContain('names.hqbackup.part')
  // Nor is it one in an archive that somebody else made with the right key.
  const pack = tar.pack()
  pack.entry({ name: 'good' }, 'x')
  pack.entry({ name }, 'x')
  pack.finalize()
  const file = await sealed(gzipSync(await collect(pack as AsyncIterable<Buffer>)))
  const into = join(folder, 'names')
  await expect(extractArchive(parts(file, 999), { kind, secret: key }, into)).rejects.toMatchObject({ code: 'refused' })
  expect(await readdir(folder)).not.toContain('names')
})

test('what cannot be read ends the writing, and leaves nothing', async () => {
  const path = join(folder, 'gone.hqbackup')
  const entries = [{ name: 'x', content: { path: join(folder, 'not there'), size: 5 } }]
  await expect(writeArchive(path, entries, { kind, secret: key, at })).rejects.toThrow(/ENOENT/)
  expect((await readdir(folder)).filter((name) => name.startsWith('gone'))).toEqual([])
  await writeArchive(path, [], { kind, secret: key, at })
  const names: string[] = []
  await readArchive(createReadStream(path), { kind, secret: key }, async ({ name }) => void names.push(name))
  expect(names).toEqual([])
})
