/**
 * What just happened and how to take it back. A screen pushes an entry after each change; ⌘Z (registered by the app
 * shell) and a toast's Undo take the newest. In memory only: a reload forgets.
 */
export type Undoable = { label: string; undo: () => void | Promise<void> }

const LIMIT = 50
const stack: Undoable[] = []

export function pushUndo(entry: Undoable): void {
  stack.push(entry)
  if (stack.length > LIMIT) stack.shift()
}

/** Takes the newest change back. Returns its label, or null when there is nothing. A failed undo stays on the stack. */
export async function undoLast(): Promise<string | null> {
  const entry = stack.pop()
  if (!entry) return null
  try {
    await entry.undo()
  } catch (error) {
    stack.push(entry)
    throw error
  }
  return entry.label
}
