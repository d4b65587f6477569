/** Settings → Backups in a real browser: each state has its face, one more is asked for with and without a network, and how to get one back is said. */
import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { picture, seriousFindings } from '../../../../tests/support/axe.ts'
import {
  type Device,
  eventually,
  hasChromium,
  openDevice,
  setUpOwner,
  startTestServer,
  type TestServer,
} from '../../../../tests/support/browser.ts'

const SETTLED = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
  Promise.allSettled(document.getAnimations().map((each) => each.finished)).then(() => requestAnimationFrame(done)))))`

async function inspect(page: Page, name: string): Promise<void> {
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
    const wider = `[document.documentElement, ...document.querySelectorAll('main')]
      .filter((each) => each.scrollWidth > each.clientWidth).map((each) => each.tagName + ' ' + each.scrollWidth)`
    expect(await page.evaluate(wider)).toEqual([])
  }
  await page.emulateMedia({ colorScheme: 'light' })
  await page.setViewportSize({ width: 1280, height: 800 })
}

describe.skipIf(!hasChromium)('backups', () => {
  let server: TestServer
  let device: Device
  let tenantId: string

  beforeAll(async () => {
    server = await startTestServer()
    device = await openDevice(server)
    await setUpOwner(device.page, server)
    tenantId = String((await server.rows<{ id: string }>('select id from tenants'))[0]?.id)
  })
  afterAll(async () => {
    await device?.close()
    await server?.stop()
  })

  const gateway = async (label: string, heard: string | null): Promise<string> => {
    const id = randomUUID()
    await server.rows(
      `insert into gateways (id, tenant_id, gateway_id, slug, label, status, last_seen_at) values ($1, $2, $1, $3, $4, 'ready', now() - $5::interval)`,
      [id, tenantId, label.toLowerCase().replaceAll(' ', '-'), label, heard],
    )
    return id
  }
  const backup = (gatewayId: string, status: string, ago: string, reason = 'schedule', error: string | null = null) =>
    server.rows(
      `insert into backups (id, tenant_id, gateway_id, reason, status, size, sha256, key_id, contents, created_at, finished_at, error_message)
       values (gen_random_uuid(), $1, $2, $3, $4, 2345678, $5, '0123456789abcdef', '{"agents": 3, "hostname": "attic"}', now() - $6::interval, now() - $6::interval, $7)`,
      [tenantId, gatewayId, reason, status, 'a'.repeat(64), ago, error],
    )

  test('every state has its face; one more is asked for, also without a network', async () => {
    const { page } = device
    await page.goto(`${server.url}/backups`)
    await page.getByText('Nothing to back up yet').waitFor()
    await inspect(page, 'backups-empty')

    const attic = await gateway('Attic', '9 days')
    await backup(attic, 'done', '9 days 2 hours')
    await backup(
      attic,
      'failed',
      '8 days',
      'demand',
      'The disk of the gateway’s machine is full. Free some space, then try again.',
    )
    await backup(attic, 'removed', '12 days', 'shutdown')
    const office = await gateway('Office', '0 seconds')
    await backup(office, 'done', '3 hours')
    await gateway('A new one', null)

    const section = (label: string) => page.getByRole('region', { name: `Backups of ${label}` })
    await section('Attic').getByText('Last backup 9 days ago', { exact: true }).waitFor()
    await section('Attic').getByText('Failed').waitFor()
    await section('Attic').getByText('Cleared away').waitFor()
    await section('Office').getByText('Backed up').waitFor()
    await section('A new one').getByText('Never backed up').waitFor()
    await page.getByText('npm run hq -- backup key').waitFor()
    expect(
      await section('Office')
        .getByRole('link', { name: /^Download/ })
        .getAttribute('href'),
    ).toBe(`/v1/blobs/gateway-backups/${'a'.repeat(64)}`)
    await inspect(page, 'backups')

    await device.context.setOffline(true)
    await section('Attic').getByRole('button', { name: 'Back up now' }).click()
    await section('Attic').getByText('It begins when it is back').waitFor()
    expect(await section('Attic').getByRole('button', { name: 'Being made' }).isDisabled()).toBe(true)
    await device.context.setOffline(false)
    const command = await eventually('the command is at the server', async () => {
      const rows = await server.rows<{ id: string; gateway_id: string }>(
        `select id, gateway_id from agent_commands where action = 'backup'`,
      )
      return rows[0]
    })
    expect(command.gateway_id).toBe(attic)
    const progress = [
      { key: 'files', label: 'Commit what agents have written', state: 'done' },
      { key: 'send', label: 'Send to the server', state: 'running', detail: '2291 KiB' },
    ]
    await server.rows(`update agent_commands set status = 'running', progress = $2 where id = $1`, [
      command.id,
      JSON.stringify({ steps: progress }),
    ])
    await section('Attic').getByText('Send to the server').waitFor()
    await inspect(page, 'backups-running')
    await server.rows(`update agent_commands set status = 'done' where id = $1`, [command.id])
    await section('Attic').getByRole('button', { name: 'Back up now' }).waitFor()

    await section('Office')
      .getByRole('button', { name: /^Bring back from/ })
      .click()
    await page.getByRole('alertdialog').getByText('Folders that are there are not changed').waitFor()
    await inspect(page, 'backups-bring-back')
    await page.getByRole('alertdialog').getByRole('button', { name: 'Bring back' }).click()
    await section('Office').getByRole('button', { name: 'Being restored' }).waitFor()
    const asked = await eventually('the command is at the server', async () => {
      const rows = await server.rows<{ id: string; gateway_id: string; payload: object }>(
        `select id, gateway_id, payload from agent_commands where action = 'restore'`,
      )
      return rows[0]
    })
    expect(asked).toMatchObject({ gateway_id: office, payload: { sha256: 'a'.repeat(64) } })
    await server.rows(
      `update agent_commands set status = 'failed', error_message = 'The server has no such backup.' where id = $1`,
      [asked.id],
    )
    await section('Office').getByText('The server has no such backup.').waitFor()
    await section('Office').getByRole('button', { name: 'Back up now' }).waitFor()
  })
})
