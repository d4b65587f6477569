/** The parts of a real gateway, in the order of their start. */
import type { Parts } from './daemon.ts'
import { createDispatcher } from './dispatcher/dispatcher.ts'
import { createRuntimes, type Runtimes } from './runtime/registry.ts'

export const parts: Parts<Runtimes> = {
  createRuntimes: (context) => createRuntimes(context),
  createServices: (context, runtimes) => [{ name: 'dispatcher', service: createDispatcher(context, { runtimes }) }],
}
