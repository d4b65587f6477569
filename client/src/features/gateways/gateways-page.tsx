/** Gateways: the machines that run agents. An admin adds one here, sees it come, and retires it. */
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { useRows, useSession } from '../../replica/hooks.ts'
import { Button } from '../../ui/button.tsx'
import { EmptyState } from '../../ui/empty-state.tsx'
import { Page } from '../../ui/shell/page.tsx'
import { AddGatewayDialog } from './add-gateway-dialog.tsx'
import { GATEWAY_TABLES, GATEWAYS, type Gateway, GatewayCard } from './gateway-card.tsx'
import { OpenTokens } from './open-tokens.tsx'
import { useTokens } from './use-tokens.ts'

export function GatewaysPage() {
  const { isAdmin } = useSession()
  const { rows, ready } = useRows<Gateway>(GATEWAYS, [], { tables: GATEWAY_TABLES })
  const tokens = useTokens(isAdmin, rows.map(({ id, last_seen_at }) => `${id} ${last_seen_at !== null}`).join())
  const [adding, setAdding] = useState(false)
  const add = isAdmin && (
    <Button variant="primary" icon={Plus} onClick={() => setAdding(true)}>
      Add a gateway
    </Button>
  )
  const isEmpty = ready && rows.length === 0
  return (
    <Page title="Gateways" actions={!isEmpty && add}>
      <div className="mx-auto grid w-full grid-cols-1 max-w-[860px] gap-6 p-4">
        {isAdmin && <OpenTokens tokens={tokens} />}
        {isEmpty ? (
          <EmptyState drawing="gateways" title="No gateway yet" action={add}>
            A gateway is a machine that runs agents. “npm start” brings one along, and it appears here by itself.
            {!isAdmin && ' An owner or admin can add another.'}
          </EmptyState>
        ) : (
          <ul className="grid grid-cols-1 gap-3">
            {rows.map((gateway) => (
              <li key={gateway.id}>
                <GatewayCard gateway={gateway} />
              </li>
            ))}
          </ul>
        )}
      </div>
      <AddGatewayDialog open={adding} onOpenChange={setAdding} gateways={rows} tokens={tokens} />
    </Page>
  )
}
