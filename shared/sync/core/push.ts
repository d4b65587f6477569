/**
 * Bringing what is pending to the server, in order, exactly once: pure.
 *
 * W1 Batches go in order of `seq`, one at a time; a repeat after a lost answer is recognised by the server by `seq` and mutation id.
 * W2 An answer is used for flow only: `accepted` means "need not be sent again". A mutation ends through the read path (settle.ts).
 * W3 The server says which `seq` it expects (409 `out_of_order`). What we still hold from there on is sent again. What we do not hold, or have never made,
 *    or what somebody else has made under our name (409 `identity_taken`), means that this database or the server's was copied or restored: we take a
 *    new identity and number what is pending anew.
 * W4 Nothing is dropped: without rights, or with the wrong schema, the outbox is parked and tried again later.
 * W5 What was read, asked or answered under a former identity is about nobody and is ignored.
 */
import type { ErrorBody, PushResponse } from '../protocol.ts'
import { type Step, step } from './step.ts'

export interface PushState {
  readonly replicaId: string
  /** What is under way. */
  readonly doing: 'nothing' | 'reading' | 'sending' | 'looking' | 'storing' | 'renewing' | 'waiting'
  /** Something may be pending that no `read` has seen yet. */
  readonly dirty: boolean
  /** Mutations in one push: fewer after "too large". */
  readonly most: number
  readonly failures: number
  /** The last `expected_seq` of a 409: the same twice in a row makes no progress. */
  readonly expectedBefore: number | undefined
  readonly parked: string | null
  readonly first: number
  readonly count: number
  /** What the answer of `look` decides. */
  readonly question: Question | undefined
}

type Question =
  | {
      readonly about: 'accepted'
      readonly upto: number
      /** The last of the batch that was accepted. */
      readonly ours: number
      readonly applied: readonly number[]
    }
  | { readonly about: 'expected'; readonly expected: number }

export type PushEvent =
  | { readonly type: 'poked' }
  /** The next pending mutations, in order. */
  | { readonly type: 'read'; readonly replicaId: string; readonly first: number; readonly count: number }
  /** 200. */
  | { readonly type: 'accepted'; readonly replicaId: string; readonly answer: PushResponse | undefined }
  | {
      readonly type: 'refused'
      readonly replicaId: string
      readonly status: number
      readonly body: ErrorBody | undefined
      readonly retryAfterMs: number
    }
  /** No answer, or the database failed. */
  | { readonly type: 'failed'; readonly reason: string }
  /** What the outbox says: the next number to be given, and whether `seq` is in it, pending or accepted. */
  | { readonly type: 'looked'; readonly replicaId: string; readonly next: number; readonly held: boolean }
  | { readonly type: 'stored' }
  | { readonly type: 'renewed'; readonly replicaId: string }
  | { readonly type: 'woke' }

export type PushEffect =
  | { readonly type: 'read'; readonly most: number }
  /** What `read` found. */
  | { readonly type: 'send' }
  | { readonly type: 'look'; readonly seq: number }
  /** Pending mutations up to `upto` are accepted; `applied` of them are known to have taken effect. Only while we still are `replicaId` (W5). */
  | {
      readonly type: 'accept'
      readonly replicaId: string
      readonly upto: number
      readonly applied: readonly number[]
    }
  /** Accepted below `expected`, pending from there on. Only while we still are `replicaId` (W5). */
  | { readonly type: 'realign'; readonly replicaId: string; readonly expected: number }
  | { readonly type: 'renew'; readonly reason: string }
  | { readonly type: 'sleep'; readonly why: 'backoff'; readonly attempt: number; readonly atLeastMs: number }
  | { readonly type: 'sleep'; readonly why: 'parked' | 'unauthorized' }
  | { readonly type: 'set_parked'; readonly reason: string | null }
  | { readonly type: 'set_unauthorized'; readonly unauthorized: boolean }
  | { readonly type: 'log'; readonly level: 'debug' | 'info' | 'warn'; readonly message: string }

export const newPush = (replicaId: string, most: number): PushState => ({
  replicaId,
  doing: 'nothing',
  dirty: false,
  most,
  failures: 0,
  expectedBefore: undefined,
  parked: null,
  first: 0,
  count: 0,
  question: undefined,
})

type PushStep = Step<PushState, PushEffect>

/** @param most mutations of one push, when nothing says otherwise */
export function push(state: PushState, event: PushEvent, most: number): PushStep {
  switch (event.type) {
    case 'poked':
      return state.doing === 'nothing' ? read({ ...state, dirty: true }) : step({ ...state, dirty: true })
    case 'woke':
      return state.doing === 'waiting' ? read(state) : step(state)
    case 'read':
      if (state.doing !== 'reading') return step(state)
      if (event.replicaId !== state.replicaId) return read(state)
      if (event.count === 0) return state.dirty ? read(state) : step({ ...state, doing: 'nothing' })
      return step<PushState, PushEffect>(
        { ...state, doing: 'sending', first: event.first, count: event.count },
        { type: 'send' },
      )
    case 'accepted':
      if (state.doing !== 'sending') return step(state)
      return event.replicaId === state.replicaId ? accepted(state, event.answer) : read(state)
    case 'refused':
      if (state.doing !== 'sending') return step(state)
      return event.replicaId === state.replicaId ? refused(state, event, most) : read(state)
    case 'looked':
      if (state.doing !== 'looking') return step(state)
      return event.replicaId === state.replicaId ? looked(state, event, most) : read(state)
    case 'stored':
      return state.doing === 'storing' ? read({ ...state, question: undefined }) : step(state)
    case 'renewed': {
      // Also when somebody else found out that we are a copy; what is under way then is answered to the former identity (W5).
      const next = { ...state, replicaId: event.replicaId, expectedBefore: undefined, question: undefined }
      const idle = state.doing === 'renewing' || state.doing === 'nothing'
      return idle ? read(next) : step({ ...next, dirty: true })
    }
    case 'failed':
      return state.doing === 'nothing' || state.doing === 'waiting' ? step(state) : retry(state, event.reason)
  }
}

