/** People: who is here with which role, and links that let somebody in. Inviting needs the server; the list does not. */
import { ENUMS, type Enum } from '@hq/shared/schema/enums.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import { Copy, Plus, X } from 'lucide-react'
import { useCallback, useEffect, useState } from 'react'
import { useRows, useSession, useWrite } from '../../replica/hooks.ts'
import { request } from '../../session/api.ts'
import { PersonAvatar } from '../../ui/avatar.tsx'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Input } from '../../ui/input.tsx'
import { RelativeTime } from '../../ui/relative-time.tsx'
import { Select } from '../../ui/select.tsx'
import { Page } from '../../ui/shell/page.tsx'
import { Table } from '../../ui/table.tsx'
import { toast } from '../../ui/toast.tsx'
import { MarkOf } from '../sync/row-mark.tsx'

type Person = Row<'people'>
type Role = Enum<'role'>

interface OpenInvitation {
  readonly id: string
  readonly email: string | null
  readonly role: Role
  readonly invited_by: string
  readonly expires_at: string
}

const ROLES: Record<Role, string> = {
  owner: 'Everything, and cannot be removed',
  admin: 'People, gateways, budgets',
  member: 'Tasks, agents, knowledge',
  viewer: 'Looks, does not change',
}
const roleOptions = (below: readonly Role[]) => below.map((role) => ({ value: role, label: role, hint: ROLES[role] }))
const words = (error: unknown): string => (error instanceof Error ? error.message : String(error))

export function PeoplePage() {
  const { isAdmin, principal } = useSession()
  const { rows } = useRows<Person>('select * from people where deleted_at is null order by name, id limit 500', [], {
    tables: ['people'],
  })
  const [inviting, setInviting] = useState(false)
  const invitations = useInvitations(isAdmin)
  return (
    <Page
      title="People"
      actions={
        isAdmin && (
          <Button variant="primary" icon={Plus} onClick={() => setInviting(true)}>
            Invite
          </Button>
        )
      }
    >
      <div className="mx-auto grid w-full max-w-[860px] gap-8 px-4 py-5">
        <Table
          label="People"
          rows={rows}
          rowKey={({ id }) => id}
          columns={[
            {
              id: 'name',
              header: 'Name',
              mark: (person) => <MarkOf table="people" id={person.id} />,
              cell: (person) => (
                <span className="flex min-w-0 items-center gap-2">
                  <PersonAvatar name={person.name} id={person.id} decorative />
                  <span className="truncate font-medium">{person.name}</span>
                  {person.id === principal.person_id && <span className="text-text-3">you</span>}
                </span>
              ),
            },
            {
              id: 'email',
              header: 'Email',
              from: 'sm',
              cell: ({ email }) => <span className="truncate text-text-2">{email}</span>,
            },
            { id: 'role', header: 'Role', width: '160px', cell: (person) => <PersonRole person={person} /> },
            {
              id: 'since',
              header: 'Since',
              align: 'right',
              width: '88px',
              from: 'md',
              cell: ({ created_at }) => <RelativeTime at={created_at} />,
            },
          ]}
        />
        {isAdmin && <Invitations {...invitations} />}
      </div>
      <InviteDialog open={inviting} onOpenChange={setInviting} onCreated={invitations.reload} />
    </Page>
  )
}

/** An admin changes anybody's role but the owner's and their own. */
function PersonRole({ person }: { person: Person }) {
  const { isAdmin, principal } = useSession()
  const write = useWrite()
  if (!isAdmin || person.role === 'owner' || person.id === principal.person_id)
    return <span className="text-text-2">{person.role}</span>
  const change = (role: Role) =>
    write([{ sql: 'update people set role = $2 where id = $1', params: [person.id, role] }])
  return (
    <Select
      label={`Role of ${person.name}`}
      hideLabel
      value={person.role}
      options={roleOptions(['admin', 'member', 'viewer'])}
      onValueChange={(role) => void change(role)}
    />
  )
}

