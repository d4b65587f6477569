import type { ReactNode } from 'react'
import { Banner } from '../ui/banner.tsx'
import type { ApiError } from './api.ts'

/** HQ's mark, for screens without the sidebar. */
export function Mark() {
  return (
    <span aria-hidden="true" className="grid size-9 place-items-center rounded-[9px] bg-accent text-on-accent">
      <svg
        viewBox="0 0 20 20"
        className="size-8"
        fill="none"
        stroke="currentColor"
        strokeWidth="1.7"
        strokeLinecap="round"
        aria-hidden="true"
      >
        <circle cx="9.7" cy="9.7" r="4.7" />
        <path d="M12.6 12.6l2.5 2.5" />
        <circle cx="9.7" cy="9.7" r="1.3" fill="currentColor" stroke="none" />
      </svg>
    </span>
  )
}

/** The frame of screens before the sign-in: the mark, a title, one sentence, one task. */
export function AuthFrame(props: { title: string; lead?: ReactNode; children?: ReactNode; footer?: ReactNode }) {
  const { title, lead, children, footer } = props
  return (
    <div className="flex min-h-dvh flex-col items-center bg-bg px-4 pt-[max(40px,11dvh)] pb-10">
      <main className="w-full max-w-[380px]">
        <Mark />
        <h1 className="title mt-5">{title}</h1>
        {lead && <div className="mt-1 text-balance text-text-2">{lead}</div>}
        {children && (
          <div className="mt-6 rounded-card border border-line bg-surface-1 p-5 shadow-control">{children}</div>
        )}
        {footer && <div className="mt-4 text-xs text-text-3">{footer}</div>}
      </main>
    </div>
  )
}

/** Why a form was not accepted. Problems of single fields stand at the fields. */
export function FormProblem({ error, offline }: { error: ApiError | undefined; offline: string }) {
  if (!error || Object.keys(error.fields).length > 0) return null
  if (error.code === 'unreachable') {
    return (
      <div role="alert">
        <Banner meaning="waiting" shape="off" title={error.message}>
          {offline}
        </Banner>
      </div>
    )
  }
  return (
    <div role="alert">
      <Banner meaning="danger" title={error.message} />
    </div>
  )
}
