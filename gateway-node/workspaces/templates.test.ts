/** The templates that ship with the project. */
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { profile } from '../testing/templates.ts'
import { fillTemplate, setSection } from './fill.ts'
import { parseAgentJson, readTemplates } from './templates.ts'

const shipped = await readTemplates(fileURLToPath(new URL('../../templates', import.meta.url)))
const text = (content: Uint8Array | undefined): string => new TextDecoder().decode(content)

const headings = (markdown: string): string[] => [...markdown.matchAll(/^## (.+)$/gm)].map(([, title]) => title ?? '')

it('are six, and all are whole', () => {
  expect(shipped.map(({ slug, error }) => [slug, error])).toEqual(
    ['analyst', 'assistant', 'chief-of-staff', 'operator', 'researcher', 'writer'].map((slug) => [slug, undefined]),
  )
})

describe.each(shipped)('$slug', ({ slug, template, files }) => {
  it('says what it can be asked for, so that work finds it', () => {
    expect(template?.domains.length).toBeGreaterThanOrEqual(3)
    expect(template?.capabilities.length).toBeGreaterThanOrEqual(3)
    expect(template?.description.length).toBeGreaterThan(40)
    expect(template?.emoji).not.toBe('')
  })

  it('has an identity and a soul with all their sections', () => {
    expect(headings(text(files?.get('IDENTITY.md')))).toEqual([
      'Name',
      'Role',
      'One-Line Identity',
      'Archetype',
      'Presence',
      'Vibe',
      'Emoji',
      'Creature',
      'Why this fits',
    ])
    expect(headings(text(files?.get('SOUL.md')))).toEqual(
      expect.arrayContaining([
        'Core Truths',
        'Your Job',
        'What You Do Not Do',
        'How You Think',
        'Tone',
        'Failure Modes to Avoid',
        'Standard of Excellence',
      ]),
    )
  })

  it('leaves no placeholder once it is filled in', () => {
    const filled = fillTemplate(files ?? new Map(), profile({ template: slug }))
    for (const [path, content] of filled)
      expect({ path, left: text(content).match(/\w+_HERE\b/g) }).toEqual({ path, left: null })
    expect(text(filled.get('USER.md'))).toContain('Ada Lovelace')
    expect(parseAgentJson(filled.get('agent.json') ?? new Uint8Array()).value).toMatchObject({
      slug: 'wanda',
      emoji: '🦊',
    })
  })

  it('knows the hq command', () => {
    const skill = text(files?.get('skills/hq/SKILL.md'))
    expect(skill).toMatch(/^---\nname: hq\ndescription: .+\n---\n/)
    for (const verb of [
      'my-tasks',
      'task show',
      'task claim',
      'comment',
      'submit-deliverable',
      'task complete',
      'tasks search',
    ]) {
      expect(skill).toContain(`hq ${verb}`)
    }
  })
})

it('differ in their colours', () => {
  const colours = shipped.map(
    ({ files }) => parseAgentJson(files?.get('agent.json') ?? new Uint8Array()).value?.browser_profile_color,
  )
  expect(new Set(colours).size).toBe(6)
})

describe('a section', () => {
  it.each([
    ['## Name\n\nOld\nlines\n\n## Role\n\nX\n', '## Name\n\nNew\n\n## Role\n\nX\n'],
    ['## Role\n\nX\n\n## name\nOld', '## Role\n\nX\n\n## name\n\nNew\n'],
    ['## Role\n\nX\n', '## Role\n\nX\n\n## Name\n\nNew\n'],
    ['', '\n\n## Name\n\nNew\n'],
  ])('of %j is set, and the rest stays', (before, after) => {
    expect(setSection(before, 'Name', 'New')).toBe(after)
  })
})
