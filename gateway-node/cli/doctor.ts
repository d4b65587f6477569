/**
 * `hq doctor`: what a person would look at first when a gateway does not do what it should. It looks from outside, so that it says something also when the
 * gateway does not run, and changes nothing.
 *
 * Nothing it prints holds a secret. Each check ends within `CHECK_MS` and never stops the others.
 */
import { access, constants, readFile, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { type GatewayConfig, readConfig, SetupError, VERSION } from '../config.ts'
import { readModelConfig } from '../runtime/builtin/config.ts'
import { listModels } from '../runtime/builtin/providers.ts'
import { findInstallation } from '../runtime/openclaw/install.ts'
import { createSystemGit, GIT_MISSING } from '../workspaces/system-git.ts'
import { call, findConnection, Unreachable } from './connection.ts'
import type { Finding } from './findings.ts'

type Environment = Readonly<Record<string, string | undefined>>

const CHECK_MS = 6_000
const GIGABYTE = 1e9
const LITTLE_SPACE = 2 * GIGABYTE
const NO_SPACE = 0.2 * GIGABYTE
const SKEW_MS = 60_000
/** The server counts a change at most this much ahead of its own clock. */
const LARGE_SKEW_MS = 5 * 60_000

export async function examine(env: Environment, cwd: string): Promise<Finding[]> {
  let config: GatewayConfig
  try {
    config = readConfig(env)
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    return [
      {
        subject: 'settings',
        severity: 'problem',
        says: error.message,
        advice: 'Correct the variable, then ask again.',
      },
    ]
  }
  const checks: readonly (readonly [string, () => Promise<Finding>])[] = [
    ['node', async () => checkNode(process.versions.node)],
    ['git', checkGit],
    ['folder', () => checkFolder(config.home)],
    ['space', () => checkSpace(config.home)],
    ['registration', () => checkRegistration(config.home)],
    ['gateway', () => checkGateway(env, cwd)],
    ['server', () => checkServer(config)],
    ['model', () => checkModel(config.home, env)],
    ['openclaw', () => checkOpenClaw(config.home, env)],
  ]
  return Promise.all(checks.map(([subject, check]) => within(subject, check)))
}

async function within(subject: string, check: () => Promise<Finding>): Promise<Finding> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<Finding>((resolve) => {
    timer = setTimeout(
      () =>
        resolve({
          subject,
          severity: 'warning',
          says: `no answer within ${CHECK_MS / 1000} s`,
          advice: 'Ask again when the machine is less busy.',
        }),
      CHECK_MS,
    )
  })
  try {
    return await Promise.race([check(), late])
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    return {
      subject,
      severity: 'warning',
      says: `could not be looked at (${reason})`,
      advice: 'Call hq as the user that the gateway runs as.',
    }
  } finally {
    clearTimeout(timer)
  }
}

export function checkNode(version: string): Finding {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const fits = (major === 24 && minor >= 16) || major > 24
  return fits
    ? { subject: 'node', severity: 'ok', says: version }
    : {
        subject: 'node',
        severity: 'problem',
        says: `${version} is too old`,
        advice: 'Start through npm (npm start, npm run gateway), which uses the Node that HQ brings.',
      }
}

async function checkGit(): Promise<Finding> {
  const version = await createSystemGit().version()
  return version === null
    ? { subject: 'git', severity: 'problem', says: 'not found', advice: GIT_MISSING }
    : { subject: 'git', severity: 'ok', says: version }
}

/** It is an extra: missing is no problem, being there and of no use is. */
async function checkOpenClaw(home: string, env: Environment): Promise<Finding> {
  const subject = 'openclaw'
  const found = await findInstallation({ home, env })
  if (found.ok) return { subject, severity: 'ok', says: found.version }
  if (found.reason === 'missing')
    return { subject, severity: 'ok', says: 'not installed; agents use the builtin runtime' }
  return { subject, severity: 'warning', says: found.message, advice: 'In the app: Gateways, this gateway, Runtimes.' }
}

