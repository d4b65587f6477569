/**
 * The token of whoever may read the gateway's own folder: its operator. With it `hq sync` sees the writes of everybody on this gateway, and
 * `hq openclaw` what OpenClaw remembers.
 *
 *  O1 32 random bytes in `<home>/operator-token`, and where to call in `<home>/.hq-operator.json`, both readable by the owner only. New at each start,
 *     gone after the stop.
 *  O2 It is good for `/v1/sync/*`, `/v1/openclaw/*` and agents' files (`/branches/*`) alone: it is nobody's, so it can neither claim a task nor comment.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export const OPERATOR_FILE = '.hq-operator.json'

export interface OperatorToken {
  create(url: string): Promise<void>
  is(token: string): boolean
  clear(): Promise<void>
}

const digest = (token: string): Buffer => createHash('sha256').update(token).digest()

export function createOperatorToken(home: string): OperatorToken {
  const tokenFile = join(home, 'operator-token')
  const connectionFile = join(home, OPERATOR_FILE)
  let held: Buffer | undefined

  const put = async (file: string, text: string): Promise<void> => {
    await writeFile(`${file}.new`, text, { mode: 0o600 })
    await rename(`${file}.new`, file)
  }
  return {
    async create(url) {
      const token = `hqo_${randomBytes(32).toString('base64url')}`
      await put(tokenFile, token)
      await put(connectionFile, `${JSON.stringify({ url, token_file: tokenFile }, null, 2)}\n`)
      held = digest(token)
    },
    is: (token) => held !== undefined && timingSafeEqual(held, digest(token)),
    async clear() {
      held = undefined
      await rm(connectionFile, { force: true })
      await rm(tokenFile, { force: true })
    },
  }
}
