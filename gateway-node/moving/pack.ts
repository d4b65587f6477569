/**
 * What an agent takes along, as one sealed file: its branch with all history (`git bundle`), and its sessions.
 *
 *  P1 The file is encrypted with a key of its own; that key is sealed for the new gateway (HPKE), bound to workspace, gateway, command, agent and the file's hash.
 *     Neither the server nor anybody else opens it, and it does not open as another agent's.
 *  P2 Secrets don't travel: each is sealed for one gateway's key. Neither does what `.gitignore` leaves out, which can be had again.
 *  P3 Unpacking may be ended anywhere and begun again; what nobody could open leaves nothing but a folder below `moving/`, which the next attempt clears away.
 */
import { randomBytes } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { cp, mkdir, readdir, readFile, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type ArchiveEntry, extractArchive, writeArchive } from '@hq/shared/backup/archive.ts'
import { BackupError } from '@hq/shared/backup/sealed-file.ts'
import { open as openSealed, type SealedPlace, seal } from '@hq/shared/domain/sealing.ts'
import { z } from 'zod'
import { readCredentials } from '../registration.ts'
import { ActionError } from '../runner/action.ts'
import type { GatewayContext } from '../service.ts'
import { isCode } from '../workspaces/paths.ts'

export const parcelSchema = z.object({
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  size: z.number(),
  /** The file's key, sealed for the new gateway (P1). */
  sealed: z.string(),
})
export type Parcel = z.infer<typeof parcelSchema>

const contentsSchema = z.object({ agent_id: z.uuid(), slug: z.string(), commit: z.string(), template: z.string() })

interface Agent {
  readonly id: string
  readonly slug: string
}

/** Whose key it is sealed for, and in which command. */
export interface Journey {
  readonly tenantId: string
  readonly toGatewayId: string
  readonly commandId: string
  readonly agent: Agent
}

const placeOf = ({ tenantId, toGatewayId, commandId, agent }: Journey, sha256: string): SealedPlace => ({
  tenantId,
  gatewayId: toGatewayId,
  secretId: commandId,
  version: 1,
  use: ['parcel', agent.id, sha256],
})

export interface PackedParcel {
  readonly path: string
  readonly parcel: Parcel
  readonly commit: string
}

/** `folder` is for what is made on the way; its owner removes it. */
export async function packAgent(
  { home, workspaces, now }: Pick<GatewayContext, 'home' | 'workspaces' | 'now'>,
  journey: Journey,
  publicKey: string,
  folder: string,
  signal: AbortSignal,
): Promise<PackedParcel> {
  const { agent } = journey
  await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const bundle = join(folder, 'agent.bundle')
  const { commit, template } = await workspaces.pack(agent.slug, bundle, signal)
  const contents: z.infer<typeof contentsSchema> = { agent_id: agent.id, slug: agent.slug, commit, template }
  const entries: ArchiveEntry[] = [
    { name: 'agent.json', content: JSON.stringify(contents) },
    { name: 'agent.bundle', content: { path: bundle, size: (await stat(bundle)).size } },
  ]
  const state = stateFolder(home, agent.slug)
  for (const name of await filesBelow(state))
    entries.push({
      name: `state/${name}`,
      content: { path: join(state, name), size: (await stat(join(state, name))).size },
    })
  const key = randomBytes(32)
  const path = join(folder, 'parcel')
  const { size, sha256 } = await writeArchive(path, entries, {
    kind: 'gateway',
    secret: { key },
    at: new Date(now()).toISOString(),
    signal,
  })
  const sealed = await seal(publicKey, placeOf(journey, sha256), key.toString('base64url'))
  return { path, parcel: { sha256, size, sealed }, commit }
}

/** Its workspace and its sessions, as they were. `path`: the file as it was fetched. */
export async function unpackAgent(
  { home, workspaces }: Pick<GatewayContext, 'home' | 'workspaces'>,
  journey: Journey & { readonly workspaceSlug: string },
  { sha256, sealed }: Parcel,
  path: string,
  folder: string,
  signal: AbortSignal,
): Promise<{ readonly commit: string }> {
  const { agent, workspaceSlug } = journey
  const credentials = await readCredentials(home)
  if (!credentials) throw new Error('The gateway’s folder has no credentials.json.')
  const key = await openSealed(credentials.private_key, placeOf(journey, sha256), sealed)
  if (!key.ok)
    throw new ActionError(
      'What came with the agent was sealed for another key than this gateway’s, so it can’t be opened here. Move the agent back, then here again; or go on without its files.',
    )
  const inside = join(folder, 'open')
  try {
    await extractArchive(
      createReadStream(path),
      { kind: 'gateway', secret: { key: Buffer.from(key.value, 'base64url') } },
      inside,
    )
  } catch (error) {
    if (!(error instanceof BackupError)) throw error
    throw new ActionError('What came with the agent is damaged, so nothing of it was taken. Move it once more.', {
      cause: error,
    })
  }
  const contents = contentsSchema.parse(JSON.parse(await readFile(join(inside, 'agent.json'), 'utf8')))
  if (contents.agent_id !== agent.id || contents.slug !== agent.slug)
    throw new ActionError('What came is another agent’s. Nothing of it was taken.')
  if ((await filesBelow(join(inside, 'state'))).length > 0)
    await cp(join(inside, 'state'), stateFolder(home, agent.slug), { recursive: true, force: true })
  const { commit, template } = contents
  await workspaces.unpack(
    { agentId: agent.id, slug: agent.slug, workspaceSlug, template, commit },
    join(inside, 'agent.bundle'),
    signal,
  )
  return { commit }
}

/** Sessions of the OpenClaw runtime; the builtin one keeps none outside of rows and worktree. */
const stateFolder = (home: string, slug: string): string => join(home, 'openclaw', 'state', 'agents', slug)

async function filesBelow(folder: string): Promise<string[]> {
  try {
    const all = await readdir(folder, { recursive: true, withFileTypes: true })
    return all
      .filter((entry) => entry.isFile() && !entry.name.endsWith('.lock'))
      .map((entry) => join(entry.parentPath, entry.name).slice(folder.length + 1))
      .sort()
  } catch (error) {
    if (isCode(error, 'ENOENT')) return []
    throw error
  }
}
