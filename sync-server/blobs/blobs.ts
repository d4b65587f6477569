/**
 * Encrypted files of gateways, by the SHA-256 of their content, below `HQ_HOME/server/blobs/gateway-backups/<gateway>/`.
 *
 *  B1 A file is whole or not there: written aside, hashed on the way, flushed, renamed. A wrong hash or one byte too many leaves nothing.
 *  B2 Names are made of a UUID and 64 hexadecimal digits, checked here; nothing else of a request becomes a path.
 *  B3 Two credentials open a gateway's files: its bearer, and what is derived from its recovery key, of which only the hash lies beside each file
 *     (`<sha256>.json`). The server can read neither the files nor the key.
 *  B4 A gateway has at most `perGateway` files: one that never clears away fills no disk.
 */
import { createHash, timingSafeEqual } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { z } from 'zod'
import { HttpError } from '../errors.ts'

export interface BlobLimits {
  /** Of one file, in bytes. */
  readonly bytes: number
  readonly perGateway: number
}

export const BLOB_LIMITS: BlobLimits = { bytes: 8 * 1024 ** 3, perGateway: 10 }

export interface Blob {
  readonly gateway_id: string
  readonly sha256: string
  readonly size: number
  /** ISO time. */
  readonly at: string
}

export interface Blobs {
  /** (B1) Once more with the same content does nothing. */
  put(gatewayId: string, sha256: string, restoreHash: string, body: ReadableStream<Uint8Array>): Promise<Blob>
  find(gatewayId: string, sha256: string): Promise<Blob | undefined>
  read(blob: Blob): ReadableStream<Uint8Array>
  /** True when there was one. */
  remove(gatewayId: string, sha256: string): Promise<boolean>
  /** Newest first. */
  list(gatewayId: string): Promise<Blob[]>
  /** Those that this recovery key opens, of all gateways, newest first (B3). */
  ofKey(restoreHash: string): Promise<Blob[]>
  /** The gateway whose file this is; undefined: nobody's. */
  ownerOf(sha256: string): Promise<string | undefined>
}

const SHA = /^[0-9a-f]{64}$/
const ID = /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/
export const isSha256 = (text: string): boolean => SHA.test(text)

const noteSchema = z.object({ restore_hash: z.string().regex(SHA), size: z.int().nonnegative(), at: z.string() })
type Note = z.infer<typeof noteSchema>

