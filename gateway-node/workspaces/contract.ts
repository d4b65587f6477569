/**
 * What the rest of a gateway knows about agent workspaces: folders under git, one per agent, named by the agent's slug.
 *
 * Below it: a bare repository `<home>/repo.git`, one branch `template/<slug>` per template, and per agent one branch
 * `<workspace slug>/<agent slug>` checked out as a linked worktree in `<home>/agents/<agent slug>`, which the ordinary `git` understands.
 *
 *  W1 Every call may be repeated: what is done already is not done again, what a crash left half-done is finished.
 *  W2 Nothing is lost: a removed branch stays as `refs/archive/<slug>-<time>`, uncommitted changes are committed first, and a folder
 *     that cannot be understood is moved aside, not deleted.
 *  W3 No path leaves the worktree: neither by `..`, nor by an absolute path, nor through a symbolic link.
 *  W4 A worktree belongs to one agent id. Another agent with the same slug is refused (`slug_taken`).
 *  W5 Changes to the repository are made one at a time within a process.
 *  W6 A write of one file is a commit of that file alone, under the name of who asked for it; what else lies uncommitted stays its maker's.
 *  W7 Who writes on the strength of what was read names it (`expectedSha`); another content in the meantime is a `WorkspaceConflict` with both sides to be had.
 *     The content that was wanted anyway is none: a write that was cut off may be repeated (W1).
 *  W8 Old versions are shown from the agent's own history only: no commit of another branch, no archive.
 */

export interface Author {
  readonly name: string
  readonly email: string
}

/** The gateway itself, as an author of commits. */
export const GATEWAY_AUTHOR: Author = { name: 'HQ gateway', email: 'gateway@hq.local' }

/** The agent as an author of commits. */
export const agentAuthor = (agent: { readonly name: string; readonly slug: string }): Author => ({
  name: agent.name,
  email: `${agent.slug}@agents.hq.local`,
})

/** A file as it stands in the newest commit of an agent's branch. */
export interface WorkspaceFile {
  /** With `/`, relative to the worktree. */
  readonly path: string
  /** Git's blob id. */
  readonly sha: string
}

export interface TemplateReport {
  readonly slug: string
  /** Undefined when the template is broken. */
  readonly template: Template | undefined
  /** Why it is broken, in one sentence for people. */
  readonly error: string | undefined
  /** Whether its branch got a new commit. */
  readonly changed: boolean
}

export interface Template {
  readonly slug: string
  readonly name: string
  readonly description: string
  readonly emoji: string
  readonly team: string | null
  readonly domains: readonly string[]
  readonly capabilities: readonly string[]
}

/** What a new worktree is filled with. */
export interface AgentProfile {
  readonly agentId: string
  readonly slug: string
  readonly name: string
  readonly description: string
  readonly emoji: string
  readonly team: string | null
  readonly workspaceSlug: string
  readonly template: string
  readonly owner: { readonly name: string; readonly preferredName: string; readonly timezone: string }
  readonly domains: readonly string[]
  readonly capabilities: readonly string[]
}

export type WorkspaceErrorCode =
  | 'git_missing'
  | 'git_failed'
  | 'template_missing'
  | 'template_broken'
  | 'slug_invalid'
  | 'slug_taken'
  | 'not_found'
  | 'path_refused'
  | 'not_text'
  | 'stale'

/** `message` says what, why and what to do next. */
export class WorkspaceError extends Error {
  readonly code: WorkspaceErrorCode
  constructor(code: WorkspaceErrorCode, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'WorkspaceError'
    this.code = code
  }
}

/** W7: the file is not what the writer had read. */
export class WorkspaceConflict extends WorkspaceError {
  /** Git's blob id of what is there; null: there is no such file. */
  readonly sha: string | null
  /** What is there; null when there is none or it is not text. */
  readonly text: string | null
  constructor(message: string, sha: string | null, text: string | null) {
    super('stale', message)
    this.name = 'WorkspaceConflict'
    this.sha = sha
    this.text = text
  }
}

/** A commit of an agent's branch, as people see it. */
export interface Version {
  readonly commit: string
  readonly author: string
  readonly email: string
  /** Milliseconds since 1970. */
  readonly time: number
  readonly message: string
  /** Blob id of the file that was asked for, after this commit; null: it was deleted. Only with a path. */
  readonly sha?: string | null
}

export interface FileDiff {
  /** Unified, as git prints it. */
  readonly text: string
  /** More than 200 KiB: the rest is left out. */
  readonly truncated: boolean
}

export interface WriteOptions {
  readonly author: Author
  readonly message?: string
  /** W7. */
  readonly expectedSha?: string | null
}

/** A file that both the agent and the new template changed, in ways that do not fit together. */
export interface TemplateConflict {
  readonly path: string
  /** Blob id of the agent's; null: the agent has deleted it. */
  readonly sha: string | null
  /** Null: deleted on this side, or not text. */
  readonly base: string | null
  readonly mine: string | null
  readonly theirs: string | null
}

