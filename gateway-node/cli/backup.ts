/**
 * `hq backup key`, `hq gateway restore [FILE]`, and `npm run gateway:restore [-- FILE]`.
 *
 * The recovery key is read from the file that `HQ_RECOVERY_KEY_FILE` names, from `HQ_RECOVERY_KEY`, or from the terminal (not shown): never from an argument, which every
 * user of a machine sees.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { BackupError } from '@hq/shared/backup/sealed-file.ts'
import { ServerAway } from '../backup/blobs.ts'
import { formatRecoveryKey, parseRecoveryKey, readRecoveryKey, recoveryKeyFile } from '../backup/recovery-key.ts'
import { restoreGateway } from '../backup/restore.ts'
import { readConfig, SetupError } from '../config.ts'
import { WorkspaceError } from '../workspaces/contract.ts'

type Environment = Readonly<Record<string, string | undefined>>

export const BACKUP_HELP = `hq backup FILE                the whole workspace into one encrypted file (on the server's machine)
hq restore FILE               and back, into an empty install
hq backup key                 shows the recovery key of this machine's gateway. Keep it somewhere else: without it, no backup can be read
hq gateway restore [FILE]     makes this machine the gateway that a backup is of: the newest at HQ_SERVER_URL, or FILE.
                              The key: HQ_RECOVERY_KEY_FILE, HQ_RECOVERY_KEY, or asked for`

/**
 * The whole workspace is the server's: its own program does it (`sync-server/backup/main.ts`, which `npm run backup` starts as well), with this terminal for the
 * passphrase. The exit code is its own.
 */
export async function runWorkspace(
  what: 'backup' | 'restore',
  args: readonly string[],
  env: Environment,
): Promise<number> {
  if (args.length !== 1 || args[0]?.startsWith('-')) {
    console.error(BACKUP_HELP)
    return 2
  }
  const program = fileURLToPath(new URL('../../sync-server/backup/main.ts', import.meta.url))
  const child = spawn(process.execPath, [program, what, ...args], { stdio: 'inherit', env: { ...env } })
  const [code] = (await once(child, 'exit')) as [number | null]
  return code ?? 1
}

/** The exit code. What went wrong is on stderr. */
export async function runBackup(args: readonly string[], env: Environment): Promise<number> {
  if (args.length !== 1 || args[0] !== 'key') {
    console.error(BACKUP_HELP)
    return 2
  }
  return telling(async () => {
    const { home } = readConfig(env)
    const key = await readRecoveryKey(home)
    if (!key)
      throw new SetupError(
        'home',
        `There is no recovery key in ${recoveryKeyFile(home)} yet: the gateway makes one when it starts. Name its folder in HQ_GATEWAY_HOME if it is another one.`,
      )
    console.log(formatRecoveryKey(key))
    if (process.stderr.isTTY)
      console.error(
        '\nKeep it where this machine can be lost without it. Whoever has it can read every backup of this gateway.',
      )
  })
}

export async function runRestore(args: readonly string[], env: Environment): Promise<number> {
  if (args.length > 1 || args[0]?.startsWith('-')) {
    console.error(BACKUP_HELP)
    return 2
  }
  const stop = new AbortController()
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stop.abort(new Error(signal)))
  return telling(async () => {
    const { home, serverUrl, templates } = readConfig(env)
    const restored = await restoreGateway({
      home,
      serverUrl,
      templates,
      key: await keyFrom(env),
      file: args[0] === undefined ? undefined : resolve(args[0]),
      signal: stop.signal,
      tell: (text) => console.error(text),
    })
    const { manifest, url, waiting } = restored
    console.log(
      `This machine is the gateway “${manifest.slug}” of ${url} now, as it was on ${manifest.hostname} at ${manifest.at}. ` +
        `${waiting === 0 ? 'Nothing waited to be sent.' : `${waiting} ${waiting === 1 ? 'change is' : 'changes are'} sent when it starts.`} ` +
        'The former machine is not let in any more. Start it with: npm run gateway',
    )
  }, stop.signal)
}

async function telling(work: () => Promise<void>, signal?: AbortSignal): Promise<number> {
  try {
    await work()
    return 0
  } catch (error) {
    if (signal?.aborted) {
      console.error('Stopped. Run the same command again; it begins anew.')
      return 2
    }
    const known = [SetupError, BackupError, ServerAway, WorkspaceError].some((kind) => error instanceof kind)
    if (!known) throw error
    console.error((error as Error).message)
    return error instanceof SetupError && error.code === 'locked' ? 3 : 2
  }
}

async function keyFrom(env: Environment): Promise<Buffer> {
  const file = env['HQ_RECOVERY_KEY_FILE']
  if (file) {
    try {
      return parseRecoveryKey(await readFile(file, 'utf8'))
    } catch (error) {
      if (error instanceof BackupError) throw error
      throw new SetupError('home', `The recovery key could not be read from ${file}: ${String(error)}`, {
        cause: error,
      })
    }
  }
  const given = env['HQ_RECOVERY_KEY']
  if (given) return parseRecoveryKey(given)
  if (!process.stdin.isTTY)
    throw new SetupError('home', 'The recovery key is needed: name a file with it in HQ_RECOVERY_KEY_FILE.')
  return parseRecoveryKey(await askUnseen('Recovery key (hqrec1-…, not shown): '))
}

async function askUnseen(question: string): Promise<string> {
  process.stderr.write(question)
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  const terminal = createInterface({ input: process.stdin, output: nowhere, terminal: true })
  try {
    return await terminal.question('')
  } finally {
    terminal.close()
    process.stderr.write('\n')
  }
}
