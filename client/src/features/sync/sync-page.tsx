/** Everything about syncing: how it stands, what waits, what was refused or changed twice and what to do about it, and the devices. */
import { Link } from '@tanstack/react-router'
import { useState } from 'react'
import { replica, useSyncStatus } from '../../replica/hooks.ts'
import { applyUpdate } from '../../service-worker.ts'
import { parkedOf, pillOf } from '../../session/sync-words.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button, buttonClass } from '../../ui/button.tsx'
import { Progress } from '../../ui/progress.tsx'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { Page } from '../../ui/shell/page.tsx'
import { isStalled, syncWords } from '../../ui/shell/sync-pill.tsx'
import { StatusShape } from '../../ui/status.tsx'
import { ConflictsSection, useMyConflictCount } from './conflicts-section.tsx'
import { DeviceFacts } from './device-facts.tsx'
import { DevicesSection } from './devices-section.tsx'
import { ExportButton, PendingFileSection } from './pending-export.tsx'
import { RejectedSection } from './rejected-section.tsx'
import { RescuedSection } from './rescued-section.tsx'
import { useRevokedHere } from './revoked.ts'
import { useTarget } from './target.ts'
import { WaitingSection } from './waiting-section.tsx'

export function SyncPage() {
  const status = useSyncStatus()
  const target = useTarget()
  const [busy, setBusy] = useState(false)
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
        <Parked />
        {target.gone && (
          <p role="status" className="text-text-2">
            The change that you came for has reached the server meanwhile.
          </p>
        )}
        <RescuedSection />
        <RejectedSection total={status.rejected} target={target.seq} />
        <ConflictsSection target={target.conflict} />
        <WaitingSection target={target.seq} />
        <PendingFileSection />
        <DevicesSection />
        <DeviceFacts />
      </div>
    </Page>
  )
}

/** Why nothing is sent although the server can be reached, with the way out. */
function Parked() {
  const { pending, rejected, ...status } = useSyncStatus()
  const revoked = useRevokedHere()
  const parked = parkedOf(status, revoked)
  if (!parked) return null
  return (
    <Banner
      meaning="warning"
      title={parked.title}
      action={
        <>
          {parked.way === 'reload' && (
            <Button size="sm" onClick={applyUpdate}>
              Reload
            </Button>
          )}
          {parked.way === 'sign_in' && (
            <Link to="/sign-in" className={buttonClass('secondary', 'sm')}>
              Sign in
            </Link>
          )}
          {parked.way === 'export' && pending + rejected > 0 && <ExportButton label="Export what waits" />}
        </>
      }
    >
      {parked.advice}
    </Banner>
  )
}

const n = (value: number): string => value.toLocaleString('en')

function Summary() {
  const status = useSyncStatus()
  const conflicts = useMyConflictCount()
  const now = useNow()
  const pill = pillOf(status, conflicts)
  const { title, detail, shape, meaning } = syncWords(pill, now)
  const { done, rows, tablesDone, tables } = status.initial
  return (
    <div className="flex flex-col gap-3">
      <div className="flex items-start gap-3">
        <StatusShape shape={shape} meaning={meaning} className="mt-1" />
        <div>
          <p className="text-lg font-semibold">{title}</p>
          <p className="text-text-2">
            {detail ? `${detail}. ` : ''}
            {status.connection === 'offline'
              ? 'The server cannot be reached. Everything works; changes are sent when it can be reached again. '
              : ''}
            {status.stalledSince && isStalled(pill, now) && (
              <>
                The server can be reached, but it cannot bring changes just now (since{' '}
                <RelativeTime at={status.stalledSince} words />
                ). What you change is kept and sent; what others change comes as soon as it can.{' '}
              </>
            )}
            {status.lastHeardAt && (
              <>
                Last heard from the server <RelativeTime at={status.lastHeardAt} words />.
              </>
            )}
          </p>
        </div>
      </div>
      {!done && tables > 0 && (
        <Progress
          label={
            status.connection === 'offline' ? 'Waiting for the server to load your workspace' : 'Loading your workspace'
          }
          value={status.connection === 'offline' ? null : tablesDone}
          max={tables}
          detail={`${n(rows)} rows so far, ${tablesDone} of ${tables} tables complete`}
        />
      )}
    </div>
  )
}
