/**
 * Keeps a conversation in the form that strict providers accept, and within the model's window. Pure.
 *
 *  M1 Every tool call has exactly one result, directly after the message that made it; missing results are made up as errors, surplus ones dropped.
 *  M2 A tool call without a name or id is dropped; an assistant message that is then empty goes too.
 *  M3 Repair does not touch a conversation that is in order already.
 *  M4 At least `reserveOf(window)` tokens of the window stay free. Old tool results are shortened first, then old texts; the first message (the
 *     task) and the last `KEEP` messages stay whole.
 */
import type { ModelMessage, ToolModelMessage } from 'ai'

type ToolPart = ToolModelMessage['content'][number]

export const RESERVE_FLOOR = 20_000
const KEEP = 4
const SHORT = 200

/** Tokens of the window that stay free: 20,000 (seed 003), but never more than half of a small window. */
export const reserveOf = (window: number): number => Math.min(RESERVE_FLOOR, Math.floor(window / 2))

/** M1–M3. */
export function repair(messages: readonly ModelMessage[]): ModelMessage[] {
  const results = new Map<string, ToolPart>()
  for (const message of messages) {
    if (message.role !== 'tool') continue
    for (const part of message.content)
      if (part.type === 'tool-result' && !results.has(part.toolCallId)) results.set(part.toolCallId, part)
  }
  const repaired: ModelMessage[] = []
  const asked = new Set<string>()
  for (const message of messages) {
    if (message.role === 'tool') continue
    if (message.role !== 'assistant' || typeof message.content === 'string') {
      repaired.push(message)
      continue
    }
    const content = message.content.filter((part) => {
      if (part.type === 'tool-result') return false
      if (part.type !== 'tool-call') return true
      if (!part.toolCallId || !part.toolName || part.input === undefined || asked.has(part.toolCallId)) return false
      asked.add(part.toolCallId)
      return true
    })
    if (content.length === 0) continue
    repaired.push({ ...message, content })
    const calls = content.filter((part) => part.type === 'tool-call')
    if (calls.length === 0) continue
    repaired.push({
      role: 'tool',
      content: calls.map(
        (call): ToolPart =>
          results.get(call.toolCallId) ?? {
            type: 'tool-result',
            toolCallId: call.toolCallId,
            toolName: call.toolName,
            output: { type: 'error-text', value: 'This tool did not answer.' },
          },
      ),
    })
  }
  return repaired
}

/** About four characters a token; rather too many than too few. */
export const estimateTokens = (value: unknown): number =>
  Math.ceil((typeof value === 'string' ? value : JSON.stringify(value)).length / 3.6)

/** M4. `fixed`: tokens of instructions and tools. `shortened`: how many messages had to be shortened. */
export function fit(
  messages: readonly ModelMessage[],
  window: number,
  fixed: number,
): { messages: ModelMessage[]; shortened: number } {
  const room = window - reserveOf(window) - fixed
  const result = [...messages]
  let used = result.reduce((sum, message) => sum + estimateTokens(message), 0)
  let shortened = 0
  for (const shorten of [shortenResults, shortenTexts]) {
    for (let index = 1; index < result.length - KEEP && used > room; index += 1) {
      const message = result[index]
      if (!message) continue
      const shorter = shorten(message)
      if (shorter === message) continue
      used += estimateTokens(shorter) - estimateTokens(message)
      result[index] = shorter
      shortened += 1
    }
  }
  return { messages: result, shortened }
}

const brief = (text: string): string =>
  text.length <= SHORT ? text : `${text.slice(0, SHORT)}… (shortened; call the tool again if you need it)`

function shortenResults(message: ModelMessage): ModelMessage {
  if (message.role !== 'tool') return message
  let changed = false
  const content = message.content.map((part): ToolPart => {
    if (part.type !== 'tool-result' || part.output.type !== 'text' || part.output.value.length <= SHORT + 60)
      return part
    changed = true
    return { ...part, output: { type: 'text', value: brief(part.output.value) } }
  })
  return changed ? { ...message, content } : message
}

function shortenTexts(message: ModelMessage): ModelMessage {
  if (message.role !== 'assistant' || typeof message.content === 'string') return message
  let changed = false
  const content = message.content.flatMap((part) => {
    if (part.type === 'reasoning') {
      changed = true
      return []
    }
    if (part.type !== 'text' || part.text.length <= SHORT + 60) return [part]
    changed = true
    return [{ ...part, text: brief(part.text) }]
  })
  return changed && content.length > 0 ? { ...message, content } : message
}
