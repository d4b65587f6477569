/**
 * The bare repository through isomorphic-git: trees, blobs, commits and refs, without a process per call.
 *
 *  B1 Every file of the repository is written aside, flushed and renamed: after a crash an object or a ref is whole or not there.
 *  B2 Refs are written under git's own `.lock` protocol, so that the system's git may work in the same repository.
 *  B3 The repository appears at once (made aside, renamed), never half.
 */
import * as fs from 'node:fs/promises'
import { dirname, join, sep } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import git from 'isomorphic-git'
import type { Author } from './contract.ts'
import { isCode } from './paths.ts'

export interface TreeFile {
  readonly path: string
  readonly sha: string
  readonly executable: boolean
}

export interface CommitInfo {
  readonly tree: string
  readonly parents: readonly string[]
  readonly author: Author
  readonly time: number
  readonly message: string
}

export interface Repository {
  readonly gitdir: string
  /** Commit id, or null. `ref` in full: `refs/heads/…`. */
  readRef(ref: string): Promise<string | null>
  writeRef(ref: string, commit: string): Promise<void>
  deleteRef(ref: string): Promise<void>
  /** Lets HEAD name a branch, unless it names one that exists. */
  setHead(ref: string): Promise<void>
  /** Full names of all refs that begin with `prefix` (`refs/heads/template/`). */
  refs(prefix: string): Promise<string[]>
  /** Writes the files and their folders; the tree's id. */
  writeTree(files: ReadonlyMap<string, Uint8Array>): Promise<string>
  commit(options: { tree: string; parents: string[]; message: string; author: Author; at: number }): Promise<string>
  /** A tree that is `tree` but for these files (null: without it); modes and links of the others stay. The tree's id. */
  editTree(tree: string, changes: ReadonlyMap<string, Uint8Array | null>): Promise<string>
  treeOf(commit: string): Promise<string>
  /** Parents, author (time in ms since 1970) and message. */
  readCommit(commit: string): Promise<CommitInfo>
  /** What stands at a path; null when nothing does. */
  entryAt(commit: string, path: string): Promise<{ readonly sha: string; readonly isFile: boolean } | null>
  /** Whether `commit` is `tip` or one of its ancestors. */
  isWithin(commit: string, tip: string): Promise<boolean>
  /** Regular files; symbolic links and submodules are left out. */
  list(commit: string): Promise<TreeFile[]>
  readBlob(sha: string): Promise<Uint8Array>
  hashBlob(content: Uint8Array): Promise<string>
}

