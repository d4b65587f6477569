/** The parts of a real gateway, in the order of their start: agents can be reached before one is woken. */
import { approvalsOf } from './approvals/approvals.ts'
import type { Parts } from './daemon.ts'
import { createDispatcher } from './dispatcher/dispatcher.ts'
import { gatewayActions } from './local-api/gateway-actions.ts'
import { createLocalApi } from './local-api/server.ts'
import { createRuntimes, type Runtimes } from './runtime/registry.ts'
import { createOwnSecrets } from './secrets/secrets.ts'

export const parts: Parts<Runtimes> = {
  createRuntimes: (context) => createRuntimes(context),
  createServices: (context, runtimes) => {
    const actions = gatewayActions(context)
    return [
      { name: 'secrets', service: createOwnSecrets(context) },
      { name: 'approvals', service: approvalsOf(context) },
      { name: 'local-api', service: createLocalApi(context, { actions }) },
      { name: 'dispatcher', service: createDispatcher(context, { runtimes, actions }) },
    ]
  },
}
