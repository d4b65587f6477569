/**
 * `backup`: a backup of this gateway, now. No payload. Result: `{backup_id, size}`. A cancel or a crash leaves the older ones as they were; sending it again makes
 * another one.
 */
import { BackupError } from '@hq/shared/backup/sealed-file.ts'
import { z } from 'zod'
import { explainBackup, takeBackup } from '../../backup/backup.ts'
import { ServerAway } from '../../backup/blobs.ts'
import { ActionError, defineAction } from '../action.ts'

export const backup = defineAction({
  name: 'backup',
  agent: 'none',
  payload: z.looseObject({}),
  steps: [
    { key: 'files', label: 'Commit what agents have written' },
    { key: 'repository', label: 'Pack the repository' },
    { key: 'encrypt', label: 'Encrypt' },
    { key: 'send', label: 'Send to the server' },
    { key: 'tidy', label: 'Clear away older ones' },
  ],
  run: async ({ context, signal, step, output }) => {
    try {
      const { id, size, commit } = await takeBackup(context, { reason: 'demand', signal, step })
      output(`A backup of ${Math.ceil(size / 1024)} KiB is at the server.\n`)
      return { result: { backup_id: id, size }, commit }
    } catch (error) {
      if (signal.aborted || !(error instanceof BackupError || error instanceof ServerAway)) throw error
      throw new ActionError(explainBackup(error), { cause: error })
    }
  },
})
