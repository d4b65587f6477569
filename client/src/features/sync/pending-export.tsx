import { Download, Upload } from 'lucide-react'
import { useRef, useState } from 'react'
import { replica, useSession, useSyncStatus } from '../../replica/hooks.ts'
import { download, importPendingFile, pendingFile } from '../../replica/pending-file.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { toast } from '../../ui/toast.tsx'

const changes = (count: number): string => (count === 1 ? '1 change' : `${count.toLocaleString('en')} changes`)
const words = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Writes what waits and what was refused into a file. */
export function ExportButton({ label = 'Export to a file' }: { label?: string }) {
  const { workspace, principal } = useSession()
  const [busy, setBusy] = useState(false)
  const run = async () => {
    setBusy(true)
    try {
      const connection = replica()
      const who = { workspace: workspace?.name ?? 'workspace', person: principal.name }
      const file = await pendingFile(connection.identity, who, connection)
      download(file)
      toast({
        title: `${changes(file.changes)} exported`,
        description: file.fromCopies
          ? 'The database did not answer, so this is from its copies; a change of the last second may be missing.'
          : `They are in ${file.name}, and stay here too.`,
        meaning: 'good',
      })
    } catch (error) {
      toast({ title: 'Nothing was exported', description: words(error), meaning: 'danger' })
    } finally {
      setBusy(false)
    }
  }
  return (
    <Button size="sm" icon={Download} busy={busy} onClick={() => void run()}>
      {label}
    </Button>
  )
}

type Outcome = { readonly title: string; readonly text: string; readonly failed: readonly string[] }

/** Everything that waits as a file, and such a file back. */
export function PendingFileSection() {
  const { pending, rejected } = useSyncStatus()
  const { canWrite } = useSession()
  const input = useRef<HTMLInputElement>(null)
  const [busy, setBusy] = useState(false)
  const [outcome, setOutcome] = useState<Outcome>()
  const take = async (file: File) => {
    setBusy(true)
    setOutcome(undefined)
    try {
      const answer = await importPendingFile(replica(), await file.text())
      if (!answer.ok) {
        setOutcome({ title: `${file.name} was not imported`, text: answer.message, failed: [] })
        return
      }
      const { imported, known, failed } = answer.result
      toast({
        title: imported === 0 ? 'Nothing new was in it' : `${changes(imported)} imported`,
        description:
          known > 0
            ? `${changes(known)} wait here already and were left out.`
            : `From ${answer.read.device}, ${answer.read.person}.`,
        meaning: 'good',
      })
      if (failed.length > 0)
        setOutcome({
          title: `${changes(failed.length)} of the file could not be made here`,
          text: failed[0]?.reason ?? '',
          failed: failed.map(({ line, reason }) => `${reason}\n${line}`),
        })
    } catch (error) {
      setOutcome({ title: `${file.name} was not imported`, text: words(error), failed: [] })
    } finally {
      setBusy(false)
    }
  }
  return (
    <section aria-label="As a file" className="flex flex-col gap-3">
      <h2 className="section-title">As a file</h2>
      <p className="-mt-1 text-text-2">
        For the day when this device cannot send: everything that waits or was refused, to be imported in HQ on another
        device. It works without a network.
      </p>
      <div className="flex flex-wrap gap-2">
        {pending + rejected > 0 && <ExportButton label={`Export ${changes(pending + rejected)}`} />}
        {canWrite && (
          <Button size="sm" icon={Upload} busy={busy} onClick={() => input.current?.click()}>
            Import a file…
          </Button>
        )}
        <input
          ref={input}
          type="file"
          accept=".jsonl,application/jsonl,application/json,text/plain"
          aria-label="A file of exported changes"
          className="hidden"
          onChange={(event) => {
            const file = event.target.files?.[0]
            event.target.value = ''
            if (file) void take(file)
          }}
        />
      </div>
      {outcome && (
        <Banner
          meaning="warning"
          title={outcome.title}
          onDismiss={() => setOutcome(undefined)}
          action={
            outcome.failed.length > 0 && (
              <Button
                size="sm"
                onClick={() =>
                  void navigator.clipboard.writeText(outcome.failed.join('\n\n')).then(
                    () => toast({ title: 'Copied', meaning: 'good' }),
                    (error: unknown) => toast({ title: 'Not copied', description: words(error), meaning: 'danger' }),
                  )
                }
              >
                Copy them
              </Button>
            )
          }
        >
          {outcome.text}
        </Banner>
      )}
    </section>
  )
}
