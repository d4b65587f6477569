/**
 * From a backup into the gateway that runs: what is missing comes back, and nothing that is here is changed.
 *
 *  G1 An agent of this gateway whose branch is gone gets the backup's; whose folder is gone gets a new one from its branch.
 *  G2 For every agent, the backup's version stays readable as `refs/archive/backup-<time>/<slug>`, so that single files can be taken from it.
 *  G3 The backup is unpacked aside and checked as a whole first. Ended anywhere, it can be done again.
 *  G4 Secrets, credentials and what waited to be sent are not taken from it: here the rows decide about them.
 */
import { createReadStream } from 'node:fs'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { extractArchive } from '@hq/shared/backup/archive.ts'
import { BackupError } from '@hq/shared/backup/sealed-file.ts'
import { z } from 'zod'
import { readCredentials } from '../registration.ts'
import type { GatewayContext } from '../service.ts'
import { isCode } from '../workspaces/paths.ts'
import { writeFileAtomically } from '../workspaces/repository.ts'
import { createSystemGit } from '../workspaces/system-git.ts'
import { type Caller, download, listStored } from './blobs.ts'
import { readRecoveryKey } from './recovery-key.ts'
import { manifestSchema } from './snapshot.ts'

export interface BringBackOptions {
  /** Of the file; undefined: the newest. */
  readonly sha256: string | undefined
  readonly signal: AbortSignal
  readonly step?: (step: 'fetch' | 'check' | 'bring') => void
}

export interface BroughtBack {
  /** When the backup was made, ISO. */
  readonly at: string
  /** Agents that have their folder again. */
  readonly restored: readonly string[]
  /** Under which the backup's versions can be read. */
  readonly archive: string
}

const ownerSchema = z.object({ agent_id: z.string(), branch: z.string(), template: z.string() })

export async function bringBack(
  context: GatewayContext,
  { sha256, signal, step }: BringBackOptions,
): Promise<BroughtBack> {
  const { home } = context
  const credentials = await readCredentials(home)
  const key = await readRecoveryKey(home)
  if (!credentials || !key)
    throw new BackupError('refused', 'This gateway has no recovery key, so it has made no backup yet.')
  const folder = join(home, 'bring-back')
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true, mode: 0o700 })
  try {
    step?.('fetch')
    const caller: Caller = { url: credentials.url, token: credentials.token, signal }
    const stored = await listStored(caller)
    const wanted = sha256 === undefined ? stored[0] : stored.find((backup) => backup.sha256 === sha256)
    if (!wanted)
      throw new BackupError('refused', 'The server has no such backup of this gateway. Choose one that is still kept.')
    const file = join(folder, 'file.hqbackup')
    await download(caller, wanted, file)
    step?.('check')
    const content = join(folder, 'content')
    await extractArchive(createReadStream(file), { kind: 'gateway', secret: { key } }, content)
    const manifest = manifestSchema.parse(JSON.parse(await readFile(join(content, 'manifest.json'), 'utf8')))
    signal.throwIfAborted()
    step?.('bring')
    return await bring(context, content, manifest.at, signal)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function bring(context: GatewayContext, content: string, at: string, signal: AbortSignal): Promise<BroughtBack> {
  const { home, workspaces, replica, gatewayId } = context
  const git = createSystemGit()
  const long = { cwd: join(home, 'repo.git'), signal, timeoutMs: 20 * 60_000 }
  const archive = `refs/archive/backup-${at.replaceAll(/[-:.]/g, '')}`
  const listed = await git.run(['bundle', 'unbundle', join(content, 'repo.bundle')], long)
  const tips = new Map<string, string>()
  for (const line of listed.split('\n')) {
    const [, commit, ref] = /^([0-9a-f]{40,64}) (refs\/heads\/\S+)$/.exec(line) ?? []
    if (commit && ref) tips.set(ref, commit)
  }
  const agents = await replica.query<{ id: string; slug: string }>(
    'select id, slug from agents where gateway_id = $1 and deleted_at is null order by slug',
    [gatewayId],
  )
  const restored: string[] = []
  for (const { id, slug } of agents) {
    signal.throwIfAborted()
    const owner = await ownerIn(content, slug)
    const tip = owner && tips.get(owner.branch)
    if (!owner || !tip || owner.agent_id !== id) continue
    await git.run(['update-ref', `${archive}/${slug}`, tip], long)
    if (await workspaces.exists(slug)) continue
    const present = await workspaces.ownerOf(slug)
    // Another agent's folder under this name is not touched.
    if (present !== null && present !== id) continue
    const isThere = await git.run(['for-each-ref', '--format=%(objectname)', owner.branch], long)
    if (isThere.trim() === '') await git.run(['update-ref', owner.branch, tip], long)
    if (present === null) await writeFileAtomically(join(home, 'agents', `${slug}.json`), JSON.stringify(owner))
    await workspaces.createWorktree(slug)
    await context.publishFiles(id, 'From a backup')
    restored.push(slug)
  }
  return { at, restored, archive }
}

async function ownerIn(content: string, slug: string): Promise<z.infer<typeof ownerSchema> | undefined> {
  try {
    return ownerSchema.parse(JSON.parse(await readFile(join(content, 'agents', `${slug}.json`), 'utf8')))
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined
    throw error
  }
}
