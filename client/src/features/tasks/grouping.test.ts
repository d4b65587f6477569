import { describe, expect, it } from 'vitest'
import { groupsOf, linesOf, windowFor } from './grouping.ts'

const none = new Set<string>()

describe('grouped lines', () => {
  it('L1 order of statuses, priorities and due groups; empty ones left out', () => {
    const keys = (grouping: 'status' | 'priority' | 'due', ...present: string[]) =>
      groupsOf(
        present.map((key) => ({ key, count: 1 })),
        grouping,
        [],
        none,
      ).map((group) => group.key)
    expect(keys('status', 'done', 'todo', 'blocked')).toEqual(['todo', 'blocked', 'done'])
    expect(keys('priority', 'low', 'urgent', 'medium')).toEqual(['urgent', 'medium', 'low'])
    expect(keys('due', 'none', 'later', 'overdue')).toEqual(['overdue', 'later', 'none'])
  })

  it('L1 names order assignees; nobody, then strangers, come last', () => {
    const counts = ['gone', 'none', 'b', 'a'].map((key) => ({ key, count: 2 }))
    const names = [
      ['a', 'Ana'],
      ['b', 'Ben'],
    ] as const
    expect(groupsOf(counts, 'assignee', names, none).map((group) => group.label)).toEqual([
      'Ana',
      'Ben',
      'Nobody',
      'Somebody else',
    ])
  })

  const groups = groupsOf(
    [
      { key: 'todo', count: 3 },
      { key: 'blocked', count: 2 },
      { key: 'done', count: 4 },
    ],
    'status',
    [],
    new Set(['blocked']),
  )

  it('L2 a closed group is only a heading, and its rows do not count', () => {
    const lines = linesOf(groups, true)
    expect(lines.count).toBe(3 + 3 + 4)
    expect(lines.rows).toBe(7)
    expect(lines.at(0)).toMatchObject({ kind: 'heading', group: { key: 'todo' } })
    expect(lines.at(3)).toMatchObject({ kind: 'row', position: 2 })
    expect(lines.at(4)).toMatchObject({ kind: 'heading', group: { key: 'blocked', open: false } })
    expect(lines.at(5)).toMatchObject({ kind: 'heading', group: { key: 'done' } })
    expect(lines.at(6)).toMatchObject({ kind: 'row', position: 3, group: { key: 'done' } })
    expect(lines.at(10)).toBeUndefined()
    expect(lines.at(-1)).toBeUndefined()
  })

  it('a row is found where it stands, and back', () => {
    const lines = linesOf(groups, true)
    for (let position = 0; position < lines.rows; position++) {
      expect(lines.at(lines.lineOf(position))).toMatchObject({ kind: 'row', position })
    }
    expect(lines.lineOf(99)).toBe(-1)
  })

  it('windows are whole blocks around what is seen', () => {
    const lines = linesOf(groupsOf([{ key: 'all', count: 10_000 }], 'none', [], none), false)
    expect(windowFor(lines, 0, 30)).toEqual({ offset: 0, limit: 200 })
    expect(windowFor(lines, 450, 490)).toEqual({ offset: 300, limit: 300 })
    expect(windowFor(lines, 480, 520)).toEqual({ offset: 300, limit: 400 })
    expect(windowFor(linesOf([], true), 0, 0)).toEqual({ offset: 0, limit: 200 })
  })
})
