import { expect, it } from 'vitest'
import { moveStatements, secretsSentence } from './move-plan.ts'

const agent = { id: 'a', tenant_id: 't', gateway_id: 'old' }
const by = { commandId: 'c', personId: 'p' }

it('asks the old gateway where there is one (M1)', () => {
  const [command, ...more] = moveStatements(agent, 'new', 'with_files', by)
  expect(more).toEqual([])
  expect(command?.params).toEqual(['c', 't', 'old', 'a', '{"to_gateway_id":"new"}', 'p'])
})

it('changes the row and tells the new one where there is none (M2)', () => {
  const [row, command] = moveStatements(agent, 'new', 'without_files', by)
  expect(row?.params).toEqual(['a', 'new'])
  expect(command?.params).toEqual(['c', 't', 'new', 'a', '{"without_files":true}', 'p'])
})

it('names the secrets that do not go along', () => {
  expect(secretsSentence([])).toBeUndefined()
  expect(secretsSentence(['A'])).toContain('A has to be set again')
  expect(secretsSentence(['A', 'B'])).toContain('A and B have')
  expect(secretsSentence(['A', 'B', 'C', 'D'])).toContain('A, B and 2 more have')
})
