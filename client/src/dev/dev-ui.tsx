import { Monitor, Moon, Sun } from 'lucide-react'
import { Tabs } from '../ui/tabs.tsx'
import { setThemeChoice, type ThemeChoice, useThemeChoice } from '../ui/theme.ts'
import { CollectionExhibits } from './collections.tsx'
import { ControlExhibits } from './controls.tsx'
import { FloatExhibits } from './floats.tsx'
import { Foundations } from './foundations.tsx'
import { ReadingExhibits } from './reading.tsx'
import { StateExhibits } from './states.tsx'

const THEMES: { value: ThemeChoice; label: string; icon: React.ReactNode }[] = [
  { value: 'system', label: 'System', icon: <Monitor className="size-3.5" aria-hidden="true" /> },
  { value: 'light', label: 'Light', icon: <Sun className="size-3.5" aria-hidden="true" /> },
  { value: 'dark', label: 'Dark', icon: <Moon className="size-3.5" aria-hidden="true" /> },
]

/** Every piece of the kit on one page, to look at and to test. */
export function DevUi() {
  const choice = useThemeChoice()
  return (
    <div className="min-h-dvh bg-surface-1">
      <header className="sticky top-0 z-30 flex h-12 items-center gap-4 border-b border-line bg-surface-1 px-6 max-sm:px-4">
        <h1 className="font-semibold">The pieces</h1>
        <span className="text-text-3 max-sm:hidden">client/src/ui</span>
        <div className="ml-auto">
          <Tabs label="Theme" look="segment" value={choice} onValueChange={setThemeChoice} tabs={THEMES} />
        </div>
      </header>
      <main className="mx-auto max-w-[1080px] px-6 pb-24 max-sm:px-4">
        <Foundations />
        <ControlExhibits />
        <StateExhibits />
        <FloatExhibits />
        <CollectionExhibits />
        <ReadingExhibits />
      </main>
    </div>
  )
}
