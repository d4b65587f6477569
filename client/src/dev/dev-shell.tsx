import { getRouteApi } from '@tanstack/react-router'
import {
  BookOpen,
  Bot,
  ContactRound,
  Home,
  ListTodo,
  Plus,
  Server,
  Settings,
  SlidersHorizontal,
  Terminal,
} from 'lucide-react'
import { useState } from 'react'
import { Avatar } from '../ui/avatar.tsx'
import { Badge } from '../ui/badge.tsx'
import { Button } from '../ui/button.tsx'
import { CommandPalette } from '../ui/command-palette.tsx'
import { EmptyState } from '../ui/empty-state.tsx'
import { IconButton } from '../ui/icon-button.tsx'
import { Meter } from '../ui/meter.tsx'
import { RelativeTime, useNow } from '../ui/relative-time.tsx'
import { AppShell } from '../ui/shell/app-shell.tsx'
import { Fact, Facts, InspectorSection } from '../ui/shell/inspector.tsx'
import type { NavGroup } from '../ui/shell/nav.ts'
import { Page } from '../ui/shell/page.tsx'
import { Status } from '../ui/status.tsx'
import { Tabs } from '../ui/tabs.tsx'
import { toast } from '../ui/toast.tsx'
import { atlas, quill, scout } from './sample.ts'
import { TaskBoard, TaskList } from './task-demo.tsx'

const route = getRouteApi('/dev/shell')
const none = () => undefined

const groups: NavGroup[] = [
  {
    id: 'main',
    items: [
      {
        id: 'home',
        label: 'Home',
        to: '/',
        icon: Home,
        count: 3,
        countLabel: '3 need you',
        urgent: true,
        shortcut: 'g h',
      },
      { id: 'tasks', label: 'Tasks', to: '/dev/shell', icon: ListTodo, count: 42, shortcut: 'g t' },
      { id: 'agents', label: 'Agents', to: '/dev/agents', icon: Bot, shortcut: 'g a' },
      { id: 'commands', label: 'Commands', to: '/dev/commands', icon: Terminal, shortcut: 'g m' },
      { id: 'gateways', label: 'Gateways', to: '/dev/gateways', icon: Server, shortcut: 'g w' },
      { id: 'knowledge', label: 'Knowledge', to: '/dev/knowledge', icon: BookOpen, shortcut: 'g k' },
      { id: 'contacts', label: 'Contacts', to: '/dev/contacts', icon: ContactRound, shortcut: 'g c' },
    ],
  },
  {
    id: 'agents',
    label: 'Your agents',
    items: [scout, quill, atlas].map((agent) => ({
      id: agent.id,
      label: agent.name,
      to: `/dev/agents/${agent.id}`,
      leading: <Avatar actor={agent} size="xs" decorative />,
    })),
  },
  { id: 'end', items: [{ id: 'settings', label: 'Settings', to: '/dev/settings', icon: Settings, shortcut: 'g s' }] },
]

/** The shell around a screen, with made-up rows. */
export function DevShell() {
  const { view, empty, long } = route.useSearch()
  const navigate = route.useNavigate()
  const now = useNow()
  const [palette, setPalette] = useState(false)
  return (
    <AppShell
      workspace={{
        name: long ? 'Arbeitsgemeinschaft Nordlicht' : 'Nordlicht',
        menu: [{ kind: 'item', label: 'Workspace settings', icon: Settings, onSelect: none }],
      }}
      person={{
        id: 'p1',
        name: 'Ana Duarte',
        menu: [
          { kind: 'label', label: 'ana@nordlicht.example' },
          { kind: 'item', label: 'Sign out', onSelect: none },
        ],
      }}
      groups={groups}
      phoneItems={['home', 'tasks', 'agents', 'knowledge']}
      sync={{ state: 'offline', pending: 3, needYou: 0, oldestAt: now - 12 * 60_000, to: '/dev/shell' }}
      onSearch={() => setPalette(true)}
      onCreate={() => toast({ title: 'New task' })}
    >
      <Page
        title="Tasks"
        crumbs={[{ label: 'Nordlicht', to: '/' }]}
        body="fill"
        actions={
          <Button variant="primary" icon={Plus} onClick={() => toast({ title: 'New task' })}>
            New task
          </Button>
        }
        bar={
          <div className="flex h-10 flex-1 items-center gap-3 touch:h-13">
            <Tabs
              label="View"
              look="segment"
              value={view ?? 'list'}
              onValueChange={(next) =>
                void navigate({
                  search: { ...(next === 'board' ? { view: 'board' as const } : {}), ...(long ? { long } : {}) },
                })
              }
              tabs={[
                { value: 'list', label: 'List' },
                { value: 'board', label: 'Board' },
              ]}
            />
            <span className="ml-auto flex items-center gap-1">
              <Badge hue={6} onRemove={none} removeLabel="Remove the filter">
                Research
              </Badge>
              <IconButton label="Filter" icon={SlidersHorizontal} shortcut="/" />
            </span>
          </div>
        }
        inspector={empty ? undefined : { title: 'T-1002', content: <Details now={now} /> }}
      >
        {empty ? (
          <EmptyState
            drawing="tasks"
            title="No tasks yet"
            className="h-full"
            action={
              <Button variant="primary" shortcut="c">
                New task
              </Button>
            }
          >
            Write down what should happen and give it to an agent or a person.
          </EmptyState>
        ) : view === 'board' ? (
          <div className="h-full pt-1">
            <TaskBoard long={long ?? false} />
          </div>
        ) : (
          <TaskList count={10_000} long={long ?? false} />
        )}
      </Page>
      <CommandPalette
        open={palette}
        onOpenChange={setPalette}
        groups={groups.map((group) => ({
          heading: group.label ?? 'Go to',
          items: group.items.map((item) => ({
            id: item.id,
            label: item.label,
            icon: item.icon,
            leading: item.leading,
            shortcut: item.shortcut,
            onSelect: none,
          })),
        }))}
      />
    </AppShell>
  )
}

function Details({ now }: { now: number }) {
  return (
    <>
      <div className="border-b border-line px-4 py-4">
        <p className="nums text-xs text-text-3">T-1002</p>
        <h2 className="mt-0.5 text-md font-semibold">Summarise last week’s support threads</h2>
      </div>
      <InspectorSection title="Properties">
        <Facts>
          <Fact label="Status">
            <Status meaning="busy" shape="half" label="In progress" />
          </Fact>
          <Fact label="Assignee">
            <Avatar actor={scout} decorative /> Scout
          </Fact>
          <Fact label="Stream">
            <Badge hue={6}>Research</Badge>
          </Fact>
          <Fact label="Due">
            <span className="nums">Fri, 4 Dec 2026</span>
          </Fact>
          <Fact label="Changed">
            <RelativeTime at={now - 3 * 3_600_000} words className="text-text-2" />
          </Fact>
        </Facts>
      </InspectorSection>
      <InspectorSection title="Scout now">
        <Status meaning="waiting" label="Waiting" detail="gateway mac-mini last heard 3 h ago" />
        <Meter className="mt-3" label="Budget, November" value={12.4} max={40} text="$12.40 of $40" />
      </InspectorSection>
    </>
  )
}
