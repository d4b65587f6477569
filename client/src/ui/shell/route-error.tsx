import type { ErrorComponentProps } from '@tanstack/react-router'

/** What a route shows when rendering it threw: what happened, what to do, and the details to copy. */
export function RouteError({ error, reset }: ErrorComponentProps) {
  const details = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return (
    <div role="alert" className="mx-auto max-w-[68ch] p-8">
      <h1 className="title">This screen could not be shown</h1>
      <p className="mt-1 text-text-2">
        Your data is untouched. Try again; if it happens again, copy the details below into a report.
      </p>
      <pre className="mt-4 max-h-64 overflow-auto rounded-card border border-line bg-surface-1 p-3 font-mono text-xs text-text-2">
        {details}
      </pre>
      <p className="mt-4 flex gap-4">
        <button type="button" className="link" onClick={reset}>
          Try again
        </button>
        <button type="button" className="link" onClick={() => void navigator.clipboard.writeText(details)}>
          Copy details
        </button>
      </p>
    </div>
  )
}
