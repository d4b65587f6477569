/**
 * Who may see and who may write what. Pure; the declarations in `shared/schema` decide, this reads them.
 *
 * A1 A role may do what every lower role may: owner > admin > member > viewer.
 * A2 A gateway with `own` access touches only rows whose `gateway_id` it is, before and after the change.
 * A3 A person acts as itself only; a gateway as the system, or as an agent that it hosts.
 */
import type { TableSpec } from '../schema/columns.ts'
import { ENUMS, type Enum } from '../schema/enums.ts'
import type { Actor, Principal } from '../sync/protocol.ts'

export type Role = Enum<'role'>

/** Whether `role` is `needed` or higher (A1). */
export const roleAtLeast = (role: Role, needed: Role): boolean => ENUMS.role.indexOf(role) <= ENUMS.role.indexOf(needed)

/** The condition on rows that a reader sees: `null` none at all; otherwise columns that must have these values. */
export function visibleRows(
  table: TableSpec,
  principal: Principal,
  replicaId: string,
): Readonly<Record<string, string>> | null {
  const scope = principal.kind === 'person' ? table.visibility.browser : table.visibility.gateway
  const tenant = { tenant_id: principal.tenant_id }
  switch (scope) {
    case 'none':
      return null
    case 'tenant':
      return tenant
    case 'replica':
      return { ...tenant, replica_id: replicaId }
    case 'person':
      return principal.kind === 'person' ? { ...tenant, person_id: principal.person_id } : null
    case 'own':
      return principal.kind === 'gateway' ? { ...tenant, gateway_id: principal.gateway_id } : null
  }
}

type Values = Readonly<Record<string, unknown>>

/**
 * Why `principal` may not change a row of `table` from `before` to `after` (`before` undefined: an insert), or undefined if it may.
 * Checks table and row; columns are the merge's business.
 */
export function refusal(
  table: TableSpec,
  principal: Principal,
  before: Values | undefined,
  after: Values,
): string | undefined {
  const { name, write, visibility } = table
  if (principal.kind === 'person') {
    if (write.browser === 'none') return `People don't write to ${name}; the server or a gateway does.`
    if (!roleAtLeast(principal.role, write.browser)) {
      return `Your role (${principal.role}) may not change ${name}; that takes the role ${write.browser} or higher. Ask an admin.`
    }
    if (
      visibility.browser === 'person' &&
      [before, after].some((row) => row && row['person_id'] !== principal.person_id)
    ) {
      return `That row of ${name} belongs to another person.`
    }
    return undefined
  }
  if (write.gateway === 'none') return `Gateways don't write to ${name}.`
  if (write.gateway === 'own' && [before, after].some((row) => row && row['gateway_id'] !== principal.gateway_id)) {
    return `That row of ${name} belongs to another gateway.`
  }
  return undefined
}

/** Why `principal` may not act as `actor`, or undefined if it may (A3). `gatewayOfAgent`: the gateway that hosts an agent. */
export function actorRefusal(
  principal: Principal,
  actor: Actor,
  gatewayOfAgent: (agentId: string) => string | null | undefined,
): string | undefined {
  if (principal.kind === 'person') {
    return actor.type === 'human' && actor.id === principal.person_id
      ? undefined
      : 'A person can make changes only in its own name.'
  }
  if (actor.type === 'system') return undefined
  if (actor.type === 'agent' && actor.id && gatewayOfAgent(actor.id) === principal.gateway_id) return undefined
  return 'A gateway can make changes only as the system or as an agent that it hosts.'
}
