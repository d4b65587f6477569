/**
 * `run_shell`: a command of an admin's, run by this gateway's user. Payload: `{command, timeout_s?}`. Result: `{exit_code}`.
 *
 *  S1 Only where the machine's owner has set `HQ_RUN_SHELL=on` in the gateway's environment; the server lets only admins ask.
 *  S2 It inherits nothing but PATH, LANG and a HOME: a folder below the gateway's. No secret, token or address of a socket is in its environment.
 *  S3 It ends: after its time, by a cancel, with a stop of the gateway; with it whatever is in its process group.
 *  S4 It is never run a second time by itself: nobody knows what half of it did. After a crash it says so.
 *  S5 What it prints comes while it runs, in bounded pieces (`output.ts`).
 */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { runStreaming } from '../../process-group.ts'
import { isOn } from '../../switches.ts'
import { ActionError, defineAction } from '../action.ts'

const MAX_S = 3_600

export const runShell = defineAction({
  name: 'run_shell',
  agent: 'none',
  payload: z.object({ command: z.string().min(1).max(16_000), timeout_s: z.int().min(1).max(MAX_S).default(300) }),
  steps: [{ key: 'run', label: 'Run' }],
  run: async ({ context, command: row, signal, step, output }, { command, timeout_s: seconds }) => {
    const { env, home } = context
    if (!isOn(env, 'HQ_RUN_SHELL'))
      throw new ActionError(
        'This gateway runs no shell commands. Who owns its machine can allow it: set HQ_RUN_SHELL=on in the gateway’s environment and restart it.',
      )
    if (row.lease_token > 1)
      throw new ActionError(
        'The gateway ended while this command ran, so how far it came is not known. It is not run again by itself: look, then send it anew.',
      )
    const cwd = join(home, 'shell')
    await mkdir(cwd, { recursive: true, mode: 0o700 })
    step('run')
    const ended = await runStreaming(command, {
      cwd,
      env: { PATH: env['PATH'] ?? '/usr/local/bin:/usr/bin:/bin', HOME: cwd, LANG: 'C.UTF-8' },
      signal,
      timeoutMs: seconds * 1000,
      onText: output,
    })
    signal.throwIfAborted()
    if (ended.why === 'timeout') throw new ActionError(`Ended after ${seconds} seconds, which was its time.`)
    if (ended.error !== undefined) throw new ActionError(`It could not be started: ${ended.error}`)
    if (ended.code !== 0)
      throw new ActionError(
        ended.signal === null ? `It ended with exit code ${ended.code}.` : `It was ended by ${ended.signal}.`,
      )
    return { result: { exit_code: 0 } }
  },
})
