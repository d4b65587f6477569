/**
 * What HQ runs in Docker on this gateway's machine: seen, read, started, stopped, restarted. Nothing else.
 *
 *  D1 Only containers with the label `hq.managed=<gateway id>` exist here. Each request looks the label up anew, by the container's full id: a name that somebody else's
 *     container has taken meanwhile is nobody.
 *  D2 Where Docker is comes from the gateway's own environment (`DOCKER_HOST`, else the usual socket). It is in no environment, argument or tool of an agent.
 *  D3 Without Docker everything else works, and it is said what is missing.
 *  D4 Each request ends: after `TIMEOUT_MS`, or when its command is stopped. Logs are bounded.
 */
import Docker from 'dockerode'

export interface ContainerFacts {
  readonly id: string
  readonly name: string
  readonly image: string
  /** Docker's word: `running`, `exited`, `paused`… */
  readonly state: string
  /** "Up 3 minutes". */
  readonly status: string
  readonly memory_mb: number | null
  readonly memory_limit_mb: number | null
  readonly cpu_pct: number | null
  /** In cores. */
  readonly cpu_limit: number | null
  readonly exit_code: number | null
}

export type ContainerDeed = 'start' | 'stop' | 'restart'

/** `message` says what, why, and what next. */
export class ContainerError extends Error {
  override name = 'ContainerError'
}

export interface Containers {
  list(signal: AbortSignal): Promise<readonly ContainerFacts[]>
  /** The last lines, standard output and error as they came. */
  logs(id: string, lines: number, signal: AbortSignal): Promise<string>
  act(id: string, deed: ContainerDeed, signal: AbortSignal): Promise<ContainerFacts>
}

export const LABEL = 'hq.managed'
export const MAX_LINES = 2_000
const MAX_LOG_BYTES = 200 * 1024
const TIMEOUT_MS = 60_000
/** How long a container has to end by itself. */
const STOP_S = 10

type Environment = Readonly<Record<string, string | undefined>>

export function openContainers(gatewayId: string, env: Environment): Containers {
  const { docker, where } = connect(env)

  const ask = async <T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const until = AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)])
    try {
      return await work(until)
    } catch (error) {
      signal.throwIfAborted()
      throw explain(error, where)
    }
  }

  /** (D1) */
  async function mine(id: string, abortSignal: AbortSignal): Promise<Docker.ContainerInspectInfo> {
    const found = /^[0-9a-f]{12,64}$/.test(id) ? await inspectOf(docker, id, abortSignal) : undefined
    if (found?.Config.Labels?.[LABEL] === gatewayId) return found
    throw new ContainerError('There is no such container of HQ on this machine: it was removed, or it is not HQ’s.')
  }

  async function factsOf(info: Docker.ContainerInspectInfo, abortSignal: AbortSignal): Promise<ContainerFacts> {
    const { State: state, HostConfig: limits } = info
    const stats = state.Running ? await statsOf(docker, info.Id, abortSignal) : undefined
    return {
      id: info.Id,
      name: info.Name.replace(/^\//, ''),
      image: info.Config.Image,
      state: state.Status,
      status: state.Running ? `since ${state.StartedAt}` : state.Error || `ended ${state.FinishedAt}`,
      memory_mb: stats?.memoryMb ?? null,
      memory_limit_mb: limits.Memory ? Math.round(limits.Memory / 1024 ** 2) : null,
      cpu_pct: stats?.cpuPct ?? null,
      cpu_limit: limits.NanoCpus ? limits.NanoCpus / 1e9 : null,
      exit_code: state.Running ? null : state.ExitCode,
    }
  }

  return {
    list: (signal) =>
      ask(signal, async (abortSignal) => {
        const all = await docker.listContainers({
          all: true,
          filters: { label: [`${LABEL}=${gatewayId}`] },
          abortSignal,
        })
        const facts: ContainerFacts[] = []
        for (const { Id } of all.slice(0, 100)) {
          const info = await inspectOf(docker, Id, abortSignal)
          // Gone between the two questions.
          if (info?.Config.Labels?.[LABEL] === gatewayId) facts.push(await factsOf(info, abortSignal))
        }
        return facts.sort((a, b) => a.name.localeCompare(b.name))
      }),
    logs: (id, lines, signal) =>
      ask(signal, async (abortSignal) => {
        const { Id, Config } = await mine(id, abortSignal)
        const raw = await docker.getContainer(Id).logs({
          stdout: true,
          stderr: true,
          follow: false,
          timestamps: true,
          tail: Math.min(Math.max(1, Math.floor(lines)), MAX_LINES),
          abortSignal,
        })
        const text = (Config.Tty ? raw : withoutHeaders(raw)).subarray(-MAX_LOG_BYTES).toString('utf8')
        return text
      }),
    act: (id, deed, signal) =>
      ask(signal, async (abortSignal) => {
        const { Id } = await mine(id, abortSignal)
        const container = docker.getContainer(Id)
        const unchanged = (error: unknown): void => {
          // 304: it is so already.
          if ((error as { statusCode?: number }).statusCode !== 304) throw error
        }
        if (deed === 'start') await container.start({ abortSignal }).catch(unchanged)
        if (deed === 'stop') await container.stop({ t: STOP_S, abortSignal }).catch(unchanged)
        if (deed === 'restart') await container.restart({ t: STOP_S, abortSignal })
        return factsOf(await mine(Id, abortSignal), abortSignal)
      }),
  }
}

