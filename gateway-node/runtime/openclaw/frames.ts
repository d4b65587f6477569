/**
 * The frames of OpenClaw's WebSocket protocol, version 4, as far as HQ reads them. What is not named here is let through unread: the other side grows.
 * Observed on 2026.9.6 (`docs/gateway/protocol` of that package, and runs against it).
 */
import { z } from 'zod'

export const PROTOCOL = 4

export const frameSchema = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('event'), event: z.string(), payload: z.unknown(), seq: z.number().optional() }),
  z.looseObject({
    type: z.literal('res'),
    id: z.string(),
    ok: z.boolean(),
    payload: z.unknown().optional(),
    error: z
      .looseObject({ code: z.string().optional(), message: z.string().optional(), retryable: z.boolean().optional() })
      .optional(),
  }),
])
export type Frame = z.infer<typeof frameSchema>

export const helloSchema = z.looseObject({
  type: z.literal('hello-ok'),
  protocol: z.number(),
  server: z.looseObject({ version: z.string().optional(), bootId: z.string().optional() }).optional(),
})

/** `payload` of an `agent` event. */
export const agentEventSchema = z.looseObject({
  runId: z.string(),
  sessionKey: z.string().optional(),
  stream: z.string(),
  data: z.looseObject({
    phase: z.string().optional(),
    delta: z.string().optional(),
    name: z.string().optional(),
    toolCallId: z.string().optional(),
    args: z.unknown().optional(),
    isError: z.boolean().optional(),
    result: z
      .looseObject({ content: z.array(z.looseObject({ type: z.string(), text: z.string().optional() })) })
      .optional(),
    provider: z.string().nullish(),
    aborted: z.boolean().optional(),
    error: z.unknown().optional(),
  }),
})
export type AgentEvent = z.infer<typeof agentEventSchema>

/** The last answer to `agent`, and the answer to `agent.wait`. */
export const runResultSchema = z.looseObject({
  runId: z.string().optional(),
  status: z.string(),
  summary: z.string().nullish(),
  error: z.unknown().optional(),
  result: z
    .looseObject({
      payloads: z.array(z.looseObject({ text: z.string().nullish(), isError: z.boolean().optional() })).optional(),
      meta: z
        .looseObject({
          aborted: z.boolean().optional(),
          stopReason: z.string().optional(),
          error: z.unknown().optional(),
          /** Of all model calls of the run. */
          agentMeta: z
            .looseObject({
              usage: z
                .looseObject({
                  input: z.number().optional(),
                  output: z.number().optional(),
                  cacheRead: z.number().optional(),
                  cacheWrite: z.number().optional(),
                })
                .optional(),
            })
            .optional(),
        })
        .optional(),
    })
    .optional(),
})
export type RunResult = z.infer<typeof runResultSchema>

/** Somebody, or something, asks to be let in. */
export const pairRequestSchema = z.looseObject({
  requestId: z.string(),
  deviceId: z.string().optional(),
  nodeId: z.string().optional(),
  displayName: z.string().optional(),
  platform: z.string().optional(),
  role: z.string().optional(),
  remoteIp: z.string().optional(),
  scopes: z.array(z.string()).optional(),
  caps: z.array(z.string()).optional(),
  commands: z.array(z.string()).optional(),
})
export type PairRequest = z.infer<typeof pairRequestSchema>

export const pairListSchema = z.looseObject({ pending: z.array(pairRequestSchema).default([]) })

export const execApprovalSchema = z.looseObject({
  id: z.string(),
  request: z.looseObject({
    command: z.string().optional(),
    cwd: z.string().nullish(),
    agentId: z.string().nullish(),
    runId: z.string().nullish(),
    sessionKey: z.string().nullish(),
    allowedDecisions: z.array(z.string()).optional(),
  }),
  expiresAtMs: z.number().optional(),
})
export type ExecApproval = z.infer<typeof execApprovalSchema>
