import { createFileRoute } from '@tanstack/react-router'
import { GatewaysPage } from '../../features/gateways/gateways-page.tsx'

export const Route = createFileRoute('/_app/gateways/')({ component: GatewaysPage })
