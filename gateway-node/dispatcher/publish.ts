/**
 * What a pass tells people: the verdict in `agents.gate…`, the answer to a pause in `agents.status`, and notifications about budgets and agents
 * that gave up. Only what changed is written, in one mutation; a notification's id is computed from its cause, so that it is there once (P7).
 */
import { budgetSentence, budgetState } from '@hq/shared/domain/budget.ts'
import { countFailures, type Verdict } from '@hq/shared/domain/gates.ts'
import { derivedId } from '@hq/shared/domain/ids.ts'
import type { Tx } from '@hq/shared/sync/contract.ts'
import type { GatewayContext } from '../service.ts'
import type { People } from './people.ts'
import { type Agent, iso, type Snapshot } from './store.ts'

type Publish = (rows: Snapshot, verdicts: ReadonlyMap<string, Verdict>, people: People) => Promise<void>

interface News {
  readonly key: string
  readonly type: 'budget_warned' | 'budget_exceeded' | 'run_failed'
  readonly title: string
  readonly body: string
}

export function createPublisher({
  replica,
  tenantId,
  now,
}: Pick<GatewayContext, 'replica' | 'tenantId' | 'now'>): Publish {
  /** Keys of what this process has told already, to spare the database the question. */
  const told = new Set<string>()

  async function tell(tx: Tx, agent: Agent, { key, type, title, body }: News): Promise<void> {
    await tx.query(
      `insert into notifications (id, tenant_id, type, title, body, entity_type, entity_id, actor_type, dedup_key)
       values ($1, $2, $3, $4, $5, 'agent', $6, 'system', $7) on conflict (id) do nothing`,
      [derivedId('notification', tenantId, key), tenantId, type, title, body, agent.id, key],
    )
  }

  return async (rows, verdicts, people) => {
    const gates: { agent: Agent; set: ReturnType<typeof columnsOf> }[] = []
    const news: { agent: Agent; news: News }[] = []
    for (const agent of rows.agents) {
      const verdict = verdicts.get(agent.id)
      if (!verdict) continue
      const set = columnsOf(agent, verdict)
      if (!isSame(agent, set)) gates.push({ agent, set })
      for (const each of newsOf(rows, agent, verdict, people, now()))
        if (!told.has(each.key)) news.push({ agent, news: each })
    }
    if (gates.length === 0 && news.length === 0) return
    await replica.write(async (tx) => {
      for (const { agent, set } of gates) {
        // The runner may have changed the status since this pass looked (set up, being removed); then its word stands.
        await tx.query(
          `update agents set gate = $2, gate_detail = $3, gate_until = $4, status = case when status = $6 then $5 else status end
           where id = $1`,
          [agent.id, set.gate, set.gate_detail, set.gate_until, set.status, agent.status],
        )
      }
      for (const each of news) await tell(tx, each.agent, each.news)
    })
    for (const each of news) told.add(each.news.key)
  }
}

/** `paused` only once no run is alive any more: until then the agent is not paused, it is stopping. */
function columnsOf(agent: Agent, verdict: Verdict): Pick<Agent, 'gate' | 'gate_detail' | 'gate_until' | 'status'> {
  const pause = agent.pause_requested_at !== null
  const status =
    pause && agent.status === 'ready' && verdict.code !== 'working'
      ? 'paused'
      : !pause && agent.status === 'paused'
        ? 'ready'
        : agent.status
  if (!('detail' in verdict)) return { gate: null, gate_detail: null, gate_until: null, status }
  const until = verdict.until === undefined ? null : iso(verdict.until)
  return { gate: verdict.code, gate_detail: verdict.detail, gate_until: until, status }
}

const isSame = (agent: Agent, set: ReturnType<typeof columnsOf>): boolean =>
  agent.gate === set.gate &&
  agent.gate_detail === set.gate_detail &&
  agent.status === set.status &&
  timeOf(agent.gate_until) === timeOf(set.gate_until)

function newsOf(rows: Snapshot, agent: Agent, verdict: Verdict, people: People, now: number): News[] {
  const news: News[] = []
  const money = rows.money.get(agent.id)
  const state = money && budgetState(money.limits, money.usage)
  if (money && state && (state.status === 'warned' || state.status === 'exceeded')) {
    const type = state.status === 'warned' ? 'budget_warned' : 'budget_exceeded'
    const title = `${agent.name} has used ${state.status === 'warned' ? 'most of' : 'up'} its budget`
    news.push({
      key: `${type}:${agent.id}:${rows.month.key}`,
      type,
      title,
      body: `${budgetSentence(money.limits, money.usage, state)}.`,
    })
  }
  if (verdict.code === 'stalled') {
    const { lastAt } = countFailures(rows.ended.get(agent.id) ?? [], people.actedAt(rows, agent.id, now))
    news.push({
      key: `stalled:${agent.id}:${lastAt ?? 0}`,
      type: 'run_failed',
      title: `${agent.name} has stopped trying`,
      body: verdict.detail,
    })
  }
  return news
}

const timeOf = (time: string | null): number | null => (time === null ? null : Date.parse(time))
