/**
 * The demo model: no real model, but it really works the loop. It implements the AI SDK's model interface, decides from the conversation alone,
 * and is deterministic: the same task gives the same text. Everything it writes says that it was written by the demo model.
 *
 *  work      task_show → claim → submit_deliverable → comment → a closing sentence
 *  revision  task_show → submit_deliverable (same label, quotes the reviewer's note) → comment → a closing sentence
 *  comment   task_show → comment that answers → a closing sentence
 *  routine   my_tasks → a closing sentence
 */
import type { LanguageModel } from 'ai'
import type { TaskView } from '../../local-api/task-view.ts'
import type { RunInput } from '../runtime.ts'
import { draftFor, replyFor, revisionOf } from './demo-text.ts'

type DemoModel = Extract<LanguageModel, { specificationVersion: 'v4' }>
type CallOptions = Parameters<DemoModel['doStream']>[0]
type Prompt = CallOptions['prompt']
type StreamPart = Awaited<ReturnType<DemoModel['doStream']>>['stream'] extends ReadableStream<infer Part> ? Part : never

type Step = { readonly say: string; readonly tool?: string; readonly input?: unknown }

/** `paceMs`: pause between the pieces of the stream, so that a person can watch it work. */
export function createDemoModel(run: Pick<RunInput, 'agent' | 'item' | 'task'>, paceMs: number): DemoModel {
  let calls = 0
  const nextStep = (prompt: Prompt): Step => planStep(run, resultsIn(prompt))
  return {
    specificationVersion: 'v4',
    provider: 'demo',
    modelId: 'demo',
    supportedUrls: {},
    doGenerate: () => Promise.reject(new Error('The demo model only streams.')),
    doStream: async (options: CallOptions) => {
      const step = nextStep(options.prompt)
      calls += 1
      const parts = partsOf(step, `demo-${calls}`)
      const { abortSignal } = options
      let index = 0
      return {
        stream: new ReadableStream<StreamPart>({
          async pull(controller) {
            if (abortSignal?.aborted) return controller.error(abortSignal.reason)
            const part = parts[index]
            index += 1
            if (!part) return controller.close()
            if (paceMs > 0 && part.type === 'text-delta') await new Promise((resolve) => setTimeout(resolve, paceMs))
            controller.enqueue(part)
          },
        }),
      }
    },
  }
}

interface ToolAnswer {
  readonly tool: string
  readonly ok: boolean
  readonly text: string
}

/** What the tools have answered so far, in order. */
function resultsIn(prompt: Prompt): ToolAnswer[] {
  const answers: ToolAnswer[] = []
  for (const message of prompt) {
    if (message.role !== 'tool') continue
    for (const part of message.content) {
      if (part.type !== 'tool-result') continue
      const { output } = part
      const text = output.type === 'text' || output.type === 'error-text' ? output.value : JSON.stringify(output)
      answers.push({ tool: part.toolName, ok: output.type === 'text', text })
    }
  }
  return answers
}

