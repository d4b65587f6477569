/**
 * What OpenClaw itself remembers, for the gateway's operator (`hq openclaw …`):
 *
 *   GET /v1/openclaw/sessions?agent=<slug>      newest first: {sessions: [{key, agent, task, updated_at}]}
 *   GET /v1/openclaw/transcript?session=<key>   {messages: [{role, text, at}]}
 *
 *  W1 It is asked only while it runs; asking never starts it. Only sessions of HQ's own runs are shown.
 *  W2 At most `MOST` of each; a long text is cut and says so.
 */
import { cut } from '@hq/shared/domain/runs.ts'
import { z } from 'zod'
import type { Result } from './actions.ts'

/** Undefined: it doesn't run. */
export type AskOpenClaw = (method: string, params: object) => Promise<unknown>

const MOST = 200
const TEXT_CHARS = 8_000

const listing = z.looseObject({
  sessions: z.array(z.looseObject({ key: z.string(), updatedAt: z.number().nullish() })).default([]),
})
const part = z.looseObject({ type: z.string(), text: z.string().optional(), name: z.string().optional() })
const history = z.looseObject({
  messages: z
    .array(
      z.looseObject({
        role: z.string(),
        content: z.union([z.string(), z.array(part)]).optional(),
        timestamp: z.number().nullish(),
      }),
    )
    .default([]),
})

export interface OpenClawSession {
  readonly key: string
  readonly agent: string
  /** Id of the task that it is about, or null. */
  readonly task: string | null
  readonly updated_at: string | null
}

export interface OpenClawMessage {
  readonly role: string
  readonly text: string
  readonly at: string | null
}

/** `agent:<slug>:task-<id>` */
const KEY = /^agent:([a-z0-9-]+):(?:task-([0-9a-f-]{36})|item-[0-9a-f-]{36})$/

const AWAY = {
  ok: false,
  code: 'wrong_state',
  message:
    'OpenClaw does not run just now, so it can’t be asked. It starts with the next run of an agent that uses it.',
} as const

const isoOf = (ms: number | null | undefined): string | null => (ms == null ? null : new Date(ms).toISOString())

export async function openClawSessions(
  ask: AskOpenClaw,
  agent: string | undefined,
): Promise<Result<{ readonly sessions: readonly OpenClawSession[] }>> {
  const answer = await ask('sessions.list', {})
  if (answer === undefined) return AWAY
  const sessions = listing
    .parse(answer)
    .sessions.flatMap(({ key, updatedAt }) => {
      const [, slug, task] = KEY.exec(key) ?? []
      return slug === undefined || (agent !== undefined && agent !== slug)
        ? []
        : [{ key, agent: slug, task: task ?? null, updated_at: isoOf(updatedAt) }]
    })
    .sort((a, b) => (b.updated_at ?? '').localeCompare(a.updated_at ?? ''))
  return { ok: true, value: { sessions: sessions.slice(0, MOST) } }
}

export async function openClawTranscript(
  ask: AskOpenClaw,
  session: string,
): Promise<Result<{ readonly messages: readonly OpenClawMessage[] }>> {
  if (!KEY.test(session))
    return {
      ok: false,
      code: 'invalid',
      message: 'That is not the key of a session; “hq openclaw sessions” shows them.',
    }
  const answer = await ask('chat.history', { sessionKey: session, limit: MOST })
  if (answer === undefined) return AWAY
  const messages = history.parse(answer).messages.map(({ role, content, timestamp }) => {
    const text =
      typeof content === 'string'
        ? content
        : (content ?? [])
            .map(({ type, text: words, name }) => words ?? `(${[type, name].filter(Boolean).join(' ')})`)
            .join('\n')
    const short = cut(text, TEXT_CHARS)
    return { role, text: short.truncated ? `${short.text}…` : short.text, at: isoOf(timestamp) }
  })
  return { ok: true, value: { messages: messages.slice(-MOST) } }
}
