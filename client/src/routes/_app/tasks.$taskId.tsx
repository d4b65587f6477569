import { createFileRoute } from '@tanstack/react-router'
import { TaskPage } from '../../features/tasks/task-page.tsx'

export const Route = createFileRoute('/_app/tasks/$taskId')({ component: Task })

function Task() {
  const { taskId } = Route.useParams()
  // A key: another task is another page, with its own drafts.
  return <TaskPage key={taskId} taskId={taskId} />
}
