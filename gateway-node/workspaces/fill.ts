/**
 * Turns a template's files into one agent's: placeholders, identity, `agent.json`. Pure.
 *
 *  F1 Placeholders are replaced in Markdown files, literally; a value may contain anything.
 *  F2 In IDENTITY.md the text under `## Name` and `## Emoji` becomes the agent's; everything else stays.
 *  F3 `agent.json` keeps the keys that this program doesn't know.
 *  F4 What the owner left empty gets a word a sentence can live with, never an unfilled placeholder.
 */
import type { AgentProfile } from './contract.ts'
import type { Files } from './templates.ts'

const utf8 = new TextDecoder()
const encoder = new TextEncoder()

export function fillTemplate(files: Files, profile: AgentProfile): Map<string, Uint8Array> {
  const values = placeholders(profile)
  const filled = new Map<string, Uint8Array>()
  for (const [path, content] of files) {
    if (path === 'agent.json') filled.set(path, encoder.encode(fillAgentJson(utf8.decode(content), profile)))
    else if (path.endsWith('.md')) {
      const text = replacePlaceholders(utf8.decode(content), values)
      filled.set(path, encoder.encode(path === 'IDENTITY.md' ? fillIdentity(text, profile) : text))
    } else filled.set(path, content)
  }
  return filled
}

function placeholders({ owner, slug, name, team }: AgentProfile): ReadonlyMap<string, string> {
  const ownerName = oneLine(owner.name) || 'the owner'
  return new Map([
    ['USER_NAME_HERE', ownerName],
    ['PREFERRED_NAME_HERE', oneLine(owner.preferredName) || ownerName.split(' ')[0] || ownerName],
    ['TIMEZONE_HERE', oneLine(owner.timezone) || 'UTC'],
    ['AGENT_SLUG_HERE', slug],
    ['AGENT_NAME_HERE', oneLine(name)],
    ['TEAM_HERE', oneLine(team ?? '') || 'general'],
  ])
}

function replacePlaceholders(text: string, values: ReadonlyMap<string, string>): string {
  return text.replaceAll(/\b[A-Z]+(?:_[A-Z]+)*_HERE\b/g, (word) => values.get(word) ?? word)
}

function fillIdentity(text: string, { name, emoji }: AgentProfile): string {
  return setSection(setSection(text, 'Name', oneLine(name)), 'Emoji', oneLine(emoji))
}

/** Replaces what stands under `## heading` up to the next heading; adds the section when there is none. */
export function setSection(markdown: string, heading: string, value: string): string {
  if (value === '') return markdown
  const lines = markdown.split('\n')
  const start = lines.findIndex((line) => line.trim().toLowerCase() === `## ${heading.toLowerCase()}`)
  if (start < 0) return `${markdown.trimEnd()}\n\n## ${heading}\n\n${value}\n`
  let end = lines.findIndex((line, index) => index > start && /^#{1,6}\s/.test(line))
  if (end < 0) end = lines.length
  const rest = lines.slice(end)
  return [...lines.slice(0, start + 1), '', value, '', ...rest].join('\n')
}

function fillAgentJson(text: string, profile: AgentProfile): string {
  const json: Record<string, unknown> = JSON.parse(text)
  const { slug, name, description, emoji, team, domains, capabilities } = profile
  const own = {
    slug,
    name,
    ...(description ? { description } : {}),
    ...(emoji ? { emoji } : {}),
    ...(team ? { team } : {}),
    ...(domains.length > 0 ? { domains } : {}),
    ...(capabilities.length > 0 ? { capabilities } : {}),
    template: profile.template,
    agent_id: profile.agentId,
  }
  return `${JSON.stringify({ ...json, ...own }, null, 2)}\n`
}

/** Names come from people: a line break in one would break the Markdown around it. */
const oneLine = (text: string): string => text.replaceAll(/\s+/g, ' ').trim()
