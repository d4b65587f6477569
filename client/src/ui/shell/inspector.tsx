import type { ReactNode } from 'react'

/** A part of the inspector, with a quiet heading. */
export function InspectorSection({
  title,
  action,
  children,
}: {
  title: string
  action?: ReactNode
  children: ReactNode
}) {
  return (
    <section className="border-b border-line px-4 py-3 last:border-0">
      <header className="flex h-6 items-center justify-between pb-1">
        <h2 className="text-xs text-text-3">{title}</h2>
        {action}
      </header>
      {children}
    </section>
  )
}

/** Name and value pairs, aligned. */
export function Facts({ children }: { children: ReactNode }) {
  return <dl className="grid grid-cols-[92px_minmax(0,1fr)] items-center gap-x-3">{children}</dl>
}

export function Fact({ label, children }: { label: string; children: ReactNode }) {
  return (
    <>
      <dt className="truncate py-1 text-text-3">{label}</dt>
      <dd className="flex min-h-7 min-w-0 items-center gap-1.5 touch:min-h-11">{children}</dd>
    </>
  )
}
