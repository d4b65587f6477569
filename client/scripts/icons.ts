/**
 * Draws the PNG icons from `public/icon.svg` with Chromium. Run by hand after changing the SVG:
 * `node client/scripts/icons.ts`. The PNGs are committed.
 */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { chromium } from 'playwright-core'

const folder = join(import.meta.dirname, '../public')
const svg = await readFile(join(folder, 'icon.svg'), 'utf8')

/** A maskable icon bleeds to the edges and keeps its mark (the group `mark`) inside the inner 80 %. */
const maskable = svg.replace(' rx="116"', '').replace('id="mark"', 'id="mark" transform="translate(51 51) scale(.8)"')

const pictures = [
  { name: 'icon-192.png', size: 192, art: svg },
  { name: 'icon-512.png', size: 512, art: svg },
  { name: 'icon-maskable-512.png', size: 512, art: maskable },
]

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking'],
})
try {
  for (const { name, size, art } of pictures) {
    const page = await browser.newPage({ viewport: { width: size, height: size } })
    await page.setContent(`<style>*{margin:0}svg{display:block;width:${size}px;height:${size}px}</style>${art}`)
    await writeFile(join(folder, name), await page.screenshot({ omitBackground: true }))
    await page.close()
  }
} finally {
  await browser.close()
}