function useInvitations(enabled: boolean) {
  const [list, setList] = useState<readonly OpenInvitation[]>([])
  const [problem, setProblem] = useState<string | null>(null)
  const reload = useCallback(async () => {
    if (!enabled) return
    try {
      const answer = (await request('GET', '/v1/invitations')) as { invitations?: OpenInvitation[] } | OpenInvitation[]
      setList(Array.isArray(answer) ? answer : (answer.invitations ?? []))
      setProblem(null)
    } catch (error) {
      setProblem(words(error))
    }
  }, [enabled])
  useEffect(() => void reload(), [reload])
  return { list, problem, reload }
}

function Invitations({ list, problem, reload }: ReturnType<typeof useInvitations>) {
  const revoke = async (id: string) => {
    try {
      await request('DELETE', `/v1/invitations/${id}`)
      await reload()
    } catch (error) {
      toast({ title: 'The invitation could not be withdrawn', description: words(error), meaning: 'danger' })
    }
  }
  return (
    <section>
      <h2 className="section-title mb-1">Open invitations</h2>
      {problem ? (
        <Banner meaning="waiting" title="Invitations need the server">
          {problem}
        </Banner>
      ) : list.length === 0 ? (
        <p className="text-text-3">None. An invitation is a link for one person, good for seven days.</p>
      ) : (
        <ul className="divide-y divide-line border-y border-line">
          {list.map((invitation) => (
            <li key={invitation.id} className="flex min-h-9 items-center gap-3 px-2">
              <span className="min-w-0 flex-1 truncate">{invitation.email ?? 'Anybody with the link'}</span>
              <span className="text-text-2">{invitation.role}</span>
              <span className="text-xs text-text-3">
                ends <RelativeTime at={invitation.expires_at} words />
              </span>
              <IconButton
                label={`Withdraw the invitation of ${invitation.email ?? 'anybody'}`}
                icon={X}
                size="sm"
                onClick={() => void revoke(invitation.id)}
              />
            </li>
          ))}
        </ul>
      )}
    </section>
  )
}

function InviteDialog(props: { open: boolean; onOpenChange: (open: boolean) => void; onCreated: () => Promise<void> }) {
  const { open, onOpenChange, onCreated } = props
  const { principal } = useSession()
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('member')
  const [link, setLink] = useState<string | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  useEffect(() => {
    if (!open) return
    setLink(null)
    setProblem(null)
    setEmail('')
  }, [open])
  const create = async () => {
    setBusy(true)
    try {
      const answer = (await request('POST', '/v1/invitations', {
        ...(email.trim() ? { email: email.trim() } : {}),
        role,
      })) as { url: string }
      setLink(new URL(answer.url, window.location.origin).href)
      setProblem(null)
      await onCreated()
    } catch (error) {
      setProblem(words(error))
    } finally {
      setBusy(false)
    }
  }
  const copy = async () => {
    await navigator.clipboard.writeText(link ?? '')
    toast({ title: 'Link copied', meaning: 'good' })
  }
  const below = ENUMS.role.filter(
    (name) => name !== 'owner' && ENUMS.role.indexOf(name) >= ENUMS.role.indexOf(principal.role),
  )
  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      title="Invite somebody"
      description="You get a link to send them. It works once, for seven days."
      footer={
        link ? (
          <Button variant="primary" icon={Copy} onClick={() => void copy()}>
            Copy link
          </Button>
        ) : (
          <Button variant="primary" busy={busy} onClick={() => void create()}>
            Make link
          </Button>
        )
      }
    >
      <div className="grid gap-4">
        {problem && (
          <Banner meaning="danger" title="No link could be made">
            {problem}
          </Banner>
        )}
        {link ? (
          <Input label="Invitation link" readOnly value={link} onFocus={(event) => event.currentTarget.select()} />
        ) : (
          <>
            <Input
              label="Email"
              type="email"
              optional
              value={email}
              hint="Given: only this address can use the link."
              onChange={(event) => setEmail(event.currentTarget.value)}
            />
            <Select label="Role" value={role} options={roleOptions(below)} onValueChange={setRole} />
          </>
        )}
      </div>
    </Dialog>
  )
}
