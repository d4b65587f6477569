import { Banner } from '../../ui/banner.tsx'

/** Said once, on the overview, where it matters. */
export function DemoModelBanner() {
  return (
    <Banner meaning="warning" title="This agent thinks with the demo model">
      It works the whole loop with made-up answers. For a real model set{' '}
      <code className="font-mono">HQ_MODEL_PROVIDER</code> and its key on the gateway, and start it again.
    </Banner>
  )
}
