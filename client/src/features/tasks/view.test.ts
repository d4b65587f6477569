import { describe, expect, it } from 'vitest'
import { isFiltered, readSearch, searchOf, viewOf } from './view.ts'

describe('the view in the address', () => {
  it('survives the way there and back, and leaves defaults out', () => {
    const search = {
      view: 'board',
      group: 'due',
      sort: 'updated',
      status: 'todo,blocked',
      assignee: 'me',
      stream: 'none',
      overdue: true,
      q: 'für Müller 東京',
    } as const
    expect(searchOf(viewOf(readSearch(search)))).toEqual(search)
    expect(searchOf(viewOf({}))).toEqual({})
  })

  it('what is unknown is the default, never an error', () => {
    expect(readSearch({ view: 'calendar', group: 7, status: 'todo,missed,;drop', q: '  ', overdue: 'yes' })).toEqual({
      status: 'todo',
    })
    expect(readSearch({ q: 42 })).toEqual({ q: '42' })
  })

  it('knows when something narrows it', () => {
    expect(isFiltered(viewOf({ view: 'board', group: 'due' }))).toBe(false)
    expect(isFiltered(viewOf({ q: 'x' }))).toBe(true)
    expect(isFiltered(viewOf({ overdue: true }))).toBe(true)
  })
})
