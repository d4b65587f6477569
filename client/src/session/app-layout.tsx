/**
 * The frame of every screen behind the sign-in: opens the person's replica, provides the session, and shows the shell with
 * the truth about syncing.
 */
import type { Row } from '@hq/shared/schema/tables.ts'
import { Outlet, useNavigate } from '@tanstack/react-router'
import {
  Archive,
  Bot,
  BrainCircuit,
  House,
  KeyRound,
  ListTodo,
  LogOut,
  Monitor,
  Moon,
  RefreshCw,
  Server,
  ShieldQuestionMark,
  SquareTerminal,
  Sun,
  UsersRound,
} from 'lucide-react'
import { useEffect, useMemo, useState, useSyncExternalStore } from 'react'
import { OPEN_COUNT_SQL } from '../features/approvals/approval.ts'
import { useMyConflictCount } from '../features/sync/conflicts-section.tsx'
import type { ReplicaConnection } from '../replica/connection.ts'
import { closeReplica, openReplicaFor } from '../replica/current.ts'
import { exposeDiagnostics } from '../replica/diagnostics.ts'
import { useById, useCount, useRow } from '../replica/hooks.ts'
import { LOADED_EVENT } from '../service-worker.ts'
import type { MenuEntry } from '../ui/menu.tsx'
import { AppShell } from '../ui/shell/app-shell.tsx'
import type { NavGroup } from '../ui/shell/nav.ts'
import { setThemeChoice, useThemeChoice } from '../ui/theme.ts'
import { AppBanner } from './app-banner.tsx'
import { AppPalette, openPalette, usePalette } from './app-palette.tsx'
import { createSomething, useCanCreate } from './create.ts'
import { DatabaseFailed } from './screens.tsx'
import { type Person, type Session, SessionContext } from './session.ts'
import { SignOutDialog } from './sign-out-dialog.tsx'
import { sessionStore } from './store.ts'
import { pillOf } from './sync-words.ts'

export function AppLayout({ principal }: { principal: Person }) {
  const connection = openReplicaFor({ tenantId: principal.tenant_id, personId: principal.person_id })
  const { phase } = useReplicaState(connection)
  useEffect(() => exposeDiagnostics(connection), [connection])
  useEffect(() => watchSession(connection), [connection])
  // The layout goes when the session ends (signed out here or elsewhere, or ended by the server).
  useEffect(
    () => () => {
      if (sessionStore.state().name !== 'signed-in') void closeReplica()
    },
    [],
  )
  if (phase.name === 'failed') return <DatabaseFailed message={phase.message} person={principal} />
  return <Frame principal={principal} connection={connection} />
}

const useReplicaState = (connection: ReplicaConnection) =>
  useSyncExternalStore(
    connection.subscribe,
    () => connection.state(),
    () => connection.state(),
  )

/** Keeps session and replica in step: who we are when the server refuses us, what waits for the sign-in screen to say. */
function watchSession(connection: ReplicaConnection): () => void {
  let refused = false
  let said = false
  const look = () => {
    const { status, phase } = connection.state()
    if (phase.name !== 'open') return
    sessionStore.noteWaiting(status.pending)
    if (status.initial.done && !said) {
      said = true
      window.dispatchEvent(new Event(LOADED_EVENT))
    }
    const unauthorized = status.connection === 'unauthorized'
    if (unauthorized && !refused) void sessionStore.check()
    refused = unauthorized
  }
  const wake = () => connection.wake()
  const wakeIfVisible = () => {
    if (document.visibilityState === 'visible') connection.wake()
  }
  window.addEventListener('online', wake)
  document.addEventListener('visibilitychange', wakeIfVisible)
  // Asks the browser not to evict the database when space gets scarce. It may say no; then storage-health.ts says what that means.
  navigator.storage
    ?.persist?.()
    .catch((error: unknown) => console.info('The browser does not promise to keep the data.', error))
  const end = connection.subscribe(look)
  return () => {
    end()
    window.removeEventListener('online', wake)
    document.removeEventListener('visibilitychange', wakeIfVisible)
  }
}

