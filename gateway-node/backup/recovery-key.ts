/**
 * The recovery key of a gateway: 256 random bits, without which none of its backups can be read by anybody.
 *
 *  K1 Made once, in `<home>/recovery-key`, readable by its owner only, on the disk before the first backup is made with it. It is in each backup, so that a
 *     restored gateway goes on with the same one.
 *  K2 Never in a log, a row or an argument. `hq backup key` shows it to whoever may read the file.
 *  K3 Written as `hqrec1-<base64url>-<check>`: a slip of the pen is told from a wrong key.
 *  K4 The server knows the hash of something that is derived from it (`restoreToken`), so that a machine that has nothing but this key may fetch the backups.
 *     From that nobody gets to the key.
 */
import { createHash, hkdfSync, randomBytes } from 'node:crypto'
import { link, open, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { BackupError } from '@hq/shared/backup/sealed-file.ts'
import { isCode } from '../workspaces/paths.ts'

export const recoveryKeyFile = (home: string): string => join(home, 'recovery-key')

const checkOf = (key: Uint8Array): string => createHash('sha256').update('check').update(key).digest('hex').slice(0, 8)

export const formatRecoveryKey = (key: Uint8Array): string =>
  `hqrec1-${Buffer.from(key).toString('base64url')}-${checkOf(key)}`

export function parseRecoveryKey(text: string): Buffer {
  const [, body = '', check] = /^hqrec1-([A-Za-z0-9_-]{43})-([0-9a-f]{8})$/.exec(text.trim()) ?? []
  const key = Buffer.from(body, 'base64url')
  if (key.length === 32 && checkOf(key) === check) return key
  throw new BackupError(
    'wrong_key',
    'This is no recovery key, or a letter of it is wrong. It begins with “hqrec1-” and is what “hq backup key” shows on the gateway’s machine.',
  )
}

/** Undefined: none was made yet. */
export async function readRecoveryKey(home: string): Promise<Buffer | undefined> {
  try {
    return parseRecoveryKey(await readFile(recoveryKeyFile(home), 'utf8'))
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  }
}

/** (K1) */
export async function ensureRecoveryKey(home: string): Promise<Buffer> {
  const known = await readRecoveryKey(home)
  if (known) return known
  const path = recoveryKeyFile(home)
  // A name of its own: two backups that begin at once both come here.
  const aside = `${path}.${randomBytes(8).toString('hex')}.new`
  const file = await open(aside, 'wx', 0o600)
  try {
    await file.writeFile(`${formatRecoveryKey(randomBytes(32))}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  // Linking never replaces: of two that make one, the first counts.
  await link(aside, path).catch((error: unknown) => {
    if (!isCode(error, 'EEXIST')) throw error
  })
  await rm(aside)
  const folder = await open(dirname(path), 'r')
  try {
    await folder.sync()
  } finally {
    await folder.close()
  }
  return parseRecoveryKey(await readFile(path, 'utf8'))
}

/** (K4) What the server asks for instead of a gateway's bearer. */
export const restoreToken = (key: Uint8Array): string =>
  `hqrk_${Buffer.from(hkdfSync('sha256', key, '', 'hq restore token 1', 32)).toString('base64url')}`
