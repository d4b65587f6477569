/** A change that met another one: both side by side, and three ways out. Nothing is lost until a person has chosen. */
import { lazy, Suspense, useState } from 'react'
import { newId, useSession, useWrite } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import type { AgentRow } from '../agents/agent-query.ts'
import { askGateway, type FileCommand, forget } from './file-commands.ts'

const CodeEditor = lazy(() => import('./code-editor.tsx'))

export function FileConflict({ agent, command }: { agent: AgentRow; command: FileCommand }) {
  const write = useWrite()
  const { principal, canWrite } = useSession()
  const { path, conflict, text: mine } = command
  const [merged, setMerged] = useState(mine ?? '')
  const theirs = conflict?.text ?? ''
  const take = () => void write([forget(command.id)])
  const save = (text: string) =>
    void write([
      forget(command.id),
      askGateway(agent, principal.person_id, newId(), 'file_write', { path, text, sha: conflict?.sha ?? null }),
    ])
  if (mine === null)
    return (
      <Banner
        meaning="warning"
        title={`${path} has changed in the meantime`}
        action={canWrite && <Button onClick={take}>Understood</Button>}
      >
        So it was not {command.action === 'file_delete' ? 'deleted' : 'restored'}. Look at what it says now, then decide
        anew.
      </Banner>
    )
  return (
    <section aria-label={`Conflict in ${path}`} className="grid min-w-0 gap-3">
      <Banner
        meaning="warning"
        title={conflict?.sha === null ? `${path} was deleted in the meantime` : `${path} has changed in the meantime`}
      >
        {conflict?.truncated
          ? 'The other version is too large to be shown here. Keep yours only if you know what it replaces.'
          : 'Yours was not saved. What the gateway has stands beside yours: merge them, or choose one.'}
      </Banner>
      <Suspense fallback={<p className="text-text-3">Opening the editor…</p>}>
        <CodeEditor
          key={command.id}
          path={path}
          initial={mine}
          onChange={setMerged}
          against={{ text: theirs, label: `${path}, as the gateway has it` }}
        />
      </Suspense>
      {canWrite && (
        <div className="flex flex-wrap gap-2">
          <Button variant="primary" onClick={() => save(merged)} disabled={merged === mine}>
            Save the merged text
          </Button>
          <Button onClick={() => save(mine)}>Keep mine</Button>
          <Button onClick={take}>Take theirs</Button>
        </div>
      )}
    </section>
  )
}
