/**
 * `hq audit`: settings of this machine's HQ that are risky, the worst first, with what to do. It reads settings, rights of files and addresses; it changes
 * nothing, asks no network, and prints no secret.
 */
import { lstat, readdir } from 'node:fs/promises'
import { isIP } from 'node:net'
import { join } from 'node:path'
import { readConfig, SetupError } from '../config.ts'
import { isOn } from '../switches.ts'
import { type Finding, sorted } from './findings.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Files below this many folders are looked at; worktrees of agents are their own and hold no keys of ours. */
const DEPTH = 2
const NOT_LOOKED_AT = new Set(['agents', 'repo.git', 'replica', 'node_modules'])
const NAMED = 5

export async function audit(env: Environment): Promise<Finding[]> {
  let home: string | undefined
  const findings: Finding[] = []
  try {
    home = readConfig(env).home
  } catch (error) {
    if (!(error instanceof SetupError)) throw error
    findings.push({
      subject: 'settings',
      severity: 'problem',
      says: error.message,
      advice: 'Correct the variable, then ask again.',
    })
  }
  findings.push(...auditSettings(env))
  if (home !== undefined) findings.push(await auditFiles(home))
  return sorted(findings)
}

/** Pure: what the environment says. */
export function auditSettings(env: Environment): Finding[] {
  return [
    bindAddress(env),
    transport(env),
    registrationToken(env),
    database(env),
    modelAddress(env),
    web(env),
    agentExec(env),
    runShell(env),
    asRoot(process.getuid?.()),
  ]
}

const isLocal = (host: string): boolean => host === 'localhost' || host === '::1' || /^127\./.test(host)

function agentExec(env: Environment): Finding {
  const subject = 'exec'
  return isOn(env, 'HQ_AGENT_EXEC')
    ? {
        subject,
        severity: 'warning',
        says: 'agents whose permissions say so may run commands as the user of this gateway',
        advice: 'Give the gateway a user of its own, and let agents ask each time (agent, Permissions, exec: ask).',
      }
    : { subject, severity: 'ok', says: 'agents run no commands (HQ_AGENT_EXEC is off)' }
}

function runShell(env: Environment): Finding {
  const subject = 'shell'
  return isOn(env, 'HQ_RUN_SHELL')
    ? {
        subject,
        severity: 'warning',
        says: 'admins of the workspace may run shell commands on this machine',
        advice: 'Take HQ_RUN_SHELL away when it is not needed any more.',
      }
    : { subject, severity: 'ok', says: 'the app runs no shell commands here (HQ_RUN_SHELL is off)' }
}

function bindAddress(env: Environment): Finding {
  const subject = 'bind address'
  const host = env['HQ_HOST'] || '127.0.0.1'
  if (isLocal(host)) return { subject, severity: 'ok', says: `${host}, this machine only` }
  const isPublic = env['HQ_PUBLIC_URL']?.startsWith('https:')
  return isPublic
    ? {
        subject,
        severity: 'warning',
        says: `${host}: others can reach the server without the proxy that does https`,
        advice: 'Bind to 127.0.0.1 where the proxy runs on this machine, or let only the proxy through.',
      }
    : {
        subject,
        severity: 'problem',
        says: `${host}: others can reach the server, and sign-ins and data cross the network unencrypted`,
        advice: 'Put a proxy with https in front and name its address in HQ_PUBLIC_URL, or bind to 127.0.0.1.',
      }
}

function transport(env: Environment): Finding {
  const subject = 'server address'
  const address = env['HQ_SERVER_URL'] || env['HQ_SERVER'] || env['HQ_PUBLIC_URL']
  const url = address === undefined ? null : URL.parse(address)
  if (!url) return { subject, severity: 'ok', says: 'this machine' }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  if (url.protocol === 'https:' || isLocal(host)) return { subject, severity: 'ok', says: url.origin }
  return {
    subject,
    severity: 'problem',
    says: `${url.origin} is not encrypted: the gateway's token and all its data can be read on the way`,
    advice: 'Use https.',
  }
}

