/**
 * The ways between devices and the authority: each message takes its own time, and may be lost on the way there (nothing happened) or on the way back
 * (it did happen), doubled, cut, or never answered.
 */
import type { Mutation, Principal } from '@hq/shared/sync/protocol.ts'
import type { Authority, PushAnswer } from './authority.ts'
import type { DeviceRequest, Network, StreamAnswer } from './device.ts'
import { createRandom, mixSeed } from './random.ts'
import type { Scheduler } from './scheduler.ts'

/** How one device is connected, changed by the run. */
export interface Line {
  online: boolean
  /** Of each message to go wrong. */
  trouble: number
  signedIn: boolean
  removed: boolean
  readonly principal: () => Principal
}

const PUSH_TIMEOUT_MS = 30_000
const HOLD_MS = 20_000
/** When the transport notices that nothing comes any more. */
const WATCHDOG_MS = 45_000

export interface Wires {
  connect(name: string, seed: number, line: Line): Network
  /** Everything that is on its way, or held, is gone. */
  cut(forMs: number): void
}

export function createWires(scheduler: Scheduler, authority: Authority): Wires {
  let downUntil = 0
  let generation = 0
  const down = (): boolean => scheduler.now() < downUntil

  const connect = (name: string, seed: number, line: Line): Network => {
    const random = createRandom(mixSeed(seed, name, 'network'))
    const delay = (): number =>
      line.trouble > 0 && random.chance(0.2) ? random.below(4_000) : 1 + random.below(random.chance(0.1) ? 200 : 15)
    const wrong = (): boolean => random.chance(line.trouble)
    const denial = (replica: string): { status: number; code: string } | undefined => {
      if (!line.signedIn) return { status: 401, code: 'unauthenticated' }
      if (line.removed || replica === '') return { status: 403, code: 'revoked' }
      return undefined
    }

    const shape = (request: DeviceRequest, then: (answer: StreamAnswer) => void): (() => void) => {
      let open = true
      let unsubscribe: (() => void) | undefined
      const born = generation
      const finish = (answer: StreamAnswer, afterMs: number): void => {
        scheduler.at(afterMs, () => {
          if (!open) return
          open = false
          unsubscribe?.()
          then(line.online && born === generation ? answer : { type: 'lost', truncated: false })
        })
      }
      const lost: StreamAnswer = { type: 'lost', truncated: false }
      if (!line.online || down()) finish(lost, 5)
      else if (wrong()) finish(lost, random.chance(0.3) ? WATCHDOG_MS : delay())
      else scheduler.at(delay(), () => arrive())

      const arrive = (): void => {
        if (!open) return
        if (down() || born !== generation) {
          finish(lost, 5)
          return
        }
        const until = scheduler.now() + HOLD_MS
        const look = (): void => {
          if (!open) return
          if (born !== generation) {
            finish(lost, 5)
            return
          }
          const refused = denial(request.replicaId)
          const blank = { handle: undefined, offset: '-1', messages: [], upToDate: false }
          if (refused) {
            finish({ type: 'answer', status: refused.status, ...blank }, delay())
            return
          }
          const timeOver = scheduler.now() >= until
          const asked = { ...request, live: request.live && !timeOver, principal: line.principal() }
          const answer = authority.shape(asked, random)
          if (!answer) return
          unsubscribe?.()
          if (wrong()) {
            finish({ type: 'lost', truncated: random.chance(0.5) }, random.chance(0.2) ? WATCHDOG_MS : delay())
            return
          }
          finish({ type: 'answer', ...answer }, delay())
          answeredOnce = true
        }
        let answeredOnce = false
        unsubscribe = authority.onChange(() => {
          if (!answeredOnce) scheduler.at(random.below(3), () => !answeredOnce && look())
        })
        scheduler.at(HOLD_MS, () => !answeredOnce && look())
        look()
      }
      return () => {
        open = false
        unsubscribe?.()
      }
    }

    const push = (
      replicaId: string,
      mutations: readonly Mutation[],
      then: (answer: PushAnswer | undefined) => void,
    ): (() => void) => {
      let open = true
      const born = generation
      const finish = (answer: PushAnswer | undefined, afterMs: number): void => {
        scheduler.at(afterMs, () => {
          if (!open) return
          open = false
          then(line.online && born === generation ? answer : undefined)
        })
      }
      const arrive = (afterMs: number, first: boolean): void => {
        scheduler.at(afterMs, () => {
          if (down() || born !== generation) return first ? finish(undefined, 5) : undefined
          const refused = denial(replicaId)
          const answer = refused
            ? { status: refused.status, body: { code: refused.code, message: refused.code } }
            : random.chance(line.trouble / 4)
              ? { status: 503, body: { code: 'busy', message: 'busy' } }
              : authority.push(line.principal(), replicaId, mutations, scheduler.now())
          if (first) finish(wrong() ? undefined : answer, delay())
        })
      }
      if (!line.online || down()) finish(undefined, 5)
      else if (wrong()) finish(undefined, delay())
      else {
        arrive(delay(), true)
        // The network may deliver a request twice, the second time late.
        if (wrong()) arrive(random.below(8_000), false)
      }
      finish(undefined, PUSH_TIMEOUT_MS)
      return () => {
        open = false
      }
    }
    return { shape, push }
  }

  return {
    connect,
    cut(forMs) {
      generation++
      downUntil = Math.max(downUntil, scheduler.now() + forMs)
    },
  }
}
