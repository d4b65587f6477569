/**
 * The file that a backup is: encrypted in pieces, so that it is written and read as a stream. Node only.
 *
 *     "HQBACKUP" · length of the header (4 bytes, big endian) · header, JSON · pieces of 64 KiB, each with its 16 bytes of AES-256-GCM
 *
 *  E1 The key is made for each file: HKDF-SHA256 over the secret with a salt of 32 random bytes, and bound to the header. A changed header is a wrong key.
 *  E2 The nonce of a piece is its number, and whether it is the last. So a piece that is changed, left out, repeated, in another place, or missing at the end is
 *     refused when it is reached, and what follows is never read.
 *  E3 A passphrase goes through scrypt (N = 2^17, r = 8, p = 1) first. No other strength is read, so a file can't ask for more memory.
 *  E4 Until `content` has ended by itself, nothing that came out of it may be believed to be all of it: write it aside.
 */
import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes, scrypt } from 'node:crypto'
import { z } from 'zod'

export type BackupKind = 'gateway' | 'workspace'

/** 32 random bytes, or words that a person chose. */
export type Secret = { readonly key: Uint8Array } | { readonly passphrase: string }

const headerSchema = z.object({
  version: z.literal(1),
  kind: z.enum(['gateway', 'workspace']),
  kdf: z.enum(['hkdf', 'scrypt-17-8-1']),
  salt: z.string().regex(/^[A-Za-z0-9_-]{43}$/),
  key_id: z.string().nullable(),
  at: z.string(),
})
export type Header = z.infer<typeof headerSchema>

/** `message` says what, why, and what next. */
export class BackupError extends Error {
  readonly code: 'not_a_backup' | 'newer' | 'wrong_kind' | 'wrong_key' | 'damaged' | 'refused'
  constructor(code: BackupError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'BackupError'
    this.code = code
  }
}

const MAGIC = Buffer.from('HQBACKUP')
const PIECE = 64 * 1024
const TAG = 16

/** Which key opens a file, without saying anything about the key: the first 16 hexadecimal digits of its SHA-256. */
export const keyIdOf = (key: Uint8Array): string => createHash('sha256').update(key).digest('hex').slice(0, 16)

export async function* seal(
  source: AsyncIterable<Uint8Array>,
  { kind, secret, at }: { readonly kind: BackupKind; readonly secret: Secret; readonly at: string },
): AsyncGenerator<Buffer> {
  const header: Header = {
    version: 1,
    kind,
    kdf: 'key' in secret ? 'hkdf' : 'scrypt-17-8-1',
    salt: randomBytes(32).toString('base64url'),
    key_id: 'key' in secret ? keyIdOf(secret.key) : null,
    at,
  }
  const text = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(4)
  length.writeUInt32BE(text.length)
  yield Buffer.concat([MAGIC, length, text])
  const key = await fileKey(secret, header, text)
  let number = 0
  for await (const { piece, isLast } of pieces(source, PIECE)) {
    const cipher = createCipheriv('aes-256-gcm', key, nonce(number++, isLast))
    yield Buffer.concat([cipher.update(piece), cipher.final(), cipher.getAuthTag()])
  }
}

/** Reads the header and then, as `content` is read, piece after piece (E2, E4). Throws `BackupError`, here and out of `content`. */
export async function openSealed(
  source: AsyncIterable<Uint8Array>,
  { kind, secret }: { readonly kind: BackupKind; readonly secret: Secret },
): Promise<{ readonly header: Header; readonly content: AsyncGenerator<Buffer> }> {
  const reader = createReader(source)
  const start = await reader.take(MAGIC.length + 4)
  if (!start.subarray(0, MAGIC.length).equals(MAGIC))
    throw new BackupError('not_a_backup', 'This file is no backup of HQ. Choose one whose name ends in .hqbackup.')
  const length = start.length === MAGIC.length + 4 ? start.readUInt32BE(MAGIC.length) : 0
  if (length < 2 || length > 4096) throw damaged()
  const text = await reader.take(length)
  const header = readHeader(text)
  if (header.kind !== kind)
    throw new BackupError(
      'wrong_kind',
      `This is a backup of a ${header.kind}, not of a ${kind}. Use “${header.kind === 'gateway' ? 'npm run gateway:restore' : 'npm run restore'}” for it.`,
    )
  if ('key' in secret !== (header.kdf === 'hkdf') || ('key' in secret && header.key_id !== keyIdOf(secret.key)))
    throw wrongKey()
  const key = await fileKey(secret, header, text)
  async function* content(): AsyncGenerator<Buffer> {
    let number = 0
    for await (const { piece, isLast } of pieces(reader.rest(), PIECE + TAG)) {
      if (piece.length < TAG) throw damaged()
      const decipher = createDecipheriv('aes-256-gcm', key, nonce(number, isLast), { authTagLength: TAG })
      decipher.setAuthTag(piece.subarray(-TAG))
      const plain = decipher.update(piece.subarray(0, -TAG))
      try {
        decipher.final()
      } catch (error) {
        // A wrong passphrase is seen here first. Nothing of the piece has been given out.
        throw number === 0 && 'passphrase' in secret ? wrongKey(error) : damaged(error)
      }
      number++
      yield plain
    }
  }
  return { header, content: content() }
}

