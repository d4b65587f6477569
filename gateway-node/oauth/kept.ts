/** What the gateway keeps of a connection's sign-in: `<home>/oauth/<connection id>.json`, owner-only, replaced as a whole. In no row, log or backup. */
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { writeDurably } from '../registration-identity.ts'
import { isCode } from '../workspaces/paths.ts'

/** `issuer`: who gave it (`issuerOf`). */
const issuer = z.string()
const tokens = z.object({
  issuer,
  access_token: z.string(),
  refresh_token: z.string().nullable(),
  expires_at: z.number().nullable(),
  obtained_at: z.number(),
})
const pending = z.discriminatedUnion('flow', [
  z.object({ issuer, flow: z.literal('paste'), state: z.string(), verifier: z.string(), expires_at: z.number() }),
  z.object({
    issuer,
    flow: z.literal('device'),
    device_code: z.string(),
    user_code: z.string(),
    interval: z.number(),
    expires_at: z.number(),
  }),
])
const keptSchema = z.object({
  pending: pending.optional(),
  tokens: tokens.optional(),
  /** Why there are no tokens (any more), for people. */
  refused: z.string().optional(),
  /** The sealed row that was used up, should the command be tried again after a crash. */
  used: z.string().optional(),
})
export type Kept = z.infer<typeof keptSchema>
export type Pending = z.infer<typeof pending>
export type KeptTokens = z.infer<typeof tokens>

const folderOf = (home: string): string => join(home, 'oauth')
const fileOf = (home: string, id: string): string => join(folderOf(home), `${z.uuid().parse(id)}.json`)

/** Undefined: none, or one that can't be read; then people sign in again. */
export async function readKept(home: string, id: string): Promise<Kept | undefined> {
  let text: string
  try {
    text = await readFile(fileOf(home, id), 'utf8')
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  }
  try {
    return keptSchema.parse(JSON.parse(text))
  } catch {
    return undefined // a message of the parser would quote a token
  }
}

export async function writeKept(home: string, id: string, kept: Kept): Promise<void> {
  await mkdir(folderOf(home), { recursive: true, mode: 0o700 })
  await writeDurably(fileOf(home, id), kept)
}

export const dropKept = (home: string, id: string): Promise<void> => rm(fileOf(home, id), { force: true })

export async function keptIds(home: string): Promise<string[]> {
  const names = await readdir(folderOf(home)).catch((error: unknown) => {
    if (isCode(error, 'ENOENT')) return []
    throw error
  })
  return names.flatMap((name) => (/^[\da-f-]{36}\.json$/.test(name) ? [name.slice(0, -5)] : []))
}
