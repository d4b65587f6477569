/** Registration tokens that nobody has used yet, for admins: whose, until when, and taking them back. */
import { X } from 'lucide-react'
import { useState } from 'react'
import { useSyncStatus } from '../../replica/hooks.ts'
import { request } from '../../session/api.ts'
import { IconButton } from '../../ui/icon-button.tsx'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { StatusShape } from '../../ui/status.tsx'
import { toast } from '../../ui/toast.tsx'
import { type ListedToken, openTokens } from './gateway-state.ts'
import { type Tokens, words } from './use-tokens.ts'

export function OpenTokens({ tokens }: { tokens: Tokens }) {
  const now = useNow()
  const open = openTokens(tokens.list ?? [], now)
  if (tokens.problem && tokens.list === undefined)
    return <p className="text-text-3">Tokens that wait for a machine can’t be listed: {tokens.problem}</p>
  if (open.length === 0) return null
  return (
    <section aria-label="Tokens that nobody has used" className="grid grid-cols-1 gap-2">
      <h2 className="section-title">Waiting for a machine</h2>
      <ul className="overflow-hidden rounded-card border border-line bg-surface-1">
        {open.map((token) => (
          <TokenLine key={token.id} token={token} reload={tokens.reload} />
        ))}
      </ul>
    </section>
  )
}

function TokenLine({ token, reload }: { token: ListedToken; reload: Tokens['reload'] }) {
  const online = useSyncStatus().connection === 'online'
  const [busy, setBusy] = useState(false)
  const name = token.label ?? 'A gateway without a name'
  const withdraw = async () => {
    setBusy(true)
    try {
      await request('DELETE', `/v1/gateways/tokens/${token.id}`)
      toast({ title: 'The token was withdrawn', meaning: 'good' })
    } catch (error) {
      toast({ title: 'The token was not withdrawn', description: words(error), meaning: 'danger' })
    } finally {
      setBusy(false)
      await reload()
    }
  }
  return (
    <li className="flex min-h-11 items-center gap-3 border-b border-line px-3 py-1.5 last:border-0">
      <StatusShape shape="clock" meaning="waiting" label="Not used yet" />
      <div className="min-w-0 flex-1">
        <p className="truncate font-medium">{name}</p>
        <p className="truncate text-xs text-text-3">
          Token by {token.created_by}, ends <RelativeTime at={token.expires_at} words />
        </p>
      </div>
      <IconButton
        label={online ? `Withdraw the token of ${name}` : 'Withdrawing needs the server, which can’t be reached now'}
        icon={X}
        disabled={busy || !online}
        onClick={() => void withdraw()}
      />
    </li>
  )
}
