import type { ReactNode } from 'react'

/** Our own small line drawings for empty states, 120 × 80: two greys and one touch of the accent. */
export type DrawingName =
  | 'inbox'
  | 'agents'
  | 'tasks'
  | 'commands'
  | 'gateways'
  | 'knowledge'
  | 'contacts'
  | 'search'
  | 'offline'
  | 'error'
  | 'files'
  | 'done'

const line = {
  fill: 'none',
  stroke: 'var(--text-3)',
  strokeWidth: 1.5,
  strokeLinecap: 'round',
  strokeLinejoin: 'round',
} as const
const faint = { ...line, stroke: 'var(--line-strong)' } as const
const touch = { ...line, stroke: 'var(--accent)' } as const
const paper = { ...line, fill: 'var(--surface-1)' } as const
const wash = { fill: 'var(--surface-3)' } as const
const dot = { fill: 'var(--accent)' } as const

const DRAWINGS: Record<DrawingName, ReactNode> = {
  inbox: (
    <>
      <path d="M30 44l9-22h42l9 22v18a4 4 0 0 1-4 4H34a4 4 0 0 1-4-4Z" {...paper} />
      <path d="M30 44h17c2 0 3 2 4 4s3 4 9 4 8-2 9-4 2-4 4-4h17" {...line} />
      <path d="M50 30h20M46 37h28" {...faint} />
      <path d="M60 6v6M46 9l3 5M74 9l-3 5" {...touch} />
    </>
  ),
  agents: (
    <>
      <rect x="22" y="30" width="30" height="30" rx="8" {...faint} />
      <rect x="68" y="30" width="30" height="30" rx="8" {...faint} />
      <rect x="41" y="20" width="38" height="38" rx="10" {...paper} />
      <circle cx="53" cy="37" r="2.4" fill="var(--text-3)" />
      <circle cx="67" cy="37" r="2.4" fill="var(--text-3)" />
      <path d="M54 46c3 3 9 3 12 0" {...line} />
      <path d="M60 20v-7" {...touch} />
      <circle cx="60" cy="10" r="3" {...dot} />
      <path d="M34 70h52" {...faint} />
    </>
  ),
  tasks: (
    <>
      <rect x="30" y="12" width="60" height="56" rx="7" {...paper} />
      <circle cx="42" cy="27" r="4" {...touch} />
      <path d="M40.2 27l1.4 1.5 2.4-3" {...touch} />
      <path d="M53 27h26" {...line} />
      <circle cx="42" cy="41" r="4" {...line} />
      <path d="M53 41h19" {...faint} />
      <circle cx="42" cy="55" r="4" {...line} strokeDasharray="2 2.2" />
      <path d="M53 55h23" {...faint} />
    </>
  ),
  commands: (
    <>
      <rect x="22" y="16" width="76" height="48" rx="7" {...paper} />
      <path d="M22 27h76" {...faint} />
      <circle cx="29" cy="21.5" r="1.5" fill="var(--line-strong)" />
      <circle cx="35" cy="21.5" r="1.5" fill="var(--line-strong)" />
      <path d="M33 38l7 6-7 6" {...touch} />
      <path d="M46 51h18" {...line} />
    </>
  ),
  gateways: (
    <>
      <rect x="36" y="14" width="48" height="22" rx="5" {...paper} />
      <rect x="36" y="40" width="48" height="22" rx="5" {...paper} />
      <circle cx="45" cy="25" r="2.4" {...dot} />
      <circle cx="45" cy="51" r="2.4" {...wash} />
      <path d="M54 25h20M54 51h14" {...faint} />
      <path d="M60 62v8M38 70h44" {...line} />
      <path d="M20 30c-4 5-4 11 0 16M100 30c4 5 4 11 0 16" {...faint} />
    </>
  ),
  knowledge: (
    <>
      <path d="M60 24c-8-6-18-7-32-6v42c14-1 24 0 32 6 8-6 18-7 32-6V18c-14-1-24 0-32 6Z" {...paper} />
      <path d="M60 24v42" {...line} />
      <path d="M36 30c6 0 11 1 16 3M36 39c6 0 11 1 16 3M68 33c5-2 10-3 16-3" {...faint} />
      <path d="M68 42c5-2 10-3 16-3M68 51c4-1.6 7-2.4 11-2.7" {...touch} />
    </>
  ),
  contacts: (
    <>
      <circle cx="60" cy="30" r="11" {...paper} />
      <path d="M40 64c2-13 10-18 20-18s18 5 20 18" {...line} />
      <circle cx="28" cy="36" r="7" {...faint} />
      <path d="M16 60c1-8 6-12 12-12" {...faint} />
      <circle cx="92" cy="36" r="7" {...faint} />
      <path d="M104 60c-1-8-6-12-12-12" {...faint} />
      <path d="M56 30l3 3 6-7" {...touch} />
    </>
  ),
  search: (
    <>
      <circle cx="55" cy="36" r="19" {...paper} />
      <path d="M69 50l15 15" {...line} strokeWidth={2.5} />
      <path d="M46 33h18M46 40h11" {...faint} />
      <path d="M84 20h8M88 16v8" {...touch} />
    </>
  ),
  offline: (
    <>
      <path d="M38 54h46a12 12 0 0 0 1-24 18 18 0 0 0-34-5 14 14 0 0 0-16 15c-6 1-9 4-9 8 0 4 4 6 12 6Z" {...paper} />
      <path d="M44 66h32" {...faint} strokeDasharray="3 5" />
      <circle cx="60" cy="66" r="3" {...dot} />
      <path d="M32 68L88 14" {...touch} />
    </>
  ),
  error: (
    <>
      <path d="M60 14l32 54H28Z" {...paper} />
      <path d="M60 33v15" {...touch} strokeWidth={2.2} />
      <circle cx="60" cy="57" r="1.8" {...dot} />
      <path d="M18 68h6M96 68h6" {...faint} />
    </>
  ),
  files: (
    <>
      <path d="M28 22a4 4 0 0 1 4-4h18l6 7h32a4 4 0 0 1 4 4v31a4 4 0 0 1-4 4H32a4 4 0 0 1-4-4Z" {...paper} />
      <path d="M28 34h64" {...faint} />
      <path d="M54 49h12M60 43v12" {...touch} />
    </>
  ),
  done: (
    <>
      <circle cx="60" cy="40" r="24" {...paper} />
      <path d="M49 41l8 8 15-17" {...touch} strokeWidth={2.2} />
      <path d="M22 24l4 3M98 24l-4 3M20 54l5-2M100 54l-5-2" {...faint} />
    </>
  ),
}

export function Drawing({ name }: { name: DrawingName }) {
  return (
    <svg viewBox="0 0 120 80" width="120" height="80" aria-hidden="true">
      {DRAWINGS[name]}
    </svg>
  )
}
