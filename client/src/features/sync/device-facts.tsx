import { type ReactNode, useState, useSyncExternalStore } from 'react'
import { replica, useRows } from '../../replica/hooks.ts'
import type { StorageKind } from '../../replica/messages.ts'
import { freeOf, keptWords, megabytes } from '../../replica/storage-health.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { toast } from '../../ui/toast.tsx'
import { useStorageFacts } from './use-storage.ts'

const STORAGE: Record<StorageKind, string> = {
  opfs: 'This browser’s private file system',
  idb: 'This browser’s IndexedDB',
  memory: 'Memory only',
}

/** Where the data of this browser is and how large, and the way to build it anew. */
export function DeviceFacts() {
  const connection = replica()
  const { phase, leading } = useSyncExternalStore(
    connection.subscribe,
    () => connection.state(),
    () => connection.state(),
  )
  const { rows } = useRows<{ replica_id: string; seq: number; size: number }>(
    'select replica_id, next_seq - 1 as seq, pg_database_size(current_database()) as size from sync.replica',
    [],
    { tables: ['sync'] },
  )
  const facts = useStorageFacts(phase)
  const free = facts && freeOf(facts)
  const [asking, setAsking] = useState(false)
  const size = rows[0] === undefined ? '' : `${(rows[0].size / 1e6).toFixed(0)} MB`
  return (
    <section aria-label="This device" className="flex flex-col gap-2">
      <h2 className="section-title">This device</h2>
      <dl className="overflow-hidden rounded-card border border-line">
        <Fact name="Database">{phase.name === 'open' ? STORAGE[phase.storage] : 'Being opened'}</Fact>
        <Fact name="Size">{size}</Fact>
        <Fact name="Kept">{facts ? keptWords(facts) : ''}</Fact>
        {free !== undefined && facts?.quota !== undefined && (
          <Fact name="Room for HQ">
            <span className="nums">
              {megabytes(free)} free of {megabytes(facts.quota)}
            </span>
          </Fact>
        )}
        <Fact name="Changes made here, ever">
          <span className="nums">{rows[0]?.seq.toLocaleString('en') ?? ''}</span>
        </Fact>
        <Fact name="Device id">
          <span className="font-mono text-xs">{rows[0]?.replica_id ?? ''}</span>
        </Fact>
        <Fact name="This tab">{leading ? 'Holds the database for all tabs' : 'Uses the database of another tab'}</Fact>
      </dl>
      <div>
        <Button size="sm" onClick={() => setAsking(true)}>
          Rebuild the local database…
        </Button>
      </div>
      <Confirm
        open={asking}
        onOpenChange={setAsking}
        title="Rebuild the local database?"
        confirm="Rebuild"
        onConfirm={() => {
          connection.rebuild().catch((error: unknown) =>
            toast({
              title: 'The database was not rebuilt',
              description: error instanceof Error ? error.message : String(error),
              meaning: 'danger',
            }),
          )
        }}
      >
        Loads everything from the server again, which needs the network. Changes that wait are kept and sent.
      </Confirm>
    </section>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="flex min-h-(--row) items-center gap-4 border-b border-line px-3 py-1 last:border-0">
      <dt className="w-44 shrink-0 text-text-3 max-sm:w-28">{name}</dt>
      <dd className="min-w-0 flex-1">{children}</dd>
    </div>
  )
}
