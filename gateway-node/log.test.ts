import { expect, it } from 'vitest'
import { createLog, secretsOf } from './log.ts'

function capture(options: Parameters<typeof createLog>[0] = {}) {
  const lines: string[] = []
  return { log: createLog({ ...options, write: (line) => lines.push(line), now: () => 0 }), lines }
}

it('writes one JSON object a line', () => {
  const { log, lines } = capture()
  log('info', 'Two\nlines', { at: new Date(0), big: 1n, error: new TypeError('odd', { cause: 'why' }) })
  log('debug', 'not shown')
  expect(lines).toHaveLength(1)
  expect(lines[0]?.endsWith('\n')).toBe(true)
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    time: '1970-01-01T00:00:00.000Z',
    level: 'info',
    message: 'Two\nlines',
    big: '1',
    error: { name: 'TypeError', message: 'odd', cause: 'why' },
  })
})

it.each([
  ['by its name', 'x', { token: 'abc', deep: { apiKey: 'abc', 'api-key': 1, password: ['abc'], set_cookie: 'abc' } }],
  [
    'by its shape in a text',
    'sent Bearer abcdefgh.ijkl and hqgw_abcdefghij',
    { error: new Error('hqreg_abcdefghij was refused') },
  ],
  ['by its value', 'the value is s3cret-value!', { list: ['s3cret-value!'] }],
])('hides a secret known %s', (_how, message, detail) => {
  const { log, lines } = capture({ secrets: ['s3cret-value!'] })
  log('error', message, detail)
  expect(lines.join('')).not.toMatch(/abc|s3cret/)
  expect(lines.join('')).toContain('[hidden]')
})

it('shows what only sounds like a secret', () => {
  const { log, lines } = capture()
  log('info', 'x', { lease_token: 3, input_tokens: 9, tokens: 2 })
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({ lease_token: 3, input_tokens: 9, tokens: 2 })
})

it('finds the secrets of an environment', () => {
  expect(secretsOf({ OPENAI_API_KEY: 'a', PATH: 'b', HQ_REGISTRATION_TOKEN: 'c', EMPTY_SECRET: '' })).toEqual([
    'a',
    'c',
  ])
})
