/**
 * Brings what a template became into an agent's branch: a three-way merge of files, with the template as it was (filled in for this agent) as the base.
 *
 *  U1 The base is the newest commit of the template's branch that the agent's branch has: where it came from, or its last upgrade.
 *  U2 Only what the template changed is touched. Where the agent changed the same lines, or one side deleted what the other changed, it is a conflict.
 *  U3 A conflict that nobody has decided changes nothing at all. A decision counts only for the content it was made about.
 *  U4 The result is one commit with both as its parents, made aside; the worktree follows by a fast-forward, which git refuses rather than overwrite anything.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type AgentProfile,
  GATEWAY_AUTHOR,
  type Resolution,
  type TemplateConflict,
  type TemplateUpgrade,
  WorkspaceError,
} from './contract.ts'
import { asText } from './files.ts'
import { fillTemplate } from './fill.ts'
import type { Repository } from './repository.ts'
import type { SystemGit } from './system-git.ts'

interface Parts {
  readonly repository: Repository
  readonly git: SystemGit
  readonly now: () => number
}

interface Upgrade {
  readonly profile: AgentProfile
  readonly head: string
  /** Newest commit of the template's branch. */
  readonly theirs: string
  readonly folder: string
  readonly resolutions: readonly Resolution[]
}

type Content = Uint8Array | null
type Merged = { readonly content: Content } | 'same' | 'conflict'

export async function upgradeTemplate(
  { repository, git, now }: Parts,
  { profile, head, theirs, folder, resolutions }: Upgrade,
): Promise<TemplateUpgrade> {
  if (await repository.isWithin(theirs, head)) return { state: 'current' }
  const base = await mergeBase(git, repository.gitdir, head, theirs)
  const [before, after, mine] = [
    base ? fillTemplate(await read(repository, base), profile) : new Map<string, Uint8Array>(),
    fillTemplate(await read(repository, theirs), profile),
    new Map((await repository.list(head)).map(({ path, sha }) => [path, sha])),
  ]
  const changes = new Map<string, Content>()
  const conflicts: TemplateConflict[] = []
  for (const path of [...new Set([...before.keys(), ...after.keys()])].sort()) {
    const sha = mine.get(path) ?? null
    const sides = {
      base: before.get(path) ?? null,
      mine: sha === null ? null : await repository.readBlob(sha),
      theirs: after.get(path) ?? null,
    }
    const merged = await merge(git, sides)
    if (merged === 'same') continue
    if (merged !== 'conflict') {
      changes.set(path, merged.content)
      continue
    }
    const decided = resolutions.find((each) => each.path === path && each.sha === sha)
    if (decided) changes.set(path, decided.text === null ? null : new TextEncoder().encode(decided.text))
    else conflicts.push({ path, sha, base: shown(sides.base), mine: shown(sides.mine), theirs: shown(sides.theirs) })
  }
  if (conflicts.length > 0) return { state: 'conflicts', conflicts }
  const commit = await repository.commit({
    tree: await repository.editTree(await repository.treeOf(head), changes),
    parents: [head, theirs],
    message: `Upgrade template ${profile.template}`,
    author: GATEWAY_AUTHOR,
    at: now(),
  })
  await git.run(['merge', '--quiet', '--ff-only', commit], { cwd: folder, author: GATEWAY_AUTHOR })
  return { state: 'merged', commit, changed: [...changes.keys()] }
}

async function mergeBase(git: SystemGit, cwd: string, one: string, other: string): Promise<string | null> {
  try {
    return (await git.run(['merge-base', one, other], { cwd })).trim()
  } catch (error) {
    if (exitCode(error) === 1) return null // they have nothing in common: an agent that came without its template
    throw error
  }
}

async function read(repository: Repository, commit: string): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>()
  for (const { path, sha } of await repository.list(commit)) files.set(path, await repository.readBlob(sha))
  return files
}

/** U2. */
async function merge(git: SystemGit, sides: { base: Content; mine: Content; theirs: Content }): Promise<Merged> {
  const { base, mine, theirs } = sides
  if (same(base, theirs) || same(mine, theirs)) return 'same'
  if (same(base, mine)) return { content: theirs }
  if (!base || !mine || !theirs || [base, mine, theirs].some((content) => asText(content) === null)) return 'conflict'
  const folder = await mkdtemp(join(tmpdir(), 'hq-merge-'))
  try {
    const files = { mine, base, theirs }
    for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content, { mode: 0o600 })
    const text = await git.run(['merge-file', '-p', 'mine', 'base', 'theirs'], { cwd: folder })
    return { content: new TextEncoder().encode(text) }
  } catch (error) {
    // The number of conflicts, at most 127; more is an error of git itself.
    const code = exitCode(error)
    if (code !== undefined && code >= 1 && code <= 127) return 'conflict'
    throw error
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

function exitCode(error: unknown): number | undefined {
  const cause = error instanceof WorkspaceError ? error.cause : undefined
  return cause instanceof Error && 'code' in cause && typeof cause.code === 'number' ? cause.code : undefined
}

const same = (one: Content, other: Content): boolean =>
  one === null || other === null ? one === other : Buffer.compare(one, other) === 0

const shown = (content: Content): string | null => content && asText(content)
