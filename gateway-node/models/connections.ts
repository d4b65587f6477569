/** The model connections of this gateway as commands name them; without keys. */
import type { Row } from '@hq/shared/schema/tables.ts'
import { ActionError } from '../runner/action.ts'
import type { GatewayContext } from '../service.ts'

type Connection = Row<'model_connections'>
type Here = Pick<GatewayContext, 'replica' | 'gatewayId'>

/** The newest first, as they count. */
export const connectionsOf = ({ replica, gatewayId }: Here): Promise<Connection[]> =>
  replica.query<Connection>(
    'select * from model_connections where gateway_id = $1 and deleted_at is null order by created_at desc, id desc',
    [gatewayId],
  )

/** @throws ActionError for one that is not here (any more) */
export async function connectionOf(context: Here, id: string): Promise<Connection> {
  const found = (await connectionsOf(context)).find((each) => each.id === id)
  if (!found)
    throw new ActionError(
      'This gateway has no such model connection: it was removed, or is another gateway’s. “auth_list” lists those that it has.',
    )
  return found
}
