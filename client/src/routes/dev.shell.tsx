import { createFileRoute } from '@tanstack/react-router'
import { DevShell } from '../dev/dev-shell.tsx'

/** `?view=board` shows the board, `?empty=1` an empty screen, `?long=1` long German and Japanese text. */
export const Route = createFileRoute('/dev/shell')({
  validateSearch: (search: Record<string, unknown>): { view?: 'board'; empty?: true; long?: true } => ({
    ...(search.view === 'board' ? { view: 'board' } : {}),
    ...(search.empty ? { empty: true } : {}),
    ...(search.long ? { long: true } : {}),
  }),
  component: DevShell,
})
