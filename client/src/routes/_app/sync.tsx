import { createFileRoute } from '@tanstack/react-router'
import { SyncPage } from '../../features/sync/sync-page.tsx'

export const Route = createFileRoute('/_app/sync')({ component: SyncPage })
