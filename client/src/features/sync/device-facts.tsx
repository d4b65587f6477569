import { type ReactNode, useEffect, useState, useSyncExternalStore } from 'react'
import { replica, useRows } from '../../replica/hooks.ts'
import type { StorageKind } from '../../replica/messages.ts'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { RelativeTime } from '../../ui/relative-time.tsx'

const STORAGE: Record<StorageKind, string> = {
  opfs: 'This browser’s private file system',
  idb: 'This browser’s IndexedDB',
  memory: 'Memory only: closing the tab loses what has not been sent',
}

/** Where the data of this browser is and how large, and the way to build it anew. */
export function DeviceFacts() {
  const connection = replica()
  const { phase, leading } = useSyncExternalStore(
    connection.subscribe,
    () => connection.state(),
    () => connection.state(),
  )
  const { rows } = useRows<{ replica_id: string; seq: number }>(
    'select replica_id, next_seq - 1 as seq from sync.replica',
    [],
    { tables: ['sync'] },
  )
  const storage = useStorage()
  const [asking, setAsking] = useState(false)
  const size = storage?.usage === undefined ? 'unknown' : `${(storage.usage / 1e6).toFixed(0)} MB`
  return (
    <section aria-label="This device" className="flex flex-col gap-2">
      <h2 className="section-title">This device</h2>
      <dl className="overflow-hidden rounded-card border border-line">
        <Fact name="Database">{phase.name === 'open' ? STORAGE[phase.storage] : 'Being opened'}</Fact>
        <Fact name="Size">{size}</Fact>
        <Fact name="Kept when space gets scarce">
          {storage?.persisted ? 'Yes' : 'This browser may delete it then; what has been sent is on the server'}
        </Fact>
        <Fact name="Changes made here, ever">
          <span className="nums">{rows[0]?.seq.toLocaleString('en') ?? ''}</span>
        </Fact>
        <Fact name="Device id">
          <span className="font-mono text-xs">{rows[0]?.replica_id ?? ''}</span>
        </Fact>
        <Fact name="This tab">{leading ? 'Holds the database for all tabs' : 'Uses the database of another tab'}</Fact>
        <Fact name="Looked at">{storage ? <RelativeTime at={storage.at} words /> : ''}</Fact>
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
        onConfirm={() => void connection.rebuild()}
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

function useStorage(): { usage: number | undefined; persisted: boolean; at: number } | undefined {
  const [state, setState] = useState<{ usage: number | undefined; persisted: boolean; at: number }>()
  useEffect(() => {
    let current = true
    const read = async () => {
      const [estimate, persisted] = await Promise.all([
        navigator.storage?.estimate?.(),
        navigator.storage?.persisted?.(),
      ])
      if (current) setState({ usage: estimate?.usage, persisted: persisted ?? false, at: Date.now() })
    }
    read().catch((error: unknown) => console.warn('The browser does not say how much space is used.', error))
    return () => {
      current = false
    }
  }, [])
  return state
}
