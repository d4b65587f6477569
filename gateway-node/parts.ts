/** The parts of a real gateway, in the order of their start: agents can be reached before one is woken. */

import { approvalsOf } from './approvals/approvals.ts'
import { createBackups } from './backup/service.ts'
import type { Parts } from './daemon.ts'
import { createDispatcher } from './dispatcher/dispatcher.ts'
import { gatewayActions } from './local-api/gateway-actions.ts'
import { createLocalApi } from './local-api/server.ts'
import { modelsOf } from './models/models.ts'
import { createMoving } from './moving/service.ts'
import { createOpenClaw } from './runtime/openclaw/openclaw.ts'
import { createRuntimes, type Runtimes } from './runtime/registry.ts'
import { describedTools } from './runtime/tools.ts'
import { createOwnSecrets } from './secrets/secrets.ts'
import type { GatewayContext, Service } from './service.ts'
import { createRemoteMirror } from './workspaces/remote.ts'

/** What tests set; nothing: as it is for people. */
export interface PartsOptions {
  /** ms between the words of the demo model. */
  readonly demoPaceMs?: number
  /** How long a dead process keeps its work. */
  readonly leaseMs?: number
  readonly more?: (context: GatewayContext) => readonly { readonly name: string; readonly service: Service }[]
}

export const createParts = ({ demoPaceMs, leaseMs, more }: PartsOptions = {}): Parts<Runtimes> => ({
  createRuntimes: (context) => {
    const { resolve: model, check } = modelsOf(context)
    const openclaw = createOpenClaw(context, { model, tools: describedTools(context.env) })
    return createRuntimes(context, { openclaw, model, check, ...(demoPaceMs === undefined ? {} : { demoPaceMs }) })
  },
  createServices: (context, runtimes) => {
    const actions = gatewayActions(context)
    const remote = createRemoteMirror(context)
    return [
      // First, so that it stops last: a backup at the end has all that the others have written.
      { name: 'backups', service: createBackups(context) },
      { name: 'secrets', service: createOwnSecrets(context) },
      { name: 'models', service: modelsOf(context) },
      // Before whatever asks: what an earlier process left open is withdrawn.
      { name: 'approvals', service: approvalsOf(context) },
      { name: 'local-api', service: createLocalApi(context, { actions, openclaw: runtimes.openclaw?.ask }) },
      ...(runtimes.openclaw ? [{ name: 'openclaw', service: runtimes.openclaw }] : []),
      {
        name: 'dispatcher',
        service: createDispatcher(context, { runtimes, actions, ...(leaseMs === undefined ? {} : { leaseMs }) }),
      },
      { name: 'moving', service: createMoving(context) },
      ...(remote ? [{ name: 'git-remote', service: remote }] : []),
      ...(more?.(context) ?? []),
    ]
  },
})

export const parts = createParts()
