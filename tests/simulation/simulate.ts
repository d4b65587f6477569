/**
 * One run: devices, authority and network under one scheduler, driven by a plan; invariants are checked after every step, and equality at the end.
 *
 * Checked after every step, for every device (the names are those of docs/sync.md):
 *  P2  what was acknowledged is in the outbox, or has taken effect once, or is refused and shown, or was given up by a person
 *  O1  what a reader sees is fold(server's version, pending patches); rows without pending patches have no such version
 *  P6  every row is at least as new as the place that is stored for its stream
 *  O6  numbers in the outbox have no gaps
 *  E1  what is settled is visible: the rows of an ended mutation are at least as new as its effect
 *  P4  a value that was applied and is not there any more has been overwritten by somebody who saw it, or is kept as a loser
 *  H3  no column has a clock further ahead than the allowed drift
 * and at the end, when everything is healthy and writers rest:
 *  P3  every device equals the authority; its outbox is empty or holds only refusals
 */
import { derivedId } from '@hq/shared/domain/ids.ts'
import { type Entry, fold, livePatches } from '@hq/shared/sync/core/overlay.ts'
import { textToHlc } from '@hq/shared/sync/hlc.ts'
import { type Actor, LIMITS, type Principal } from '@hq/shared/sync/protocol.ts'
import { createAuthority, TABLES, TENANT } from './authority.ts'
import { type Change, createDevice, type Device, type Disk } from './device.ts'
import { createWires, type Line } from './network.ts'
import type { Action, Plan } from './plan.ts'
import { createRandom, mixSeed } from './random.ts'
import { createScheduler } from './scheduler.ts'

export interface Violation {
  readonly invariant: string
  readonly message: string
  /** Milliseconds since the start. */
  readonly at: number
}

export interface Outcome {
  readonly violation: Violation | undefined
  readonly events: number
  readonly writes: number
  readonly warnings: readonly string[]
}

/** Told what happens, for a person who looks for a cause. */
export type Trace = (line: string) => void

export interface Limits {
  readonly devices: number
  /** More events than this in the time after the plan: somebody spins. */
  readonly maxEvents: number
}

export const LIMITS_OF_RUN: Limits = { devices: 4, maxEvents: 400_000 }

const START = Date.UTC(2026, 11, 1)
/** How long what a device has heard may be on its way through its own queues. */
const UNDER_WAY_MS = 200
/** So long has everybody to come to rest after the plan. */
const HEALING_MS = 30 * 60_000

class Violated extends Error {
  readonly invariant: string
  constructor(invariant: string, message: string) {
    super(message)
    this.invariant = invariant
  }
}

interface Node {
  readonly device: Device
  readonly line: Line
  readonly person: number
  guard: string
  skewMs: number
  crashed: boolean
}

interface Acknowledged {
  readonly entry: Entry
  readonly by: string
}

