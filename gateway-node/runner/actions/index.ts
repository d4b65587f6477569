/** All actions that this gateway knows. */
import type { Action } from '../action.ts'
import { approvePairing } from './approve-pairing.ts'
import { authList } from './auth-list.ts'
import { authPaste } from './auth-paste.ts'
import { authRefresh } from './auth-refresh.ts'
import { authRemove } from './auth-remove.ts'
import { authSetApiKey } from './auth-set-api-key.ts'
import { authSetDefault } from './auth-set-default.ts'
import { authStart } from './auth-start.ts'
import { backup } from './backup.ts'
import { containerAction } from './container-action.ts'
import { containerList } from './container-list.ts'
import { containerLogs } from './container-logs.ts'
import { fileDelete } from './file-delete.ts'
import { fileDiff } from './file-diff.ts'
import { fileHistory } from './file-history.ts'
import { fileList } from './file-list.ts'
import { fileRead } from './file-read.ts'
import { fileRestore } from './file-restore.ts'
import { fileWrite } from './file-write.ts'
import { installRuntime } from './install-runtime.ts'
import { listModels } from './list-models.ts'
import { move } from './move.ts'
import { provision } from './provision.ts'
import { remove } from './remove.ts'
import { restartRuntime } from './restart-runtime.ts'
import { restore } from './restore.ts'
import { runShell } from './run-shell.ts'
import { setAgentModel } from './set-agent-model.ts'
import { update } from './update.ts'
import { upgradeTemplate } from './upgrade-template.ts'

export const ACTIONS: readonly Action[] = [
  provision,
  update,
  remove,
  move,
  listModels,
  setAgentModel,
  authList,
  authSetDefault,
  authRemove,
  authSetApiKey,
  authStart,
  authPaste,
  authRefresh,
  approvePairing,
  installRuntime,
  restartRuntime,
  backup,
  restore,
  containerList,
  containerLogs,
  containerAction,
  runShell,
  fileList,
  fileRead,
  fileWrite,
  fileDelete,
  fileHistory,
  fileDiff,
  fileRestore,
  upgradeTemplate,
]
