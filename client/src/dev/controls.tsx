import { Bot, Ellipsis, Link2, Plus, Search, Star, Trash2 } from 'lucide-react'
import { useState } from 'react'
import { Avatar } from '../ui/avatar.tsx'
import { Button } from '../ui/button.tsx'
import { Checkbox } from '../ui/checkbox.tsx'
import { Combobox } from '../ui/combobox.tsx'
import { DateField } from '../ui/date-field.tsx'
import { IconButton } from '../ui/icon-button.tsx'
import { Input } from '../ui/input.tsx'
import { Kbd } from '../ui/kbd.tsx'
import { Select } from '../ui/select.tsx'
import { StatusShape } from '../ui/status.tsx'
import { Switch } from '../ui/switch.tsx'
import { Tabs } from '../ui/tabs.tsx'
import { Textarea } from '../ui/textarea.tsx'
import { actors, statuses } from './sample.ts'
import { Row, Section } from './section.tsx'

const people = actors.map((actor) => ({
  value: actor.id,
  label: actor.name,
  icon: <Avatar actor={actor} decorative />,
  group: actor.kind === 'person' ? 'People' : 'Agents',
}))
const streams = ['Finance', 'Writing', 'Research', 'Home'].map((label) => ({ value: label.toLowerCase(), label }))

export function ControlExhibits() {
  return (
    <>
      <Section id="buttons" title="Buttons">
        <div className="space-y-3">
          <Row>
            <Button variant="primary" icon={Plus}>
              New task
            </Button>
            <Button>Secondary</Button>
            <Button variant="ghost">Ghost</Button>
            <Button variant="danger" icon={Trash2}>
              Remove agent
            </Button>
            <Button busy>Provisioning</Button>
            <Button disabled>Disabled</Button>
            <Button shortcut="mod+enter">Send</Button>
          </Row>
          <Row>
            <Button size="sm">Small</Button>
            <Button size="md">Medium</Button>
            <Button size="lg" variant="primary">
              Large
            </Button>
            <IconButton label="Star" icon={Star} />
            <IconButton label="Starred" icon={Star} pressed />
            <IconButton label="More" icon={Ellipsis} variant="outline" />
            <IconButton label="Copy the link" icon={Link2} size="sm" />
            <Kbd keys="mod+k" />
            <Kbd keys="g t" />
            <Kbd keys="shift+enter" />
          </Row>
        </div>
      </Section>
      <Fields />
      <Toggles />
    </>
  )
}

function Fields() {
  const [name, setName] = useState('Scout')
  const [slug, setSlug] = useState('scout')
  const [text, setText] = useState('Reads widely, writes briefly, always names its sources.')
  const [status, setStatus] = useState('in_progress')
  const [assignee, setAssignee] = useState<string | null>('a1')
  const [tags, setTags] = useState<string[]>(['finance', 'research'])
  const [due, setDue] = useState<string | null>('2026-12-04')
  return (
    <Section id="fields" title="Fields">
      <div className="grid gap-5 sm:grid-cols-2 lg:grid-cols-3">
        <Input
          label="Name"
          value={name}
          onChange={(event) => setName(event.target.value)}
          hint="As people will address it."
          icon={Bot}
        />
        <Input
          label="Slug"
          value={slug}
          onChange={(event) => setSlug(event.target.value)}
          error="Already taken in this workspace. Try scout-2."
          mono
        />
        <Input label="Find" hideLabel placeholder="Filter tasks" icon={Search} trailing={<Kbd keys="/" />} />
        <Select
          label="Status"
          value={status}
          onValueChange={setStatus}
          options={statuses.map((s) => ({
            value: s.id,
            label: s.label,
            icon: <StatusShape shape={s.shape} meaning={s.meaning} />,
          }))}
        />
        <Combobox
          label="Assignee"
          value={assignee}
          onValueChange={setAssignee}
          options={people}
          searchPlaceholder="A person or an agent"
          clearable
        />
        <DateField label="Due" optional value={due} onValueChange={setDue} today="2026-11-30" />
        <Combobox
          multiple
          label="Streams"
          value={tags}
          onValueChange={setTags}
          options={streams}
          onCreate={(label) => setTags([...tags, label])}
        />
        <Select
          label="Model"
          value={null}
          onValueChange={() => undefined}
          options={[]}
          placeholder="No provider yet"
          disabled
        />
        <Input label="Monthly budget" defaultValue="40.00" trailing="USD" className="nums" />
        <Textarea
          label="Soul"
          value={text}
          onChange={(event) => setText(event.target.value)}
          hint="Who it is, in its own words."
          className="sm:col-span-2 lg:col-span-3"
        />
      </div>
    </Section>
  )
}

function Toggles() {
  const [checked, setChecked] = useState(true)
  const [on, setOn] = useState(true)
  const [tab, setTab] = useState<'overview' | 'runs' | 'files'>('overview')
  const [view, setView] = useState<'list' | 'board'>('list')
  return (
    <Section id="toggles" title="Toggles and tabs">
      <div className="grid gap-8 md:grid-cols-2">
        <div className="space-y-2">
          <Checkbox
            label="Review before it counts as done"
            checked={checked}
            onCheckedChange={setChecked}
            hint="You approve each deliverable."
          />
          <Checkbox label="Some selected" checked="indeterminate" onCheckedChange={() => undefined} />
          <Checkbox label="Not available offline" checked={false} disabled onCheckedChange={() => undefined} />
          <div className="space-y-3 pt-2">
            <Switch label="Paused" hint="No model calls until you resume it." checked={on} onCheckedChange={setOn} />
            <Switch label="Share with the workspace" checked={false} onCheckedChange={() => undefined} />
          </div>
        </div>
        <div className="space-y-5">
          <Tabs
            label="Agent"
            value={tab}
            onValueChange={setTab}
            tabs={[
              { value: 'overview', label: 'Overview' },
              { value: 'runs', label: 'Runs', count: 128 },
              { value: 'files', label: 'Files', count: 9 },
            ]}
          >
            <p className="py-3 text-text-2">Shown: {tab}.</p>
          </Tabs>
          <Tabs
            label="View"
            look="segment"
            value={view}
            onValueChange={setView}
            tabs={[
              { value: 'list', label: 'List' },
              { value: 'board', label: 'Board' },
            ]}
          />
        </div>
      </div>
    </Section>
  )
}
