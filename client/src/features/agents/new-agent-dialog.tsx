/**
 * The four steps to a new agent: template, identity, channel, provisioning.
 *
 * The last step is the live state of the `provision` command. Everything before it is local; agent and command are one write, so that there
 * is never an agent without its command. Works offline: the command waits for its gateway and the dialog says so.
 */
import { slugFrom, slugProblem } from '@hq/shared/domain/slug.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import { useNavigate } from '@tanstack/react-router'
import { useEffect, useState } from 'react'
import { newId, useRows, useSession, useWrite } from '../../replica/hooks.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { cx } from '../../ui/cx.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { Input } from '../../ui/input.tsx'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { Select } from '../../ui/select.tsx'
import { StatusShape } from '../../ui/status.tsx'
import { Textarea } from '../../ui/textarea.tsx'
import { CommandProgress } from '../commands/command-progress.tsx'
import { isSilent } from './agent-state.ts'

type Template = Row<'agent_templates'>
type Gateway = Row<'gateways'>
type Draft = {
  template: Template | null
  name: string
  slug: string | null
  emoji: string
  description: string
  gatewayId: string | null
}

const STEPS = ['Template', 'Identity', 'Channel', 'Set-up'] as const
const EMPTY: Draft = { template: null, name: '', slug: null, emoji: '', description: '', gatewayId: null }

