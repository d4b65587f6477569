// Loads one table with @electric-sql/pglite-sync; prints rows per second. Runs in a folder of its own (initial-sync.bench.ts), not in this project.
import { PGlite } from '@electric-sql/pglite'
import { electricSync } from '@electric-sql/pglite-sync'

const { url, headers, replicaId, rows } = JSON.parse(process.argv[2])
const db = await PGlite.create({ dataDir: './data', extensions: { electric: electricSync() } })
const params = { table: 'tasks', replica: 'full', replica_id: replicaId }
const answer = await fetch(`${url}?${new URLSearchParams({ ...params, offset: '-1' })}`, { headers })
const schema = JSON.parse(answer.headers.get('electric-schema') ?? '{}')
await answer.body?.cancel()
const columns = Object.entries(schema).map(([name, { type, dims }]) => `"${name}" ${type}${'[]'.repeat(dims ?? 0)}`)
await db.exec(`create table tasks (${columns.join(', ')}, primary key (id))`)
const began = performance.now()
const shape = await db.electric.syncShapeToTable({
  shape: { url, params, headers },
  table: 'tasks',
  primaryKey: ['id'],
  shapeKey: 'tasks',
  initialInsertMethod: 'json',
})
for (;;) {
  const { rows: found } = await db.query('select count(*)::int as n from tasks')
  if (found[0].n >= rows) break
  await new Promise((resolve) => setTimeout(resolve, 50))
}
console.log(Math.round((rows / (performance.now() - began)) * 1000))
shape.unsubscribe()
process.exit(0)
