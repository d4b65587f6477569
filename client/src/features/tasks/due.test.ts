import { describe, expect, it } from 'vitest'
import { dayIn, dueBorders, dueLabel, dueOfDay, instantOf, isOverdue, overdueLabel } from './due.ts'

const now = Date.parse('2026-11-30T12:00:00Z')

describe('due dates', () => {
  it('D1 a day survives the way to an instant and back, in every zone and across clock changes', () => {
    for (const zone of [
      'UTC',
      'Europe/Berlin',
      'America/Los_Angeles',
      'Asia/Tokyo',
      'Asia/Kathmandu',
      'Pacific/Kiritimati',
    ]) {
      for (const day of ['2026-03-29', '2026-10-25', '2026-11-01', '2026-12-31', '2028-02-29']) {
        expect(dayIn(dueOfDay(day, zone), zone), `${day} in ${zone}`).toBe(day)
      }
    }
  })

  it('an instant is what the clocks of the zone show', () => {
    expect(new Date(instantOf('2026-07-01', 9, 30, 'Europe/Berlin')).toISOString()).toBe('2026-07-01T07:30:00.000Z')
    expect(new Date(instantOf('2026-12-01', 0, 0, 'America/New_York')).toISOString()).toBe('2026-12-01T05:00:00.000Z')
  })

  it('an unknown zone counts as UTC', () => {
    expect(dayIn('2026-11-30T23:00:00Z', 'Mars/Olympus')).toBe('2026-11-30')
  })

  it('D2 overdue needs a passed instant and an open task', () => {
    const due_date = '2026-11-30T11:59:00Z'
    expect(isOverdue({ due_date, status: 'todo' }, now)).toBe(true)
    expect(isOverdue({ due_date, status: 'blocked' }, now)).toBe(true)
    expect(isOverdue({ due_date, status: 'done' }, now)).toBe(false)
    expect(isOverdue({ due_date: '2026-11-30T12:01:00Z', status: 'todo' }, now)).toBe(false)
    expect(isOverdue({ due_date: null, status: 'todo' }, now)).toBe(false)
  })

  it('labels are relative near today and name the hour only when there is one', () => {
    const label = (day: string) => dueLabel(dueOfDay(day, 'UTC'), 'UTC', now)
    expect(label('2026-11-30')).toBe('Today')
    expect(label('2026-12-01')).toBe('Tomorrow')
    expect(label('2026-11-29')).toBe('Yesterday')
    expect(label('2026-12-04')).toBe('Friday')
    expect(label('2026-12-07')).toBe('7 Dec')
    expect(label('2027-01-02')).toBe('2 Jan 2027')
    expect(dueLabel('2026-11-30T15:05:00Z', 'UTC', now)).toBe('Today 15:05')
  })

  it('today is the zone’s today', () => {
    const late = Date.parse('2026-11-30T23:30:00Z')
    expect(dueLabel(dueOfDay('2026-12-01', 'Asia/Tokyo'), 'Asia/Tokyo', late)).toBe('Today')
    expect(dueBorders(late, 'Asia/Tokyo').today).toBe('2026-12-01T15:00:00.000Z')
  })

  it('says for how long', () => {
    expect(overdueLabel(dueOfDay('2026-11-28', 'UTC'), 'UTC', now)).toBe('2 days overdue')
    expect(overdueLabel('2026-11-30T09:00:00Z', 'UTC', now)).toBe('Overdue')
  })
})
