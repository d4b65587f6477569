/**
 * Where the local API is and who the caller is: from `HQ_AGENT_URL` and `HQ_AGENT_TOKEN_FILE`, else from `.hq-agent.json` in the folder it is
 * called in or one above; for `hq sync` otherwise from the gateway's own folder (`HQ_GATEWAY_HOME`, `HQ_HOME/gateway`, or `.hq/gateway` in this folder
 * or one above), which makes the caller its operator. The token itself is only ever in its file: not in arguments, not in the environment.
 */
import { readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

export interface Connection {
  readonly url: string
  readonly token: string
}

export type Answer = { readonly status: number; readonly body: Record<string, unknown> }

/** Why the gateway cannot be asked; exit code 3. */
export class Unreachable extends Error {}

export async function findConnection(
  env: Readonly<Record<string, string | undefined>>,
  cwd: string,
  operator = false,
): Promise<Connection> {
  const named = { url: env['HQ_AGENT_URL'], tokenFile: env['HQ_AGENT_TOKEN_FILE'] }
  const { url, tokenFile } =
    named.url && named.tokenFile
      ? named
      : ((await fromFolder(cwd, '.hq-agent.json')) ?? (operator ? await fromGateway(env, cwd) : undefined) ?? {})
  if (!url || !tokenFile) {
    throw new Unreachable(
      'No connection to a gateway was found. Call hq inside an agent’s workspace while the gateway runs, or set HQ_AGENT_URL and HQ_AGENT_TOKEN_FILE.',
    )
  }
  if (!/^http:\/\/(127\.0\.0\.1|localhost|\[::1\]):\d+$/.test(url))
    throw new Unreachable(
      `HQ_AGENT_URL must be an address of this machine, such as http://127.0.0.1:4000, not “${url}”.`,
    )
  try {
    return { url, token: (await readFile(tokenFile, 'utf8')).trim() }
  } catch (error) {
    if (isMissing(error))
      throw new Unreachable(
        'The token of this agent is not there any more. The gateway has stopped, or the agent was removed.',
      )
    throw new Unreachable(
      `The token of this agent cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
}

type Found = { url?: string | undefined; tokenFile?: string | undefined }

const OPERATOR_FILE = '.hq-operator.json'

/** The folder that the environment names, and no other; else the `.hq` of the project that hq is called in. */
async function fromGateway(env: Readonly<Record<string, string | undefined>>, cwd: string): Promise<Found | undefined> {
  const home = env['HQ_GATEWAY_HOME'] || (env['HQ_HOME'] && join(env['HQ_HOME'], 'gateway'))
  return home ? readConnection(join(home, OPERATOR_FILE)) : fromFolder(cwd, join('.hq', 'gateway', OPERATOR_FILE))
}

async function fromFolder(cwd: string, name: string): Promise<Found | undefined> {
  for (let folder = cwd; ; folder = dirname(folder)) {
    const found = await readConnection(join(folder, name))
    if (found) return found
    if (dirname(folder) === folder) return undefined
  }
}

async function readConnection(file: string): Promise<Found | undefined> {
  try {
    const data: unknown = JSON.parse(await readFile(file, 'utf8'))
    const field = (name: string): string | undefined => {
      const value: unknown =
        typeof data === 'object' && data !== null && name in data ? (data as Record<string, unknown>)[name] : undefined
      return typeof value === 'string' ? value : undefined
    }
    return { url: field('url'), tokenFile: field('token_file') }
  } catch (error) {
    if (error instanceof SyntaxError)
      throw new Unreachable(`${file} is broken; restart the gateway, which writes it anew.`)
    if (isMissing(error)) return undefined
    throw new Unreachable(`${file} cannot be read: ${error instanceof Error ? error.message : String(error)}`)
  }
}

export async function call(
  { url, token }: Connection,
  method: 'GET' | 'POST',
  path: string,
  body?: object,
): Promise<Answer> {
  let response: Response
  try {
    response = await fetch(`${url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
      signal: AbortSignal.timeout(30_000),
    })
  } catch (error) {
    const slow = error instanceof Error && error.name === 'TimeoutError'
    throw new Unreachable(
      slow ? 'The gateway did not answer within 30 seconds.' : 'The gateway does not answer. Is it running?',
    )
  }
  const text = await response.text()
  try {
    return { status: response.status, body: JSON.parse(text) as Record<string, unknown> }
  } catch {
    throw new Unreachable('Something else than an HQ gateway answered at this address.') // the answer was not JSON
  }
}

const isMissing = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')