async function checkFolder(home: string): Promise<Finding> {
  const subject = 'folder'
  const found = await stat(home).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!found)
    return {
      subject,
      severity: 'problem',
      says: `${home} is not there`,
      advice: 'Start the gateway once, or name its folder in HQ_GATEWAY_HOME (or HQ_HOME).',
    }
  if (!(await isWritable(home)))
    return {
      subject,
      severity: 'problem',
      says: `${home} cannot be written by this user`,
      advice: 'Call hq as the user that the gateway runs as, or give that user the right to write there.',
    }
  if ((found.mode & 0o077) !== 0)
    return {
      subject,
      severity: 'warning',
      says: `${home} can be read by other users of this machine`,
      advice: `chmod 700 ${home}; the gateway does so when it starts.`,
    }
  return { subject, severity: 'ok', says: home }
}

const isWritable = (path: string): Promise<boolean> =>
  access(path, constants.R_OK | constants.W_OK | constants.X_OK).then(
    () => true,
    () => false,
  )

async function checkSpace(home: string): Promise<Finding> {
  const subject = 'space'
  const { bavail, bsize } = await statfs(await nearest(home))
  const free = bavail * bsize
  const says = `${(free / GIGABYTE).toFixed(1)} GB free`
  if (free < NO_SPACE)
    return {
      subject,
      severity: 'problem',
      says,
      advice: 'Free some space now: nothing new can be kept. What is saved stays.',
    }
  if (free < LITTLE_SPACE) return { subject, severity: 'warning', says, advice: 'Free some space before it runs out.' }
  return { subject, severity: 'ok', says }
}

/** The folder, or the nearest above it that exists. */
async function nearest(path: string): Promise<string> {
  return stat(path).then(
    () => path,
    () => nearest(join(path, '..')),
  )
}

async function checkRegistration(home: string): Promise<Finding> {
  const subject = 'registration'
  const found = await stat(join(home, 'credentials.json')).catch(() => undefined)
  if (!found)
    return {
      subject,
      severity: 'problem',
      says: 'this gateway is not registered',
      advice: 'In the app: Gateways, Add a gateway; then run the command it shows on this machine.',
    }
  return { subject, severity: 'ok', says: `since ${found.mtime.toISOString().slice(0, 10)}` }
}

async function checkGateway(env: Environment, cwd: string): Promise<Finding> {
  const subject = 'gateway'
  try {
    const { status, body } = await call(await findConnection(env, cwd, true), 'GET', '/v1/sync/status')
    if (status !== 200)
      return {
        subject,
        severity: 'warning',
        says: String(body['message'] ?? `answers with ${status}`),
        advice: 'Restart it; its log says more.',
      }
    return saysOfGateway(body)
  } catch (error) {
    if (!(error instanceof Unreachable)) throw error
    return {
      subject,
      severity: 'problem',
      says: 'it does not run, or its folder is another one',
      advice: `Start it (npm start, or npm run gateway). ${error.message}`,
    }
  }
}

/** From the answer of `/v1/sync/status`. */
export function saysOfGateway(body: Readonly<Record<string, unknown>>): Finding {
  const subject = 'gateway'
  const [pending, rejected] = [Number(body['pending'] ?? 0), Number(body['rejected'] ?? 0)]
  const waiting = `${pending} change${pending === 1 ? '' : 's'} waiting`
  if (typeof body['parked'] === 'string')
    return {
      subject,
      severity: 'problem',
      says: `runs, but sends nothing (${body['parked'].replaceAll('_', ' ')}); ${waiting}`,
      advice: 'hq sync status says why and what to do.',
    }
  if (body['connection'] !== 'online')
    return {
      subject,
      severity: 'warning',
      says: `runs without a connection; ${waiting}`,
      advice: 'It goes on working and sends everything when the server answers; see “server” below.',
    }
  if (rejected > 0)
    return {
      subject,
      severity: 'warning',
      says: `runs; the server refused ${rejected} change${rejected === 1 ? '' : 's'}`,
      advice: 'hq sync outbox shows them with the reason.',
    }
  return { subject, severity: 'ok', says: `runs and is connected; ${waiting}` }
}

