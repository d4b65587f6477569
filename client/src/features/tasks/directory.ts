/** Everybody and everything that tasks refer to: agents, people, streams, gateways. Small tables, read whole, shared by all who ask. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { useMemo } from 'react'
import { useRows } from '../../replica/hooks.ts'
import { useSession } from '../../session/session.ts'
import type { Actor } from '../../ui/avatar.tsx'
import type { Mentionable } from '../comments/mentions.ts'
import type { Assignee } from './model.ts'

export type AgentRow = Pick<
  Row<'agents'>,
  | 'id'
  | 'name'
  | 'slug'
  | 'status'
  | 'status_reason'
  | 'gateway_id'
  | 'gate'
  | 'gate_detail'
  | 'gate_until'
  | 'pause_requested_at'
  | 'paused_by'
  | 'meta'
  | 'deleted_at'
>
export type PersonRow = Pick<Row<'people'>, 'id' | 'name' | 'email' | 'deleted_at'>
export type StreamRow = Pick<Row<'streams'>, 'id' | 'name' | 'color' | 'is_archived' | 'deleted_at'>
export type GatewayRow = Pick<
  Row<'gateways'>,
  'id' | 'label' | 'slug' | 'status' | 'last_seen_at' | 'pause_requested_at' | 'deleted_at'
>

export interface Directory {
  /** Those that can be chosen: not deleted, by name. */
  readonly agents: readonly AgentRow[]
  readonly people: readonly PersonRow[]
  readonly streams: readonly StreamRow[]
  readonly agent: (id: string | null) => AgentRow | undefined
  readonly person: (id: string | null) => PersonRow | undefined
  readonly stream: (id: string | null) => StreamRow | undefined
  /** Also of those that are gone, because their work stays. */
  readonly actor: (assignee: Assignee) => Actor | undefined
  readonly mentionable: readonly Mentionable[]
  readonly me: string
  readonly zone: string
  readonly canWrite: boolean
}

const AGENTS = `select id, name, slug, status, status_reason, gateway_id, gate, gate_detail, gate_until, pause_requested_at, paused_by, meta, deleted_at
  from agents order by lower(name), id`
const PEOPLE = 'select id, name, email, deleted_at from people order by lower(name), id'
const STREAMS = 'select id, name, color, is_archived, deleted_at from streams order by sort_order, lower(name), id'

export const emojiOf = (agent: Pick<AgentRow, 'meta'>): string => {
  const emoji = agent.meta['emoji']
  return typeof emoji === 'string' && emoji !== '' ? emoji : '🤖'
}

export const agentActor = (agent: AgentRow): Actor => ({
  kind: 'agent',
  id: agent.id,
  name: agent.name,
  emoji: emojiOf(agent),
})
export const personActor = (person: PersonRow): Actor => ({ kind: 'person', id: person.id, name: person.name })

export function useDirectory(): Directory {
  const session = useSession()
  const agents = useRows<AgentRow>(AGENTS, [], { tables: ['agents'] }).rows
  const people = useRows<PersonRow>(PEOPLE, [], { tables: ['people'] }).rows
  const streams = useRows<StreamRow>(STREAMS, [], { tables: ['streams'] }).rows
  const me = session.principal.person_id
  const zone = session.workspace?.owner_timezone ?? 'UTC'
  const { canWrite } = session
  return useMemo(() => {
    const agentById = new Map(agents.map((row) => [row.id, row]))
    const personById = new Map(people.map((row) => [row.id, row]))
    const streamById = new Map(streams.map((row) => [row.id, row]))
    const live = <T extends { readonly deleted_at: string | null }>(rows: readonly T[]) =>
      rows.filter((row) => row.deleted_at === null)
    const actor = (assignee: Assignee): Actor | undefined => {
      if (!assignee) return undefined
      if (assignee.type === 'agent') {
        const agent = agentById.get(assignee.id)
        return agent
          ? agentActor(agent)
          : { kind: 'agent', id: assignee.id, name: 'An agent that is gone', emoji: '🤖' }
      }
      const person = personById.get(assignee.id)
      return person ? personActor(person) : { kind: 'person', id: assignee.id, name: 'Somebody who left' }
    }
    return {
      agents: live(agents).filter((agent) => agent.status !== 'removing'),
      people: live(people),
      streams: live(streams).filter((stream) => !stream.is_archived),
      agent: (id) => (id ? agentById.get(id) : undefined),
      person: (id) => (id ? personById.get(id) : undefined),
      stream: (id) => (id ? streamById.get(id) : undefined),
      actor,
      mentionable: [
        ...live(agents).map((agent) => ({ key: agent.slug, handle: agent.slug, actor: agentActor(agent) })),
        ...live(people).map((person) => ({ key: person.id, handle: person.name, actor: personActor(person) })),
      ],
      me,
      zone,
      canWrite,
    }
  }, [agents, people, streams, me, zone, canWrite])
}
