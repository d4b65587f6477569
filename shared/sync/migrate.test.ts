import { PGlite } from '@electric-sql/pglite'
import { afterEach, expect, test } from 'vitest'
import type { Migration } from '../schema/migrations.ts'
import { EditedMigrationError, migrateReplica } from './migrate.ts'
import { migrations } from './testing/harness.ts'

let db: PGlite | undefined
afterEach(async () => {
  await db?.close()
  db = undefined
})
const more = (sql: string): Migration[] => [...migrations, { name: '9001_more.sql', sql }]
const columns = async (): Promise<string[]> =>
  (
    await (db as PGlite).query<{ name: string }>(
      `select column_name as name from information_schema.columns where table_name = 'more'`,
    )
  ).rows.map(({ name }) => name)

test('B1, B2, B3: each migration runs once and whole; a broken one leaves nothing, an edited one is refused', async () => {
  db = await PGlite.create()
  const broken = more('create table more (a int); select 1 / 0;')
  await expect(migrateReplica(db, broken)).rejects.toThrow(/division by zero/)
  expect(await columns(), 'nothing of a migration that failed').toEqual([])

  const good = more('create table more (a int);')
  expect(await migrateReplica(db, good)).toBe('9001_more.sql')
  await db.query('insert into more values (1)')
  expect(await migrateReplica(db, good), 'again').toBe('9001_more.sql')
  expect((await db.query('select * from more')).rows).toEqual([{ a: 1 }])

  await expect(migrateReplica(db, more('create table more (b int);'))).rejects.toThrow(EditedMigrationError)
  expect(await columns()).toEqual(['a'])
})
