/**
 * HQ inside OpenClaw: HQ's tools, its context, its accounts and its brakes. It decides nothing; it asks the gateway that supervises this process
 * (`../bridge.ts`) over the loopback, and where no answer comes it says no.
 *
 *  L1 Only sessions of a run that the gateway has begun (`HQ` knows the session key) get tools, context and permission; all others are blocked.
 *  L2 Usage is told once per model call, in order, and before the next one may begin.
 *  L3 The token of the bridge is taken out of the environment at the first load, so that no command an agent runs inherits it.
 */
import { readFileSync } from 'node:fs'
import { definePluginEntry } from 'openclaw/plugin-sdk/plugin-entry'

const { tools } = JSON.parse(readFileSync(new URL('./tools.json', import.meta.url), 'utf8'))

// A reload registers anew in the same process (L3).
const KEY = Symbol.for('hq.bridge')
globalThis[KEY] ??= { url: process.env.HQ_BRIDGE_URL, token: process.env.HQ_BRIDGE_TOKEN, told: Promise.resolve() }
delete process.env.HQ_BRIDGE_TOKEN
const bridge = globalThis[KEY]

async function ask(what, body, signal = AbortSignal.timeout(10_000)) {
  const response = await fetch(`${bridge.url}/${what}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bridge.token}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal,
  })
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.message ?? `HQ answered ${response.status}.`)
  return answer
}

const WHERE = (context) => ({ sessionKey: context?.sessionKey ?? null, agentId: context?.agentId ?? null })
const GONE = 'HQ’s gateway can’t be asked just now, so this was not done.'

export default definePluginEntry({
  id: 'hq',
  name: 'HQ',
  description: 'Tasks, deliverables and limits of HQ',
  register(api) {
    for (const { name, description, parameters } of tools) {
      api.registerTool(
        (context) => ({
          name,
          label: name,
          description,
          parameters,
          async execute(id, params, signal) {
            const answer = await ask(
              'tool',
              { ...WHERE(context), call: id, tool: name, input: params },
              // As long as a person may take to allow it.
              signal ?? AbortSignal.timeout(3_600_000),
            ).catch((error) => ({ ok: false, text: `${GONE} (${error.message})` }))
            return { content: [{ type: 'text', text: answer.text }], details: { ok: answer.ok }, isError: !answer.ok }
          },
        }),
        { name },
      )
    }

    api.on('before_prompt_build', async (_event, context) => {
      const { system } = await ask('context', WHERE(context))
      return system ? { appendSystemContext: system } : undefined
    })

    api.on('before_agent_run', async (_event, context) => {
      await bridge.told
      const answer = await ask('gate', WHERE(context)).catch(() => ({ stop: GONE }))
      return answer.stop ? { outcome: 'block', reason: answer.stop, message: answer.stop } : undefined
    })

    api.on('before_tool_call', async (event, context) => {
      await bridge.told
      const question = { ...WHERE(context), tool: event.toolName, input: event.params, call: event.toolCallId ?? null }
      // As long as a person may take to allow it.
      const answer = await ask('brake', question, context.abortSignal ?? AbortSignal.timeout(590_000)).catch(() => ({
        stop: GONE,
      }))
      return answer.stop ? { block: true, blockReason: answer.stop } : undefined
    })

    // What this process needs for itself is nothing for a command of an agent.
    api.on('resolve_exec_env', () => ({ OPENCLAW_GATEWAY_TOKEN: '', HQ_OPENCLAW_MODEL_KEY: '' }))

    // Synchronous by contract: what is told goes into a queue that the next brake waits for (L2).
    api.on('before_message_write', (event, context) => {
      const message = event.message
      if (message?.role !== 'assistant' || !message.usage) return
      const { usage, provider, model, stopReason } = message
      const sessionKey = event.sessionKey ?? context?.sessionKey ?? null
      const agentId = event.agentId ?? context?.agentId ?? null
      bridge.told = bridge.told
        .then(() => ask('usage', { sessionKey, agentId, usage, provider, model, stopReason: stopReason ?? null }))
        .then(
          () => undefined,
          (error) => api.logger?.warn?.(`usage could not be told to HQ: ${error.message}`),
        )
    })
  },
})
