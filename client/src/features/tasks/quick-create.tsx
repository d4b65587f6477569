/** The line for a new task: type, Enter, next. Marks in the text (`@who`, `!high`, `#stream`) are taken along. */
import { Plus } from 'lucide-react'
import { type Ref, useState } from 'react'
import { Kbd } from '../../ui/kbd.tsx'
import type { TaskActions } from './actions.ts'
import type { Directory } from './directory.ts'
import type { TaskStatus } from './model.ts'
import { parseQuick } from './quick.ts'
import { report } from './use-actions.ts'

export function QuickCreate(props: {
  actions: TaskActions
  directory: Directory
  /** What the list is filtered by: a new task belongs where it was made. */
  defaults: { status?: TaskStatus | undefined; stream_id?: string | undefined }
  onCreated: (id: string) => void
  field: Ref<HTMLInputElement>
}) {
  const { actions, directory, defaults, onCreated, field } = props
  const [text, setText] = useState('')
  const create = async () => {
    if (text.trim() === '') return
    const line = text
    setText('')
    try {
      onCreated(await actions.create({ ...defaults, ...parseQuick(line, directory) }))
    } catch (error) {
      setText((now) => (now === '' ? line : now))
      report(error)
    }
  }
  return (
    <div className="flex h-(--row) shrink-0 items-center gap-2 border-b border-line pr-3 pl-4 focus-within:bg-surface-2 sm:pl-[38px]">
      <Plus className="size-4 shrink-0 text-text-3" strokeWidth={1.75} aria-hidden="true" />
      <input
        ref={field}
        value={text}
        aria-label="New task"
        placeholder="New task"
        enterKeyHint="done"
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.nativeEvent.isComposing) return
          if (event.key === 'Enter') {
            event.preventDefault()
            void create()
          } else if (event.key === 'Escape') event.currentTarget.blur()
        }}
        className="h-full min-w-0 flex-1 bg-transparent outline-none touch:text-lg"
      />
      <span className="flex shrink-0 items-center gap-1.5 text-xs text-text-3 max-md:hidden">
        {text === '' ? <Kbd keys="c" /> : <span>@who !high #stream · ↵ adds it, and the next can follow</span>}
      </span>
    </div>
  )
}
