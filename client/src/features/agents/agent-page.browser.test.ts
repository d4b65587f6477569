/** An agent's own page, with a real gateway behind it: its tabs by keyboard, who it is and how that is changed, its runs and what they took. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { picture, seriousFindings } from '../../../../tests/support/axe.ts'
import { type Device, hasChromium, openDevice, signIn } from '../../../../tests/support/browser.ts'
import { type Gateway, provision, type System, startSystem, taskPatch } from '../../../../tests/support/system.ts'

const SETTLED = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
  Promise.allSettled(document.getAnimations().map((each) => each.finished)).then(() => requestAnimationFrame(done)))))`

describe.skipIf(!hasChromium)('the page of an agent', () => {
  let system: System
  let gateway: Gateway
  let device: Device
  let agent: string

  beforeAll(async () => {
    system = await startSystem({ browser: true })
    gateway = await system.gateway('shed')
    agent = await provision(system, gateway, 'wanda')
    device = await openDevice(system.server)
    await signIn(device.page, system.server)
    await system.writer().apply([taskPatch(system, 'Write it down', agent)])
    await system.when(
      'its run ended',
      async () => (await system.rows("select 1 from agent_runs where status = 'done'"))[0],
    )
  })
  afterAll(async () => {
    await device?.close()
    await system?.stop()
  })

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
        // A colour that just changes is looked at again.
        await expect.poll(() => seriousFindings(page), { timeout: 15_000 }).toEqual([])
        await picture(page, `${name}-${width}-${colorScheme}`)
      }
      const wider = `[document.documentElement, ...document.querySelectorAll('main')].filter((each) => each.scrollWidth > each.clientWidth).length`
      expect(await page.evaluate(wider)).toBe(0)
    }
    await page.emulateMedia({ colorScheme: 'light' })
    await page.setViewportSize({ width: 1440, height: 900 })
  }
  const soul = (): string => join(gateway.home, 'agents', 'wanda', 'SOUL.md')

  test('all tabs by keyboard; each has something to say', async () => {
    const { page } = device
    await page.goto(`${system.server.url}/agents/wanda`)
    await page.getByText('Why it wakes').waitFor()
    await inspect('agent-overview')
    await page.getByRole('tab', { name: 'Overview' }).focus()
    for (const [tab, seen] of [
      ['Personality', 'SOUL.md'],
      ['Files', 'AGENTS.md'],
      ['Secrets', 'No secret yet'],
      ['Runs', 'Written by the demo model'],
      ['Permissions', 'Run commands'],
      ['Activity', 'created the agent “Wanda”'],
      ['Commands', 'Done'],
    ] as const) {
      await page.keyboard.press('ArrowRight')
      await page.getByRole('tab', { name: tab, selected: true }).waitFor()
      await page.getByRole('tabpanel', { name: tab }).getByText(seen).first().waitFor()
      await inspect(`agent-${tab.toLowerCase()}`)
      await page.getByRole('tab', { name: tab }).focus()
    }
  })

  test('who it is: changed here, committed by its gateway; another change in between is no loss', async () => {
    const { page } = device
    await page.goto(`${system.server.url}/agents/wanda?tab=personality`)
    const part = page.getByRole('region', { name: 'Soul', exact: true })
    const write = async (text: string) => {
      await part.getByRole('textbox', { name: 'Soul' }).fill(text)
      await part.getByRole('button', { name: 'Save' }).click()
    }
    await part.getByRole('button', { name: 'Edit Soul' }).click()
    await write('# Soul\n\nCalm and *exact*.')
    await part.getByText('Calm and').waitFor()
    await system.when('its gateway wrote it', async () => (await readFile(soul(), 'utf8')).includes('Calm and *exact*'))
    await part.getByText('Being saved').waitFor({ state: 'hidden' })

    await part.getByRole('button', { name: 'Edit Soul' }).click()
    // The agent changes it while the person types.
    await writeFile(soul(), '# Soul\n\nBold.\n')
    await write('# Soul\n\nCalm, exact and kind.')
    await part.getByText('A change was not saved').waitFor({ timeout: 60_000 })
    expect(await readFile(soul(), 'utf8')).toContain('Bold.')
    await inspect('agent-personality-conflict')
    await part.getByText('Bold.').waitFor()
    await part.getByRole('button', { name: 'Go on with it' }).click()
    expect(await part.getByRole('textbox', { name: 'Soul' }).inputValue()).toContain('exact and kind')
    await write('# Soul\n\nBold, exact and kind.')
    await system.when('its gateway wrote that', async () =>
      (await readFile(soul(), 'utf8')).includes('Bold, exact and kind.'),
    )
    await part.getByText('A change was not saved').waitFor({ state: 'hidden' })
  })

  test('a phone that opens the last tab shows which one that is', async () => {
    const { page } = device
    await page.setViewportSize({ width: 390, height: 844 })
    await page.goto(`${system.server.url}/agents/wanda?tab=commands`)
    const tab = page.getByRole('tab', { name: 'Commands', selected: true })
    await tab.waitFor()
    await expect
      .poll(async () => {
        const box = await tab.boundingBox()
        return box !== null && box.x >= 0 && box.x + box.width <= 390
      })
      .toBe(true)
    await page.setViewportSize({ width: 1440, height: 900 })
  })

  test('what it thinks with is chosen in place', async () => {
    const { page } = device
    await page.goto(`${system.server.url}/agents/wanda`)
    await page.getByRole('combobox', { name: 'Thinking' }).click()
    await page.getByRole('option', { name: 'High' }).click()
    await system.rowWhen('agents', agent, (row) => row['thinking'] === 'high')
  })
})
