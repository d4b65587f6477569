/**
 * The workspaces of one gateway (`contract.ts` has the contract and W1–W8).
 *
 * Layout of the home folder:
 *   repo.git/                  bare repository, linked worktrees registered in it
 *   agents/<slug>/             an agent's worktree
 *   agents/<slug>.json         whose it is: {agent_id, branch, template}; written before the branch, removed after it
 *   agents/.aside/             folders that could not be understood (W2)
 */
import { readdir, readFile, unlink } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import {
  type AgentProfile,
  type Arriving,
  type Author,
  agentAuthor,
  GATEWAY_AUTHOR,
  type Resolution,
  type TemplateReport,
  type TemplateUpgrade,
  WorkspaceError,
  type Workspaces,
} from './contract.ts'
import { fileWork } from './files.ts'
import { fillTemplate } from './fill.ts'
import { createMutex } from './mutex.ts'
import { assertSlug, branchPrefix, isCode, resolveInside } from './paths.ts'
import { NEVER_COMMITTED, openRepository, writeFileAtomically } from './repository.ts'
import { createSystemGit, type SystemGit } from './system-git.ts'
import { type ReadTemplate, readTemplates } from './templates.ts'
import { upgradeTemplate } from './upgrade.ts'
import { openVersions } from './versions.ts'
import { openWorktrees, realFolder } from './worktrees.ts'

export interface WorkspacesOptions {
  readonly home: string
  /** Folder with the templates. */
  readonly templates: string
  readonly now: () => number
  readonly git?: SystemGit
  /** For tests: called by name after each step, and may throw to play a crash. */
  readonly afterStep?: (step: string) => void
}

const TEMPLATE_AUTHOR: Author = { name: 'HQ templates', email: 'templates@hq.local' }
/** Longer than this, something is wrong with the repository. */
const BUNDLE_MS = 20 * 60_000

const ownerSchema = z.object({ agent_id: z.string(), branch: z.string(), template: z.string() })
type Owner = z.infer<typeof ownerSchema>

const templateRef = (slug: string): string => `refs/heads/template/${slug}`

