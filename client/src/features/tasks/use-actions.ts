/** The actions on tasks for screens: they refuse what the role may not do, and say when something could not be saved. */
import { useMemo } from 'react'
import { newId, replica, useWrite } from '../../replica/hooks.ts'
import { useSession } from '../../session/session.ts'
import { toast } from '../../ui/toast.tsx'
import { pushUndo, undoLast } from '../../ui/undo.ts'
import { type TaskActions, taskActions } from './actions.ts'

/** Says why something was not saved. For promises that nobody awaits. */
export function report(error: unknown): void {
  toast({
    title: 'That was not saved',
    description: error instanceof Error ? error.message : String(error),
    meaning: 'danger',
  })
}

/** A short word about a change that cannot be seen where it was made (many tasks, a deleted one), with the way back. */
export function toastUndo(title: string): void {
  toast({ title, id: 'undo', action: { label: 'Undo', onClick: () => void undoLast().catch(report) } })
}

export function useTaskActions(): TaskActions {
  const write = useWrite()
  const { principal, canWrite } = useSession()
  const { tenant_id: tenantId, person_id: me } = principal
  return useMemo(
    () =>
      taskActions({
        write: (statements, options) =>
          canWrite
            ? write(statements, options)
            : Promise.reject(
                new Error(
                  'You can look at everything here, but your role (viewer) may not change tasks. Ask an admin.',
                ),
              ),
        query: (sql, params) => replica().query(sql, params),
        newId,
        pushUndo,
        tenantId,
        me,
      }),
    [write, canWrite, tenantId, me],
  )
}
