/**
 * `ELECTRIC_URL`: the read path comes from an Electric service beside the server. The service here is our own engine run alone (a process of its own,
 * all tables, no auth): only the address differs from the real one.
 */
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openBenchReplica, until } from '../bench/support/replicas.ts'
import { startTestServer, type TestServer } from '../sync-server/shapes/testing/server.ts'
import { startWorkspace } from '../sync-server/testing/workspace.ts'

test('two replicas meet over an Electric service, also after it was killed', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'hq-electric-'))
  let electric: TestServer | undefined
  const workspace = await startWorkspace(async (databaseUrl) => {
    electric = await startTestServer(databaseUrl)
    return { electricUrl: electric.url }
  })
  try {
    const health = (await (await fetch(`${workspace.url}/v1/health`)).json()) as { shapes: string }
    expect(health.shapes).toBe('electric')
    const here = await openBenchReplica(workspace.url, workspace.owner, join(folder, 'a'))
    const there = await openBenchReplica(workspace.url, await workspace.join('member'), join(folder, 'b'))
    try {
      const write = async (title: string) => {
        const id = randomUUID()
        await here.replica.write((tx) =>
          tx.query('insert into tasks (id, tenant_id, title) values ($1, $2, $3)', [id, workspace.tenantId, title]),
        )
        return id
      }
      const arrives = (id: string) =>
        until(
          there.replica,
          async () => (await there.replica.query('select 1 from tasks where id = $1', [id])).length > 0,
        )
      const settles = () => until(here.replica, () => here.replica.status().pending === 0)

      await arrives(await write('over Electric'))
      await settles()
      await electric?.kill('SIGKILL')
      const meanwhile = await write('while Electric is dead')
      await electric?.start()
      await arrives(meanwhile)
      await settles()
      expect(await there.replica.query('select title from tasks order by title')).toEqual([
        { title: 'over Electric' },
        { title: 'while Electric is dead' },
      ])
    } finally {
      await here.close()
      await there.close()
    }
  } finally {
    await workspace.stop()
    await electric?.stop()
    await rm(folder, { recursive: true, force: true })
  }
})
