import { describe, expect, test } from 'vitest'
import { answer, approvalState, canBeStanding, detailOf, visible } from './approval.ts'

const NOW = Date.parse('2026-03-01T12:00:00Z')
const at = (minutes: number): string => new Date(NOW + minutes * 60_000).toISOString()
const row = (more: Partial<Parameters<typeof approvalState>[0]> = {}) => ({
  status: 'pending' as const,
  expires_at: at(60),
  applied_at: null,
  error_message: null,
  gateway_label: 'Attic',
  gateway_seen_at: at(0),
  ...more,
})

describe('how a question stands (Q3)', () => {
  test.each<[string, Partial<Parameters<typeof approvalState>[0]>, string, RegExp | undefined]>([
    ['a person must answer', {}, 'open', undefined],
    ['the gateway is away', { gateway_seen_at: at(-60) }, 'open', /“Attic” is offline.*when it is back/],
    ['its time is over, the gateway has not said so yet', { expires_at: at(-1) }, 'late', /in time/],
    ['it stands for ever', { expires_at: null }, 'open', undefined],
    ['answered, on its way', { status: 'allowed' }, 'sent', /On its way/],
    [
      'answered, the gateway is away',
      { status: 'denied', gateway_seen_at: null },
      'sent',
      /when gateway “Attic” is back/,
    ],
    ['taken', { status: 'allowed', applied_at: at(0) }, 'over', undefined],
    ['the answer came too late', { status: 'allowed', error_message: 'nothing was done.' }, 'over', /nothing was done/],
    ['expired', { status: 'expired' }, 'over', /in time/],
    ['withdrawn', { status: 'cancelled', error_message: 'The gateway was restarted.' }, 'over', /restarted/],
  ])('%s', (_, more, key, detail) => {
    const state = approvalState(row(more), NOW)
    expect(state.key).toBe(key)
    if (detail) expect(state.detail).toMatch(detail)
    else expect(state.detail).toBeUndefined()
  })
})

describe('an answer (Q1)', () => {
  const question = { id: 'q', agent_id: 'a', subject: 'exec', tool_policy: { tools: { web_fetch: 'deny' } } }
  test('is one statement for an open question; a note of spaces is none', () => {
    const [first, ...rest] = answer(question, 'deny', '  ', 'me')
    expect(rest).toEqual([])
    expect(first?.sql).toContain(`status = 'pending' returning id`)
    expect(first?.params).toEqual(['q', 'denied', null, 'me'])
  })
  test('“always” adds to the policy, only together with that answer', () => {
    const [, policy] = answer(question, 'always', 'fine', 'me')
    expect(policy?.sql).toContain('exists')
    expect(policy?.params).toEqual(['a', '{"tools":{"web_fetch":"deny","exec":"allow"}}', 'q', 'me'])
  })
  test('pairing, and an agent that is gone, have no “always”', () => {
    expect(canBeStanding({ kind: 'exec', agent_slug: 'ada' })).toBe(true)
    expect(canBeStanding({ kind: 'pairing', agent_slug: 'ada' })).toBe(false)
    expect(canBeStanding({ kind: 'tool', agent_slug: null })).toBe(false)
  })
})

describe('what is shown is what will be done (Q2)', () => {
  test.each([
    ['ls\u202e fr- mr', 'ls⟨U+202E⟩ fr- mr'],
    ['a\u200bb', 'a⟨U+200B⟩b'],
    ['x\u0000\u001b[8m', 'x⟨U+0000⟩⟨U+001B⟩[8m'],
    ['tag\u{e0041}', 'tag⟨U+E0041⟩'],
    ['back\r over', 'back⟨U+000D⟩ over'],
    ['plain\n\ttext é 🦊', 'plain\n\ttext é 🦊'],
  ])('%j', (text, shown) => expect(visible(text)).toBe(shown))

  test('the command stands apart, and nothing is left out', () => {
    expect(detailOf({ folder: '.', command: 'git push', timeout_s: 60, none: null })).toEqual({
      main: { name: 'command', text: 'git push' },
      facts: [
        { name: 'folder', text: '.' },
        { name: 'timeout_s', text: '60' },
      ],
    })
    expect(detailOf({ path: 'a.md', text: 'one\ntwo' }).main).toEqual({ name: 'text', text: 'one\ntwo' })
    expect(detailOf({ url: 'https://example.org' })).toEqual({
      main: undefined,
      facts: [{ name: 'url', text: 'https://example.org' }],
    })
  })
})
