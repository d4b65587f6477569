/**
 * The system's git, for what isomorphic-git can't do: linked worktrees and their index.
 *
 *  G1 No shell, no prompt, no pager, no hook, and neither the user's nor the system's configuration; no `GIT_*` variable of ours is inherited.
 *  G2 A lock file that a killed git left behind is removed once it is older than this process; a fresh one is waited for.
 *  G3 Everything ends: after 60 s, or when `signal` is aborted, git is killed.
 */
import { execFile } from 'node:child_process'
import { stat, unlink } from 'node:fs/promises'
import { devNull, tmpdir } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Author, WorkspaceError } from './contract.ts'
import { isCode } from './paths.ts'

export interface GitOptions {
  /** A worktree, or the bare repository. */
  readonly cwd: string
  readonly author?: Author
  readonly signal?: AbortSignal
  /** Default 60 s (G3). */
  readonly timeoutMs?: number
  /** Besides what git is given anyway: the place for a credential, which argv is not. */
  readonly env?: Readonly<Record<string, string>>
}

export interface SystemGit {
  /** What git printed. Throws `git_missing` or `git_failed`. */
  run(args: readonly string[], options: GitOptions): Promise<string>
  /** `2.39.5`, or null when there is no git. */
  version(): Promise<string | null>
}

const TIMEOUT_MS = 60_000
const LOCK_RETRIES = 12
const processStart = Date.now() - process.uptime() * 1000

const SETTINGS = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.autocrlf=false',
  'core.quotePath=false',
  'commit.gpgSign=false',
  'protocol.allow=never',
  'advice.detachedHead=false',
  'gc.autoDetach=false',
  'safe.directory=*',
].flatMap((setting) => ['-c', setting])

export function createSystemGit(binary = 'git'): SystemGit {
  let known: Promise<string | null> | undefined

  async function run(args: readonly string[], options: GitOptions): Promise<string> {
    for (let attempt = 0; ; attempt++) {
      const { error, stdout, stderr } = await execute(binary, args, options)
      if (!error) return stdout
      const lock = /Unable to create '([^']+\.lock)': File exists/.exec(stderr)?.[1]
      if (lock && attempt < LOCK_RETRIES && !options.signal?.aborted) {
        if (!(await removeStaleLock(lock))) await sleep(100)
        continue
      }
      throw explain(error, args, stderr, options.signal)
    }
  }

  return {
    run,
    version: () => {
      known ??= run(['--version'], { cwd: tmpdir() }).then(
        (text) => /(\d+(?:\.\d+)+)/.exec(text)?.[1] ?? text.trim(),
        (error: unknown) => {
          if (error instanceof WorkspaceError && error.code === 'git_missing') return null
          known = undefined
          throw error
        },
      )
      return known
    },
  }
}

interface Executed {
  readonly error: Error | null
  readonly stdout: string
  readonly stderr: string
}

function execute(
  binary: string,
  args: readonly string[],
  { cwd, author, signal, timeoutMs = TIMEOUT_MS, env }: GitOptions,
): Promise<Executed> {
  return new Promise((resolve) => {
    const child = execFile(
      binary,
      [...SETTINGS, ...args],
      {
        cwd,
        env: { ...environment(author), ...env },
        timeout: timeoutMs,
        maxBuffer: 32 * 1024 * 1024,
        windowsHide: true,
        ...(signal ? { signal } : {}),
      },
      (error, stdout, stderr) => resolve({ error, stdout, stderr }),
    )
    child.stdin?.end()
  })
}

function environment(author: Author | undefined): NodeJS.ProcessEnv {
  const env: NodeJS.ProcessEnv = {}
  for (const name of ['PATH', 'Path', 'SystemRoot', 'TMPDIR', 'TEMP', 'TMP', 'TZ']) {
    if (process.env[name] !== undefined) env[name] = process.env[name]
  }
  Object.assign(env, {
    LC_ALL: 'C.UTF-8',
    HOME: tmpdir(),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: devNull,
    GIT_TERMINAL_PROMPT: '0',
    GIT_ASKPASS: '',
    GIT_PAGER: 'cat',
    GIT_EDITOR: ':',
    GIT_OPTIONAL_LOCKS: '0',
  })
  if (author) {
    env.GIT_AUTHOR_NAME = env.GIT_COMMITTER_NAME = author.name
    env.GIT_AUTHOR_EMAIL = env.GIT_COMMITTER_EMAIL = author.email
  }
  return env
}

/** True when the lock is gone (G2). */
async function removeStaleLock(lock: string): Promise<boolean> {
  try {
    if ((await stat(lock)).mtimeMs >= processStart) return false
    await unlink(lock)
    return true
  } catch (error) {
    if (isCode(error, 'ENOENT')) return true
    throw error
  }
}

function explain(error: Error, args: readonly string[], stderr: string, signal: AbortSignal | undefined): Error {
  if (signal?.aborted) return error
  // ENOENT also when the folder to run in is missing: only a missing program has the program's name as its path.
  if (isCode(error, 'ENOENT') && 'path' in error && !('killed' in error && error.killed)) {
    return new WorkspaceError('git_missing', GIT_MISSING, { cause: error })
  }
  const said = stderr.trim().split('\n').slice(-4).join(' ').slice(0, 600)
  const verb = args.find((arg, index) => !arg.startsWith('-') && args[index - 1] !== '-c') ?? ''
  return new WorkspaceError('git_failed', `git ${verb} failed: ${said || error.message}`, { cause: error })
}

export const GIT_MISSING =
  "This machine has no git, so agents can't be given a workspace. Install git (for example: apt install git) and restart the gateway."
