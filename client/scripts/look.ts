/**
 * Photographs screens and runs axe over them.
 *
 *   node client/scripts/look.ts [--base URL | --dist DIR] [--out DIR] [--name PREFIX] [--state FILE] [--no-axe] [--full] PATH…
 *
 * Each path is opened at 1440×900, 1024×768 and 390×844 (touch), light and dark; the pictures go to
 * tests/.artifacts/look (or --out). Without --base the built app (client/dist/client) is served for the time of the
 * run. --state is a Playwright storage state (signed-in cookies). --full photographs the whole page. Exits 1 on a
 * serious or critical axe finding, or when a page logged an error.
 */
import { createReadStream, existsSync } from 'node:fs'
import { mkdir, readFile, stat } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { extname, join, normalize } from 'node:path'
import { parseArgs } from 'node:util'
import type axe from 'axe-core'
import { chromium, type Page } from 'playwright-core'

export const CHROMIUM_ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]

const SIZES = [
  { name: '1440', width: 1440, height: 900, touch: false },
  { name: '1024', width: 1024, height: 768, touch: false },
  { name: '390', width: 390, height: 844, touch: true },
]
const TYPES: Record<string, string> = {
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.woff2': 'font/woff2',
  '.wasm': 'application/wasm',
  '.webmanifest': 'application/manifest+json',
}

/** Serves a built client, every other address answered by the shell. For pictures only; the app's server is sync-server. */
export async function serveBuild(root: string): Promise<{ base: string; close: () => void }> {
  const server = createServer((request, response) => {
    void (async () => {
      const path = normalize(decodeURIComponent(new URL(request.url ?? '/', 'http://x').pathname))
      const wanted = join(root, path)
      const found =
        wanted.startsWith(root) &&
        (await stat(wanted).then(
          (s) => s.isFile(),
          () => false,
        ))
      const file = found ? wanted : join(root, '_shell.html')
      response.setHeader('content-type', TYPES[extname(file)] ?? 'application/octet-stream')
      createReadStream(file)
        .on('error', () => {
          if (!response.headersSent) response.statusCode = 500
          response.end('gone while it was read: is another build running?')
        })
        .pipe(response)
    })()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() }
}

/** The serious and critical findings on a page, one line each. */
export async function axeFindings(page: Page): Promise<string[]> {
  const source = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
  await page.evaluate(source)
  const results = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as axe.AxeResults
  return results.violations
    .filter((v) => v.impact === 'serious' || v.impact === 'critical')
    .flatMap((v) =>
      v.nodes.map(
        (node) => `${v.id}: ${node.target.join(' ')} — ${node.failureSummary?.split('\n')[1]?.trim() ?? v.help}`,
      ),
    )
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      base: { type: 'string' },
      dist: { type: 'string', default: join(import.meta.dirname, '../dist/client') },
      out: { type: 'string', default: join(import.meta.dirname, '../../tests/.artifacts/look') },
      name: { type: 'string', default: '' },
      state: { type: 'string' },
      'no-axe': { type: 'boolean', default: false },
      full: { type: 'boolean', default: false },
    },
  })
  const paths = positionals.length > 0 ? positionals : ['/dev/ui', '/dev/shell']
  if (!values.base && !existsSync(join(values.dist, '_shell.html'))) {
    console.error('There is no build to look at. Run `node client/scripts/build.ts` first, or give --base.')
    return 1
  }
  await mkdir(values.out, { recursive: true })
  const served = values.base ? null : await serveBuild(values.dist)
  const base = values.base ?? served?.base ?? ''
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: CHROMIUM_ARGS,
  })
  let bad = 0
  try {
    for (const size of SIZES) {
      for (const colorScheme of ['light', 'dark'] as const) {
        const context = await browser.newContext({
          viewport: { width: size.width, height: size.height },
          hasTouch: size.touch,
          isMobile: size.touch,
          colorScheme,
          reducedMotion: 'reduce',
          ...(values.state ? { storageState: values.state } : {}),
        })
        // What is looked at is the page, not its offline copy.
        await context.addInitScript('delete Navigator.prototype.serviceWorker')
        const page = await context.newPage()
        page.on('console', (message) => {
          if (message.type() !== 'error') return
          bad++
          console.error(`${size.name} ${colorScheme} console: ${message.text()}`)
        })
        page.on('pageerror', (error) => {
          bad++
          console.error(`${size.name} ${colorScheme} error: ${error.message}`)
        })
        for (const path of paths) {
          await page.goto(base + path, { waitUntil: 'networkidle' })
          await page.evaluate('document.fonts.ready')
          const name = `${values.name}${path.replace(/[^a-z0-9]+/gi, '-').replace(/^-|-$/g, '') || 'root'}-${size.name}-${colorScheme}.png`
          await page.screenshot({ path: join(values.out, name), fullPage: values.full })
          if (values['no-axe']) continue
          const findings = await axeFindings(page)
          bad += findings.length
          for (const finding of findings) console.error(`${path} ${size.name} ${colorScheme} axe ${finding}`)
        }
        await context.close()
      }
    }
  } finally {
    await browser.close()
    served?.close()
  }
  console.log(`${paths.length * SIZES.length * 2} pictures in ${values.out}; ${bad} findings`)
  return bad === 0 ? 0 : 1
}

if (import.meta.main) process.exitCode = await main()
