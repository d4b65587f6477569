/** The actions of a gateway's agents: `actions.ts` with this gateway's replica and workspaces. */

import { checkPath } from '../runtime/agent-files.ts'
import type { GatewayContext } from '../service.ts'
import { agentAuthor } from '../workspaces/contract.ts'
import { type Actions, type ActionsContext, createActions } from './actions.ts'
import { deriveLocally } from './derive-locally.ts'

export function gatewayActions(context: GatewayContext): Actions {
  const { replica, now, newId, tenantId, workspaces } = context
  const file: ActionsContext['file'] = async (slug, path) => {
    const inside = checkPath(path)
    if (!inside.ok) return { ok: false, code: 'invalid', message: inside.message }
    if (!(await workspaces.exists(slug)))
      return { ok: false, code: 'not_found', message: 'This agent has no workspace, so a file cannot be submitted.' }
    await workspaces.commit(slug, `submit ${inside.value}`, agentAuthor({ name: slug, slug }))
    const there = (await workspaces.list(slug)).some((entry) => entry.path === inside.value)
    return there
      ? { ok: true, value: { path: inside.value } }
      : { ok: false, code: 'not_found', message: `There is no file “${inside.value}” in your workspace.` }
  }
  const derive: ActionsContext['derive'] = (tx, changes) =>
    deriveLocally(tx, changes, { tenantId, gatewayId: context.gatewayId })
  return createActions({ replica, now, newId, tenantId, file, derive })
}