export function NewAgentDialog({ open, onOpenChange }: { open: boolean; onOpenChange: (open: boolean) => void }) {
  const [step, setStep] = useState(0)
  const [draft, setDraft] = useState(EMPTY)
  const [created, setCreated] = useState<{ commandId: string; slug: string } | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const write = useWrite()
  const navigate = useNavigate()
  const { principal, workspace } = useSession()
  const gateways = useRows<Gateway>(
    "select * from gateways where deleted_at is null and status <> 'retired' order by label",
    [],
    { tables: ['gateways'] },
  ).rows
  const gateway = gateways.find(({ id }) => id === draft.gatewayId) ?? gateways[0]
  const slug = draft.slug ?? slugFrom(draft.name)
  const taken =
    useRows<{ id: string }>('select id from agents where slug = $1 and deleted_at is null', [slug], {
      tables: ['agents'],
    }).rows.length > 0
  const slugError =
    draft.name === '' && draft.slug === null
      ? undefined
      : (slugProblem(slug) ?? (taken ? `There is an agent @${slug} already.` : undefined))

  useEffect(() => {
    if (!open) return
    setStep(0)
    setDraft(EMPTY)
    setCreated(null)
    setProblem(null)
  }, [open])

  const change = (part: Partial<Draft>) => setDraft((before) => ({ ...before, ...part }))
  const mayGoOn =
    [draft.template !== null, draft.name.trim() !== '' && !slugError && gateway !== undefined, true][step] ?? false

  const create = async () => {
    if (!draft.template || !gateway) return
    const agentId = newId()
    const commandId = newId()
    const emoji = draft.emoji || draft.template.emoji
    const payload = {
      source_template: draft.template.slug,
      channel: 'none',
      name: draft.name.trim(),
      description: draft.description.trim(),
      emoji,
      owner_name: workspace?.owner_name ?? principal.name,
      owner_preferred_name: workspace?.owner_preferred_name ?? principal.name.split(' ')[0],
      owner_timezone: workspace?.owner_timezone ?? 'UTC',
    }
    const meta = { emoji, team: draft.template.team, template: draft.template.slug, channel: 'none' }
    try {
      await write([
        {
          sql: `insert into agents (id, tenant_id, gateway_id, name, slug, description, domains, capabilities, meta)
                values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
          params: [
            agentId,
            principal.tenant_id,
            gateway.id,
            payload.name,
            slug,
            payload.description || null,
            draft.template.domains,
            draft.template.capabilities,
            meta,
          ],
        },
        {
          sql: `insert into agent_commands (id, tenant_id, gateway_id, agent_id, action, payload, requested_by)
                values ($1, $2, $3, $4, 'provision', $5, $6)`,
          params: [commandId, principal.tenant_id, gateway.id, agentId, payload, principal.person_id],
        },
      ])
      setCreated({ commandId, slug })
      setStep(3)
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error))
    }
  }

  const next = () => (step === 2 ? void create() : setStep(step + 1))
  const openAgent = () => {
    onOpenChange(false)
    if (created) void navigate({ to: '/agents/$slug', params: { slug: created.slug } })
  }
  const footer =
    step === 3 ? (
      <Button variant="primary" onClick={openAgent}>
        Open {draft.name}
      </Button>
    ) : (
      <>
        {step > 0 && <Button onClick={() => setStep(step - 1)}>Back</Button>}
        <Button variant="primary" disabled={!mayGoOn} onClick={next}>
          {step === 2 ? 'Create agent' : 'Continue'}
        </Button>
      </>
    )
  return (
    <Dialog open={open} onOpenChange={onOpenChange} title="New agent" size="lg" footer={footer}>
      <StepLine current={step} />
      {problem && (
        <Banner
          meaning="danger"
          title="The agent could not be created"
          className="mb-4"
          onDismiss={() => setProblem(null)}
        >
          {problem}
        </Banner>
      )}
      {step === 0 && (
        <TemplateStep
          gateway={gateway}
          chosen={draft.template}
          onChoose={(template) => change({ template })}
          onNext={() => setStep(1)}
        />
      )}
      {step === 1 && (
        <IdentityStep
          draft={draft}
          slug={slug}
          slugError={slugError}
          gateways={gateways}
          gateway={gateway}
          change={change}
        />
      )}
      {step === 2 && <ChannelStep />}
      {step === 3 && created && <SetUpStep commandId={created.commandId} gateway={gateway} name={draft.name} />}
    </Dialog>
  )
}

function StepLine({ current }: { current: number }) {
  return (
    <ol aria-label="Steps" className="mb-4 flex gap-4 text-xs">
      {STEPS.map((name, index) => (
        <li
          key={name}
          aria-current={index === current ? 'step' : undefined}
          className={cx('flex items-center gap-1.5', index === current ? 'font-medium text-text-1' : 'text-text-3')}
        >
          <StatusShape
            shape={index < current ? 'check' : index === current ? 'half' : 'ring'}
            meaning={index < current ? 'good' : index === current ? 'busy' : 'neutral'}
          />
          {name}
        </li>
      ))}
    </ol>
  )
}

function TemplateStep(props: {
  gateway: Gateway | undefined
  chosen: Template | null
  onChoose: (template: Template) => void
  onNext: () => void
}) {
  const { gateway, chosen, onChoose, onNext } = props
  const { rows, ready } = useRows<Template>(
    'select * from agent_templates where gateway_id = $1 and deleted_at is null order by name',
    [gateway?.id ?? null],
    { tables: ['agent_templates'] },
  )
  if (!gateway)
    return (
      <Banner meaning="warning" title="There is no gateway yet">
        Agents run on a gateway. “npm start” brings one along; it registers itself when it is up.
      </Banner>
    )
  if (ready && rows.length === 0)
    return (
      <Banner meaning="waiting" title={`Gateway “${gateway.label}” has not sent its templates yet`}>
        They appear here as soon as it has been in touch.
      </Banner>
    )
  return (
    <div role="radiogroup" aria-label="Template" className="grid grid-cols-1 gap-2 sm:grid-cols-2">
      {rows.map((template) => (
        // biome-ignore lint/a11y/useSemanticElements: a card with several lines, chosen like a radio button
        <button
          key={template.id}
          type="button"
          role="radio"
          aria-checked={chosen?.id === template.id}
          disabled={template.error !== null}
          onClick={() => onChoose(template)}
          onDoubleClick={onNext}
          className={cx(
            'flex items-start gap-3 rounded-card border p-3 text-left transition-colors disabled:opacity-60',
            chosen?.id === template.id
              ? 'border-accent bg-accent-soft'
              : 'border-line bg-surface-1 not-disabled:hover:border-line-strong',
          )}
        >
          <span
            aria-hidden="true"
            className="grid size-8 shrink-0 place-items-center rounded-[8px] bg-surface-3 text-[18px]"
          >
            {template.emoji || '🤖'}
          </span>
          <span className="min-w-0">
            <span className="block font-medium">{template.name}</span>
            <span className={cx('block text-xs', template.error ? 'text-danger-ink' : 'text-text-3')}>
              {template.error ? `Broken: ${template.error}` : template.description}
            </span>
          </span>
        </button>
      ))}
    </div>
  )
}

function IdentityStep(props: {
  draft: Draft
  slug: string
  slugError: string | undefined
  gateways: readonly Gateway[]
  gateway: Gateway | undefined
  change: (part: Partial<Draft>) => void
}) {
  const { draft, slug, slugError, gateways, gateway, change } = props
  return (
    <div className="grid gap-4">
      <div className="grid grid-cols-[88px_1fr] gap-3">
        <Input
          label="Emoji"
          value={draft.emoji}
          placeholder={draft.template?.emoji ?? '🤖'}
          maxLength={8}
          onChange={(event) => change({ emoji: event.currentTarget.value })}
        />
        <Input
          label="Name"
          autoFocus
          value={draft.name}
          placeholder={draft.template?.name ?? ''}
          maxLength={80}
          onChange={(event) => change({ name: event.currentTarget.value })}
        />
      </div>
      <Input
        label="Slug"
        value={slug}
        error={slugError}
        hint="How it is mentioned (@slug), and the name of its branch. It cannot be changed later."
        onChange={(event) => change({ slug: event.currentTarget.value.toLowerCase() })}
      />
      <Textarea
        label="What is it for?"
        optional
        value={draft.description}
        placeholder={draft.template?.description ?? ''}
        onChange={(event) => change({ description: event.currentTarget.value })}
      />
      {gateways.length > 1 && (
        <Select
          label="Gateway"
          value={gateway?.id ?? null}
          onValueChange={(gatewayId) => change({ gatewayId })}
          options={gateways.map(({ id, label }) => ({ value: id, label }))}
        />
      )}
    </div>
  )
}

function ChannelStep() {
  return (
    <div className="grid gap-3">
      <div className="flex items-start gap-3 rounded-card border border-accent bg-accent-soft p-3">
        <StatusShape shape="check" meaning="good" className="mt-[3px]" />
        <div>
          <p className="font-medium">None: it works in HQ</p>
          <p className="text-text-2">
            You give it tasks and talk in comments. It can always do that, with or without a channel.
          </p>
        </div>
      </div>
      <p className="text-xs text-text-3">Telegram, Discord and Slack cannot be connected yet.</p>
    </div>
  )
}

function SetUpStep({ commandId, gateway, name }: { commandId: string; gateway: Gateway | undefined; name: string }) {
  const now = useNow()
  return (
    <div className="grid gap-4">
      {gateway && isSilent(gateway.last_seen_at, now) && (
        <Banner meaning="waiting" title={`Waiting for gateway “${gateway.label}”`}>
          {gateway.last_seen_at ? (
            <>
              It was last heard <RelativeTime at={gateway.last_seen_at} words />. {name} is set up when it is back; you
              can close this.
            </>
          ) : (
            `It has not been heard of yet. ${name} is set up when it is there; you can close this.`
          )}
        </Banner>
      )}
      <CommandProgress commandId={commandId} />
    </div>
  )
}
