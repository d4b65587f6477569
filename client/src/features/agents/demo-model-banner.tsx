import { Link } from '@tanstack/react-router'
import { Banner } from '../../ui/banner.tsx'

/** Said once, on the overview, where it matters. */
export function DemoModelBanner() {
  return (
    <Banner meaning="warning" title="This agent thinks with the demo model">
      It works the whole loop with made-up answers.{' '}
      <Link to="/models" className="link">
        Connect a real model
      </Link>{' '}
      and its next run uses it.
    </Banner>
  )
}
