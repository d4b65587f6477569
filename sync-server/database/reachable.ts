/**
 * Places that another user can pass through. As root, HQ runs Postgres as the user `postgres`, which may not pass through a private folder
 * (a clone in `/root`, a temporary folder of mode 0700). Then programs are copied, and data is kept, under `/var/lib/hq` instead.
 *
 *  R1 What can be reached is used where it is.
 *  R2 A copy is complete or absent: it is made aside and renamed.
 *  R3 Data kept elsewhere is linked from where it would have been, so that `HQ_HOME` still shows it.
 */
import { createHash, randomUUID } from 'node:crypto'
import { cp, lstat, mkdir, realpath, rename, rm, stat, symlink } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'

const SHELTER = '/var/lib/hq'

/** Whether everybody may pass through every folder above `path`, as far as they exist. */
export async function isReachable(path: string): Promise<boolean> {
  for (let at = dirname(resolve(path)); ; at = dirname(at)) {
    const found = await stat(at).catch(() => undefined)
    if (found && (found.mode & 0o001) === 0) return false
    if (at === dirname(at)) return true
  }
}

/** `folder` itself, or a copy of it that can be reached (R1, R2). `version` tells copies of different contents apart. */
export async function reachableCopy(folder: string, version: string): Promise<string> {
  if (await isReachable(join(folder, 'x'))) return folder
  const copy = join(SHELTER, 'programs', `${basename(folder)}-${version}`)
  if (await stat(copy).catch(() => undefined)) return copy
  const aside = `${copy}.${randomUUID()}`
  await mkdir(dirname(copy), { recursive: true, mode: 0o755 })
  await cp(folder, aside, { recursive: true, verbatimSymlinks: true })
  // Another process may have been faster; then its copy is as good.
  await rename(aside, copy).catch(() => rm(aside, { recursive: true, force: true }))
  return copy
}

/**
 * Where data meant for `path` is to be kept: there, or under the shelter with a link from there (R3). What already lies at `path` (made by a
 * person who has since closed a folder above it) is moved along.
 */
export async function reachablePlace(path: string): Promise<string> {
  const link = await lstat(path).catch(() => undefined)
  if (link?.isSymbolicLink()) return realpath(path)
  if (await isReachable(path)) return path
  const name = createHash('sha256').update(resolve(path)).digest('hex').slice(0, 16)
  const place = join(SHELTER, 'data', name, basename(path))
  await mkdir(dirname(place), { recursive: true, mode: 0o755 })
  if (link) {
    await cp(path, place, { recursive: true, preserveTimestamps: true })
    await rename(path, `${path}.moved`)
  }
  await symlink(place, path)
  return place
}
