import { useEffect, useState } from 'react'
import { Button } from '../ui/button.tsx'
import { CodeView } from '../ui/code-view.tsx'
import { DiffView } from '../ui/diff-view.tsx'
import { type LogLine, LogView } from '../ui/log-view.tsx'
import { Status } from '../ui/status.tsx'
import { Section } from './section.tsx'

const CODE = `// What Scout may do, and with what.
import { defineAgent } from '@hq/agent'

export const scout = defineAgent({
  name: 'Scout',
  emoji: '🔭',
  budget: { month: 40.0, currency: 'USD' },
  skills: ['web-reading', 'citing-sources'],
  /* Nothing leaves the machine
     before a person approved it. */
  review: true,
})
`
const BEFORE = `# Invoicing providers

We compared three providers for a studio of four.

- Lexware: 12 EUR a month, exports DATEV
- Billomat: 15 EUR a month, good API
- Debitoor: closed in 2023

Prices include VAT.
All three keep data in the EU.
All three offer a free trial.
None needs a card for it.

We recommend Billomat.
`
const AFTER = `# Invoicing providers

We compared three providers for a studio of four.

- Lexware: 9.90 EUR a month, exports DATEV
- Billomat: 15 EUR a month, good API
- SevDesk: 17.90 EUR a month, best scanner

Prices exclude VAT.
All three keep data in the EU.
All three offer a free trial.
None needs a card for it.

We recommend Lexware for under 200 invoices a month.
`
const OUTPUT = [
  '$ git worktree add agents/scout template/researcher',
  "Preparing worktree (new branch 'agents/scout')",
  '\u001b[32mHEAD is now at 8f3c9a1 Researcher 1.4\u001b[0m',
  'Filling in the owner profile: USER.md',
  'Installing skills: web-reading, citing-sources',
  'warn: skill “charts” needs python3, which is missing here; skipped',
]

export function ReadingExhibits() {
  const [lines, setLines] = useState<LogLine[]>(() =>
    OUTPUT.map((text, n) => ({ n, text, stream: text.startsWith('warn') ? 'err' : 'out' })),
  )
  const [live, setLive] = useState(false)
  useEffect(() => {
    if (!live) return
    const timer = setInterval(
      () =>
        setLines((now) => [
          ...now,
          {
            n: now.length,
            text: `index: ${now.length * 37} chunks, ${(now.length * 0.4).toFixed(1)} s`,
            at: Date.now(),
          },
        ]),
      120,
    )
    return () => clearInterval(timer)
  }, [live])
  return (
    <>
      <Section id="code" title="Code and changes">
        <div className="grid gap-6 lg:grid-cols-2">
          <CodeView path="agents/scout/agent.ts" code={CODE} />
          <DiffView title="invoicing-providers.md" before={BEFORE} after={AFTER} context={2} />
        </div>
      </Section>
      <Section id="log" title="Output" note="Follows its end until you scroll up.">
        <LogView
          label="provision scout"
          lines={lines}
          live={live}
          className="h-64"
          actions={
            <>
              <Status
                meaning={live ? 'busy' : 'neutral'}
                label={live ? 'Running' : 'Stopped'}
                className="pr-1 text-xs"
              />
              <Button size="sm" onClick={() => setLive(!live)}>
                {live ? 'Stop' : 'Stream'}
              </Button>
            </>
          }
        />
      </Section>
    </>
  )
}
