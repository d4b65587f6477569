/**
 * A gateway from its backup, in a folder that has none yet; as the same gateway, on whatever machine.
 *
 *  R1 Nothing of the folder is touched before the whole backup was found sound: it is unpacked in `<home>/restoring/` first.
 *  R2 Credentials come last: until then the folder is no gateway, and the same command begins again. Ended anywhere, it can be repeated.
 *  R3 The server ends every former credential of this gateway and gives this one its place (`takeover`). A former process that still runs is nobody from then on: it
 *     goes on working on its own disk, but what it does reaches nobody. Its unsent changes stay in its folder and can be exported there.
 *  R4 Of the changes that waited when the backup was made, those that had reached the server since are left out; the others are made again once, by the replica's
 *     own way of bringing rescued changes back (`replica.rescue.jsonl`). The replica itself is fetched anew, with an identity of its own.
 *  R5 What agents wrote after the backup and never published is gone; what they reported is in the workspace.
 */
import { createReadStream } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { extractArchive } from '@hq/shared/backup/archive.ts'
import { BackupError } from '@hq/shared/backup/sealed-file.ts'
import { z } from 'zod'
import { checkServerUrl, prepareHome, SetupError } from '../config.ts'
import { takeLock } from '../daemon.ts'
import { readCredentials } from '../registration.ts'
import { bearerHash, identitySchema, makeIdentity, writeDurably } from '../registration-identity.ts'
import { isCode } from '../workspaces/paths.ts'
import { openRepository, writeFileAtomically } from '../workspaces/repository.ts'
import { createSystemGit } from '../workspaces/system-git.ts'
import { createWorkspaces } from '../workspaces/workspaces.ts'
import { type Caller, download, listStored, takeOver } from './blobs.ts'
import { restoreToken } from './recovery-key.ts'
import { type Manifest, manifestSchema } from './snapshot.ts'

export interface RestoreOptions {
  readonly home: string
  readonly key: Buffer
  /** A file that an admin has downloaded; undefined: the newest one that this key opens at the server. */
  readonly file?: string | undefined
  /** Default: where the gateway was registered, by the backup. Without a file it is needed. */
  readonly serverUrl?: string | undefined
  readonly templates: string
  readonly signal: AbortSignal
  readonly tell: (text: string) => void
}

export interface Restored {
  readonly manifest: Manifest
  readonly url: string
  /** Changes that are sent again at the first start. */
  readonly waiting: number
}

export async function restoreGateway(options: RestoreOptions): Promise<Restored> {
  const { home } = options
  await prepareHome(home)
  const unlock = takeLock(home)
  try {
    if (await readCredentials(home))
      throw new SetupError(
        'home',
        `${home} is a gateway already, and a backup is only restored where there is none. Name an empty folder in HQ_GATEWAY_HOME, or move this one away.`,
      )
    if ((await createSystemGit().version()) === null)
      throw new SetupError('home', 'This machine has no git, which agents’ folders need. Install it, then restore.')
    return await restore(options)
  } finally {
    unlock()
  }
}

async function restore(options: RestoreOptions): Promise<Restored> {
  const { home, signal, tell } = options
  const folder = join(home, 'restoring')
  const content = join(folder, 'content')
  await assertOnlyOurs(home)
  await mkdir(folder, { recursive: true, mode: 0o700 })

  const file = options.file ?? (await fetchNewest(options, join(folder, 'newest.hqbackup')))
  tell('Checking the backup…')
  await extractArchive(createReadStream(file), { kind: 'gateway', secret: { key: options.key } }, content)
  const manifest = await readManifest(content)
  const url = options.serverUrl ? checkServerUrl(options.serverUrl) : manifest.url
  const was = await readCredentials(content)
  if (!was) throw new BackupError('damaged', 'This backup has no credentials in it. Take an older one.')
  await unpackRepository(content, signal)

  tell(`Taking the place of the gateway “${manifest.slug}” at ${url}…`)
  const token = await newToken(folder)
  const lines = (await readFile(join(content, 'outbox.jsonl'), 'utf8')).split('\n').filter((line) => line !== '')
  const ids = lines.map((line) => entrySchema.parse(JSON.parse(line)).mutation_id)
  const place = { bearer_hash: bearerHash(token), mutations: [...new Set(ids)] }
  const answer = await takePlace({ url, signal, token: restoreToken(options.key) }, [token, was.token], place)
  if (answer.gateway_id !== manifest.gateway_id)
    throw new BackupError('refused', 'The server knows this recovery key as that of another gateway.')
  const taken = new Set(answer.taken)
  const waiting = lines.filter((_line, index) => !taken.has(ids[index] ?? ''))

  tell('Putting agents’ folders back…')
  await moveInto(home, content)
  await restoreWorktrees(options)
  if (waiting.length > 0)
    await writeFileAtomically(join(home, 'replica.rescue.jsonl'), `${waiting.join('\n')}\n`, 0o600)
  await writeDurably(join(home, 'credentials.json'), { ...was, url, token, slug: answer.slug })
  await rm(folder, { recursive: true, force: true })
  return { manifest, url, waiting: waiting.length }
}

