/** What the container actions share: Docker's refusals are sentences for people. */
import { ContainerError, type Containers, openContainers } from '../../containers/containers.ts'
import type { GatewayContext } from '../../service.ts'
import { ActionError } from '../action.ts'

export async function inDocker<T>(
  { gatewayId, env }: Pick<GatewayContext, 'gatewayId' | 'env'>,
  work: (docker: Containers) => Promise<T>,
): Promise<T> {
  try {
    return await work(openContainers(gatewayId, env))
  } catch (error) {
    if (error instanceof ContainerError) throw new ActionError(error.message, { cause: error })
    throw error
  }
}