async function checkServer({ home, serverUrl }: GatewayConfig): Promise<Finding> {
  const subject = 'server'
  const url = serverUrl ?? (await serverOf(home))
  if (url === undefined)
    return {
      subject,
      severity: 'warning',
      says: 'its address is not known here',
      advice: 'Set HQ_SERVER_URL, or register this gateway.',
    }
  let response: Response
  try {
    response = await fetch(`${url}/v1/health`, { signal: AbortSignal.timeout(CHECK_MS - 1_000) })
  } catch {
    return {
      subject,
      severity: 'problem',
      says: `${url} does not answer`,
      advice: 'Is it running, and can this machine reach it? The gateway goes on without it meanwhile.',
    }
  }
  const body = (await response.json().catch(() => undefined)) as { service?: unknown; version?: unknown } | undefined
  if (body?.service !== 'hq')
    return {
      subject,
      severity: 'problem',
      says: `something else than HQ answers at ${url}`,
      advice: 'Correct HQ_SERVER_URL, or what stands in front of the server.',
    }
  return saysOfServer(url, body.version, Date.parse(response.headers.get('date') ?? '') - Date.now())
}

/** `skew`: how far the server's clock is ahead of ours, in ms; NaN when it did not say. */
export function saysOfServer(url: string, version: unknown, skew: number): Finding {
  const subject = 'server'
  if (version !== VERSION)
    return {
      subject,
      severity: 'warning',
      says: `${url} has version ${String(version)}, this gateway ${VERSION}`,
      advice: 'Bring both to the same version; until then what the older one does not know is kept and not sent.',
    }
  const seconds = Math.round(Math.abs(skew) / 1_000)
  if (Math.abs(skew) > SKEW_MS)
    return {
      subject,
      severity: Math.abs(skew) > LARGE_SKEW_MS ? 'problem' : 'warning',
      says: `${url} answers, but its clock is ${seconds} s ${skew > 0 ? 'ahead of' : 'behind'} this machine's`,
      advice: 'Set both clocks by the network (NTP): of two changes at the same time the later one wins.',
    }
  return { subject, severity: 'ok', says: `${url} answers, version ${VERSION}` }
}

/** From the registration; without the secrets that stand beside it. */
async function serverOf(home: string): Promise<string | undefined> {
  const text = await readFile(join(home, 'credentials.json'), 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const parsed = JSON.parse(text) as { url?: unknown }
  return typeof parsed.url === 'string' ? parsed.url : undefined
}

async function checkModel(home: string, env: Environment): Promise<Finding> {
  const subject = 'model'
  const read = await readModelConfig(home, env)
  if (!read.ok)
    return { subject, severity: 'problem', says: read.message, advice: 'Agents cannot work until this is put right.' }
  const { provider, model } = read.config
  if (provider === 'demo')
    return {
      subject,
      severity: 'info',
      says: 'no provider is set: agents use the demo model, which works the loop and thinks nothing',
      advice: 'Set HQ_MODEL_PROVIDER and its key for a real one.',
    }
  const listing = await listModels(read.config, AbortSignal.timeout(CHECK_MS - 1_000))
  if (!listing.ok)
    return {
      subject,
      severity: 'problem',
      says: `${provider}: ${listing.message}`,
      advice: 'Check its address, its key, and that this machine can reach it.',
    }
  if (model !== undefined && listing.models.length > 0 && !listing.models.some((each) => each.model === model))
    return {
      subject,
      severity: 'warning',
      says: `${provider} does not list the model ${model}`,
      advice: `It has ${listing.models
        .slice(0, 5)
        .map((each) => each.model)
        .join(', ')}.`,
    }
  return { subject, severity: 'ok', says: `${provider} answers, ${listing.models.length} models` }
}
