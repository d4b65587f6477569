import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { WorkspaceError } from '../workspaces/contract.ts'
import { checkPath, createAgentFiles, MAX_BYTES } from './agent-files.ts'
import type { AgentFiles } from './runtime.ts'

let root: string
let folder: string
let files: AgentFiles
const written: [string, string][] = []

beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'hq-files-'))
  folder = join(root, 'worktree')
  await mkdir(join(folder, 'notes', 'deep'), { recursive: true })
  await mkdir(join(folder, '.git'))
  await writeFile(join(root, 'secret.txt'), 'outside')
  await writeFile(join(folder, '.git', 'config'), 'git')
  await writeFile(join(folder, '.hq-agent.json'), '{}')
  await writeFile(join(folder, 'MEMORY.md'), 'I remember.')
  await writeFile(join(folder, 'notes', 'deep', 'a.md'), 'a')
  await writeFile(join(folder, 'binary'), Buffer.from([0xff, 0xfe, 0x00]))
  await writeFile(join(folder, 'big'), 'x'.repeat(MAX_BYTES + 1))
  await symlink(join(root, 'secret.txt'), join(folder, 'link-to-file'))
  await symlink(root, join(folder, 'link-to-folder'))
  await symlink('MEMORY.md', join(folder, 'link-inside'))
  await symlink(join(root, 'new.txt'), join(folder, 'dangling'))
  files = createAgentFiles({
    folder,
    commit: async (path, text) => {
      if (path === 'refused.md') throw new WorkspaceError('stale', 'Somebody else has changed it.')
      written.push([path, text])
    },
  })
})

afterAll(() => rm(root, { recursive: true, force: true }))

/** Ways out of a worktree (F1, F2). None may read, list or write. */
const OUT = [
  '..',
  '../secret.txt',
  'notes/../../secret.txt',
  './../secret.txt',
  'notes/..',
  '/etc/passwd',
  '//etc/passwd',
  '~/x',
  'C:/Windows',
  'c:secret',
  '..\\secret.txt',
  'notes\\..\\..\\secret.txt',
  'a\0b',
  '',
  '   ',
  '.',
  '.git/config',
  '.GIT/config',
  'notes/.git/hooks/post-commit',
  '.hq-agent.json',
  'link-to-file',
  'link-to-folder/secret.txt',
  'link-to-folder/worktree/MEMORY.md',
  'link-inside',
  'dangling',
  'x'.repeat(600),
]

describe('the jail', () => {
  test.each(OUT)('%j is refused by read and write (F1, F2)', async (path) => {
    expect(await files.read(path)).toMatchObject({ ok: false })
    expect(await files.write(path, 'gotcha')).toMatchObject({ ok: false })
    expect(written).toEqual([])
    expect(await readFile(join(root, 'secret.txt'), 'utf8')).toBe('outside')
  })

  test.each(['..', '/', 'link-to-folder', '.git', 'MEMORY.md'])('listing %j is refused', async (path) => {
    expect(await files.list(path)).toMatchObject({ ok: false })
  })

  test('every refusal is a sentence', async () => {
    for (const path of OUT)
      expect(await files.read(path)).toMatchObject({ message: expect.stringMatching(/^.{8,}\.$|”.*\.$/s) })
  })
})

test('reads, lists and writes what is inside', async () => {
  expect(await files.read('MEMORY.md')).toEqual({ ok: true, value: 'I remember.' })
  expect(await files.read('./notes//deep/a.md')).toEqual({ ok: true, value: 'a' })
  expect(await files.list()).toEqual({
    ok: true,
    value: [
      { path: 'MEMORY.md', size: 11 },
      { path: 'big', size: MAX_BYTES + 1 },
      { path: 'binary', size: 3 },
      { path: 'notes/deep/a.md', size: 1 },
    ],
  })
  expect(await files.list('notes')).toMatchObject({ value: [{ path: 'notes/deep/a.md' }] })
  expect(await files.write('new/note.md', 'hello')).toEqual({ ok: true, value: { path: 'new/note.md' } })
  expect(written.splice(0)).toEqual([['new/note.md', 'hello']])
})

test('text only, and not too much of it (F3); what the workspace refuses is told', async () => {
  expect(await files.read('binary')).toMatchObject({ ok: false, message: expect.stringContaining('not a text file') })
  expect(await files.read('big')).toMatchObject({ ok: false, message: expect.stringContaining('at most') })
  expect(await files.write('big2', 'x'.repeat(MAX_BYTES + 1))).toMatchObject({ ok: false })
  expect(await files.write('nul', 'a\0b')).toMatchObject({ ok: false })
  expect(await files.write('notes', 'x')).toMatchObject({ ok: false, message: expect.stringContaining('folder') })
  expect(await files.write('refused.md', 'x')).toEqual({ ok: false, message: 'Somebody else has changed it.' })
  expect(await files.read('missing.md')).toMatchObject({ ok: false, message: expect.stringContaining('There is no') })
})

test('names that only look odd are fine', () => {
  for (const path of ['a..b', '...', '..a/b', 'a b/ü.md', '.env.example', 'git/config'])
    expect(checkPath(path), path).toEqual({ ok: true, value: path })
})
