/** A process for kill.test.ts: opens the workspaces of argv[2] (templates argv[3]), then writes, deletes and upgrades until it is killed, or `argv[4]` times. Says what is done. */
import { profile } from '../testing/templates.ts'
import { agentAuthor } from './contract.ts'
import { createWorkspaces } from './workspaces.ts'

const [home = '', templates = '', times = '0'] = process.argv.slice(2)
const author = agentAuthor({ name: 'Wanda', slug: 'wanda' })
const workspaces = await createWorkspaces({ home, templates, now: Date.now })
await workspaces.seedTemplates()
await workspaces.createBranch(profile())
await workspaces.createWorktree('wanda')
await workspaces.commit('wanda', 'Found', author)
for (let n = 0; times === '0' || n < Number(times); n++) {
  const text = `${process.pid} ${n}\n`
  await workspaces.writeText('wanda', `notes/${n % 5}.md`, text, { author })
  if (n % 7 === 3) await workspaces.deleteFile('wanda', 'notes/1.md', { author })
  if (n % 5 === 4) await workspaces.upgradeTemplate(profile())
  process.stdout.write(`done ${n}\n`)
}
await workspaces.commit('wanda', 'Last', author)
process.stdout.write('end\n')
