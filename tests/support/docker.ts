/**
 * A Docker of one's own for tests: a daemon with its data in a temporary folder, without bridges or firewall rules (everything runs on the host's network),
 * and a base image made by debootstrap, so that no registry of images is needed.
 *
 *     const docker = await startDocker()
 *     if ('reason' in docker) …it cannot run here, and why
 *     else try { await docker.run(['build', …]) } finally { await docker.stop() }
 *
 *  1. The base is what the default `node:24-bookworm-slim` is, as far as our Dockerfile cares: a minimal Debian 12, Node (the one that runs this) and npm.
 *     What this machine needs to reach package registries (its certificates) is in the base, never in the project.
 *  2. Making it takes a minute; the archive is kept under the system's temporary folder, named by what went into it.
 */
import { execFile, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, readdir, readFile, realpath, rename, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { promisify } from 'node:util'
import { eventually } from './browser.ts'

const exec = promisify(execFile)

export interface Docker {
  /** Name of the base image; with `bare` there is none. */
  readonly base: string
  /** For `DOCKER_HOST`. */
  readonly host: string
  /** `docker …`; its output. Rejects, with what it said, when it fails. */
  run(args: readonly string[]): Promise<string>
  /** Ends the daemon (and with it every container) and deletes its data. */
  stop(): Promise<void>
}

const SUITE = 'bookworm'
const BASE = 'hq-test-base'
const CERTIFICATES = '/usr/local/share/ca-certificates'

/** `bare`: without the base image, so also without debootstrap, and at once. */
export async function startDocker({ bare = false } = {}): Promise<Docker | { readonly reason: string }> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return { reason: 'a Docker daemon of our own needs Linux and root' }
  const missing = ['dockerd', 'docker', ...(bare ? [] : ['debootstrap'])].filter((name) => !find(name))
  if (missing.length > 0) return { reason: `not installed: ${missing.join(', ')} (Debian: docker.io, debootstrap)` }

  const folder = await mkdtemp(join(tmpdir(), 'hq-docker-'))
  const host = `unix://${folder}/docker.sock`
  const daemon = spawn(
    'dockerd',
    [
      ...['--bridge=none', '--iptables=false', '--storage-driver', await storageDriver(folder), '--host', host],
      ...['--data-root', join(folder, 'data'), '--exec-root', join(folder, 'exec'), '--pidfile', join(folder, 'pid')],
    ],
    { stdio: ['ignore', 'pipe', 'pipe'] },
  )
  let said = ''
  for (const stream of [daemon.stdout, daemon.stderr])
    stream.on('data', (chunk: Buffer) => {
      said = (said + chunk.toString()).slice(-4_000)
    })
  const ended = new Promise<void>((done) => {
    daemon.once('exit', () => done())
    daemon.once('error', () => done())
  })
  const hasEnded = (): boolean => daemon.exitCode !== null || daemon.signalCode !== null || daemon.pid === undefined
  const run: Docker['run'] = async (args) => {
    // The classic builder: BuildKit is a plug-in that not every Docker has.
    const env = { ...process.env, DOCKER_HOST: host, DOCKER_BUILDKIT: '0' }
    try {
      return (await exec('docker', args, { env, maxBuffer: 64 * 1024 * 1024 })).stdout.trim()
    } catch (error) {
      const { stdout = '', stderr = '' } = error as { stdout?: string; stderr?: string }
      throw new Error(`docker ${args[0]} failed:\n${stdout.slice(-4_000)}\n${stderr.slice(-2_000)}`, { cause: error })
    }
  }
  const stop = async (): Promise<void> => {
    if (!hasEnded()) {
      const running = (await run(['ps', '-q']).catch(() => '')).split('\n').filter(Boolean)
      if (running.length > 0) await run(['kill', ...running]).catch(() => undefined)
      daemon.kill('SIGTERM')
      await ended
    }
    // The daemon leaves the host network's namespace mounted.
    const namespaces = join(folder, 'exec/netns')
    for (const name of await readdir(namespaces).catch(() => []))
      await exec('umount', [join(namespaces, name)]).catch(() => undefined)
    await rm(folder, { recursive: true, force: true, maxRetries: 5 })
  }
  try {
    await eventually(
      'the Docker daemon answers',
      async () => hasEnded() || (await run(['version', '--format', '{{.Server.Version}}'])),
      60_000,
    )
    if (hasEnded()) {
      await stop()
      return { reason: `the Docker daemon does not start here: ${said.trim().split('\n').slice(-2).join(' ')}` }
    }
    if (bare) return { base: '', host, run, stop }
    const archive = await baseArchive()
    await run(['import', '--change', 'ENV NODE_EXTRA_CA_CERTS=/etc/ssl/certs/ca-certificates.crt', archive, BASE])
    return { base: BASE, host, run, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** Overlays where this machine can have them in that folder; else whole copies, which work everywhere and take their time. */
async function storageDriver(folder: string): Promise<'overlay2' | 'vfs'> {
  const [lower, upper, work, merged] = ['lower', 'upper', 'work', 'merged'].map((name) => join(folder, 'probe', name))
  for (const path of [lower, upper, work, merged]) await mkdir(path ?? '', { recursive: true })
  const layers = `lowerdir=${lower},upperdir=${upper},workdir=${work}`
  try {
    await exec('mount', ['-t', 'overlay', 'overlay', '-o', layers, merged ?? ''])
    await exec('umount', [merged ?? ''])
    return 'overlay2'
  } catch {
    return 'vfs' // the answer to what was asked, not a failure
  }
}

/** The base as a tar file; made when there is none of this content yet (2). */
async function baseArchive(): Promise<string> {
  const node = await realpath(process.execPath)
  const npm = dirname(dirname(await realpath(find('npm') ?? 'npm')))
  const { name, version } = JSON.parse(await readFile(join(npm, 'package.json'), 'utf8')) as Record<string, string>
  if (name !== 'npm') throw new Error(`${npm} is not npm`)
  const certificates = existsSync(CERTIFICATES) ? await readdir(CERTIFICATES) : []
  const key = createHash('sha256').update([SUITE, process.version, process.arch, version].join(' '))
  for (const file of certificates) key.update(await readFile(join(CERTIFICATES, file)))
  const archive = join(tmpdir(), `hq-docker-base-${key.digest('hex').slice(0, 16)}.tar`)
  if (existsSync(archive)) return archive

  console.log('Making a base image with debootstrap (once on this machine, a minute or two)…')
  const work = await mkdtemp(join(tmpdir(), 'hq-docker-base-'))
  const root = join(work, 'root')
  try {
    await exec('debootstrap', ['--variant=minbase', '--include=ca-certificates', SUITE, root], {
      maxBuffer: 64 * 1024 * 1024,
    })
    for (const waste of ['usr/share/doc', 'usr/share/man', 'usr/share/locale', 'var/cache/apt', 'var/lib/apt/lists'])
      await rm(join(root, waste), { recursive: true, force: true })
    await cp(node, join(root, 'usr/local/bin/node'))
    await mkdir(join(root, 'usr/local/lib/node_modules'), { recursive: true })
    await cp(npm, join(root, 'usr/local/lib/node_modules/npm'), { recursive: true, verbatimSymlinks: true })
    await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(root, 'usr/local/bin/npm'))
    if (certificates.length > 0) {
      await cp(CERTIFICATES, join(root, CERTIFICATES), { recursive: true })
      await exec('chroot', [root, 'update-ca-certificates'])
    }
    await exec('tar', ['-C', root, '--one-file-system', '-cf', join(work, 'base.tar'), '.'])
    await rename(join(work, 'base.tar'), archive)
    return archive
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

/** Where a program is; our own packages' folder is left out, so that it is the machine's. */
function find(program: string): string | undefined {
  const folders = (process.env['PATH'] ?? '').split(delimiter).concat('/usr/sbin', '/sbin')
  return folders
    .filter((folder) => folder && !folder.includes('node_modules'))
    .map((folder) => join(folder, program))
    .find((path) => existsSync(path))
}
