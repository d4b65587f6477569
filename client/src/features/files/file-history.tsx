/** Earlier versions of a file: asked of the gateway by command, kept with its answer, so that what was seen once is there offline too. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { useEffect, useRef, useState } from 'react'
import { newId, useRow, useSession, useWrite } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { DiffView } from '../../ui/diff-view.tsx'
import { RelativeTime } from '../../ui/relative-time.tsx'
import { Sheet } from '../../ui/sheet.tsx'
import { Status } from '../../ui/status.tsx'
import type { AgentRow } from '../agents/agent-query.ts'
import { askGateway } from './file-commands.ts'

interface Version {
  readonly commit: string
  readonly author: string
  readonly time: string
  readonly message: string
  /** Null: this commit deleted the file. */
  readonly sha: string | null
}

type Command = Pick<Row<'agent_commands'>, 'id' | 'status' | 'result' | 'error_message' | 'created_at'>

const NEWEST = `select id, status, result, error_message, created_at from agent_commands
  where agent_id = $1 and action = $2 and payload->>'path' = $3 and coalesce(payload->>'commit', '') = $4 and deleted_at is null`
const TABLES = { tables: ['agent_commands'] as const }
const live = (command: Command | undefined): boolean =>
  command !== undefined && ['pending', 'leased', 'running'].includes(command.status)

interface Props {
  readonly agent: AgentRow
  readonly path: string
  /** What the file says now; null when it can't be shown. */
  readonly text: string | null
  readonly sha: string | null
  readonly onClose: () => void
}

export function FileHistory({ agent, path, text, sha, onClose }: Props) {
  const write = useWrite()
  const { principal } = useSession()
  const [chosen, setChosen] = useState<string | null>(null)
  const params = [agent.id, 'file_history', path, '']
  const { row: last, ready } = useRow<Command>(`${NEWEST} order by created_at desc, id desc limit 1`, params, TABLES)
  const { row: known } = useRow<Command>(
    `${NEWEST} and status = 'done' order by created_at desc, id desc limit 1`,
    params,
    TABLES,
  )
  const asked = useRef(false)
  useEffect(() => {
    if (!ready || asked.current) return
    asked.current = true
    if (!live(last)) void write([askGateway(agent, principal.person_id, newId(), 'file_history', { path })])
  }, [ready, last, agent, path, principal.person_id, write])
  const versions = ((known?.result as { versions?: readonly Version[] } | null)?.versions ?? []) as readonly Version[]
  const current = versions.find(({ commit }) => commit === chosen)
  return (
    <Sheet open onOpenChange={(open) => !open && onClose()} title={`Versions of ${path}`}>
      <div className="grid gap-4 p-4">
        {live(last) && (
          <p aria-live="polite">
            <Status
              meaning="waiting"
              shape="clock"
              label="Asking the gateway"
              detail={known ? 'for newer versions' : ''}
            />
          </p>
        )}
        {last && !live(last) && last.error_message && (
          <Banner meaning="danger" title="The versions could not be read">
            {last.error_message}
          </Banner>
        )}
        {versions.length === 0 && !live(last) && !last?.error_message && (
          <p className="text-text-3">No earlier versions are known here.</p>
        )}
        <ul aria-label="Versions">
          {versions.map((version) => (
            <li key={version.commit}>
              <button
                type="button"
                aria-pressed={version.commit === chosen}
                onClick={() => setChosen(version.commit)}
                className="grid w-full gap-0.5 rounded-control px-2 py-1.5 text-left hover:bg-surface-2 aria-pressed:bg-surface-3"
              >
                <span className="truncate">{version.message}</span>
                <span className="text-xs text-text-3">
                  {version.author}, <RelativeTime at={version.time} words />
                  {version.sha === sha && sha !== null && ' · as it is now'}
                </span>
              </button>
            </li>
          ))}
        </ul>
        {current && <VersionView key={current.commit} {...{ agent, path, text, sha, onClose }} version={current} />}
      </div>
    </Sheet>
  )
}

function VersionView({ agent, path, text, sha, onClose, version }: Props & { version: Version }) {
  const write = useWrite()
  const { principal, canWrite } = useSession()
  const params = [agent.id, 'file_read', path, version.commit]
  const { row: read, ready } = useRow<Command>(`${NEWEST} order by created_at desc, id desc limit 1`, params, TABLES)
  const deleted = version.sha === null
  const asked = useRef(false)
  useEffect(() => {
    if (!ready || deleted || asked.current) return
    asked.current = true
    // A commit never changes: what was read once need not be asked again.
    if (!live(read) && read?.status !== 'done')
      void write([askGateway(agent, principal.person_id, newId(), 'file_read', { path, commit: version.commit })])
  }, [ready, deleted, read, agent, path, version.commit, principal.person_id, write])
  if (deleted) return <p className="text-text-3">This version deleted the file.</p>
  const old = (read?.result as { text?: string } | null)?.text
  const restore = () => {
    void write([askGateway(agent, principal.person_id, newId(), 'file_restore', { path, commit: version.commit, sha })])
    onClose()
  }
  return (
    <section aria-label="Chosen version" className="grid min-w-0 gap-3">
      {old === undefined ? (
        read?.error_message ? (
          <Banner meaning="danger" title="This version could not be read">
            {read.error_message}
          </Banner>
        ) : (
          <Status meaning="waiting" shape="clock" label="Asking the gateway for this version" />
        )
      ) : text === null ? (
        <p className="text-text-3">What the file says now can’t be shown, so there is nothing to compare with.</p>
      ) : (
        <>
          <p className="text-xs text-text-3">What has changed from then to now:</p>
          <DiffView before={old} after={text} title={path} className="max-h-[50dvh]" />
        </>
      )}
      {canWrite && version.sha !== sha && (
        <div>
          <Button onClick={restore}>Restore this version</Button>
        </div>
      )}
    </section>
  )
}
