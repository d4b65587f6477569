/** Backups: per gateway what the server keeps for the day its machine is lost, one more now, and how to get it back. */
import { Archive, ArchiveRestore, Download } from 'lucide-react'
import { useState } from 'react'
import { newId, useRows, useSession, useSyncStatus, useWrite } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button, buttonClass } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { Page } from '../../ui/shell/page.tsx'
import { Status } from '../../ui/status.tsx'
import { CommandProgress } from '../commands/command-progress.tsx'
import {
  BACKUP_STATUS,
  BACKUPS_SQL,
  type Backup,
  GATEWAYS_SQL,
  GATEWAYS_TABLES,
  type GatewayBackups,
  isAway,
  isBeingMade,
  isShown,
  protectionOf,
  REASONS,
  sizeWords,
} from './backup-state.ts'

export function BackupsPage() {
  const { rows, ready } = useRows<GatewayBackups>(GATEWAYS_SQL, [], { tables: GATEWAYS_TABLES })
  return (
    <Page title="Backups">
      <div className="mx-auto grid w-full max-w-[860px] grid-cols-1 gap-8 px-4 py-6">
        {ready && rows.length === 0 ? (
          <EmptyState drawing="gateways" title="Nothing to back up yet" className="rounded-card border border-line">
            Backups are made of gateways: the machines that run agents. As soon as there is one, it backs itself up by
            the day.
          </EmptyState>
        ) : (
          rows.map((gateway) => <GatewaySection key={gateway.id} gateway={gateway} />)
        )}
        <HowToRestore />
      </div>
    </Page>
  )
}

function GatewaySection({ gateway }: { gateway: GatewayBackups }) {
  const now = useNow()
  const write = useWrite()
  const { principal, canWrite } = useSession()
  const { rows, ready } = useRows<Backup>(BACKUPS_SQL, [gateway.id], { tables: ['backups'] })
  const protection = protectionOf(gateway, now)
  const making = isBeingMade(gateway)
  const backUp = () =>
    write([
      {
        sql: `insert into agent_commands (id, tenant_id, gateway_id, action, requested_by) values ($1, $2, $3, 'backup', $4)`,
        params: [newId(), gateway.tenant_id, gateway.id, principal.person_id],
      },
    ])
  return (
    <section aria-label={`Backups of ${gateway.label}`} className="grid min-w-0 grid-cols-1 gap-3">
      <header className="flex flex-wrap items-center gap-x-3 gap-y-2">
        <div className="flex min-w-0 flex-1 flex-wrap items-center gap-x-3 gap-y-1">
          <h2 className="min-w-0 text-lg font-semibold [overflow-wrap:anywhere]">{gateway.label}</h2>
          <Status meaning={protection.meaning} shape={protection.shape} label={protection.label} />
          {protection.key === 'fresh' && gateway.newest_at && (
            <span className="text-xs text-text-3">
              <RelativeTime at={gateway.newest_at} words />
            </span>
          )}
        </div>
        {canWrite && (
          <Button size="sm" icon={Archive} disabled={making} onClick={() => void backUp()}>
            {!making ? 'Back up now' : gateway.command_action === 'restore' ? 'Being restored' : 'Being made'}
          </Button>
        )}
      </header>
      {protection.key === 'never' && !making && (
        <Banner meaning="warning" title="If that machine is lost today, its agents’ files and secrets are gone">
          The first backup is made by itself some minutes after its start, while it can reach the server.
        </Banner>
      )}
      {protection.key === 'late' && !making && (
        <Banner meaning="warning" title={`${protection.label}: what came since is on that machine only`}>
          {isAway(gateway, now)
            ? 'The gateway is not heard of. Start it; it makes one as soon as it reaches the server.'
            : 'It should make one by the day. See below why the last one failed, or whether HQ_BACKUP_EVERY is off there.'}
        </Banner>
      )}
      {gateway.command_id && isShown(gateway, now) && (
        <div className="rounded-card border border-line bg-surface-1 p-4">
          {gateway.command_status === 'pending' && isAway(gateway, now) && (
            <p className="mb-3 text-text-2">
              The gateway is not heard of just now. It begins when it is back; you need not wait here.
            </p>
          )}
          <CommandProgress commandId={gateway.command_id} withLog={gateway.command_action === 'restore'} />
        </div>
      )}
      {rows.length > 0 ? (
        <ul className="divide-y divide-line border-y border-line">
          {rows.map((backup) => (
            <li key={backup.id}>
              <BackupLine backup={backup} busy={making} />
            </li>
          ))}
        </ul>
      ) : (
        ready && <p className="text-text-3">None yet. The newest three are kept, for seven days.</p>
      )}
    </section>
  )
}

