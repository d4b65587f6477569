/** What can be chosen for a task, as menu entries (by pointer, at the place) and as a palette (by keyboard, for a selection). */
import { CalendarX, UserX } from 'lucide-react'
import { type ReactNode, useMemo } from 'react'
import { Avatar } from '../../ui/avatar.tsx'
import { CommandPalette, type PaletteItem } from '../../ui/command-palette.tsx'
import { DatePicker } from '../../ui/date-field.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import type { MenuEntry } from '../../ui/menu.tsx'
import type { TaskActions } from './actions.ts'
import { agentActor, type Directory, personActor } from './directory.ts'
import { dayIn, dueOfDay } from './due.ts'
import { PriorityMark, StatusMark, StreamDot } from './marks.tsx'
import { type Assignee, PRIORITIES, PRIORITY, plural, STATUS, STATUSES } from './model.ts'
import { report, toastUndo } from './use-actions.ts'

export type ChoiceKind = 'status' | 'priority' | 'assignee' | 'stream' | 'due'

interface Choice {
  readonly key: string
  readonly label: string
  readonly icon: ReactNode
  readonly hint?: string | undefined
  readonly group?: string | undefined
  readonly keywords?: string[] | undefined
  readonly apply: (ids: readonly string[]) => Promise<number>
}

const NOBODY: Assignee = null

/** Everything that a kind offers, in order. */
export function choicesOf(kind: Exclude<ChoiceKind, 'due'>, actions: TaskActions, directory: Directory): Choice[] {
  switch (kind) {
    case 'status':
      return STATUSES.map((status) => ({
        key: status,
        label: STATUS[status].label,
        icon: <StatusMark status={status} />,
        apply: (ids) => actions.setStatus(ids, status),
      }))
    case 'priority':
      return PRIORITIES.map((priority) => ({
        key: priority,
        label: PRIORITY[priority].label,
        icon: <PriorityMark priority={priority} />,
        apply: (ids) => actions.setPriority(ids, priority),
      }))
    case 'assignee':
      return [
        ...directory.agents.map((agent) => ({
          key: agent.id,
          label: agent.name,
          icon: <Avatar actor={agentActor(agent)} decorative />,
          hint: agent.pause_requested_at ? 'paused' : undefined,
          group: 'Agents',
          keywords: [agent.slug],
          apply: (ids: readonly string[]) => actions.assign(ids, { type: 'agent', id: agent.id }, agent.name),
        })),
        ...directory.people.map((person) => ({
          key: person.id,
          label: person.name,
          icon: <Avatar actor={personActor(person)} decorative />,
          hint: person.id === directory.me ? 'you' : undefined,
          group: 'People',
          keywords: person.id === directory.me ? ['me', person.email] : [person.email],
          apply: (ids: readonly string[]) => actions.assign(ids, { type: 'human', id: person.id }, person.name),
        })),
        {
          key: 'none',
          label: 'Nobody',
          icon: <UserX className="size-4 text-text-3" strokeWidth={1.75} aria-hidden="true" />,
          group: 'Nobody',
          apply: (ids) => actions.assign(ids, NOBODY, ''),
        },
      ]
    case 'stream':
      return [
        ...directory.streams.map((stream) => ({
          key: stream.id,
          label: stream.name,
          icon: <StreamDot stream={stream} />,
          apply: (ids: readonly string[]) => actions.setStream(ids, stream.id, stream.name),
        })),
        {
          key: 'none',
          label: 'No stream',
          icon: <span className="size-2 rounded-full border border-text-3" aria-hidden="true" />,
          apply: (ids) => actions.setStream(ids, null, ''),
        },
      ]
  }
}

const run = (choice: Choice, ids: readonly string[]): void => {
  choice
    .apply(ids)
    .then((changed) => {
      if (changed > 1) toastUndo(`${plural(changed, 'task')}: ${choice.label}`)
    })
    .catch(report)
}

/** Entries for a Menu at one task. `current`: the key that holds now. */
export function choiceEntries(
  kind: Exclude<ChoiceKind, 'due'>,
  ids: readonly string[],
  current: string | undefined,
  actions: TaskActions,
  directory: Directory,
): MenuEntry[] {
  const entries: MenuEntry[] = []
  let group: string | undefined
  for (const choice of choicesOf(kind, actions, directory)) {
    if (choice.group !== group) {
      if (choice.group === 'Nobody') entries.push({ kind: 'separator' })
      else if (choice.group) entries.push({ kind: 'label', label: choice.group })
      group = choice.group
    }
    entries.push({
      kind: 'item',
      label: choice.label,
      icon: choice.icon,
      hint: choice.hint,
      checked: choice.key === current,
      onSelect: () => run(choice, ids),
    })
  }
  return entries
}

const HEADING: Record<Exclude<ChoiceKind, 'due'>, string> = {
  status: 'Change status',
  priority: 'Change priority',
  assignee: 'Assign to',
  stream: 'Move to stream',
}

/** The palette of one kind for some tasks; `undefined` is closed. */
export function Chooser(props: {
  chosen: { kind: ChoiceKind; ids: readonly string[]; name: string } | undefined
  onClose: () => void
  actions: TaskActions
  directory: Directory
}) {
  const { chosen, onClose, actions, directory } = props
  const kind = chosen?.kind
  const groups = useMemo(() => {
    if (!chosen || chosen.kind === 'due') return []
    const items = choicesOf(chosen.kind, actions, directory).map(
      (choice): PaletteItem => ({
        id: choice.key,
        label: choice.label,
        leading: choice.icon,
        hint: choice.hint,
        keywords: choice.keywords,
        onSelect: () => run(choice, chosen.ids),
      }),
    )
    return [{ heading: HEADING[chosen.kind], items }]
  }, [chosen, actions, directory])
  return (
    <>
      <CommandPalette
        open={chosen !== undefined && kind !== 'due'}
        onOpenChange={(open) => !open && onClose()}
        groups={groups}
        scope={
          chosen &&
          (chosen.ids.length === 1 ? (
            <span className="block max-w-48 truncate">{chosen.name}</span>
          ) : (
            plural(chosen.ids.length, 'task')
          ))
        }
        placeholder={kind && kind !== 'due' ? `${HEADING[kind]}…` : ''}
      />
      <Dialog
        open={kind === 'due'}
        onOpenChange={(open) => !open && onClose()}
        size="sm"
        title={chosen && chosen.ids.length > 1 ? `Due date of ${plural(chosen.ids.length, 'task')}` : 'Due date'}
        footer={
          <button
            type="button"
            className="link inline-flex items-center gap-1.5"
            onClick={() => {
              if (chosen) actions.setDue(chosen.ids, null).catch(report)
              onClose()
            }}
          >
            <CalendarX className="size-4" strokeWidth={1.75} aria-hidden="true" /> No due date
          </button>
        }
      >
        <DatePicker
          label="Due date"
          value={null}
          today={dayIn(Date.now(), directory.zone)}
          onChoose={(day) => {
            if (chosen) actions.setDue(chosen.ids, day ? dueOfDay(day, directory.zone) : null).catch(report)
            onClose()
          }}
        />
      </Dialog>
    </>
  )
}
