import { expect, test } from 'vitest'
import { modelOptions, OWN_MODEL, runtimeOptions } from './agent-choices.ts'

test('a runtime that is not there can be kept, not chosen', () => {
  const claw = (meta: Parameters<typeof runtimeOptions>[0], now: 'builtin' | 'openclaw') => runtimeOptions(meta, now)[1]
  expect(claw({}, 'builtin')).toMatchObject({ disabled: true, hint: 'its gateway has not said' })
  expect(claw({ openclaw: { version: '1', installed: false, state: 'stopped' } }, 'openclaw')).toMatchObject({
    disabled: false,
  })
  expect(claw({ openclaw: { version: '1', installed: true, state: 'stopped' } }, 'builtin')).toEqual({
    value: 'openclaw',
    label: 'OpenClaw',
    hint: '1',
  })
})

test('models: the gateway’s own first, each once, the present one always', () => {
  const models = [
    { provider: 'demo', model: 'demo', demo: true },
    { provider: 'openai', model: 'a', demo: false },
    { provider: 'openai', model: 'a', demo: false },
  ]
  expect(modelOptions({ models }, 'b').map(({ value }) => value)).toEqual([OWN_MODEL, 'a', 'b'])
  expect(modelOptions({}, null)).toHaveLength(1)
})
