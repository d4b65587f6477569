/** What waits on a gateway, each with the reason why. */
import { Link } from '@tanstack/react-router'
import { useRows } from '../../replica/hooks.ts'
import { RelativeTime, useNow } from '../../ui/relative-time.tsx'
import { Status } from '../../ui/status.tsx'
import { actionName } from '../commands/command-query.ts'
import type { Gateway } from './gateway-card.tsx'
import { gatewayState } from './gateway-state.ts'
import { QUEUE_SQL, QUEUE_TABLES, type Queued, reasonOf } from './queue.ts'

export function GatewayQueue({ gateway }: { gateway: Gateway }) {
  const { rows, ready } = useRows<Queued>(QUEUE_SQL, [gateway.id], { tables: QUEUE_TABLES })
  const now = useNow()
  const state = gatewayState(gateway, now)
  return (
    <section aria-labelledby="gateway-queue" className="grid grid-cols-1 gap-3">
      <h2 id="gateway-queue" className="section-title">
        Waiting and under way <span className="nums ml-1 font-normal text-text-3">{rows.length}</span>
      </h2>
      {ready && rows.length === 0 && <p className="text-text-3">Nothing waits here.</p>}
      <ul className="grid grid-cols-1 overflow-hidden rounded-card border border-line empty:hidden">
        {rows.map((item) => {
          const reason = reasonOf(item, state, now)
          return (
            <li
              key={item.id}
              className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1 border-t border-line px-3 py-2 first:border-t-0"
            >
              <span className="min-w-0 flex-1 basis-52 truncate">
                {item.task_id && item.task_title !== null ? (
                  <Link to="/tasks/$taskId" params={{ taskId: item.task_id }} className="link">
                    {item.task_title}
                  </Link>
                ) : (
                  <span className="font-medium">{item.action ? actionName(item.action) : 'Work'}</span>
                )}
                {item.agent_name && <span className="text-text-3"> · {item.agent_name}</span>}
              </span>
              <Status meaning={reason.meaning} shape={reason.shape} label={reason.label} detail={reason.detail} />
              <span className="nums text-xs text-text-3">
                <RelativeTime at={item.created_at} />
              </span>
            </li>
          )
        })}
      </ul>
    </section>
  )
}
