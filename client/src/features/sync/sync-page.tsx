/** Everything about syncing: how it stands, what waits, what was refused and what to do about it, this device. */
import { useState } from 'react'
import { replica, useOutbox, useSyncStatus } from '../../replica/hooks.ts'
import { parkedWords, pillOf } from '../../session/sync-words.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { Page } from '../../ui/shell/page.tsx'
import { syncWords } from '../../ui/shell/sync-pill.tsx'
import { StatusShape } from '../../ui/status.tsx'
import { describe } from './describe.ts'
import { DeviceFacts } from './device-facts.tsx'
import { RejectedChange } from './rejected-change.tsx'
import { RescuedSection } from './rescued-section.tsx'

/** Rows of the list of waiting changes shown at once; nobody reads thousands. */
const SHOWN = 100

export function SyncPage() {
  const status = useSyncStatus()
  const { entries, ready, retry, discard } = useOutbox()
  const [busy, setBusy] = useState(false)
  const rejected = entries.filter((entry) => entry.state === 'rejected')
  const waiting = entries.filter((entry) => entry.state !== 'rejected')
  const parked = status.parked === null ? undefined : parkedWords(status.parked)
  const tryNow = () => {
    setBusy(true)
    replica().wake()
    setTimeout(() => setBusy(false), 1_500)
  }
  return (
    <Page
      title="Sync"
      actions={
        status.connection === 'online' ? undefined : (
          <Button busy={busy} onClick={tryNow}>
            Connect now
          </Button>
        )
      }
    >
      <div className="mx-auto flex max-w-[760px] flex-col gap-8 px-4 py-6">
        <Summary />
        {parked && (
          <Banner meaning="warning" title={parked.title}>
            {parked.advice}
          </Banner>
        )}
        <RescuedSection />
        {rejected.length > 0 && (
          <section aria-label="Refused by the server" className="flex flex-col gap-3">
            <h2 className="section-title">Refused by the server</h2>
            <p className="-mt-2 text-text-2">
              These changes have no effect. They stay here until you send them again or discard them.
            </p>
            {rejected.map((entry) => (
              <RejectedChange key={entry.seq} entry={entry} onRetry={retry} onDiscard={discard} />
            ))}
          </section>
        )}
        <section aria-label="Waiting to be sent" className="flex flex-col gap-2">
          <h2 className="section-title">
            Waiting to be sent
            {waiting.length > 0 && <span className="nums ml-2 font-normal text-text-3">{waiting.length}</span>}
          </h2>
          {ready && waiting.length === 0 ? (
            <EmptyState drawing="done" title="Nothing waits" className="rounded-card border border-line py-8">
              Every change made on this device has reached the server.
            </EmptyState>
          ) : (
            <ul className="overflow-hidden rounded-card border border-line">
              {waiting.slice(0, SHOWN).map((entry) => (
                <li
                  key={entry.seq}
                  className="flex min-h-(--row) items-center gap-3 border-b border-line px-3 py-1 last:border-0"
                >
                  <StatusShape shape={entry.state === 'accepted' ? 'half' : 'ring'} meaning="waiting" />
                  <span className="min-w-0 flex-1 truncate">{describe(entry)}</span>
                  {entry.state === 'accepted' && <span className="text-xs text-text-3">received, being confirmed</span>}
                  <RelativeTime at={entry.createdAt} className="text-xs text-text-3" />
                </li>
              ))}
              {waiting.length > SHOWN && (
                <li className="px-3 py-2 text-text-3">and {(waiting.length - SHOWN).toLocaleString('en')} more</li>
              )}
            </ul>
          )}
        </section>
        <DeviceFacts />
      </div>
    </Page>
  )
}

function Summary() {
  const status = useSyncStatus()
  const { title, detail, shape, meaning } = syncWords(pillOf(status), useNow())
  return (
    <div className="flex items-start gap-3">
      <StatusShape shape={shape} meaning={meaning} className="mt-1" />
      <div>
        <p className="text-lg font-semibold">{title}</p>
        <p className="text-text-2">
          {detail ? `${detail}. ` : ''}
          {status.connection === 'offline'
            ? 'The server cannot be reached. Everything works; changes are sent when it can be reached again. '
            : ''}
          {status.lastHeardAt && (
            <>
              Last heard from the server <RelativeTime at={status.lastHeardAt} words />.
            </>
          )}
        </p>
      </div>
    </div>
  )
}
