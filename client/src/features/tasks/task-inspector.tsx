/** The active task of a list, beside the list: facts, relations, the beginning of its description. */
import { Link } from '@tanstack/react-router'
import { useById } from '../../replica/hooks.ts'
import { buttonClass } from '../../ui/button.tsx'
import { Markdown } from '../comments/markdown.tsx'
import type { TaskActions } from './actions.ts'
import type { Directory } from './directory.ts'
import { assigneeOf, type Task } from './model.ts'
import { Properties } from './properties.tsx'
import { Relations, useRelated } from './relations.tsx'
import { TaskWhy } from './task-why.tsx'

export function TaskInspector(props: { taskId: string; directory: Directory; actions: TaskActions }) {
  const { taskId, directory, actions } = props
  const { row: task } = useById<Task>('tasks', taskId)
  const related = useRelated(taskId)
  if (!task) return null
  const assignee = assigneeOf(task)
  const agent = directory.agent(assignee?.type === 'agent' ? assignee.id : null)
  return (
    <>
      <header className="grid gap-2 border-b border-line px-4 py-3">
        <h2 className="text-md font-semibold">{task.title}</h2>
        {agent && <TaskWhy task={task} agent={agent} related={related} reviews={0} />}
        {task.description && (
          <div className="max-h-44 overflow-hidden text-text-2 [mask-image:linear-gradient(#000_75%,transparent)]">
            <Markdown text={task.description.slice(0, 1200)} mentionable={directory.mentionable} />
          </div>
        )}
        <Link to="/tasks/$taskId" params={{ taskId }} className={buttonClass('secondary', 'sm')}>
          Open
        </Link>
      </header>
      <div className="border-b border-line px-4 py-3">
        <Properties task={task} directory={directory} actions={actions} />
      </div>
      <div className="px-4 py-3">
        <Relations task={task} related={related} directory={directory} actions={actions} />
      </div>
    </>
  )
}
