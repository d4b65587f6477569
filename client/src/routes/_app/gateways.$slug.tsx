import { createFileRoute } from '@tanstack/react-router'
import { GatewayPage } from '../../features/gateways/gateway-page.tsx'

export const Route = createFileRoute('/_app/gateways/$slug')({ component: Gateway })

function Gateway() {
  return <GatewayPage slug={Route.useParams().slug} />
}
