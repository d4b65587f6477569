/**
 * Planning one mutation: rights, merge, rules, what follows from it; in memory, without a query.
 *
 *  1. All or nothing: the first refusal refuses the whole mutation.
 *  2. Names of tables and columns come from `shared/schema`; values go to Postgres as one JSON parameter.
 *  3. The tenant is the principal's, whatever a patch says; another tenant's id is simply not there.
 *  4. Columns of the server (`server`, generations, rounds) are computed here, whatever a patch says.
 *  5. An insert of a row that is there already (two sides derived it, or a copied replica sent it again) merges into it.
 */
import { actorRefusal, refusal } from '@hq/shared/domain/access.ts'
import { type Change, computedColumns, derive } from '@hq/shared/domain/derive.ts'
import { derivedId } from '@hq/shared/domain/ids.ts'
import { isTableName, type TableName, tables } from '@hq/shared/schema/tables.ts'
import { clampHlc, textToHlc } from '@hq/shared/sync/hlc.ts'
import { LIMITS, type Mutation, type Patch, type Principal, type RejectionCode } from '@hq/shared/sync/protocol.ts'
import { auditOf } from './audit.ts'
import { type Clock, type Clocks, type Conflict, mergeUpdate, type Values } from './merge.ts'
import { ruleFor } from './rules.ts'
import { type Store, withDefaults } from './store.ts'
import { sameValue, unstorable } from './values.ts'

/** One step for `hq_apply`. */
export interface Operation {
  op: 'insert' | 'ignore' | 'update'
  table: TableName
  columns: string[]
  rows: Values[]
}

export interface ResultRow {
  readonly id: string
  readonly outcome: 'applied' | 'rejected'
  readonly code: RejectionCode | null
  readonly message: string | null
  readonly detail: Values
}

/** What `hq_apply` takes for one mutation. */
export interface Entry {
  readonly seq: number
  readonly mutation_id: string
  readonly ops: Operation[]
  readonly audit: Values[]
  readonly clocks: { table_name: string; row_id: string; clocks: Clocks }[]
  /** Null: applied, nothing to say. */
  readonly result: ResultRow | null
}

export class Rejected extends Error {
  readonly code: RejectionCode
  readonly detail: Values
  constructor(code: RejectionCode, message: string, detail: Values = {}) {
    super(message)
    this.code = code
    this.detail = detail
  }
}

export interface PlanContext {
  readonly principal: Principal
  readonly replicaId: string
  readonly store: Store
  /** Milliseconds since 1970. */
  readonly now: number
}

/** Throws `Rejected`; the store then is as before. */
export function planMutation(mutation: Mutation, context: PlanContext): Entry {
  const { store } = context
  store.begin()
  try {
    const plan = new Plan(mutation, context)
    const entry = plan.run()
    store.commit()
    return entry
  } catch (error) {
    store.rollback()
    throw error
  }
}

class Plan {
  private readonly ops: Operation[] = []
  private readonly audit: Values[] = []
  private readonly clocks: Entry['clocks'] = []
  private readonly changes: Change[] = []
  private readonly lost: Values[] = []
  private readonly clock: Clock
  /** ISO time at which the mutation was made, by its clock. */
  private readonly at: string
  private readonly mutation: Mutation
  private readonly context: PlanContext

  constructor(mutation: Mutation, context: PlanContext) {
    this.mutation = mutation
    this.context = context
    const h = clampHlc(mutation.hlc, context.now, LIMITS.clockDriftMs)
    this.clock = { h, t: mutation.actor.type, i: mutation.actor.id }
    this.at = new Date(textToHlc(h)?.ms ?? context.now).toISOString()
  }

  run(): Entry {
    const { mutation, context } = this
    const wrongActor = actorRefusal(context.principal, mutation.actor, (id) => context.store.agent(id)?.gateway_id)
    if (wrongActor) throw new Rejected('forbidden', wrongActor)
    for (const patch of mutation.patches) this.patch(patch)
    this.deriveMore()
    const { seq, mutation_id } = mutation
    const result: ResultRow | null =
      this.lost.length === 0
        ? null
        : {
            id: derivedId('result', context.replicaId, String(seq)),
            outcome: 'applied',
            code: null,
            message: null,
            detail: { lost: this.lost },
          }
    return { seq, mutation_id, ops: this.ops, audit: this.audit, clocks: this.clocks, result }
  }

  private patch(patch: Patch): void {
    const { table } = patch
    if (!isTableName(table))
      throw new Rejected(
        'unknown_table',
        `There is no table '${table.slice(0, 80)}'. This app may be older or newer than the server.`,
      )
    const id = patch.id.toLowerCase()
    const set: Values = patch.op === 'delete' ? { deleted_at: this.at } : patch.set
    for (const [column, value] of Object.entries(set)) this.checkValue(table, column, value)
    const present = this.context.store.get(table, id)
    if (!present && patch.op !== 'insert') {
      throw new Rejected(
        'missing_row',
        `The server has no such row in ${table}: it was never there, or it was removed for good.`,
        { table, id },
      )
    }
    if (!present) this.insert(table, id, set)
    else this.update(table, id, present, set, patch.base, patch.op === 'insert')
  }