function planStep(
  { agent, item, task }: Pick<RunInput, 'agent' | 'item' | 'task'>,
  answers: readonly ToolAnswer[],
): Step {
  const step = answers.length
  const last = answers.at(-1)
  if (last && !last.ok) return { say: `I could not go on. ${last.text}` }
  if (!task) {
    return step === 0
      ? { say: 'Let me see what is on my list.', tool: 'my_tasks', input: {} }
      : { say: 'I have looked at my open tasks. As the demo model I do nothing else without one. (Demo model)' }
  }
  const show = { say: `Let me read “${task.title}”.`, tool: 'task_show', input: { task_id: task.id } }
  if (step === 0) return show
  const fresh = taskIn(answers) ?? task

  if (item.event === 'task_comment' || item.event === 'task_comment_mention') {
    const asked =
      fresh.comments.find((comment) => comment.id === item.commentId) ??
      fresh.comments.findLast((comment) => !comment.mine)
    if (step === 1)
      return {
        say: 'I will answer.',
        tool: 'comment',
        input: { task_id: task.id, body: replyFor(agent, fresh, asked) },
      }
    return { say: `I answered${asked ? ` ${asked.author}` : ''} on “${task.title}”. (Demo model)` }
  }

  const reviewed = fresh.deliverables.findLast((link) => link.mine && link.review_status === 'revision_requested')
  const before = answers.filter((answer) => answer.tool === 'submit_deliverable').length
  if (reviewed || (item.event === 'deliverable_review' && before > 0)) {
    if (step === 1 && reviewed) {
      const text = revisionOf(agent, fresh, reviewed)
      return {
        say: 'The reviewer wants changes. I will revise it.',
        tool: 'submit_deliverable',
        input: { task_id: task.id, label: reviewed.label ?? 'Draft', text },
      }
    }
    if (step === 2) {
      const note = task.deliverables.findLast((link) => link.review_note)?.review_note ?? item.context['review_note']
      const body = `I submitted a revised version${note ? ` for your note “${String(note)}”` : ''}. (Demo model)`
      return { say: 'Now a word to the reviewer.', tool: 'comment', input: { task_id: task.id, body } }
    }
    return { say: `I revised “${task.title}” and put it up for review again. (Demo model)` }
  }
  if (item.event === 'deliverable_review') {
    const rejected = fresh.deliverables.some((link) => link.mine && link.review_status === 'rejected')
    const body = rejected
      ? 'Understood: this is not what is wanted. I leave it until you say how to go on. (Demo model)'
      : 'Thank you for the review. (Demo model)'
    return step === 1
      ? { say: 'I have read the review.', tool: 'comment', input: { task_id: task.id, body } }
      : { say: 'I have taken note of the review. (Demo model)' }
  }

  const waiting = fresh.deliverables.find((link) => link.mine && link.review_status === 'submitted')
  if (step === 1 && waiting)
    return { say: `“${waiting.label}” already waits for review, so there is nothing to add. (Demo model)` }
  if (step === 1) return { say: 'This is mine. I begin.', tool: 'claim', input: { task_id: task.id } }
  const draft = draftFor(agent, fresh)
  if (step === 2)
    return {
      say: `I write the ${draft.kind}.`,
      tool: 'submit_deliverable',
      input: { task_id: task.id, label: draft.label, text: draft.text },
    }
  if (step === 3) {
    const body = `“${draft.label}” is up for review. It was written by the demo model, so treat it as a sketch of the way it works.`
    return { say: 'Done; I leave a note.', tool: 'comment', input: { task_id: task.id, body } }
  }
  return { say: `I wrote “${draft.label}” for “${task.title}” and put it up for review. (Demo model)` }
}

/** The task as task_show has answered, or undefined when it was cut. */
function taskIn(answers: readonly ToolAnswer[]): TaskView | undefined {
  const shown = answers.find((answer) => answer.tool === 'task_show' && answer.ok)
  if (!shown?.text.endsWith('}')) return undefined
  return JSON.parse(shown.text) as TaskView
}

function partsOf({ say, tool, input }: Step, id: string): StreamPart[] {
  const words = say.match(/\S+\s*/g) ?? []
  const parts: StreamPart[] = [
    { type: 'stream-start', warnings: [] },
    { type: 'text-start', id },
    ...words.map((delta): StreamPart => ({ type: 'text-delta', id, delta })),
    { type: 'text-end', id },
  ]
  if (tool) parts.push({ type: 'tool-call', toolCallId: id, toolName: tool, input: JSON.stringify(input ?? {}) })
  parts.push({
    type: 'finish',
    finishReason: { unified: tool ? 'tool-calls' : 'stop', raw: tool ? 'tool_calls' : 'stop' },
    usage: {
      inputTokens: { total: 0, noCache: 0, cacheRead: 0, cacheWrite: 0 },
      outputTokens: { total: 0, text: 0, reasoning: 0 },
    },
  })
  return parts
}
