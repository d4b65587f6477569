/** `auth_set_api_key`: always refused, here and by the server. A command's payload is a row that everybody reads, so no key may travel in one. */
import { z } from 'zod'
import { ActionError, defineAction } from '../action.ts'

export const authSetApiKey = defineAction({
  name: 'auth_set_api_key',
  agent: 'none',
  payload: z.looseObject({}),
  steps: [],
  run: () => {
    throw new ActionError(
      'No key is taken from a command, which everybody could read. Set it under Models, where it is sealed; if this command had one, end that key at its provider.',
    )
  },
})
