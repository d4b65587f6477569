/** What an agent may use: allowed, after a question, or not at all. Admins set it; everybody may read it. */
import {
  BASIC,
  parseToolPolicy,
  STANDARD,
  type ToolVerdict,
  verdictFor,
  withVerdict,
} from '@hq/shared/domain/tool-policy.ts'
import { useState } from 'react'
import { useSession, useWrite } from '../../replica/hooks.ts'
import { Button } from '../../ui/button.tsx'
import { Select } from '../../ui/select.tsx'
import { toast } from '../../ui/toast.tsx'

interface Agent {
  readonly id: string
  readonly name: string
  readonly tool_policy: unknown
  readonly deleted_at: string | null
}

const VERDICTS: readonly { value: ToolVerdict; label: string }[] = [
  { value: 'allow', label: 'Allowed' },
  { value: 'ask', label: 'Ask first' },
  { value: 'deny', label: 'Not at all' },
]

const WORDS: Readonly<Record<string, { label: string; hint?: string }>> = {
  exec: { label: 'Run commands', hint: 'Only where the gateway’s owner has set HQ_AGENT_EXEC=on.' },
  web_fetch: { label: 'Read the web', hint: 'Only where the gateway’s owner has set HQ_AGENT_WEB=on.' },
  read_file: { label: 'Read its files' },
  list_files: { label: 'List its files' },
  write_file: { label: 'Write its files' },
  my_tasks: { label: 'List its tasks' },
  task_show: { label: 'Read tasks' },
  claim: { label: 'Begin a task' },
  comment: { label: 'Comment' },
  submit_deliverable: { label: 'Submit a deliverable' },
  complete: { label: 'Complete a task' },
  search_tasks: { label: 'Search tasks' },
}
const toolWords = (tool: string): string => WORDS[tool]?.label ?? tool.replaceAll('_', ' ')

export function ToolPolicySection({ agent }: { agent: Agent }) {
  const { isAdmin } = useSession()
  const write = useWrite()
  const [all, setAll] = useState(false)
  const policy = parseToolPolicy(agent.tool_policy)
  const main = Object.keys(STANDARD).filter((tool) => !BASIC.includes(tool))
  // What somebody has named for other runtimes; and of HQ's own actions those that differ from what is usual.
  const named = Object.keys(policy.tools).filter((tool) => !main.includes(tool) && !BASIC.includes(tool))
  const basic = BASIC.filter((tool) => all || verdictFor(policy, tool) !== 'allow')
  const set = (tool: string, verdict: ToolVerdict): void => {
    write([
      {
        sql: 'update agents set tool_policy = $2::text::jsonb where id = $1::uuid',
        params: [agent.id, JSON.stringify(withVerdict(agent.tool_policy, tool, verdict))],
      },
    ]).catch((error: unknown) =>
      toast({
        title: 'That was not saved',
        description: error instanceof Error ? error.message : String(error),
        meaning: 'danger',
      }),
    )
  }
  return (
    <section aria-label="Tools" className="grid gap-2">
      <h3 className="section-title">Tools</h3>
      {[...main, ...named, ...basic].map((tool) =>
        isAdmin && agent.deleted_at === null ? (
          <Select
            key={tool}
            label={toolWords(tool)}
            hint={WORDS[tool]?.hint}
            value={verdictFor(policy, tool)}
            options={VERDICTS}
            onValueChange={(verdict) => set(tool, verdict)}
          />
        ) : (
          <p key={tool} className="flex justify-between gap-3">
            <span className="text-text-3">{toolWords(tool)}</span>
            <span>{VERDICTS.find(({ value }) => value === verdictFor(policy, tool))?.label}</span>
          </p>
        ),
      )}
      <div>
        <Button size="sm" variant="ghost" aria-expanded={all} onClick={() => setAll(!all)} className="-ml-2">
          {all ? 'Hide what is usual' : `Show ${agent.name}’s own actions`}
        </Button>
      </div>
    </section>
  )
}
