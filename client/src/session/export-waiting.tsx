import { Download } from 'lucide-react'
import { useState } from 'react'
import { download, pendingFile } from '../replica/pending-file.ts'
import { Button } from '../ui/button.tsx'
import type { Person } from './session.ts'

/** What waits on this device as a file, where the database is not open: from the copies beside it. */
export function ExportWaiting({ person }: { person: Person }) {
  const [busy, setBusy] = useState(false)
  const [said, setSaid] = useState('')
  const run = async () => {
    setBusy(true)
    try {
      const identity = { tenantId: person.tenant_id, personId: person.person_id }
      const file = await pendingFile(identity, { workspace: 'workspace', person: person.name })
      if (file.changes > 0) download(file)
      setSaid(file.changes === 0 ? 'No copy of a waiting change was found.' : `Saved as ${file.name}.`)
    } catch (error) {
      setSaid(`Nothing was exported: ${error instanceof Error ? error.message : String(error)}`)
    } finally {
      setBusy(false)
    }
  }
  return (
    <span className="flex flex-wrap items-center gap-2">
      <Button size="sm" icon={Download} busy={busy} onClick={() => void run()}>
        Export to a file
      </Button>
      <span role="status" className="text-xs text-text-2">
        {said}
      </span>
    </span>
  )
}
