import type { SyncStatus } from '@hq/shared/sync/contract.ts'
import { Link } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { useRevokedHere } from '../features/sync/revoked.ts'
import { useStorageNotice } from '../features/sync/use-storage.ts'
import type { Phase } from '../replica/messages.ts'
import { applyUpdate, onUpdateReady } from '../service-worker.ts'
import { Banner } from '../ui/banner.tsx'
import { Button, buttonClass } from '../ui/button.tsx'
import { Progress } from '../ui/progress.tsx'
import { parkedOf } from './sync-words.ts'

/** Across the top: the first load, what keeps changes from being sent, a new version, a database that keeps nothing. */
export function AppBanner({ phase, status }: { phase: Phase; status: SyncStatus }) {
  const [dismissed, setDismissed] = useState<string>()
  const update = useUpdateReady()
  const notice = phase.name === 'open' ? phase.notice : null
  const parked = parkedOf(status, useRevokedHere())
  const storage = useStorageNotice(phase)
  return (
    <>
      <FirstLoad phase={phase} status={status} />
      {parked && (
        <Banner
          look="edge"
          meaning="warning"
          title={parked.title}
          action={
            parked.way === 'reload' ? (
              <Button size="sm" onClick={applyUpdate}>
                Reload
              </Button>
            ) : (
              <Link to="/sync" className={buttonClass('secondary', 'sm')}>
                What waits
              </Link>
            )
          }
        >
          {parked.advice}
        </Banner>
      )}
      {update && dismissed !== 'update' && (
        <Banner
          look="edge"
          meaning="busy"
          shape="ring"
          title="A new version of HQ is ready"
          onDismiss={() => setDismissed('update')}
          action={<Button onClick={applyUpdate}>Reload</Button>}
        >
          Reloading takes a second; nothing you have saved is lost.
        </Banner>
      )}
      {storage && dismissed !== storage.code && (
        <Banner
          look="edge"
          meaning={storage.code === 'full' ? 'danger' : 'warning'}
          title={storage.title}
          onDismiss={() => setDismissed(storage.code)}
          action={
            <Link to="/sync" className={buttonClass('secondary', 'sm')}>
              What waits
            </Link>
          }
        >
          {storage.advice}
        </Banner>
      )}
      {notice && dismissed !== notice && (
        <Banner
          look="edge"
          meaning="warning"
          title="About this device"
          onDismiss={() => setDismissed(notice)}
          action={
            <Link to="/sync" className={buttonClass('secondary', 'sm')}>
              What waits
            </Link>
          }
        >
          {notice}
        </Banner>
      )}
    </>
  )
}

function useUpdateReady(): boolean {
  const [ready, setReady] = useState(false)
  useEffect(() => onUpdateReady(() => setReady(true)), [])
  return ready
}

const n = (value: number) => value.toLocaleString('en')

/** Only on a device's first visit: making the database, then loading the workspace. */
function FirstLoad({ phase, status }: { phase: Phase; status: SyncStatus }) {
  const installing = phase.name === 'installing'
  const { done, rows, tablesDone, tables } = status.initial
  if (!installing && (phase.name !== 'open' || done)) return null
  const offline = status.connection === 'offline'
  const label = installing
    ? 'Preparing this device'
    : offline
      ? 'Waiting for the server to load your workspace'
      : 'Loading your workspace'
  return (
    <div className="border-b border-line bg-surface-1 px-4 py-2">
      <Progress
        label={label}
        value={installing || offline ? null : tablesDone}
        max={tables}
        detail={installing ? undefined : `${n(rows)} rows, ${tablesDone} of ${tables} tables`}
      />
    </div>
  )
}
