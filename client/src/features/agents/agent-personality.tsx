/** Who the agent is, in its own files: to read, and to change by a command that commits under the person's name. */
import { Pencil } from 'lucide-react'
import { useRef, useState } from 'react'
import { newId, useRow, useSession, useWrite } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { RelativeTime } from '../../ui/relative-time.tsx'
import { Status } from '../../ui/status.tsx'
import { Textarea } from '../../ui/textarea.tsx'
import { Markdown } from '../comments/markdown.tsx'
import type { AgentRow } from './agent-query.ts'
import { type FileRow, fileView, PERSONALITY, type WriteRow } from './personality.ts'

const FILE =
  'select id, path, sha, content, updated_at from agent_files where agent_id = $1 and path = $2 and deleted_at is null limit 1'
const LAST = `select id, status, payload, error_message, result, completed_at from agent_commands
  where agent_id = $1 and action = 'file_write' and payload ->> 'path' = $2 and deleted_at is null
  order by created_at desc, id desc limit 1`

export function AgentPersonality({ agent }: { agent: AgentRow }) {
  return (
    <div className="grid max-w-[78ch] grid-cols-1 gap-8">
      {PERSONALITY.map((part) => (
        <Part key={part.path} agent={agent} {...part} />
      ))}
    </div>
  )
}

interface PartProps {
  readonly agent: AgentRow
  readonly path: string
  readonly title: string
  readonly about: string
}

function Part({ agent, path, title, about }: PartProps) {
  const write = useWrite()
  const { canWrite, principal } = useSession()
  const { row: file, ready } = useRow<FileRow>(FILE, [agent.id, path], { tables: ['agent_files'] })
  const { row: last } = useRow<WriteRow>(LAST, [agent.id, path], { tables: ['agent_commands'] })
  /** What is being edited, upon which version; null: nothing is. */
  const [draft, setDraft] = useState<{ readonly text: string; readonly sha: string | null } | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const [dismissed, setDismissed] = useState<string | null>(null)
  const edit = useRef<HTMLButtonElement>(null)
  const view = fileView(file, last)
  const editable = canWrite && !agent.deleted_at && agent.gateway_id !== null && view.text !== undefined
  const close = () => {
    setDraft(null)
    setProblem(null)
    requestAnimationFrame(() => edit.current?.focus())
  }
  const save = async () => {
    if (!draft) return
    try {
      await write([
        {
          sql: `insert into agent_commands (id, tenant_id, gateway_id, agent_id, action, payload, requested_by)
                values ($1, $2, $3, $4, 'file_write', $5::text::jsonb, $6)`,
          params: [
            newId(),
            agent.tenant_id,
            agent.gateway_id,
            agent.id,
            JSON.stringify({ path, text: draft.text, sha: draft.sha }),
            principal.person_id,
          ],
        },
      ])
      close()
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error))
    }
  }
  return (
    <section aria-label={title} className="grid min-w-0 grid-cols-1 gap-3">
      <header className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <div className="min-w-0 flex-1 basis-48">
          <h3 className="text-lg font-semibold">{title}</h3>
          <p className="text-xs text-text-3">
            {about} <span className="font-mono">{path}</span>
          </p>
        </div>
        {view.state === 'waiting' && (
          <span aria-live="polite">
            <Status
              meaning="waiting"
              shape="clock"
              label="Being saved"
              detail={`by ${agent.gateway_label ?? 'its gateway'}`}
            />
          </span>
        )}
        {editable && !draft && (
          <Button
            ref={edit}
            icon={Pencil}
            size="sm"
            // What is on its way becomes a version first; a second change would be upon an old one.
            disabled={view.state === 'waiting'}
            aria-label={`Edit ${title}`}
            onClick={() => setDraft({ text: view.text ?? '', sha: view.sha })}
          >
            Edit
          </Button>
        )}
      </header>
      {view.state === 'failed' && last?.id !== dismissed && !draft && (
        <Banner
          meaning="danger"
          title="A change was not saved"
          action={
            editable && (
              <Button size="sm" onClick={() => setDraft({ text: view.lost ?? '', sha: view.sha })}>
                Go on with it
              </Button>
            )
          }
          onDismiss={() => setDismissed(last?.id ?? null)}
        >
          {view.reason}
        </Banner>
      )}
      {draft ? (
        <form
          className="grid grid-cols-1 gap-3"
          onSubmit={(event) => {
            event.preventDefault()
            void save()
          }}
        >
          {problem && (
            <Banner meaning="danger" title="It was not saved">
              {problem}
            </Banner>
          )}
          <Textarea
            label={title}
            hideLabel
            autoFocus
            minRows={10}
            maxRows={28}
            value={draft.text}
            onChange={(event) => setDraft({ ...draft, text: event.currentTarget.value })}
            onSubmit={() => void save()}
            hint="Markdown. It is committed under your name and counts with the next run."
          />
          <div className="flex justify-end gap-2">
            <Button onClick={close}>Cancel</Button>
            <Button type="submit" variant="primary" disabled={draft.text.trim() === ''}>
              Save
            </Button>
          </div>
        </form>
      ) : (
        <Text view={view.text} ready={ready} name={agent.name} path={path} />
      )}
      {file && view.state !== 'waiting' && !draft && (
        <p className="text-xs text-text-3">
          Last change <RelativeTime at={file.updated_at} words />
        </p>
      )}
    </section>
  )
}

function Text({
  view,
  ready,
  name,
  path,
}: {
  view: string | null | undefined
  ready: boolean
  name: string
  path: string
}) {
  if (view === undefined) return <p className="text-text-3">{path} is too large to be shown here; see Files.</p>
  if (view === null)
    return ready ? (
      <p className="text-text-3">
        {name} has no {path} yet.
      </p>
    ) : null
  return (
    <div className="rounded-card border border-line bg-surface-1 px-4 py-3">
      <Markdown text={view} size="read" />
    </div>
  )
}
