import { AgentAvatar, AvatarStack, PersonAvatar } from '../ui/avatar.tsx'
import { Badge, Count } from '../ui/badge.tsx'
import { Banner } from '../ui/banner.tsx'
import { Button } from '../ui/button.tsx'
import type { DrawingName } from '../ui/drawings.tsx'
import { Drawing } from '../ui/drawings.tsx'
import { EmptyState } from '../ui/empty-state.tsx'
import { Meter } from '../ui/meter.tsx'
import { Progress } from '../ui/progress.tsx'
import { RelativeTime, useNow } from '../ui/relative-time.tsx'
import { SyncPill } from '../ui/shell/sync-pill.tsx'
import { Skeleton, SkeletonRow } from '../ui/skeleton.tsx'
import { Sparkline } from '../ui/sparkline.tsx'
import { Status } from '../ui/status.tsx'
import { Steps } from '../ui/steps.tsx'
import { SyncDot } from '../ui/sync-dot.tsx'
import { Timeline } from '../ui/timeline.tsx'
import { actors, ana, quill, scout, statuses } from './sample.ts'
import { Row, Section } from './section.tsx'

const HOUR = 3_600_000
const DRAWINGS: DrawingName[] = [
  'inbox',
  'agents',
  'tasks',
  'commands',
  'gateways',
  'knowledge',
  'contacts',
  'search',
  'offline',
  'error',
  'files',
  'done',
]

