import { describe, expect, it } from 'vitest'
import { decisionProblem, deliverableName, deliverablesOf, type Link } from './deliverables.ts'

const link = (id: string, more: Partial<Link> = {}): Link =>
  ({
    id,
    created_at: `2026-11-30T12:00:0${id}Z`,
    deleted_at: null,
    is_deliverable: true,
    review_status: 'submitted',
    supersedes_id: null,
    ...more,
  }) as Link

describe('deliverables', () => {
  it('V1 versions fold under the one that replaced them', () => {
    const all = [
      link('1', { review_status: 'revision_requested' }),
      link('2', { supersedes_id: '1', review_status: 'revision_requested' }),
      link('3', { supersedes_id: '2' }),
      link('4', { review_status: 'approved' }),
      link('5', { is_deliverable: false }),
    ]
    expect(deliverablesOf(all).map(({ current, older }) => [current.id, older.map((each) => each.id)])).toEqual([
      ['3', ['2', '1']],
      ['4', []],
    ])
  })

  it('V1 a missing version breaks nothing, and neither does a cycle', () => {
    expect(deliverablesOf([link('3', { supersedes_id: '2' })])).toHaveLength(1)
    expect(deliverablesOf([link('1', { supersedes_id: '2' }), link('2', { supersedes_id: '1' })])).toEqual([])
    expect(deliverablesOf([link('1', { supersedes_id: '1' }), link('2', { deleted_at: 'x' })])).toEqual([])
  })

  it('what waits for a person comes first', () => {
    const all = [link('1'), link('2', { review_status: 'approved' })]
    expect(deliverablesOf(all).map(({ current }) => current.id)).toEqual(['1', '2'])
  })

  it('V2 a revision needs a note; a decision may be changed, a draft not be decided on', () => {
    expect(decisionProblem(link('1'), 'revision_requested', '  ')).toMatch(/what should change/)
    expect(decisionProblem(link('1'), 'revision_requested', 'shorter')).toBeUndefined()
    expect(decisionProblem(link('1'), 'approved', '')).toBeUndefined()
    expect(decisionProblem(link('1', { review_status: 'approved' }), 'rejected', '')).toBeUndefined()
    expect(decisionProblem(link('1', { review_status: 'approved' }), 'approved', '')).toMatch(/decided already/)
    expect(decisionProblem(link('1', { review_status: 'draft' }), 'approved', '')).toMatch(/can't become/)
  })

  it('has a name', () => {
    expect(deliverableName({ label: ' Plan ', url: null, body: null })).toBe('Plan')
    expect(deliverableName({ label: null, url: null, body: 'x\n## Launch plan\n' })).toBe('Launch plan')
    expect(deliverableName({ label: '', url: 'notes/plan.md?x', body: null })).toBe('plan.md')
    expect(deliverableName({ label: null, url: null, body: null })).toBe('Deliverable')
  })
})
