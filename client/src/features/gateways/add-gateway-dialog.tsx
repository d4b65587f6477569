/**
 * Adding a gateway: its name, then one command for its machine, then what becomes of it.
 *
 * The server makes the token, so this needs it. The command is shown here only and nowhere kept; an unused token can be withdrawn, here and in the list.
 */
import type { Row } from '@hq/shared/schema/tables.ts'
import { Check, Copy } from 'lucide-react'
import { useEffect, useId, useRef, useState } from 'react'
import { useSession, useSyncStatus } from '../../replica/hooks.ts'
import { request } from '../../session/api.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { inkColor, type Meaning } from '../../ui/cx.ts'
import { Dialog } from '../../ui/dialog.tsx'
import { Input } from '../../ui/input.tsx'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { type Shape, StatusShape } from '../../ui/status.tsx'
import { toast } from '../../ui/toast.tsx'
import { type NewcomerState, namesThisMachine, newcomerState } from './gateway-state.ts'
import { type Tokens, words } from './use-tokens.ts'

interface Made {
  readonly id: string
  readonly expires_at: string
  readonly command: string
}

interface Props {
  readonly open: boolean
  readonly onOpenChange: (open: boolean) => void
  readonly gateways: readonly Row<'gateways'>[]
  readonly tokens: Tokens
}

export function AddGatewayDialog({ open, onOpenChange, gateways, tokens }: Props) {
  const online = useSyncStatus().connection === 'online'
  const { principal } = useSession()
  const now = useNow()
  const [name, setName] = useState('')
  const [made, setMade] = useState<Made | null>(null)
  const [problem, setProblem] = useState<string | null>(null)
  const [busy, setBusy] = useState(false)
  const form = useId()
  const reason = useId()
  useEffect(() => {
    if (!open) return
    setName('')
    setMade(null)
    setProblem(null)
  }, [open])

  const ask = async (what: () => Promise<void>) => {
    if (busy || !online) return
    setBusy(true)
    setProblem(null)
    try {
      await what()
    } catch (error) {
      setProblem(words(error))
    } finally {
      setBusy(false)
    }
  }
  const make = () =>
    ask(async () => {
      const label = name.trim()
      const token = (await request('POST', '/v1/gateways/tokens', label ? { label } : {})) as Made
      const { id, expires_at } = token
      tokens.add({ id, expires_at, label: label || null, created_by: principal.name, gateway_id: null })
      setMade(token)
    })
  const withdraw = (id: string) =>
    ask(async () => {
      try {
        await request('DELETE', `/v1/gateways/tokens/${id}`)
      } finally {
        await tokens.reload()
      }
    })
  const close = () => onOpenChange(false)
  const state = made && newcomerState(made, tokens.list, gateways, now)
  const needsServer = !online && (
    <p id={reason} className="min-w-0 flex-1 basis-56 self-center text-text-2">
      Needs the server, and it can’t be reached now.
    </p>
  )
  const describedBy = online ? undefined : reason

  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      title="Add a gateway"
      description={
        state?.key === 'waiting'
          ? 'Run this on the gateway’s machine, in its copy of HQ.'
          : state
            ? undefined
            : 'A gateway is a machine of yours that runs agents. You get one command to run there.'
      }
      footer={
        !made || !state ? (
          <>
            {needsServer}
            <Button
              type="submit"
              form={form}
              variant="primary"
              busy={busy}
              disabled={!online}
              aria-describedby={describedBy}
            >
              Make the command
            </Button>
          </>
        ) : state.key === 'waiting' ? (
          <>
            {needsServer}
            <Button
              variant="danger"
              busy={busy}
              disabled={!online}
              aria-describedby={describedBy}
              onClick={() => void withdraw(made.id)}
            >
              Withdraw the token
            </Button>
            <Button onClick={close}>Close</Button>
          </>
        ) : state.key === 'expired' || state.key === 'withdrawn' ? (
          <>
            <Button onClick={close}>Close</Button>
            <Button variant="primary" onClick={() => setMade(null)}>
              Make another
            </Button>
          </>
        ) : (
          <Button variant="primary" onClick={close}>
            Done
          </Button>
        )
      }
    >
      <div className="grid gap-4">
        {problem && (
          <Banner meaning="danger" title={made ? 'The token was not withdrawn' : 'No token could be made'}>
            {problem}
          </Banner>
        )}
        {!made || !state ? (
          <form
            id={form}
            onSubmit={(event) => {
              event.preventDefault()
              void make()
            }}
          >
            <Input
              label="Name"
              optional
              value={name}
              maxLength={100}
              autoComplete="off"
              placeholder="Mac mini in the office"
              hint="Left empty: the machine’s own name."
              onChange={(event) => setName(event.currentTarget.value)}
            />
          </form>
        ) : (
          <>
            {state.key === 'waiting' && <Command command={made.command} expiresAt={made.expires_at} />}
            <Progress state={state} />
          </>
        )}
      </div>
    </Dialog>
  )
}

