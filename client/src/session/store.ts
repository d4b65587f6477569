/**
 * Who is signed in on this browser. A known person opens the app at once, with or without a network; the server is asked
 * in the background.
 *
 * A1 With a remembered session, nothing waits for the server.
 * A2 Only the server's own word ("nobody is signed in") ends a session; being unreachable never does. The local database
 *    stays, and what waits in it is sent after the next sign-in.
 * A3 Signing out without a network counts: it is told to the server before anything else when it can be reached again.
 * A4 All tabs of the browser follow.
 */
import type { SessionResponse } from '@hq/shared/sync/protocol.ts'
import { ApiError, fetchSession, signOut as signOutOnServer } from './api.ts'
import type { Person } from './session.ts'

export type SessionState =
  | { readonly name: 'looking' }
  /** Nobody is remembered and the server cannot be asked. */
  | { readonly name: 'unreachable'; readonly message: string }
  | { readonly name: 'setup' }
  | { readonly name: 'signed-out'; readonly last: Remembered | undefined }
  | { readonly name: 'signed-in'; readonly principal: Person }

/** Kept in localStorage. */
export interface Remembered {
  readonly principal: Person
  /** The server said that this session has ended. */
  readonly ended: boolean
  /** Changes that were not sent when last seen, so that the sign-in screen can say so. */
  readonly waiting: number
}

const KEY = 'hq.session'
const SIGNED_OUT_KEY = 'hq.signed-out'

class SessionStore {
  #state: SessionState = { name: 'looking' }
  #started = false
  readonly #listeners = new Set<() => void>()

  readonly state = (): SessionState => this.#state

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Looks once at what is remembered, then asks the server. Safe to call again. */
  start(): void {
    if (this.#started) return
    this.#started = true
    const remembered = read()
    if (remembered && !remembered.ended) this.#set({ name: 'signed-in', principal: remembered.principal })
    window.addEventListener('storage', (event) => {
      if (event.key === KEY || event.key === null) this.#followOtherTab()
    })
    window.addEventListener('online', () => void this.check())
    void this.check()
  }

  /** Asks the server who we are. Never throws; being unreachable changes nothing for somebody signed in (A2). */
  async check(): Promise<void> {
    let answer: SessionResponse
    try {
      if (readItem(SIGNED_OUT_KEY) !== null) await this.#finishSignOut()
      answer = await fetchSession()
    } catch (error) {
      if (this.#state.name === 'signed-in') return
      const message =
        error instanceof ApiError ? error.message : 'The server gave an answer that this version does not understand.'
      const last = read()
      this.#set(last ? { name: 'signed-out', last } : { name: 'unreachable', message })
      return
    }
    const { principal } = answer
    if (principal?.kind === 'person') this.#signedIn(principal)
    else this.#nobody(answer.setup_required)
  }

  /** Notes how many changes are unsent. */
  noteWaiting(waiting: number): void {
    const remembered = read()
    if (remembered && remembered.waiting !== waiting) writeItem(KEY, JSON.stringify({ ...remembered, waiting }))
  }

  /**
   * Forgets the person here at once (other tabs follow), then tells the server if it can (A3). The caller loads a fresh
   * page afterwards.
   */
  async signOut(): Promise<void> {
    writeItem(SIGNED_OUT_KEY, new Date().toISOString())
    removeItem(KEY)
    try {
      await this.#finishSignOut()
    } catch (error) {
      console.info('The server could not be told of the sign-out; it will be at the next visit.', error)
    }
  }

  async #finishSignOut(): Promise<void> {
    await signOutOnServer()
    removeItem(SIGNED_OUT_KEY)
  }

  #signedIn(principal: Person): void {
    const before = this.#state
    const remembered = read()
    const same =
      remembered?.principal.person_id === principal.person_id && remembered.principal.tenant_id === principal.tenant_id
    writeItem(
      KEY,
      JSON.stringify({ principal, ended: false, waiting: same ? remembered.waiting : 0 } satisfies Remembered),
    )
    if (before.name === 'signed-in' && before.principal.person_id !== principal.person_id) {
      // Somebody else signed in here: the page has the other person's database open.
      location.reload()
      return
    }
    if (before.name !== 'signed-in' || JSON.stringify(before.principal) !== JSON.stringify(principal)) {
      this.#set({ name: 'signed-in', principal })
    }
  }

  #nobody(setupRequired: boolean): void {
    const remembered = read()
    if (remembered && !remembered.ended) writeItem(KEY, JSON.stringify({ ...remembered, ended: true }))
    this.#set(setupRequired ? { name: 'setup' } : { name: 'signed-out', last: read() })
  }

  #followOtherTab(): void {
    const remembered = read()
    const now = this.#state
    if (now.name === 'signed-in') {
      if (!remembered || remembered.ended) this.#set({ name: 'signed-out', last: remembered })
      else if (remembered.principal.person_id !== now.principal.person_id) location.reload()
    } else if (remembered && !remembered.ended) {
      this.#set({ name: 'signed-in', principal: remembered.principal })
    }
  }

  #set(state: SessionState): void {
    this.#state = state
    for (const listener of this.#listeners) listener()
  }
}

/** One per page; inert in Node, where the shell is prerendered. */
export const sessionStore = new SessionStore()

function read(): Remembered | undefined {
  const text = readItem(KEY)
  if (text === null) return undefined
  try {
    const value = JSON.parse(text) as Remembered
    return value.principal?.kind === 'person' ? value : undefined
  } catch {
    return undefined // not ours, or of another version: the server is asked
  }
}

function readItem(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null // storage is blocked here: nobody is remembered
  }
}

function writeItem(key: string, value: string): void {
  try {
    localStorage.setItem(key, value)
  } catch (error) {
    console.warn('This browser keeps nothing for HQ, so it will ask for the password at the next start.', error)
  }
}

function removeItem(key: string): void {
  try {
    localStorage.removeItem(key)
  } catch {
    // storage is blocked here: there was nothing to remove
  }
}
