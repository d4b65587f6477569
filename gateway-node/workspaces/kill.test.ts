/** Writers killed with SIGKILL at any moment, git and all: the repository stays whole, and what was said to be done is there. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { temporaryFolder } from '../testing/folder.ts'
import { smallTemplates, writeFiles } from '../testing/templates.ts'

const git = (cwd: string, ...args: string[]): string =>
  execFileSync('git', args, { cwd, encoding: 'utf8', stdio: 'pipe', env: { PATH: process.env['PATH'], HOME: cwd } })

/** Runs until `lines` were said, and some milliseconds more; all that it said. */
async function run(args: readonly string[], lines: number, moreMs: number): Promise<string> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'kill-child.ts'), ...args], {
    detached: true, // a group of its own: git dies with it
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let said = ''
  let complaints = ''
  let ended = false
  const kill = (): void => {
    if (!ended && child.pid) process.kill(-child.pid, 'SIGKILL')
  }
  onTestFinished(kill)
  child.stderr.setEncoding('utf8').on('data', (piece: string) => {
    complaints += piece
  })
  let planned = false
  child.stdout.setEncoding('utf8').on('data', (piece: string) => {
    said += piece
    if (planned || said.split('\n').length <= lines) return
    planned = true
    setTimeout(kill, moreMs)
  })
  const [code, signal] = await once(child, 'close')
  ended = true
  if (signal !== 'SIGKILL' && code !== 0) throw new Error(`the writer failed: ${complaints}`)
  return said
}

it('stays whole under SIGKILL (B1, W1)', { timeout: 180_000 }, async () => {
  const root = await temporaryFolder()
  const [home, templates] = [join(root, 'home'), join(root, 'templates')]
  await writeFiles(templates, smallTemplates())
  const folder = join(home, 'agents/wanda')
  for (let round = 0; round < 8; round++) {
    // A template of a new kind each time, so that there is something to merge.
    await writeFile(join(templates, 'writer/SOUL.md'), `# Soul\n\nRound ${round}.\n`)
    const said = await run([home, templates, '0'], 1 + (round % 4) * 2, Math.random() * 60)
    expect(said).toContain('done 0')
    expect(git(join(home, 'repo.git'), 'fsck', '--strict', '--no-dangling'), `round ${round}`).toBe('')
  }
  expect(await run([home, templates, '8'], Number.POSITIVE_INFINITY, 0)).toContain('end\n')
  expect(git(join(home, 'repo.git'), 'fsck', '--strict', '--no-dangling')).toBe('')
  expect(git(folder, 'status', '--porcelain', '--branch')).toBe('## acme/wanda\n')
  expect(await readFile(join(folder, 'notes/2.md'), 'utf8')).toMatch(/^\d+ 7\n$/)
  expect(git(folder, 'show', 'HEAD:SOUL.md')).toBe('# Soul\n\nRound 7.\n')
})
