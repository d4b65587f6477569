/** `npm run schema`: writes migrations/0001_schema.sql from the declared tables. A test checks that it is up to date. */
import { writeFile } from 'node:fs/promises'
import { initialMigration } from './sql.ts'
import { tables } from './tables.ts'

const file = new URL('../../migrations/0001_schema.sql', import.meta.url)
await writeFile(file, initialMigration(Object.values(tables)))
