import { createFileRoute } from '@tanstack/react-router'
import { TasksPage } from '../../features/tasks/tasks-page.tsx'
import { readSearch } from '../../features/tasks/view.ts'

export const Route = createFileRoute('/_app/tasks/')({ validateSearch: readSearch, component: Tasks })

function Tasks() {
  return <TasksPage search={Route.useSearch()} />
}
