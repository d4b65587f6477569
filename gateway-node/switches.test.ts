import { describe, expect, it } from 'vitest'
import { isOn } from './switches.ts'

describe('switches of a gateway', () => {
  it.each(['on', 'ON', 'On', ' on '])('S1: %j is on', (value) => {
    expect(isOn({ HQ_RUN_SHELL: value }, 'HQ_RUN_SHELL')).toBe(true)
  })

  it.each([undefined, '', 'off', 'yes', 'true', '1', 'one', 'o n'])('S1: %j is off', (value) => {
    expect(isOn({ HQ_RUN_SHELL: value }, 'HQ_RUN_SHELL')).toBe(false)
  })

  it('one does not switch another', () => {
    expect(isOn({ HQ_AGENT_WEB: 'on' }, 'HQ_AGENT_EXEC')).toBe(false)
  })
})
