/**
 * The tools that an agent has during a run: the actions of `local-api/actions.ts` and its own files, each with a schema and a bounded answer.
 *
 *  T1 A tool says in its answer what happened; a refusal is an answer with `ok: false`, so that the model can do something else.
 *  T2 No answer is longer than `ANSWER_CHARS`; what was cut says so.
 */
import { cut } from '@hq/shared/domain/runs.ts'
import { ENUMS } from '@hq/shared/schema/enums.ts'
import { z } from 'zod'
import type { Actions, Caller, Result } from '../local-api/actions.ts'
import type { GuardedFetch } from '../net/guarded-fetch.ts'
import { isOn } from '../switches.ts'
import type { AgentFiles, AgentTool, ToolOutput } from './runtime.ts'
import { webTool } from './web-tool.ts'

export const ANSWER_CHARS = 24_000

const taskId = z.uuid().describe('Id of the task')

export function createTools(
  actions: Actions,
  caller: Caller,
  files: AgentFiles | undefined,
  web?: GuardedFetch,
  exec?: AgentTool,
): AgentTool[] {
  const tools: AgentTool[] = [
    define('my_tasks', 'Lists the open tasks that are assigned to you.', z.object({}), async () =>
      answer(await actions.myTasks(caller)),
    ),
    define(
      'task_show',
      'Shows a task with its description, comments, subtasks and deliverables.',
      z.object({ task_id: taskId }),
      async (input) => fromResult(await actions.showTask(caller, input.task_id)),
    ),
    define(
      'claim',
      'Says that you have begun to work on a task of yours.',
      z.object({ task_id: taskId }),
      async (input) => fromResult(await actions.claim(caller, input.task_id)),
    ),
    define(
      'comment',
      'Writes a comment on a task, for the people who read it. Mention somebody with @name.',
      z.object({ task_id: taskId, body: z.string().min(1).describe('Markdown') }),
      async (input) => fromResult(await actions.comment(caller, input.task_id, input.body)),
    ),
    define(
      'submit_deliverable',
      'Puts a result up for review by a person: a text (markdown), a file of your workspace, or an address. ' +
        'Do not complete the task afterwards: it completes when the deliverable is approved. A revision has the same label.',
      z.object({
        task_id: taskId,
        label: z.string().min(1).max(200).describe('Short name of the result'),
        text: z.string().optional().describe('Markdown'),
        file: z.string().optional().describe('Path in your workspace'),
        url: z.string().optional(),
      }),
      async (input) =>
        fromResult(
          await actions.submitDeliverable(caller, input.task_id, {
            label: input.label,
            text: input.text,
            file: input.file,
            url: input.url,
          }),
        ),
    ),
    define(
      'complete',
      'Completes a task that needs no review. Refused while a deliverable waits for review.',
      z.object({ task_id: taskId, summary: z.string().optional().describe('What was done, as a comment') }),
      async (input) => fromResult(await actions.complete(caller, input.task_id, input.summary)),
    ),
    define(
      'search_tasks',
      'Searches the tasks of the workspace by words in title and description.',
      z.object({
        text: z.string(),
        status: z.enum(ENUMS.task_status).optional(),
        limit: z.int().min(1).max(50).optional(),
      }),
      async (input) => answer(await actions.searchTasks(caller, input)),
    ),
  ]
  return [...tools, ...(files ? fileTools(files) : []), ...(web ? [webTool(web)] : []), ...(exec ? [exec] : [])]
}

/** Names, words and inputs of everything that an agent of this gateway can have, for a runtime that must know them before there is a run. */
export function describedTools(env: Readonly<Record<string, string | undefined>>): readonly AgentTool[] {
  const nobody = new Proxy({}, { get: () => () => Promise.reject(new Error('These tools are only described.')) })
  return createTools(
    nobody as Actions,
    nobody as Caller,
    nobody as AgentFiles,
    isOn(env, 'HQ_AGENT_WEB') ? (nobody as GuardedFetch) : undefined,
  )
}

function fileTools(files: AgentFiles): AgentTool[] {
  return [
    define(
      'list_files',
      'Lists the files of your workspace, or of a folder in it.',
      z.object({ folder: z.string().optional() }),
      async (input) => fromFile(await files.list(input.folder)),
    ),
    define('read_file', 'Reads a text file of your workspace.', z.object({ path: z.string() }), async (input) =>
      fromFile(await files.read(input.path)),
    ),
    define(
      'write_file',
      'Writes a text file in your workspace, for example notes in MEMORY.md; it is committed under your name.',
      z.object({ path: z.string(), text: z.string() }),
      async (input) => fromFile(await files.write(input.path, input.text)),
    ),
  ]
}

const define = <Schema extends z.ZodType>(
  name: string,
  description: string,
  input: Schema,
  run: (input: z.output<Schema>) => Promise<ToolOutput>,
): AgentTool => ({ name, description, input, run: (value) => run(input.parse(value)) })

function answer(value: unknown): ToolOutput {
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  const { text: short, truncated } = cut(text, ANSWER_CHARS)
  return { ok: true, text: truncated ? `${short}\n… (cut after ${ANSWER_CHARS} characters)` : short }
}

const fromResult = (result: Result<unknown>): ToolOutput =>
  result.ok ? answer(result.value) : { ok: false, text: `Refused (${result.code}): ${result.message}` }

const fromFile = (result: { ok: true; value: unknown } | { ok: false; message: string }): ToolOutput =>
  result.ok ? answer(result.value) : { ok: false, text: `Refused: ${result.message}` }
