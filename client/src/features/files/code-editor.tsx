/** CodeMirror with HQ's colours. Loaded when somebody edits, not before: import it with `lazy`. */
import { json } from '@codemirror/lang-json'
import { markdown } from '@codemirror/lang-markdown'
import { HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { MergeView, unifiedMergeView } from '@codemirror/merge'
import { tags } from '@lezer/highlight'
import { basicSetup, EditorView } from 'codemirror'
import { useEffect, useRef } from 'react'

export type CodeEditorProps = {
  /** Taken when it opens; afterwards the editor has it. */
  initial: string
  path: string
  onChange: (text: string) => void
  /** Side by side with this one, which can't be changed; on a phone below each other. */
  against?: { readonly text: string; readonly label: string } | undefined
}

const LOOK = EditorView.theme({
  '&': { fontSize: '12px', color: 'var(--text-1)', backgroundColor: 'var(--surface-1)', maxHeight: '60dvh' },
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--font-mono, ui-monospace, monospace)', lineHeight: '20px' },
  '.cm-content': { caretColor: 'var(--text-1)', minHeight: '120px' },
  '.cm-cursor, .cm-dropCursor': { borderLeftColor: 'var(--text-1)' },
  '.cm-gutters': { backgroundColor: 'var(--surface-1)', color: 'var(--text-3)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'color-mix(in oklab, var(--surface-3) 40%, transparent)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'color-mix(in oklab, var(--accent) 26%, transparent)',
  },
  '.cm-panels': { backgroundColor: 'var(--surface-2)', color: 'var(--text-1)' },
  '.cm-changedLine': { backgroundColor: 'color-mix(in oklab, var(--warning) 14%, transparent) !important' },
  '.cm-changedText': { background: 'color-mix(in oklab, var(--warning) 30%, transparent) !important' },
  '.cm-deletedChunk': { backgroundColor: 'var(--danger-soft)' },
})

const COLOURS = HighlightStyle.define([
  { tag: tags.heading, color: 'var(--text-1)', fontWeight: '600' },
  { tag: [tags.strong], fontWeight: '600' },
  { tag: tags.emphasis, fontStyle: 'italic' },
  { tag: [tags.link, tags.url, tags.keyword], color: 'var(--accent-ink)' },
  { tag: [tags.string, tags.monospace], color: 'var(--good-ink)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--warning-ink)' },
  { tag: tags.propertyName, color: 'var(--busy-ink)' },
  { tag: [tags.comment, tags.meta, tags.quote, tags.processingInstruction], color: 'var(--text-3)' },
])

const language = (path: string) =>
  path.endsWith('.json') ? [json()] : /\.(?:md|markdown)$/i.test(path) ? [markdown()] : []

const base = (path: string, label: string) => [
  basicSetup,
  LOOK,
  syntaxHighlighting(COLOURS),
  ...language(path),
  EditorView.lineWrapping,
  EditorView.contentAttributes.of({ 'aria-label': label }),
]

export default function CodeEditor({ initial, path, onChange, against }: CodeEditorProps) {
  const place = useRef<HTMLDivElement>(null)
  const tell = useRef(onChange)
  tell.current = onChange
  const opened = useRef({ initial, against })
  useEffect(() => {
    const parent = place.current
    if (!parent) return
    const { initial: text, against: other } = opened.current
    const changes = EditorView.updateListener.of((update) => {
      if (update.docChanged) tell.current(update.state.doc.toString())
    })
    const mine = [...base(path, other ? `${path}, merged` : path), changes]
    if (other && matchMedia('(min-width: 768px)').matches) {
      const view = new MergeView({
        parent,
        a: { doc: other.text, extensions: [...base(path, other.label), EditorView.editable.of(false)] },
        b: { doc: text, extensions: mine },
        revertControls: 'a-to-b',
        highlightChanges: true,
      })
      view.b.focus()
      return () => view.destroy()
    }
    const view = new EditorView({
      parent,
      doc: text,
      extensions: other ? [...mine, unifiedMergeView({ original: other.text, mergeControls: true })] : mine,
    })
    view.focus()
    return () => view.destroy()
  }, [path])
  return (
    <div
      ref={place}
      className="min-w-0 overflow-auto rounded-card border border-line bg-surface-1 focus-within:outline-2 focus-within:outline-accent"
    />
  )
}
