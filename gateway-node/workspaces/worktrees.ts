/**
 * Linked worktrees: `agents/<slug>`, registered in the bare repository as git does it itself.
 *
 *  L1 A worktree counts only if its `.git` file names a folder of this repository, that folder names it back, and git has finished making it.
 *  L2 Links that a moved or copied home left pointing elsewhere are put right at opening, before anything is written through them.
 *  L3 A folder in the way is moved to `agents/.aside`, never deleted; only `remove` deletes, after its caller has archived what is in it.
 */
import { lstat, mkdir, readdir, readFile, realpath, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Author } from './contract.ts'
import { isCode } from './paths.ts'
import { type Repository, writeFileAtomically } from './repository.ts'
import type { SystemGit } from './system-git.ts'

export interface Worktrees {
  folder(slug: string): string
  /** Commit that is checked out, null when there is no usable worktree (L1). */
  head(slug: string): Promise<string | null>
  /** Makes the worktree on an existing branch (full ref name) unless it is there; its folder. */
  create(slug: string, branch: string): Promise<string>
  /** Commits everything; null when nothing had changed or there is no worktree. */
  commit(slug: string, message: string, author: Author): Promise<string | null>
  /** Commits one file of the worktree and nothing else, also one that a `.gitignore` names; null when it had not changed. `path` may lead through no link. */
  commitFile(slug: string, path: string, message: string, author: Author): Promise<string | null>
  moveAside(slug: string): Promise<void>
  remove(slug: string): Promise<void>
}

interface Options {
  readonly repository: Repository
  readonly git: SystemGit
  /** Real path of `<home>/agents`. */
  readonly agents: string
  readonly now: () => number
}

export async function openWorktrees({ repository, git, agents, now }: Options): Promise<Worktrees> {
  const registry = join(repository.gitdir, 'worktrees')
  const folder = (slug: string): string => join(agents, slug)

  /** The folder in `repo.git/worktrees` that a `.git` file names; null when it names none. */
  async function adminOf(slug: string): Promise<string | null> {
    const text = await readText(join(folder(slug), '.git'))
    return text?.startsWith('gitdir: ') ? text.slice('gitdir: '.length).trim() : null
  }

  async function head(slug: string): Promise<string | null> {
    const admin = await adminOf(slug)
    if (!admin || dirname(admin) !== registry) return null
    const back = await readText(join(admin, 'gitdir'))
    if (back?.trim() !== join(folder(slug), '.git')) return null
    if ((await readText(join(admin, 'locked')))?.trim() === 'initializing') return null
    const text = (await readText(join(admin, 'HEAD')))?.trim()
    if (!text) return null
    return text.startsWith('ref: ') ? repository.readRef(text.slice('ref: '.length)) : text
  }

  async function repairLinks(): Promise<void> {
    for (const entry of await readdir(agents, { withFileTypes: true })) {
      if (!entry.isDirectory() || entry.name.startsWith('.')) continue
      const named = await adminOf(entry.name)
      if (!named) continue
      const admin = join(registry, basename(named))
      if ((await readText(join(admin, 'HEAD'))) === null) continue
      const link = join(folder(entry.name), '.git')
      if (named !== admin) await writeFileAtomically(link, `gitdir: ${admin}\n`)
      if ((await readText(join(admin, 'gitdir')))?.trim() !== link)
        await writeFileAtomically(join(admin, 'gitdir'), `${link}\n`)
    }
  }

  async function moveAside(slug: string): Promise<void> {
    if (!(await exists(folder(slug)))) return
    const aside = join(agents, '.aside')
    await mkdir(aside, { recursive: true })
    let target = join(aside, `${slug}-${now()}`)
    for (let n = 2; await exists(target); n++) target = join(aside, `${slug}-${now()}-${n}`)
    await rename(folder(slug), target)
  }

  async function unregister(slug: string): Promise<void> {
    const link = join(folder(slug), '.git')
    for (const name of (await readdir(registry).catch(ignoreMissing)) ?? []) {
      const admin = join(registry, name)
      const back = await readText(join(admin, 'gitdir'))
      // Without a `gitdir` it is what a killed `git worktree add` left: git gives it the folder's name.
      if (back === null ? name === slug : back.trim() === link) await rm(admin, { recursive: true, force: true })
    }
  }

  async function commit(slug: string, message: string, author: Author): Promise<string | null> {
    const before = await head(slug)
    if (!before) return null
    const cwd = folder(slug)
    if ((await git.run(['status', '--porcelain', '-z', '--untracked-files=all'], { cwd })) === '') return null
    // A file that can't be read, or a repository without a commit inside the worktree, must not keep the rest from being saved.
    const added = await git.run(['add', '--all', '--ignore-errors'], { cwd }).then(
      () => null,
      (error: unknown) => error,
    )
    const staged = await git.run(['diff', '--cached', '--name-only', '-z'], { cwd })
    if (staged !== '') await git.run(['commit', '--quiet', '--no-verify', '-m', message || 'Changes'], { cwd, author })
    else if (added) throw added
    const after = await head(slug)
    return after === before ? null : after
  }

  async function commitFile(slug: string, path: string, message: string, author: Author): Promise<string | null> {
    const cwd = folder(slug)
    const literally = ['--literal-pathspecs']
    await git.run([...literally, 'add', '--force', '--all', '--', path], { cwd }).catch(async (error: unknown) => {
      // A file that is gone and that git never knew matches nothing.
      if (await exists(join(cwd, path))) throw error
    })
    if ((await git.run([...literally, 'diff', '--cached', '--name-only', '-z', '--', path], { cwd })) === '')
      return null
    await git.run([...literally, 'commit', '--quiet', '--no-verify', '--only', '-m', message, '--', path], {
      cwd,
      author,
    })
    return head(slug)
  }

  async function create(slug: string, branch: string): Promise<string> {
    if (await head(slug)) return folder(slug)
    await moveAside(slug)
    await unregister(slug)
    const name = branch.replace(/^refs\/heads\//, '')
    await git.run(['worktree', 'add', '--quiet', folder(slug), name], { cwd: repository.gitdir })
    return folder(slug)
  }

  await repairLinks()
  return {
    folder,
    head,
    create,
    commit,
    commitFile,
    moveAside,
    remove: async (slug) => {
      await rm(folder(slug), { recursive: true, force: true, maxRetries: 3 })
      await unregister(slug)
    },
  }
}

export const realFolder = async (path: string): Promise<string> => {
  await mkdir(path, { recursive: true, mode: 0o700 })
  return realpath(path)
}

async function readText(path: string): Promise<string | null> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if (isCode(error, 'ENOENT') || isCode(error, 'ENOTDIR') || isCode(error, 'EISDIR')) return null
    throw error
  }
}

const exists = async (path: string): Promise<boolean> => (await lstat(path).catch(ignoreMissing)) !== undefined

function ignoreMissing(error: unknown): undefined {
  if (isCode(error, 'ENOENT')) return undefined
  throw error
}
