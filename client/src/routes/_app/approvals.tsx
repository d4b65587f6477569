import { createFileRoute } from '@tanstack/react-router'
import { ApprovalsPage } from '../../features/approvals/approvals-page.tsx'

export const Route = createFileRoute('/_app/approvals')({ component: ApprovalsPage })