function Command({ command, expiresAt }: { command: string; expiresAt: string }) {
  const text = useRef<HTMLElement>(null)
  const button = useRef<HTMLButtonElement>(null)
  const [copied, setCopied] = useState(false)
  // The button that led here is gone; the focus goes to what is done next.
  useEffect(() => button.current?.focus(), [])
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(command)
      setCopied(true)
    } catch {
      // No clipboard without HTTPS, or it is not allowed: the person copies what is selected then.
      if (text.current) window.getSelection()?.selectAllChildren(text.current)
      toast({
        title: 'Please copy it by hand',
        description: 'The browser does not let HQ copy. The command is selected.',
      })
    }
  }
  return (
    <div className="grid gap-2">
      <div className="overflow-hidden rounded-card border border-line bg-surface-2">
        <code
          ref={text}
          className="block px-3 py-2.5 font-mono text-xs leading-5 [overflow-wrap:anywhere] whitespace-pre-wrap select-all"
        >
          {command}
        </code>
        <div className="flex flex-wrap items-center justify-between gap-2 border-t border-line px-3 py-2">
          <span className="text-xs text-text-2">
            Good once, ends <RelativeTime at={expiresAt} words />
          </span>
          <Button ref={button} size="sm" variant="primary" icon={copied ? Check : Copy} onClick={() => void copy()}>
            {copied ? 'Copied' : 'Copy the command'}
          </Button>
        </div>
      </div>
      {namesThisMachine(command) && (
        <Banner meaning="warning" title="This works on this very machine only">
          HQ is open under an address that no other machine can reach. For another machine, open HQ under its address in
          the network (HQ_HOST, HQ_PUBLIC_URL) and come back here. On this one, give the new gateway a folder of its own
          with HQ_GATEWAY_HOME.
        </Banner>
      )}
      <p className="text-xs text-text-3">
        The machine needs HQ itself: the same download as here, with “npm install” done. Whoever has this command can
        add one machine to the workspace, so send it to nobody else. It isn’t shown again.
      </p>
    </div>
  )
}

/** What a screen reader is told of as well when it changes. */
function Progress({ state }: { state: NewcomerState }) {
  const { meaning, shape, title, detail } = progress(state)
  return (
    <div role="status" className="flex items-start gap-2">
      <StatusShape meaning={meaning} shape={shape} className="mt-[3px]" />
      <p className="min-w-0 flex-1 [overflow-wrap:anywhere]">
        <span className={inkColor[meaning]}>{title}</span> <span className="text-text-3">{detail}</span>
      </p>
    </div>
  )
}

function progress(state: NewcomerState): { meaning: Meaning; shape: Shape; title: string; detail: string } {
  const name = 'label' in state && state.label ? `“${state.label}”` : 'The gateway'
  switch (state.key) {
    case 'waiting':
      return {
        meaning: 'waiting',
        shape: 'clock',
        title: 'Waiting for the gateway.',
        detail: 'It appears here by itself.',
      }
    case 'registered':
      return { meaning: 'busy', shape: 'arc', title: `${name} has registered.`, detail: 'Waiting to connect.' }
    case 'connected':
      return {
        meaning: 'good',
        shape: 'check',
        title: `${name} is connected.`,
        detail: 'Agents can be given to it now.',
      }
    case 'expired':
      return {
        meaning: 'warning',
        shape: 'triangle',
        title: 'The token has expired.',
        detail: 'Nobody used it within its hour.',
      }
    case 'withdrawn':
      return {
        meaning: 'neutral',
        shape: 'slash',
        title: 'The token was withdrawn.',
        detail: 'Nobody can use it any more.',
      }
  }
}
