import { Page } from '../../ui/shell/page.tsx'
import { SecretsList } from './secrets-list.tsx'

/** All secrets of the workspace; model keys are with their connections. */
export function SecretsPage() {
  return (
    <Page title="Secrets">
      <div className="mx-auto grid w-full max-w-[860px] grid-cols-1 px-4 py-5">
        <SecretsList />
      </div>
    </Page>
  )
}
