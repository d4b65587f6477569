/**
 * What a backup of a gateway has in it.
 *
 * | name | |
 * |---|---|
 * | `manifest.json` | whose, when, from where; agents and their newest commit |
 * | `credentials.json`, `recovery-key` | who this gateway is, and its keys |
 * | `repo.bundle` | all branches, templates and archives, as one `git bundle` |
 * | `agents/<slug>.json`, `agents/<slug>.env` | whose worktree; the agent's secrets |
 * | `openclaw/state/…` | sessions of that runtime |
 * | `models.json`, `dispatcher.json` | settings |
 * | `outbox.jsonl` | what the server has not acknowledged, or has refused |
 *
 *  S1 What is in a worktree and not committed is committed first. What `.gitignore` leaves out is not in a backup, and neither is what can be had again: the
 *     replica (the server has it), programs, tokens of local connections.
 *  S2 The outbox is read last: what is in the files already and was written meanwhile is in it.
 *  S3 An agent whose folder is broken doesn't keep the others from being saved; `troubles` names it.
 */

import { readdir, readFile, rm, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { ArchiveEntry } from '@hq/shared/backup/archive.ts'
import { z } from 'zod'
import { VERSION } from '../config.ts'
import { readCredentials } from '../registration.ts'
import type { GatewayContext } from '../service.ts'
import { GATEWAY_AUTHOR } from '../workspaces/contract.ts'
import { isCode } from '../workspaces/paths.ts'
import { createSystemGit } from '../workspaces/system-git.ts'

export const manifestSchema = z.object({
  format: z.literal(1),
  at: z.string(),
  gateway_id: z.uuid(),
  tenant_id: z.uuid(),
  slug: z.string(),
  url: z.string(),
  hostname: z.string(),
  version: z.string(),
  agents: z.array(z.object({ slug: z.string(), agent_id: z.string().nullable(), head: z.string() })),
  troubles: z.array(z.string()),
})
export type Manifest = z.infer<typeof manifestSchema>

export interface Snapshot {
  readonly manifest: Manifest
  readonly entries: readonly ArchiveEntry[]
  /** For people: `backups.contents`. */
  readonly contents: Record<string, unknown>
}

/** A repository that takes longer than this to pack has something wrong with it. */
const BUNDLE_MS = 20 * 60_000

/** `folder` is for what has to be made on the way; its owner removes it. */
export async function takeSnapshot(
  context: GatewayContext,
  folder: string,
  { signal, step }: { readonly signal: AbortSignal; readonly step?: (name: 'files' | 'repository') => void },
): Promise<Snapshot> {
  const { home, workspaces, replica } = context
  const credentials = await readCredentials(home)
  if (!credentials) throw new Error('The gateway’s folder has no credentials.json.')
  const git = createSystemGit()
  const at = new Date(context.now()).toISOString()

  step?.('files')
  const agents: Manifest['agents'] = []
  const troubles: string[] = []
  for (const slug of await workspaces.slugs()) {
    signal.throwIfAborted()
    try {
      agents.push(await saveAgent(context, slug))
    } catch (error) {
      troubles.push(`${slug}: ${error instanceof Error ? error.message : String(error)}`)
      context.log('warn', 'A backup could not commit what an agent’s folder has', { agent: slug, error })
    }
  }
  signal.throwIfAborted()

  step?.('repository')
  const gitdir = join(home, 'repo.git')
  const entries: ArchiveEntry[] = []
  const [refs, bundle] = [
    await git.run(['for-each-ref', '--format=%(refname)'], { cwd: gitdir }),
    join(folder, 'repo.bundle'),
  ]
  if (refs.trim() !== '') {
    await rm(bundle, { force: true })
    await git.run(['bundle', 'create', '--quiet', bundle, '--all'], { cwd: gitdir, signal, timeoutMs: BUNDLE_MS })
    entries.push({ name: 'repo.bundle', content: { path: bundle, size: (await stat(bundle)).size } })
  }
  for (const name of ['credentials.json', 'recovery-key', 'models.json', 'dispatcher.json'])
    entries.push(...(await fileEntry(home, name)))
  for (const name of await namesIn(join(home, 'agents')))
    if (/^[a-z0-9-]+\.(json|env)$/.test(name)) entries.push(...(await fileEntry(home, `agents/${name}`)))
  for (const name of await filesBelow(join(home, 'openclaw', 'state')))
    if (!/(^|\/)(logs|tmp|cache)\/|\.lock$/.test(name))
      entries.push(...(await fileEntry(home, `openclaw/state/${name}`)))

  // (S2)
  const waiting = await replica.query<{ copy: string }>(
    'select to_jsonb(e)::text as copy from sync.entries e order by e.seq',
  )
  entries.push({ name: 'outbox.jsonl', content: waiting.map(({ copy }) => `${copy}\n`).join('') })

  const { gateway_id, tenant_id, slug, url } = credentials
  const host = context.env['HQ_HOSTNAME'] || hostname()
  const manifest: Manifest = {
    format: 1,
    at,
    gateway_id,
    tenant_id,
    slug,
    url,
    hostname: host,
    version: VERSION,
    agents,
    troubles,
  }
  const contents = {
    agents: agents.length,
    branches: refs.split('\n').filter((ref) => ref !== '').length,
    files: entries.length,
    waiting: waiting.length,
    hostname: host,
    version: VERSION,
    ...(troubles.length > 0 ? { troubles } : {}),
  }
  return {
    manifest,
    contents,
    entries: [{ name: 'manifest.json', content: JSON.stringify(manifest, null, 2) }, ...entries],
  }
}

/** (S1) */
async function saveAgent(
  { replica, workspaces, gatewayId, publishFiles }: GatewayContext,
  slug: string,
): Promise<Manifest['agents'][number]> {
  const agentId = await workspaces.ownerOf(slug)
  const [agent] = await replica.query<{ id: string }>(
    'select id from agents where id::text = $1 and gateway_id = $2 and deleted_at is null',
    [agentId, gatewayId],
  )
  if (agent) await publishFiles(agent.id, 'Before a backup')
  else await workspaces.commit(slug, 'Before a backup', GATEWAY_AUTHOR)
  return { slug, agent_id: agentId, head: await workspaces.head(slug) }
}

/** Small files as they are now; large ones by their size. None when it is not there. */
async function fileEntry(home: string, name: string): Promise<ArchiveEntry[]> {
  const path = join(home, ...name.split('/'))
  try {
    const { size, mode } = await stat(path)
    const content = size > 1024 * 1024 ? { path, size } : await readFile(path)
    return [{ name, mode: mode & 0o755, content }]
  } catch (error) {
    if (isCode(error, 'ENOENT')) return []
    throw error
  }
}

async function filesBelow(folder: string): Promise<string[]> {
  try {
    const all = await readdir(folder, { recursive: true, withFileTypes: true })
    return all
      .filter((entry) => entry.isFile())
      .map((entry) =>
        join(entry.parentPath, entry.name)
          .slice(folder.length + 1)
          .replaceAll('\\', '/'),
      )
      .sort()
  } catch (error) {
    if (isCode(error, 'ENOENT')) return []
    throw error
  }
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    return (await readdir(folder)).sort()
  } catch (error) {
    if (isCode(error, 'ENOENT')) return []
    throw error
  }
}
