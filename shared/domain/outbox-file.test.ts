import { expect, test } from 'vitest'
import { outboxFile, outboxFileName, readOutboxFile } from './outbox-file.ts'

const head = {
  tenantId: 'tenant-1',
  workspace: 'Acme & Söhne',
  person: 'Ana',
  device: 'Chrome on Linux',
  at: '2026-12-01T10:00:00.000Z',
}
const line = (n: number) => JSON.stringify({ mutation_id: `m${n}`, patches: [{ table: 'tasks', id: `${n}` }] })

test('what was exported is read again, every change once and in order (O1)', () => {
  const read = readOutboxFile(outboxFile(head, [line(1), line(2)]), 'tenant-1')
  expect(read).toEqual({ ok: true, lines: [line(1), line(2)], person: 'Ana', device: head.device, at: head.at })
  expect(outboxFileName(head)).toBe('hq-acme-s-hne-waiting-2026-12-01.jsonl')
})

test.each([
  ['nothing', '', 'not a file'],
  ['something else', 'hello\nworld', 'not a file'],
  ['another workspace', outboxFile({ ...head, tenantId: 'other' }, [line(1)]), 'another workspace'],
  ['a newer version', outboxFile(head, []).replace('"hq_outbox":1', '"hq_outbox":2'), 'newer version'],
  ['a line that is cut', outboxFile(head, [line(1), line(2)]).slice(0, -12), 'Line 3'],
  [
    'a file that lost its last line',
    outboxFile(head, [line(1), line(2)])
      .split('\n')
      .slice(0, 2)
      .join('\n'),
    'cut short',
  ],
  ['a line that is no change', outboxFile(head, ['{"a":1}']), 'Line 2'],
])('%s is refused whole, with what is wrong (O2)', (_, text, why) => {
  const read = readOutboxFile(text, 'tenant-1')
  expect(read).toMatchObject({ ok: false })
  if (!read.ok) expect(read.message).toContain(why)
})
