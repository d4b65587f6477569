/** Parcels at the server, over HTTP (sync-server/http/routes-parcels.ts). Every error is an `ActionError` with a sentence for people; none names a token. */
import { createHash } from 'node:crypto'
import { createWriteStream, openAsBlob } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { errorBodySchema } from '@hq/shared/sync/protocol.ts'
import { readCredentials } from '../registration.ts'
import { ActionError } from '../runner/action.ts'

export interface Parcels {
  send(path: string, sha256: string, toGatewayId: string): Promise<void>
  /** Whole and as it was sent, or nothing is at `path` that anybody may believe. */
  fetch(sha256: string, path: string): Promise<void>
  remove(sha256: string): Promise<void>
}

const PAUSE_MS = 2_000

/** Waits for a server that is away, until `signal` is aborted. `tell` says once what it waits for. */
export async function parcelsOf(home: string, signal: AbortSignal, tell: (text: string) => void): Promise<Parcels> {
  const credentials = await readCredentials(home)
  if (!credentials) throw new Error('The gateway’s folder has no credentials.json.')
  const { url, token } = credentials
  let said = false

  async function ask<T>(
    method: string,
    path: string,
    read: (response: Response) => Promise<T>,
    body?: () => Promise<Blob>,
  ): Promise<T> {
    for (;;) {
      signal.throwIfAborted()
      try {
        const content = await body?.()
        const response = await fetch(`${url}/v1/gateways/parcels/${path}`, {
          method,
          headers: { authorization: `Bearer ${token}` },
          redirect: 'error',
          signal,
          ...(content && { body: content }),
        })
        if (response.ok) return await read(response)
        const problem = errorBodySchema.safeParse(await response.json().catch(() => undefined))
        const words = problem.data?.message ?? `status ${response.status}`
        if (response.status < 500 && response.status !== 429 && response.status !== 401 && response.status !== 422)
          throw new ActionError(`The server refused: ${words}`)
      } catch (error) {
        signal.throwIfAborted()
        if (error instanceof ActionError) throw error
        // Anything else is a connection that did not come or did not last.
      }
      if (!said) tell('Waits for the server.\n')
      said = true
      await sleep(PAUSE_MS, undefined, { signal })
    }
  }

  return {
    send: (path, sha256, to) =>
      ask(
        'PUT',
        `${sha256}?for=${to}`,
        async (response) => void (await response.arrayBuffer()),
        () => openAsBlob(path, { type: 'application/octet-stream' }),
      ),
    fetch: (sha256, path) =>
      ask('GET', sha256, async ({ body }) => {
        const hash = createHash('sha256')
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
        if (hash.digest('hex') !== sha256) throw new Error('cut short or changed on the way')
      }),
    remove: (sha256) => ask('DELETE', sha256, async (response) => void (await response.arrayBuffer())),
  }
}