function readHeader(text: Buffer): Header {
  let json: unknown
  try {
    json = JSON.parse(text.toString('utf8'))
  } catch (error) {
    throw damaged(error)
  }
  const parsed = headerSchema.safeParse(json)
  if (parsed.success) return parsed.data
  const version = z.object({ version: z.int() }).safeParse(json)
  if (version.success && version.data.version > 1)
    throw new BackupError('newer', 'A newer version of HQ made this backup. Restore it with that version.')
  throw damaged(parsed.error)
}

const damaged = (cause?: unknown): BackupError =>
  new BackupError(
    'damaged',
    'This backup is damaged: it was cut short, or changed after it was made. Nothing was restored. Fetch it once more, or take an older one.',
    { cause },
  )

const wrongKey = (cause?: unknown): BackupError =>
  new BackupError(
    'wrong_key',
    'This backup was made with another key or passphrase (or its beginning is damaged). Nothing was restored.',
    { cause },
  )

async function fileKey(secret: Secret, { salt }: Header, header: Buffer): Promise<Buffer> {
  const bytes = Buffer.from(salt, 'base64url')
  const base = 'key' in secret ? secret.key : await stretch(secret.passphrase, bytes)
  const info = Buffer.concat([Buffer.from('hq backup 1 '), createHash('sha256').update(header).digest()])
  return Buffer.from(hkdfSync('sha256', base, bytes, info, 32))
}

const stretch = (passphrase: string, salt: Buffer): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const strength = { N: 2 ** 17, r: 8, p: 1, maxmem: 256 * 1024 * 1024 }
    scrypt(passphrase.normalize('NFC'), salt, 32, strength, (error, key) => (error ? reject(error) : resolve(key)))
  })

/** (E2) */
function nonce(number: number, isLast: boolean): Buffer {
  const bytes = Buffer.alloc(12)
  bytes.writeUIntBE(number, 0, 6)
  bytes[11] = isLast ? 1 : 0
  return bytes
}

/** Cuts into pieces of `size`; the last may be shorter, also empty when there was nothing at all. */
async function* pieces(
  source: AsyncIterable<Uint8Array>,
  size: number,
): AsyncGenerator<{ readonly piece: Buffer; readonly isLast: boolean }> {
  const parts: Uint8Array[] = []
  let held = 0
  for await (const part of source) {
    parts.push(part)
    held += part.length
    if (held <= size) continue
    const all = Buffer.concat(parts.splice(0))
    let at = 0
    // One more byte is known to follow each of these, so none of them is the last.
    for (; all.length - at > size; at += size) yield { piece: all.subarray(at, at + size), isLast: false }
    parts.push(all.subarray(at))
    held = all.length - at
  }
  yield { piece: Buffer.concat(parts), isLast: true }
}

function createReader(source: AsyncIterable<Uint8Array>) {
  const from = source[Symbol.asyncIterator]()
  let held: Buffer = Buffer.alloc(0)
  return {
    /** Fewer when the file ends before. */
    async take(count: number): Promise<Buffer> {
      while (held.length < count) {
        const next = await from.next()
        if (next.done) break
        held = Buffer.concat([held, next.value])
      }
      const taken = held.subarray(0, count)
      held = held.subarray(count)
      return taken
    },
    async *rest(): AsyncGenerator<Uint8Array> {
      try {
        if (held.length > 0) yield held
        for (let next = await from.next(); !next.done; next = await from.next()) yield next.value
      } finally {
        await from.return?.()
      }
    },
  }
}
