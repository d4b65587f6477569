import { createFileRoute } from '@tanstack/react-router'
import { BackupsPage } from '../../features/backups/backups-page.tsx'

export const Route = createFileRoute('/_app/backups')({ component: BackupsPage })
