/**
 * HQ_HOME: made, checked, and held by one HQ at a time.
 *
 *  1. `lock` names the process that holds the folder, and the address it serves. It appears and goes in one step (link, rename), so that of two
 *     that start at once one gets it.
 *  2. A lock whose process is gone, or whose number now belongs to another process, is void.
 */
import { randomUUID } from 'node:crypto'
import { constants } from 'node:fs'
import { access, link, mkdir, readFile, rename, rm, statfs, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export class HomeError extends Error {}

export interface Lock {
  release(): Promise<void>
}

interface Holder {
  readonly pid: number
  /** When that process began, in the kernel's ticks; undefined where the system doesn't say. */
  readonly began: string | undefined
  readonly url: string
}

export async function prepareHome(home: string): Promise<void> {
  try {
    await mkdir(join(home, 'logs'), { recursive: true })
    await access(home, constants.R_OK | constants.W_OK | constants.X_OK)
    const probe = join(home, `.probe-${randomUUID()}`)
    await writeFile(probe, 'x')
    await unlink(probe)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const why =
      code === 'ENOSPC'
        ? 'the disk is full'
        : code === 'EROFS'
          ? 'it is on a read-only disk'
          : code === 'ENOTDIR' || code === 'EEXIST'
            ? 'a file is in the way'
            : 'this user may not write there'
    throw new HomeError(
      `HQ keeps its data in ${home}, and can't: ${why} (${code ?? String(error)}). Put that right, or name another folder: HQ_HOME=/path/to/folder npm start`,
    )
  }
  const { bavail, bsize } = await statfs(home)
  const megabytes = (bavail * bsize) / 1024 / 1024
  if (megabytes < 200) {
    throw new HomeError(
      `Only ${Math.floor(megabytes)} MB are free where HQ keeps its data (${home}). It needs at least 200 MB to start safely.`,
    )
  }
}

export async function lockHome(home: string, url: string): Promise<Lock> {
  const file = join(home, 'lock')
  const own = `${file}.${process.pid}`
  const holder: Holder = { pid: process.pid, began: await beganAt(process.pid), url }
  await writeFile(own, JSON.stringify(holder))
  try {
    for (let attempt = 0; attempt < 10; attempt++) {
      try {
        await link(own, file)
        return { release: () => release(file, holder) }
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      }
      const other = await readHolder(file)
      if (other && (await isAlive(other))) {
        throw new HomeError(
          `HQ already runs on this data: process ${other.pid}, at ${other.url} (folder ${home}).\n` +
            `Open that address; or stop it first (Ctrl-C in its window, or: kill ${other.pid}). To run another one beside it: HQ_HOME=.hq2 HQ_PORT=3220 npm start`,
        )
      }
      // Whoever moves a void lock away has removed that one, and no newer one.
      await rename(file, `${own}.void`).catch(() => undefined)
      await rm(`${own}.void`, { force: true })
    }
    throw new HomeError(`${file} could not be taken. If no HQ runs on this folder, delete that file and start again.`)
  } finally {
    await rm(own, { force: true })
  }
}

async function release(file: string, holder: Holder): Promise<void> {
  const present = await readHolder(file)
  if (present?.pid === holder.pid && present.began === holder.began) await rm(file, { force: true })
}

async function readHolder(file: string): Promise<Holder | undefined> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as Holder
  } catch {
    return undefined // gone meanwhile, or cut short by a crash: void either way
  }
}

async function isAlive({ pid, began }: Holder): Promise<boolean> {
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  const now = await beganAt(pid)
  return began === undefined || now === undefined || now === began
}

/** Field 22 of /proc/PID/stat; what stands before the last `)` may hold anything. */
async function beganAt(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
}
