import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { sqlFor } from './migrations.ts'
import { initialMigration } from './sql.ts'
import { tables } from './tables.ts'

test('the first migration is what the declaration says', async () => {
  const file = await readFile(new URL('../../migrations/0001_schema.sql', import.meta.url), 'utf8')
  expect(file).toBe(initialMigration(Object.values(tables)))
})

test('S2: a replica gets no foreign keys, checks or uniqueness', () => {
  const replica = sqlFor('replica', initialMigration(Object.values(tables)))
  expect(replica).not.toMatch(/foreign key|unique|check \(/)
  expect(replica).toMatch(/create table "tasks"/)
})

test('rows that only one gateway sees or writes name that gateway', () => {
  for (const table of Object.values(tables)) {
    const { visibility, write, columns } = table
    if (visibility.gateway === 'own' || write.gateway === 'own')
      expect(columns, table.name).toHaveProperty('gateway_id')
    if (visibility.browser === 'person') expect(columns, table.name).toHaveProperty('person_id')
    if (visibility.browser === 'replica') expect(columns, table.name).toHaveProperty('replica_id')
    const owned = Object.values(columns).some(({ spec }) => spec.merge === 'owner')
    if (owned) expect(columns, table.name).toHaveProperty('gateway_id')
  }
})
