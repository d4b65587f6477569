/** All actions that this gateway knows. */
import type { Action } from '../action.ts'
import { backup } from './backup.ts'
import { containerAction } from './container-action.ts'
import { containerList } from './container-list.ts'
import { containerLogs } from './container-logs.ts'
import { installRuntime } from './install-runtime.ts'
import { listModels } from './list-models.ts'
import { move } from './move.ts'
import { provision } from './provision.ts'
import { remove } from './remove.ts'
import { restartRuntime } from './restart-runtime.ts'
import { runShell } from './run-shell.ts'
import { update } from './update.ts'

export const ACTIONS: readonly Action[] = [
  provision,
  update,
  remove,
  move,
  listModels,
  installRuntime,
  restartRuntime,
  backup,
  containerList,
  containerLogs,
  containerAction,
  runShell,
]
