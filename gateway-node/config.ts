/**
 * Where a gateway keeps its things and how it is set up, from the environment.
 *
 * | variable | default | |
 * |---|---|---|
 * | `HQ_GATEWAY_HOME` | `HQ_HOME/gateway` | folder of everything the gateway keeps |
 * | `HQ_HOME` | `.hq` beside the project | |
 * | `HQ_SERVER_URL` (or `HQ_SERVER`) | from registration | address of the server |
 * | `HQ_REGISTRATION_TOKEN` | | single-use token, for a gateway on another machine; best given to register.ts only |
 * | `HQ_GATEWAY_SLUG`, `HQ_GATEWAY_LABEL` | host name | what it is called when it registers |
 * | `HQ_SYNC` | `websocket` | how it hears of changes: `websocket` (one connection for all tables), or over plain HTTP, through proxies that know nothing else, `long-poll` or `sse` |
 * | `HQ_TEMPLATES` | `templates/` of the project | folder of agent templates |
 * | `HQ_GIT_REMOTE` | | address of a git repository that agents' branches are pushed to and fetched from (workspaces/remote.ts) |
 */
import { constants } from 'node:fs'
import { access, chmod, mkdir, stat, unlink, writeFile } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

export interface GatewayConfig {
  readonly home: string
  readonly templates: string
  readonly serverUrl: string | undefined
  readonly registrationToken: string | undefined
  readonly slug: string
  readonly label: string
  readonly sync: SyncTransport
}

export type SyncTransport = (typeof SYNC_TRANSPORTS)[number]
const SYNC_TRANSPORTS = ['websocket', 'long-poll', 'sse'] as const

/** Something a person has to put right before the gateway can run; `message` says what, why, and what next. */
export class SetupError extends Error {
  readonly code: 'home' | 'sync' | 'server_url' | 'not_registered' | 'registration_refused' | 'locked' | 'credentials'
  constructor(code: SetupError['code'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = 'SetupError'
    this.code = code
  }
}

type Environment = Readonly<Record<string, string | undefined>>

const project = fileURLToPath(new URL('..', import.meta.url))

export function readConfig(env: Environment): GatewayConfig {
  const hqHome = env['HQ_HOME'] || join(project, '.hq')
  const serverUrl = env['HQ_SERVER_URL'] || env['HQ_SERVER']
  const host = hostname()
  return {
    home: resolve(env['HQ_GATEWAY_HOME'] || join(hqHome, 'gateway')),
    templates: resolve(env['HQ_TEMPLATES'] || join(project, 'templates')),
    serverUrl: serverUrl === undefined ? undefined : checkServerUrl(serverUrl),
    registrationToken: env['HQ_REGISTRATION_TOKEN'] || undefined,
    slug: toSlug(env['HQ_GATEWAY_SLUG'] || host),
    label: env['HQ_GATEWAY_LABEL'] || host || 'Gateway',
    sync: checkSync(env['HQ_SYNC'] || 'websocket'),
  }
}

function checkSync(text: string): SyncTransport {
  const known = SYNC_TRANSPORTS.find((name) => name === text)
  if (known) return known
  throw new SetupError(
    'sync',
    `HQ_SYNC is "${text}". It can be ${SYNC_TRANSPORTS.join(', ')}; leave it out for websocket.`,
  )
}

/** An address without a path, such as `https://hq.example.com`. */
export function checkServerUrl(text: string): string {
  const url = URL.parse(text)
  if (url && (url.protocol === 'http:' || url.protocol === 'https:') && !url.username && !url.password)
    return url.origin
  throw new SetupError(
    'server_url',
    `"${text}" is not the address of an HQ server. Give one such as http://127.0.0.1:3210 in HQ_SERVER_URL.`,
  )
}

function toSlug(text: string): string {
  const slug = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .slice(0, 40)
    .replaceAll(/^-+|-+$/g, '')
  return slug || 'gateway'
}

/** Makes the home folder, readable by its owner only, and makes sure that it can be written. */
export async function prepareHome(home: string): Promise<void> {
  try {
    await mkdir(home, { recursive: true, mode: 0o700 })
    if (((await stat(home)).mode & 0o077) !== 0) await chmod(home, 0o700)
    await access(home, constants.R_OK | constants.W_OK | constants.X_OK)
    const probe = join(home, `.probe-${process.pid}`)
    await writeFile(probe, '')
    await unlink(probe)
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw new SetupError(
      'home',
      `The gateway can't write to its folder ${home} (${reason}). Give this user the right to, free some space, or name another folder in HQ_GATEWAY_HOME.`,
      { cause: error },
    )
  }
}

/** Version of this project, for `meta.version`. */
export const VERSION = '0.1.0'
