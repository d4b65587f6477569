/**
 * The main job by hand, in a browser: setup → agent → task → deliverable → revision → approval; then every main screen is looked at by axe, in
 * light and dark. One browser, one server, one gateway; each step stands on the one before.
 */
import { rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { holdableGit } from '@hq/gateway-node/testing/process.ts'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { picture, seriousFindings } from './support/axe.ts'
import {
  type Device,
  drained,
  eventually,
  hasChromium,
  joinByLink,
  OWNER,
  openDevice,
  query,
  setUpOwner,
  signIn,
  writeTask,
} from './support/browser.ts'
import { browserConverged, gatewayConverged, nothingDoubled } from './support/converged.ts'
import { type Gateway, type Row, type System, startSystem } from './support/system.ts'

const TASK = 'Write a launch note'
const NEXT = 'Plan the next launch'
const NOTE = 'Shorter, and name the three customers.'

describe.skipIf(!hasChromium)('the walk', () => {
  let system: System
  let device: Device
  let gateway: Gateway
  let git: Awaited<ReturnType<typeof holdableGit>>
  let taskUrl = ''

  beforeAll(async () => {
    system = await startSystem({ browser: true, setUp: false })
    device = await openDevice(system.server)
    git = await holdableGit(join(tmpdir(), `hq-walk-git-${process.pid}`))
  })
  afterAll(async () => {
    await device?.close()
    await system?.stop()
    if (git) await rm(join(git.hold, '..'), { recursive: true, force: true })
  })

  test('the first visit creates the owner and opens Home', async () => {
    const { page } = device
    await page.goto(system.server.url)
    await page.getByLabel('Your name').waitFor()
    expect(await seriousFindings(page)).toEqual([])
    await setUpOwner(page, system.server)
    await page.getByText('Begin with an agent').waitFor()
    await system.signIn()
  })

  test('the wizard makes an agent from a template and shows its provisioning step by step', async () => {
    const { page } = device
    gateway = await system.gateway('local', { env: { PATH: git.path, HQ_TEST_PACE_MS: '60' } })
    await page.getByRole('link', { name: 'New agent' }).click()
    const wizard = page.getByRole('dialog', { name: 'New agent' })
    await wizard.getByRole('radio', { name: /Writer/ }).click()
    await wizard.getByRole('button', { name: 'Continue' }).click()
    await wizard.getByLabel('Name').fill('Wanda')
    await wizard.getByLabel('What is it for?').fill('Writes what we publish.')
    expect(await wizard.getByLabel('Slug').inputValue()).toBe('wanda')
    await wizard.getByRole('button', { name: 'Continue' }).click()
    await wizard.getByText('None: it works in HQ').waitFor()
    // git is held back, so that a step stays under way until it has been seen.
    await writeFile(git.hold, '')
    await wizard.getByRole('button', { name: 'Create agent' }).click()
    await wizard.getByRole('listitem').filter({ hasText: ', running' }).waitFor({ timeout: 60_000 })
    await picture(page, 'walk-provisioning')
    await rm(git.hold)
    await wizard.getByText('Done', { exact: true }).first().waitFor({ timeout: 60_000 })
    expect(await wizard.getByRole('listitem').filter({ hasText: ', running' }).count()).toBe(0)
    await wizard.getByRole('button', { name: 'Open Wanda' }).click()
    await page.getByRole('heading', { name: 'Wanda', level: 2 }).waitFor()
    await page.getByText('Ready', { exact: true }).first().waitFor({ timeout: 60_000 })
  })

  test('a task that is assigned is worked on: run, log, demo label', async () => {
    const { page } = device
    await page.getByRole('link', { name: 'Tasks' }).first().click()
    await page.getByRole('textbox', { name: 'New task' }).fill(`${TASK} !high`)
    await page.getByRole('textbox', { name: 'New task' }).press('Enter')
    await eventually('the task is there', async () => (await query(page, 'select 1 from tasks')).length === 1)
    const [task] = await query<{ id: string }>(page, 'select id from tasks')
    taskUrl = `${system.server.url}/tasks/${task?.id}`
    await page.goto(taskUrl)
    await page.getByRole('button', { name: 'Assignee: Nobody' }).first().click()
    await page.getByRole('menuitemcheckbox', { name: /Wanda/ }).click()
    const runs = page.getByRole('region', { name: 'Runs' })
    await runs.getByText('Running').waitFor({ timeout: 60_000 })
    await runs.getByRole('link').first().click()
    const transcript = page.getByRole('region', { name: 'Transcript' })
    await transcript
      .getByText('Written by the demo model: no real model was asked.')
      .first()
      .waitFor({ timeout: 60_000 })
    await transcript.getByText('submit_deliverable').waitFor({ timeout: 60_000 })
    await transcript.getByText('Done', { exact: true }).waitFor({ timeout: 60_000 })
    await picture(page, 'walk-transcript')
    expect(await system.rows('select status from tasks')).toEqual([{ status: 'in_progress' }])
  })

  test('Home asks for approval; a revision with a note brings a second version; approving it ends the task', async () => {
    const { page } = device
    await page.getByRole('link', { name: /^Home/ }).first().click()
    const needs = page.getByRole('region', { name: 'Needs you' })
    await needs.getByRole('link', { name: new RegExp(TASK) }).waitFor({ timeout: 60_000 })
    await picture(page, 'walk-home')
    await needs.getByRole('link', { name: new RegExp(TASK) }).click()

    const deliverables = page.getByRole('region', { name: 'Deliverables' })
    await deliverables.getByText('Waits for review').waitFor()
    await deliverables.getByRole('button', { name: 'Request revision' }).click()
    await deliverables.getByRole('button', { name: 'Request revision' }).click()
    await deliverables.getByText('Say what should change').waitFor()
    await deliverables.getByLabel('What should change?').fill(NOTE)
    await deliverables.getByRole('button', { name: 'Request revision' }).click()

    await deliverables.getByText('version 2 ·').waitFor({ timeout: 90_000 })
    await deliverables.getByText('Waits for review').waitFor()
    await deliverables.getByText('1 earlier version').click()
    await deliverables.getByText(NOTE).first().waitFor()
    await picture(page, 'walk-revision')
    await deliverables.getByRole('button', { name: 'Approve' }).click()
    await deliverables.getByText('Approved').first().waitFor()
    await page.getByRole('button', { name: 'Status: Done' }).first().waitFor({ timeout: 60_000 })
    await picture(page, 'walk-done')
    await page.getByRole('link', { name: /^Home/ }).first().click()
    await page.getByText('Nothing waits for you').waitFor()

    const links = await system.rows<Row>(
      'select review_status, supersedes_id is null as first from entity_links order by created_at',
    )
    expect(links).toEqual([
      { review_status: 'revision_requested', first: true },
      { review_status: 'approved', first: false },
    ])
    await system.when('the second run has ended', async () => {
      const runs = await system.rows<Row>('select status, demo from agent_runs')
      return runs.length === 2 && runs.every(({ status, demo }) => status === 'done' && demo === true)
    })
  })

  test('a comment with a mention is answered', async () => {
    const { page } = device
    await page.goto(taskUrl)
    const comment = page.getByRole('textbox', { name: 'Comment' })
    await comment.fill('@wan')
    await page.getByRole('option', { name: /Wanda/ }).click()
    await comment.pressSequentially('which sources did you use?')
    await comment.press('Control+Enter')
    const said = page.getByRole('list', { name: 'Conversation and activity' })
    await said.getByText('which sources did you use?').first().waitFor()
    await system.when(
      'the agent answers',
      async () =>
        (
          await system.rows(`select 1 from comments where actor_type = 'agent' and created_at > (
          select created_at from comments where actor_type = 'human')`)
        ).length === 1,
      90_000,
    )
  })

  test('the history of commands, and a person invited by link who sees the same', async () => {
    const { page } = device
    await page.getByRole('link', { name: 'Commands' }).first().click()
    const row = page.getByRole('row').filter({ hasText: 'Wanda' })
    await row.getByText('Done').waitFor()
    await row.click()
    await page.getByRole('dialog').getByText('1 of 2').waitFor()
    await page.keyboard.press('Escape')

    await page.getByRole('link', { name: 'People' }).first().click()
    await page.getByRole('button', { name: 'Invite' }).click()
    await page.getByRole('button', { name: 'Make link' }).click()
    const link = await page.getByLabel('Invitation link').inputValue()
    await page.keyboard.press('Escape')
    const second = await openDevice(system.server)
    try {
      const who = { name: 'Mia Member', email: 'mia@example.com', password: 'another good one' }
      await joinByLink(second.page, system.server, new URL(link).pathname, who)
      await second.page.goto(taskUrl)
      await second.page.getByText('Approved').first().waitFor()
      await browserConverged(system, second.page)
      await second.page.getByRole('textbox', { name: 'Comment' }).fill('Well done.')
      await second.page.getByRole('textbox', { name: 'Comment' }).press('Control+Enter')
      const said = second.page.getByRole('list', { name: 'Conversation and activity' })
      await said.getByText('Well done.').first().waitFor()
      await writeTask(second.page, NEXT)
      await drained(second.page)
    } finally {
      await second.close()
    }
    await page.goto(taskUrl)
    await page.getByText('Well done.').first().waitFor({ timeout: 30_000 })
    await page.getByText('Mia Member').first().waitFor()
  })

  const SCREENS: readonly (readonly [name: string, path: () => string, seen: string])[] = [
    ['home', () => '/', 'Lately'],
    ['agents', () => '/agents', 'Wanda'],
    ['agent', () => '/agents/wanda', 'Why it wakes'],
    ['agent-runs', () => '/agents/wanda?tab=runs', 'Written by the demo model'],
    ['agent-commands', () => '/agents/wanda?tab=commands', 'Done'],
    ['agent-files', () => '/agents/wanda?tab=files', 'IDENTITY.md'],
    ['tasks', () => '/tasks', NEXT],
    ['tasks-board', () => '/tasks?view=board', NEXT],
    ['task', () => new URL(taskUrl).pathname, 'Approved'],
    ['commands', () => '/commands', 'Wanda'],
    ['people', () => '/people', 'Mia Member'],
    ['gateways', () => '/gateways', 'local'],
    ['sync', () => '/sync', 'Nothing waits'],
  ]
  test.each(['light', 'dark'] as const)('nothing serious for axe on any main screen, %s', async (colorScheme) => {
    const { page } = device
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    const found: Record<string, string[]> = {}
    for (const [name, path, seen] of SCREENS) {
      await page.goto(system.server.url + path())
      await page.getByRole('main').getByText(seen).first().waitFor()
      const findings = await seriousFindings(page)
      if (findings.length > 0) found[name] = findings
      await picture(page, `${name}-${colorScheme}`)
    }
    expect(found).toEqual({})
  })

  test('signing out and in again; in the end all sides have the same, and nothing was done twice', async () => {
    const { page } = device
    await page.emulateMedia({ colorScheme: 'light' })
    await page.getByRole('button', { name: /^You: / }).click()
    await page.getByRole('menuitem', { name: 'Sign out' }).click()
    await page.getByRole('dialog', { name: 'Sign out?' }).getByRole('button', { name: 'Sign out' }).click()
    await page.getByRole('button', { name: 'Sign in' }).waitFor()
    expect(await seriousFindings(page)).toEqual([])
    await picture(page, 'sign-in-light')
    await signIn(page, system.server, OWNER)
    await page.goto(taskUrl)
    await page.getByText('Approved').first().waitFor()

    await browserConverged(system, page)
    await nothingDoubled(system)
    await eventually(
      'the gateway has sent everything',
      async () => (await system.rows('select 1 from agents where gate = $1', ['working'])).length === 0,
    )
    await gateway.end()
    await gatewayConverged(system, gateway)
    expect(device.problems.filter((problem) => problem.startsWith('thrown'))).toEqual([])
  })
})
