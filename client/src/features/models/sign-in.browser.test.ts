/** Signing in to a model provider as a person does it: a real browser, a real server, a real gateway, a provider on the loopback. */
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type LoopbackOauth, startLoopbackOauth } from '../../../../gateway-node/oauth/loopback-oauth.ts'
import { type Loopback, startLoopback } from '../../../../gateway-node/runtime/builtin/loopback-provider.ts'
import { picture, seriousFindings } from '../../../../tests/support/axe.ts'
import { type Device, hasChromium, openDevice, query, signIn } from '../../../../tests/support/browser.ts'
import { type Gateway, type System, startSystem } from '../../../../tests/support/system.ts'

const SETTLED = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
  Promise.allSettled(document.getAnimations().filter((each) => each.effect?.getComputedTiming().iterations !== Infinity)
    .map((each) => each.finished)).then(() => requestAnimationFrame(done)))))`

describe.skipIf(!hasChromium)('signing in to a model', () => {
  let system: System
  let gateway: Gateway
  let device: Device
  let page: Page
  let provider: Loopback
  let oauth: LoopbackOauth
  /** Whatever left the browser or was logged. */
  const said: string[] = []

  beforeAll(async () => {
    provider = await startLoopback('openai')
    oauth = await startLoopbackOauth()
    system = await startSystem({ browser: true })
    gateway = await system.gateway('shed')
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
    await oauth?.close()
  })

  async function inspect(name: string): Promise<void> {
    for (const [width, height] of [
      [1440, 900],
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
    await page.setViewportSize({ width: 1440, height: 900 })
  }

  const choose = async (label: string, option: string): Promise<void> => {
    await page.getByRole('dialog').getByLabel(label).click()
    await page.getByRole('option', { name: option }).click()
  }

  test('with a browser: the link, where it ends pasted, a wrong one told, signed in; nothing readable leaves the page', async () => {
    await page.goto(`${system.server.url}/models`)
    await page.getByRole('button', { name: 'Connect a model' }).click()
    const dialog = page.getByRole('dialog')
    await choose('Provider', 'OpenAI, or compatible')
    await choose('Access', 'Sign in with a browser (OAuth)')
    await dialog.getByRole('button', { name: 'Connect', exact: true }).click()
    await dialog.getByText('Please give the provider’s token address.').waitFor()
    await dialog.getByLabel('Model').fill('m-1')
    await dialog.getByLabel('Authorize address').fill(oauth.settings.authorize_url)
    await dialog.getByLabel('Token address').fill(oauth.settings.token_url)
    await dialog.getByLabel('Client ID').fill('hq-public')
    await dialog.getByLabel('Scope').fill('models')
    await dialog.getByRole('textbox', { name: /^API address/ }).fill(provider.url)
    await dialog.getByLabel('Name').fill('Workshop')
    await inspect('sign-in-add')
    await dialog.getByRole('button', { name: 'Connect', exact: true }).click()
    await page.getByRole('heading', { name: 'Sign in to Workshop' }).waitFor()
    const link = dialog.getByRole('link', { name: 'Open the provider’s page' })
    await link.waitFor({ timeout: 60_000 })
    const url = (await link.getAttribute('href')) ?? ''
    expect(new URL(url).searchParams.get('code_challenge_method')).toBe('S256')
    const pasted = dialog.getByLabel('Address that the browser ended at')
    await dialog.getByRole('button', { name: 'Sign in' }).click()
    await dialog.getByText('Paste the address that the browser ended at.').waitFor()
    await inspect('sign-in-link')
    const back = await oauth.approve(url)
    await pasted.fill(back.replace(/state=[^&]+/, 'state=of-another'))
    await dialog.getByRole('button', { name: 'Sign in' }).click()
    await dialog.getByText('belongs to another sign-in').waitFor({ timeout: 60_000 })
    await pasted.fill(back)
    await dialog.getByRole('button', { name: 'Sign in' }).click()
    await dialog.getByText('Signed in', { exact: true }).waitFor({ timeout: 60_000 })
    await inspect('sign-in-done')
    await dialog.getByRole('button', { name: 'Close' }).first().click()
    await page.getByText('Works', { exact: true }).waitFor({ timeout: 60_000 })
    const code = new URL(back).searchParams.get('code') ?? ''
    expect(code).not.toBe('')
    expect(said.filter((text) => text.includes(code))).toEqual([])
    for (const table of ['sync.entries', 'agent_commands', 'secrets', 'model_connections'])
      expect(JSON.stringify(await query(page, `select * from ${table}`)), table).not.toContain('SECRET')
  })

  test('with a device code: shown large, refused, begun again, signed in', async () => {
    await page.getByRole('button', { name: 'Connect a model' }).click()
    const dialog = page.getByRole('dialog')
    await choose('Provider', 'OpenAI, or compatible')
    await choose('Access', 'Device code')
    await dialog.getByLabel('Model').fill('m-1')
    await dialog.getByLabel('Device code address').fill(oauth.settings.device_url)
    await dialog.getByLabel('Token address').fill(oauth.settings.token_url)
    await dialog.getByLabel('Client ID').fill('hq-public')
    await dialog.getByRole('textbox', { name: /^API address/ }).fill(provider.url)
    await dialog.getByLabel('Name').fill('Attic')
    await dialog.getByRole('button', { name: 'Connect', exact: true }).click()
    await dialog.getByText('WDJB-MJHT').waitFor({ timeout: 60_000 })
    await dialog.getByText('Waiting for you to enter it there').waitFor()
    await inspect('sign-in-code')
    oauth.decide('deny')
    await dialog.getByText('was refused at the provider').waitFor({ timeout: 60_000 })
    await inspect('sign-in-refused')
    await dialog.getByRole('button', { name: 'Start again' }).click()
    await dialog.getByText('WDJB-MJHT').waitFor({ timeout: 60_000 })
    oauth.decide('approve')
    await dialog.getByText('Signed in', { exact: true }).waitFor({ timeout: 60_000 })
    await dialog.getByRole('button', { name: 'Close' }).first().click()
    await inspect('sign-in-models')
  })

  test('while the gateway is stopped the sign-in waits, and goes on with it', async () => {
    await gateway.end()
    await page.getByRole('button', { name: 'More about Workshop' }).click()
    await page.getByRole('menuitem', { name: 'Sign in with a browser…' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('The gateway asks the provider').or(dialog.getByText('is away')).waitFor()
    await inspect('sign-in-asking')
    await gateway.start()
    await dialog.getByRole('link', { name: 'Open the provider’s page' }).waitFor({ timeout: 60_000 })
  })
})
