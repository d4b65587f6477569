/**
 * `move`: an agent goes to another gateway. One action with three payloads, for the two sides of the way:
 *
 * | payload | runs at | |
 * |---|---|---|
 * | `{to_gateway_id}` | the old gateway | ends the agent's runs, commits, packs and seals, sends the parcel, gives the agent away |
 * | `{arrive: <command>}` | the new one, made by `moving/service.ts` | fetches the parcel and unpacks it; the agent is ready |
 * | `{without_files: true}` | the new one, made by a person who has set `agents.gateway_id` as the old one is away | template, and the files as they were last seen |
 *
 *  M1 The agent is given away in the transaction that ends the command: the server takes both or neither, and raises the epoch with it. Until then the old gateway has
 *     everything; from then on it has nothing that counts.
 *  M2 Commands that waited for the agent go along in the letter and are sent anew by the new gateway, each once. A `cancel` before M1 leaves all as it was.
 *  M3 The parcel is taken from the server only when the new gateway has the workspace.
 */
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Row } from '@hq/shared/schema/tables.ts'
import type { Tx } from '@hq/shared/sync/contract.ts'
import { z } from 'zod'
import { forwardedId, type Letter, letterSchema } from '../../moving/letters.ts'
import { type PackedParcel, packAgent, unpackAgent } from '../../moving/pack.ts'
import { parcelsOf } from '../../moving/parcels.ts'
import type { GatewayContext } from '../../service.ts'
import { GATEWAY_AUTHOR, WorkspaceError } from '../../workspaces/contract.ts'
import { publishFiles } from '../../workspaces/publish.ts'
import { ActionError, type Agent, defineAction, type Job, type Outcome } from '../action.ts'
import { clearWayOf, profileOf } from './provision.ts'

const payload = z.union([
  z.object({ to_gateway_id: z.uuid() }),
  z.object({ arrive: z.uuid() }),
  z.object({ without_files: z.literal(true) }),
])

export const move = defineAction({
  name: 'move',
  agent: 'living',
  payload,
  steps: [
    { key: 'stop', label: 'End its runs' },
    { key: 'pack', label: 'Commit, pack and seal' },
    { key: 'send', label: 'Send to the server' },
    { key: 'hand_over', label: 'Hand over' },
    { key: 'fetch', label: 'Fetch what came with it' },
    { key: 'workspace', label: 'Set up the workspace' },
    { key: 'publish', label: 'Publish files' },
  ],
  run: async (job, what) => {
    const { agent, command, context } = job
    if (!agent) throw new ActionError('There is no agent to move.')
    const folder = join(context.home, 'moving', command.id)
    try {
      if ('to_gateway_id' in what) return await depart(job, agent, what.to_gateway_id, folder)
      return await arrive(job, agent, 'arrive' in what ? what.arrive : undefined, folder)
    } finally {
      await rm(folder, { recursive: true, force: true, maxRetries: 3 })
    }
  },
  undo: async ({ context, agent }) => {
    if (agent) await context.replica.write((tx) => goesOn(tx, context, agent.id))
  },
  onEnd: async (tx, context, command, message) => {
    if ('to_gateway_id' in command.payload) return goesOn(tx, context, String(command.agent_id))
    await tx.query(
      `update agents set status = 'error', status_reason = $3 where id = $1 and gateway_id = $2 and deleted_at is null and status = 'provisioning'`,
      [command.agent_id, context.gatewayId, message],
    )
  },
})

const MOVING = 'Moving to '

/** A move that did not come to pass: as before. */
async function goesOn(tx: Tx, { gatewayId }: GatewayContext, agentId: string): Promise<void> {
  await tx.query(
    `update agents set status = 'ready', status_reason = null
      where id = $1 and gateway_id = $2 and deleted_at is null and status = 'provisioning' and starts_with(status_reason, $3)`,
    [agentId, gatewayId, MOVING],
  )
}

