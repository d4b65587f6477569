/** A question on its way from a gateway's replica to people and back: real server, real replicas, two real browsers. */
import { randomUUID } from 'node:crypto'
import { type Answer, type Approvals, createApprovals, type Question } from '@hq/gateway-node/approvals/approvals.ts'
import { newId } from '@hq/sync-server/database/ids.ts'
import { newGatewayIdentity } from '@hq/sync-server/testing/workspace.ts'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { picture, seriousFindings } from '../../../../tests/support/axe.ts'
import {
  type Device,
  drained,
  eventually,
  hasChromium,
  invite,
  joinByLink,
  openDevice,
  query,
  setUpOwner,
  startTestServer,
  statusOf,
  type TestServer,
  write,
} from '../../../../tests/support/browser.ts'
import { type Live, openLive } from '../../../../tests/support/replica.ts'

const LONG = { timeout: 120_000 }
const SETTLED = `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() =>
  Promise.allSettled(document.getAnimations().map((each) => each.finished)).then(() => requestAnimationFrame(done)))))`

/** In both schemes, wide and on a phone: nothing serious for axe, nothing wider than the screen, and a picture. */
async function inspect(page: Page, name: string): Promise<void> {
  const size = page.viewportSize()
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
    expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true)
  }
  await page.emulateMedia({ colorScheme: 'light' })
  if (size) await page.setViewportSize(size)
}