function BackupLine({ backup, busy }: { backup: Backup; busy: boolean }) {
  const { isAdmin, canWrite, principal } = useSession()
  const write = useWrite()
  const [asking, setAsking] = useState(false)
  const online = useSyncStatus().connection === 'online'
  const status = BACKUP_STATUS[backup.status]
  const at = backup.finished_at ?? backup.created_at
  const bringBack = () =>
    write([
      {
        sql: `insert into agent_commands (id, tenant_id, gateway_id, action, payload, requested_by) values ($1, $2, $3, 'restore', $4, $5)`,
        params: [newId(), backup.tenant_id, backup.gateway_id, { sha256: backup.sha256 }, principal.person_id],
      },
    ])
  const { agents, hostname } = backup.contents as { agents?: number; hostname?: string }
  return (
    <div className="flex min-h-11 flex-wrap items-center gap-x-4 gap-y-1 px-2 py-1.5">
      <span className="w-32 shrink-0">
        <Status meaning={status.meaning} shape={status.shape} label={status.label} />
      </span>
      <span className="nums flex min-w-0 flex-1 basis-44 flex-wrap gap-x-3 text-text-2">
        <RelativeTime at={at} words />
        {backup.size !== null && <span>{sizeWords(backup.size)}</span>}
        <span>{REASONS[backup.reason]}</span>
        {agents !== undefined && <span>{agents === 1 ? '1 agent' : `${agents} agents`}</span>}
        {hostname && <span className="break-all text-text-3">{hostname}</span>}
      </span>
      {backup.status === 'done' && (
        <div className="ml-auto flex items-center gap-1">
          {canWrite && backup.sha256 && (
            <>
              <Button
                size="sm"
                variant="ghost"
                icon={ArchiveRestore}
                disabled={busy}
                aria-label={`Bring back from the backup of ${at}`}
                onClick={() => setAsking(true)}
              >
                Bring back…
              </Button>
              <Confirm
                open={asking}
                onOpenChange={setAsking}
                title="Bring back what is missing?"
                confirm="Bring back"
                onConfirm={() => void bringBack()}
              >
                Agents of this gateway whose folder is gone get it as it was in this backup. Folders that are there are
                not changed. For a machine that is lost as a whole, see below.
              </Confirm>
            </>
          )}
          {isAdmin && backup.sha256 && (
            <a
              className={buttonClass('ghost', 'sm')}
              href={`/v1/blobs/gateway-backups/${backup.sha256}`}
              download
              aria-label={`Download the backup of ${at}`}
              {...(online ? {} : { 'aria-disabled': true, title: 'Needs the server' })}
            >
              <Download size={14} aria-hidden />
              <span className="max-sm:sr-only">Download</span>
            </a>
          )}
        </div>
      )}
      {backup.error_message && <p className="w-full text-text-2">{backup.error_message}</p>}
    </div>
  )
}

function HowToRestore() {
  return (
    <section aria-labelledby="backups-restore" className="grid grid-cols-1 gap-2 text-text-2">
      <h2 id="backups-restore" className="section-title">
        When a machine is lost
      </h2>
      <p>
        A backup can be read with the gateway’s recovery key only. It is on the gateway’s machine, and neither this
        server nor this browser has it. Show it there now, and keep it somewhere else:
      </p>
      <Shell>npm run hq -- backup key</Shell>
      <p>On another machine with HQ, in a folder that is no gateway yet; the key is asked for:</p>
      <Shell>{`HQ_SERVER_URL=${window.location.origin} npm run gateway:restore`}</Shell>
      <p>
        It takes the newest backup, or the file that you give it, and the lost gateway’s place. Should the old machine
        still run, it is not let in from then on.
      </p>
      <p>
        The whole workspace goes into one file on the server’s machine, also while it runs; a passphrase is asked for:
      </p>
      <Shell>npm run backup -- workspace.hqbackup</Shell>
    </section>
  )
}

const Shell = ({ children }: { children: string }) => (
  <pre className="[overflow-wrap:anywhere] whitespace-pre-wrap rounded-control border border-line bg-surface-2 px-3 py-2 font-mono text-xs text-text select-all">
    {children}
  </pre>
)
