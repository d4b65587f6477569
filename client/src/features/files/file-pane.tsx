/** One file: to read, to edit, and how its last change stands. A draft outlives a look at another file, until the page is closed. */
import { History, Pencil, Trash2 } from 'lucide-react'
import { type KeyboardEvent, lazy, Suspense, useState } from 'react'
import { newId, useSession, useWrite } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { CodeView } from '../../ui/code-view.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { DiffView } from '../../ui/diff-view.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { RelativeTime } from '../../ui/relative-time.tsx'
import { Status } from '../../ui/status.tsx'
import type { AgentRow } from '../agents/agent-query.ts'
import { askGateway, blobSha, type FileCommand, type FileRow, fileState, forget } from './file-commands.ts'
import { FileConflict } from './file-conflict.tsx'
import { FileHistory } from './file-history.tsx'

const CodeEditor = lazy(() => import('./code-editor.tsx'))

/** `sha` and `from`: what the draft was made from. */
interface Draft {
  readonly text: string
  readonly from: string
  readonly sha: string | null
}
const drafts = new Map<string, Draft>()
const MAX_BYTES = 1024 * 1024

interface Props {
  readonly agent: AgentRow
  readonly path: string
  readonly file: FileRow | undefined
  readonly command: FileCommand | undefined
  /** A file that is to be made. */
  readonly fresh: boolean
  readonly onDone: () => void
}

