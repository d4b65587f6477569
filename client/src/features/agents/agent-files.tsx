/** The agent's files as its gateway last committed them; to read, also offline. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { useState } from 'react'
import { useRow, useRows } from '../../replica/hooks.ts'
import { CodeView } from '../../ui/code-view.tsx'
import { cx } from '../../ui/cx.ts'
import { EmptyState } from '../../ui/empty-state.tsx'
import { RelativeTime } from '../../ui/relative-time.tsx'
import type { AgentRow } from './agent-query.ts'

type File = Pick<Row<'agent_files'>, 'id' | 'path' | 'size' | 'updated_at'>

/** What a person wants first: who it is. */
const FIRST = ['IDENTITY.md', 'SOUL.md', 'AGENTS.md', 'USER.md', 'MEMORY.md']
const order = (path: string): number => {
  const at = FIRST.indexOf(path)
  return at < 0 ? FIRST.length : at
}

export function AgentFiles({ agent }: { agent: AgentRow }) {
  const { rows, ready } = useRows<File>(
    'select id, path, size, updated_at from agent_files where agent_id = $1 and deleted_at is null order by path limit 500',
    [agent.id],
    { tables: ['agent_files'] },
  )
  const [chosen, setChosen] = useState<string | null>(null)
  const files = [...rows].sort((a, b) => order(a.path) - order(b.path) || a.path.localeCompare(b.path))
  const current = files.find(({ id }) => id === chosen) ?? files[0]
  const { row: file } = useRow<Row<'agent_files'>>('select * from agent_files where id = $1', [current?.id ?? null], {
    tables: ['agent_files'],
    enabled: current !== undefined,
  })
  if (ready && rows.length === 0)
    return (
      <EmptyState drawing="files" title="No files yet">
        Identity, instructions, memory and skills appear here once {agent.name} has been set up.
      </EmptyState>
    )
  return (
    <div className="grid items-start gap-4 md:grid-cols-[220px_1fr]">
      <ul aria-label="Files" className="max-h-[70dvh] overflow-auto">
        {files.map(({ id, path }) => (
          <li key={id}>
            <button
              type="button"
              aria-current={id === current?.id || undefined}
              onClick={() => setChosen(id)}
              className={cx(
                'flex h-7 w-full items-center rounded-control px-2 text-left font-mono text-xs touch:h-11',
                id === current?.id ? 'bg-surface-3 text-text-1' : 'text-text-2 hover:bg-surface-2',
              )}
            >
              <span className="truncate">{path}</span>
            </button>
          </li>
        ))}
      </ul>
      {file &&
        (file.content === null ? (
          <p className="text-text-3">
            {file.path} is not shown here: it is not text, or larger than 64 KiB ({file.size.toLocaleString('en')}{' '}
            bytes).
          </p>
        ) : (
          <div className="min-w-0">
            <CodeView code={file.content} path={file.path} className="max-h-[70dvh]" />
            <p className="mt-1 text-xs text-text-3">
              Last change <RelativeTime at={file.updated_at} words />
            </p>
          </div>
        ))}
    </div>
  )
}
