/**
 * One replica's process and its disk, in the simulation: the real steps (pull, push, settle, identity, overlay) with a queue of database jobs, streams and
 * timers around them, as shape.ts, push.ts, settler.ts and replica.ts have them.
 *
 * Each database job is one transaction: it takes effect at once at some moment, and is on the disk for good only after the next `sync`. A crash loses
 * everything in memory and any suffix of the jobs that were not synced. A write is acknowledged after its sync.
 */
import { foreignAck, identify } from '@hq/shared/sync/core/identity.ts'
import {
  acksBeginAnew,
  type Entry,
  newOverlay,
  type Overlay,
  type OverlayEvent,
  overlay,
} from '@hq/shared/sync/core/overlay.ts'
import { newPace, paced, pauseMs } from '@hq/shared/sync/core/pace.ts'
import {
  type BatchAck,
  newPull,
  type Place,
  type PullEffect,
  type PullEvent,
  type PullState,
  pull,
  type ShapeMessage,
} from '@hq/shared/sync/core/pull.ts'
import { newPush, type PushEffect, type PushEvent, type PushState, push } from '@hq/shared/sync/core/push.ts'
import {
  newSettle,
  type SettleEffect,
  type SettleEvent,
  type SettleState,
  settle,
} from '@hq/shared/sync/core/settle.ts'
import { backoffMs } from '@hq/shared/sync/link.ts'
import type { Actor, Mutation } from '@hq/shared/sync/protocol.ts'
import { type PushAnswer, type SimTable, TABLES } from './authority.ts'
import { createRandom, mixSeed, type Random } from './random.ts'
import type { Scheduler } from './scheduler.ts'

export interface Disk {
  readonly overlay: Overlay
  readonly guard: string | null
}

/** What a request comes to; `lost`: no answer, or none that can be read. */
export type StreamAnswer =
  | {
      readonly type: 'answer'
      readonly status: number
      readonly handle: string | undefined
      readonly offset: string
      readonly messages: readonly ShapeMessage[]
      readonly upToDate: boolean
    }
  | { readonly type: 'lost'; readonly truncated: boolean }

export interface DeviceRequest {
  readonly table: SimTable
  readonly handle: string | undefined
  readonly offset: string
  readonly live: boolean
  readonly replicaId: string
}

/** The network as this device has it. Calls back at most once; the function that it returns gives up waiting. */
export interface Network {
  shape(request: DeviceRequest, then: (answer: StreamAnswer) => void): () => void
  push(replicaId: string, mutations: readonly Mutation[], then: (answer: PushAnswer | undefined) => void): () => void
}

export interface DeviceOptions {
  readonly name: string
  readonly seed: number
  readonly scheduler: Scheduler
  readonly network: Network
  /** By the device's own clock. */
  readonly now: () => number
  readonly owner: string
  readonly actor: Actor
  readonly newReplicaId: () => string
  /** Written, perhaps never acknowledged: a crash may come first. */
  readonly onWrote: (entry: Entry) => void
  /** Entries that a settling has ended. */
  readonly onSettled: (ended: readonly Entry[], replicaId: string) => void
  readonly onWarning: (message: string) => void
  readonly trace?: ((line: string) => void) | undefined
}

export interface Change {
  readonly table: SimTable
  readonly id: string
  readonly op: 'insert' | 'update'
  readonly set: Record<string, unknown>
}

export interface Device {
  readonly name: string
  readonly running: () => boolean
  /** As a reader sees it now. */
  readonly state: () => Overlay
  start(guard: string | null | undefined): void
  /** The first write of a directory also makes its identity. */
  write(mutationId: string, changes: (state: Overlay) => readonly Change[], acknowledged: (entry: Entry) => void): void
  discard(seq: number): void
  /** `keep`: in [0, 1], how much of what was not synced survives. */
  crash(keep: number): void
  /** What is on the disk, as a copy of the directory taken now has it. */
  disk(): Disk | undefined
  /** Back online, signed in again: whoever sleeps tries again. */
  wake(): void
  parked(): string | null
}

interface Stream {
  pull: PullState
  pace: typeof newPace
  handle: string | undefined
  offset: string
  live: boolean
  /** Anything older is of a stream that has ended. */
  generation: number
  cancel: (() => void) | undefined
  pausing: boolean
}

const MOST = 7

