/** The agent's files as its gateway last committed them, and with what waits to be written; to read and to edit, also offline. */
import { FilePlus } from 'lucide-react'
import { useState } from 'react'
import { useRow, useRows, useSession } from '../../replica/hooks.ts'
import { Button } from '../../ui/button.tsx'
import { cx } from '../../ui/cx.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Input } from '../../ui/input.tsx'
import { FILE_COMMANDS, type FileCommand, type FileRow, fileState, pathProblem } from '../files/file-commands.ts'
import { FilePane } from '../files/file-pane.tsx'
import { TemplateUpgrade } from '../files/template-upgrade.tsx'
import type { AgentRow } from './agent-query.ts'

/** What a person wants first: who it is. */
const FIRST = ['IDENTITY.md', 'SOUL.md', 'AGENTS.md', 'USER.md', 'MEMORY.md']
const order = (path: string): number => {
  const at = FIRST.indexOf(path)
  return at < 0 ? FIRST.length : at
}
const MARK = { saved: '', waiting: 'waiting', refused: 'refused', conflict: 'conflict' } as const

export function AgentFiles({ agent }: { agent: AgentRow }) {
  const { rows, ready } = useRows<Pick<FileRow, 'path'>>(
    'select path from agent_files where agent_id = $1 and deleted_at is null order by path limit 500',
    [agent.id],
    { tables: ['agent_files'] },
  )
  const { rows: commands } = useRows<FileCommand>(FILE_COMMANDS, [agent.id], { tables: ['agent_commands'] })
  const [chosen, setChosen] = useState<string | null>(null)
  const [fresh, setFresh] = useState<string | null>(null)
  const [naming, setNaming] = useState(false)
  const { canWrite } = useSession()
  const stands = new Map(commands.map((command) => [command.path, command]))
  // A file that is not there yet, or no longer, but of which something is to be said.
  const open = commands.filter((command) => fileState(command).kind !== 'saved').map(({ path }) => path)
  const paths = [...new Set([...rows.map(({ path }) => path), ...open, ...(fresh ? [fresh] : [])])].sort(
    (a, b) => order(a) - order(b) || a.localeCompare(b),
  )
  const path = chosen !== null && paths.includes(chosen) ? chosen : paths[0]
  const { row: file, ready: loaded } = useRow<FileRow>(
    'select id, path, size, sha, content, updated_at from agent_files where agent_id = $1 and path = $2 and deleted_at is null limit 1',
    [agent.id, path ?? null],
    { tables: ['agent_files'], enabled: path !== undefined },
  )
  if (ready && paths.length === 0)
    return (
      <EmptyState drawing="files" title="No files yet">
        Identity, instructions, memory and skills appear here once {agent.name} has been set up.
      </EmptyState>
    )
  return (
    <div className="grid grid-cols-1 items-start gap-4 md:grid-cols-[220px_minmax(0,1fr)]">
      <div className="grid min-w-0 gap-2">
        <ul aria-label="Files" className="max-h-[30dvh] overflow-auto md:max-h-[65dvh]">
          {paths.map((each) => {
            const mark = MARK[fileState(stands.get(each)).kind]
            return (
              <li key={each}>
                <button
                  type="button"
                  aria-current={each === path || undefined}
                  onClick={() => setChosen(each)}
                  className={cx(
                    'flex h-7 w-full items-center gap-2 rounded-control px-2 text-left font-mono text-xs touch:h-11',
                    each === path ? 'bg-surface-3 text-text-1' : 'text-text-2 hover:bg-surface-2',
                  )}
                >
                  <span className="min-w-0 flex-1 truncate">{each}</span>
                  {mark && (
                    <span className={cx('font-sans text-xs', mark === 'waiting' ? 'text-text-2' : 'text-danger-ink')}>
                      {mark}
                    </span>
                  )}
                </button>
              </li>
            )
          })}
        </ul>
        {canWrite && agent.gateway_id !== null && (
          <div>
            <Button size="sm" icon={FilePlus} onClick={() => setNaming(true)}>
              New file
            </Button>
          </div>
        )}
        <TemplateUpgrade agent={agent} />
      </div>
      {path !== undefined && (loaded || fresh === path) && (
        <FilePane
          key={path}
          agent={agent}
          path={path}
          file={file}
          command={stands.get(path)}
          fresh={fresh === path && !file}
          onDone={() => setFresh(null)}
        />
      )}
      {naming && (
        <NewFile
          taken={paths}
          onClose={() => setNaming(false)}
          onNamed={(name) => {
            setFresh(name)
            setChosen(name)
            setNaming(false)
          }}
        />
      )}
    </div>
  )
}

interface NewFileProps {
  readonly taken: readonly string[]
  readonly onClose: () => void
  readonly onNamed: (path: string) => void
}

function NewFile({ taken, onClose, onNamed }: NewFileProps) {
  const [name, setName] = useState('')
  const [tried, setTried] = useState(false)
  const path = name.trim()
  const problem = taken.includes(path) ? 'There is such a file already.' : pathProblem(path)
  const submit = () => (problem ? setTried(true) : onNamed(path))
  return (
    <Dialog
      open
      onOpenChange={(open) => !open && onClose()}
      title="New file"
      size="sm"
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button variant="primary" onClick={submit}>
            Create
          </Button>
        </>
      }
    >
      <form
        onSubmit={(event) => {
          event.preventDefault()
          submit()
        }}
      >
        <Input
          label="Path"
          hint="For example notes/plan.md"
          error={tried ? problem : null}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
      </form>
    </Dialog>
  )
}