  private checkValue(table: TableName, column: string, value: unknown): void {
    if (!Object.hasOwn(tables[table].columns, column)) {
      throw new Rejected(
        'unknown_column',
        `${table} has no column '${column.slice(0, 80)}'. This app may be older or newer than the server.`,
      )
    }
    const problem = unstorable(value)
    if (problem)
      throw new Rejected('invalid', `The ${column.replaceAll('_', ' ')} can't be stored: ${problem}.`, {
        table,
        column,
      })
    if (column === 'tenant_id' && value !== this.context.principal.tenant_id) {
      throw new Rejected('forbidden', 'That row belongs to another workspace.')
    }
  }

  private insert(table: TableName, id: string, set: Values): void {
    const { store, principal } = this.context
    const owns =
      principal.kind === 'gateway' && (set['gateway_id'] === principal.gateway_id || table === 'agent_inbox_items')
    const row: Values = { id, tenant_id: principal.tenant_id }
    for (const [column, value] of Object.entries(set)) {
      const { merge } = (tables[table].columns as Record<string, { spec: { merge: string } }>)[column]?.spec ?? {
        merge: 'server',
      }
      if (merge === 'server' || (merge === 'owner' && !owns) || value === null || column in row) continue
      row[column] = value
    }
    if (table === 'agent_inbox_items') row['gateway_id'] = store.agent(String(row['agent_id']))?.gateway_id ?? null
    Object.assign(row, computedColumns(table, undefined, withDefaults(table, row), this.at, row))
    const after = withDefaults(table, row)
    this.check(table, undefined, after, row)
    store.put(table, id, after)
    this.addOperation('insert', table, row)
    this.addClocks(table, id, { '*': this.clock })
    this.record(table, id, undefined, after, row)
  }

  private update(
    table: TableName,
    id: string,
    present: Values,
    set: Values,
    base: Values,
    repeatedInsert: boolean,
  ): void {
    const { store, principal } = this.context
    const given = { ...set }
    // Computed by the server (4).
    if (table === 'tasks') delete given['assignment_generation']
    if (table === 'entity_links') delete given['review_round']
    const isOwner = principal.kind === 'gateway' && present['gateway_id'] === principal.gateway_id
    const merged = mergeUpdate({
      table: tables[table],
      present,
      clocks: store.clocks(table, id),
      set: given,
      base,
      clock: this.clock,
      isOwner,
      repeatedInsert,
    })
    if (!merged.ok) throw new Rejected(merged.code, merged.message, { table, id, column: merged.column })
    const changed: Values = merged.set
    Object.assign(changed, computedColumns(table, present, { ...present, ...changed }, this.at, changed))
    if (
      table === 'agents' &&
      !sameValue('uuid', present['gateway_id'], changed['gateway_id'] ?? present['gateway_id'])
    ) {
      Object.assign(changed, arriving(Number(present['epoch'] ?? 1) + 1))
      this.moveInbox(id, changed['gateway_id'])
      this.moveFiles(id, changed['gateway_id'])
    }
    const after = { ...present, ...changed }
    this.check(table, present, after, changed)
    this.keepConflicts(table, id, merged.conflicts)
    this.addClocks(table, id, merged.clocks)
    if (Object.keys(changed).length === 0) return
    this.write(table, id, present, changed)
  }

  /** Puts an update into the plan: the row, the operation, audit, and the change from which more may follow. */
  private write(table: TableName, id: string, before: Values, changed: Values, actor = this.mutation.actor): void {
    const after = { ...before, ...changed }
    this.context.store.put(table, id, after)
    this.addOperation('update', table, { ...changed, id, updated_at: new Date(this.context.now).toISOString() })
    this.record(table, id, before, after, changed, actor)
  }

  private check(table: TableName, before: Values | undefined, after: Values, changed: Values): void {
    const { principal, store } = this.context
    const selfService =
      table === 'people' &&
      principal.kind === 'person' &&
      before?.['id'] === principal.person_id &&
      Object.keys(changed).every((column) => OWN_PROFILE.has(column))
    const refused =
      selfService || this.handsOver(table, before, after) ? undefined : refusal(tables[table], principal, before, after)
    if (refused) throw new Rejected('forbidden', refused, { table, id: after['id'] })
    const broken = ruleFor(table)?.({ before, after, changed, principal, actor: this.mutation.actor, store })
    if (broken) throw new Rejected(broken.code, broken.message, { table, id: after['id'] })
  }

