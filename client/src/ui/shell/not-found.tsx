import { Link } from '@tanstack/react-router'

/** Any address without a page. */
export function NotFound() {
  return (
    <div className="grid min-h-[60dvh] place-items-center p-6 text-center">
      <div>
        <h1 className="title">There is no page here</h1>
        <p className="mt-1 text-text-2">The address may be old, or something was removed.</p>
        <p className="mt-4">
          <Link to="/" className="link">
            Go to Home
          </Link>
        </p>
      </div>
    </div>
  )
}
