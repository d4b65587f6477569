/** Backups at the server, over HTTP. Every error is a `BackupError` or `ServerAway` with a sentence for people; none names a token. */

import { createHash } from 'node:crypto'
import { createWriteStream, openAsBlob } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { BackupError } from '@hq/shared/backup/sealed-file.ts'
import { errorBodySchema } from '@hq/shared/sync/protocol.ts'
import { z } from 'zod'

/** The server was not reached, or was busy: later it may do. */
export class ServerAway extends Error {
  override name = 'ServerAway'
}

export interface StoredBackup {
  readonly gateway_id: string
  readonly sha256: string
  readonly size: number
  readonly at: string
}

export interface Caller {
  readonly url: string
  /** A gateway's bearer, or a restore token (recovery-key.ts). */
  readonly token: string
  readonly signal: AbortSignal
}

const ROOT = '/v1/blobs/gateway-backups'
const listSchema = z.object({
  backups: z.array(
    z.object({ gateway_id: z.uuid(), sha256: z.string().regex(/^[0-9a-f]{64}$/), size: z.number(), at: z.string() }),
  ),
})

export async function upload(
  caller: Caller,
  path: string,
  { sha256, restoreHash }: { readonly sha256: string; readonly restoreHash: string },
): Promise<void> {
  await ask(caller, 'PUT', `${ROOT}/${sha256}`, {
    body: await openAsBlob(path, { type: 'application/octet-stream' }),
    headers: { 'x-hq-restore-hash': restoreHash },
  })
}

export async function listStored(caller: Caller): Promise<readonly StoredBackup[]> {
  const answer = listSchema.safeParse(await (await ask(caller, 'GET', ROOT)).json())
  if (answer.success) return answer.data.backups
  throw new BackupError('refused', `What answers at ${caller.url} is not an HQ server of this version.`)
}

export async function download(caller: Caller, { sha256 }: Pick<StoredBackup, 'sha256'>, path: string): Promise<void> {
  const { body } = await ask(caller, 'GET', `${ROOT}/${sha256}`)
  const hash = createHash('sha256')
  try {
    await pipeline(
      Readable.fromWeb(body as Parameters<typeof Readable.fromWeb>[0]),
      async function* (source: AsyncIterable<Buffer>) {
        for await (const chunk of source) {
          hash.update(chunk)
          yield chunk
        }
      },
      createWriteStream(path, { mode: 0o600, flush: true }),
    )
  } catch (error) {
    caller.signal.throwIfAborted()
    throw new ServerAway('The backup could not be fetched: the connection ended before it was whole. Try again.', {
      cause: error,
    })
  }
  if (hash.digest('hex') !== sha256)
    throw new BackupError('damaged', 'The backup was changed on its way or on the server’s disk. Nothing was restored.')
}

/** Also when it is not there any more. */
export async function removeStored(caller: Caller, sha256: string): Promise<void> {
  await ask(caller, 'DELETE', `${ROOT}/${sha256}`, {}, [404])
}

const takeoverSchema = z.object({ gateway_id: z.uuid(), slug: z.string(), taken: z.array(z.string()) })

export async function takeOver(
  caller: Caller,
  body: { readonly bearer_hash: string; readonly mutations: readonly string[] },
): Promise<z.infer<typeof takeoverSchema>> {
  const response = await ask(caller, 'POST', '/v1/gateways/takeover', {
    body: JSON.stringify(body),
    headers: { 'content-type': 'application/json' },
  })
  return takeoverSchema.parse(await response.json())
}

async function ask(
  { url, token, signal }: Caller,
  method: string,
  path: string,
  init: { readonly body?: Blob | string; readonly headers?: Record<string, string> } = {},
  alsoGood: readonly number[] = [],
): Promise<Response> {
  let response: Response
  try {
    response = await fetch(url + path, {
      method,
      ...(init.body === undefined ? {} : { body: init.body }),
      headers: { ...init.headers, authorization: `Bearer ${token}` },
      redirect: 'error',
      signal,
    })
  } catch (error) {
    signal.throwIfAborted()
    throw new ServerAway(`The server at ${url} can’t be reached. Try again when it is there.`, { cause: error })
  }
  if (response.ok || alsoGood.includes(response.status)) return response
  const said = errorBodySchema.safeParse(await response.json().catch(() => undefined))
  const words = said.data?.message ?? `status ${response.status}`
  if (response.status >= 500 || response.status === 429)
    throw new ServerAway(`The server at ${url} could not do it now: ${words}`)
  throw new BackupError('refused', `The server at ${url} refused: ${words}`)
}
