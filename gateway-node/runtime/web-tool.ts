/**
 * `web_fetch`: an agent reads a page of the internet, as text. Only where the gateway's owner has switched it on (`HQ_AGENT_WEB=on`): what an agent knows
 * could leave in an address. Where a request may go is decided by `net/guarded-fetch.ts`.
 *
 * What comes back was written by others, and is marked as that (prompt.ts, P2).
 */
import { convert } from 'html-to-text'
import { z } from 'zod'
import type { FetchedPage, GuardedFetch } from '../net/guarded-fetch.ts'
import type { AgentTool } from './runtime.ts'

/** Characters of text. */
const PAGE_CHARS = 20_000
const HTML = /^(?:text\/html|application\/xhtml\+xml)\b/i

const input = z.object({ url: z.string().max(2_000).describe('Address, beginning with https:// or http://') })

export const webTool = (fetch: GuardedFetch): AgentTool<typeof input> => ({
  name: 'web_fetch',
  description: 'Reads a public page of the internet as text. It cannot sign in, and cannot reach private networks.',
  input,
  async run(value) {
    const { url } = input.parse(value)
    const result = await fetch(url)
    if (!result.ok) return { ok: false, text: `Not read: ${result.message}` }
    const { page } = result
    const text = textOf(page)
    const cut = text.length > PAGE_CHARS || page.truncated
    const said = page.status >= 400 ? `The server answers with an error (${page.status}). ` : ''
    const body = text.slice(0, PAGE_CHARS).replaceAll(/<(\/?)material/gi, '&lt;$1material')
    return {
      ok: page.status < 400,
      text: `${said}${page.url}${cut ? ` (the first ${PAGE_CHARS} characters)` : ''}\n<material>\n${body}\n</material>`,
    }
  },
})

function textOf({ contentType, text }: FetchedPage): string {
  if (!HTML.test(contentType)) return text
  return convert(text, {
    wordwrap: false,
    selectors: [
      { selector: 'img', format: 'skip' },
      { selector: 'nav', format: 'skip' },
      { selector: 'a', options: { hideLinkHrefIfSameAsText: true } },
    ],
  }).trim()
}
