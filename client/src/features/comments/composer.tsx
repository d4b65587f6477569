/** Where a comment is written: markdown, @mentions from a list, ⌘↵ sends. What is typed is kept in this browser until it is sent. */
import { SendHorizontal } from 'lucide-react'
import { type KeyboardEvent, useEffect, useId, useLayoutEffect, useRef, useState } from 'react'
import { Avatar } from '../../ui/avatar.tsx'
import { Button } from '../../ui/button.tsx'
import { cx } from '../../ui/cx.ts'
import { forget, keep, readKept } from '../tasks/use-draft.ts'
import { type Mentionable, matching, mentionKeys, typedMention } from './mentions.ts'

export interface ComposerProps {
  /** Unique per conversation: the draft is kept under it. */
  readonly name: string
  readonly mentionable: readonly Mentionable[]
  /** Rejects when it could not be saved: the text then comes back. */
  readonly onSend: (body: string, mentions: string[]) => Promise<void>
  readonly placeholder: string
  /** Beside the button: who will hear of it. */
  readonly hint?: string | undefined
}

export function Composer({ name, mentionable, onSend, placeholder, hint }: ComposerProps) {
  const id = useId()
  const field = useRef<HTMLTextAreaElement>(null)
  const [text, setText] = useState(() => readKept(name)?.text ?? '')
  const [caret, setCaret] = useState(0)
  const [active, setActive] = useState(0)
  const [dismissed, setDismissed] = useState<number>()
  const [error, setError] = useState<string>()
  const chosen = useRef<Mentionable[]>([])
  /** Where the caret belongs once the text is drawn. */
  const wanted = useRef<number>(undefined)

  const typed = typedMention(text, caret)
  const offers = typed && typed.start !== dismissed ? matching(typed.query, mentionable) : []
  const open = offers.length > 0
  const current = Math.min(active, offers.length - 1)

  useEffect(() => {
    if (text === '') forget(name)
    else keep(name, { base: '', text })
  }, [name, text])

  const pick = (who: Mentionable) => {
    if (!typed) return
    const before = text.slice(0, typed.start)
    const after = text.slice(caret).replace(/^ /, '')
    const inserted = `@${who.handle} `
    chosen.current.push(who)
    setText(before + inserted + after)
    setActive(0)
    const at = before.length + inserted.length
    setCaret(at)
    wanted.current = at
  }
  // In the same turn as the new text, so that the next key, however quick, is typed behind it.
  useLayoutEffect(() => {
    if (wanted.current === undefined) return
    field.current?.focus()
    field.current?.setSelectionRange(wanted.current, wanted.current)
    wanted.current = undefined
  })
  const send = async () => {
    const body = text.trim()
    if (body === '') return
    const mentions = mentionKeys(body, mentionable, chosen.current)
    setText('')
    setError(undefined)
    try {
      await onSend(body, mentions)
      chosen.current = []
    } catch (cause) {
      setText((now) => (now === '' ? body : now))
      setError(cause instanceof Error ? cause.message : String(cause))
    }
  }
  const onKeyDown = (event: KeyboardEvent<HTMLTextAreaElement>) => {
    if (event.nativeEvent.isComposing) return
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
      event.preventDefault()
      void send()
    } else if (open && (event.key === 'ArrowDown' || event.key === 'ArrowUp')) {
      event.preventDefault()
      setActive((current + (event.key === 'ArrowDown' ? 1 : offers.length - 1)) % offers.length)
    } else if (open && (event.key === 'Enter' || event.key === 'Tab')) {
      const who = offers[current]
      if (!who) return
      event.preventDefault()
      pick(who)
    } else if (event.key === 'Escape') {
      event.preventDefault()
      if (open && typed) setDismissed(typed.start)
      else event.currentTarget.blur()
    }
  }
  const place = () => setCaret(field.current?.selectionStart ?? 0)

  return (
    <div className="relative">
      {open && (
        <div
          id={`${id}-offers`}
          role="listbox"
          aria-label="Mention"
          className="float absolute bottom-full left-0 z-30 mb-1 w-72 max-w-full p-1"
        >
          {offers.map((who, i) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the text field handles the keys
            <div
              key={who.key}
              id={`${id}-${i}`}
              role="option"
              aria-selected={i === current}
              tabIndex={-1}
              data-highlighted={i === current || undefined}
              onPointerDown={(event) => event.preventDefault()}
              onClick={() => pick(who)}
              className="menu-item"
            >
              <Avatar actor={who.actor} decorative />
              <span className="min-w-0 flex-1 truncate">{who.actor.name}</span>
              {who.actor.kind === 'agent' && <span className="truncate text-xs text-text-3">@{who.handle}</span>}
            </div>
          ))}
        </div>
      )}
      <div className="control overflow-hidden">
        <textarea
          ref={field}
          value={text}
          rows={2}
          aria-label="Comment"
          aria-describedby={error ? `${id}-error` : undefined}
          placeholder={placeholder}
          aria-autocomplete="list"
          aria-controls={open ? `${id}-offers` : undefined}
          aria-activedescendant={open ? `${id}-${current}` : undefined}
          onChange={(event) => {
            setText(event.target.value)
            setCaret(event.target.selectionStart)
            setActive(0)
          }}
          onSelect={place}
          onKeyDown={onKeyDown}
          className="block max-h-80 min-h-14 w-full resize-none bg-transparent px-3 py-2 outline-none [field-sizing:content] touch:text-lg"
        />
        <div className="flex items-center gap-2 py-1.5 pr-1.5 pl-3">
          <span
            className={cx('min-w-0 flex-1 truncate text-xs', error ? 'text-danger-ink' : 'text-text-3')}
            id={`${id}-error`}
          >
            {error ?? hint}
          </span>
          <Button
            size="sm"
            icon={SendHorizontal}
            shortcut="mod+enter"
            disabled={text.trim() === ''}
            onClick={() => void send()}
          >
            Comment
          </Button>
        </div>
      </div>
    </div>
  )
}
