/**
 * Templates as folders: reading them, judging them, layering `_shared` under each. Reads the disk, changes nothing.
 *
 *  T1 A template is `agent.json`, `IDENTITY.md`, `SOUL.md` and whatever else lies in its folder; files of `_shared` stand under it, and its own win.
 *  T2 A broken one is reported with a sentence that names file and reason; the others are read all the same (P13).
 *  T3 No link is followed and no file over 1 MiB taken: a template can't carry off what lies beside it.
 */
import { lstat, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Template } from './contract.ts'
import { isCode, safeParts } from './paths.ts'

export const SHARED = '_shared'
const REQUIRED = ['IDENTITY.md', 'SOUL.md']
const MAX_FILE = 1024 * 1024
const MAX_FILES = 500
const TEMPLATE_SLUG = /^[a-z0-9][a-z0-9-]{0,38}[a-z0-9]$/

export type Files = ReadonlyMap<string, Uint8Array>

export interface ReadTemplate {
  readonly slug: string
  readonly template: Template | undefined
  readonly files: Files | undefined
  readonly error: string | undefined
}

export const agentJsonSchema = z.looseObject({
  slug: z.string(),
  name: z.string().trim().min(1).max(80),
  description: z.string().trim().max(500),
  emoji: z.string().max(16).default(''),
  team: z.string().max(40).nullish(),
  domains: z.array(z.string().trim().min(1).max(60)).max(50).default([]),
  capabilities: z.array(z.string().trim().min(1).max(60)).max(50).default([]),
  browser_profile_color: z
    .string()
    .regex(/^#[0-9A-Fa-f]{6}$/, 'must be a colour such as #4F7CFF')
    .optional(),
})

/** All templates of `root`, in the order of their slugs. An absent root is no templates. */
export async function readTemplates(root: string): Promise<ReadTemplate[]> {
  const names = (await readdir(root, { withFileTypes: true }).catch(ignoreMissing)) ?? []
  const shared = await readShared(names.some(({ name }) => name === SHARED) ? join(root, SHARED) : undefined)
  const found: ReadTemplate[] = []
  for (const entry of names.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (!entry.isDirectory() || entry.name === SHARED || entry.name.startsWith('.')) continue
    if (!TEMPLATE_SLUG.test(entry.name)) {
      found.push(broken(entry.name, 'its folder must be named with 2 to 40 of a–z, 0–9 and -'))
    } else if (shared.error !== undefined) {
      found.push(broken(entry.name, `the shared files are broken: ${shared.error}`))
    } else {
      found.push(await readTemplate(join(root, entry.name), entry.name, shared.files))
    }
  }
  return found
}

async function readShared(folder: string | undefined): Promise<{ files: Files; error?: string }> {
  try {
    return { files: folder ? await readFolder(folder) : new Map() }
  } catch (error) {
    return { files: new Map(), error: messageOf(error) }
  }
}

async function readTemplate(folder: string, slug: string, shared: Files): Promise<ReadTemplate> {
  try {
    const files = new Map([...shared, ...(await readFolder(folder))])
    const json = files.get('agent.json')
    if (!json) return broken(slug, 'agent.json is missing')
    const { value, error } = parseAgentJson(json)
    if (!value) return broken(slug, error)
    if (value.slug !== slug) return broken(slug, `agent.json says slug "${value.slug}", but the folder is "${slug}"`)
    for (const name of REQUIRED) if (!files.has(name)) return broken(slug, `${name} is missing`)
    const { name, description, emoji, domains, capabilities } = value
    const template = { slug, name, description, emoji, team: value.team ?? null, domains, capabilities }
    return { slug, template, files, error: undefined }
  } catch (error) {
    return broken(slug, messageOf(error))
  }
}

type Parsed = { value: z.infer<typeof agentJsonSchema>; error?: never } | { value?: never; error: string }

export function parseAgentJson(content: Uint8Array): Parsed {
  let json: unknown
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(content))
  } catch (error) {
    return { error: `agent.json is not JSON: ${messageOf(error)}` }
  }
  const result = agentJsonSchema.safeParse(json)
  if (result.success) return { value: result.data }
  const [issue] = result.error.issues
  return { error: `agent.json: ${issue?.path.join('.') || 'the whole'}: ${issue?.message ?? 'invalid'}` }
}

async function readFolder(root: string): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>()
  async function walk(folder: string, prefix: string): Promise<void> {
    for (const entry of await readdir(folder, { withFileTypes: true })) {
      const path = prefix + entry.name
      if (entry.name === '.DS_Store' || entry.name === '.gitkeep') continue
      if (!safeParts(path)) throw new Error(`the file name "${path}" can't be used`)
      if (entry.isDirectory()) await walk(join(folder, entry.name), `${path}/`)
      else if (!entry.isFile()) throw new Error(`${path} is not a regular file (links are not followed)`)
      else {
        if ((await lstat(join(folder, entry.name))).size > MAX_FILE) throw new Error(`${path} is larger than 1 MiB`)
        files.set(path, await readFile(join(folder, entry.name)))
        if (files.size > MAX_FILES) throw new Error(`there are more than ${MAX_FILES} files`)
      }
    }
  }
  await walk(root, '')
  return files
}

const broken = (slug: string, reason: string): ReadTemplate => ({
  slug,
  template: undefined,
  files: undefined,
  error: `Template '${slug}' is broken: ${reason}.`,
})

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

function ignoreMissing(error: unknown): undefined {
  if (isCode(error, 'ENOENT')) return undefined
  throw error
}
