/** For `crash.test.ts`: a gateway process over a real replica whose agent stops in the middle of its work, to be killed there. */
import { fileURLToPath } from 'node:url'
import { createRuntimes } from '../runtime/registry.ts'
import type { AgentRuntime } from '../runtime/runtime.ts'
import { createDispatcher, type Dispatcher } from './dispatcher.ts'
import { openRealGateway, type RealGateway } from './testing-real.ts'

/** Runs the demo model until `submit_deliverable` has answered, and then never goes on. */
export function stuckAfterSubmit(gateway: RealGateway, onStuck: () => void): Dispatcher {
  const demo = createRuntimes(gateway.context, { demoPaceMs: 0 }).get('builtin')
  if (!demo) throw new Error('no builtin runtime')
  const stuck: AgentRuntime = {
    name: 'builtin',
    run: (input, hooks, signal) => {
      let submitted = false
      return demo.run(
        input,
        {
          ...hooks,
          onEvent: (event) => {
            hooks.onEvent(event)
            if (event.kind === 'tool_result' && event.data.tool === 'submit_deliverable') submitted = true
          },
          beforeModelCall: async () => {
            await hooks.beforeModelCall()
            if (!submitted) return
            onStuck()
            await new Promise(() => undefined)
          },
        },
        signal,
      )
    },
  }
  return createDispatcher(gateway.context, {
    runtimes: createRuntimes(gateway.context, { runtimes: [stuck] }),
    leaseMs: 2_000,
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder = '', gatewayId = '', tenantId = ''] = process.argv.slice(2)
  const gateway = await openRealGateway(folder, gatewayId, tenantId)
  await stuckAfterSubmit(gateway, () => console.log('stuck')).start()
  setInterval(() => undefined, 1_000)
}
