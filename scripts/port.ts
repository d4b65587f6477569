/**
 * Whether a port can be used, and if not, who has it and what to do: in words that help somebody who has never heard of ports.
 *
 * Finding out never fails: where the system doesn't tell the process, the message says less.
 */
import { execFile } from 'node:child_process'
import { readdir, readFile, readlink } from 'node:fs/promises'
import { createServer } from 'node:net'
import { promisify } from 'node:util'

export interface Listener {
  readonly pid: number
  readonly name: string
}

export interface PortProblem {
  readonly kind: 'hq' | 'taken' | 'not_allowed' | 'no_address'
  readonly message: string
}

const run = promisify(execFile)

/** Undefined: the port is free. */
export async function portProblem(host: string, port: number): Promise<PortProblem | undefined> {
  const code = await tryListen(host, port)
  if (code === undefined) return undefined
  if (code === 'EACCES') {
    return {
      kind: 'not_allowed',
      message: `This user may not listen on port ${port} (ports below 1024 are for the system). Choose a higher one, for example: HQ_PORT=3210 npm start`,
    }
  }
  if (code !== 'EADDRINUSE') {
    return {
      kind: 'no_address',
      message: `HQ can't listen on ${host} (${code}). HQ_HOST must be an address of this machine; 127.0.0.1 always is one.`,
    }
  }
  const [hq, listener, free] = await Promise.all([askForHq(host, port), listenerOf(port), freePortAfter(host, port)])
  const instead = `HQ_PORT=${free} npm start`
  if (hq) {
    const who = hq.pid ?? listener?.pid
    return {
      kind: 'hq',
      message:
        `Another HQ already answers at http://${host}:${port}${who ? ` (process ${who})` : ''}. Open that address; or stop it (Ctrl-C in its window${who ? `, or: kill ${who}` : ''}).\n` +
        `To run a second one beside it, give it a port and a folder of its own: HQ_HOME=.hq2 ${instead}`,
    }
  }
  const who = listener ? `by '${listener.name}' (process ${listener.pid})` : 'by another program'
  return {
    kind: 'taken',
    message:
      `Port ${port} is already in use ${who}.\n` +
      `Stop that program${listener ? ` (kill ${listener.pid})` : ''}, or start HQ on another port: ${instead}` +
      (listener
        ? ''
        : `\nTo see which it is: ${process.platform === 'linux' ? `ss -ltnp 'sport = :${port}'` : `lsof -nP -iTCP:${port} -sTCP:LISTEN`}`),
  }
}

const tryListen = (host: string, port: number): Promise<string | undefined> =>
  new Promise((resolve) => {
    const probe = createServer()
    probe.once('error', (error: NodeJS.ErrnoException) => resolve(error.code ?? 'unknown'))
    probe.listen(port, host, () => probe.close(() => resolve(undefined)))
  })

async function freePortAfter(host: string, port: number): Promise<number> {
  for (let next = port + 1; next < Math.min(port + 100, 65_536); next++) {
    if ((await tryListen(host, next)) === undefined) return next
  }
  return port + 100
}

async function askForHq(host: string, port: number): Promise<{ pid: number | undefined } | undefined> {
  const name = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host
  try {
    const response = await fetch(`http://${name}:${port}/v1/health`, { signal: AbortSignal.timeout(1_000) })
    const body = (await response.json()) as { service?: unknown; pid?: unknown }
    return body.service === 'hq' ? { pid: typeof body.pid === 'number' ? body.pid : undefined } : undefined
  } catch {
    return undefined // whatever it is, it doesn't answer as HQ does
  }
}

/** The process that listens on a TCP port of this machine, if the system says so. */
export async function listenerOf(port: number): Promise<Listener | undefined> {
  return (await fromProc(port).catch(() => undefined)) ?? (await fromLsof(port).catch(() => undefined))
}

const LISTEN = '0A'

async function fromProc(port: number): Promise<Listener | undefined> {
  const inodes = new Set<string>()
  for (const file of ['/proc/net/tcp', '/proc/net/tcp6']) {
    const lines = (await readFile(file, 'utf8').catch(() => '')).split('\n').slice(1)
    for (const line of lines) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/)
      if (state === LISTEN && Number.parseInt(local.split(':')[1] ?? '', 16) === port) inodes.add(`socket:[${inode}]`)
    }
  }
  if (inodes.size === 0) return undefined
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name))) {
    const descriptors = await readdir(`/proc/${pid}/fd`).catch(() => [])
    for (const descriptor of descriptors) {
      const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '')
      if (inodes.has(target)) return { pid: Number(pid), name: await nameOf(pid) }
    }
  }
  return undefined
}

/** `node server.js` says more than `node`. */
async function nameOf(pid: string): Promise<string> {
  const command = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).split('\0').filter(Boolean)
  const base = (path: string): string => path.split('/').at(-1) ?? path
  const [program = '', argument] = command
  if (!program) return (await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => 'unknown')).trim()
  // Never more of the command line than a file's name: arguments may hold secrets.
  return argument && !argument.startsWith('-') && argument.includes('.')
    ? `${base(program)} ${base(argument)}`
    : base(program)
}

async function fromLsof(port: number): Promise<Listener | undefined> {
  const { stdout } = await run('lsof', ['-nP', `-iTCP:${port}`, '-sTCP:LISTEN', '-Fpc'], { timeout: 3_000 })
  const pid = Number(/^p(\d+)/m.exec(stdout)?.[1])
  const name = /^c(.+)/m.exec(stdout)?.[1]
  return pid && name ? { pid, name } : undefined
}
