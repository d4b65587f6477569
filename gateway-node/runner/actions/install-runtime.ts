/**
 * `install_runtime`: installs a runtime on this gateway's machine. Payload: `{runtime: 'openclaw'}`. Result: `{runtime, version}`.
 * A cancel or a crash leaves none or the old one; sending it again is safe.
 */
import { z } from 'zod'
import { ActionError, defineAction } from '../action.ts'

export const installRuntime = defineAction({
  name: 'install_runtime',
  agent: 'none',
  payload: z.looseObject({ runtime: z.string().default('openclaw') }),
  steps: [
    { key: 'install', label: 'Download and install' },
    { key: 'check', label: 'Check the version' },
  ],
  run: async ({ runtimes, signal, step, output }, { runtime }) => {
    const managed = runtimes.managed?.(runtime)
    if (!managed)
      throw new ActionError(
        `“${runtime}” is nothing that this gateway installs. It can install openclaw; builtin is always there.`,
      )
    step('install', `${runtime} ${managed.state().version}, some minutes`)
    await managed
      .install((text) => output(text, 'progress'), signal)
      .catch((error: unknown) => {
        if (signal.aborted) throw error
        throw new ActionError(error instanceof Error ? error.message : String(error), { cause: error })
      })
    step('check')
    const { version, installed } = managed.state()
    if (!installed) throw new ActionError(`${runtime} is not there after its installation. Send the command again.`)
    output(`${runtime} ${version} is installed.\n`)
    return { result: { runtime, version } }
  },
})
