/**
 * The local API: what an agent outside this process (the `hq` command, later OpenClaw) may do, over HTTP on the loopback.
 *
 *   GET  /v1/health                    no token
 *   GET  /v1/status                    who I am, my gate, my run
 *   GET  /v1/my-tasks
 *   GET  /v1/tasks/search?q=&status=&mine=&limit=
 *   GET  /v1/tasks/:id
 *   POST /v1/tasks/:id/claim
 *   POST /v1/tasks/:id/comments        {body}
 *   POST /v1/tasks/:id/deliverables    {label, text | file | url}
 *   POST /v1/tasks/:id/complete        {summary?}
 *   …    /v1/sync/…                     what waits to be sent (sync-routes.ts); also with the operator's token
 *   GET  /v1/openclaw/…                 what OpenClaw remembers (openclaw-routes.ts); with the operator's token only
 *   …    /healthz, /branches/…          agents' files (../files-api/files-api.ts); with the operator's token only
 *
 *  H1 Every call but `health` needs an agent's token (`Authorization: Bearer`); what it may do is decided in `actions.ts` and `sync-routes.ts` alone.
 *  H2 A page in a browser gets nothing: a foreign `Host` or any `Origin` is refused (DNS rebinding, CSRF), and there is no CORS.
 *  H3 Errors are `{code, message}`; a refusal is 4xx with the code of `actions.ts`. Nothing of a request is logged but method, path and status.
 */
import { ENUMS } from '@hq/shared/schema/enums.ts'
import type { Replica } from '@hq/shared/sync/contract.ts'
import { type Context, Hono } from 'hono'
import { bodyLimit } from 'hono/body-limit'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { z } from 'zod'
import type { Actions, Caller, RefusalCode, Result } from './actions.ts'
import { type AskOpenClaw, openClawSessions, openClawTranscript } from './openclaw-routes.ts'
import type { OperatorToken } from './operator-token.ts'
import { outboxQuery, retryBody, type SyncCaller, syncActions } from './sync-routes.ts'
import type { TokenAgent, Tokens } from './tokens.ts'

export interface AppParts {
  readonly actions: Actions
  readonly replica: Replica
  readonly tokens: Pick<Tokens, 'agentOf'>
  readonly operator: Pick<OperatorToken, 'is'>
  /** Undefined: this gateway has no OpenClaw. */
  readonly openclaw?: AskOpenClaw | undefined
  /** Undefined: this server has no agents' files to show. */
  readonly files?: Hono | undefined
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly gatewaySlug: string
  readonly onError: (error: unknown) => void
}

const STATUS: Record<RefusalCode, ContentfulStatusCode> = {
  not_found: 404,
  not_yours: 403,
  wrong_state: 409,
  awaits_review: 409,
  blocked: 409,
  invalid: 400,
  too_large: 413,
  stopped: 409,
}

export const MAX_BODY = 2 * 1024 * 1024

const commentBody = z.object({ body: z.string() })
const deliverableBody = z.object({
  label: z.string(),
  text: z.string().optional(),
  file: z.string().optional(),
  url: z.string().optional(),
})
const completeBody = z.object({ summary: z.string().optional() })
const searchQuery = z.object({
  q: z.string().max(500).default(''),
  status: z.enum(ENUMS.task_status).optional(),
  mine: z.enum(['true', 'false']).optional(),
  limit: z.coerce.number().int().min(1).max(50).optional(),
})

interface Env {
  Variables: { caller: Caller; syncCaller: SyncCaller }
}

