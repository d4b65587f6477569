/**
 * What a gateway makes for itself before it asks anybody: its bearer token and its key pair.
 *
 *  I1 The token is 256 random bits, the pair X25519. The server gets the token's hash and the public key; the rest never leaves this machine but as
 *     `Authorization` of this gateway's own requests.
 *  I2 They are on the disk, readable by their owner only, before the server hears of them (`registering.json`). Whatever ends the process afterwards, the next
 *     one asks as the same gateway, and the server answers the same.
 *  I3 Once registered they are in `credentials.json`, and `registering.json` is gone.
 */
import { createHash, generateKeyPairSync, randomBytes } from 'node:crypto'
import { open, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { SetupError } from './config.ts'
import { isCode } from './workspaces/paths.ts'
import { writeFileAtomically } from './workspaces/repository.ts'

/** Keys as RFC 8037 writes them: 32 bytes, base64url. */
export const identitySchema = z.object({
  token: z.string().min(1),
  public_key: z.string().length(43),
  private_key: z.string().length(43),
})
export type Identity = z.infer<typeof identitySchema>

/** The server recognises a gateway's token by its beginning. */
const PREFIX = 'hqgw_'

export function makeIdentity(): Identity {
  const { x, d } = generateKeyPairSync('x25519').privateKey.export({ format: 'jwk' })
  if (!x || !d) throw new Error('This Node makes no X25519 keys.')
  return { token: PREFIX + randomBytes(32).toString('base64url'), public_key: x, private_key: d }
}

/** What the server keeps of the token. It is random, so a plain hash is enough. */
export const bearerHash = (token: string): string => createHash('sha256').update(token).digest('hex')

const pendingFile = (home: string): string => join(home, PENDING)
export const PENDING = 'registering.json'

/** The one an earlier process has asked with, or a new one; on the disk either way (I2). */
export async function pendingIdentity(home: string): Promise<Identity> {
  let text: string
  try {
    text = await readFile(pendingFile(home), 'utf8')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return renewPendingIdentity(home)
    throw error
  }
  try {
    return identitySchema.parse(JSON.parse(text))
  } catch (error) {
    throw new SetupError(
      'credentials',
      `${pendingFile(home)} can't be read, so this gateway can't go on with its registration. Delete that file and register with a new token.`,
      { cause: error },
    )
  }
}

export async function renewPendingIdentity(home: string): Promise<Identity> {
  const identity = makeIdentity()
  await writeDurably(pendingFile(home), identity)
  return identity
}

export const dropPendingIdentity = (home: string): Promise<void> => rm(pendingFile(home), { force: true })

/** Owner-only; when it returns, file and name survive a power cut. */
export async function writeDurably(path: string, value: unknown): Promise<void> {
  await writeFileAtomically(path, `${JSON.stringify(value, null, 2)}\n`, 0o600)
  const folder = await open(dirname(path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
}