export function StateExhibits() {
  const now = useNow()
  return (
    <>
      <Section
        id="status"
        title="Status, badges, people and agents"
        note="A shape and a word; colour is never alone. People are round, agents square."
      >
        <div className="space-y-4">
          <Row>
            {statuses.map((s) => (
              <Status key={s.id} meaning={s.meaning} shape={s.shape} label={s.label} />
            ))}
          </Row>
          <Row>
            <Status meaning="busy" label="Running" detail="Compare three invoicing providers" />
            <Status meaning="good" label="Idle" detail="nothing assigned" />
            <Status meaning="waiting" label="Waiting" detail="gateway mac-mini last heard 3 h ago" />
            <Status meaning="warning" label="Budget reached" detail="resets 1 Dec" />
            <Status meaning="danger" label="Failed" detail="git is missing" />
            <Status meaning="neutral" shape="pause" label="Paused" detail="by Ana" />
            <Status meaning="neutral" shape="off" label="Offline" />
            <Status meaning="neutral" shape="slash" label="Cancelled" />
          </Row>
          <Row>
            <Badge>Plain</Badge>
            <Badge hue={4}>Finance</Badge>
            <Badge hue={8}>Writing</Badge>
            <Badge meaning="good">Approved</Badge>
            <Badge meaning="warning">Revision asked</Badge>
            <Badge meaning="danger">Dead letter</Badge>
            <Badge meaning="busy">Live</Badge>
            <Badge meaning="waiting">Demo model</Badge>
            <Badge hue={2} onRemove={() => undefined} removeLabel="Remove Home">
              Home
            </Badge>
            <Count value={12} /> <Count value={3} urgent label="3 need you" />
          </Row>
          <Row>
            {(['xs', 'sm', 'md', 'lg', 'xl'] as const).map((size) => (
              <PersonAvatar key={size} name="Ana Duarte" size={size} />
            ))}
            {(['xs', 'sm', 'md', 'lg', 'xl'] as const).map((size) => (
              <AgentAvatar key={size} name="Scout" emoji="🔭" hue={6} size={size} />
            ))}
            <AvatarStack actors={actors} max={4} />
            <PersonAvatar name="田中 美緒" size="lg" />
            <PersonAvatar name="Jean-Luc de la Fontaine" size="lg" />
          </Row>
        </div>
      </Section>
      <Section id="sync" title="Sync">
        <div className="grid gap-6 md:grid-cols-2">
          <div className="grid grid-cols-[20px_1fr] items-center gap-x-2 gap-y-2">
            <SyncDot state="pending" /> <span>Waits for the server</span>
            <SyncDot state="rejected" reason="The task was deleted by Ben" onOpen={() => undefined} />{' '}
            <span>Rejected: an edge on the row, and the reason</span>
            <SyncDot state="conflict" reason="Ana changed the title too" onOpen={() => undefined} />{' '}
            <span>Changed in two places</span>
          </div>
          <div className="grid gap-2 sm:grid-cols-2">
            {[
              { state: 'synced', pending: 0, needYou: 0 } as const,
              { state: 'offline', pending: 3, needYou: 0, oldestAt: now - 12 * 60_000 } as const,
              { state: 'syncing', pending: 0, needYou: 0, progress: { done: 4120, total: 9800 } } as const,
              { state: 'synced', pending: 0, needYou: 2 } as const,
            ].map((pill) => (
              <div key={`${pill.state}${pill.needYou}`} className="rounded-control border border-line bg-bg p-1">
                <SyncPill {...pill} to="/dev/ui" />
              </div>
            ))}
          </div>
        </div>
      </Section>
      <Section id="measures" title="Measures">
        <div className="grid gap-x-10 gap-y-5 md:grid-cols-2">
          <Meter label="Budget, November" value={12.4} max={40} text="$12.40 of $40" />
          <Meter label="Budget, Quill" value={8.6} max={10} text="$8.60 of $10" />
          <Meter label="Budget, Atlas" value={10} max={10} text="$10.00 of $10" />
          <Progress label="First sync" value={4120} max={9800} detail="4,120 of 9,800 rows" />
          <Progress label="Indexing" value={null} detail="counting files…" />
          <Row>
            <Sparkline values={[2, 4, 3, 8, 6, 9, 7, 12, 10, 14]} label="Cost per day, today $1.40" />
            <Sparkline kind="bars" values={[2, 4, 0, 8, 6, 9, 0, 12, 10, 14]} label="Runs per day, today 14" hue={6} />
            <span className="text-text-3">
              <RelativeTime at={now - 20_000} words /> · <RelativeTime at={now - 3 * HOUR} words /> ·{' '}
              <RelativeTime at={now + 50 * HOUR} words /> · <RelativeTime at={now - 400 * 24 * HOUR} />
            </span>
          </Row>
        </div>
      </Section>
      <Section id="long" title="Long jobs and what happened">
        <div className="grid gap-10 md:grid-cols-2">
          <Steps
            label="Provisioning Scout"
            steps={[
              { id: '1', label: 'Worktree from template researcher', state: 'done', tookMs: 840 },
              { id: '2', label: 'Owner profile filled in', state: 'done', tookMs: 62 },
              {
                id: '3',
                label: 'Skills installed',
                state: 'doing',
                progress: { value: 4, max: 7, text: '4 of 7' },
                detail: 'web-reading',
              },
              { id: '4', label: 'Search index', state: 'skipped', detail: 'No embedding model; keyword search works.' },
              {
                id: '5',
                label: 'Runtime checked',
                state: 'failed',
                detail: 'ollama did not answer on port 11434.',
                action: <Button size="sm">Try again</Button>,
              },
              { id: '6', label: 'First hello', state: 'todo' },
            ]}
          />
          <Timeline
            label="Activity"
            events={[
              { id: '1', at: now - 26 * HOUR, actor: ana, text: 'created this and assigned Scout' },
              { id: '2', at: now - 25 * HOUR, actor: scout, text: 'claimed it' },
              {
                id: '3',
                at: now - 4 * HOUR,
                actor: scout,
                text: 'submitted a deliverable',
                body: (
                  <div className="rounded-control border border-line px-3 py-2 text-text-2">
                    Invoicing providers, compared. Recommends Lexware for under 200 invoices a month.
                  </div>
                ),
              },
              {
                id: '4',
                at: now - 3 * HOUR,
                mark: { shape: 'triangle', meaning: 'warning' },
                text: 'Revision asked: prices without VAT, please.',
              },
              { id: '5', at: now - 30_000, actor: quill, text: 'was mentioned' },
            ]}
          />
        </div>
      </Section>
      <Section id="banners" title="Banners, skeletons and emptiness">
        <div className="space-y-3">
          <Banner
            meaning="waiting"
            title="Agents use the demo model"
            action={<Button size="sm">Add a provider</Button>}
          >
            It works the whole loop but knows little. Add a provider to get real answers.
          </Banner>
          <Banner
            meaning="danger"
            title="Rejected: “Reconcile October’s card statements”"
            action={<Button size="sm">Edit and retry</Button>}
            onDismiss={() => undefined}
          >
            Ben deleted this task 4 min before your change arrived. Your text is kept here.
          </Banner>
          <Banner meaning="good" title="A new version is ready" action={<Button size="sm">Reload</Button>} />
        </div>
        <div className="mt-6 grid gap-6 md:grid-cols-2">
          <div className="rounded-card border border-line">
            <EmptyState
              drawing="tasks"
              title="No tasks yet"
              action={
                <Button variant="primary" shortcut="c">
                  New task
                </Button>
              }
            >
              Write down what should happen and give it to an agent or a person.
            </EmptyState>
          </div>
          <div className="flex flex-col gap-4 rounded-card border border-line p-4">
            <Skeleton className="h-4 w-40" />
            <div className="-mx-4 *:h-8">
              <SkeletonRow index={0} />
              <SkeletonRow index={1} />
              <SkeletonRow index={2} />
            </div>
            <div className="grid grid-cols-4 place-items-center gap-2 sm:grid-cols-6 md:grid-cols-4">
              {DRAWINGS.map((name) => (
                <span key={name} className="[&_svg]:h-12 [&_svg]:w-auto">
                  <Drawing name={name} />
                </span>
              ))}
            </div>
          </div>
        </div>
      </Section>
    </>
  )
}
