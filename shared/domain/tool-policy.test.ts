import { describe, expect, test } from 'vitest'
import { BASIC, parseToolPolicy, STANDARD, type ToolVerdict, verdictFor, withVerdict } from './tool-policy.ts'

const verdict = (policy: unknown, tool: string): ToolVerdict => verdictFor(parseToolPolicy(policy), tool)

describe('what counts', () => {
  test.each<[string, unknown, string, ToolVerdict]>([
    ['nothing said: HQ’s actions', {}, 'comment', 'allow'],
    ['nothing said: own files', null, 'write_file', 'allow'],
    ['nothing said: the web', undefined, 'web_fetch', 'allow'],
    ['nothing said: commands', {}, 'exec', 'deny'],
    ['nothing said: a tool that nobody knows', {}, 'mystery', 'deny'],
    ['a name', { tools: { exec: 'ask' } }, 'exec', 'ask'],
    ['a name, against an action of HQ', { tools: { complete: 'ask' } }, 'complete', 'ask'],
    ['a default', { default: 'ask' }, 'web_fetch', 'ask'],
    ['a default for what nobody knows', { default: 'allow' }, 'mystery', 'allow'],
    ['a name before the default', { default: 'deny', tools: { web_fetch: 'allow' } }, 'web_fetch', 'allow'],
    ['no default takes the actions away (P2)', { default: 'deny' }, 'my_tasks', 'allow'],
    ['no default allows commands (P2)', { default: 'allow' }, 'exec', 'deny'],
    ['a default may make commands a question', { default: 'ask' }, 'exec', 'ask'],
  ])('%s', (_, policy, tool, expected) => expect(verdict(policy, tool)).toBe(expected))
})

describe('what cannot be understood is the safest (P3)', () => {
  test.each<[unknown, string, ToolVerdict]>([
    [{ tools: { web_fetch: 'yes' } }, 'web_fetch', 'deny'],
    [{ tools: { web_fetch: { verdict: 'allow' } } }, 'web_fetch', 'deny'],
    [{ default: 'ALLOW' }, 'web_fetch', 'deny'],
    ['allow', 'web_fetch', 'deny'],
    [['allow'], 'web_fetch', 'deny'],
    [{ tools: ['web_fetch'] }, 'web_fetch', 'deny'],
    [{ tools: 'allow' }, 'exec', 'deny'],
    [7, 'comment', 'allow'],
    [{}, 'constructor', 'deny'],
    [{ tools: {} }, '__proto__', 'deny'],
    [JSON.parse('{"tools": {"__proto__": "allow"}}'), 'exec', 'deny'],
  ])('%j: %s', (policy, tool, expected) => expect(verdict(policy, tool)).toBe(expected))
})

test('a verdict is added and the rest stays', () => {
  const before = { default: 'ask', note: 'by hand', tools: { web_fetch: 'deny' } }
  expect(withVerdict(before, 'exec', 'allow')).toEqual({
    default: 'ask',
    note: 'by hand',
    tools: { web_fetch: 'deny', exec: 'allow' },
  })
  expect(withVerdict('nonsense', 'exec', 'ask')).toEqual({ default: 'deny', tools: { exec: 'ask' } })
  expect(withVerdict(null, 'exec', 'ask')).toEqual({ tools: { exec: 'ask' } })
})

test('all that an agent needs to work is allowed as long as nobody says otherwise', () => {
  for (const name of BASIC) expect(STANDARD[name]).toBe('allow')
})