describe.skipIf(!hasChromium)('questions to people', () => {
  let server: TestServer
  let owner: Device
  let member: Device
  let gateway: Live
  let approvals: Approvals
  const agent = newId()
  const stop = new AbortController()

  beforeAll(async () => {
    server = await startTestServer()
    owner = await openDevice(server)
    await setUpOwner(owner.page, server)
    member = await openDevice(server)
    const path = await invite(owner.page)
    await joinByLink(member.page, server, path, {
      name: 'Mia Member',
      email: 'mia@example.com',
      password: 'long enough, that',
    })
    gateway = await openGateway(owner.page, server)
    const { tenantId, ownerId: gatewayId } = gateway.replica.identity
    await write(owner.page, [
      {
        sql: `insert into agents (id, tenant_id, gateway_id, name, slug, status, meta) values ($1, $2, $3, 'Wanda', 'wanda', 'ready', '{"emoji": "🦊"}')`,
        params: [agent, tenantId, gatewayId],
      },
    ])
    await drained(owner.page)
    await eventually('the gateway has its agent', async () => (await gateway.ids('agents')).includes(agent))
    approvals = createApprovals({
      replica: gateway.replica,
      gatewayId,
      tenantId,
      now: Date.now,
      newId,
      signal: stop.signal,
      log: () => undefined,
    })
    await approvals.start()
    await seen(0)
  }, 180_000)
  afterAll(async () => {
    stop.abort()
    await approvals?.stop()
    await gateway?.close()
    await owner?.close()
    await member?.close()
    await server?.stop()
  })

  /** The gateway was heard of so many minutes ago. */
  const seen = (minutesAgo: number) =>
    gateway.replica.write((tx) =>
      tx.query(`update gateways set status = 'ready', last_seen_at = $2 where id = $1`, [
        gateway.replica.identity.ownerId,
        new Date(Date.now() - minutesAgo * 60_000).toISOString(),
      ]),
    )
  const ask = (command: string, more: Partial<Question> = {}): Promise<Answer> =>
    approvals.ask(
      {
        agentId: agent,
        runId: null,
        taskId: null,
        kind: 'exec',
        subject: 'exec',
        title: `Run “${command.slice(0, 80)}” in the folder of wanda`,
        detail: { command, folder: 'notes', timeout_s: 60, api_key: 'never seen' },
        expiresAt: new Date(Date.now() + 3_600_000).toISOString(),
        ...more,
      },
      stop.signal,
    )
  const card = (page: Page, name: string | RegExp) => page.getByRole('article', { name })
  const goTo = (page: Page) =>
    page
      .getByRole('link', { name: /^Approvals/ })
      .first()
      .click()
  const rowOf = async (command: string) =>
    (
      await server.rows<{ status: string; note: string | null; applied_at: string | null; detail: unknown }>(
        `select * from approvals where detail->>'command' = $1`,
        [command],
      )
    )[0]

  test('comes to Home and to the list, is shown in full, and is allowed by keyboard', LONG, async () => {
    const { page } = member
    await goTo(page)
    await page.getByRole('heading', { name: 'Nobody asks for anything' }).waitFor()
    await inspect(page, 'approvals-none')
    const command = `git push origin main\n# ${'very long '.repeat(30)}\u202eend`
    const answered = ask(command)
    const here = card(page, /^Run “git push/)
    await here.getByText('⟨U+202E⟩').first().waitFor()
    await here.getByText('[hidden]').waitFor()
    expect(await page.content()).not.toContain('never seen')
    expect(await here.getByRole('button', { name: /Always/ }).count()).toBe(0)
    await owner.page
      .getByRole('link', { name: /1 waiting for an answer/ })
      .first()
      .waitFor()
    await owner.page.getByRole('link', { name: /Allow\?/ }).click()
    await card(owner.page, /^Run “git push/)
      .getByRole('button', { name: 'Always allow exec for Wanda' })
      .waitFor()
    await inspect(owner.page, 'approvals-open')

    // A key without a question in focus allows nothing.
    await page.locator('h2').first().click()
    await page.keyboard.press('a')
    await page.keyboard.press('j')
    expect(await page.evaluate(`document.activeElement.hasAttribute('data-approval')`)).toBe(true)
    expect((await rowOf(command))?.status).toBe('pending')
    await page.keyboard.press('a')
    expect(await answered).toEqual({ verdict: 'allowed', note: null })
    await here.getByText('Allowed', { exact: true }).waitFor()
    await here.getByText('answered by Mia Member').waitFor()
    await eventually('it is applied', async () => (await rowOf(command))?.applied_at)
  })

  test('is denied with a note, which whoever asked gets', LONG, async () => {
    const { page } = member
    const answered = ask('rm -rf build')
    await owner.page
      .getByRole('link', { name: /^Agents/ })
      .first()
      .click()
    await owner.page.getByRole('link', { name: /Wanda/ }).first().click()
    await owner.page.getByText('Wanda asks before it goes on').waitFor()
    await inspect(owner.page, 'agent-asks')
    await owner.page.getByRole('link', { name: 'Answer', exact: true }).click()
    await card(owner.page, /^Run “rm -rf/).waitFor()
    const here = card(page, /^Run “rm -rf/)
    await here.getByRole('button', { name: 'Deny…' }).click()
    await here.getByLabel('Why? (optional)').fill('Use the clean script.')
    await inspect(page, 'approvals-denying')
    await page.keyboard.press('Control+Enter')
    expect(await answered).toEqual({ verdict: 'denied', note: 'Use the clean script.' })
    await here.getByText('Use the clean script.').waitFor()
  })

  test('“always” by an admin is in the agent’s policy with the same answer', LONG, async () => {
    const answered = ask('npm test')
    await card(owner.page, /^Run “npm test/)
      .getByRole('button', { name: /^Always allow/ })
      .click()
    expect((await answered).verdict).toBe('allowed')
    await drained(owner.page)
    expect(await server.rows('select tool_policy from agents')).toEqual([{ tool_policy: { tools: { exec: 'allow' } } }])
  })

  test('what an agent may use: set by an admin, read by a member', LONG, async () => {
    for (const { page } of [owner, member]) {
      await page
        .getByRole('link', { name: /^Agents/ })
        .first()
        .click()
      await page.getByRole('link', { name: /Wanda/ }).first().click()
      await page.getByRole('tab', { name: 'Permissions' }).click()
    }
    const tools = (page: Page) => page.getByRole('region', { name: 'Tools' })
    await tools(owner.page).getByRole('combobox', { name: 'Run commands' }).click()
    await owner.page.getByRole('option', { name: 'Ask first' }).click()
    await tools(member.page).getByText('Ask first').waitFor()
    expect(await tools(member.page).getByRole('combobox').count()).toBe(0)
    await inspect(owner.page, 'agent-tools')
    expect(await server.rows('select tool_policy from agents')).toEqual([{ tool_policy: { tools: { exec: 'ask' } } }])
    for (const { page } of [owner, member]) await goTo(page)
  })

  test('answered by two who could not see each other: the first counts, the other is told', LONG, async () => {
    const answered = ask('make deploy')
    for (const { page } of [owner, member]) await card(page, /^Run “make deploy/).waitFor()
    await server.kill()
    for (const { page } of [owner, member])
      await eventually('offline', async () => (await statusOf(page))?.status.connection === 'offline')
    await card(owner.page, /^Run “make deploy/)
      .getByRole('button', { name: /^Always allow/ })
      .click()
    const theirs = card(member.page, /^Run “make deploy/)
    await theirs.getByRole('button', { name: 'Deny…' }).click()
    await theirs.getByRole('button', { name: 'Deny' }).click()
    await theirs.getByText('Denied', { exact: true }).waitFor()
    await server.start()
    const { verdict } = await answered
    const loser = verdict === 'allowed' ? member : owner
    const winner = verdict === 'allowed' ? 'Olga Owner' : 'Mia Member'
    const here = card(loser.page, /^Run “make deploy/)
    await here.getByText(`${winner} was first`).waitFor({ timeout: 60_000 })
    await here.getByText(`What counts is their answer: ${verdict}.`).waitFor()
    await inspect(loser.page, 'approvals-too-late')
    await here.getByRole('button', { name: 'Understood' }).click()
    await here.getByText(`${winner} was first`).waitFor({ state: 'detached' })
    expect((await statusOf(loser.page))?.status.rejected).toBe(0)
    expect((await rowOf('make deploy'))?.status).toBe(verdict)
  })

  test('a gateway that is away: said so, and what becomes of an answer', LONG, async () => {
    const { page } = member
    await seen(120)
    const answered = ask('git pull', { expiresAt: null })
    const here = card(page, /^Run “git pull/)
    await here.getByText(/is offline\. Your answer is kept and reaches it when it is back/).waitFor()
    await inspect(page, 'approvals-away')
    await here.getByRole('button', { name: 'Allow once' }).click()
    expect((await answered).verdict).toBe('allowed')
    await seen(0)
  })

  test('nobody answers: it expires; a restart of the gateway: it is withdrawn', LONG, async () => {
    const { page } = member
    const answered = ask('sleep 1', { expiresAt: new Date(Date.now() + 1_000).toISOString() })
    await card(page, /^Run “sleep 1/)
      .getByText('Expired', { exact: true })
      .waitFor()
    expect((await answered).verdict).toBe('expired')
    void ask('left behind').catch(() => undefined)
    await card(page, /^Run “left behind/)
      .getByRole('button', { name: 'Allow once' })
      .waitFor()
    await approvals.stop()
    const here = card(page, /^Run “left behind/)
    await here.getByText('Withdrawn', { exact: true }).waitFor()
    expect(await here.getByRole('button').count()).toBe(0)
    await inspect(page, 'approvals-history')
    expect(await query(page, `select 1 from approvals where status = 'pending'`)).toEqual([])
  })
})

/** Registered over HTTP by a token that the owner has made; a real replica of its own. */
async function openGateway(page: Page, server: TestServer): Promise<Live> {
  const origin = new URL(page.url()).origin
  const made = await page.request.post(`${origin}/v1/gateways/tokens`, {
    data: { label: 'Attic' },
    headers: { origin },
  })
  const { token } = (await made.json()) as { token: string }
  const identity = newGatewayIdentity()
  const registered = await fetch(`${server.url}/v1/gateways/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ token, slug: `attic-${randomUUID().slice(0, 8)}`, label: 'Attic', ...identity.register }),
  })
  const { gateway_id, tenant_id, slug } = (await registered.json()) as Record<
    'gateway_id' | 'tenant_id' | 'slug',
    string
  >
  return openLive(server.url, {
    headers: { authorization: `Bearer ${identity.token}` },
    principal: { kind: 'gateway', gateway_id, tenant_id, slug } as never,
  })
}
