import { useState } from 'react'
import { closeReplica } from '../replica/current.ts'
import { deleteEverything } from '../replica/database-files.ts'
import { openDevice } from '../replica/device.ts'
import { useSyncStatus } from '../replica/hooks.ts'
import { Banner } from '../ui/banner.tsx'
import { Button } from '../ui/button.tsx'
import { Checkbox } from '../ui/checkbox.tsx'
import { Dialog } from '../ui/dialog.tsx'
import type { Person } from './session.ts'
import { sessionStore } from './store.ts'

/** Signing out: says what has not been sent, and asks whether the data may stay on this device. */
export function SignOutDialog(props: { person: Person; open: boolean; onOpenChange: (open: boolean) => void }) {
  const { person, open, onOpenChange } = props
  const { pending, rejected } = useSyncStatus()
  const [remove, setRemove] = useState(false)
  const [busy, setBusy] = useState(false)
  const unsent = pending + rejected
  const changes = unsent === 1 ? '1 change' : `${unsent.toLocaleString('en')} changes`
  const signOut = () => {
    setBusy(true)
    void leave(person, remove)
  }
  return (
    <Dialog
      open={open}
      onOpenChange={onOpenChange}
      title="Sign out?"
      size="sm"
      footer={
        <>
          <Button onClick={() => onOpenChange(false)}>Stay</Button>
          <Button variant={remove && unsent > 0 ? 'danger' : 'primary'} busy={busy} onClick={signOut}>
            {remove && unsent > 0 ? `Sign out and lose ${changes}` : 'Sign out'}
          </Button>
        </>
      }
    >
      <div className="flex flex-col gap-4">
        {unsent > 0 && (
          <Banner
            meaning="warning"
            title={`${changes} of yours ${unsent === 1 ? 'has' : 'have'} not reached the server`}
          >
            {remove
              ? 'Deleting the data from this device deletes them as well, for good.'
              : 'They stay on this device and are sent when you sign in here again.'}
          </Banner>
        )}
        <Checkbox
          checked={remove}
          onCheckedChange={setRemove}
          label="Delete my data from this device"
          hint="For a computer that is not yours. Signing in here again then loads everything anew."
        />
      </div>
    </Dialog>
  )
}

/** Forgets the session, closes the database, deletes the data if asked, and begins with a fresh page. */
async function leave(person: Person, remove: boolean): Promise<void> {
  const told = sessionStore.signOut()
  await closeReplica()
  if (remove) {
    try {
      await deleteEverything(await openDevice(), { tenantId: person.tenant_id, personId: person.person_id })
    } catch (error) {
      console.error('The local data could not be deleted; another tab may still have it open.', error)
    }
  }
  await told
  location.replace('/sign-in')
}
