/**
 * `exec`: an agent runs a command in its own folder. Only where the gateway's owner has switched it on (`HQ_AGENT_EXEC=on`) and the agent's policy says so.
 *
 *  E1 The command begins in the agent's worktree or a folder below it, never behind a symbolic link.
 *  E2 It inherits nothing: it gets PATH, HOME (the worktree), LANG, and the agent's own secrets. What these are is in no argument and in no output.
 *  E3 It ends: after its time, when the run is stopped, and with it whatever it has started in its process group. What it leaves in the background is ended too.
 *     It also ends when the gateway is killed: work that is done again must not meet itself.
 *  E4 What it prints is bounded while it runs; beginning and end are kept, and how much is missing is said.
 *  E5 What it changed is committed as the agent.
 *
 * It is no jail: the command is a process of the gateway's user, and can read what that user can read. Hence both switches; containers are for more.
 */
import { z } from 'zod'
import { type Ended, type Options, runStreaming } from '../process-group.ts'
import { readEnvFile } from '../secrets/env-file.ts'
import { agentAuthor, type Workspaces } from '../workspaces/contract.ts'
import { resolveFolder } from './agent-files.ts'
import { type AgentTool, RunStopped, type ToolOutput } from './runtime.ts'

export const COMMAND_CHARS = 8_000
/** Characters of output that are kept, half from the beginning and half from the end. */
const OUTPUT_CHARS = 20_000
const DEFAULT_S = 60
const MAX_S = 600

const input = z.object({
  command: z.string().min(1).max(COMMAND_CHARS).describe('For /bin/sh'),
  folder: z.string().optional().describe('Folder of your workspace to begin in; leave it out for the workspace itself'),
  timeout_s: z.int().min(1).max(MAX_S).optional().describe(`Seconds until it is ended; ${DEFAULT_S} unless told`),
})

export interface ExecOptions {
  readonly home: string
  readonly workspaces: Pick<Workspaces, 'folder' | 'commit'>
  readonly agent: { readonly slug: string; readonly name: string }
  /** Of the run. */
  readonly signal: AbortSignal
  /** Where programs are found. */
  readonly path: string
  readonly graceMs?: number
}

export function execTool(options: ExecOptions): AgentTool<typeof input> {
  const { home, workspaces, agent, signal } = options
  return {
    name: 'exec',
    description:
      'Runs a command with /bin/sh in your workspace, without a terminal and without input. Your secrets are environment variables; what the command changes in your workspace is committed.',
    input,
    async run(value) {
      const { command, folder, timeout_s: seconds = DEFAULT_S } = input.parse(value)
      const root = workspaces.folder(agent.slug)
      const start = await resolveFolder(root, folder)
      if (!start.ok) return { ok: false, text: `Refused: ${start.message}` }
      const secrets = await readEnvFile(home, agent.slug)
      const env = { ...Object.fromEntries(secrets), PATH: options.path, HOME: root, LANG: 'C.UTF-8' }
      const ran = await run(command, {
        cwd: start.value,
        env,
        signal,
        timeoutMs: seconds * 1000,
        ...(options.graceMs !== undefined && { graceMs: options.graceMs }),
      })
      const committed = await commitOf(options)
      if (signal.aborted) throw new RunStopped('The run was stopped while a command ran.')
      return report(ran, seconds, [...secrets.values()], committed)
    },
  }
}

/** How a question about a command reads (for approvals). */
export function describeCommand(value: unknown, agent: { readonly slug: string }) {
  const parsed = input.safeParse(value)
  if (!parsed.success) return undefined
  const { command, folder = '.', timeout_s: seconds = DEFAULT_S } = parsed.data
  return {
    title: `Run “${command}” in the folder of ${agent.slug}`,
    detail: { command, folder, timeout_s: seconds },
  }
}

/** (E5) Also after a stop: what was changed is the agent's work. */
async function commitOf({ workspaces, agent }: ExecOptions): Promise<string | null> {
  try {
    const id = await workspaces.commit(agent.slug, 'run a command', agentAuthor(agent))
    return id === null ? null : 'What it changed in your workspace was committed.'
  } catch (error) {
    return `What it changed could not be committed: ${error instanceof Error ? error.message : String(error)}`
  }
}

function report(ran: Ran, seconds: number, secrets: readonly string[], committed: string | null): ToolOutput {
  const head =
    ran.why === 'timeout'
      ? `Ended after ${seconds} seconds.`
      : ran.error !== undefined
        ? `It could not be started: ${ran.error}`
        : ran.signal !== null
          ? `Ended by ${ran.signal}.`
          : `Exit code ${ran.code}.`
  const output = withoutSecrets(ran.output, secrets)
  const printed =
    output.trim() === ''
      ? 'It printed nothing.'
      : `<material>\n${output.replaceAll(/<(\/?)material/gi, '‹$1material')}\n</material>`
  return {
    ok: ran.why === 'itself' && ran.error === undefined && ran.code === 0,
    text: [head, printed, committed].filter((line) => line !== null).join('\n'),
  }
}

/** (E2) Also where the cut went through a secret. Values too short to be one are left: hiding them would make the text unreadable. */
function withoutSecrets({ head, missing, tail }: Printed, values: readonly string[]): string {
  // The longest first, so that a secret which is part of another leaves nothing of that one.
  const secrets = values.filter((each) => each.length >= 4).sort((a, b) => b.length - a.length)
  const hide = (text: string): string => secrets.reduce((rest, secret) => rest.replaceAll(secret, '[hidden]'), text)
  if (missing === 0) return hide(head + tail)
  let start = hide(head)
  let end = hide(tail)
  for (const secret of secrets) {
    for (let size = secret.length - 1; size > 0; size -= 1) {
      if (start.endsWith(secret.slice(0, size))) start = start.slice(0, -size)
      if (end.startsWith(secret.slice(-size))) end = end.slice(size)
    }
  }
  return `${start}\n… (${missing} characters are left out)\n${end}`
}

interface Printed {
  readonly head: string
  readonly missing: number
  readonly tail: string
}

interface Ran extends Ended {
  readonly output: Printed
}

/** (E3, E4) Never rejects. */
async function run(command: string, place: Omit<Options, 'onText'>): Promise<Ran> {
  const output = new Bounded(OUTPUT_CHARS)
  const ended = await runStreaming(command, { ...place, onText: (text) => output.add(text) })
  return { ...ended, output: output.printed() }
}

/** Keeps beginning and end of what is added (E4). */
class Bounded {
  private readonly half: number
  private head = ''
  private tail = ''
  private dropped = 0
  constructor(max: number) {
    this.half = Math.floor(max / 2)
  }
  add(text: string): void {
    const room = this.half - this.head.length
    this.head += text.slice(0, Math.max(0, room))
    this.tail += text.slice(Math.max(0, room))
    const over = this.tail.length - this.half
    // Not at every piece: cutting copies the text.
    if (over > this.half) {
      this.tail = this.tail.slice(over)
      this.dropped += over
    }
  }
  printed(): Printed {
    const over = Math.max(0, this.tail.length - this.half)
    return { head: this.head, missing: this.dropped + over, tail: this.tail.slice(over) }
  }
}
