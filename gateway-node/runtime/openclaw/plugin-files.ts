/** The plugin as it lies in the gateway's folder: the code of `plugin/`, and the list of HQ's tools, made from the tools themselves. */
import { copyFile, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { AgentTool } from '../runtime.ts'
import { PLUGIN_ID } from './config.ts'
import { TOOL_PREFIX } from './turn.ts'

/** OpenClaw has tools of its own for these. */
const ITS_OWN = new Set(['list_files', 'read_file', 'write_file', 'exec'])

export type ToolFacts = Pick<AgentTool, 'name' | 'description' | 'input'>

export const pluginTools = (tools: readonly ToolFacts[]): readonly ToolFacts[] =>
  tools.filter(({ name }) => !ITS_OWN.has(name))

export async function writePlugin(folder: string, tools: readonly ToolFacts[]): Promise<void> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const source = join(import.meta.dirname, 'plugin')
  for (const file of ['package.json', 'index.mjs']) await copyFile(join(source, file), join(folder, file))
  const described = pluginTools(tools).map(({ name, description, input }) => ({
    name: TOOL_PREFIX + name,
    description,
    parameters: z.toJSONSchema(input, { io: 'input' }),
  }))
  await writeFile(join(folder, 'tools.json'), JSON.stringify({ tools: described }))
  const manifest = {
    id: PLUGIN_ID,
    name: 'HQ',
    description: 'Tasks, deliverables and limits of HQ',
    contracts: { tools: described.map(({ name }) => name) },
    activation: { onStartup: true },
    configSchema: { type: 'object', additionalProperties: false },
  }
  await writeFile(join(folder, 'openclaw.plugin.json'), JSON.stringify(manifest))
}
