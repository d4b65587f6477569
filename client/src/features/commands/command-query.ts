/** Commands with the names around them, and their output. */
import type { CommandStep, Row } from '@hq/shared/schema/tables.ts'
import type { Meaning } from '../../ui/cx.ts'
import type { LogLine } from '../../ui/log-view.tsx'
import type { Shape } from '../../ui/status.tsx'
import type { Step, StepState } from '../../ui/steps.tsx'

export type CommandRow = Row<'agent_commands'> & {
  readonly agent_name: string | null
  readonly agent_slug: string | null
  readonly agent_meta: Record<string, unknown> | null
  readonly gateway_label: string | null
  readonly gateway_seen_at: string | null
  readonly person_name: string | null
}

export const COMMANDS_SQL = `
  select c.*, a.name as agent_name, a.slug as agent_slug, a.meta as agent_meta,
    g.label as gateway_label, g.last_seen_at as gateway_seen_at, p.name as person_name
  from agent_commands c
  left join agents a on a.id = c.agent_id
  left join gateways g on g.id = c.gateway_id
  left join people p on p.id = c.requested_by`

export const COMMAND_TABLES = ['agent_commands', 'agents', 'gateways', 'people'] as const

export const COMMAND_STATUS: Record<CommandRow['status'], { meaning: Meaning; shape: Shape; label: string }> = {
  pending: { meaning: 'waiting', shape: 'clock', label: 'Waiting' },
  leased: { meaning: 'busy', shape: 'arc', label: 'Starting' },
  running: { meaning: 'busy', shape: 'arc', label: 'Running' },
  done: { meaning: 'good', shape: 'check', label: 'Done' },
  failed: { meaning: 'danger', shape: 'cross', label: 'Failed' },
  cancelled: { meaning: 'neutral', shape: 'slash', label: 'Cancelled' },
  dead_letter: { meaning: 'danger', shape: 'cross', label: 'Given up' },
}

const ACTION_NAMES: Partial<Record<CommandRow['action'], string>> = {
  provision: 'Set up',
  update: 'Reload files',
  remove: 'Remove',
  list_models: 'List models',
}

/** "Set up", "List models"; others from their own name. */
export const actionName = (action: CommandRow['action']): string => {
  const words = action.replaceAll('_', ' ')
  return ACTION_NAMES[action] ?? words.charAt(0).toUpperCase() + words.slice(1)
}

export const isLive = ({ status }: Pick<CommandRow, 'status'>): boolean =>
  ['pending', 'leased', 'running'].includes(status)

const STEP_STATES: Record<CommandStep['state'], StepState> = {
  waiting: 'todo',
  running: 'doing',
  done: 'done',
  failed: 'failed',
  skipped: 'skipped',
}

export const stepsOf = ({ progress }: Pick<CommandRow, 'progress'>): Step[] =>
  (progress.steps ?? []).map(({ key, label, state, detail }) => ({ id: key, label, state: STEP_STATES[state], detail }))

/** Pieces of output, cut into lines. A line that a piece leaves open goes on in the next of the same stream. */
export function linesOf(pieces: readonly Pick<Row<'command_output'>, 'stream' | 'text'>[]): LogLine[] {
  const lines: LogLine[] = []
  let open: LogLine | undefined
  for (const { stream, text } of pieces) {
    const kind = stream === 'stderr' ? 'err' : stream === 'progress' ? 'system' : 'out'
    const parts = text.split('\n')
    parts.forEach((part, index) => {
      const isLast = index === parts.length - 1
      if (isLast && part === '') return
      if (index === 0 && open && open.stream === kind) open.text += part
      else {
        open = { n: lines.length, text: part, stream: kind }
        lines.push(open)
      }
      if (!isLast) open = undefined
    })
  }
  return lines
}
