/** Brings what an agent's template became into its files. What both have changed is decided by a person, file by file; until then nothing changes. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { GitMerge } from 'lucide-react'
import { useState } from 'react'
import { newId, useRow, useSession, useWrite } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { DiffView } from '../../ui/diff-view.tsx'
import { RelativeTime } from '../../ui/relative-time.tsx'
import { Sheet } from '../../ui/sheet.tsx'
import { Status } from '../../ui/status.tsx'
import type { AgentRow } from '../agents/agent-query.ts'
import { askGateway } from './file-commands.ts'

interface Conflict {
  readonly path: string
  readonly sha: string | null
  /** Null: deleted on that side. Undefined: there was no room for the texts. */
  readonly mine?: string | null
  readonly theirs?: string | null
}

type Command = Pick<Row<'agent_commands'>, 'id' | 'status' | 'error_message' | 'completed_at' | 'created_at'> & {
  readonly result: {
    readonly state?: string
    readonly changed?: readonly string[]
    readonly conflicts?: readonly Conflict[]
  } | null
}

const NEWEST = `select id, status, result, error_message, created_at, completed_at from agent_commands
  where agent_id = $1 and action = 'upgrade_template' and deleted_at is null order by created_at desc, id desc limit 1`

export function TemplateUpgrade({ agent }: { agent: AgentRow }) {
  const write = useWrite()
  const { principal, canWrite } = useSession()
  const { row: last } = useRow<Command>(NEWEST, [agent.id], { tables: ['agent_commands'] })
  const [deciding, setDeciding] = useState(false)
  const waiting = last !== undefined && ['pending', 'leased', 'running'].includes(last.status)
  const conflicts = last?.status === 'failed' ? (last.result?.conflicts ?? []) : []
  const upgrade = (payload: Record<string, unknown> = {}) =>
    void write([askGateway(agent, principal.person_id, newId(), 'upgrade_template', payload)])
  return (
    <div className="grid gap-1.5">
      {canWrite && agent.gateway_id !== null && (
        <div>
          <Button size="sm" icon={GitMerge} onClick={() => upgrade()} disabled={waiting}>
            Upgrade from template
          </Button>
        </div>
      )}
      <div aria-live="polite" className="text-xs text-text-3">
        {waiting && (
          <Status
            meaning="waiting"
            shape="clock"
            label="Waits for"
            detail={`gateway “${agent.gateway_label ?? '?'}”`}
          />
        )}
        {last?.status === 'done' && (
          <p>
            {last.result?.state === 'merged'
              ? `Upgraded ${last.result.changed?.length ?? 0} files`
              : 'As new as its template'}
            , <RelativeTime at={last.completed_at ?? last.created_at} words />
          </p>
        )}
      </div>
      {last?.status === 'failed' && (
        <Banner
          meaning={conflicts.length > 0 ? 'warning' : 'danger'}
          title={conflicts.length > 0 ? 'The template and the agent differ' : 'Not upgraded'}
          action={
            conflicts.length > 0 &&
            canWrite && (
              <Button size="sm" onClick={() => setDeciding(true)}>
                Decide
              </Button>
            )
          }
        >
          {last.error_message}
        </Banner>
      )}
      {deciding && conflicts.length > 0 && (
        <Decisions
          key={last?.id}
          conflicts={conflicts}
          onClose={() => setDeciding(false)}
          onDecided={(resolutions) => {
            setDeciding(false)
            upgrade({ resolutions })
          }}
        />
      )}
    </div>
  )
}

type Choice = 'mine' | 'theirs'

interface DecisionsProps {
  readonly conflicts: readonly Conflict[]
  readonly onClose: () => void
  readonly onDecided: (resolutions: { path: string; sha: string | null; text: string | null }[]) => void
}

function Decisions({ conflicts, onClose, onDecided }: DecisionsProps) {
  const [choices, setChoices] = useState<Readonly<Record<string, Choice>>>({})
  const shown = conflicts.every(({ mine, theirs }) => mine !== undefined && theirs !== undefined)
  const decided = () =>
    onDecided(
      conflicts.map(({ path, sha, mine, theirs }) => ({
        path,
        sha,
        text: (choices[path] === 'theirs' ? theirs : mine) ?? null,
      })),
    )
  return (
    <Sheet open onOpenChange={(open) => !open && onClose()} title="Agent or template">
      <div className="grid gap-5 p-4">
        {!shown && (
          <Banner meaning="warning" title="Too much to show">
            These files are too large to be compared here. Merge them on the gateway’s machine, with git.
          </Banner>
        )}
        {shown &&
          conflicts.map(({ path, mine, theirs }) => (
            <fieldset key={path} className="grid min-w-0 gap-2">
              <legend className="mb-1 font-mono text-xs">{path}</legend>
              <DiffView before={mine ?? ''} after={theirs ?? ''} title={path} className="max-h-[40dvh]" />
              {(['mine', 'theirs'] as const).map((choice) => (
                <label key={choice} className="flex items-center gap-2 touch:min-h-11">
                  <input
                    type="radio"
                    name={path}
                    checked={choices[path] === choice}
                    onChange={() => setChoices({ ...choices, [path]: choice })}
                  />
                  {choice === 'mine'
                    ? mine === null
                      ? 'Leave it deleted, as the agent has it'
                      : 'Keep the agent’s (red)'
                    : theirs === null
                      ? 'Delete it, as the template does'
                      : 'Take the template’s (green)'}
                </label>
              ))}
            </fieldset>
          ))}
        {shown && (
          <div>
            <Button
              variant="primary"
              disabled={conflicts.some(({ path }) => choices[path] === undefined)}
              onClick={decided}
            >
              Upgrade so
            </Button>
          </div>
        )}
      </div>
    </Sheet>
  )
}