/** What a person decided about a conflict: the text to have (null: no file), seen against `sha`. */
export interface Resolution {
  readonly path: string
  readonly sha: string | null
  readonly text: string | null
}

export type TemplateUpgrade =
  | { readonly state: 'current' }
  | { readonly state: 'merged'; readonly commit: string; readonly changed: readonly string[] }
  /** Nothing was changed. */
  | { readonly state: 'conflicts'; readonly conflicts: readonly TemplateConflict[] }

export interface Packed {
  /** The newest commit in it. */
  readonly commit: string
  readonly template: string
}

export interface Arriving extends Packed {
  readonly agentId: string
  readonly slug: string
  readonly workspaceSlug: string
}

export interface Workspaces {
  /** Version of the system's git (`2.39.5`), or null when there is none. Asked once. */
  gitVersion(): Promise<string | null>
  /** Creates the repository if need be and brings every template branch up to date. A broken template doesn't stop the others (P13). */
  seedTemplates(): Promise<readonly TemplateReport[]>
  /** What a template says of itself; undefined when there is none of this name or it is broken. */
  readTemplate(slug: string): Promise<Template | undefined>
  /** Branch with the agent's first commit; the branch's commit id. Step 1 of a provision. */
  createBranch(profile: AgentProfile): Promise<string>
  /** The worktree on that branch; its folder. Step 2 of a provision. */
  createWorktree(slug: string): Promise<string>
  /** The agent id that the worktree or branch of this slug belongs to. */
  ownerOf(slug: string): Promise<string | null>
  /** The template that an agent's workspace was made from. */
  templateOf(slug: string): Promise<string>
  /** Absolute folder of an agent's worktree, whether it exists or not. */
  folder(slug: string): string
  /** Whether the worktree is there and git can use it. */
  exists(slug: string): Promise<boolean>
  /** Slugs that have a branch or a worktree. */
  slugs(): Promise<readonly string[]>
  /** The newest commit of the agent's branch. */
  head(slug: string): Promise<string>
  /** Files of the newest commit. */
  list(slug: string): Promise<readonly WorkspaceFile[]>
  /** Content of a blob that `list` named. */
  readBlob(sha: string): Promise<Uint8Array>
  /** Text of a file in the worktree (not only what was committed), at most 1 MiB. */
  readText(slug: string, path: string): Promise<{ readonly text: string; readonly sha: string }>
  /**
   * Writes a file and commits it (W6). With `expectedSha` only if the file is still that blob (`null`: does not exist yet), else `WorkspaceConflict`.
   * Returns the new blob id.
   */
  writeText(slug: string, path: string, text: string, options: WriteOptions): Promise<string>
  /** Deletes a file and commits that; the commit. With `expectedSha` as `writeText`. */
  deleteFile(slug: string, path: string, options: WriteOptions): Promise<string>
  /** Newest first, at most `limit` (default 100) of the newest 2,000 commits; with a path those that changed that file. */
  history(slug: string, path?: string, limit?: number): Promise<readonly Version[]>
  /** Text of a file as it was in a commit (W8), at most 1 MiB. */
  readAt(slug: string, commit: string, path: string): Promise<{ readonly text: string; readonly sha: string }>
  /** What `to` changed against `from` (default: the commit before it), in one file or in all (W8). */
  diff(
    slug: string,
    options: { readonly to: string; readonly from?: string; readonly path?: string },
  ): Promise<FileDiff>
  /** Writes a file as it was in a commit, as a new commit; the new blob id. */
  restoreVersion(slug: string, commit: string, path: string, options: WriteOptions): Promise<string>
  /**
   * Merges what the template became since the agent came from it (or last was upgraded) into the agent's branch. Conflicts change nothing, unless
   * `resolutions` has a decision for each.
   */
  upgradeTemplate(profile: AgentProfile, resolutions?: readonly Resolution[]): Promise<TemplateUpgrade>
  /** Commits whatever changed in the worktree; the commit id, or null when nothing had changed. */
  commit(slug: string, message: string, author: Author): Promise<string | null>
  /** A path inside the worktree, safe to read or write (W3). Throws `path_refused`. */
  resolve(slug: string, path: string): Promise<string>
  /** Commits what changed, and writes the agent's branch with all its history to a new file (`git bundle`). */
  pack(slug: string, file: string, signal?: AbortSignal): Promise<Packed>
  /** The workspace of an agent that comes from another gateway, from what `pack` wrote there; its folder. */
  unpack(agent: Arriving, file: string, signal?: AbortSignal): Promise<string>
  /**
   * Moves the agent's branch and worktree on to a commit of the repository that comes after its newest one. False: it has work of its own that the commit lacks, and
   * nothing was changed.
   */
  fastForward(slug: string, commit: string): Promise<boolean>
  /** Removes worktree and branch; the branch stays as an archive ref, whose name is returned (null: there was none). */
  remove(slug: string): Promise<string | null>
}
