import { useCallback, useEffect, useState } from 'react'
import { replica } from '../../replica/hooks.ts'
import type { RescuedChanges } from '../../replica/messages.ts'
import { Banner } from '../../ui/banner.tsx'
import { Button } from '../../ui/button.tsx'
import { Confirm } from '../../ui/dialog.tsx'

/** After a local database was lost and built anew: what is still to be brought back, and what could not be. */
export function RescuedSection() {
  const [rescued, setRescued] = useState<RescuedChanges>()
  const [giving, setGiving] = useState(false)
  const load = useCallback(() => {
    replica()
      .rescued()
      .then(setRescued, (error: unknown) => console.warn('What was rescued could not be read.', error))
  }, [])
  useEffect(() => {
    load()
    return replica().onChanged((changed) => {
      if (changed === 'all' || changed.includes('sync')) load()
    })
  }, [load])
  if (!rescued) return null
  const { waiting, failed } = rescued
  return (
    <>
      {waiting > 0 && (
        <Banner
          meaning="waiting"
          title={`${waiting} ${waiting === 1 ? 'change' : 'changes'} rescued from the former database`}
        >
          Made again as soon as your workspace has been loaded.
        </Banner>
      )}
      {failed.length > 0 && (
        <Banner
          meaning="warning"
          title={`${failed.length} rescued ${failed.length === 1 ? 'change' : 'changes'} could not be made again`}
          action={
            <>
              <Button
                size="sm"
                onClick={() =>
                  void navigator.clipboard.writeText(
                    failed.map(({ line, reason }) => `${reason}\n${line}`).join('\n\n'),
                  )
                }
              >
                Copy them
              </Button>
              <Button size="sm" variant="ghost" onClick={() => setGiving(true)}>
                Discard…
              </Button>
            </>
          }
        >
          {failed[0]?.reason}
        </Banner>
      )}
      <Confirm
        open={giving}
        onOpenChange={setGiving}
        title="Discard what could not be brought back?"
        confirm="Discard"
        danger
        onConfirm={() => void replica().forgetRescued().then(load)}
      >
        Copy it first if you may still need it. It is gone for good.
      </Confirm>
    </>
  )
}