export async function createWorkspaces(options: WorkspacesOptions): Promise<Workspaces> {
  const { home, now } = options
  const git = options.git ?? createSystemGit()
  const step = options.afterStep ?? (() => undefined)
  const agents = await realFolder(join(home, 'agents'))
  const repository = await openRepository(join(dirname(agents), 'repo.git'))
  const exclusive = createMutex()
  const worktrees = await openWorktrees({ repository, git, agents, now })
  let templates: Promise<ReadTemplate[]> | undefined

  const ownerFile = (slug: string): string => join(agents, `${slug}.json`)

  async function readOwner(slug: string): Promise<Owner | null> {
    try {
      return ownerSchema.parse(JSON.parse(await readFile(ownerFile(slug), 'utf8')))
    } catch (error) {
      if (isCode(error, 'ENOENT')) return null
      throw error
    }
  }

  async function mustOwn(slug: string): Promise<Owner> {
    assertSlug(slug)
    const owner = await readOwner(slug)
    if (owner) return owner
    throw new WorkspaceError('not_found', `This gateway has no workspace for "${slug}". Provision the agent first.`)
  }

  async function head(slug: string): Promise<string> {
    const { branch } = await mustOwn(slug)
    const commit = (await worktrees.head(slug)) ?? (await repository.readRef(branch))
    if (commit) return commit
    throw new WorkspaceError('not_found', `The branch of "${slug}" is missing. Provision the agent again.`)
  }

  async function seedTemplates(): Promise<readonly TemplateReport[]> {
    const read = readTemplates(options.templates)
    templates = read
    const reports: TemplateReport[] = []
    for (const { slug, template, files, error } of await read) {
      if (!files) reports.push({ slug, template, error, changed: false })
      else reports.push({ slug, template, error, changed: await seed(slug, files) })
    }
    const first = reports.find((report) => report.template)
    if (first) await repository.setHead(templateRef(first.slug))
    return reports
  }

  async function seed(slug: string, files: ReadonlyMap<string, Uint8Array>): Promise<boolean> {
    const ref = templateRef(slug)
    const tree = await repository.writeTree(files)
    const before = await repository.readRef(ref)
    if (before && (await repository.treeOf(before)) === tree) return false
    const message = before ? `Update template ${slug}` : `Add template ${slug}`
    const parents = before ? [before] : []
    const commit = await repository.commit({ tree, parents, message, author: TEMPLATE_AUTHOR, at: now() })
    await repository.writeRef(ref, commit)
    return true
  }

  function knownTemplates(): Promise<ReadTemplate[]> {
    templates ??= readTemplates(options.templates)
    return templates
  }

  async function usableTemplate(slug: string): Promise<ReadonlyMap<string, Uint8Array>> {
    const all = await knownTemplates()
    const found = all.find((template) => template.slug === slug)
    if (found?.files) return found.files
    if (found) {
      const next = 'Repair the template and restart the gateway, or choose another template.'
      throw new WorkspaceError('template_broken', `${found.error} ${next}`)
    }
    const known = all.filter(({ files }) => files).map((template) => template.slug)
    throw new WorkspaceError(
      'template_missing',
      `This gateway has no template '${slug}'. It has: ${known.join(', ') || 'none'}.`,
    )
  }

  async function createBranch(profile: AgentProfile): Promise<string> {
    const { slug, agentId } = profile
    assertSlug(slug)
    const owner = await readOwner(slug)
    if (owner && owner.agent_id !== agentId) throw taken(slug)
    const existing = owner && (await repository.readRef(owner.branch))
    if (existing) return existing

    const files = await usableTemplate(profile.template)
    const branch = `refs/heads/${branchPrefix(profile.workspaceSlug)}/${slug}`
    // A branch that nobody owns: kept, but not taken over (W2, W4).
    const orphan = await repository.readRef(branch)
    if (orphan) {
      await archive(slug, orphan)
      await repository.deleteRef(branch)
    }
    await writeFileAtomically(
      ownerFile(slug),
      JSON.stringify({ agent_id: agentId, branch, template: profile.template }),
    )
    step('owner')
    const from = await repository.readRef(templateRef(profile.template))
    const commit = await repository.commit({
      tree: await repository.writeTree(fillTemplate(files, profile)),
      parents: from ? [from] : [],
      message: `Set up ${profile.name} from template ${profile.template}`,
      author: GATEWAY_AUTHOR,
      at: now(),
    })
    step('commit')
    await repository.writeRef(branch, commit)
    step('branch')
    return commit
  }

  /** Keeps a commit under `refs/archive`; the ref's name. The same commit again gives the same name. */
  async function archive(slug: string, commit: string): Promise<string> {
    const names = await repository.refs('refs/archive/')
    for (const name of names) {
      if (name.startsWith(`refs/archive/${slug}-`) && (await repository.readRef(name)) === commit) return name
    }
    const time = new Date(now()).toISOString().replaceAll(/[-:.]/g, '')
    let name = `refs/archive/${slug}-${time}`
    for (let n = 2; names.includes(name); n++) name = `refs/archive/${slug}-${time}-${n}`
    await repository.writeRef(name, commit)
    return name
  }

  async function remove(slug: string): Promise<string | null> {
    assertSlug(slug)
    const owner = await readOwner(slug)
    await worktrees.commit(slug, 'What was not committed before the removal', GATEWAY_AUTHOR).catch(async (error) => {
      if (!(error instanceof WorkspaceError)) throw error
      // Without a commit the folder is all there is: it is kept (W2).
      await worktrees.moveAside(slug)
    })
    step('strays')
    let archived: string | null = null
    const tips = [await worktrees.head(slug), owner && (await repository.readRef(owner.branch))]
    for (const tip of new Set(tips)) if (tip) archived = await archive(slug, tip)
    step('archived')
    await worktrees.remove(slug)
    step('worktree')
    if (owner) await repository.deleteRef(owner.branch)
    step('branch')
    await unlink(ownerFile(slug)).catch(ignoreMissing)
    return archived
  }

  async function unpack(
    { agentId, slug, workspaceSlug, template, commit }: Arriving,
    file: string,
    signal?: AbortSignal,
  ): Promise<string> {
    assertSlug(slug)
    const owner = await readOwner(slug)
    if (owner && owner.agent_id !== agentId) throw taken(slug)
    const branch = `refs/heads/${branchPrefix(workspaceSlug)}/${slug}`
    const present = await repository.readRef(branch)
    if (owner?.branch === branch && present === commit && (await worktrees.head(slug))) return worktrees.folder(slug)
    // Objects first: a ref never names what is not there.
    await git.run(['bundle', 'unbundle', file], {
      cwd: repository.gitdir,
      timeoutMs: BUNDLE_MS,
      ...(signal && { signal }),
    })
    await repository.treeOf(commit)
    step('objects')
    if (present && present !== commit) await archive(slug, present)
    await writeFileAtomically(ownerFile(slug), JSON.stringify({ agent_id: agentId, branch, template }))
    step('owner')
    await repository.writeRef(branch, commit)
    step('branch')
    return worktrees.create(slug, branch)
  }

  const files = fileWork({ repository, worktrees, mustOwn })
  const versions = openVersions({ repository, git, head, writeText: files.writeText })

  async function upgrade(profile: AgentProfile, resolutions: readonly Resolution[]): Promise<TemplateUpgrade> {
    const { slug } = profile
    const { template } = await mustOwn(slug)
    await worktrees.commit(slug, 'What was not committed before the upgrade', agentAuthor(profile))
    const theirs = await repository.readRef(templateRef(template))
    if (!theirs) await usableTemplate(template) // says what is the matter
    if (!theirs) throw new WorkspaceError('template_missing', `The branch of template '${template}' is missing.`)
    return upgradeTemplate(
      { repository, git, now },
      { profile, head: await head(slug), theirs, folder: worktrees.folder(slug), resolutions },
    )
  }

  return {
    gitVersion: () => git.version(),
    seedTemplates: () => exclusive(seedTemplates),
    readTemplate: async (slug) => (await knownTemplates()).find((known) => known.slug === slug)?.template,
    createBranch: (profile) => exclusive(() => createBranch(profile)),
    createWorktree: (slug) =>
      exclusive(async () => {
        const { branch } = await mustOwn(slug)
        return worktrees.create(slug, branch)
      }),
    ownerOf: async (slug) => (await readOwner(slug))?.agent_id ?? null,
    templateOf: async (slug) => (await mustOwn(slug)).template,
    folder: worktrees.folder,
    exists: async (slug) => (await readOwner(slug)) !== null && (await worktrees.head(slug)) !== null,
    slugs: async () => {
      const names = await readdir(agents)
      return names.flatMap((name) => (name.endsWith('.json') ? [name.slice(0, -'.json'.length)] : []))
    },
    head,
    list: async (slug) => {
      const files = await repository.list(await head(slug))
      // Also when somebody has committed one by force.
      const wanted = files.filter(({ path }) => !path.split('/').some((part) => NEVER_COMMITTED.includes(part)))
      return wanted.map(({ path, sha }) => ({ path, sha }))
    },
    readBlob: repository.readBlob,
    readText: files.readText,
    writeText: (slug, path, text, more) => exclusive(() => files.writeText(slug, path, text, more)),
    deleteFile: (slug, path, more) => exclusive(() => files.deleteFile(slug, path, more)),
    history: versions.history,
    readAt: versions.readAt,
    diff: versions.diff,
    restoreVersion: (slug, commit, path, more) => exclusive(() => versions.restore(slug, commit, path, more)),
    upgradeTemplate: (profile, resolutions = []) => exclusive(() => upgrade(profile, resolutions)),
    commit: (slug, message, author) =>
      exclusive(async () => {
        await mustOwn(slug)
        return worktrees.commit(slug, message, author)
      }),
    resolve: async (slug, path) => {
      await mustOwn(slug)
      return resolveInside(worktrees.folder(slug), path)
    },
    pack: (slug, file, signal) =>
      exclusive(async () => {
        const { branch, template } = await mustOwn(slug)
        await worktrees.commit(slug, 'What was not committed before the move', GATEWAY_AUTHOR)
        const commit = await head(slug)
        await git.run(['bundle', 'create', '--quiet', file, branch], {
          cwd: repository.gitdir,
          timeoutMs: BUNDLE_MS,
          ...(signal && { signal }),
        })
        return { commit, template }
      }),
    unpack: (agent, file, signal) => exclusive(() => unpack(agent, file, signal)),
    fastForward: (slug, commit) =>
      exclusive(async () => {
        await mustOwn(slug)
        await worktrees.commit(slug, 'What was not committed before the remote’s changes', GATEWAY_AUTHOR)
        if (!(await repository.isWithin(await head(slug), commit))) return false
        await git.run(['merge', '--quiet', '--ff-only', commit], {
          cwd: worktrees.folder(slug),
          author: GATEWAY_AUTHOR,
        })
        return true
      }),
    remove: (slug) => exclusive(() => remove(slug)),
  }
}

const taken = (slug: string): WorkspaceError =>
  new WorkspaceError(
    'slug_taken',
    `The slug "${slug}" belongs to another agent's workspace on this gateway. Remove that agent first, or choose another slug.`,
  )

function ignoreMissing(error: unknown): void {
  if (!isCode(error, 'ENOENT')) throw error
}