const read = (state: PushState): PushStep =>
  step<PushState, PushEffect>({ ...state, doing: 'reading', dirty: false }, { type: 'read', most: state.most })

const retry = (state: PushState, reason: string, atLeastMs = 0): PushStep =>
  step<PushState, PushEffect>(
    { ...state, doing: 'waiting', failures: state.failures + 1, question: undefined },
    { type: 'log', level: 'debug', message: `Push failed: ${reason}` },
    { type: 'sleep', why: 'backoff', attempt: state.failures, atLeastMs },
  )

const renew = (state: PushState, reason: string): PushStep =>
  step<PushState, PushEffect>({ ...state, doing: 'renewing', question: undefined }, { type: 'renew', reason })

/** W4 */
function park(state: PushState, reason: string): PushStep {
  const sleeping: PushState = { ...state, doing: 'waiting' }
  if (reason === 'unauthenticated') {
    return step<PushState, PushEffect>(
      sleeping,
      { type: 'set_unauthorized', unauthorized: true },
      { type: 'sleep', why: 'unauthorized' },
    )
  }
  const known = state.parked === reason
  return step<PushState, PushEffect>(
    { ...sleeping, parked: reason },
    ...(known ? [] : [{ type: 'set_parked', reason } as const]),
    { type: 'sleep', why: 'parked' },
  )
}

function accepted(state: PushState, answer: PushResponse | undefined): PushStep {
  if (!answer) return retry(state, 'the answer of the server was not readable')
  const upto = answer.last_seq
  if (upto < state.first) return retry(state, 'the server took nothing of the batch')
  const applied = answer.results.flatMap(({ seq, outcome }) => (outcome === 'applied' ? [seq] : []))
  // What lies beyond the batch was sent by somebody else, if by anybody: a copy of us. It is not taken for ours.
  const ours = Math.min(upto, state.first + state.count - 1)
  return step<PushState, PushEffect>(
    { ...state, doing: 'looking', question: { about: 'accepted', upto, ours, applied } },
    { type: 'look', seq: upto },
  )
}

function refused(
  state: PushState,
  { status, body, retryAfterMs }: PushEvent & { type: 'refused' },
  most: number,
): PushStep {
  const code = body?.code ?? `http_${status}`
  switch (status) {
    case 401:
      return park(state, 'unauthenticated')
    case 409: {
      if (code === 'identity_taken') return renew(state, 'another copy of this database has used its numbers')
      const expected = body?.expected_seq
      if (expected === undefined) return retry(state, code)
      if (expected === state.expectedBefore) {
        return retry({ ...state, expectedBefore: undefined }, `the server keeps expecting ${expected}`)
      }
      return step<PushState, PushEffect>(
        { ...state, doing: 'looking', expectedBefore: expected, question: { about: 'expected', expected } },
        { type: 'look', seq: expected },
      )
    }
    case 413:
      if (state.count <= 1) return park(state, 'too_large')
      return read({ ...state, most: Math.max(1, Math.floor(Math.min(state.count, most) / 2)) })
    case 400:
    case 403:
    case 426:
      return park(state, code)
    default:
      return retry(state, code, retryAfterMs)
  }
}

/** W3 */
function looked(state: PushState, { next, held }: PushEvent & { type: 'looked' }, most: number): PushStep {
  const { question } = state
  if (!question) return read(state)
  if (question.about === 'accepted') {
    const { upto, ours, applied } = question
    if (upto >= next)
      return renew(state, `the server has mutations up to ${upto} of this identity, we made ${next - 1}`)
    return step<PushState, PushEffect>(
      { ...state, doing: 'storing', failures: 0, expectedBefore: undefined, most, parked: null },
      { type: 'accept', replicaId: state.replicaId, upto: ours, applied },
      ...(state.parked === null ? [] : [{ type: 'set_parked', reason: null } as const]),
      { type: 'set_unauthorized', unauthorized: false },
    )
  }
  const { expected } = question
  if (expected > next) {
    return renew(state, `the server has mutations up to ${expected - 1} of this identity, we made ${next - 1}`)
  }
  if (expected < next && !held) {
    return renew(state, `the server expects mutation ${expected}, which is settled here; it was probably restored`)
  }
  return step<PushState, PushEffect>(
    { ...state, doing: 'storing' },
    { type: 'log', level: 'info', message: `The server expects mutation ${expected}; sending from there.` },
    { type: 'realign', replicaId: state.replicaId, expected },
  )
}