export function FilePane({ agent, path, file, command, fresh, onDone }: Props) {
  const write = useWrite()
  const { principal, canWrite } = useSession()
  const key = `${agent.id} ${path}`
  const [draft, setDraftState] = useState<Draft | undefined>(
    () => drafts.get(key) ?? (fresh ? { text: '', from: '', sha: null } : undefined),
  )
  // What was just saved, until the list of commands (`after`: its newest before) has it: a moment in which the old text would show as the saved one.
  const [sent, setSent] = useState<{ text: string; after: string | undefined }>()
  const [comparing, setComparing] = useState(false)
  const [history, setHistory] = useState(false)
  const [deleting, setDeleting] = useState(false)
  const setDraft = (next: Draft | undefined) => {
    if (next) drafts.set(key, next)
    else drafts.delete(key)
    setDraftState(next)
  }
  const state = fileState(command)
  const waiting = state.kind === 'waiting' ? state.command : undefined
  const underway = sent !== undefined && sent.after === command?.id ? sent : undefined
  // For good: a command that is forgotten leaves the one before it as the newest.
  if (sent !== undefined && !underway) setSent(undefined)
  const text = underway?.text ?? waiting?.text ?? file?.content ?? null
  const sha = file?.sha ?? null
  const able = canWrite && agent.gateway_id !== null && agent.deleted_at === null
  const ask = (action: 'file_write' | 'file_delete', payload: Record<string, unknown>) =>
    write([
      ...(state.kind === 'refused' || state.kind === 'conflict' ? [forget(state.command.id)] : []),
      askGateway(agent, principal.person_id, newId(), action, { path, ...payload }),
    ])

  const edit = async (from = text ?? '', start = from) => {
    const coming = underway?.text ?? waiting?.text ?? null
    const base = coming === null ? sha : await blobSha(coming)
    setDraft({ text: start, from, sha: base })
  }
  const save = async () => {
    if (!draft) return
    await ask('file_write', { text: draft.text, sha: draft.sha })
    setSent({ text: draft.text, after: command?.id })
    setDraft(undefined)
    onDone()
  }
  const tooLarge = draft !== undefined && new TextEncoder().encode(draft.text).length > MAX_BYTES
  const changed = draft !== undefined && (draft.text !== draft.from || draft.sha === null)

  if (draft) {
    const onKeyDown = (event: KeyboardEvent) => {
      if (!(event.ctrlKey || event.metaKey) || event.key !== 's') return
      event.preventDefault()
      if (changed && !tooLarge) void save()
    }
    return (
      // biome-ignore lint/a11y/noStaticElementInteractions: the shortcut of what stands within
      <div className="grid min-w-0 gap-3" onKeyDown={onKeyDown}>
        <div className="flex flex-wrap items-center gap-2">
          <span className="min-w-0 flex-1 truncate font-mono text-xs text-text-2">{path}</span>
          <Button aria-pressed={comparing} onClick={() => setComparing(!comparing)} disabled={!changed}>
            {comparing ? 'Edit' : 'Changes'}
          </Button>
          <Button
            onClick={() => {
              setDraft(undefined)
              onDone()
            }}
          >
            Discard
          </Button>
          <Button variant="primary" onClick={() => void save()} disabled={!changed || tooLarge}>
            Save
          </Button>
        </div>
        {tooLarge && (
          <Banner meaning="danger" title="Too large">
            A file may have 1 MiB. Make it shorter, then save.
          </Banner>
        )}
        {comparing ? (
          <DiffView before={draft.from} after={draft.text} title={path} className="max-h-[65dvh]" />
        ) : (
          <Suspense fallback={<p className="text-text-3">Opening the editor…</p>}>
            <CodeEditor initial={draft.text} path={path} onChange={(next) => setDraft({ ...draft, text: next })} />
          </Suspense>
        )}
      </div>
    )
  }
  if (state.kind === 'conflict') return <FileConflict key={state.command.id} agent={agent} command={state.command} />
  return (
    <div className="grid min-w-0 gap-2">
      {state.kind === 'refused' && (
        <Banner
          meaning="danger"
          title="The change was refused"
          action={
            able && (
              <>
                {state.command.text !== null && (
                  <Button onClick={() => void edit(text ?? '', state.command.text ?? '')}>Edit again</Button>
                )}
                <Button onClick={() => void write([forget(state.command.id)])}>Forget it</Button>
              </>
            )
          }
        >
          {state.command.error_message ?? 'It was cancelled.'}
        </Banner>
      )}
      {waiting && <Waiting agent={agent} command={waiting} />}
      {text === null ? (
        <p className="text-text-3">
          {file
            ? `${path} is not shown here: it is not text, or larger than 64 KiB (${file.size.toLocaleString('en')} bytes).`
            : `${path} is not there.`}
        </p>
      ) : (
        <CodeView
          code={text}
          path={path}
          className="max-h-[70dvh]"
          actions={
            <>
              {able && <IconButton size="sm" label="Edit" icon={Pencil} onClick={() => void edit()} />}
              <IconButton size="sm" label="Versions" icon={History} onClick={() => setHistory(true)} />
              {able && !waiting && !underway && (
                <IconButton size="sm" label="Delete" icon={Trash2} onClick={() => setDeleting(true)} />
              )}
            </>
          }
        />
      )}
      {file && !waiting && !underway && (
        <p className="text-xs text-text-3">
          Saved. Last change <RelativeTime at={file.updated_at} words />
        </p>
      )}
      {history && <FileHistory agent={agent} path={path} text={text} sha={sha} onClose={() => setHistory(false)} />}
      <Confirm
        open={deleting}
        onOpenChange={setDeleting}
        title={`Delete ${path}?`}
        confirm="Delete"
        danger
        onConfirm={() => void ask('file_delete', { sha })}
      >
        {agent.name} will not have it any more. Its versions stay, and it can be restored from them.
      </Confirm>
    </div>
  )
}

const DOING = {
  file_write: 'Waits to be saved',
  file_delete: 'Waits to be deleted',
  file_restore: 'Waits to be restored',
}

function Waiting({ agent, command }: { agent: AgentRow; command: FileCommand }) {
  return (
    <p aria-live="polite" className="flex flex-wrap items-center gap-x-1">
      <Status
        meaning="waiting"
        shape="clock"
        label={DOING[command.action]}
        detail={`for gateway “${agent.gateway_label ?? '?'}”, since`}
      />
      <RelativeTime at={command.created_at} words className="text-text-2" />
    </p>
  )
}