/** (D2) */
function connect(env: Environment): { docker: Docker; where: string } {
  const given = env['DOCKER_HOST']?.trim()
  if (!given) return { docker: new Docker({ socketPath: SOCKET }), where: SOCKET }
  const socketPath = /^unix:\/\/(\/.+)$/.exec(given)?.[1]
  if (socketPath) return { docker: new Docker({ socketPath }), where: socketPath }
  const url = URL.parse(given.replace(/^tcp:/, 'http:'))
  if (url?.protocol === 'http:' && url.hostname)
    return {
      docker: new Docker({ protocol: 'http', host: url.hostname, port: url.port || '2375' }),
      where: url.host,
    }
  throw new ContainerError(
    'DOCKER_HOST of this gateway is no address that HQ understands. It can be unix:///path/to/docker.sock or tcp://host:port.',
  )
}

const SOCKET = '/var/run/docker.sock'

async function inspectOf(
  docker: Docker,
  id: string,
  abortSignal: AbortSignal,
): Promise<Docker.ContainerInspectInfo | undefined> {
  try {
    return await docker.getContainer(id).inspect({ abortSignal })
  } catch (error) {
    if ((error as { statusCode?: number }).statusCode === 404) return undefined
    throw error
  }
}

async function statsOf(
  docker: Docker,
  id: string,
  abortSignal: AbortSignal,
): Promise<{ memoryMb: number | null; cpuPct: number | null } | undefined> {
  try {
    // The types of dockerode have not heard of the signal here; the library takes it.
    const once: { stream: false } = Object.assign({ stream: false as const }, { abortSignal })
    const { memory_stats, cpu_stats, precpu_stats } = await docker.getContainer(id).stats(once)
    const cache = memory_stats.stats?.inactive_file ?? 0
    const busy = cpu_stats.cpu_usage.total_usage - precpu_stats.cpu_usage.total_usage
    const all = cpu_stats.system_cpu_usage - precpu_stats.system_cpu_usage
    return {
      memoryMb:
        memory_stats.usage === undefined ? null : Math.round(((memory_stats.usage - cache) / 1024 ** 2) * 10) / 10,
      cpuPct: all > 0 ? Math.round((busy / all) * (cpu_stats.online_cpus || 1) * 1000) / 10 : null,
    }
  } catch (error) {
    // It ended between the two questions.
    if ([404, 409].includes((error as { statusCode?: number }).statusCode ?? 0)) return undefined
    throw error
  }
}

/** Docker puts eight bytes before each piece of a log without a terminal: stream, three zeros, length. */
export function withoutHeaders(raw: Buffer): Buffer {
  const pieces: Buffer[] = []
  let at = 0
  while (at + 8 <= raw.length) {
    const size = raw.readUInt32BE(at + 4)
    pieces.push(raw.subarray(at + 8, at + 8 + size))
    at += 8 + size
  }
  return Buffer.concat(pieces)
}

/** (D3) */
function explain(error: unknown, where: string): Error {
  if (error instanceof ContainerError) return error
  const { code, statusCode, reason } = error as { code?: string; statusCode?: number; reason?: string }
  if (code === 'ENOENT' || code === 'ECONNREFUSED')
    return new ContainerError(
      `Docker does not answer at ${where} on this gateway’s machine: it is not installed, or not running. Everything else of HQ works without it; to see containers here, install Docker and start it.`,
      { cause: error },
    )
  if (code === 'EACCES')
    return new ContainerError(
      `This gateway’s user may not speak to Docker (${where}). Add the user to the group “docker”, or set DOCKER_HOST to a Docker of its own; then restart the gateway.`,
      { cause: error },
    )
  if (error instanceof Error && (error.name === 'TimeoutError' || error.name === 'AbortError'))
    return new ContainerError(
      'Docker did not answer within a minute. Look on the gateway’s machine what it is busy with.',
      {
        cause: error,
      },
    )
  const said = reason ?? (error instanceof Error ? error.message : String(error))
  return new ContainerError(`Docker refused${statusCode ? ` (${statusCode})` : ''}: ${said}`, { cause: error })
}
