import type { Actor } from '../ui/avatar.tsx'
import type { Hue, Meaning } from '../ui/cx.ts'
import type { Shape } from '../ui/status.tsx'
import type { RowSync } from '../ui/sync-dot.tsx'

/** Made-up rows for /dev/ui and /dev/shell. Nothing outside src/dev may import this. */
export const ana: Actor = { kind: 'person', id: 'p1', name: 'Ana Duarte' }
export const ben: Actor = { kind: 'person', id: 'p2', name: 'Ben Okafor' }
export const mio: Actor = { kind: 'person', id: 'p3', name: '田中 美緒' }
export const scout: Actor = { kind: 'agent', id: 'a1', name: 'Scout', emoji: '🔭', hue: 6 }
export const quill: Actor = { kind: 'agent', id: 'a2', name: 'Quill', emoji: '🪶', hue: 8 }
export const atlas: Actor = { kind: 'agent', id: 'a3', name: 'Atlas', emoji: '🧭', hue: 4 }
export const actors = [ana, scout, ben, quill, mio, atlas] as const

export const statuses: { id: string; label: string; shape: Shape; meaning: Meaning }[] = [
  { id: 'backlog', label: 'Backlog', shape: 'dotted', meaning: 'neutral' },
  { id: 'todo', label: 'To do', shape: 'ring', meaning: 'neutral' },
  { id: 'in_progress', label: 'In progress', shape: 'half', meaning: 'busy' },
  { id: 'in_review', label: 'In review', shape: 'three-quarter', meaning: 'warning' },
  { id: 'blocked', label: 'Blocked', shape: 'bar', meaning: 'danger' },
  { id: 'done', label: 'Done', shape: 'check', meaning: 'good' },
]

export type SampleTask = {
  key: string
  title: string
  status: number
  stream: { name: string; hue: Hue }
  actor: Actor
  hours: number
  sync: RowSync
  comments: number
}

const TITLES = [
  'Draft the investor update for November',
  'Compare three invoicing providers and recommend one',
  'Summarise last week’s support threads',
  'Collect conference deadlines for spring',
  'Rewrite the onboarding mail in a warmer tone',
  'Check all outbound links on the pricing page',
  'Prepare questions for the call with Nordlicht',
  'Reconcile October’s card statements',
  'Find a quiet venue for twelve people in Porto',
  'Turn the interview notes into a one-page brief',
]
export const LONG_TITLES = [
  'Datenschutz-Folgenabschätzung für die Rechnungsverarbeitungsschnittstelle mit dem Kraftfahrzeughaftpflichtversicherer abstimmen und zusammenfassen',
  '四半期ごとの取引先向け報告書を作成し、関係者全員に確認を依頼したうえで来週の金曜日までに提出する',
  'Aufmerksamkeitsdefizitbewältigungsstrategiehandbuch',
]
const STREAMS: SampleTask['stream'][] = [
  { name: 'Finance', hue: 4 },
  { name: 'Writing', hue: 8 },
  { name: 'Research', hue: 6 },
  { name: 'Home', hue: 2 },
]
const SYNC: RowSync[] = [
  'synced',
  'synced',
  'synced',
  'pending',
  'synced',
  'synced',
  'rejected',
  'synced',
  'synced',
  'conflict',
  'synced',
]

export function sampleTask(i: number, long = false): SampleTask {
  const titles = long ? LONG_TITLES : TITLES
  return {
    key: `T-${1000 + i}`,
    title: titles[i % titles.length] ?? '',
    status: (i * 7 + (i >> 2)) % statuses.length,
    stream: STREAMS[(i * 3) % STREAMS.length] ?? { name: 'Home', hue: 2 },
    actor: actors[(i * 5) % actors.length] ?? ana,
    hours: 1 + ((i * 13) % 400),
    sync: SYNC[i % SYNC.length] ?? 'synced',
    comments: (i * 11) % 5,
  }
}