export function simulate(plan: Plan, limits: Limits = LIMITS_OF_RUN, trace?: Trace): Outcome {
  const { seed } = plan
  const scheduler = createScheduler(START)
  const authority = createAuthority(START)
  const wires = createWires(scheduler, authority)
  const random = createRandom(mixSeed(seed, 'run'))
  const nodes: Node[] = []
  const roles = ['owner', 'member', 'viewer', 'member'] as const
  const demoted = new Set<number>()
  const acknowledged = new Map<string, Acknowledged>()
  /** Also what a crash came before; the server may have it all the same. */
  const written: Entry[] = []
  const givenUp = new Set<string>()
  /** Had taken effect and settled before the authority was restored from an older copy. */
  const lostByRestore = new Set<string>()
  const acknowledgedBefore = new Set<string>()
  const warnings: string[] = []
  let writes = 0
  let mutations = 0

  const principalOf = (person: number): Principal =>
    person === 3
      ? { kind: 'gateway', tenant_id: TENANT, gateway_id: derivedId('gateway', String(person)), slug: 'g' }
      : {
          kind: 'person',
          tenant_id: TENANT,
          person_id: derivedId('person', String(person)),
          role: demoted.has(person) ? 'viewer' : (roles[person % roles.length] ?? 'member'),
          name: `p${person}`,
          email: `p${person}@x`,
        }

  const addNode = (person: number, from?: Disk): Node => {
    const name = `d${nodes.length}`
    const line: Line = {
      online: true,
      trouble: 0,
      signedIn: true,
      removed: false,
      principal: () => principalOf(person),
    }
    const node: Node = {
      line,
      person,
      guard: `guard ${name}`,
      skewMs: 0,
      crashed: false,
      device: createDevice(
        {
          name,
          seed,
          scheduler,
          network: wires.connect(name, seed, line),
          now: () => scheduler.now() + node.skewMs,
          owner: `o${person}`,
          actor: actorOf(principalOf(person)),
          newReplicaId: () => random.uuid(),
          onWrote: (entry) => written.push(entry),
          onSettled: (entries) => {
            for (const entry of entries) checkEnded(node, entry)
          },
          onWarning: (message) => {
            warnings.push(message)
            say?.(`! ${message}`)
          },
          trace: say && ((line) => say(`  ${name}: ${line}`)),
        },
        from,
      ),
    }
    nodes.push(node)
    return node
  }

  // ---- what people do

  const changesOf =
    (action: Action, index: number) =>
    (state: ReturnType<Device['state']>): readonly Change[] => {
      const dice = createRandom(mixSeed(seed, action.at, action.device, index, String(action.dice[0])))
      const ids = (table: string): string[] =>
        [...state.rows.keys()]
          .filter((key) => key.startsWith(`${table}/`))
          .map((key) => key.slice(table.length + 1))
          .sort()
      const value = (): string => (dice.chance(0.08) ? '' : `v${++writes}`)
      const one = (): Change | undefined => {
        const table = dice.chance(0.25) ? 'streams' : 'contacts'
        const id = dice.pick(ids(table))
        if (!id || dice.chance(0.2)) {
          const name = table === 'streams' ? `stream ${dice.below(4)}` : value()
          return { table, id: dice.uuid(), op: 'insert', set: { tenant_id: TENANT, name } }
        }
        if (dice.chance(0.12)) {
          const gone = state.rows.get(`${table}/${id}`)?.['deleted_at']
          const at = new Date(scheduler.now()).toISOString()
          return { table, id, op: 'update', set: { deleted_at: gone ? null : at } }
        }
        if (table === 'streams') return { table, id, op: 'update', set: { name: `stream ${dice.below(4)}` } }
        const set: Record<string, unknown> = { [dice.pick(['name', 'title', 'notes', 'company']) ?? 'name']: value() }
        if (dice.chance(0.3)) set[dice.pick(['title', 'notes']) ?? 'title'] = value()
        return { table, id, op: 'update', set }
      }
      const count = dice.chance(0.2) ? 2 + dice.below(2) : 1
      const changes = Array.from({ length: count }, one).filter((change) => change !== undefined)
      return changes.filter(({ id }, at) => changes.findIndex((other) => other.id === id) === at)
    }
  const write = (node: Node, action: Action, index = 0): void => {
    const mutationId = derivedId('mutation', String(seed), String(++mutations))
    node.device.write(mutationId, changesOf(action, index), (entry) =>
      acknowledged.set(mutationId, { entry, by: node.device.name }),
    )
  }

  const say: Trace | undefined = trace && ((line) => trace(`${scheduler.now() - START} ${line}`))
  const act = (action: Action): void => {
    say?.(`${action.kind} ${'forMs' in action ? action.forMs : ''} of d${action.device % nodes.length}`)
    const node = nodes[action.device % nodes.length]
    if (!node) return
    const { device, line } = node
    const later = (ms: number, what: () => void): void => void scheduler.at(ms, what)
    switch (action.kind) {
      case 'write': {
        write(node, action)
        return
      }
      case 'burst':
        for (let index = 0; index < 3 + 12 * (action.dice[1] ?? 0); index++) write(node, action, index)
        return
      case 'discard': {
        if (!device.running()) return
        const rejected = device.state().outbox.find(({ state }) => state === 'rejected')
        if (!rejected) return
        givenUp.add(rejected.mutationId)
        device.discard(rejected.seq)
        return
      }
      case 'offline':
        line.online = false
        {
          later(action.forMs, () => {
            line.online = true
            device.wake()
          })
          return
        }
      case 'bad_network':
        line.trouble = action.probability
        {
          later(action.forMs, () => {
            line.trouble = 0
          })
          return
        }
      case 'crash': {
        crash(node, action)
        return
      }
      case 'clock':
        node.skewMs = action.skewMs
        return
      case 'sign_out':
        line.signedIn = false
        {
          later(action.forMs, () => {
            line.signedIn = true
            device.wake()
          })
          return
        }
      case 'remove':
        line.removed = true
        {
          later(action.forMs, () => {
            line.removed = false
            device.wake()
          })
          return
        }
      case 'demote':
        demoted.add(node.person)
        {
          later(action.forMs, () => demoted.delete(node.person))
          return
        }
      case 'clone': {
        clone(node, action)
        return
      }
      case 'rotate': {
        authority.rotate(TABLES[Math.floor((action.dice[1] ?? 0) * TABLES.length)] ?? 'contacts')
        return
      }
      case 'prune': {
        authority.prune()
        return
      }
      case 'backup': {
        authority.backup()
        return
      }
      case 'restore': {
        restore()
        return
      }
      case 'server_crash': {
        wires.cut(action.forMs)
        return
      }
    }
  }
  const crash = (node: Node, action: Action & { kind: 'crash' }): void => {
    if (!node.device.running()) return
    const outbox = new Set(node.device.state().outbox.map(({ mutationId }) => mutationId))
    node.device.crash(action.dice[1] ?? 0)
    // A discard that did not reach the disk is undone: it is shown again.
    for (const { mutationId } of node.device.state().outbox) if (!outbox.has(mutationId)) givenUp.delete(mutationId)
    node.crashed = true
    scheduler.at(action.forMs, () => {
      node.crashed = false
      node.device.start(node.guard)
    })
  }
  const clone = (node: Node, action: Action): void => {
    const disk = node.device.disk()
    if (!disk || nodes.length >= limits.devices + 2) return
    const copy = addNode(node.person, disk)
    // With a guard the copy is found at once; without one, only by what it sends or hears.
    if ((action.dice[1] ?? 0) < 0.5) copy.guard = node.guard
    copy.device.start(copy.guard)
  }
  const restore = (): void => {
    const before = new Map([...acknowledged.keys()].map((id) => [id, authority.effectOf(id)]))
    const refused = new Set([...acknowledged.keys()].filter((id) => authority.refused(id)))
    if (!authority.restore()) return
    const held = new Set(nodes.flatMap(({ device }) => waitingOn(device)))
    wires.cut(50)
    for (const [id, effect] of before) {
      const gone = (effect !== undefined || refused.has(id)) && !authority.effectOf(id) && !authority.refused(id)
      // What somebody still holds is sent again; what had ended everywhere is lost with the database.
      if (gone && !held.has(id)) lostByRestore.add(id)
      else if (gone) acknowledgedBefore.add(id)
    }
    // Ending what was acknowledged in full just before is under way on some devices and can't know better.
    scheduler.at(UNDER_WAY_MS, () => acknowledgedBefore.clear())
  }

  const waitingOn = (device: Device): string[] =>
    (device.disk()?.overlay.outbox ?? [])
      .filter(({ state }) => state !== 'rejected')
      .map(({ mutationId }) => mutationId)

  // ---- what must hold

  const must = (condition: boolean, invariant: string, message: () => string): void => {
    if (!condition) throw new Violated(invariant, message())
  }
  const versions = new WeakMap<object, string>()
  const versionOf = (row: Readonly<Record<string, unknown>> | undefined): string => {
    if (!row) return 'nothing'
    const known = versions.get(row)
    if (known !== undefined) return known
    const version = JSON.stringify(comparable(row))
    versions.set(row, version)
    return version
  }

  const checkEnded = (node: Node, entry: Entry): void => {
    const effect = authority.effectOf(entry.mutationId)
    if (!effect && acknowledgedBefore.has(entry.mutationId)) lostByRestore.add(entry.mutationId)
    must(
      effect !== undefined || lostByRestore.has(entry.mutationId),
      'P2',
      () =>
        `${node.device.name} ended mutation ${entry.mutationId} (${entry.seq}), which ${authority.refused(entry.mutationId) ? 'was refused' : 'never took effect'}`,
    )
    if (!effect) return
    // E1: what the mutation did is in the rows, unless somebody has changed them since.
    for (const { table, id, set } of entry.patches) {
      // Names of streams come back; values of contacts are written once only.
      if (table !== 'contacts') continue
      const { base, rows } = node.device.state()
      const key = `${table}/${id}`
      const seen = base.has(key) ? (base.get(key) ?? undefined) : rows.get(key)
      const now = authority.row(table, id)
      if (!now) continue
      for (const [column, value] of Object.entries(set)) {
        if (column === 'deleted_at' || value === '' || String(now[column] ?? '') !== String(value ?? '')) continue
        must(
          seen !== undefined && String(seen[column] ?? '') === String(value ?? ''),
          'E1',
          () => `${node.device.name} ended ${entry.mutationId} and does not see ${key}.${column} = ${String(value)}`,
        )
      }
    }
  }

  const checked = new WeakSet<object>()
  const checkNode = ({ device }: Node): void => {
    const disk = device.disk()
    if (!disk || checked.has(disk)) return
    checked.add(disk)
    const { name } = device
    const state = disk.overlay
    const inOrder = state.outbox.filter(({ seq }) => seq > 0)
    inOrder.forEach((entry, index) => {
      const before = inOrder[index - 1]
      must(!before || entry.seq > before.seq, 'O6', () => `${name}: ${before?.seq} then ${entry.seq}`)
    })
    const waiting = inOrder.filter(({ state: is }) => is !== 'rejected')
    must(
      inOrder.length === 0 || (inOrder.at(-1)?.seq ?? 0) < state.next,
      'O6',
      () => `${name}: next is ${state.next}, the outbox has ${inOrder.at(-1)?.seq}`,
    )
    const touched = new Set(waiting.flatMap(({ patches }) => patches.map(({ table, id }) => `${table}/${id}`)))
    for (const key of touched) {
      must(state.base.has(key), 'O1', () => `${name}: ${key} has pending changes and no version of the server`)
      const expected = fold(state.base.get(key) ?? undefined, livePatches(state, key))
      must(
        JSON.stringify(expected) === JSON.stringify(state.rows.get(key)),
        'O1',
        () => `${name}: ${key} is ${JSON.stringify(state.rows.get(key))}, not ${JSON.stringify(expected)}`,
      )
    }
    for (const key of state.base.keys()) {
      must(touched.has(key), 'O1', () => `${name}: ${key} keeps a version although nothing is pending`)
    }
    for (const [table, { handle, offset }] of state.shapes) {
      if (state.staging.size > 0) continue
      const held = authority.contentAt(handle, offset)
      if (!held) continue
      for (const [id, row] of held) {
        const key = `${table}/${id}`
        const seen = state.base.has(key) ? state.base.get(key) : state.rows.get(key)
        const newest = authority.row(table, id)
        if (!newest || versionOf(newest) !== versionOf(row)) continue
        must(
          versionOf(seen ?? undefined) === versionOf(row),
          'P6',
          () =>
            `${name} stands at ${handle} ${offset} of ${table}, but has ${versionOf(seen ?? undefined)}, not ${versionOf(row)}`,
        )
      }
    }
  }

  let ledgerOf: readonly unknown[] = []
  const checkLedger = (): void => {
    const now = [
      authority.lsn(),
      authority.epoch(),
      acknowledged.size,
      givenUp.size,
      ...nodes.map(({ device }) => device.disk()),
    ]
    if (now.length === ledgerOf.length && now.every((part, index) => part === ledgerOf[index])) return
    ledgerOf = now
    const held = new Set<string>()
    for (const { device } of nodes)
      for (const { mutationId } of device.disk()?.overlay.outbox ?? []) held.add(mutationId)
    for (const [mutationId, { by }] of acknowledged) {
      const effect = authority.effectOf(mutationId)
      must((effect?.times ?? 0) <= 1, 'P2', () => `${mutationId} of ${by} took effect ${effect?.times} times`)
      must(
        held.has(mutationId) || effect !== undefined || givenUp.has(mutationId) || lostByRestore.has(mutationId),
        'P2',
        () =>
          `${mutationId} of ${by} was acknowledged and is nowhere${authority.refused(mutationId) ? ' (it was refused)' : ''}`,
      )
    }
  }

  const checkClocks = (): void => {
    for (const table of ['contacts', 'streams'] as const) {
      for (const id of authority.visible(table, principalOf(0), '').keys()) {
        for (const [column, clock] of Object.entries(authority.clocksOf(table, id))) {
          const ahead = (textToHlc(clock.h)?.ms ?? 0) - scheduler.now()
          must(ahead <= LIMITS.clockDriftMs, 'H3', () => `${table}/${id}.${column} has a clock ${ahead} ms ahead`)
        }
      }
    }
  }

  /** P4: each value that was written, taken and is not there now was overwritten by somebody who saw it, or lost and is kept. */
  const checkLosers = (): void => {
    const seenAsBase = new Set<string>()
    for (const { patches } of written) {
      for (const { table, id, set, base } of patches) {
        for (const column of Object.keys(set)) seenAsBase.add(`${table}/${id}/${column}/${String(base[column])}`)
      }
    }
    for (const [mutationId, { entry }] of acknowledged) {
      if (!authority.effectOf(mutationId) || lostByRestore.has(mutationId)) continue
      for (const { table, id, op, set } of entry.patches) {
        if (table !== 'contacts') continue
        for (const [column, value] of Object.entries(set)) {
          if (!['name', 'title', 'notes', 'company'].includes(column) || (op === 'insert' && value === null)) continue
          const key = `${table}/${id}/${column}/${String(value)}`
          must(
            authority.row(table, id)?.[column] === value ||
              seenAsBase.has(key) ||
              authority.keptAsLoser(table, id, column, value),
            'P4',
            () => `${key} of ${mutationId} is neither there, nor overwritten by somebody who saw it, nor kept`,
          )
        }
      }
    }
  }

  const checkEqual = (): void => {
    for (const { device, line, person } of nodes) {
      const { name } = device
      const state = device.state()
      const waiting = state.outbox.filter(({ state: is }) => is !== 'rejected')
      must(
        waiting.length === 0,
        'P3',
        () =>
          `${name} still holds ${waiting.map(({ seq, state: is }) => `${seq} ${is}`).join(', ')}; parked: ${device.parked()}; signed in: ${line.signedIn}`,
      )
      must(state.base.size === 0, 'P3', () => `${name} still keeps versions of ${[...state.base.keys()].join(', ')}`)
      for (const table of TABLES) {
        const wanted = authority.visible(table, principalOf(person), state.replicaId)
        const has = new Map([...state.rows].filter(([key]) => key.startsWith(`${table}/`)))
        must(
          wanted.size === has.size,
          'P3',
          () => `${name} has ${has.size} rows of ${table}, the authority ${wanted.size}`,
        )
        for (const [id, row] of wanted) {
          must(
            versionOf(row) === versionOf(has.get(`${table}/${id}`)),
            'P3',
            () => `${name}: ${table}/${id} is ${versionOf(has.get(`${table}/${id}`))}, not ${versionOf(row)}`,
          )
        }
      }
    }
  }

  // ---- the run

  let events = 0
  const result = (violation: Violation | undefined): Outcome => ({ violation, events, writes, warnings })
  try {
    for (let person = 0; person < limits.devices; person++) addNode(person).device.start(`guard d${person}`)
    for (const action of plan.actions) scheduler.at(action.at, () => act(action))
    const end = START + (plan.actions.at(-1)?.at ?? 0) + 61_000
    while (scheduler.step(end)) {
      events++
      for (const node of nodes) checkNode(node)
      checkLedger()
      if (events % 50 === 0) checkClocks()
    }
    for (const node of nodes) {
      Object.assign(node.line, { online: true, trouble: 0, signedIn: true, removed: false })
      node.device.start(node.guard)
      node.device.wake()
    }
    demoted.clear()
    const rest = scheduler.now() + HEALING_MS
    const until = events + limits.maxEvents
    while (scheduler.step(rest)) {
      events++
      for (const node of nodes) checkNode(node)
      if (events % 20 === 0) checkLedger()
      if (events > until) throw new Violated('liveness', `more than ${limits.maxEvents} events after the plan`)
      if (events % 200 === 0 && resting()) break
    }
    checkLedger()
    checkClocks()
    checkEqual()
    checkLosers()
    return result(undefined)
  } catch (error) {
    if (!(error instanceof Violated)) throw error
    return result({ invariant: error.invariant, message: error.message, at: scheduler.now() - START })
  }

  function resting(): boolean {
    try {
      checkEqual()
      return true
    } catch (error) {
      if (error instanceof Violated) return false
      throw error
    }
  }
}

const actorOf = (principal: Principal): Actor =>
  principal.kind === 'person' ? { type: 'human', id: principal.person_id } : { type: 'system', id: null }

/** Rows as both sides can compare them: what is text on the wire is text here, and what is null is not there. */
function comparable(row: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(row)
      .filter(([, value]) => value !== null && value !== undefined)
      .map(([column, value]) => [column, typeof value === 'object' ? JSON.stringify(value) : String(value)] as const)
      .sort(([a], [b]) => (a < b ? -1 : 1)),
  )
}
