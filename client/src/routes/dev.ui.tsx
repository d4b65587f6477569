import { createFileRoute } from '@tanstack/react-router'
import { DevUi } from '../dev/dev-ui.tsx'

export const Route = createFileRoute('/dev/ui')({ component: DevUi })
