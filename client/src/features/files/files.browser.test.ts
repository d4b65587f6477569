/** An agent's files in the browser, with a real gateway behind it: edited, while it is away too; a conflict merged; an old version restored. */
import { execFileSync } from 'node:child_process'
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { picture, seriousFindings } from '../../../../tests/support/axe.ts'
import { type Device, hasChromium, openDevice, signIn } from '../../../../tests/support/browser.ts'
import { type Gateway, provision, type System, startSystem } from '../../../../tests/support/system.ts'

const SETTLED = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
  Promise.allSettled(document.getAnimations().map((each) => each.finished)).then(() => requestAnimationFrame(done)))))`
const SLOW = 60_000

describe.skipIf(!hasChromium)('files of an agent', () => {
  let system: System
  let gateway: Gateway
  let device: Device
  let folder: string

  beforeAll(async () => {
    system = await startSystem({ browser: true })
    gateway = await system.gateway('shed')
    await provision(system, gateway, 'wanda')
    folder = join(gateway.home, 'agents/wanda')
    device = await openDevice(system.server)
    await signIn(device.page, system.server)
  })
  // Each test begins with a page of its own: a draft that one has left is not the next one's.
  beforeEach(() => device.page.goto(`${system.server.url}/agents/wanda?tab=files`))
  afterAll(async () => {
    await device?.close()
    await system?.stop()
  })

  const git = (...args: string[]): string =>
    execFileSync('git', args, { cwd: folder, encoding: 'utf8', env: { PATH: process.env['PATH'], HOME: folder } })
  const button = (name: string | RegExp) => device.page.getByRole('button', { name, exact: true })
  const soul = (): Promise<string> => readFile(join(folder, 'SOUL.md'), 'utf8')
  const editor = (name = 'SOUL.md') => device.page.getByRole('textbox', { name, exact: true })
  /** Puts a text in the place of the whole one. */
  async function type(text: string, name?: string): Promise<void> {
    await editor(name).click()
    await device.page.keyboard.press('ControlOrMeta+a')
    await device.page.keyboard.insertText(text)
  }
  const open = (path = 'SOUL.md'): Promise<void> =>
    device.page.getByRole('list', { name: 'Files' }).getByRole('button').filter({ hasText: path }).click()
  /** The file is written before it is committed, and the page may be a moment behind both. */
  const committed = (subject: RegExp): Promise<unknown> =>
    system.when(`${subject} is the last commit`, async () => subject.test(git('log', '-1', '--format=%an: %s')))
  const saved = (): Promise<void> => device.page.getByText('Saved. Last change').waitFor({ timeout: SLOW })

  async function inspect(name: string): Promise<void> {
    const { page } = device
    for (const [width, height] of [
      [1440, 900],
      [390, 844],
    ] as const) {
      await page.setViewportSize({ width, height })
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        await page.evaluate(SETTLED)
        await expect.poll(() => seriousFindings(page), { timeout: 15_000 }).toEqual([])
        await picture(page, `${name}-${width}-${colorScheme}`)
      }
      expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
    }
    await page.emulateMedia({ colorScheme: 'light' })
    await page.setViewportSize({ width: 1280, height: 800 })
  }

  test('an edit is a commit under the name of who made it', async () => {
    const { page } = device
    // Another text each time: a second try must change something too.
    const text = `# Soul\n\nBe brief. ${Date.now()}\n`
    await open()
    await button('Edit').click()
    await type(text)
    await button('Changes').click()
    await page.getByRole('region', { name: 'Changes in SOUL.md', exact: true }).getByText('Be brief.').waitFor()
    await button('Edit').click()
    await editor().waitFor()
    await inspect('files-editor')
    await button('Save').click()
    await system.when('the gateway has written it', async () => (await soul()) === text)
    await committed(/^Olga Owner: Edit SOUL\.md\n$/)
    await saved()
    expect(git('status', '--porcelain')).toBe('')
  })

  test('without the gateway it waits, says so, can be changed again, and all of it arrives in order', async () => {
    const { page } = device
    await gateway.end()
    await open()
    for (const text of ['First.\n', 'Second.\n']) {
      await button('Edit').click()
      await type(text)
      await page.keyboard.press('ControlOrMeta+s')
      await page.getByText('Waits to be saved').waitFor()
      await page.getByRole('region', { name: 'SOUL.md', exact: true }).getByText(text.trim()).waitFor()
    }
    await button('New file').click()
    await page.getByLabel('Path').fill('../x.md')
    await button('Create').click()
    await page.getByText('Use a path inside the workspace').waitFor()
    await page.getByLabel('Path').fill('notes/plan.md')
    await button('Create').click()
    await type('A plan.\n', 'notes/plan.md')
    await button('Save').click()
    await page.getByText('for gateway “shed”, since').waitFor()
    await inspect('files-waiting')
    await gateway.start()
    await open('notes/plan.md')
    await saved()
    await open()
    await saved()
    expect(await soul()).toBe('Second.\n')
    expect(git('log', '-3', '--format=%an: %s').trim().split('\n')).toEqual([
      'Olga Owner: Edit notes/plan.md',
      'Olga Owner: Edit SOUL.md',
      'Olga Owner: Edit SOUL.md',
    ])
  })

  test('a conflict is shown with both sides, and nothing is lost', async () => {
    const { page } = device
    for (const way of ['Take theirs', 'Keep mine', 'Save the merged text'] as const) {
      await gateway.end()
      await open()
      await button('Edit').click()
      await type(`Mine, ${way}.\n`)
      await button('Save').click()
      await page.getByText('Waits to be saved').waitFor()
      await writeFile(join(folder, 'SOUL.md'), `Theirs, ${way}.\n`)
      await gateway.start()
      await page.getByText('SOUL.md has changed in the meantime').waitFor({ timeout: SLOW })
      await page.getByText(`Theirs, ${way}.`).first().waitFor()
      if (way === 'Take theirs') await inspect('files-conflict')
      if (way === 'Save the merged text') await type('Both.\n', 'SOUL.md, merged')
      expect(await soul()).toBe(`Theirs, ${way}.\n`)
      await button(way).click()
      await saved()
      const end = way === 'Take theirs' ? `Theirs, ${way}.\n` : way === 'Keep mine' ? `Mine, ${way}.\n` : 'Both.\n'
      await system.when(`${way} has come about`, async () => (await soul()) === end)
    }
  })

  test('the template is upgraded; what both have changed is decided first', async () => {
    const { page } = device
    const templates = join(gateway.home, '../templates')
    await cp(join(import.meta.dirname, '../../../../templates'), templates, { recursive: true })
    await writeFile(join(templates, 'writer/SOUL.md'), 'A new soul from the template.\n')
    await writeFile(join(templates, 'writer/NEWS.md'), 'New.\n')
    await gateway.end()
    await gateway.start({ HQ_TEMPLATES: templates })
    const before = await soul()
    await button('Upgrade from template').click()
    await page.getByText('The template and the agent differ').waitFor({ timeout: SLOW })
    await button('Decide').click()
    expect(await button('Upgrade so').isDisabled()).toBe(true)
    await page.getByLabel('Take the template’s (green)').check()
    await inspect('files-upgrade')
    expect(await soul()).toBe(before)
    await button('Upgrade so').click()
    await page.getByText(/^Upgraded \d+ files/).waitFor({ timeout: SLOW })
    expect(await soul()).toBe('A new soul from the template.\n')
    await open('NEWS.md')
    await button('Upgrade from template').click()
    await page.getByText('As new as its template').waitFor({ timeout: SLOW })
    expect(git('status', '--porcelain')).toBe('')
  })

  test('an earlier version is compared and restored', async () => {
    const { page } = device
    await open()
    await button('Versions').click()
    const versions = page.getByRole('list', { name: 'Versions' }).getByRole('button')
    await versions.first().waitFor({ timeout: SLOW })
    await versions.filter({ hasText: 'Add template' }).click()
    await page.getByRole('region', { name: 'Changes in SOUL.md', exact: true }).waitFor({ timeout: SLOW })
    await inspect('files-versions')
    await button('Restore this version').click()
    await system.when('the first version is back', async () => (await soul()).startsWith('#'))
    await committed(/^Olga Owner: Restore SOUL\.md from [0-9a-f]{10}\n$/)
    await saved()
    expect(git('fsck', '--strict', '--no-dangling')).toBe('')
    expect(device.problems.filter((problem) => !/WebSocket|ERR_/.test(problem))).toEqual([])
  })
})