function registrationToken(env: Environment): Finding {
  const subject = 'registration token'
  return env['HQ_REGISTRATION_TOKEN']
    ? {
        subject,
        severity: 'warning',
        says: 'HQ_REGISTRATION_TOKEN is still in the environment',
        advice: 'Take it out: it is for the first start only, and whatever runs here can read it.',
      }
    : { subject, severity: 'ok', says: 'not in the environment' }
}

function database(env: Environment): Finding {
  const subject = 'database'
  const url = env['DATABASE_URL'] ? URL.parse(env['DATABASE_URL']) : null
  if (!url) return { subject, severity: 'ok', says: 'embedded' }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  const encrypted = /(?:^|[?&])sslmode=(?:require|verify-ca|verify-full)\b/.test(url.search)
  if (url.hostname === '' || isLocal(host) || encrypted)
    return { subject, severity: 'ok', says: host || 'a local socket' }
  return {
    subject,
    severity: 'warning',
    says: `${host} is asked without encryption`,
    advice: 'Add sslmode=verify-full to DATABASE_URL, unless the network between is your own.',
  }
}

function modelAddress(env: Environment): Finding {
  const subject = 'model provider'
  const url = env['HQ_MODEL_BASE_URL'] ? URL.parse(env['HQ_MODEL_BASE_URL']) : null
  if (!url || url.protocol === 'https:' || isLocal(url.hostname))
    return { subject, severity: 'ok', says: url?.origin ?? 'the provider’s own address' }
  const key = env['HQ_MODEL_API_KEY'] ? 'its key and ' : ''
  return {
    subject,
    severity: 'warning',
    says: `${url.origin} is not encrypted: ${key}what agents write can be read on the way`,
    advice: isIP(url.hostname) ? 'Use https unless that network is your own.' : 'Use https.',
  }
}

const web = (env: Environment): Finding =>
  isOn(env, 'HQ_AGENT_WEB')
    ? {
        subject: 'web',
        severity: 'info',
        says: 'agents may read public pages: what they know can leave in an address, and what they read can mislead them',
        advice: 'Leave HQ_AGENT_WEB out where agents handle what must not leave.',
      }
    : { subject: 'web', severity: 'ok', says: 'agents cannot read the internet' }

const asRoot = (user: number | undefined): Finding =>
  user === 0
    ? {
        subject: 'user',
        severity: 'info',
        says: 'this is root',
        advice: 'Run HQ as a user of its own: what goes wrong then can reach less.',
      }
    : { subject: 'user', severity: 'ok', says: 'not root' }

async function auditFiles(home: string): Promise<Finding> {
  const subject = 'files'
  const open = await openFiles(home, DEPTH)
  if (open === undefined) return { subject, severity: 'info', says: `${home} is not there` }
  if (open.length === 0) return { subject, severity: 'ok', says: 'keys and settings are readable by their owner only' }
  const more = open.length > NAMED ? ` and ${open.length - NAMED} more` : ''
  return {
    subject,
    severity: 'problem',
    says: `other users of this machine can read ${open.slice(0, NAMED).join(', ')}${more}`,
    advice: `chmod -R go-rwx ${home}; change the keys that were readable.`,
  }
}

/** Files in `folder` that others than their owner have rights to; undefined: there is no such folder. A folder that is closed closes what is in it. */
async function openFiles(folder: string, depth: number): Promise<string[] | undefined> {
  const found = await lstat(folder).catch(() => undefined)
  if (!found?.isDirectory()) return undefined
  if ((found.mode & 0o077) === 0) return []
  const open: string[] = []
  for (const name of await readdir(folder)) {
    if (NOT_LOOKED_AT.has(name)) continue
    const path = join(folder, name)
    const entry = await lstat(path)
    if (entry.isFile() && (entry.mode & 0o077) !== 0) open.push(path)
    else if (entry.isDirectory() && depth > 0) open.push(...((await openFiles(path, depth - 1)) ?? []))
  }
  return open
}
