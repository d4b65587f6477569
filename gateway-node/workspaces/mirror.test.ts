import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { createTestGateway, type TestGateway } from '../testing/context.ts'
import { profile } from '../testing/templates.ts'
import { createMirror } from './mirror.ts'
import { publishFiles } from './publish.ts'

async function agentWithWorkspace(gateway: TestGateway, slug: string): Promise<string> {
  const id = await gateway.addAgent(slug, { status: 'ready' })
  await gateway.context.workspaces.createBranch(profile({ slug, agentId: id }))
  await gateway.context.workspaces.createWorktree(slug)
  return id
}

async function start(gateway: TestGateway): Promise<void> {
  const mirror = createMirror(gateway.context)
  onTestFinished(() => mirror.stop())
  await mirror.start()
}

/** Waits for a row of `agent_files` with this content. */
const published = (gateway: TestGateway, agent: string, path: string, content: string): Promise<void> =>
  new Promise((resolve, reject) => {
    const look = (): void => {
      gateway.replica
        .query('select from agent_files where agent_id = $1 and path = $2 and content = $3 and deleted_at is null', [
          agent,
          path,
          content,
        ])
        .then((rows) => {
          if (rows.length === 0) return
          stop()
          resolve()
        }, reject)
    }
    const stop = gateway.replica.onChange(look)
    look()
  })

it('publishes at the start what a crash left, and says which agent has lost its workspace', async () => {
  const gateway = await createTestGateway()
  const lost = await agentWithWorkspace(gateway, 'ann')
  const agent = await agentWithWorkspace(gateway, 'wanda')
  await writeFile(join(gateway.context.home, 'agents/wanda/note.md'), 'left behind')
  await rm(join(gateway.context.home, 'agents/ann'), { recursive: true })
  await start(gateway)
  await published(gateway, agent, 'note.md', 'left behind')
  expect(await gateway.row('agents', lost)).toMatchObject({
    status: 'error',
    status_reason: expect.stringContaining('provision the agent again'),
  })
})

it('makes no row twice when two publish at once (M5)', async () => {
  const gateway = await createTestGateway()
  const agent = await agentWithWorkspace(gateway, 'wanda')
  const all = await Promise.all([1, 2, 3].map(() => publishFiles(gateway.context, { id: agent, slug: 'wanda' })))
  expect(all.map(({ changed }) => changed)).toEqual([6, 0, 0])
})