function Frame({ principal, connection }: { principal: Person; connection: ReplicaConnection }) {
  const { status, phase } = useReplicaState(connection)
  const [signingOut, setSigningOut] = useState(false)
  const [palette, setPalette] = useState(false)
  const navigate = useNavigate()
  const workspace = useRow<Row<'workspace'>>('select * from workspace limit 1', [], { tables: ['workspace'] }).row
  const person = useById<Row<'people'>>('people', principal.person_id).row
  const groups = useNavigation()
  const conflicts = useMyConflictCount(principal.person_id)
  const session = useMemo<Session>(
    () => ({
      principal,
      workspace,
      person,
      isAdmin: principal.role === 'owner' || principal.role === 'admin',
      canWrite: principal.role !== 'viewer',
      signOut: () => setSigningOut(true),
    }),
    [principal, workspace, person],
  )
  const menu = usePersonMenu(session)
  const canCreate = useCanCreate() && session.canWrite
  usePalette(
    useMemo(
      () => [
        {
          heading: 'Go to',
          items: groups
            .flatMap((group) => group.items)
            .map(({ id, label, to, icon, shortcut }) => ({
              id: `go-${id}`,
              label,
              icon,
              shortcut,
              onSelect: () => void navigate({ to }),
            })),
        },
        {
          heading: 'HQ',
          items: [
            {
              id: 'sync',
              label: 'See how syncing stands',
              icon: RefreshCw,
              onSelect: () => void navigate({ to: '/sync' }),
            },
            { id: 'sign-out', label: 'Sign out', icon: LogOut, onSelect: () => setSigningOut(true) },
          ],
        },
      ],
      [groups, navigate],
    ),
  )
  return (
    <SessionContext value={session}>
      <AppShell
        workspace={{ name: workspace?.name ?? 'HQ', menu }}
        person={{ id: principal.person_id, name: person?.name ?? principal.name, menu }}
        groups={groups}
        phoneItems={['home', 'tasks', 'agents', 'approvals']}
        sync={{ ...pillOf(status, conflicts), to: '/sync' }}
        onSearch={openPalette}
        onCreate={canCreate ? createSomething : undefined}
        banner={<AppBanner phase={phase} status={status} />}
      >
        <Outlet />
      </AppShell>
      <AppPalette open={palette} onOpenChange={setPalette} />
      <SignOutDialog person={principal} open={signingOut} onOpenChange={setSigningOut} />
    </SessionContext>
  )
}

function useNavigation(): readonly NavGroup[] {
  const approvals = useCount(
    `select count(*) from entity_links where is_deliverable and review_status = 'submitted' and deleted_at is null`,
    [],
    { tables: ['entity_links'] },
  )
  const questions = useCount(OPEN_COUNT_SQL, [], { tables: ['approvals'] })
  return useMemo(
    () => [
      {
        id: 'main',
        items: [
          {
            id: 'home',
            label: 'Home',
            to: '/',
            icon: House,
            shortcut: 'g h',
            ...(approvals ? { count: approvals, countLabel: `${approvals} waiting for approval`, urgent: true } : {}),
          },
          { id: 'tasks', label: 'Tasks', to: '/tasks', icon: ListTodo, shortcut: 'g t' },
          { id: 'agents', label: 'Agents', to: '/agents', icon: Bot, shortcut: 'g a' },
          {
            id: 'approvals',
            label: 'Approvals',
            to: '/approvals',
            icon: ShieldQuestionMark,
            shortcut: 'g v',
            ...(questions ? { count: questions, countLabel: `${questions} waiting for an answer`, urgent: true } : {}),
          },
          { id: 'commands', label: 'Commands', to: '/commands', icon: SquareTerminal, shortcut: 'g c' },
        ],
      },
      {
        id: 'workspace',
        label: 'Workspace',
        items: [
          { id: 'people', label: 'People', to: '/people', icon: UsersRound, shortcut: 'g p' },
          { id: 'gateways', label: 'Gateways', to: '/gateways', icon: Server, shortcut: 'g w' },
          { id: 'models', label: 'Models', to: '/models', icon: BrainCircuit, shortcut: 'g m' },
          { id: 'secrets', label: 'Secrets', to: '/secrets', icon: KeyRound, shortcut: 'g s' },
          { id: 'backups', label: 'Backups', to: '/backups', icon: Archive, shortcut: 'g b' },
        ],
      },
    ],
    [approvals, questions],
  )
}

function usePersonMenu({ principal, signOut }: Session): readonly MenuEntry[] {
  const theme = useThemeChoice()
  const navigate = useNavigate()
  return useMemo(
    () => [
      { kind: 'label', label: `${principal.email} · ${principal.role}` },
      { kind: 'separator' },
      {
        kind: 'sub',
        label: 'Appearance',
        icon: theme === 'dark' ? Moon : theme === 'light' ? Sun : Monitor,
        items: [
          {
            kind: 'item',
            label: 'As the system',
            icon: Monitor,
            checked: theme === 'system',
            onSelect: () => setThemeChoice('system'),
          },
          {
            kind: 'item',
            label: 'Light',
            icon: Sun,
            checked: theme === 'light',
            onSelect: () => setThemeChoice('light'),
          },
          {
            kind: 'item',
            label: 'Dark',
            icon: Moon,
            checked: theme === 'dark',
            onSelect: () => setThemeChoice('dark'),
          },
        ],
      },
      { kind: 'item', label: 'Sync and this device', icon: RefreshCw, onSelect: () => void navigate({ to: '/sync' }) },
      { kind: 'separator' },
      { kind: 'item', label: 'Sign out', icon: LogOut, onSelect: signOut },
    ],
    [principal.email, principal.role, theme, navigate, signOut],
  )
}
