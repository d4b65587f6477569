/** New ids and tokens, at the edge where randomness is allowed. */
import { createHash, randomBytes } from 'node:crypto'
import { uuidV7 } from '@hq/shared/domain/ids.ts'

/** UUID v7: sorts by time. */
export const newId = (): string => uuidV7(Date.now(), randomBytes(10))

/** 256 random bits, to be shown once. */
export const newToken = (): string => randomBytes(32).toString('base64url')

/** What is kept of a token. The token is random, so a plain hash is enough. */
export const hashToken = (token: string): string => createHash('sha256').update(token).digest('hex')