const entrySchema = z.looseObject({ mutation_id: z.string() })

/** What an earlier try has put there may go (R2); anything else may not. */
async function assertOnlyOurs(home: string): Promise<void> {
  const names = await readdir(home)
  if (names.includes('restoring')) {
    for (const name of RESTORED) await rm(join(home, name), { recursive: true, force: true })
    return
  }
  const foreign = names.filter((name) => RESTORED.includes(name) || name === 'replica')
  if (foreign.length > 0)
    throw new SetupError(
      'home',
      `${home} is not empty: it has ${foreign.join(', ')}. Name an empty folder in HQ_GATEWAY_HOME, or move this one away.`,
    )
}
const RESTORED: readonly string[] = [
  'repo.git',
  'agents',
  'openclaw',
  'recovery-key',
  'models.json',
  'dispatcher.json',
  'replica.rescue.jsonl',
]

async function fetchNewest({ serverUrl, key, signal, tell }: RestoreOptions, path: string): Promise<string> {
  if (!serverUrl)
    throw new SetupError(
      'server_url',
      'Where is the HQ server? Give its address in HQ_SERVER_URL, or a backup file as the argument.',
    )
  const caller: Caller = { url: checkServerUrl(serverUrl), token: restoreToken(key), signal }
  const [newest] = await listStored(caller)
  if (!newest)
    throw new BackupError(
      'refused',
      `The server at ${caller.url} has no backup that this recovery key opens. Check the key, or give a file.`,
    )
  tell(`Fetching the backup of ${newest.at.slice(0, 16).replace('T', ' ')} UTC, ${Math.ceil(newest.size / 1024)} KiB…`)
  await download(caller, newest, path)
  return path
}

async function readManifest(folder: string): Promise<Manifest> {
  const text = await readFile(join(folder, 'manifest.json'), 'utf8')
  const parsed = manifestSchema.safeParse(JSON.parse(text))
  if (parsed.success) return parsed.data
  throw new BackupError('newer', 'This backup was made by another version of HQ. Restore it with that version.')
}

/** `repo.git` from the bundle, checked. */
async function unpackRepository(content: string, signal: AbortSignal): Promise<void> {
  const git = createSystemGit()
  const gitdir = join(content, 'repo.git')
  await openRepository(gitdir)
  const bundle = join(content, 'repo.bundle')
  const long = { cwd: gitdir, signal, timeoutMs: 20 * 60_000 }
  const listed = await git.run(['bundle', 'unbundle', bundle], long).catch((error: unknown) => {
    // No branch at all: then there is no bundle either.
    if (!isCode(error, 'ENOENT') && !/could not open|No such file/i.test(String(error))) throw error
    return ''
  })
  for (const line of listed.split('\n')) {
    const [, commit, ref] = /^([0-9a-f]{40,64}) (refs\/\S+)$/.exec(line) ?? []
    if (commit && ref) await git.run(['update-ref', ref, commit], long)
  }
  await git.run(['fsck', '--full', '--no-dangling'], long)
  await rm(bundle, { force: true })
}

/** On the disk before the server hears of it, and the same one when this is repeated (R2). */
async function newToken(folder: string): Promise<string> {
  const path = join(folder, 'identity.json')
  try {
    return identitySchema.parse(JSON.parse(await readFile(path, 'utf8'))).token
  } catch (error) {
    if (!isCode(error, 'ENOENT')) throw error
  }
  const identity = makeIdentity()
  await writeDurably(path, identity)
  return identity.token
}

/** With the recovery key; where the server has no backup of it any more, with the credentials that are in this one. */
async function takePlace(
  caller: Caller,
  bearers: readonly string[],
  body: Parameters<typeof takeOver>[1],
): Promise<Awaited<ReturnType<typeof takeOver>>> {
  let first: unknown
  for (const token of [caller.token, ...bearers]) {
    try {
      return await takeOver({ ...caller, token }, body)
    } catch (error) {
      if (!(error instanceof BackupError)) throw error
      first ??= error
    }
  }
  throw first
}

/** The parts of a gateway's folder; `credentials.json` is not among them (R2). */
async function moveInto(home: string, content: string): Promise<void> {
  for (const name of RESTORED) {
    try {
      await rename(join(content, name), join(home, name))
    } catch (error) {
      if (!isCode(error, 'ENOENT')) throw error
    }
  }
}

async function restoreWorktrees({ home, templates, tell }: RestoreOptions): Promise<void> {
  const workspaces = await createWorkspaces({ home, templates, now: Date.now })
  for (const slug of await workspaces.slugs()) {
    await workspaces.createWorktree(slug)
    tell(`  ${slug}`)
  }
}
