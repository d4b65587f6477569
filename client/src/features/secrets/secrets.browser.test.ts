/** Secrets and model connections as a person sets them: a real browser, a real server, a real gateway, a provider on the loopback. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Loopback, startLoopback } from '../../../../gateway-node/runtime/builtin/loopback-provider.ts'
import { readEnvFile } from '../../../../gateway-node/secrets/env-file.ts'
import { picture, seriousFindings } from '../../../../tests/support/axe.ts'
import { type Device, hasChromium, openDevice, query, signIn } from '../../../../tests/support/browser.ts'
import { type Gateway, provision, type System, startSystem } from '../../../../tests/support/system.ts'

const SETTLED = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
  Promise.allSettled(document.getAnimations().map((each) => each.finished)).then(() => requestAnimationFrame(done)))))`
const FIRST = 'PLAINTEXT-first-value-41c0'
const SECOND = 'PLAINTEXT-second-value-9be7'
const KEY = 'sk-PLAINTEXT-model-key-52dd'

describe.skipIf(!hasChromium)('secrets and models', () => {
  let system: System
  let gateway: Gateway
  let device: Device
  let page: Page
  let provider: Loopback
  /** Whatever left the browser or was logged. */
  const said: string[] = []

  beforeAll(async () => {
    provider = await startLoopback('openai')
    system = await startSystem({ browser: true })
    gateway = await system.gateway('shed')
    await provision(system, gateway, 'wanda')
    device = await openDevice(system.server)
    page = device.page
    page.on('console', (message) => said.push(message.text()))
    page.on('request', (request) => said.push(`${request.url()} ${request.postData() ?? ''}`))
    page.on('websocket', (socket) => socket.on('framesent', ({ payload }) => said.push(String(payload))))
    await signIn(page, system.server)
  })
  afterAll(async () => {
    await device?.close()
    await system?.stop()
    await provider?.close()
  })

  async function inspect(name: string): Promise<void> {
    for (const [width, height] of [
      [1280, 800],
      [390, 844],
    ] as const) {
      await page.setViewportSize({ width, height })
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme })
        await page.evaluate(SETTLED)
        expect(await seriousFindings(page)).toEqual([])
        await picture(page, `${name}-${width}-${colorScheme}`)
      }
      const wider = `[document.documentElement, ...document.querySelectorAll('main, [role=dialog]')].filter((each) => each.scrollWidth > each.clientWidth).length`
      expect(await page.evaluate(wider)).toBe(0)
    }
    await page.emulateMedia({ colorScheme: 'light' })
    await page.setViewportSize({ width: 1280, height: 800 })
  }
  const variable = async (): Promise<string | undefined> =>
    (await readEnvFile(gateway.home, 'wanda')).get('GITHUB_TOKEN')

  test('set, replaced, revoked: the agent’s file follows, and nothing readable leaves the page', async () => {
    await page.goto(`${system.server.url}/secrets`)
    await page.getByText('No secret yet').waitFor()
    await inspect('secrets-empty')
    await page.getByRole('button', { name: 'Add a secret' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByRole('button', { name: 'Add', exact: true }).click()
    await dialog.getByText('Please enter the value.').waitFor()
    await dialog.getByLabel('Variable').fill('LD_PRELOAD')
    await dialog.getByLabel('Value').fill(FIRST)
    await dialog.getByRole('button', { name: 'Add', exact: true }).click()
    await dialog.getByRole('alert').first().waitFor()
    await inspect('secrets-add')
    await dialog.getByLabel('Variable').fill('GITHUB_TOKEN')
    await dialog.getByLabel('Name').fill('GitHub, read only')
    await dialog.getByRole('button', { name: 'Add', exact: true }).click()
    await dialog.waitFor({ state: 'hidden' })
    await page.getByText('In use', { exact: true }).waitFor()
    await system.when('the agent has it', async () => (await variable()) === FIRST)
    await inspect('secrets')

    await page.getByRole('button', { name: 'More about GITHUB_TOKEN' }).click()
    await page.getByRole('menuitem', { name: 'Replace the value…' }).click()
    expect(await dialog.getByLabel('Value').inputValue()).toBe('')
    await dialog.getByLabel('Value').fill(SECOND)
    await dialog.getByRole('button', { name: 'Replace' }).click()
    await page.getByText('value 2').waitFor()
    await system.when('the agent has the new one', async () => (await variable()) === SECOND)

    await page.getByRole('button', { name: 'More about GITHUB_TOKEN' }).click()
    await page.getByRole('menuitem', { name: 'Revoke…' }).click()
    await page.getByRole('button', { name: 'Revoke', exact: true }).click()
    await page.getByText('gone from its gateway').waitFor()
    await system.when('the agent has it no more', async () => (await variable()) === undefined)
    for (const value of [FIRST, SECOND]) expect(said.some((text) => text.includes(value))).toBe(false)
    const kept = await query(page, 'select * from sync.entries')
    expect(JSON.stringify([kept, await query(page, 'select * from secrets')])).not.toContain('PLAINTEXT')
  })

  test('a model is connected, tried, and removed', async () => {
    await page.goto(`${system.server.url}/models`)
    await page.getByText('Agents think with the demo model').waitFor()
    await inspect('models-empty')
    await page.getByRole('button', { name: 'Connect a model' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Provider').click()
    await page.getByRole('option', { name: 'OpenAI, or compatible' }).click()
    await dialog.getByRole('button', { name: 'Connect', exact: true }).click()
    await dialog.getByText('Please name a model').waitFor()
    await dialog.getByLabel('Model').fill('m-1')
    await dialog.getByRole('textbox', { name: /^Key/ }).fill(KEY)
    await dialog.getByRole('textbox', { name: /^Address/ }).fill(provider.url)
    await dialog.getByLabel('Name').fill('Workshop')
    await inspect('models-add')
    await dialog.getByRole('button', { name: 'Connect', exact: true }).click()
    await dialog.waitFor({ state: 'hidden' })
    await page.getByText('Works', { exact: true }).waitFor({ timeout: 60_000 })
    await page.getByText('key on the gateway').waitFor()
    await inspect('models')
    expect(said.some((text) => text.includes(KEY))).toBe(false)
    await page.getByRole('button', { name: 'More about Workshop' }).click()
    await page.getByRole('menuitem', { name: 'Remove…' }).click()
    await page.getByRole('button', { name: 'Remove', exact: true }).click()
    await page.getByText('Agents think with the demo model').waitFor()
  })
})
