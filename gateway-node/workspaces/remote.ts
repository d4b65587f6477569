/**
 * The remote mirror of a gateway's repository (`HQ_GIT_REMOTE`): agents' branches are pushed there and fetched from there, by the system's git.
 *
 *  RM1 Never forced, in neither direction. A branch with commits on both sides stays as it is on both, and is reported as a problem until somebody has merged it.
 *  RM2 What the remote alone has is taken over by a fast-forward; what only this gateway has is pushed. Templates and archives stay here.
 *  RM3 A credential of the address is taken out of it before git sees it, and handed to git in its environment: not in argv, not in a log, not in a file.
 *  RM4 A remote that can't be reached costs nothing but a problem that says so; the next round tries again.
 */
import { join } from 'node:path'
import type { GatewayContext, Service } from '../service.ts'
import { WorkspaceError } from './contract.ts'
import { createSystemGit, type GitOptions, type SystemGit } from './system-git.ts'

const EVERY_MS = 5 * 60_000
const TIMEOUT_MS = 10 * 60_000
const TRACKING = 'refs/remotes/mirror/'
const PROBLEM = 'git_remote'

export interface Remote {
  /** Without a credential. */
  readonly url: string
  readonly username: string
  readonly password: string
}

/** RM3. Anything that is no URL (`git@host:path`, a folder) has no credential in it. */
export function remoteOf(address: string): Remote {
  if (!/^https?:\/\//i.test(address) || !URL.canParse(address)) return { url: address, username: '', password: '' }
  const url = new URL(address)
  const [username, password] = [decodeURIComponent(url.username), decodeURIComponent(url.password)]
  url.username = ''
  url.password = ''
  return { url: url.href, username, password }
}

type Context = Pick<GatewayContext, 'home' | 'workspaces' | 'env' | 'problems' | 'log' | 'signal' | 'publishFiles'>

export interface RemoteMirror extends Service {
  /** One round, now; the branches that are in conflict. Throws what git says. */
  round(): Promise<readonly string[]>
}

/** Undefined: no remote is wanted. */
export function createRemoteMirror(
  context: Context,
  { everyMs = EVERY_MS, git = createSystemGit() }: { readonly everyMs?: number; readonly git?: SystemGit } = {},
): RemoteMirror | undefined {
  const address = context.env['HQ_GIT_REMOTE']?.trim()
  if (!address) return undefined
  const { url, username, password } = remoteOf(address)
  const { workspaces, problems, log } = context
  const cwd = join(context.home, 'repo.git')
  let timer: NodeJS.Timeout | undefined
  let working: Promise<void> = Promise.resolve()

  const options: GitOptions = {
    cwd,
    timeoutMs: TIMEOUT_MS,
    signal: context.signal,
    env: {
      HQ_REMOTE_USERNAME: username,
      HQ_REMOTE_PASSWORD: password,
      GIT_SSH_COMMAND: 'ssh -o BatchMode=yes',
      ...(context.env['SSH_AUTH_SOCK'] ? { SSH_AUTH_SOCK: context.env['SSH_AUTH_SOCK'] } : {}),
    },
  }
  const ways = ['https', 'http', 'ssh', 'file'].flatMap((name) => ['-c', `protocol.${name}.allow=always`])
  // The variables are read by the shell that git starts for this: argv has only their names.
  // `printf`, because some shells' `echo` takes a backslash for the beginning of something else.
  const helper = `!f() { printf 'username=%s\\npassword=%s\\n' "$HQ_REMOTE_USERNAME" "$HQ_REMOTE_PASSWORD"; }; f`
  // For this host alone: git follows redirects, and would hand the credential to wherever they lead.
  const credentials =
    username || password ? ['-c', 'credential.helper=', '-c', `credential.${new URL(url).origin}.helper=${helper}`] : []
  const remotely = (...args: string[]): Promise<string> => git.run([...ways, ...credentials, ...args], options)

  async function refs(prefix: string): Promise<Map<string, string>> {
    const text = await git.run(['for-each-ref', '--format=%(refname) %(objectname)', prefix], { cwd })
    const lines = text.split('\n').filter((line) => line !== '')
    return new Map(
      lines.map((line) => [line.slice(prefix.length, line.indexOf(' ')), line.slice(line.indexOf(' ') + 1)]),
    )
  }

  const isAncestor = (one: string, other: string): Promise<boolean> =>
    git.run(['merge-base', one, other], { cwd }).then(
      (base) => base.trim() === one,
      (error: unknown) => {
        // Nothing in common is an answer, too: git says it by its exit code and without a word.
        if (error instanceof WorkspaceError && error.code === 'git_failed') return false
        throw error
      },
    )

  async function round(): Promise<readonly string[]> {
    // What is tracked is only what the remote had: it follows whatever happens there.
    await remotely('fetch', '--quiet', '--prune', '--no-tags', '--', url, `+refs/heads/*:${TRACKING}*`)
    const theirs = await refs(TRACKING)
    const conflicts: string[] = []
    const push: string[] = []
    for (const [branch, commit] of await refs('refs/heads/')) {
      if (branch.startsWith('template/')) continue
      const there = theirs.get(branch)
      if (there === commit) continue
      if (there === undefined || (await isAncestor(there, commit))) push.push(branch)
      else if (!(await takeOver(branch, there))) conflicts.push(branch)
    }
    if (push.length > 0) {
      const specs = push.map((branch) => `refs/heads/${branch}:refs/heads/${branch}`)
      await remotely('push', '--quiet', '--no-verify', '--', url, ...specs)
    }
    return conflicts
  }

  /** RM2. */
  async function takeOver(branch: string, commit: string): Promise<boolean> {
    const slug = branch.split('/').at(-1) ?? ''
    const agent = await workspaces.ownerOf(slug)
    if (agent === null || !(await workspaces.fastForward(slug, commit))) return false
    await context.publishFiles(agent, 'Taken over from the remote')
    return true
  }

  async function tryRound(): Promise<void> {
    try {
      const conflicts = await round()
      if (conflicts.length === 0) return problems.clear(PROBLEM)
      problems.report(
        PROBLEM,
        `Both this gateway and the git remote have new commits in ${conflicts.join(', ')}. Neither was changed: merge them by hand, on either side.`,
      )
    } catch (error) {
      if (context.signal.aborted) return
      const reason = error instanceof Error ? error.message : String(error)
      log('warn', 'The git remote could not be used', { reason })
      problems.report(PROBLEM, `The git remote can't be used: ${reason} It is tried again in some minutes.`)
    }
  }

  function plan(ms: number): void {
    timer = setTimeout(() => {
      working = tryRound().then(() => plan(everyMs))
    }, ms)
    timer.unref()
  }

  let stopped = false
  return {
    round,
    start: async () => {
      if (!stopped) plan(0)
    },
    stop: async () => {
      stopped = true
      clearTimeout(timer)
      await working
      clearTimeout(timer)
    },
  }
}
