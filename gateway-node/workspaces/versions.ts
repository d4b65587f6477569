/**
 * Old versions of an agent's files: history, text, difference, restore (W8 of `contract.ts`). isomorphic-git reads; the difference is the system git's.
 *
 *  V1 History follows first parents: a merge of a template counts as one change, as the agent's branch saw it.
 *  V2 Every answer is bounded.
 */
import { type FileDiff, type Version, WorkspaceError, type Workspaces } from './contract.ts'
import { mustBeText } from './files.ts'
import { safeParts } from './paths.ts'
import { NEVER_COMMITTED, type Repository } from './repository.ts'
import type { SystemGit } from './system-git.ts'

const MAX_COMMITS = 2_000
const MAX_DIFF = 200 * 1024
/** Git's own empty tree: what the first commit is compared with. */
const EMPTY_TREE = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'

interface Options {
  readonly repository: Repository
  readonly git: SystemGit
  readonly head: (slug: string) => Promise<string>
  readonly writeText: Workspaces['writeText']
}

export interface Versions extends Pick<Workspaces, 'history' | 'readAt' | 'diff'> {
  readonly restore: Workspaces['restoreVersion']
}

export function openVersions({ repository, git, head, writeText }: Options): Versions {
  /** W8. */
  async function own(slug: string, commit: string): Promise<void> {
    const tip = await head(slug)
    if (/^[0-9a-f]{40}$/.test(commit) && (await repository.isWithin(commit, tip))) return
    const shown = commit.replaceAll(/[^0-9a-zA-Z]/g, '?').slice(0, 12)
    throw new WorkspaceError('not_found', `${shown} is no version of this agent's files. Reload their history.`)
  }

  async function history(slug: string, path?: string, limit = 100): Promise<readonly Version[]> {
    const wanted = path === undefined ? undefined : cleanPath(path)
    const found: Version[] = []
    let next: string | undefined = await head(slug)
    for (let seen = 0; next !== undefined && seen < MAX_COMMITS && found.length < limit; seen++) {
      const commit: string = next
      const { parents, author, time, message } = await repository.readCommit(commit)
      next = parents[0]
      const version = { commit, author: author.name, email: author.email, time, message: message.slice(0, 500) }
      if (wanted === undefined) found.push(version)
      else {
        const sha = (await repository.entryAt(commit, wanted))?.sha ?? null
        const before = next === undefined ? null : ((await repository.entryAt(next, wanted))?.sha ?? null)
        if (sha !== before) found.push({ ...version, sha })
      }
    }
    return found
  }

  async function readAt(slug: string, commit: string, path: string): Promise<{ text: string; sha: string }> {
    const wanted = cleanPath(path)
    await own(slug, commit)
    const entry = await repository.entryAt(commit, wanted)
    if (!entry) throw new WorkspaceError('not_found', `${path} was not there in version ${commit.slice(0, 10)}.`)
    if (!entry.isFile) throw new WorkspaceError('not_text', `${path} was no file in version ${commit.slice(0, 10)}.`)
    return { text: mustBeText(await repository.readBlob(entry.sha), path), sha: entry.sha }
  }

  async function diff(
    slug: string,
    { to, from, path }: { readonly to: string; readonly from?: string; readonly path?: string },
  ): Promise<FileDiff> {
    await own(slug, to)
    if (from !== undefined) await own(slug, from)
    const before = from ?? (await repository.readCommit(to)).parents[0] ?? EMPTY_TREE
    const only = path === undefined ? [] : ['--', cleanPath(path)]
    const text = await git.run(
      [
        '--literal-pathspecs',
        'diff',
        '--no-color',
        '--no-ext-diff',
        '--no-textconv',
        '--no-renames',
        before,
        to,
        ...only,
      ],
      { cwd: repository.gitdir },
    )
    return { text: text.slice(0, MAX_DIFF), truncated: text.length > MAX_DIFF }
  }

  return {
    history,
    readAt,
    diff,
    restore: async (slug, commit, path, options) => {
      const { text } = await readAt(slug, commit, path)
      return writeText(slug, path, text, { message: `Restore ${path} from ${commit.slice(0, 10)}`, ...options })
    },
  }
}

function cleanPath(path: string): string {
  const parts = safeParts(path)
  if (parts && !parts.some((part) => NEVER_COMMITTED.includes(part))) return parts.join('/')
  throw new WorkspaceError(
    'path_refused',
    `${JSON.stringify(path.slice(0, 120))} isn't a path inside the agent's workspace.`,
  )
}
