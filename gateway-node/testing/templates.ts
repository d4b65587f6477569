/** Small templates and a profile for tests. */
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { AgentProfile } from '../workspaces/contract.ts'

export async function writeFiles(root: string, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
}

export const agentJson = (slug: string, more: Record<string, unknown> = {}): string =>
  JSON.stringify({
    slug,
    name: slug,
    description: `A ${slug}`,
    emoji: '✍️',
    team: 'content',
    domains: ['writing'],
    capabilities: ['drafting'],
    browser_profile_color: '#4F7CFF',
    keep_me: 7,
    ...more,
  })

/** `writer` and `analyst` over `_shared`. */
export const smallTemplates = (): Record<string, string> => ({
  '_shared/AGENTS.md': '# How to work\n\nI am AGENT_SLUG_HERE.\n',
  '_shared/USER.md': '# Owner\n\nUSER_NAME_HERE, called PREFERRED_NAME_HERE, lives in TIMEZONE_HERE.\n',
  '_shared/skills/hq/SKILL.md': '---\nname: hq\n---\n',
  'writer/agent.json': agentJson('writer'),
  'writer/IDENTITY.md': '# Identity\n\n## Name\n\nWriter\n\n## Role\n\nWrites.\n\n## Emoji\n\n✍️\n\n## Vibe\n\nCalm.\n',
  'writer/SOUL.md': '# Soul\n\nBe clear.\n',
  'analyst/agent.json': agentJson('analyst'),
  'analyst/IDENTITY.md': '# Identity\n\n## Name\n\nAnalyst\n',
  'analyst/SOUL.md': '# Soul\n\nBe exact.\n',
  'analyst/AGENTS.md': '# How an analyst works\n',
})

export const profile = (more: Partial<AgentProfile> = {}): AgentProfile => ({
  agentId: '0199aaaa-0000-7000-8000-000000000001',
  slug: 'wanda',
  name: 'Wanda',
  description: 'Writes the newsletter',
  emoji: '🦊',
  team: 'content',
  workspaceSlug: 'acme',
  template: 'writer',
  owner: { name: 'Ada Lovelace', preferredName: 'Ada', timezone: 'Europe/London' },
  domains: [],
  capabilities: [],
  ...more,
})
