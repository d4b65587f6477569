/** `/tasks`: every task of the workspace, as a list or a board; the view stands in the address. */
import { useNavigate } from '@tanstack/react-router'
import { Plus } from 'lucide-react'
import { useCallback, useEffect, useMemo, useRef, useState } from 'react'
import { useCreate } from '../../session/create.ts'
import { Button } from '../../ui/button.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { useShortcuts } from '../../ui/keyboard.ts'
import { Page } from '../../ui/shell/page.tsx'
import { useDirectory } from './directory.ts'
import type { TaskRow } from './model.ts'
import { QuickCreate } from './quick-create.tsx'
import { TaskBoard } from './task-board.tsx'
import { TaskInspector } from './task-inspector.tsx'
import { focusList, TaskList } from './task-list.tsx'
import { Toolbar } from './toolbar.tsx'
import { useTaskActions } from './use-actions.ts'
import { isFiltered, searchOf, type TaskSearch, type TaskView, viewOf } from './view.ts'

export function TasksPage({ search }: { search: TaskSearch }) {
  const navigate = useNavigate()
  const directory = useDirectory()
  const actions = useTaskActions()
  const searchKey = JSON.stringify(search)
  // The address decides; a new object only when it says something new.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for the search
  const view = useMemo(() => viewOf(search), [searchKey])
  const [active, setActive] = useState<TaskRow>()
  const newTask = useRef<HTMLInputElement>(null)
  const searchField = useRef<HTMLInputElement>(null)

  const onView = useCallback(
    (change: Partial<TaskView>) =>
      void navigate({ to: '/tasks', search: searchOf({ ...view, ...change }), replace: change.view === undefined }),
    [navigate, view],
  )
  const create = () => newTask.current?.focus()
  useCreate(create)
  useShortcuts([
    { keys: '/', label: 'Search and filter', group: 'Tasks', run: () => searchField.current?.focus() },
    {
      keys: 'v',
      label: 'List or board',
      group: 'Tasks',
      run: () => onView({ view: view.view === 'list' ? 'board' : 'list' }),
    },
  ])
  useEffect(() => {
    if (search.create) newTask.current?.focus()
  }, [search.create])

  const status = view.status.length === 1 ? view.status[0] : undefined
  const stream = view.stream && view.stream !== 'none' ? view.stream : undefined
  return (
    <Page
      title="Tasks"
      body="fill"
      actions={
        directory.canWrite && (
          <Button icon={Plus} shortcut="c" onClick={create}>
            New task
          </Button>
        )
      }
      bar={<Toolbar view={view} onView={onView} directory={directory} search={searchField} onLeave={focusList} />}
      inspector={
        view.view === 'list' && active
          ? {
              title: active.title,
              content: <TaskInspector taskId={active.id} directory={directory} actions={actions} />,
            }
          : undefined
      }
    >
      <div className="flex h-full min-h-0 flex-col">
        {directory.canWrite && (
          <QuickCreate
            field={newTask}
            actions={actions}
            directory={directory}
            defaults={{ status, stream_id: stream }}
            onCreated={() => undefined}
          />
        )}
        <div className="min-h-0 flex-1">
          {view.view === 'board' ? (
            <TaskBoard view={view} directory={directory} actions={actions} />
          ) : (
            <TaskList
              view={view}
              directory={directory}
              actions={actions}
              onActive={setActive}
              empty={
                <Nothing
                  filtered={isFiltered(view)}
                  canWrite={directory.canWrite}
                  onCreate={create}
                  onClear={() => onView({ status: [], assignee: undefined, stream: undefined, overdue: false, q: '' })}
                />
              }
            />
          )}
        </div>
      </div>
    </Page>
  )
}

function Nothing(props: { filtered: boolean; canWrite: boolean; onCreate: () => void; onClear: () => void }) {
  if (props.filtered)
    return (
      <EmptyState
        drawing="search"
        title="No task matches"
        action={
          <Button onClick={props.onClear} shortcut="escape">
            Clear the filters
          </Button>
        }
      >
        Search looks at titles, descriptions and labels of every task on this device, also without a network.
      </EmptyState>
    )
  return (
    <EmptyState
      drawing="tasks"
      title="No tasks yet"
      action={
        props.canWrite && (
          <Button variant="primary" icon={Plus} shortcut="c" onClick={props.onCreate}>
            New task
          </Button>
        )
      }
    >
      Write down what should be done and give it to an agent or a person: “Summarise the interviews @researcher !high”.
    </EmptyState>
  )
}