export function createApp({
  actions,
  replica,
  tokens,
  operator,
  openclaw,
  files,
  now,
  gatewaySlug,
  onError,
}: AppParts): Hono<Env> {
  const app = new Hono<Env>()
  const sync = syncActions({ replica, gatewaySlug, now })

  app.use(async (context, next) => {
    const host = (context.req.header('host') ?? '').replace(/:\d+$/, '')
    if (host !== '127.0.0.1' && host !== 'localhost' && host !== '[::1]')
      return fail(context, 403, 'forbidden', 'This address serves agents of this machine only.')
    if (context.req.header('origin') !== undefined)
      return fail(context, 403, 'forbidden', 'This address does not serve web pages.')
    return next()
  })
  app.use(
    bodyLimit({
      maxSize: MAX_BODY,
      onError: (context) => fail(context, 413, 'too_large', `A request may have ${MAX_BODY} bytes.`),
    }),
  )
  if (files) app.route('/', files)
  app.get('/v1/health', (context) => context.json({ status: 'active', service: 'hq-agent-api', gateway: gatewaySlug }))

  app.use('/v1/*', async (context, next) => {
    const token = /^Bearer ([\w-]{10,200})$/.exec(context.req.header('authorization') ?? '')?.[1]
    const agent = token === undefined ? undefined : tokens.agentOf(token)
    if (agent) {
      context.set('syncCaller', { kind: 'agent', agent })
      context.set('caller', await callerFor(replica, agent))
      return next()
    }
    if (token === undefined || !operator.is(token))
      return fail(context, 401, 'unauthenticated', 'A valid token of an agent is needed.')
    if (!/^\/v1\/(?:sync|openclaw)\//.test(context.req.path))
      return fail(
        context,
        403,
        'forbidden',
        'This is for agents; the operator’s token is for “hq sync” and “hq openclaw”.',
      )
    context.set('syncCaller', { kind: 'operator' })
    return next()
  })

  app.get('/v1/openclaw/*', async (context, next) => {
    if (context.var.syncCaller.kind !== 'operator')
      return fail(context, 403, 'forbidden', 'This is for the operator of the gateway.')
    return next()
  })
  const ask: AskOpenClaw = openclaw ?? (() => Promise.resolve(undefined))
  app.get('/v1/openclaw/sessions', async (context) =>
    answer(context, await openClawSessions(ask, context.req.query('agent'))),
  )
  app.get('/v1/openclaw/transcript', async (context) =>
    answer(context, await openClawTranscript(ask, context.req.query('session') ?? '')),
  )

  app.get('/v1/sync/status', async (context) => context.json(await sync.status(context.var.syncCaller)))
  app.get('/v1/sync/outbox', async (context) => {
    const query = outboxQuery.safeParse(context.req.query())
    return query.success
      ? context.json(await sync.outbox(context.var.syncCaller, query.data.limit))
      : invalid(context, query.error)
  })
  app.get('/v1/sync/export', async (context) => context.json(await sync.export(context.var.syncCaller)))
  app.post('/v1/sync/:seq{[0-9]{1,15}}/retry', async (context) => {
    const body = retryBody.safeParse((await jsonOf(context)) ?? {})
    return body.success
      ? answer(context, await sync.retry(context.var.syncCaller, Number(context.req.param('seq')), body.data.set))
      : invalid(context, body.error)
  })
  app.post('/v1/sync/:seq{[0-9]{1,15}}/discard', async (context) =>
    answer(context, await sync.discard(context.var.syncCaller, Number(context.req.param('seq')))),
  )

  app.get('/v1/status', async (context) => {
    const { agent, runId } = context.var.caller
    const [row] = await replica.query(
      'select status, status_reason, gate, gate_detail, gate_until, model, runtime from agents where id = $1',
      [agent.id],
    )
    const { connection, pending, rejected } = replica.status()
    return context.json({
      agent,
      gateway: gatewaySlug,
      run_id: runId ?? null,
      ...row,
      sync: { connection, pending, rejected },
    })
  })
  app.get('/v1/my-tasks', async (context) => context.json({ tasks: await actions.myTasks(context.var.caller) }))
  app.get('/v1/tasks/search', async (context) => {
    const query = searchQuery.safeParse(context.req.query())
    if (!query.success) return invalid(context, query.error)
    const { q, mine, ...rest } = query.data
    return context.json({
      tasks: await actions.searchTasks(context.var.caller, { text: q, mine: mine === 'true', ...rest }),
    })
  })
  app.get('/v1/tasks/:id', async (context) =>
    answer(context, await actions.showTask(context.var.caller, context.req.param('id'))),
  )
  app.post('/v1/tasks/:id/claim', async (context) =>
    answer(context, await actions.claim(context.var.caller, context.req.param('id'))),
  )
  app.post('/v1/tasks/:id/comments', async (context) => {
    const body = commentBody.safeParse(await jsonOf(context))
    return body.success
      ? answer(context, await actions.comment(context.var.caller, context.req.param('id'), body.data.body))
      : invalid(context, body.error)
  })
  app.post('/v1/tasks/:id/deliverables', async (context) => {
    const body = deliverableBody.safeParse(await jsonOf(context))
    return body.success
      ? answer(context, await actions.submitDeliverable(context.var.caller, context.req.param('id'), body.data))
      : invalid(context, body.error)
  })
  app.post('/v1/tasks/:id/complete', async (context) => {
    const body = completeBody.safeParse((await jsonOf(context)) ?? {})
    return body.success
      ? answer(context, await actions.complete(context.var.caller, context.req.param('id'), body.data.summary))
      : invalid(context, body.error)
  })

  app.notFound((context) =>
    fail(context, 404, 'not_found', `There is no ${context.req.method} ${context.req.path} here.`),
  )
  app.onError((error, context) => {
    onError(error)
    return fail(context, 500, 'internal', 'The gateway failed to do this; its log says why.')
  })
  return app
}

/** The run on whose behalf the call comes: the agent's live one. */
async function callerFor(replica: Replica, agent: TokenAgent): Promise<Caller> {
  const [run] = await replica.query<{ id: string; inbox_item_id: string | null }>(
    `select id, inbox_item_id from agent_runs where agent_id = $1 and status = 'running' order by started_at desc, id desc limit 1`,
    [agent.id],
  )
  return { agent, runId: run?.id, itemId: run?.inbox_item_id ?? undefined }
}

/** The JSON body; undefined when there is none or it is not JSON (the schema then says what is missing). */
async function jsonOf(context: Context): Promise<unknown> {
  const text = await context.req.text()
  if (text === '') return undefined
  try {
    return JSON.parse(text)
  } catch {
    return null // not JSON: refused by the schema, with its sentence
  }
}

const fail = (context: Context, status: ContentfulStatusCode, code: string, message: string): Response =>
  context.json({ code, message }, status)

const answer = (context: Context, result: Result<object>): Response =>
  result.ok ? context.json(result.value) : fail(context, STATUS[result.code], result.code, result.message)

const invalid = (context: Context, error: z.ZodError): Response =>
  fail(
    context,
    400,
    'invalid',
    error.issues.map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`).join('; '),
  )