export async function openRepository(gitdir: string): Promise<Repository> {
  await createIfMissing(gitdir)
  await fs.mkdir(join(gitdir, 'info'), { recursive: true })
  await writeFileAtomically(join(gitdir, 'info/exclude'), EXCLUDE)
  // Parsed packs and trees are kept for the life of the repository object; objects never change.
  const cache = {}
  const at = { fs: atomicFs, gitdir, cache }

  async function readRef(ref: string): Promise<string | null> {
    try {
      return await git.resolveRef({ ...at, ref })
    } catch (error) {
      if (error instanceof git.Errors.NotFoundError) return null
      throw error
    }
  }

  return {
    gitdir,
    readRef,
    writeRef: (ref, commit) => git.writeRef({ ...at, ref, value: commit, force: true }),
    setHead: async (ref) => {
      if (!(await readRef('HEAD'))) await git.writeRef({ ...at, ref: 'HEAD', value: ref, force: true, symbolic: true })
    },
    deleteRef: (ref) => git.deleteRef({ ...at, ref }),
    refs: async (prefix) => {
      const names = await git.listRefs({ ...at, filepath: prefix.replace(/\/$/, '') })
      return names.filter((name) => !name.endsWith('.lock')).map((name) => prefix + name)
    },
    writeTree: (files) => writeFolder(at, nest(files)),
    commit: async ({ tree, parents, message, author, at: time }) => {
      const who = { ...author, timestamp: Math.floor(time / 1000), timezoneOffset: 0 }
      const text = message.endsWith('\n') ? message : `${message}\n`
      return git.writeCommit({ ...at, commit: { tree, parent: parents, author: who, committer: who, message: text } })
    },
    editTree: (tree, changes) =>
      editFolder(at, tree, nest(changes)).then((oid) => oid ?? git.writeTree({ ...at, tree: [] })),
    readCommit: async (oid) => {
      const { commit } = await git.readCommit({ ...at, oid })
      const { name, email, timestamp } = commit.author
      return {
        tree: commit.tree,
        parents: commit.parent,
        author: { name, email },
        time: timestamp * 1000,
        message: commit.message.trim(),
      }
    },
    entryAt: async (commit, path) => {
      let oid = (await git.readCommit({ ...at, oid: commit })).commit.tree
      const parts = path.split('/')
      for (const [index, part] of parts.entries()) {
        const entry = (await git.readTree({ ...at, oid })).tree.find((each) => each.path === part)
        if (!entry) return null
        if (index === parts.length - 1)
          return { sha: entry.oid, isFile: entry.type === 'blob' && entry.mode !== '120000' }
        if (entry.type !== 'tree') return null
        oid = entry.oid
      }
      return null
    },
    isWithin: async (commit, tip) => {
      try {
        return commit === tip || (await git.isDescendent({ ...at, oid: tip, ancestor: commit, depth: -1 }))
      } catch (error) {
        if (error instanceof git.Errors.NotFoundError || error instanceof git.Errors.ObjectTypeError) return false
        throw error
      }
    },
    treeOf: async (commit) => (await git.readCommit({ ...at, oid: commit })).commit.tree,
    list: async (commit) => {
      const files: TreeFile[] = []
      await listFolder(at, await git.readCommit({ ...at, oid: commit }).then(({ commit: { tree } }) => tree), '', files)
      return files
    },
    readBlob: async (sha) => (await git.readBlob({ ...at, oid: sha })).blob,
    hashBlob: async (content) => (await git.hashBlob({ object: content })).oid,
  }
}

type Place = { fs: { promises: typeof atomicPromises }; gitdir: string; cache: object }

async function createIfMissing(gitdir: string): Promise<void> {
  if (await fs.stat(join(gitdir, 'HEAD')).then(() => true, absent)) return
  const aside = `${gitdir}.new`
  await fs.rm(aside, { recursive: true, force: true })
  await fs.mkdir(dirname(gitdir), { recursive: true })
  await git.init({ fs: atomicFs, gitdir: aside, bare: true, defaultBranch: 'template/assistant' })
  await fs.writeFile(join(aside, 'config'), CONFIG)
  await fs.rename(aside, gitdir)
}

/** Never committed in any worktree: an agent's connection to its gateway holds a token, also while it is being written. */
export const NEVER_COMMITTED = ['.hq-agent.json', '.hq-agent.json.new', 'node_modules']
/** Whether a path names such a thing, in any spelling. It can be neither shown nor written from elsewhere. */
export const isNeverCommitted = (path: string): boolean =>
  path.split('/').some((part) => NEVER_COMMITTED.includes(part.toLowerCase()))
const EXCLUDE = `${NEVER_COMMITTED.join('\n')}\n`

/** isomorphic-git's own would tell git that the file system knows neither links nor letter case. */
const CONFIG = `[core]
\trepositoryformatversion = 0
\tfilemode = true
\tbare = true
[gc]
\tautoDetach = false
`

interface Folder<Content = Uint8Array> {
  readonly files: Map<string, Content>
  readonly folders: Map<string, Folder<Content>>
}

function nest<Content>(files: ReadonlyMap<string, Content>): Folder<Content> {
  const root: Folder<Content> = { files: new Map(), folders: new Map() }
  for (const [path, content] of files) {
    const parts = path.split('/')
    const name = parts.pop() ?? ''
    let folder = root
    for (const part of parts) {
      const next = folder.folders.get(part) ?? { files: new Map(), folders: new Map() }
      folder.folders.set(part, next)
      folder = next
    }
    folder.files.set(name, content)
  }
  return root
}