async function depart(
  { context, command, signal, step, output }: Job,
  agent: Agent,
  toGatewayId: string,
  folder: string,
): Promise<Outcome> {
  const { replica, gatewayId, tenantId, workspaces } = context
  const [to] = await replica.query<Row<'gateways'>>('select * from gateways where id = $1', [toGatewayId])
  if (toGatewayId === gatewayId) throw new ActionError(`${agent.name} lives on this gateway already.`)
  if (!to || to.deleted_at !== null || !to.public_key)
    throw new ActionError('That gateway was retired, or has not registered yet. Choose another one.')
  if (agent.status === 'removing') throw new ActionError(`${agent.name} is being removed.`)

  step('stop')
  // Closes the dispatcher's gate before the runs are ended, so that none begins in between.
  await replica.write((tx) =>
    tx.query(
      `update agents set status = 'provisioning', status_reason = $3 where id = $1 and gateway_id = $2 and deleted_at is null`,
      [agent.id, gatewayId, `${MOVING}${to.label}`],
    ),
  )
  await context.agentStops.stop(agent.id, `${agent.name} moves to ${to.label}`, 'moved')
  signal.throwIfAborted()

  step('pack')
  let packed: PackedParcel | undefined
  if (await workspaces.exists(agent.slug)) {
    const journey = { tenantId, toGatewayId, commandId: command.id, agent }
    packed = await packAgent(context, journey, to.public_key, folder, signal)
    output(`${Math.ceil(packed.parcel.size / 1024)} KiB, commit ${packed.commit.slice(0, 10)}\n`)
  } else output('It has no workspace here; it begins with its template there.\n')

  step('send')
  if (packed) {
    const parcels = await parcelsOf(context.home, signal, (text) => output(text, 'progress'))
    await parcels.send(packed.path, packed.parcel.sha256, toGatewayId)
  }
  signal.throwIfAborted()

  step('hand_over', to.label)
  const letter: Letter = {
    to_gateway_id: toGatewayId,
    epoch: agent.epoch,
    parcel: packed?.parcel ?? null,
    commit: packed?.commit ?? null,
    forward: [],
  }
  return {
    result: letter as unknown as Record<string, unknown>,
    commit: async (tx) => {
      const waiting = await tx.query<Letter['forward'][number]>(
        `update agent_commands set status = 'cancelled', completed_at = $4, error_message = $5
          where agent_id = $1 and gateway_id = $2 and id <> $3 and status = 'pending' and deleted_at is null and cancel_requested_at is null
          returning id, action, payload, requested_by, requested_by_agent_id`,
        [
          agent.id,
          gatewayId,
          command.id,
          new Date(context.now()),
          `${agent.name} moved to ${to.label}; this is sent on there.`,
        ],
      )
      // (M2) Before the end is written, in the same transaction.
      letter.forward.push(...waiting)
      await tx.query('update agents set gateway_id = $3 where id = $1 and gateway_id = $2', [
        agent.id,
        gatewayId,
        toGatewayId,
      ])
    },
  }
}

/** `letterId` undefined: without its files. */
async function arrive(job: Job, agent: Agent, letterId: string | undefined, folder: string): Promise<Outcome> {
  const { context, signal, step, output } = job
  const { replica, workspaces, gatewayId, tenantId } = context
  const letter = letterId ? await readLetter(context, letterId) : undefined
  const parcels = await parcelsOf(context.home, signal, (text) => output(text, 'progress'))
  await clearWayOf(job, agent)
  let isHere = (await workspaces.ownerOf(agent.slug)) === agent.id && (await workspaces.exists(agent.slug))
  if (isHere && letter?.parcel && (await workspaces.head(agent.slug)) !== letter.commit) {
    // From an earlier stay: this gateway was off when the agent left.
    const archive = await workspaces.remove(agent.slug)
    output(`Kept its former workspace as ${archive ?? 'nothing'}\n`)
    isHere = false
  }
  if (letter?.parcel && letterId) {
    if (!isHere) {
      step('fetch')
      await rm(folder, { recursive: true, force: true })
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const path = join(folder, 'parcel')
      await parcels.fetch(letter.parcel.sha256, path)
      step('workspace')
      const [workspace] = await replica.query<{ slug: string }>('select slug from workspace where deleted_at is null')
      const journey = {
        tenantId,
        toGatewayId: gatewayId,
        commandId: letterId,
        agent,
        workspaceSlug: workspace?.slug ?? 'workspace',
      }
      const { commit } = await unpackAgent(context, journey, letter.parcel, path, folder, signal)
      output(`Commit ${commit.slice(0, 10)}\n`)
    }
  } else if (!isHere) {
    step('workspace')
    await fromTemplate(job, agent)
  }
  signal.throwIfAborted()
  step('publish')
  await filesAreOurs(context, agent.id, signal)
  const { total } = await publishFiles(context, agent)
  output(`${total} files\n`)
  if (letter?.parcel) await parcels.remove(letter.parcel.sha256)
  const now = new Date(context.now())
  return {
    result: { files: total, commit: await workspaces.head(agent.slug) },
    commit: async (tx) => {
      await tx.query(
        `update agents set status = 'ready', status_reason = null, last_seen_at = $3 where id = $1 and gateway_id = $2 and deleted_at is null and status in ('provisioning', 'error')`,
        [agent.id, gatewayId, now],
      )
      for (const { id, action, payload: more, requested_by, requested_by_agent_id } of letter?.forward ?? [])
        await tx.query(
          `insert into agent_commands (id, tenant_id, gateway_id, agent_id, action, payload, requested_by, requested_by_agent_id)
           select $1, $2, $3, $4, $5, $6::jsonb, $7, $8 where not exists (select from agent_commands where id = $1)`,
          [
            forwardedId(id),
            tenantId,
            gatewayId,
            agent.id,
            action,
            JSON.stringify(more),
            requested_by,
            requested_by_agent_id,
          ],
        )
    },
  }
}

