import { execFileSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { blobSha, type FileCommand, fileState, pathProblem } from './file-commands.ts'

const command = (more: Partial<FileCommand>): FileCommand => ({
  id: 'c',
  action: 'file_write',
  path: 'a.md',
  status: 'pending',
  created_at: '2026-01-01T00:00:00.000Z',
  error_message: null,
  text: 'x',
  conflict: null,
  ...more,
})

test.each(['', 'one\n', 'ü ✍️ \u{1f98a}\r\n'])('a text has the id that git gives it: %j', async (text) => {
  expect(await blobSha(text)).toBe(execFileSync('git', ['hash-object', '--stdin'], { input: text }).toString().trim())
})

test('the newest command says how a file stands', () => {
  expect(fileState(undefined).kind).toBe('saved')
  expect(fileState(command({ status: 'done' })).kind).toBe('saved')
  for (const status of ['pending', 'leased', 'running'] as const)
    expect(fileState(command({ status })).kind).toBe('waiting')
  for (const status of ['failed', 'cancelled', 'dead_letter'] as const)
    expect(fileState(command({ status })).kind).toBe('refused')
  expect(fileState(command({ status: 'failed', conflict: { sha: null, text: null } })).kind).toBe('conflict')
})

test.each(['', '/etc/passwd', '../x', 'a/../b', 'a//b', 'a\\b', './x', '.git/config', '.GIT/x'])(
  '%j can’t be the name of a new file',
  (path) => {
    expect(pathProblem(path)).toMatch(/\w/)
    expect(pathProblem('notes/plan.md')).toBeNull()
  },
)
