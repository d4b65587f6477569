import { useState } from 'react'
import { Button } from '../../ui/button.tsx'
import { useRejected } from './entries.ts'
import { RejectedChange } from './rejected-change.tsx'

const FIRST = 20

/** What the server refused, until a person decides. */
export function RejectedSection({ total, target }: { total: number; target: number | undefined }) {
  const [most, setMost] = useState(FIRST)
  const { entries } = useRejected(most, target)
  if (entries.length === 0) return null
  const left = total - entries.length
  return (
    <section aria-label="Refused by the server" className="flex flex-col gap-3">
      <h2 className="section-title">
        Refused by the server
        <span className="nums ml-2 font-normal text-text-3">
          {Math.max(total, entries.length).toLocaleString('en')}
        </span>
      </h2>
      <p className="-mt-2 text-text-2">
        These changes have no effect. They stay here until you send them again or discard them.
      </p>
      {entries.map((entry) => (
        <RejectedChange key={entry.seq} entry={entry} targeted={entry.seq === target} />
      ))}
      {left > 0 && (
        <div>
          <Button size="sm" variant="ghost" onClick={() => setMost(most + 100)}>
            Show {Math.min(100, left).toLocaleString('en')} more of {left.toLocaleString('en')}
          </Button>
        </div>
      )}
    </section>
  )
}
