/**
 * The files API: agents' files over HTTP, for tools on the gateway's own machine. Part of the local server, which sees to the loopback, `Host`, `Origin` and the size of
 * a request. `:b` is an agent's slug, or its branch (`acme%2Fwanda`).
 *
 *   GET    /healthz                                no token
 *   GET    /branches/:b/tree                       → {branch, commit, files: [{path, sha}]}
 *   GET    /branches/:b/files/*path                → {path, sha, content}
 *   POST   /branches/:b/files/*path   {content}       makes a new file      → 201 {path, sha}
 *   PUT    /branches/:b/files/*path   {content, sha}  changes the one that was read → {path, sha}
 *   DELETE /branches/:b/files/*path?sha=           → {path, commit}
 *
 *  FA1 Every call but `healthz` needs the operator's token; an agent's is refused, so no agent reads another's files here.
 *  FA2 A write names the blob it was made from; another content in the meantime is 409 with `{sha, content}` as they are. Each write is one commit, and is mirrored.
 *  FA3 Text only, inside the worktree only: 400 for a path that leads out, 415 for what is no text or larger than 1 MiB.
 */
import { type Context, Hono } from 'hono'
import type { ContentfulStatusCode } from 'hono/utils/http-status'
import { z } from 'zod'
import {
  type Author,
  WorkspaceConflict,
  WorkspaceError,
  type WorkspaceErrorCode,
  type Workspaces,
} from '../workspaces/contract.ts'
import { isNeverCommitted } from '../workspaces/repository.ts'

export interface FilesApiParts {
  readonly workspaces: Workspaces
  readonly isOperator: (token: string) => boolean
  /** Called after a write: mirrors the agent's files. */
  readonly published: (agentId: string, message: string) => Promise<void>
}

const OPERATOR: Author = { name: 'The gateway’s operator', email: 'operator@gateway.hq.local' }

const STATUS: Partial<Record<WorkspaceErrorCode, ContentfulStatusCode>> = {
  not_found: 404,
  slug_invalid: 404,
  path_refused: 400,
  not_text: 415,
  stale: 409,
}

const sha = z.string().regex(/^[0-9a-f]{40}$/, 'must be the sha that was read')
const newFile = z.object({ content: z.string() })
const changedFile = z.object({ content: z.string(), sha })

const FILE = '/branches/:branch/files/:path{.*}'

export function createFilesApi({ workspaces, isOperator, published }: FilesApiParts): Hono {
  const app = new Hono()
  app.get('/healthz', (context) => context.json({ status: 'ok', service: 'hq-files' }))

  app.use('/branches/*', async (context, next) => {
    const token = /^Bearer ([\w-]{10,200})$/.exec(context.req.header('authorization') ?? '')?.[1]
    if (token === undefined) return fail(context, 401, 'unauthenticated', 'The operator’s token is needed.')
    if (!isOperator(token)) return fail(context, 403, 'forbidden', 'This is for the operator of the gateway.')
    return next()
  })

  /** FA3; whatever a workspace refuses, told over HTTP. */
  async function told(context: Context, work: () => Promise<Response>): Promise<Response> {
    try {
      return await work()
    } catch (error) {
      if (error instanceof WorkspaceConflict)
        return context.json({ code: 'conflict', message: error.message, sha: error.sha, content: error.text }, 409)
      const status = error instanceof WorkspaceError ? STATUS[error.code] : undefined
      if (status === undefined || !(error instanceof WorkspaceError)) throw error
      return fail(context, status, error.code, error.message)
    }
  }

  const slugOf = (context: Context): string => context.req.param('branch')?.split('/').at(-1) ?? ''

  function pathOf(context: Context): string {
    const path = context.req.param('path') ?? ''
    if (isNeverCommitted(path))
      throw new WorkspaceError('path_refused', 'This path names something that HQ keeps there for itself.')
    return path
  }

  async function mirror(slug: string, message: string): Promise<void> {
    const agent = await workspaces.ownerOf(slug)
    if (agent !== null) await published(agent, message)
  }

  app.get('/branches/:branch/tree', (context) =>
    told(context, async () => {
      const slug = slugOf(context)
      const commit = await workspaces.head(slug)
      return context.json({ branch: context.req.param('branch'), commit, files: await workspaces.list(slug) })
    }),
  )
  app.get(FILE, (context) =>
    told(context, async () => {
      const path = pathOf(context)
      const { text, sha: blob } = await workspaces.readText(slugOf(context), path)
      return context.json({ path, sha: blob, content: text })
    }),
  )
  const write = (context: Context, status: 200 | 201, content: string, expectedSha: string | null, word: string) =>
    told(context, async () => {
      const [slug, path] = [slugOf(context), pathOf(context)]
      const message = `${word} ${path} by the files API`
      const blob = await workspaces.writeText(slug, path, content, { author: OPERATOR, message, expectedSha })
      await mirror(slug, message)
      return context.json({ path, sha: blob }, status)
    })
  app.post(FILE, async (context) => {
    const body = newFile.safeParse(await jsonOf(context))
    return body.success ? write(context, 201, body.data.content, null, 'Create') : invalid(context, body.error)
  })
  app.put(FILE, async (context) => {
    const body = changedFile.safeParse(await jsonOf(context))
    return body.success ? write(context, 200, body.data.content, body.data.sha, 'Edit') : invalid(context, body.error)
  })
  app.delete(FILE, async (context) => {
    const query = z.object({ sha }).safeParse(context.req.query())
    if (!query.success) return invalid(context, query.error)
    return told(context, async () => {
      const [slug, path] = [slugOf(context), pathOf(context)]
      // A workspace takes a deletion of what is gone for one that is done already; over HTTP there is nothing there.
      await workspaces.readText(slug, path)
      const message = `Delete ${path} by the files API`
      const commit = await workspaces.deleteFile(slug, path, { author: OPERATOR, message, expectedSha: query.data.sha })
      await mirror(slug, message)
      return context.json({ path, commit })
    })
  })
  return app
}

async function jsonOf(context: Context): Promise<unknown> {
  try {
    return await context.req.json()
  } catch {
    return null // not JSON: refused by the schema, with its sentence
  }
}

const fail = (context: Context, status: ContentfulStatusCode, code: string, message: string): Response =>
  context.json({ code, message }, status)

const invalid = (context: Context, error: z.ZodError): Response =>
  fail(
    context,
    400,
    'invalid',
    error.issues.map((issue) => `${issue.path.join('.') || 'body'}: ${issue.message}`).join('; '),
  )
