/**
 * One process per folder. Node only.
 *
 * PGlite has no lock of its own: two processes on one data directory lose acknowledged rows without an error.
 *
 * K1 While a process holds the lock, every other one is refused, with its process id.
 * K2 A lock whose process is gone (crash, power) is taken over; a process number that was used again since is told apart by its start time.
 */

import { randomUUID } from 'node:crypto'
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'

interface Holder {
  readonly pid: number
  /** Linux: clock ticks since boot; elsewhere empty. */
  readonly started: string
  readonly host: string
  readonly token: string
}

export class LockedError extends Error {
  override name = 'LockedError'
}

/** Takes the lock or throws `LockedError`. Returns the release. */
export function lockFile(path: string): () => void {
  const mine: Holder = { pid: process.pid, started: startOf(process.pid) ?? '', host: hostname(), token: randomUUID() }
  const draft = `${path}.${mine.token}`
  writeFileSync(draft, JSON.stringify(mine), { mode: 0o600 })
  try {
    for (let attempt = 0; attempt < 10; attempt++) {
      // Linking is atomic and never replaces: exactly one process gets it.
      if (tryLink(draft, path)) return () => release(path, mine)
      const holder = readHolder(path)
      if (holder && isAlive(holder)) {
        throw new LockedError(
          `${path.replace(/\.lock$/, '')} is in use by process ${holder.pid}${holder.host === mine.host ? '' : ` on ${holder.host}`}. ` +
            `Stop that process first; if it is not running any more, delete ${path}.`,
        )
      }
      setAside(path, holder)
    }
    throw new LockedError(`The lock ${path} could not be taken: other processes keep taking and leaving it.`)
  } finally {
    rmSync(draft, { force: true })
  }
}

function tryLink(draft: string, path: string): boolean {
  try {
    linkSync(draft, path)
    return true
  } catch (error) {
    if (codeOf(error) === 'EEXIST') return false
    throw error
  }
}

/** Removes a stale lock, and only that: between reading and renaming another process may have taken it over already. */
function setAside(path: string, stale: Holder | undefined): void {
  const aside = `${path}.stale-${randomUUID()}`
  try {
    renameSync(path, aside)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return
    throw error
  }
  if (readHolder(aside)?.token !== stale?.token) tryLink(aside, path)
  rmSync(aside, { force: true })
}

function release(path: string, mine: Holder): void {
  if (readHolder(path)?.token === mine.token) rmSync(path, { force: true })
}

/** Undefined: there is none, or it is not readable (a crash while writing cannot leave one: it is written before it is linked). */
function readHolder(path: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Holder
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || error instanceof SyntaxError) return undefined
    throw error
  }
}

function isAlive({ pid, started, host }: Holder): boolean {
  if (host !== hostname()) return true
  try {
    process.kill(pid, 0)
  } catch (error) {
    if (codeOf(error) === 'ESRCH') return false
  }
  const now = startOf(pid)
  return now === undefined || started === '' || now === started
}

/** When a process started, as the kernel numbers it; undefined where it does not say. */
function startOf(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The name in parentheses may hold spaces; the fields after it do not.
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
  } catch (error) {
    if (codeOf(error) !== undefined) return undefined
    throw error
  }
}

const codeOf = (error: unknown): string | undefined =>
  error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