export function createDevice(options: DeviceOptions, from?: Disk): Device {
  const { scheduler, network } = options
  const random: Random = createRandom(mixSeed(options.seed, options.name))
  let disk: Disk | undefined = from
  /** States since the last sync, the newest last. */
  let unsynced: Disk[] = []
  let memory: Memory | undefined

  interface Memory {
    replicaId: string
    readonly streams: Map<SimTable, Stream>
    push: PushState
    settle: SettleState
    batch: readonly Entry[]
    /** Ended by a crash: what was scheduled before it does nothing. */
    alive: boolean
    renewing: boolean
    readonly sleepers: Set<() => void>
    readonly jobs: (() => void)[]
    busy: boolean
  }

  const commit = (next: Overlay, guard = disk?.guard ?? null): void => {
    disk = { overlay: next, guard }
    unsynced.push(disk)
  }
  const sync = (): void => {
    unsynced = disk ? [disk] : []
  }
  const current = (): Overlay => {
    if (!disk) throw new Error(`${options.name} has no database`)
    return disk.overlay
  }

  /** Database jobs: one after the other, each at some moment. */
  const job = (mine: Memory, work: () => void): void => {
    mine.jobs.push(work)
    if (!mine.busy) nextJob(mine)
  }
  const nextJob = (mine: Memory): void => {
    const work = mine.jobs.shift()
    mine.busy = work !== undefined
    if (!work) return
    scheduler.at(random.below(4), () => {
      if (!mine.alive) return
      work()
      // PGlite forces to disk after lone statements; now and then this is late.
      if (random.chance(0.5)) sync()
      nextJob(mine)
    })
  }
  const event = (of: OverlayEvent): void => {
    commit(overlay(current(), of))
    options.trace?.(
      `${describe(of)} → ${current()
        .outbox.map(({ seq, state }) => `${seq}${state[0]}`)
        .join(' ')}`,
    )
  }

  const sleep = (mine: Memory, ms: number, then: () => void): void => {
    const end = (): void => {
      call()
      mine.sleepers.delete(end)
      if (mine.alive) then()
    }
    const call = scheduler.at(ms, end)
    mine.sleepers.add(end)
  }

  // ---- pull

  const startStream = (mine: Memory, table: SimTable): void => {
    const stream: Stream = mine.streams.get(table) ?? {
      pull: newPull(table),
      pace: newPace,
      handle: undefined,
      offset: '-1',
      live: false,
      generation: 0,
      cancel: undefined,
      pausing: false,
    }
    mine.streams.set(table, stream)
    const generation = ++stream.generation
    job(mine, () => {
      if (stream.generation !== generation) return
      const state = current()
      const stored = stream.pull.refetch ? undefined : state.shapes.get(table)
      const hasRows = !stored && [...state.rows.keys()].some((key) => key.startsWith(`${table}/`))
      pulled(mine, table, stream, { type: 'started', stored, hasRows })
      stream.handle = stored?.handle
      stream.offset = stored?.offset ?? '-1'
      stream.live = false
      ask(mine, table, stream)
    })
  }
  const pulled = (_mine: Memory, _table: SimTable, stream: Stream, of: PullEvent): readonly PullEffect[] => {
    const { state, effects } = pull(stream.pull, of)
    stream.pull = state
    return effects
  }
  const ask = (mine: Memory, table: SimTable, stream: Stream): void => {
    const { generation } = stream
    const send = (): void => {
      stream.pausing = false
      if (stream.generation !== generation) return
      const asked = scheduler.now()
      const request = {
        table,
        handle: stream.handle,
        offset: stream.offset,
        live: stream.live,
        replicaId: mine.replicaId,
      }
      stream.cancel = network.shape(request, (answer) => {
        if (!mine.alive || stream.generation !== generation) return
        stream.cancel = undefined
        if (answer.type === 'answer') {
          const { status, offset: reached } = answer
          const tookMs = scheduler.now() - asked
          stream.pace = paced(stream.pace, { offset: request.offset, live: request.live, status, reached, tookMs })
        }
        answered(mine, table, stream, answer)
      })
    }
    const pause = pauseMs(stream.pace)
    if (pause === 0) {
      send()
      return
    }
    stream.pausing = true
    sleep(mine, pause, send)
  }
  const answered = (mine: Memory, table: SimTable, stream: Stream, answer: StreamAnswer): void => {
    const { generation } = stream
    if (answer.type === 'lost') {
      if (answer.truncated) {
        failed(mine, table, stream, 'not JSON')
        return
      }
      sleep(mine, backoffMs(2, random.next()), () => {
        if (stream.generation === generation) ask(mine, table, stream)
      })
      return
    }
    if (answer.status === 401 || answer.status === 403 || answer.status === 400) {
      failed(mine, table, stream, `status ${answer.status}`, answer.status)
      return
    }
    const mustRefetch: ShapeMessage = { headers: { control: 'must-refetch' } }
    const messages = answer.status === 409 ? [mustRefetch] : answer.messages
    const handle = answer.handle ?? `none-${random.below(1e9)}`
    const effects = pulled(mine, table, stream, { type: 'answered', handle, messages, replicaId: mine.replicaId })
    stream.handle = answer.handle
    stream.offset = answer.status === 409 ? '-1' : answer.offset
    stream.live = answer.upToDate
    applyNext(mine, table, stream, effects)
  }
  const applyNext = (mine: Memory, table: SimTable, stream: Stream, effects: readonly PullEffect[]): void => {
    const { generation } = stream
    const [effect, ...rest] = effects
    if (!effect) {
      pulled(mine, table, stream, { type: 'applied' })
      ask(mine, table, stream)
      return
    }
    const then = (): void => {
      if (mine.alive && stream.generation === generation) applyNext(mine, table, stream, rest)
    }
    switch (effect.type) {
      case 'reached':
        options.trace?.(`reached ${table} ${effect.position}`)
        settled(mine, { type: 'reached', table, position: effect.position })
        {
          then()
          return
        }
      case 'started_over':
        settled(mine, { type: 'started_over', table })
        {
          then()
          return
        }
      case 'loaded': {
        then()
        return
      }
      case 'restart': {
        restart(mine, table, stream, effect)
        return
      }
      case 'set_unauthorized':
      case 'wait_for_rights':
        throw new Error(`${effect.type} is no effect of an answer`)
      default: {
        job(mine, () => {
          if (stream.generation !== generation) return
          // R3: a job may fail, and then nothing of it is kept.
          if (random.chance(0.01)) return failed(mine, table, stream, 'the database failed')
          event({ ...effect, table } as OverlayEvent)
          if ((effect.type === 'apply' || effect.type === 'swap') && acksBeginAnew({ ...effect, table })) {
            settled(mine, { type: 'forgot' })
            pushed(mine, { type: 'poked' })
          }
          if ((effect.type === 'apply' || effect.type === 'swap') && effect.ack) acknowledged(mine, effect.ack)
          then()
        })
        return
      }
    }
  }
  const failed = (mine: Memory, table: SimTable, stream: Stream, reason: string, status?: number): void => {
    const { generation } = stream
    for (const effect of pulled(mine, table, stream, { type: 'failed', reason, status })) {
      if (effect.type === 'restart') restart(mine, table, stream, effect)
      else if (effect.type === 'wait_for_rights') {
        sleep(mine, 5_000, () => {
          if (stream.generation === generation) ask(mine, table, stream)
        })
      }
    }
  }
  const restart = (
    mine: Memory,
    table: SimTable,
    stream: Stream,
    { attempt }: Extract<PullEffect, { type: 'restart' }>,
  ): void => {
    stream.generation++
    stream.cancel?.()
    const { generation } = stream
    sleep(mine, backoffMs(attempt, random.next()), () => {
      if (stream.generation === generation) startStream(mine, table)
    })
  }
  const refresh = (mine: Memory, table: SimTable): void => {
    const stream = mine.streams.get(table)
    if (!stream?.live || stream.pausing || stream.pull.status !== 'streaming' || !stream.cancel) return
    stream.cancel()
    stream.cancel = undefined
    stream.live = false
    ask(mine, table, stream)
  }

  // ---- settle

  const settled = (mine: Memory, of: SettleEvent): void => {
    const { state, effects } = settle(mine.settle, of)
    mine.settle = state
    for (const effect of effects) settleEffect(mine, effect)
  }
  const settleEffect = (mine: Memory, effect: SettleEffect): void => {
    switch (effect.type) {
      case 'refresh': {
        refresh(mine, effect.table as SimTable)
        return
      }
      case 'watch':
        scheduler.at(effect.afterMs, () => {
          if (mine.alive) settled(mine, { type: 'looked' })
        })
        return
      case 'settle': {
        job(mine, () => {
          const before = current()
          event({ type: 'settle', replicaId: effect.replicaId, upto: effect.upto })
          const left = new Set(current().outbox.map(({ mutationId }) => mutationId))
          const ended = before.outbox.filter(({ mutationId }) => !left.has(mutationId))
          if (ended.length > 0) options.onSettled(ended, before.replicaId)
          settled(mine, { type: 'settled', replicaId: effect.replicaId, upto: effect.upto })
        })
        return
      }
    }
  }
  const acknowledged = (mine: Memory, ack: BatchAck): void => {
    const foreign = foreignAck(ack, numbered(ack.seq))
    if (foreign) renew(mine, foreign)
    else settled(mine, { type: 'acknowledged', ack: { seq: ack.seq, lsn: ack.lsn } })
  }
  const numbered = (seq: number) => ({
    next: current().next,
    mutationId: current().outbox.find((entry) => entry.seq === seq)?.mutationId,
  })
  const loaded = (mine: Memory): void => {
    const { outbox, ack } = current()
    settled(mine, {
      type: 'loaded',
      replicaId: mine.replicaId,
      unsettled: outbox
        .filter(({ state, seq }) => state !== 'rejected' && seq > 0)
        .map(({ seq, patches }) => ({ seq, tables: [...new Set(patches.map(({ table }) => table))] })),
      acks: ack ? [{ seq: ack.seq, lsn: ack.lsn }] : [],
    })
  }

  // ---- identity

  const renew = (mine: Memory, reason: string): void => {
    if (mine.renewing) return
    mine.renewing = true
    options.onWarning(`${options.name}: ${reason}`)
    for (const stream of mine.streams.values()) {
      stream.generation++
      stream.cancel?.()
    }
    job(mine, () => {
      mine.replicaId = options.newReplicaId()
      event({ type: 'remint', replicaId: mine.replicaId })
      mine.renewing = false
      loaded(mine)
      for (const table of TABLES) startStream(mine, table)
      pushed(mine, { type: 'renewed', replicaId: mine.replicaId })
    })
  }

  // ---- push

  const pushed = (mine: Memory, of: PushEvent): void => {
    const { state, effects } = push(mine.push, of, MOST)
    if (of.type !== 'poked')
      options.trace?.(
        `push ${of.type} ${'body' in of ? of.body?.code : ''} ${'answer' in of ? of.answer?.last_seq : ''}`,
      )
    mine.push = state
    for (const effect of effects) pushEffect(mine, effect)
  }
  /** Code hears of a finished query a little later, and of other things in between. */
  const hear = (mine: Memory, of: PushEvent): void => {
    scheduler.at(random.below(4), () => {
      if (mine.alive) pushed(mine, of)
    })
  }
  const pushEffect = (mine: Memory, effect: PushEffect): void => {
    switch (effect.type) {
      case 'read': {
        job(mine, () => {
          mine.batch = current()
            .outbox.filter(({ state, seq }) => state === 'pending' && seq > 0)
            .slice(0, effect.most)
          const { replicaId } = current()
          hear(mine, { type: 'read', replicaId, first: mine.batch[0]?.seq ?? 0, count: mine.batch.length })
        })
        return
      }
      case 'send': {
        const { replicaId } = mine.push
        const batch = mine.batch.map((entry) => toMutation(entry, options.actor))
        network.push(replicaId, batch, (answer) => {
          if (!mine.alive) return
          if (!answer) return pushed(mine, { type: 'failed', reason: 'no answer' })
          if (answer.status !== 200) {
            return pushed(mine, {
              type: 'refused',
              replicaId,
              status: answer.status,
              body: answer.body,
              retryAfterMs: 0,
            })
          }
          const { lastSeq, results } = answer
          const body = lastSeq === undefined || !results ? undefined : { last_seq: lastSeq, results: [...results] }
          pushed(mine, { type: 'accepted', replicaId, answer: body })
        })
        return
      }
      case 'look': {
        job(mine, () => {
          const held = current().outbox.some(({ seq, state }) => seq === effect.seq && state !== 'rejected')
          hear(mine, { type: 'looked', replicaId: current().replicaId, next: current().next, held })
        })
        return
      }
      case 'accept': {
        job(mine, () => {
          event(effect)
          if (effect.replicaId === mine.replicaId) settled(mine, { type: 'applied', seqs: new Set(effect.applied) })
          hear(mine, { type: 'stored' })
        })
        return
      }
      case 'realign': {
        job(mine, () => {
          event(effect)
          if (effect.replicaId === mine.replicaId) settled(mine, { type: 'forgot' })
          hear(mine, { type: 'stored' })
        })
        return
      }
      case 'renew': {
        renew(mine, effect.reason)
        return
      }
      case 'sleep': {
        sleep(mine, sleepMs(effect, random), () => pushed(mine, { type: 'woke' }))
        return
      }
      case 'set_parked':
      case 'set_unauthorized':
      case 'log':
        return
    }
  }

  const device: Device = {
    name: options.name,
    running: () => memory !== undefined,
    state: () => current(),
    start(guard) {
      if (memory) return
      if (!disk) {
        commit(newOverlay(options.newReplicaId()), guard ?? null)
        sync()
      }
      const { overlay: at, guard: knownGuard } = disk as unknown as Disk
      const known = { replicaId: at.replicaId, tenantId: 't', ownerId: options.owner, guard: knownGuard }
      const presented = { tenantId: 't', ownerId: options.owner, kind: 'browser' as const, guard: guard ?? undefined }
      const found = identify(known, presented, at.ack && foreignAck(at.ack, numbered(at.ack.seq)))
      if (found.type === 'copy') {
        options.onWarning(`${options.name}: a copy`)
        commit(overlay(at, { type: 'remint', replicaId: options.newReplicaId() }), found.guard ?? knownGuard)
        sync()
      } else if (found.type === 'remember_guard') {
        commit(at, found.guard)
        sync()
      }
      const { replicaId } = current()
      const mine: Memory = {
        replicaId,
        streams: new Map(),
        push: newPush(replicaId, MOST),
        settle: newSettle(replicaId, TABLES),
        batch: [],
        alive: true,
        renewing: false,
        sleepers: new Set(),
        jobs: [],
        busy: false,
      }
      memory = mine
      loaded(mine)
      for (const table of TABLES) startStream(mine, table)
      pushed(mine, { type: 'poked' })
    },
    write(mutationId, changes, acknowledgedWrite) {
      const mine = memory
      if (!mine) return
      job(mine, () => {
        const before = current()
        event({ type: 'wrote', mutationId, now: options.now(), changes: changes(before) })
        const entry = current().outbox.at(-1)
        if (!entry || entry.mutationId !== mutationId) return
        options.onWrote(entry)
        scheduler.at(random.below(3), () => {
          if (!mine.alive) return
          sync()
          acknowledgedWrite(entry)
          settled(mine, {
            type: 'wrote',
            seq: entry.seq,
            tables: [...new Set(entry.patches.map(({ table }) => table))],
          })
          pushed(mine, { type: 'poked' })
        })
      })
    },
    discard(seq) {
      if (memory) job(memory, () => event({ type: 'discard', seq }))
    },
    crash(keep) {
      if (!memory) return
      memory.alive = false
      for (const stream of memory.streams.values()) {
        stream.generation++
        stream.cancel?.()
      }
      memory = undefined
      disk = unsynced[Math.min(unsynced.length - 1, Math.floor(keep * unsynced.length))] ?? disk
      sync()
    },
    disk: () => disk,
    wake() {
      for (const end of [...(memory?.sleepers ?? [])]) end()
    },
    parked: () => memory?.push.parked ?? null,
  }
  return device
}

const sleepMs = (effect: Extract<PushEffect, { type: 'sleep' }>, random: Random): number =>
  effect.why === 'backoff'
    ? Math.max(effect.atLeastMs, backoffMs(effect.attempt, random.next()))
    : effect.why === 'parked'
      ? 15_000
      : 5_000

const describe = (of: OverlayEvent): string => {
  switch (of.type) {
    case 'apply':
    case 'swap':
      return `${of.type} ${of.table} ${of.place?.handle} ${of.place?.offset} @${of.place?.position} ack ${of.ack?.seq}@${of.ack?.lsn}`
    case 'wrote':
      return `wrote ${of.mutationId.slice(0, 8)}`
    default:
      return Object.entries(of)
        .map(([name, value]) => (Array.isArray(value) ? `${value.length} ${name}` : String(value).slice(0, 12)))
        .join(' ')
  }
}

const toMutation = ({ seq, mutationId, hlc, patches }: Entry, actor: Actor): Mutation => ({
  seq,
  mutation_id: mutationId,
  actor,
  run_id: null,
  hlc,
  patches: patches.map(({ table, id, op, set, base }) => ({ table, id, op, set, base }) as Mutation['patches'][number]),
})

export type { Place }