export function createBlobs(folder: string, limits: BlobLimits = BLOB_LIMITS): Blobs {
  const root = join(folder, 'gateway-backups')
  let counter = 0

  const folderOf = (gatewayId: string): string => {
    if (!ID.test(gatewayId)) throw notThere()
    return join(root, gatewayId)
  }
  const pathOf = (gatewayId: string, sha256: string): string => {
    if (!SHA.test(sha256)) throw notThere()
    return join(folderOf(gatewayId), sha256)
  }

  async function noteOf(gatewayId: string, sha256: string): Promise<Note | undefined> {
    const path = pathOf(gatewayId, sha256)
    try {
      const note = noteSchema.safeParse(JSON.parse(await readFile(`${path}.json`, 'utf8')))
      return note.success && (await stat(path)).size === note.data.size ? note.data : undefined
    } catch (error) {
      if (error instanceof SyntaxError || isMissing(error)) return undefined
      throw error
    }
  }

  async function find(gatewayId: string, sha256: string): Promise<Blob | undefined> {
    const note = await noteOf(gatewayId, sha256)
    return note && { gateway_id: gatewayId, sha256, size: note.size, at: note.at }
  }

  async function list(gatewayId: string): Promise<Blob[]> {
    const names = (await namesIn(folderOf(gatewayId))).filter((name) => SHA.test(name))
    const all = await Promise.all(names.map((name) => find(gatewayId, name)))
    return all.filter((blob) => blob !== undefined).sort(newestFirst)
  }

  return {
    find,
    list,
    async put(gatewayId, sha256, restoreHash, body) {
      const path = pathOf(gatewayId, sha256)
      const present = await find(gatewayId, sha256)
      if (present) return present
      const names = await namesIn(folderOf(gatewayId))
      if (names.filter((name) => SHA.test(name)).length >= limits.perGateway)
        throw new HttpError(
          409,
          'too_many',
          `This gateway keeps ${limits.perGateway} backups here already. Remove an older one first.`,
        )
      await mkdir(folderOf(gatewayId), { recursive: true, mode: 0o700 })
      const aside = `${path}.${process.pid}-${counter++}.new`
      try {
        const size = await receive(body, aside, sha256, limits.bytes)
        const at = new Date().toISOString()
        // The note first: a file without one is not there (`find`), and neither is a note without its file.
        await writeThrough(`${path}.json`, JSON.stringify({ restore_hash: restoreHash, size, at } satisfies Note))
        await rename(aside, path)
        await syncFolder(folderOf(gatewayId))
        return { gateway_id: gatewayId, sha256, size, at }
      } catch (error) {
        await rm(aside, { force: true })
        throw error
      }
    },
    read: (blob) =>
      Readable.toWeb(createReadStream(pathOf(blob.gateway_id, blob.sha256))) as ReadableStream<Uint8Array>,
    async remove(gatewayId, sha256) {
      const path = pathOf(gatewayId, sha256)
      const was = (await find(gatewayId, sha256)) !== undefined
      await rm(path, { force: true })
      await rm(`${path}.json`, { force: true })
      return was
    },
    async ofKey(restoreHash) {
      if (!SHA.test(restoreHash)) return []
      const found: Blob[] = []
      for (const gatewayId of (await namesIn(root)).filter((name) => ID.test(name))) {
        for (const blob of await list(gatewayId)) {
          const note = await noteOf(gatewayId, blob.sha256)
          if (note && timingSafeEqual(Buffer.from(note.restore_hash), Buffer.from(restoreHash))) found.push(blob)
        }
      }
      return found.sort(newestFirst)
    },
    async ownerOf(sha256) {
      for (const gatewayId of (await namesIn(root)).filter((name) => ID.test(name)))
        if (await find(gatewayId, sha256)) return gatewayId
      return undefined
    },
  }
}

const newestFirst = (a: Blob, b: Blob): number => (a.at < b.at ? 1 : -1)

/** Also for what is somebody else's: whoever may not read it does not learn that it exists. */
export const notThere = (): HttpError => new HttpError(404, 'not_found', 'There is no such backup here.')

/** The size. (B1) */
async function receive(body: ReadableStream<Uint8Array>, path: string, sha256: string, limit: number): Promise<number> {
  const hash = createHash('sha256')
  let size = 0
  const check = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      size += chunk.length
      if (size > limit) return done(tooLarge(limit))
      hash.update(chunk)
      done(null, chunk)
    },
  })
  const file = await open(path, 'wx', 0o600)
  try {
    await pipeline(
      Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]),
      check,
      file.createWriteStream({ flush: true }),
    )
  } finally {
    await file.close()
  }
  if (hash.digest('hex') !== sha256)
    throw new HttpError(
      422,
      'wrong_hash',
      'What arrived is not what its name says: it was cut short or changed on the way. Nothing was kept; send it again.',
    )
  return size
}

const tooLarge = (limit: number): HttpError =>
  new HttpError(
    413,
    'too_large',
    `A backup may have ${Math.floor(limit / 1024 ** 2)} MiB; this one has more, and was not kept.`,
    {},
    { connection: 'close' },
  )

async function writeThrough(path: string, text: string): Promise<void> {
  const file = await open(`${path}.new`, 'w', 0o600)
  try {
    await file.writeFile(`${text}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(`${path}.new`, path)
}

async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}

async function namesIn(path: string): Promise<string[]> {
  try {
    return await readdir(path)
  } catch (error) {
    if (isMissing(error)) return []
    throw error
  }
}

const isMissing = (error: unknown): boolean => (error as NodeJS.ErrnoException).code === 'ENOENT'
