/**
 * `npm start -- --demo` runs this once the server is up: fills an empty workspace and says how to sign in. The password is made once and kept in
 * `HQ_HOME/server/demo-password` (0600), so that a later start can say it again.
 */
import { randomInt } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createPool, type Pool } from '../database/pool.ts'
import { DEMO_EMAIL, DemoError, fillDemo } from './fill.ts'

const WORDS = [
  'amber',
  'birch',
  'cedar',
  'delta',
  'ember',
  'fjord',
  'grove',
  'harbor',
  'indigo',
  'juniper',
  'kettle',
  'lantern',
  'meadow',
  'nectar',
  'opal',
  'pepper',
  'quartz',
  'river',
  'saffron',
  'timber',
]

const { DATABASE_URL: databaseUrl, HQ_HOME: home } = process.env
if (!databaseUrl || !home) throw new Error('Run this by `npm start -- --demo`.')

const pool = createPool(databaseUrl, { max: 2 })
try {
  const file = join(home, 'server', 'demo-password')
  const known = await readFile(file, 'utf8').catch(() => undefined)
  if (known) {
    console.log(`The demo data is already there. Sign in as ${DEMO_EMAIL} with the password: ${known.trim()}`)
  } else {
    const password = `${Array.from({ length: 4 }, () => WORDS[randomInt(WORDS.length)]).join('-')}-${randomInt(100, 1000)}`
    const tenantId =
      (await pool.query<{ id: string }>('select id from tenants order by created_at limit 1')).rows[0]?.id ?? ''
    const { tasks, contacts } = await fillDemo(pool, {
      tenantId,
      gatewayId: await localGateway(pool),
      password,
      now: Date.now(),
    })
    await writeFile(file, `${password}\n`, { mode: 0o600 })
    console.log(
      `Filled the workspace: ${tasks} tasks, ${contacts} contacts. Sign in as ${DEMO_EMAIL} with the password: ${password}`,
    )
  }
} catch (error) {
  console.error(error instanceof DemoError ? error.message : error)
  process.exitCode = 1
} finally {
  await pool.end()
}

/** The gateway beside the server registers within seconds; without one the agents of the demo have no home yet. */
async function localGateway(db: Pool): Promise<string | undefined> {
  for (let tries = 0; tries < 200; tries++) {
    const { rows } = await db.query<{ id: string }>(
      'select id from gateways where deleted_at is null order by created_at limit 1',
    )
    if (rows[0]) return rows[0].id
    await sleep(200)
  }
  return undefined
}
