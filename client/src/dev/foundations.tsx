import { Section } from './section.tsx'

const GROUNDS = ['bg', 'surface-1', 'surface-2', 'surface-3', 'float', 'line', 'line-strong']
const MEANINGS = ['accent', 'good', 'busy', 'waiting', 'warning', 'danger']

export function Foundations() {
  return (
    <>
      <Section
        id="colour"
        title="Colour"
        note="Grounds, inks and meanings. Every pair that can meet is tested for contrast."
      >
        <div className="grid gap-6 lg:grid-cols-2">
          {(['light', 'dark'] as const).map((theme) => (
            <div
              key={theme}
              data-theme={theme}
              className="overflow-hidden rounded-card border border-line bg-surface-1 text-text-1"
            >
              <div className="grid grid-cols-7">
                {GROUNDS.map((token) => (
                  <div key={token} className="h-10" style={{ background: `var(--${token})` }} title={token} />
                ))}
              </div>
              <div className="space-y-3 p-4">
                <p>
                  Text one <span className="text-text-2">text two</span> <span className="text-text-3">text three</span>{' '}
                  <span className="text-accent-ink">accent ink</span>
                </p>
                <div className="grid grid-cols-3 gap-2 sm:grid-cols-6">
                  {MEANINGS.map((meaning) => (
                    <div
                      key={meaning}
                      className="rounded-control p-2 text-xs"
                      style={{ background: `var(--${meaning}-soft)`, color: `var(--${meaning}-ink)` }}
                    >
                      <span
                        className="mb-1.5 block h-1.5 w-6 rounded-full"
                        style={{ background: `var(--${meaning})` }}
                      />
                      {meaning}
                    </div>
                  ))}
                </div>
                <div className="flex gap-2">
                  {[1, 2, 3, 4, 5, 6, 7, 8].map((hue) => (
                    <span key={hue} className="size-4 rounded-full" style={{ background: `var(--hue-${hue})` }} />
                  ))}
                </div>
              </div>
            </div>
          ))}
        </div>
      </Section>
      <Section
        id="type"
        title="Type"
        note="Geist for the interface and for reading, Geist Mono for code, ids and output."
      >
        <div className="grid gap-6 md:grid-cols-2">
          <div className="space-y-2">
            <p className="text-display font-semibold tracking-[-0.02em]">What needs you</p>
            <p className="title">Title, 20 / 28</p>
            <p className="section-title">Section, 13 / 20</p>
            <p>Interface, 13 / 20: Scout finished “Compare three invoicing providers”.</p>
            <p className="label">Label, 12 / 16</p>
            <p className="nums font-mono text-xs text-text-2">T-1042 · 8f3c9a1 · 1,204,889 tokens</p>
          </div>
          <p className="reading text-text-1">
            Reading text is set at 15 / 26 and about seventy characters a line, so that a long transcript or page reads
            like a good newspaper: steady, dark enough, with room between the lines.{' '}
            <span className="text-text-2">Zahlen stehen gleich breit, 日本語も読みやすく。</span>
          </p>
        </div>
      </Section>
    </>
  )
}
