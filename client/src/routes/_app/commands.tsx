import { createFileRoute } from '@tanstack/react-router'
import { CommandsPage } from '../../features/commands/commands-page.tsx'

export const Route = createFileRoute('/_app/commands')({ component: CommandsPage })
