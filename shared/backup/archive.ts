/**
 * What is in a backup: files with names and modes, as tar, compressed, in a sealed file (sealed-file.ts). Node only.
 *
 *  A1 Written aside, flushed and renamed: a file of that name is whole.
 *  A2 Only regular files, with relative names of plain parts. Anything else in an archive is refused, so that nothing leaves the folder it is unpacked in.
 *  A3 When `readArchive` returns, every byte was authentic and the end was the end. Before that, what it gave out is to be kept aside.
 */
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import tar from 'tar-stream'
import { BackupError, type BackupKind, type Header, openSealed, type Secret, seal } from './sealed-file.ts'

export interface ArchiveEntry {
  /** With `/`, such as `agents/writer.json`. */
  readonly name: string
  /** Default 0600. */
  readonly mode?: number
  readonly content: Uint8Array | string | { readonly path: string; readonly size: number }
}

export interface WrittenArchive {
  /** In bytes. */
  readonly size: number
  readonly sha256: string
}

export interface ArchiveOptions {
  readonly kind: BackupKind
  readonly secret: Secret
}

export async function writeArchive(
  path: string,
  entries: AsyncIterable<ArchiveEntry> | Iterable<ArchiveEntry>,
  { kind, secret, at, signal }: ArchiveOptions & { readonly at: string; readonly signal?: AbortSignal },
): Promise<WrittenArchive> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  const aside = `${path}.part`
  const hash = createHash('sha256')
  let size = 0
  const file = await open(aside, 'w', 0o600)
  try {
    await pipeline(
      packed(entries),
      createGzip(),
      (source: AsyncIterable<Buffer>) => seal(source, { kind, secret, at }),
      async function* (source: AsyncIterable<Buffer>) {
        for await (const chunk of source) {
          hash.update(chunk)
          size += chunk.length
          yield chunk
        }
      },
      file.createWriteStream({ flush: true }),
      ...(signal ? [{ signal }] : []),
    )
  } catch (error) {
    await rm(aside, { force: true })
    throw error
  } finally {
    await file.close()
  }
  await rename(aside, path)
  return { size, sha256: hash.digest('hex') }
}

/** A tar file as it is made. */
async function* packed(entries: AsyncIterable<ArchiveEntry> | Iterable<ArchiveEntry>): AsyncGenerator<Buffer> {
  const pack = tar.pack()
  pack.on('error', () => undefined) // thrown below
  let failure: unknown
  void fill(pack, entries).catch((error: unknown) => {
    failure = error
    pack.destroy()
  })
  try {
    for await (const chunk of pack) yield chunk as Buffer
    if (failure) throw failure
  } catch (error) {
    throw failure ?? error
  } finally {
    pack.destroy()
  }
}

async function fill(pack: tar.Pack, entries: AsyncIterable<ArchiveEntry> | Iterable<ArchiveEntry>): Promise<void> {
  for await (const { name, mode = 0o600, content } of entries) {
    assertName(name)
    if (typeof content === 'string' || content instanceof Uint8Array) {
      const bytes = typeof content === 'string' ? Buffer.from(content) : Buffer.from(content)
      await new Promise<void>((resolve, reject) => {
        pack.entry({ name, mode, size: bytes.length }, bytes, (error) => (error ? reject(error) : resolve()))
      })
    } else if (content.size === 0) {
      await new Promise<void>((resolve, reject) => {
        pack.entry({ name, mode, size: 0 }, '', (error) => (error ? reject(error) : resolve()))
      })
    } else {
      // A file that grows meanwhile is taken as long as it was; one that shrinks is an error of tar's.
      const source = createReadStream(content.path, { end: content.size - 1 })
      const entry = pack.entry({ name, mode, size: content.size })
      await pipeline(source, entry as unknown as NodeJS.WritableStream)
    }
  }
  pack.finalize()
}

/** Calls `onEntry` for each file, in the order in which they were written; it reads `content` to its end or not at all. */
export async function readArchive(
  source: AsyncIterable<Uint8Array>,
  options: ArchiveOptions,
  onEntry: (entry: { name: string; mode: number; content: AsyncIterable<Buffer> }) => Promise<void>,
): Promise<Header> {
  const { header, content } = await openSealed(source, options)
  const extract = tar.extract()
  const feeding = pipeline(content, createGunzip(), extract as unknown as NodeJS.WritableStream)
  feeding.catch(() => undefined) // awaited below
  try {
    for await (const entry of extract) {
      const { name, type, mode } = entry.header
      if (type !== 'file')
        throw new BackupError('refused', `“${name}” in this backup is no file. Nothing was restored.`)
      assertName(name)
      await onEntry({ name, mode: mode ?? 0o600, content: entry as unknown as AsyncIterable<Buffer> })
      entry.resume()
    }
    await feeding
  } catch (error) {
    extract.destroy()
    // Why it stopped: what was found wrong with the file, rather than what that did to those who read it.
    const first = await feeding.then(
      () => undefined,
      (cause: unknown) => cause,
    )
    if (error instanceof BackupError) throw error
    if (first instanceof BackupError) throw first
    throw error
  }
  return header
}

/** Unpacks into a folder of its own, which is removed again when anything is wrong (A3). */
export async function extractArchive(
  source: AsyncIterable<Uint8Array>,
  options: ArchiveOptions,
  folder: string,
): Promise<Header> {
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true, mode: 0o700 })
  try {
    return await readArchive(source, options, async ({ name, mode, content }) => {
      const path = join(folder, ...name.split('/'))
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      const file = await open(path, 'wx', mode & 0o755)
      try {
        await pipeline(content, file.createWriteStream({ flush: true }))
      } finally {
        await file.close()
      }
    })
  } catch (error) {
    await rm(folder, { recursive: true, force: true })
    throw error
  }
}

/** (A2) */
function assertName(name: string): void {
  const parts = name.split('/')
  const isPlain = (part: string): boolean =>
    part !== '' && part !== '.' && part !== '..' && !part.includes('\\') && !part.includes('\0')
  if (!parts.every(isPlain))
    throw new BackupError('refused', 'This backup has a file whose name leads out of its folder. Nothing was restored.')
}
