/** How this browser keeps HQ's data, asked again now and then, because others fill the disk too. */
import { useEffect, useState } from 'react'
import type { Phase, StorageKind } from '../../replica/messages.ts'
import { readStorageFacts, type StorageFacts, type StorageNotice, storageNotice } from '../../replica/storage-health.ts'

const EVERY_MS = 60_000

export function useStorageFacts(phase: Phase): StorageFacts | undefined {
  const [facts, setFacts] = useState<StorageFacts>()
  const storage: StorageKind | undefined = phase.name === 'open' ? phase.storage : undefined
  useEffect(() => {
    if (!storage) return
    let current = true
    const look = async () => {
      const next = await readStorageFacts(storage)
      if (current) setFacts(next)
    }
    const lookIfVisible = () => document.visibilityState === 'visible' && void look()
    void look()
    // The first load and the promise of `persist()` change it soon after the start.
    const soon = setTimeout(() => void look(), 5_000)
    const timer = setInterval(lookIfVisible, EVERY_MS)
    document.addEventListener('visibilitychange', lookIfVisible)
    return () => {
      current = false
      clearTimeout(soon)
      clearInterval(timer)
      document.removeEventListener('visibilitychange', lookIfVisible)
    }
  }, [storage])
  return facts
}

export function useStorageNotice(phase: Phase): StorageNotice | undefined {
  const facts = useStorageFacts(phase)
  return facts && storageNotice(facts)
}
