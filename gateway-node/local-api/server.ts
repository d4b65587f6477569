/**
 * Serves the local API on a free port of the loopback, and tells each agent of this gateway where it is: `.hq-agent.json` in its worktree
 * (address and the path of its token, never the token; git never commits that file).
 *
 *  S1 Agents that are set up, renamed or removed while it runs get or lose their connection at once.
 *  S2 After `stop` no connection file and no token of ours remains.
 */
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ServerType, serve } from '@hono/node-server'
import { createFilesApi } from '../files-api/files-api.ts'
import type { GatewayContext, Service } from '../service.ts'
import type { Actions } from './actions.ts'
import { createApp } from './app.ts'
import { gatewayActions } from './gateway-actions.ts'
import type { AskOpenClaw } from './openclaw-routes.ts'
import { createOperatorToken } from './operator-token.ts'
import { createTokens, type TokenAgent } from './tokens.ts'

export const CONNECTION_FILE = '.hq-agent.json'

export interface LocalApi extends Service {
  /** `http://127.0.0.1:<port>` while it serves. */
  url(): string | undefined
  /** What a process that works for this agent gets as its environment. */
  environment(slug: string): Readonly<Record<string, string>>
}

export function createLocalApi(
  context: GatewayContext,
  options: { readonly actions?: Actions; readonly port?: number; readonly openclaw?: AskOpenClaw | undefined } = {},
): LocalApi {
  const { replica, gatewayId, workspaces, log } = context
  const tokens = createTokens(context.home)
  const operator = createOperatorToken(context.home)
  let server: ServerType | undefined
  let address: string | undefined
  let unsubscribe: (() => void) | undefined
  let told = new Map<string, string>()
  let work: Promise<void> = Promise.resolve()

  /** One at a time; a failure is logged, and the next change of agents tries again. */
  const refresh = (): Promise<void> => {
    work = work
      .then(tell)
      .catch((error: unknown) =>
        log('warn', 'agents could not be told where the local API is', { error: String(error) }),
      )
    return work
  }

  async function tell(): Promise<void> {
    if (!address) return
    const agents = await replica.query<TokenAgent>(
      `select id, slug, name from agents where gateway_id = $1 and deleted_at is null and status <> 'removing' order by slug`,
      [gatewayId],
    )
    await tokens.assign(agents)
    const now = new Map<string, string>()
    for (const { slug } of agents) {
      if (!(await workspaces.exists(slug))) continue
      const file = join(workspaces.folder(slug), CONNECTION_FILE)
      const text = `${JSON.stringify({ url: address, token_file: tokens.file(slug) }, null, 2)}\n`
      if (told.get(file) !== text) {
        await writeFile(`${file}.new`, text, { mode: 0o600 })
        await rename(`${file}.new`, file)
      }
      now.set(file, text)
    }
    for (const file of told.keys()) if (!now.has(file)) await rm(file, { force: true })
    told = now
  }

  return {
    url: () => address,
    environment: (slug) => ({ HQ_AGENT_URL: address ?? '', HQ_AGENT_TOKEN_FILE: tokens.file(slug) }),
    async start() {
      if (server) return
      const app = createApp({
        actions: options.actions ?? gatewayActions(context),
        replica,
        tokens,
        operator,
        openclaw: options.openclaw,
        files: createFilesApi({ workspaces, isOperator: operator.is, published: context.publishFiles }),
        now: context.now,
        gatewaySlug: context.slug,
        onError: (error) =>
          log('error', 'the local API failed', { error: error instanceof Error ? error.message : String(error) }),
      })
      address = await new Promise<string>((resolve, reject) => {
        server = serve({ fetch: app.fetch, hostname: '127.0.0.1', port: options.port ?? 0 }, ({ port }) =>
          resolve(`http://127.0.0.1:${port}`),
        )
        server.on('error', reject)
      })
      await operator.create(address)
      unsubscribe = replica.onChange((changes) => {
        if (changes.has('agents')) void refresh()
      })
      await refresh()
    },
    async stop() {
      unsubscribe?.()
      const closing = server
      server = undefined
      if (closing) {
        await new Promise<void>((resolve) => {
          closing.close(() => resolve())
          if ('closeAllConnections' in closing) closing.closeAllConnections()
        })
      }
      await work
      address = undefined
      for (const file of told.keys()) await rm(file, { force: true })
      told = new Map()
      await tokens.clear()
      await operator.clear()
    },
  }
}
