import type { ReactNode } from 'react'

/** One exhibit of /dev/ui. */
export function Section({
  id,
  title,
  note,
  children,
}: {
  id: string
  title: string
  note?: string
  children: ReactNode
}) {
  return (
    <section id={id} aria-labelledby={`${id}-title`} className="scroll-mt-14 border-t border-line py-8 first:border-0">
      <h2 id={`${id}-title`} className="section-title">
        {title}
      </h2>
      {note && <p className="max-w-[68ch] text-text-3">{note}</p>}
      <div className="mt-4">{children}</div>
    </section>
  )
}

export function Row({ children }: { children: ReactNode }) {
  return <div className="flex flex-wrap items-center gap-3">{children}</div>
}
