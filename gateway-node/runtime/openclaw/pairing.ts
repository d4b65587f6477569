/**
 * Devices that want to pair with OpenClaw, and commands that it asks about itself, as approvals of HQ: people see and answer them in the browser.
 *
 *  G1 What was asked while nobody was connected is found by a list after each connect; each request is asked once.
 *  G2 The answer goes back to OpenClaw; one that OpenClaw no longer wants is said in the log only.
 */
import { approvalsOf } from '../../approvals/approvals.ts'
import type { GatewayContext } from '../../service.ts'
import { execApprovalSchema, type PairRequest, pairListSchema, pairRequestSchema } from './frames.ts'
import type { OpenClawSocket } from './socket.ts'

type Kind = 'device' | 'node'

export interface Pairing {
  /** After each connect. */
  look(): void
  onEvent(event: string, payload: unknown): void
  stop(): void
}

export function createPairing(context: GatewayContext, socket: () => OpenClawSocket | undefined): Pairing {
  const { log, now } = context
  const stopping = new AbortController()
  const asked = new Set<string>()

  async function list(kind: Kind): Promise<void> {
    const { pending } = pairListSchema.parse(await socket()?.request(`${kind}.pair.list`, {}))
    for (const request of pending) ask(kind, request)
  }

  function ask(kind: Kind, request: PairRequest): void {
    const key = `${kind} ${request.requestId}`
    if (asked.has(key)) return
    asked.add(key)
    const name = request.displayName ?? request.deviceId?.slice(0, 12) ?? request.nodeId?.slice(0, 12) ?? 'A device'
    const { requestId, ...detail } = request
    answered(
      {
        agentId: null,
        runId: null,
        taskId: null,
        kind: 'pairing',
        subject: name,
        title: `${name} wants to pair with OpenClaw on this gateway`,
        detail: { ...detail, request: requestId },
        expiresAt: null,
      },
      (allowed) => ({ method: `${kind}.pair.${allowed ? 'approve' : 'reject'}`, params: { requestId } }),
    )
  }

  function askExec(payload: unknown): void {
    const read = execApprovalSchema.safeParse(payload)
    if (!read.success || asked.has(read.data.id)) return
    const { id, request, expiresAtMs } = read.data
    asked.add(id)
    const command = request.command ?? 'a command'
    answered(
      {
        agentId: null,
        runId: null,
        taskId: null,
        kind: 'exec',
        subject: 'exec',
        title: `${request.agentId ?? 'An agent'} wants to run ${command.slice(0, 120)}`,
        detail: { command, cwd: request.cwd ?? null, agent: request.agentId ?? null },
        expiresAt: expiresAtMs === undefined ? null : new Date(Math.max(expiresAtMs, now())).toISOString(),
      },
      (allowed) => ({ method: 'exec.approval.resolve', params: { id, decision: allowed ? 'allow-once' : 'deny' } }),
    )
  }

  function answered(
    question: Parameters<ReturnType<typeof approvalsOf>['ask']>[0],
    reply: (allowed: boolean) => { method: string; params: object },
  ): void {
    void approvalsOf(context)
      .ask(question, stopping.signal)
      .then(async ({ verdict }) => {
        if (verdict === 'cancelled') return
        const { method, params } = reply(verdict === 'allowed')
        await socket()?.request(method, params)
      })
      .catch((error: unknown) =>
        log('warn', 'An answer did not reach OpenClaw', { about: question.title, error: String(error) }),
      )
  }

  return {
    look() {
      for (const kind of ['device', 'node'] as const)
        list(kind).catch((error: unknown) =>
          log('warn', 'OpenClaw’s pairing requests could not be listed', { kind, error: String(error) }),
        )
    },
    onEvent(event, payload) {
      if (event === 'exec.approval.requested') askExec(payload)
      const kind = event === 'device.pair.requested' ? 'device' : event === 'node.pair.requested' ? 'node' : undefined
      if (!kind) return
      const request = pairRequestSchema.safeParse(payload)
      if (request.success) ask(kind, request.data)
      else this.look()
    },
    stop: () => stopping.abort(),
  }
}
