import { Dialog } from '../dialog.tsx'
import { Kbd } from '../kbd.tsx'
import { useAllShortcuts } from '../keyboard.ts'

const ORDER = ['Everywhere', 'Go to', 'Lists']

/** Every shortcut in force right now, by group. */
export function KeyboardHelp({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const visible = useAllShortcuts().filter((shortcut) => !shortcut.hidden)
  const unique = [...new Map(visible.map((shortcut) => [`${shortcut.keys} ${shortcut.label}`, shortcut])).values()]
  const rank = (group: string) => (ORDER.indexOf(group) + ORDER.length + 1) % (ORDER.length + 1)
  const groups = [...Map.groupBy(unique, (shortcut) => shortcut.group)].sort(([a], [b]) => rank(a) - rank(b))
  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      title="Keyboard"
      description="What the keys do on this screen."
      size="lg"
    >
      <div className="columns-1 gap-8 sm:columns-2">
        {groups.map(([group, shortcuts]) => (
          <section key={group} className="mb-5 break-inside-avoid">
            <h3 className="pb-1 text-xs text-text-3">{group}</h3>
            <dl>
              {shortcuts.map((shortcut) => (
                <div
                  key={`${shortcut.keys} ${shortcut.label}`}
                  className="flex h-8 items-center justify-between gap-4 border-b border-line"
                >
                  <dt className="truncate">{shortcut.label}</dt>
                  <dd>
                    <Kbd keys={shortcut.keys} />
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  )
}
