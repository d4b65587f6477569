/** A gateway's own page, with a real gateway behind it: how it is, what waits and why, when it goes away, a runtime to install. */
import { insert } from '@hq/sync-server/testing/workspace.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { picture, seriousFindings } from '../../../../tests/support/axe.ts'
import { type Device, hasChromium, openDevice, signIn } from '../../../../tests/support/browser.ts'
import {
  commandPatch,
  type Gateway,
  provision,
  type System,
  startSystem,
  taskPatch,
} from '../../../../tests/support/system.ts'

const SETTLED = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
  Promise.allSettled(document.getAnimations().map((each) => each.finished)).then(() => requestAnimationFrame(done)))))`

describe.skipIf(!hasChromium)('the page of a gateway', () => {
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
  })
  afterAll(async () => {
    await device?.close()
    await system?.stop()
  })

  async function inspect(name: string): Promise<void> {
    const { page } = device
    for (const [width, height] of [
      [1280, 900],
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
    await page.setViewportSize({ width: 1280, height: 900 })
  }

  test('from the list to the page: facts, runtimes, agents, commands', async () => {
    const { page } = device
    await page.goto(`${system.server.url}/gateways`)
    await page.getByRole('link', { name: 'shed', exact: true }).click()
    await page.getByRole('heading', { name: 'Runtimes' }).waitFor()
    await page.getByText('Online', { exact: true }).waitFor()
    await page.getByText('not installed (about 650 MB)').waitFor()
    await page.getByRole('button', { name: 'Install OpenClaw' }).waitFor()
    await page.getByRole('link', { name: /Wanda/ }).waitFor()
    await page.getByText('Nothing waits here.').waitFor()
    await page.getByText(process.versions.node).waitFor()
    await inspect('gateway-page')
  })

  test('away: what is asked of it waits, and says why; back: it is done', async () => {
    const { page } = device
    await gateway.kill()
    await system
      .writer()
      .apply([taskPatch(system, 'Write it down', agent), commandPatch(system, gateway, agent, 'update')])
    // As it looks when it has been away for some minutes.
    await system.rows(`update gateways set last_seen_at = now() - interval '5 minutes' where id = $1`, [gateway.id])
    await page.getByText('Silent', { exact: true }).first().waitFor()
    const queue = page.getByRole('region', { name: /Waiting and under way/ })
    await queue.getByRole('link', { name: 'Write it down' }).waitFor()
    expect(await queue.getByText('until the gateway is back').count()).toBe(2)
    await page.getByText('Not heard of lately').waitFor()
    await inspect('gateway-page-away')
    await gateway.start()
    await queue.getByText('Nothing waits here.').waitFor({ timeout: 60_000 })
    await page.getByText('Online', { exact: true }).waitFor()
  })

  test('paused from its page', async () => {
    const { page } = device
    await page.getByRole('button', { name: 'Pause shed' }).click()
    await page.getByText('It begins nothing new').waitFor()
    await page.getByRole('button', { name: 'Resume shed' }).click()
    await page.getByText('It begins nothing new').waitFor({ state: 'hidden' })
  })

  test('containers: without Docker it says what is missing', async () => {
    const { page } = device
    const containers = page.getByRole('region', { name: 'Containers' })
    await containers.getByText('Nobody has looked yet').waitFor()
    await containers.getByRole('button', { name: 'Look' }).click()
    await containers.getByText('No containers to be seen').waitFor()
    await containers.getByText('Everything else of HQ works without it').waitFor()
    await inspect('gateway-page-no-docker')
  })

  test('an agent moves to another gateway; its secrets are named; the old page has nobody any more', async () => {
    const { page } = device
    const barn = await system.gateway('barn')
    await system.writer().apply([
      insert('secrets', {
        tenant_id: system.tenantId,
        gateway_id: gateway.id,
        agent_id: agent,
        category: 'user',
        key: 'GITHUB_TOKEN',
        name: 'GitHub',
        created_by: system.owner.principal.person_id,
      }),
    ])
    await page.getByRole('button', { name: 'Move Wanda' }).click()
    const dialog = page.getByRole('dialog', { name: 'Move Wanda' })
    await dialog.getByText('GITHUB_TOKEN has to be set again there').waitFor()
    expect(await dialog.getByRole('button', { name: 'Move', exact: true }).isEnabled()).toBe(false)
    await dialog.getByRole('combobox', { name: 'To' }).click()
    await page.getByRole('option', { name: /barn/ }).click()
    await inspect('gateway-move-agent')
    await dialog.getByRole('button', { name: 'Move', exact: true }).click()
    await page.getByText('No agent lives here yet.').waitFor({ timeout: 60_000 })
    await system.rowWhen('agents', agent, (row) => row['gateway_id'] === barn.id && row['status'] === 'ready')
    await page.goto(`${system.server.url}/gateways/barn`)
    await page.getByRole('link', { name: /Wanda/ }).waitFor()
    await page.getByText('Ready', { exact: true }).first().waitFor()
  })

  test('retired with agents on it only when somebody says so', async () => {
    const { page } = device
    const [barn] = await system.rows<{ id: string }>(`select id from gateways where slug = 'barn'`)
    await page.getByRole('button', { name: 'More about barn' }).click()
    await page.getByRole('menuitem', { name: /^Retire/ }).click()
    const confirm = page.getByRole('alertdialog')
    await confirm.getByText('1 agent lives there').waitFor()
    await inspect('gateway-retire-with-agents')
    await confirm.getByRole('button', { name: 'Retire anyway' }).click()
    await page.getByRole('heading', { name: 'There is no gateway “barn” here' }).waitFor()
    await system.rowWhen('gateways', String(barn?.id), (row) => row['deleted_at'] !== null)
    await system.rowWhen('agents', agent, (row) => row['status'] === 'error')

    // Its agent has no machine now; from its own page it goes on at another one, with what was last seen of it.
    await page.goto(`${system.server.url}/agents/wanda`)
    await page.getByRole('button', { name: 'More', exact: true }).click()
    await page.getByRole('menuitem', { name: /^Move/ }).click()
    const dialog = page.getByRole('dialog', { name: 'Move Wanda' })
    await dialog.getByText('Its gateway is gone').waitFor()
    await dialog.getByRole('combobox', { name: 'To' }).click()
    await page.getByRole('option', { name: /shed/ }).click()
    await inspect('gateway-move-without-files')
    await dialog.getByRole('button', { name: 'Move without its files' }).click()
    await system.rowWhen('agents', agent, (row) => row['gateway_id'] === gateway.id && row['status'] === 'ready')
  })
})
