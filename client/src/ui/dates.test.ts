import { describe, expect, it } from 'vitest'
import { addDays, addMonths, daysBetween, isDay, monthGrid, parseDay } from './dates.ts'

const today = '2026-11-30' // a Monday

describe('parseDay', () => {
  it.each([
    ['today', '2026-11-30'],
    ['tom', '2026-12-01'],
    ['mon', '2026-12-07'],
    ['Friday', '2026-12-04'],
    ['next fri', '2026-12-04'],
    ['next week', '2026-12-07'],
    ['in 3 days', '2026-12-03'],
    ['+2w', '2026-12-14'],
    ['3 months', '2027-02-28'],
    ['12 dec', '2026-12-12'],
    ['Dec 12', '2026-12-12'],
    ['4. march', '2027-03-04'],
    ['1.2.', '2027-02-01'],
    ['29 feb', '2028-02-29'],
    ['2027-01-02', '2027-01-02'],
  ])('%s', (text, day) => expect(parseDay(text, today)).toBe(day))

  it.each(['', 'soon', '31 feb', '2026-02-30', '45 dec', 'xx 3'])('refuses “%s”', (text) =>
    expect(parseDay(text, today)).toBeNull(),
  )
})

it('counts days across a clock change', () => {
  expect(daysBetween('2026-03-28', '2026-03-30')).toBe(2)
  expect(addDays('2026-10-24', 2)).toBe('2026-10-26')
})

it('keeps to the last day of a shorter month', () => {
  expect(addMonths('2026-01-31', 1)).toBe('2026-02-28')
  expect(addMonths('2026-03-31', -1)).toBe('2026-02-28')
})

it('lays a month out in six weeks from the first weekday', () => {
  const grid = monthGrid('2026-11-15')
  expect(grid).toHaveLength(6)
  expect(grid[0]?.[0]).toBe('2026-10-26')
  expect(grid.flat()).toContain('2026-11-30')
  expect(isDay('2026-11-31')).toBe(false)
})
