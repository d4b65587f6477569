/**
 * OpenClaw on this machine: where it is, whether it is the version that HQ was tested with, and its installation on demand from npm.
 *
 *  I1 The version is pinned. Another one, a broken or a missing installation is told in a sentence; nothing starts it.
 *  I2 An installation is made beside and put in place by one rename: a crash or a cancel leaves none or the old one.
 *  I3 It runs on the Node that runs this gateway, which has to be new enough.
 *
 * About 330 packages and 650 MB; npm's own settings (registry, proxy) count. `HQ_OPENCLAW_FOLDER` names an installation that is there already.
 */
import { spawn } from 'node:child_process'
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { GatewayContext } from '../../service.ts'

export const OPENCLAW_VERSION = '2026.9.6'

export type Installation =
  | { readonly ok: true; readonly folder: string; readonly script: string; readonly version: string }
  | { readonly ok: false; readonly reason: 'missing' | 'broken' | 'other_version' | 'node'; readonly message: string }

type Where = Pick<GatewayContext, 'home' | 'env'>

/** Folder with `node_modules/openclaw` in it. */
const folderOf = ({ home, env }: Where): string => env['HQ_OPENCLAW_FOLDER'] || join(home, 'openclaw', OPENCLAW_VERSION)

export async function findInstallation(where: Where, node = process.versions.node): Promise<Installation> {
  const folder = folderOf(where)
  const script = join(folder, 'node_modules/openclaw/openclaw.mjs')
  let version: unknown
  try {
    await readFile(script)
    ;({ version } = JSON.parse(await readFile(join(folder, 'node_modules/openclaw/package.json'), 'utf8')) as {
      version?: unknown
    })
  } catch (error) {
    const missing = error instanceof Error && 'code' in error && error.code === 'ENOENT'
    return missing
      ? {
          ok: false,
          reason: 'missing',
          message: `OpenClaw is not installed on this gateway. Install it there (Gateways, Runtimes), or let the agent use the builtin runtime.`,
        }
      : {
          ok: false,
          reason: 'broken',
          message: `The installation of OpenClaw in ${folder} can’t be read (${String(error)}). Install it again (Gateways, Runtimes).`,
        }
  }
  if (version !== OPENCLAW_VERSION)
    return {
      ok: false,
      reason: 'other_version',
      message: `OpenClaw ${String(version)} is installed in ${folder}, but this HQ works with ${OPENCLAW_VERSION}. Install it again (Gateways, Runtimes).`,
    }
  if (!isNewEnough(node))
    return {
      ok: false,
      reason: 'node',
      message: `OpenClaw ${OPENCLAW_VERSION} needs Node 24.16 or later (24.x), this gateway runs on ${node}. Start the gateway with \`npm run gateway\`, which brings its own.`,
    }
  return { ok: true, folder, script, version: OPENCLAW_VERSION }
}

/** `>=24.16.0 <25 || >=26.1.0`, as its package says. */
export function isNewEnough(node: string): boolean {
  const [major = 0, minor = 0] = node.split('.').map(Number)
  return (major === 24 && minor >= 16) || (major === 26 && minor >= 1) || major > 26
}

/** Throws a sentence. `tell` gets npm's words. */
export async function install(where: Where, tell: (text: string) => void, signal: AbortSignal): Promise<void> {
  if (where.env['HQ_OPENCLAW_FOLDER'])
    throw new Error('HQ_OPENCLAW_FOLDER names an installation that HQ does not manage. Unset it to install one here.')
  const folder = folderOf(where)
  const fresh = `${folder}.new`
  await rm(fresh, { recursive: true, force: true })
  await mkdir(fresh, { recursive: true, mode: 0o700 })
  try {
    await writeFile(join(fresh, 'package.json'), JSON.stringify({ name: 'hq-openclaw', private: true }))
    // Its own postinstall wants a newer Node than npm may run on; it is made up for at the first start.
    const words = [
      'install',
      `openclaw@${OPENCLAW_VERSION}`,
      '--ignore-scripts',
      '--no-audit',
      '--no-fund',
      '--save-exact',
    ]
    await npm([...words, '--loglevel', 'http'], fresh, tell, signal)
    const found = await findInstallation({ home: where.home, env: { HQ_OPENCLAW_FOLDER: fresh } })
    if (!found.ok) throw new Error(`npm ended well, but: ${found.message}`)
    signal.throwIfAborted()
    await rm(folder, { recursive: true, force: true })
    await rename(fresh, folder)
  } catch (error) {
    await rm(fresh, { recursive: true, force: true })
    throw error
  }
}

/** Of the gateway's environment only what npm needs to find its registry: the rest may hold keys. */
const FOR_NPM = /^(?:PATH|HOME|npm_config_.*|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_(?:FILE|DIR))$/i

async function npm(words: string[], cwd: string, tell: (text: string) => void, signal: AbortSignal): Promise<void> {
  const child = spawn('npm', words, {
    cwd,
    env: Object.fromEntries(Object.entries(process.env).filter(([name]) => FOR_NPM.test(name))),
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  })
  const kill = (): void => {
    try {
      if (child.pid) process.kill(-child.pid, 'SIGKILL')
    } catch {
      // It has ended by itself.
    }
  }
  signal.addEventListener('abort', kill, { once: true })
  let last = ''
  const hear = (data: Buffer): void => {
    const text = data.toString()
    last = (last + text).slice(-2_000)
    tell(text)
  }
  child.stdout.on('data', hear)
  child.stderr.on('data', hear)
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', resolve)
    })
    signal.throwIfAborted()
    if (code !== 0) throw new Error(`npm could not install OpenClaw (exit ${code}): ${lastLines(last)}`)
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT')
      throw new Error('npm was not found on this machine. Install Node with npm, then try again.', { cause: error })
    throw error
  } finally {
    signal.removeEventListener('abort', kill)
  }
}

const lastLines = (text: string): string =>
  text
    .split('\n')
    .filter((line) => /error|ERR/i.test(line))
    .slice(-4)
    .join(' ')
    .slice(0, 600) || 'see its output'
