/** What agents did in the past of the demo: runs, what they cost, comments, deliverables. */
import { COMMENTS, DELIVERABLE } from './content.ts'
import { DAY, iso, type TaskContext, type Values } from './rows.ts'

/** A finished run with what it said, what it cost, and now and then a deliverable. */
export function addHistory(
  context: TaskContext,
  taskId: string,
  title: string,
  agent: string,
  status: string,
  created: number,
): void {
  const { add, id, ago, chance, person, gatewayId, now } = context
  const agentId = id('agent', agent)
  const at = created * chance.between(0.3, 0.9)
  addComment(context, taskId, agent, chance.pick(COMMENTS), at)
  if (gatewayId) {
    const run = id('run', title)
    const [input, output] = [Math.floor(chance.between(2_000, 24_000)), Math.floor(chance.between(200, 1_800))]
    const cost = Number(((input * 0.25 + output * 1.25) / 1_000_000).toFixed(5))
    const ended = iso(now - at * DAY + chance.between(20_000, 240_000))
    const summary =
      status === 'blocked'
        ? 'I need an answer from a person before I can go on.'
        : `Worked on “${title}” and left a note.`
    const common = { gateway_id: gatewayId, created_at: ago(at) }
    add('agent_runs', {
      ...common,
      id: run,
      agent_id: agentId,
      task_id: taskId,
      runtime: 'builtin',
      provider: 'demo',
      model: 'demo-1',
      demo: true,
      status: 'done',
      started_at: ago(at),
      ended_at: ended,
      turns: 3,
      tool_calls: 4,
      input_tokens: input,
      output_tokens: output,
      cost_usd: cost,
      summary,
    })
    const events: [string, Values][] = [
      ['status', { code: 'started', text: 'Started', model: 'demo/demo-1' }],
      ['tool_call', { turn: 1, call: 'c1', tool: 'task_show', input: { task: taskId } }],
      ['tool_result', { turn: 1, call: 'c1', tool: 'task_show', ok: true, output: title }],
      ['message', { turn: 2, text: summary }],
      ['status', { code: 'done', text: 'Done' }],
    ]
    events.forEach(([kind, data], seq) => {
      add('agent_run_events', { ...common, id: id('event', title, String(seq)), run_id: run, seq, kind, data })
    })
    add('agent_usage', {
      ...common,
      id: id('usage', title),
      agent_id: agentId,
      run_id: run,
      task_id: taskId,
      provider: 'demo',
      model: 'demo-1',
      input_tokens: input,
      output_tokens: output,
      cost_usd: cost,
      occurred_at: ended,
    })
  }
  if (status === 'blocked' || chance.next() > 0.45) return
  const link = id('deliverable', title)
  const review = status === 'done' ? 'approved' : chance.next() < 0.6 ? 'submitted' : 'revision_requested'
  add('entity_links', {
    id: link,
    owner_type: 'task',
    owner_id: taskId,
    target_type: 'text',
    label: title,
    body: `# ${title}\n\n${DELIVERABLE}`,
    is_deliverable: true,
    review_status: review,
    review_note: review === 'revision_requested' ? 'Please add where each figure comes from.' : null,
    reviewed_by: review === 'submitted' ? null : person,
    reviewed_at: review === 'submitted' ? null : ago(at * 0.5),
    submitted_by_agent_id: agentId,
    created_at: ago(at),
  })
  if (review === 'submitted') {
    add('notifications', {
      id: id('note', title),
      type: 'deliverable_submitted',
      title: `For your review: ${title}`,
      entity_type: 'deliverable',
      entity_id: link,
      actor_type: 'agent',
      actor_agent_id: agentId,
      created_at: ago(at),
    })
  }
}

export function addComment(
  { add, id, ago, person }: TaskContext,
  taskId: string,
  agent: string | undefined,
  body: string,
  days: number,
): void {
  add('comments', {
    id: id('comment', taskId, agent ?? 'person'),
    entity_type: 'task',
    entity_id: taskId,
    body,
    actor_type: agent ? 'agent' : 'human',
    actor_agent_id: agent ? id('agent', agent) : null,
    actor_person_id: agent ? null : person,
    created_at: ago(days),
  })
}
