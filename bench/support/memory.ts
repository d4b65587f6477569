/** Memory of another process, as the kernel sees it. */
import { readFile } from 'node:fs/promises'

/** Resident memory in MB. */
export async function residentMb(pid: number | undefined): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? Number.NaN) / 1024
}

/** The process that answers at `url`: what is measured is never this one by mistake. */
export async function serverPid(url: string): Promise<number> {
  const health = (await (await fetch(`${url}/v1/health`)).json()) as { readonly pid: number }
  if (health.pid === process.pid)
    throw new Error('The server runs in this process; its memory cannot be told from ours.')
  return health.pid
}
