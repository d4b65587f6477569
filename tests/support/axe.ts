/** axe-core in a page: what a person with a screen reader, a keyboard or weak eyes would stumble over. */
import { mkdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { call, within } from './browser.ts'

const ARTIFACTS = join(import.meta.dirname, '../.artifacts')
const source = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')

/** Serious and critical findings, one line each: rule, what it means, where. */
export async function seriousFindings(page: Page): Promise<string[]> {
  await page.evaluate(`window.axe ? undefined : (() => { ${source} })()`)
  const found = await within(60_000, 'axe looks at the page', call(page, RUN))
  return found as string[]
}

const RUN = `async () => {
  const { violations } = await window.axe.run(document, { resultTypes: ['violations'] })
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .flatMap(({ id, help, nodes }) => nodes.map((node) => id + ': ' + help + ' — ' + node.target.join(' ') + ' ' + node.html.slice(0, 160)
      + ' ' + (node.any[0]?.message ?? '')))
}`

/** For a person to look at: `tests/.artifacts/<name>.png`. */
export async function picture(page: Page, name: string): Promise<void> {
  await mkdir(ARTIFACTS, { recursive: true })
  await page.screenshot({ path: join(ARTIFACTS, `${name}.png`) })
}
