/** Title and description, edited where they are read. They save themselves; what somebody else wrote meanwhile is set beside, not over. */
import { useLayoutEffect, useRef, useState } from 'react'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { cx } from '../../ui/cx.ts'
import { Markdown } from '../comments/markdown.tsx'
import type { TaskActions } from './actions.ts'
import type { Directory } from './directory.ts'
import { isDirty } from './draft.ts'
import { cleanTitle, type Task } from './model.ts'
import { report } from './use-actions.ts'
import { type DraftField, useDraft } from './use-draft.ts'

interface TextProps {
  readonly task: Task
  readonly actions: TaskActions
  readonly directory: Directory
}

export function TaskTitle({ task, actions, directory }: TextProps) {
  const field = useDraft(
    `task.${task.id}.title`,
    task.title,
    // An emptied title is not saved: the old one comes back on leaving the field.
    (text) => (cleanTitle(text) === '' ? Promise.resolve() : actions.saveText(task.id, 'title', cleanTitle(text))),
    report,
  )
  const { draft, type, flush } = field
  const closed = task.status === 'done' || task.status === 'cancelled'
  return (
    <>
      <textarea
        value={draft.text}
        rows={1}
        aria-label="Title"
        readOnly={!directory.canWrite}
        spellCheck
        onChange={(event) => type(event.target.value.replace(/\n/g, ' '))}
        onBlur={() => {
          if (cleanTitle(draft.text) === '') type(task.title)
          flush()
        }}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return
          if (event.key === 'Enter' || event.key === 'Escape') {
            event.preventDefault()
            event.currentTarget.blur()
          }
        }}
        className={cx(
          'title block w-full resize-none rounded-control bg-transparent py-0.5 outline-offset-4 [field-sizing:content]',
          closed && 'text-text-2',
        )}
      />
      <Theirs field={field} what="title" />
    </>
  )
}

export function TaskDescription({ task, actions, directory }: TextProps) {
  const [editing, setEditing] = useState(false)
  const area = useRef<HTMLTextAreaElement>(null)
  const field = useDraft(
    `task.${task.id}.description`,
    task.description ?? '',
    (text) => actions.saveText(task.id, 'description', text.trim() === '' ? null : text),
    report,
  )
  const { draft, type, flush } = field
  const open = editing || draft.theirs !== undefined
  useLayoutEffect(() => {
    const element = area.current
    if (!editing || !element) return
    element.focus()
    element.setSelectionRange(element.value.length, element.value.length)
  }, [editing])

  if (!open)
    return (
      <div className="group/description relative min-w-0">
        {draft.text === '' ? (
          directory.canWrite && (
            <button
              type="button"
              onClick={() => setEditing(true)}
              className="w-full rounded-control py-1 text-left text-text-3 hover:text-text-2 touch:py-3"
            >
              Add a description…
            </button>
          )
        ) : (
          <>
            {/* biome-ignore lint/a11y/noStaticElementInteractions: a shortcut for the pointer; the button beside is the way for everybody */}
            {/* biome-ignore lint/a11y/useKeyWithClickEvents: as above */}
            <div
              onClick={(event) => {
                const onLink = event.target instanceof HTMLElement && event.target.closest('a')
                if (directory.canWrite && !onLink && window.getSelection()?.isCollapsed) setEditing(true)
              }}
            >
              <Markdown text={draft.text} size="read" mentionable={directory.mentionable} />
            </div>
            {directory.canWrite && (
              <Button
                variant="ghost"
                size="sm"
                onClick={() => setEditing(true)}
                className="absolute -top-1 right-0 bg-surface-1 opacity-0 group-hover/description:opacity-100 focus-visible:opacity-100 touch:static touch:-ml-2 touch:opacity-100"
              >
                Edit
                <span className="sr-only">the description</span>
              </Button>
            )}
          </>
        )}
      </div>
    )
  return (
    <div className="min-w-0">
      <textarea
        ref={area}
        value={draft.text}
        aria-label="Description"
        placeholder="What should be done, and how one knows that it is done. Markdown works."
        onChange={(event) => type(event.target.value)}
        onBlur={() => {
          flush()
          setEditing(false)
        }}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return
          if (event.key === 'Escape' || (event.key === 'Enter' && (event.metaKey || event.ctrlKey))) {
            event.preventDefault()
            event.currentTarget.blur()
          }
        }}
        className="control reading block min-h-32 w-full max-w-none resize-none px-3 py-2 [field-sizing:content]"
      />
      <p className="pt-1 text-xs text-text-3" aria-live="polite">
        {isDirty(draft) ? 'Saving…' : 'Saved on this device'} · Esc closes
      </p>
      <Theirs field={field} what="description" />
    </div>
  )
}

/** Both versions, and the choice. Nothing is saved until it is made. */
function Theirs({ field, what }: { field: DraftField; what: string }) {
  const { draft, keepMine, takeTheirs, flush } = field
  if (draft.theirs === undefined) return null
  return (
    <Banner
      meaning="warning"
      title={`Somebody changed this ${what} while you were writing`}
      className="mt-2"
      action={
        <>
          <Button
            size="sm"
            onPointerDown={(event) => event.preventDefault()}
            onClick={() => {
              keepMine()
              requestAnimationFrame(flush)
            }}
          >
            Keep mine
          </Button>
          <Button size="sm" onPointerDown={(event) => event.preventDefault()} onClick={takeTheirs}>
            Take theirs
          </Button>
        </>
      }
    >
      <p className="line-clamp-4 whitespace-pre-wrap">
        {draft.theirs === '' ? 'Theirs is empty.' : `Theirs: ${draft.theirs}`}
      </p>
    </Banner>
  )
}
