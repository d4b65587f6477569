/**
 * `restore`: agents whose folder is gone get it back from a backup of this gateway; what is here stays as it is. Payload: `{sha256?}`, default the newest. Result: `{at, restored,
 * archive}`. Sent again it does what is left to do.
 */
import { BackupError } from '@hq/shared/backup/sealed-file.ts'
import { z } from 'zod'
import { explainBackup } from '../../backup/backup.ts'
import { ServerAway } from '../../backup/blobs.ts'
import { bringBack } from '../../backup/bring-back.ts'
import { ActionError, defineAction } from '../action.ts'

export const restore = defineAction({
  name: 'restore',
  agent: 'none',
  payload: z.looseObject({
    sha256: z
      .string()
      .regex(/^[0-9a-f]{64}$/)
      .optional(),
  }),
  steps: [
    { key: 'fetch', label: 'Fetch the backup' },
    { key: 'check', label: 'Check it' },
    { key: 'bring', label: 'Bring back what is missing' },
  ],
  run: async ({ context, signal, step, output }, { sha256 }) => {
    try {
      const { at, restored, archive } = await bringBack(context, { sha256, signal, step })
      output(
        restored.length === 0
          ? `Every agent has its folder; nothing was changed. The versions of ${at} are under ${archive}.\n`
          : `From the backup of ${at}: ${restored.join(', ')}.\n`,
      )
      return { result: { at, restored, archive } }
    } catch (error) {
      if (signal.aborted || !(error instanceof BackupError || error instanceof ServerAway)) throw error
      throw new ActionError(explainBackup(error), { cause: error })
    }
  },
})