async function readLetter({ replica }: GatewayContext, id: string): Promise<Letter> {
  const [row] = await replica.query<{ result: unknown }>('select result from agent_commands where id = $1', [id])
  const letter = letterSchema.safeParse(row?.result)
  if (letter.success) return letter.data
  throw new ActionError('What the old gateway wrote about this move can’t be read. Move the agent once more.')
}

/** The template, and over it the files as the old gateway last showed them. */
async function fromTemplate(job: Job, agent: Agent): Promise<void> {
  const { context, output } = job
  const { workspaces, replica } = context
  const template = typeof agent.meta['template'] === 'string' ? agent.meta['template'] : 'assistant'
  await workspaces.createBranch(await profileOf(job, agent, template))
  await workspaces.createWorktree(agent.slug)
  const files = await replica.query<{ path: string; content: string | null }>(
    'select path, content from agent_files where agent_id = $1 and deleted_at is null order by path',
    [agent.id],
  )
  const lost: string[] = []
  for (const { path, content } of files) {
    if (content === null) {
      lost.push(path)
      continue
    }
    try {
      const place = await workspaces.resolve(agent.slug, path)
      await mkdir(dirname(place), { recursive: true })
      await writeFile(place, content)
    } catch (error) {
      if (!(error instanceof WorkspaceError)) throw error
      lost.push(path)
    }
  }
  await workspaces.commit(agent.slug, 'Files as they were last seen on the former gateway', GATEWAY_AUTHOR)
  output(`${files.length - lost.length} files as they were last seen\n`)
  if (lost.length > 0) output(`Not to be had: ${lost.slice(0, 20).join(', ')}\n`, 'stderr')
}

/** Rows of its files come with the agent, by a shape of their own: those that are here must be ours before they are written. */
async function filesAreOurs(
  { replica, gatewayId }: GatewayContext,
  agentId: string,
  signal: AbortSignal,
): Promise<void> {
  const others = async (): Promise<boolean> =>
    (
      await replica.query('select 1 from agent_files where agent_id = $1 and gateway_id <> $2 limit 1', [
        agentId,
        gatewayId,
      ])
    ).length > 0
  if (!(await others())) return
  await new Promise<void>((resolve, reject) => {
    const look = (): void => {
      others().then(
        (waits) => {
          if (!waits) finish(resolve)
        },
        (error: unknown) => finish(() => reject(error)),
      )
    }
    const ends = [replica.onChange((changes) => changes.has('agent_files') && look())]
    const aborted = (): void => finish(() => reject(signal.reason))
    signal.addEventListener('abort', aborted)
    function finish(then: () => void): void {
      for (const end of ends.splice(0)) end()
      signal.removeEventListener('abort', aborted)
      then()
    }
    look()
  })
}
