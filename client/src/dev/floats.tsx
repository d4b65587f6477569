import { ArrowRight, Bot, Copy, ListTodo, Pencil, Trash2, UserRound } from 'lucide-react'
import { useState } from 'react'
import { Avatar } from '../ui/avatar.tsx'
import { Button } from '../ui/button.tsx'
import { CommandPalette } from '../ui/command-palette.tsx'
import { Confirm, Dialog } from '../ui/dialog.tsx'
import { Input } from '../ui/input.tsx'
import { ContextMenu, Menu, type MenuEntry } from '../ui/menu.tsx'
import { Popover } from '../ui/popover.tsx'
import { Sheet } from '../ui/sheet.tsx'
import { toast } from '../ui/toast.tsx'
import { Tooltip } from '../ui/tooltip.tsx'
import { actors, scout } from './sample.ts'
import { Row, Section } from './section.tsx'

const none = () => undefined
const entries: MenuEntry[] = [
  { kind: 'item', label: 'Edit', icon: Pencil, shortcut: 'e', onSelect: none },
  {
    kind: 'sub',
    label: 'Assign to',
    icon: UserRound,
    items: actors.slice(0, 4).map((actor) => ({
      kind: 'item',
      label: actor.name,
      icon: <Avatar actor={actor} decorative />,
      checked: actor === scout,
      onSelect: none,
    })),
  },
  { kind: 'item', label: 'Copy the link', icon: Copy, shortcut: 'mod+shift+c', onSelect: none },
  { kind: 'separator' },
  { kind: 'item', label: 'Convert to page', disabled: true, hint: 'later', onSelect: none },
  { kind: 'item', label: 'Delete', icon: Trash2, danger: true, shortcut: 'mod+backspace', onSelect: none },
]

export function FloatExhibits() {
  const [open, setOpen] = useState<'dialog' | 'confirm' | 'sheet' | 'bottom' | 'palette' | null>(null)
  const shown = (name: NonNullable<typeof open>) => ({
    open: open === name,
    onOpenChange: (next: boolean) => setOpen(next ? name : null),
  })
  return (
    <Section id="floats" title="What floats" note="Shadows only here. Escape closes, focus goes back where it was.">
      <Row>
        <Menu label="Task" items={entries} trigger={<Button>Menu</Button>} />
        <ContextMenu items={entries}>
          <div className="grid h-7 place-items-center rounded-control border border-dashed border-line-strong px-3 text-text-2">
            Right click here
          </div>
        </ContextMenu>
        <Popover label="Filter" trigger={<Button>Popover</Button>}>
          <Input label="Title contains" placeholder="invoice" />
        </Popover>
        <Tooltip content="A short name" shortcut="mod+k">
          <Button>Tooltip</Button>
        </Tooltip>
        <Button onClick={() => setOpen('dialog')}>Dialog</Button>
        <Button onClick={() => setOpen('confirm')}>Confirm</Button>
        <Button onClick={() => setOpen('sheet')}>Sheet</Button>
        <Button onClick={() => setOpen('bottom')}>Bottom sheet</Button>
        <Button onClick={() => setOpen('palette')}>Palette</Button>
        <Button
          onClick={() =>
            toast({
              title: 'Moved to In review',
              description: 'Draft the investor update',
              meaning: 'good',
              action: { label: 'Undo', onClick: none },
            })
          }
        >
          Toast
        </Button>
        <Button
          onClick={() =>
            toast({
              title: 'Could not reach gateway mac-mini',
              description: 'The command waits and starts when it is heard again.',
              meaning: 'warning',
            })
          }
        >
          Warning toast
        </Button>
      </Row>
      <Dialog
        {...shown('dialog')}
        title="New agent"
        description="From a template; you can change everything later."
        footer={
          <>
            <Button onClick={() => setOpen(null)}>Cancel</Button>
            <Button variant="primary" onClick={() => setOpen(null)}>
              Continue
            </Button>
          </>
        }
      >
        <div className="grid gap-4 sm:grid-cols-2">
          <Input label="Name" placeholder="Scout" />
          <Input label="Slug" placeholder="scout" mono />
        </div>
      </Dialog>
      <Confirm
        {...shown('confirm')}
        title="Remove Scout from this gateway?"
        confirm="Remove agent"
        danger
        onConfirm={() => setOpen(null)}
      >
        Its worktree is deleted from <span className="font-mono text-xs">mac-mini</span>. Tasks, runs and deliverables
        stay. This cannot be undone.
      </Confirm>
      <Sheet {...shown('sheet')} title="Details">
        <p className="p-4 text-text-2">The inspector, where there is no room beside the page.</p>
      </Sheet>
      <Sheet {...shown('bottom')} title="Details" side="bottom">
        <p className="p-4 text-text-2">The same on a phone.</p>
      </Sheet>
      <CommandPalette
        {...shown('palette')}
        groups={[
          {
            heading: 'Go to',
            items: [
              { id: 'tasks', label: 'Tasks', icon: ListTodo, shortcut: 'g t', onSelect: none },
              { id: 'agents', label: 'Agents', icon: Bot, shortcut: 'g a', onSelect: none },
            ],
          },
          {
            heading: 'Agents',
            items: [
              {
                id: 'scout',
                label: 'Scout',
                leading: <Avatar actor={scout} decorative />,
                hint: 'Running: Compare three invoicing providers',
                onSelect: none,
              },
            ],
          },
          {
            heading: 'Do',
            items: [
              {
                id: 'move',
                label: 'Move to In review',
                icon: ArrowRight,
                shortcut: '.',
                keywords: ['status'],
                onSelect: none,
              },
            ],
          },
        ]}
      />
    </Section>
  )
}