  /** A gateway gives an agent away only where a person's `move`, which ends in the same mutation, has told it to. */
  private handsOver(table: TableName, before: Values | undefined, after: Values): boolean {
    const { principal, store } = this.context
    if (table !== 'agents' || principal.kind !== 'gateway' || before?.['gateway_id'] !== principal.gateway_id)
      return false
    return [...store.all('agent_commands')].some(
      (command) =>
        command['action'] === 'move' &&
        command['agent_id'] === after['id'] &&
        command['gateway_id'] === principal.gateway_id &&
        (command['payload'] as Values)['to_gateway_id'] === after['gateway_id'] &&
        ['leased', 'running'].includes(String(command['status'])),
    )
  }

  /** What browsers see of its files is the new gateway's to write. */
  private moveFiles(agentId: string, gatewayId: unknown): void {
    if (gatewayId === null) return
    for (const file of [...this.context.store.all('agent_files')])
      if (file['agent_id'] === agentId && file['gateway_id'] !== gatewayId)
        this.write('agent_files', String(file['id']), file, { gateway_id: gatewayId })
  }

  /** An agent that moves takes its open work along; what the old gateway had leased begins anew. */
  private moveInbox(agentId: string, gatewayId: unknown): void {
    for (const item of [...this.context.store.all('agent_inbox_items')]) {
      if (item['agent_id'] !== agentId || !['pending', 'leased', 'failed'].includes(String(item['status']))) continue
      this.write('agent_inbox_items', String(item['id']), item, {
        gateway_id: gatewayId,
        status: 'pending',
        lease_owner: null,
        leased_until: null,
      })
    }
  }

  private deriveMore(): void {
    const { store } = this.context
    const { inserts, updates } = derive(this.changes.splice(0), store)
    for (const { table, row } of inserts) {
      if (store.get(table, row.id)) continue
      store.put(table, row.id, withDefaults(table, row))
      this.addOperation('ignore', table, row)
    }
    for (const { table, id, set } of updates) {
      const before = store.get(table, id)
      if (!before) continue
      this.addClocks(
        table,
        id,
        Object.fromEntries(Object.keys(set).map((column) => [column, { ...this.clock, t: 'system', i: null }])),
      )
      this.write(table, id, before, { ...set }, { type: 'system', id: null })
    }
  }

  private record(
    table: TableName,
    id: string,
    before: Values | undefined,
    after: Values,
    changed: Values,
    actor = this.mutation.actor,
  ): void {
    const { run_id: runId, mutation_id } = this.mutation
    this.changes.push({ table, id, before, after, actor, runId, at: this.at })
    const audit = auditOf(table, before, after, changed)
    if (!audit) return
    this.audit.push({
      id: derivedId('audit', this.context.replicaId, mutation_id, String(this.audit.length)),
      actor_type: actor.type,
      actor_id: actor.id,
      run_id: runId,
      occurred_at: this.at,
      ...audit,
    })
  }

  private addOperation(op: Operation['op'], table: TableName, row: Values): void {
    const columns = Object.keys(row).filter((column) => op !== 'update' || column !== 'id')
    const last = this.ops.at(-1)
    if (op !== 'update' && last?.op === op && last.table === table && sameColumns(last.columns, columns))
      last.rows.push(row)
    else this.ops.push({ op, table, columns, rows: [row] })
  }

  private addClocks(table: TableName, id: string, clocks: Clocks): void {
    if (Object.keys(clocks).length === 0) return
    this.context.store.addClocks(table, id, clocks)
    const known = this.clocks.find((one) => one.table_name === table && one.row_id === id)
    if (known) Object.assign(known.clocks, clocks)
    else this.clocks.push({ table_name: table, row_id: id, clocks: { ...clocks } })
  }

  private keepConflicts(table: TableName, id: string, conflicts: readonly Conflict[]): void {
    for (const { column, winner, loser, winnerClock, loserClock, incomingLost } of conflicts) {
      this.addOperation('ignore', 'conflicts', {
        id: derivedId('conflict', this.context.replicaId, this.mutation.mutation_id, table, id, column),
        tenant_id: this.context.principal.tenant_id,
        table_name: table,
        row_id: id,
        column_name: column,
        winner,
        loser,
        winner_actor: actorOf(winnerClock),
        loser_actor: actorOf(loserClock),
        winner_hlc: winnerClock?.h ?? null,
        loser_hlc: loserClock?.h ?? null,
      })
      if (incomingLost) this.lost.push({ table, id, column })
    }
  }
}

/** What everybody may change of itself, whatever its role. */
const OWN_PROFILE = new Set(['name', 'avatar_color', 'timezone'])

/** Nothing begins at the new place before the agent has its folder there. */
const arriving = (epoch: number): Values => ({
  epoch,
  status: 'provisioning',
  status_reason: 'It moves to another gateway and goes on when it has arrived there.',
  gate: null,
  gate_detail: null,
  gate_until: null,
})

const actorOf = (clock: Clock | undefined): Values => (clock ? { type: clock.t, id: clock.i } : {})
const sameColumns = (a: readonly string[], b: readonly string[]): boolean =>
  a.length === b.length && a.every((column, index) => column === b[index])
