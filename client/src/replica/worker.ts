/** The entry of the database worker, one per tab; all of PGlite is in this one bundle. */
import { Coordinator } from './coordinator.ts'
import { databaseName } from './database-files.ts'
import { openEngine } from './engine.ts'
import { newId } from './id.ts'
import type { ToPage, ToWorker } from './messages.ts'

const post = (message: ToPage): void => self.postMessage(message)

let coordinator: Coordinator | undefined

self.onmessage = (event: MessageEvent<ToWorker>) => {
  const message = event.data
  switch (message.t) {
    case 'start':
      coordinator = new Coordinator({
        // Without locks (no secure address) every tab is on its own.
        name: databaseName(message.identity) + (navigator.locks ? '' : `-${newId()}`),
        open: (events) => openEngine(message.identity, events),
        post,
      })
      coordinator.start()
      return
    case 'call':
      coordinator?.call(message.call)
      return
    case 'cancel':
      coordinator?.cancel(message.id)
      return
    case 'wake':
      coordinator?.wake()
      return
    case 'close':
      void coordinator?.close().then(() => post({ t: 'closed' }))
      return
  }
}
