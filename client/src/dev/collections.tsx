import { File, Folder } from 'lucide-react'
import { useState } from 'react'
import { Avatar } from '../ui/avatar.tsx'
import { Badge } from '../ui/badge.tsx'
import { Sparkline } from '../ui/sparkline.tsx'
import { Status } from '../ui/status.tsx'
import { type Sort, Table } from '../ui/table.tsx'
import { toast } from '../ui/toast.tsx'
import { Tree, type TreeNode } from '../ui/tree.tsx'
import { atlas, quill, scout } from './sample.ts'
import { Section } from './section.tsx'
import { TaskBoard, TaskList } from './task-demo.tsx'

const rows = [
  { actor: scout, runs: 128, cost: 12.4, state: 'Running', meaning: 'busy' as const, week: [3, 5, 2, 8, 9, 4, 6] },
  { actor: quill, runs: 64, cost: 8.6, state: 'Idle', meaning: 'good' as const, week: [1, 0, 2, 3, 1, 4, 2] },
  {
    actor: atlas,
    runs: 9,
    cost: 10,
    state: 'Budget reached',
    meaning: 'warning' as const,
    week: [6, 7, 4, 0, 0, 0, 0],
  },
]
const files: TreeNode[] = [
  {
    id: 'skills',
    label: 'skills',
    icon: <Folder />,
    children: [
      { id: 'web', label: 'web-reading.md', icon: <File />, trailing: '2.1 kB' },
      { id: 'cite', label: 'citing-sources.md', icon: <File />, trailing: '1.4 kB' },
      { id: 'more', label: 'more', icon: <Folder />, children: [] },
    ],
  },
  { id: 'agent', label: 'agent.json', icon: <File />, trailing: '412 B' },
  { id: 'identity', label: 'IDENTITY.md', icon: <File />, trailing: '890 B' },
  { id: 'soul', label: 'SOUL.md', icon: <File />, trailing: '3.2 kB' },
]

export function CollectionExhibits() {
  const [sort, setSort] = useState<Sort>({ column: 'runs', direction: 'desc' })
  const [expanded, setExpanded] = useState<ReadonlySet<string>>(new Set(['skills']))
  const [file, setFile] = useState<string | null>('soul')
  const sorted = rows.toSorted(
    (a, b) => (sort.column === 'runs' ? a.runs - b.runs : a.cost - b.cost) * (sort.direction === 'asc' ? 1 : -1),
  )
  return (
    <>
      <Section id="table" title="Table and tree">
        <div className="grid gap-6 lg:grid-cols-[1fr_280px]">
          <div className="overflow-hidden rounded-card border border-line">
            <Table
              label="Agents and what they cost"
              rows={sorted}
              rowKey={(row) => row.actor.id}
              sort={sort}
              onSortChange={setSort}
              onOpen={(row) => toast({ title: `Opened ${row.actor.name}` })}
              columns={[
                {
                  id: 'name',
                  header: 'Agent',
                  cell: (row) => (
                    <span className="flex items-center gap-2">
                      <Avatar actor={row.actor} decorative /> {row.actor.name}
                    </span>
                  ),
                },
                {
                  id: 'state',
                  header: 'State',
                  width: '160px',
                  cell: (row) => <Status meaning={row.meaning} label={row.state} />,
                },
                {
                  id: 'week',
                  header: 'Week',
                  width: '110px',
                  from: 'sm',
                  cell: (row) => (
                    <Sparkline
                      kind="bars"
                      width={80}
                      height={16}
                      values={row.week}
                      label={`Runs a day: ${row.week.join(', ')}`}
                    />
                  ),
                },
                { id: 'runs', header: 'Runs', width: '80px', align: 'right', sortable: true, cell: (row) => row.runs },
                {
                  id: 'cost',
                  header: 'Cost',
                  width: '90px',
                  align: 'right',
                  sortable: true,
                  cell: (row) => `$${row.cost.toFixed(2)}`,
                },
              ]}
            />
          </div>
          <Tree
            label="Files of Scout"
            nodes={files}
            expanded={expanded}
            onExpandedChange={setExpanded}
            selected={file}
            onSelect={(node) => setFile(node.id)}
          />
        </div>
      </Section>
      <Section
        id="list"
        title="Virtual list"
        note="10,000 rows. J/K or arrows move, X selects, ⇧ extends, Enter opens, E edits the selection."
      >
        <div className="h-[360px] overflow-hidden rounded-card border border-line">
          <TaskList count={10_000} />
        </div>
      </Section>
      <Section
        id="board"
        title="Board"
        note="Drag, or Space lifts, arrows choose, Space drops. Each column is virtual; Backlog holds 2,000."
      >
        <div className="-mx-3 h-[420px]">
          <TaskBoard />
        </div>
        <p className="mt-3 flex gap-2 text-text-3">
          <Badge hue={6}>Research</Badge> tags keep their colour everywhere.
        </p>
      </Section>
    </>
  )
}
