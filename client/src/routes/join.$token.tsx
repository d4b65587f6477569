import { createFileRoute } from '@tanstack/react-router'
import { useCallback, useEffect, useState } from 'react'
import { ApiError, findInvitation, type Invitation } from '../session/api.ts'
import { AuthFrame } from '../session/auth-frame.tsx'
import { JoinForm } from '../session/join-form.tsx'
import { Redirect } from '../session/redirect.tsx'
import { Splash, Unreachable } from '../session/screens.tsx'
import { sessionStore } from '../session/store.ts'
import { useSessionState } from '../session/use-session-state.ts'
import { buttonClass } from '../ui/button.tsx'

export const Route = createFileRoute('/join/$token')({ component: Join })

function Join() {
  const { token } = Route.useParams()
  const state = useSessionState()
  const [invitation, setInvitation] = useState<Invitation>()
  const [error, setError] = useState<ApiError>()
  const look = useCallback(async () => {
    setError(undefined)
    try {
      setInvitation(await findInvitation(token))
    } catch (problem) {
      setError(problem instanceof ApiError ? problem : new ApiError('unknown', String(problem)))
    }
  }, [token])
  useEffect(() => {
    sessionStore.start()
    void look()
  }, [look])
  if (state.name === 'signed-in') return <Redirect to="/" />
  if (error?.code === 'unreachable') return <Unreachable message={error.message} onRetry={() => void look()} />
  if (error) {
    return (
      <AuthFrame title="This link does not work" lead={error.message}>
        <a href="/sign-in" className={buttonClass('secondary', 'lg')}>
          Go to sign-in
        </a>
      </AuthFrame>
    )
  }
  if (!invitation) return <Splash />
  return (
    <AuthFrame
      title={`Join ${invitation.workspace_name}`}
      lead={`${invitation.invited_by} invites you${invitation.role === 'member' ? '' : `, as ${invitation.role}`}.`}
    >
      <JoinForm token={token} invitation={invitation} />
    </AuthFrame>
  )
}
