/** What the derivations are given and what they give back. */
import type { TableName } from '../schema/tables.ts'
import type { Actor } from '../sync/protocol.ts'
import type { Deliverable } from './review.ts'

/** A row, or a part of one, as it travels. */
export type Values = Readonly<Record<string, unknown>>

export interface Change {
  readonly table: TableName
  readonly id: string
  /** Undefined: an insert. */
  readonly before: Values | undefined
  readonly after: Values
  readonly actor: Actor
  readonly runId: string | null
  /** ISO time at which it was made. */
  readonly at: string
}

export interface AgentFacts {
  readonly id: string
  readonly slug: string
  readonly name: string
  readonly gateway_id: string | null
  readonly deleted_at: string | null
}

/** What the derivations may ask; rows as they are after the changes. What is unknown is undefined or empty. */
export interface World {
  readonly tenantId: string
  agent(id: string): AgentFacts | undefined
  agentBySlug(slug: string): AgentFacts | undefined
  task(id: string): Values | undefined
  /** Ids of the tasks that block this one (`blocks` relations that live), finished or not. */
  blockersOf(taskId: string): readonly string[]
  /** Ids of the tasks that this one blocks. */
  blockedBy(taskId: string): readonly string[]
  deliverablesOf(taskId: string): readonly (Deliverable & Values)[]
  /** `context.depth` of the inbox item that the run serves; 0 when unknown or caused by a person. */
  depthOfRun(runId: string): number
}

export interface Derived {
  readonly inserts: {
    readonly table: 'agent_inbox_items' | 'notifications'
    readonly row: Values & { readonly id: string }
  }[]
  readonly updates: { readonly table: 'tasks'; readonly id: string; readonly set: Values }[]
}