async function writeFolder(at: Place, folder: Folder): Promise<string> {
  const tree: { mode: string; path: string; oid: string; type: 'blob' | 'tree' }[] = []
  for (const [path, blob] of folder.files) {
    tree.push({ mode: '100644', path, oid: await git.writeBlob({ ...at, blob }), type: 'blob' })
  }
  for (const [path, inner] of folder.folders) {
    tree.push({ mode: '040000', path, oid: await writeFolder(at, inner), type: 'tree' })
  }
  return git.writeTree({ ...at, tree })
}

/** Null: nothing is left in it, and git keeps no empty folders. */
async function editFolder(at: Place, oid: string | null, edits: Folder<Uint8Array | null>): Promise<string | null> {
  const entries = new Map((oid ? (await git.readTree({ ...at, oid })).tree : []).map((entry) => [entry.path, entry]))
  for (const [path, blob] of edits.files) {
    const before = entries.get(path)
    if (blob === null) entries.delete(path)
    else {
      const mode = before?.type === 'blob' && before.mode === '100755' ? '100755' : '100644'
      entries.set(path, { mode, path, oid: await git.writeBlob({ ...at, blob }), type: 'blob' })
    }
  }
  for (const [path, inner] of edits.folders) {
    const before = entries.get(path)
    const made = await editFolder(at, before?.type === 'tree' ? before.oid : null, inner)
    if (made) entries.set(path, { mode: '040000', path, oid: made, type: 'tree' })
    else if (before?.type === 'tree') entries.delete(path)
  }
  return entries.size === 0 ? null : git.writeTree({ ...at, tree: [...entries.values()] })
}

async function listFolder(at: Place, oid: string, prefix: string, into: TreeFile[]): Promise<void> {
  const { tree } = await git.readTree({ ...at, oid })
  for (const entry of tree) {
    const path = prefix + entry.path
    if (entry.type === 'tree') await listFolder(at, entry.oid, `${path}/`, into)
    else if (entry.type === 'blob' && entry.mode !== '120000') {
      into.push({ path, sha: entry.oid, executable: entry.mode === '100755' })
    }
  }
}

/** Writes aside, flushes, renames (B1, B2). */
export async function writeFileAtomically(path: string, content: string | Uint8Array, mode = 0o644): Promise<void> {
  await writeThrough(`${path}.${process.pid}-${counter++}.tmp`, path, content, 'w', mode)
}
let counter = 0

const processStart = Date.now() - process.uptime() * 1000

async function writeInRepository(path: string, content: string | Uint8Array): Promise<void> {
  if (path.includes(`${sep}objects${sep}`)) {
    // git itself cleans up names that begin so.
    return writeThrough(join(dirname(path), `tmp_obj_${process.pid}_${counter++}`), path, content, 'wx', 0o444)
  }
  const lock = `${path}.lock`
  for (let attempt = 0; ; attempt++) {
    try {
      return await writeThrough(lock, path, content, 'wx', 0o644)
    } catch (error) {
      if (!isCode(error, 'EEXIST') || attempt > 12) throw error
      const held = await fs.stat(lock).catch(absent)
      if (held && held.mtimeMs < processStart) await fs.unlink(lock).catch(absent)
      else await sleep(100)
    }
  }
}

async function writeThrough(aside: string, path: string, content: string | Uint8Array, flag: string, mode: number) {
  const file = await fs.open(aside, flag, mode)
  try {
    await file.writeFile(content)
    await file.sync()
  } catch (error) {
    await fs.unlink(aside).catch(absent)
    throw error
  } finally {
    await file.close()
  }
  await fs.rename(aside, path)
}

const atomicPromises = {
  readFile: fs.readFile,
  writeFile: (path: string, content: string | Uint8Array) => writeInRepository(path, content),
  mkdir: fs.mkdir,
  rmdir: fs.rmdir,
  rm: fs.rm,
  unlink: fs.unlink,
  stat: fs.stat,
  lstat: fs.lstat,
  readdir: fs.readdir,
  readlink: fs.readlink,
  symlink: fs.symlink,
}
const atomicFs = { promises: atomicPromises }

function absent(error: unknown): undefined {
  if (isCode(error, 'ENOENT') || isCode(error, 'ENOTDIR')) return undefined
  throw error
}
