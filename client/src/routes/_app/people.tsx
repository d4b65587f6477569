import { createFileRoute } from '@tanstack/react-router'
import { PeoplePage } from '../../features/settings/people-page.tsx'

export const Route = createFileRoute('/_app/people')({ component: PeoplePage })
