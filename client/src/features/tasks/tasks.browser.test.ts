/**
 * Tasks in a real browser on a real server: by keyboard alone, on the board, on a task's page, offline, refused, and with 10,000 of them.
 * Screenshots of every screen at three sizes, light and dark, go to tests/.artifacts/tasks.
 */
import { mkdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type Device,
  drained,
  eventually,
  hasChromium,
  loaded,
  openDevice,
  query,
  setUpOwner,
  startTestServer,
  type TestServer,
} from '../../../../tests/support/browser.ts'

const artifacts = join(import.meta.dirname, '../../../../tests/.artifacts/tasks')
const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const LONG_GERMAN =
  'Überarbeitung der Datenschutzgrundverordnungskonformitätserklärung für sämtliche Auftragsverarbeitungsverhältnisse'
const LONG_JAPANESE = '新製品の発表会に向けたプレスリリースの草案を作成し、関係各所の確認を経て最終版を確定する'
const id = (n: number): string => `0197f000-0000-7000-9000-${String(n).padStart(12, '0')}`
const AGENT = id(11)

const SIZES = [
  { width: 1440, height: 900 },
  { width: 1024, height: 768 },
  { width: 390, height: 844 },
] as const

interface Violation {
  readonly id: string
  readonly impact: string
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
}

async function seriousFindings(page: Page): Promise<string[]> {
  // By the debugger, which the page's content security policy does not stop.
  if (!(await page.evaluate('"axe" in window'))) await page.evaluate(`${axe}; undefined`)
  const { violations } = (await page.evaluate('axe.run(document, { resultTypes: ["violations"] })')) as {
    violations: Violation[]
  }
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(
      ({ id: rule, nodes }) => `${rule}: ${nodes[0]?.html.slice(0, 200)} — ${nodes[0]?.failureSummary.slice(0, 200)}`,
    )
}

/** Screenshots in every size and both themes; axe at the widest of each theme and on the phone. */
async function look(page: Page, name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' })
    // The new colours reach nested text level by level; a busy machine takes its time.
    await page.waitForTimeout(1_200)
    for (const size of SIZES) {
      await page.setViewportSize(size)
      await page.waitForTimeout(350)
      await page.screenshot({ path: join(artifacts, `${name}-${size.width}-${colorScheme}.png`) })
      if (size.width !== 1024) expect(await seriousFindings(page), `${name} ${size.width} ${colorScheme}`).toEqual([])
    }
  }
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' })
  await page.setViewportSize(SIZES[0])
}

describe.skipIf(!hasChromium)('tasks in a browser', () => {
  let server: TestServer
  let device: Device
  let page: Page
  const row = (title: string) => page.getByRole('row').filter({ hasText: title })
  const task = async (title: string) =>
    (
      await query<Record<string, unknown>>(page, 'select * from tasks where title = $1 and deleted_at is null', [title])
    )[0]
  const onServer = async (title: string) =>
    (await server.rows<Record<string, unknown>>('select * from tasks where title = $1', [title]))[0]
  const go = async (path: string) => {
    await page.goto(server.url + path)
    await loaded(page)
  }
  const type = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key)
  }

  beforeAll(async () => {
    mkdirSync(artifacts, { recursive: true })
    server = await startTestServer()
    device = await openDevice(server, { viewport: SIZES[0] })
    page = device.page
    await setUpOwner(page, server)
    const [workspace] = await server.rows<{ tenant_id: string }>('select tenant_id from workspace')
    const tenant = workspace?.tenant_id
    await server.rows(
      `insert into gateways (id, tenant_id, gateway_id, slug, label, status, last_seen_at)
       values ($1, $2, $1, 'mac-mini', 'mac-mini', 'ready', now() - interval '3 hours')`,
      [id(1), tenant],
    )
    await server.rows(
      `insert into agents (id, tenant_id, gateway_id, name, slug, status, meta)
       values ($1, $2, $3, 'Writer', 'writer', 'ready', '{"emoji":"✍️"}')`,
      [AGENT, tenant, id(1)],
    )
    await eventually('the agent is here', async () => (await query(page, 'select 1 from agents')).length === 1)
  })
  afterAll(async () => {
    await device?.close()
    await server?.stop()
  })

  it('nothing yet teaches how to begin', async () => {
    await go('/tasks')
    await page.getByRole('heading', { name: 'No tasks yet' }).waitFor()
    await look(page, 'empty')
  })

  it('by keyboard alone: create, move, status, title, selection, undo, open', async () => {
    await go('/tasks')
    await page.getByRole('heading', { name: 'No tasks yet' }).waitFor()
    await type('c')
    await page.keyboard.type('Write the plan @writer !high')
    await type('Enter')
    await page.keyboard.type('Second task')
    await type('Enter', 'Escape')
    await row('Second task').waitFor()
    expect(await task('Write the plan')).toMatchObject({
      priority: 'high',
      assignee_type: 'agent',
      assignee_agent_id: AGENT,
      assignee_person_id: null,
    })

    // The newest is on top; J goes to the first, J to the second.
    await type('j', 'j', '.')
    await page.getByPlaceholder('Change status…').waitFor()
    await page.keyboard.type('in prog')
    await type('Enter')
    await eventually('status by keyboard', async () => (await task('Write the plan'))?.['status'] === 'in_progress')

    await type('k')
    await page.getByRole('grid', { name: 'Tasks' }).waitFor()
    // Two tasks stand under two headings: select both, and give both a priority.
    await type('Home', 'x', 'j', 'x', 'p')
    await page.getByPlaceholder('Change priority…').waitFor()
    await page.keyboard.type('urgent')
    await type('Enter')
    const urgent = () => query(page, `select 1 from tasks where priority = 'urgent'`)
    await eventually('both urgent', async () => (await urgent()).length === 2)
    await type('Control+z')
    await eventually('undone', async () => (await urgent()).length === 0)
    expect((await task('Write the plan'))?.['priority']).toBe('high')

    await type('Escape', 'Home', 'e')
    await page.getByRole('textbox', { name: 'Title' }).waitFor()
    await type('Control+a')
    await page.keyboard.type('Second task, renamed')
    await type('Enter')
    await row('Second task, renamed').waitFor()
    await type('Enter')
    await page.waitForURL(/\/tasks\/[0-9a-f-]{36}$/)
    await page.getByRole('textbox', { name: 'Title' }).waitFor()
    await type('Escape')
    await page.waitForURL(/\/tasks$/)
    await drained(page)
    expect(await onServer('Second task, renamed')).toMatchObject({ status: 'todo' })
  })

  it('the board: drag with the mouse, lift with the keyboard', async () => {
    await go('/tasks?view=board')
    const card = (title: string) => page.locator('[data-card]').filter({ hasText: title })
    await card('Second task').waitFor()
    const from = await card('Second task').boundingBox()
    const to = await page.getByRole('region', { name: /^Done/ }).boundingBox()
    if (!from || !to) throw new Error('no places to drag between')
    await page.mouse.move(from.x + 40, from.y + 12)
    await page.mouse.down()
    await page.mouse.move(from.x + 80, from.y + 40, { steps: 4 })
    await page.mouse.move(to.x + 100, to.y + 120, { steps: 8 })
    await page.mouse.up()
    await eventually('dropped on Done', async () => (await task('Second task, renamed'))?.['status'] === 'done')
    expect((await task('Second task, renamed'))?.['completed_at']).not.toBeNull()

    await card('Write the plan').focus()
    await type('Space', 'ArrowRight', 'Space')
    await eventually('moved by keyboard', async () => (await task('Write the plan'))?.['status'] === 'blocked')
    await type('Control+z')
    await eventually('and back', async () => (await task('Write the plan'))?.['status'] === 'in_progress')
    await drained(page)
    expect(await onServer('Second task, renamed')).toMatchObject({ status: 'done' })
    await look(page, 'board')
  })

  it('a task’s page: text saves itself, subtasks, relations, a comment with a mention, assignment', async () => {
    await go('/tasks')
    await row('Write the plan').getByRole('link').click()
    await page.waitForURL(/\/tasks\/[0-9a-f-]{36}$/)
    await page.getByText('Gateway “mac-mini” last heard 3 h ago').waitFor()

    await page.getByRole('button', { name: 'Add a description…' }).click()
    await page
      .getByRole('textbox', { name: 'Description' })
      .fill('What **counts**:\n\n- [ ] short\n- [x] true\n\n<b>not bold</b>')
    // Leaving at once must not lose the text.
    await page.goto(`${server.url}/tasks`)
    await loaded(page)
    await eventually('the description is saved', async () =>
      String((await task('Write the plan'))?.['description']).includes('not bold'),
    )
    await row('Write the plan').getByRole('link').click()
    await page.getByText('<b>not bold</b>').waitFor()

    await page.getByRole('button', { name: 'Add a subtask' }).click()
    await page.keyboard.type('Outline')
    await type('Enter')
    await page.keyboard.type('Draft')
    await type('Enter')
    await page.getByRole('checkbox', { name: 'Done: Outline' }).click()
    await eventually('the subtask is done', async () => (await task('Outline'))?.['status'] === 'done')
    const parent = (await task('Write the plan'))?.['id']
    expect(await task('Draft')).toMatchObject({ parent_id: parent })

    await page.getByRole('textbox', { name: 'Comment' }).click()
    await page.keyboard.type('Please begin @wri')
    await page.getByRole('option', { name: /Writer/ }).waitFor()
    await type('Enter')
    await page.keyboard.type('with the outline')
    await type('Control+Enter')
    await page.getByText('with the outline').waitFor()
    const comments = await query<{ body: string; mentions: string[] }>(page, 'select body, mentions from comments')
    expect(comments).toEqual([{ body: 'Please begin @writer with the outline', mentions: ['writer'] }])

    await page.getByRole('button', { name: 'Assignee: Writer' }).first().click()
    await page.getByRole('menuitemcheckbox', { name: /Olga Owner/ }).click()
    await eventually('assigned to me', async () => (await task('Write the plan'))?.['assignee_type'] === 'human')
    await page.getByRole('button', { name: 'Assignee: Olga Owner' }).first().click()
    await page.getByRole('menuitemcheckbox', { name: 'Writer' }).click()
    await eventually(
      'and back to the agent',
      async () => (await task('Write the plan'))?.['assignee_agent_id'] === AGENT,
    )

    await page.getByRole('button', { name: 'Add a relation' }).click()
    await page.getByRole('menuitem', { name: 'Blocked by…' }).click()
    await page.getByPlaceholder('Find a task…').fill('renamed')
    await page.getByRole('option', { name: /Second task/ }).click()
    await page.getByRole('heading', { name: 'Blocked by' }).waitFor()
    await drained(page)
    expect(await server.rows('select relation_type from task_relations where deleted_at is null')).toEqual([
      { relation_type: 'blocks' },
    ])
  })

  it('deliverables: a revision needs a note, the new version folds the old one, approval closes the task', async () => {
    const plan = await onServer('Write the plan')
    const deliver = (n: number, body: string, supersedes: string | null) =>
      server.rows(
        `insert into entity_links (id, tenant_id, owner_type, owner_id, target_type, label, body, is_deliverable, review_status,
           submitted_by_agent_id, supersedes_id)
         values ($1, $2, 'task', $3, 'text', 'The plan', $4, true, 'submitted', $5, $6)`,
        [id(n), plan?.['tenant_id'], plan?.['id'], body, AGENT, supersedes],
      )
    await deliver(30, '# Plan\n\n1. Begin\n2. End\n\n| a | b |\n|---|---|\n| 1 | 2 |', null)
    await go(`/tasks/${plan?.['id']}`)
    await page.getByRole('button', { name: 'Request revision' }).click()
    await page.getByRole('button', { name: 'Request revision' }).last().click()
    await page.getByText('Say what should change').waitFor()
    await page.getByRole('textbox', { name: 'What should change?' }).fill('Say **when**.')
    await type('Control+Enter')
    const link = async (n: number) =>
      (await server.rows<Record<string, unknown>>('select * from entity_links where id = $1', [id(n)]))[0]
    await eventually(
      'the revision is asked for',
      async () => (await link(30))?.['review_status'] === 'revision_requested',
    )
    expect(await link(30)).toMatchObject({ review_note: 'Say **when**.' })
    expect((await link(30))?.['reviewed_by']).not.toBeNull()

    await deliver(31, '# Plan\n\n1. Begin on Monday\n2. End on Friday', id(30))
    await page.getByText('End on Friday').waitFor()
    await page.getByText('1 earlier version').waitFor()
    await look(page, 'task')
    await page.getByRole('button', { name: 'Approve' }).click()
    await eventually('approved', async () => (await link(31))?.['review_status'] === 'approved')
    await eventually('the task is done', async () => (await task('Write the plan'))?.['status'] === 'done')
  })

  it('without a server everything works, and a refusal is shown with its reason', async () => {
    await go('/tasks')
    const plan = await onServer('Write the plan')
    await server.rows(
      `insert into entity_links (id, tenant_id, owner_type, owner_id, target_type, label, body, is_deliverable, review_status, submitted_by_agent_id)
       values ($1, $2, 'task', $3, 'text', 'Late', 'text', true, 'submitted', $4)`,
      [id(40), plan?.['tenant_id'], plan?.['id'], AGENT],
    )
    await eventually(
      'it is here',
      async () => (await query(page, 'select 1 from entity_links where id = $1', [id(40)])).length === 1,
    )
    // Cold pages without a server come from the service worker, which must have everything first.
    await eventually('the service worker is there', () =>
      page.evaluate('navigator.serviceWorker.getRegistration().then((r) => r?.active?.state === "activated")'),
    )
    await server.kill()
    await type('c')
    await page.keyboard.type('Made offline')
    await type('Enter', 'Escape')
    await row('Made offline').getByRole('img', { name: 'Waiting to sync' }).waitFor()
    await page.goto(`${server.url}/tasks/${plan?.['id']}`)
    await page.getByRole('article', { name: 'Late' }).getByRole('button', { name: 'Approve' }).click()
    await page.getByRole('article', { name: 'Late' }).getByText('Approved').waitFor()
    // Meanwhile somebody else rejects the same version.
    await server.rows(`update entity_links set review_status = 'rejected', updated_at = now() where id = $1`, [id(40)])
    await server.start()
    await page
      .getByRole('article', { name: 'Late' })
      .getByRole('button', { name: /Rejected by the server/ })
      .click({ timeout: 60_000 })
    await page.waitForURL(/\/sync/)
    await eventually(
      'what was made offline arrives',
      async () => (await onServer('Made offline'))?.['status'] === 'todo',
      60_000,
    )
  })

  it('three tasks with long German and Japanese text', async () => {
    await server.rows(`update tasks set archived_at = now() where parent_id is null`)
    const [workspace] = await server.rows<{ tenant_id: string }>('select tenant_id from workspace')
    for (const [i, title] of [LONG_GERMAN, LONG_JAPANESE, 'Short'].entries())
      await server.rows(
        `insert into tasks (id, tenant_id, title, description, priority, due_date, tags, assignee_type, assignee_agent_id, sort_order)
         values ($1, $2, $3, $3, 'urgent', now() - interval '2 days', '{Öffentlichkeitsarbeit,東京}', 'agent', $4, $5)`,
        [id(50 + i), workspace?.tenant_id, title, AGENT, i],
      )
    await go('/tasks')
    await row('Short').waitFor()
    await eventually('only three', async () => (await page.getByRole('row').count()) === 4)
    await look(page, 'three')
    await go(`/tasks/${id(50)}`)
    await page.getByRole('textbox', { name: 'Title' }).waitFor()
    await look(page, 'long')
  })

  it('10,000 tasks: the list reaches its end, searches and stays in step', async () => {
    const [workspace] = await server.rows<{ tenant_id: string }>('select tenant_id from workspace')
    await server.rows(
      `insert into tasks (id, tenant_id, title, status, priority, sort_order, due_date)
       select gen_random_uuid(), $1, 'Bulk ' || i, (array['todo','in_progress','blocked','done','cancelled'])[1 + i % 5],
         (array['low','medium','high','urgent'])[1 + i % 4], i, case when i % 4 = 0 then now() + (i % 60 - 20) * interval '1 day' end
       from generate_series(1, 10000) i`,
      [workspace?.tenant_id],
    )
    await go('/tasks')
    await eventually(
      'all have arrived',
      async () => ((await query<{ n: number }>(page, 'select count(*)::int as n from tasks'))[0]?.n ?? 0) > 10_000,
      60_000,
    )
    const grid = page.getByRole('grid', { name: 'Tasks' })
    await grid.focus()
    // Done and Cancelled are closed: the last open task is a blocked one, then come two headings. The list may be a moment behind the database.
    await eventually('the end of the list', async () => {
      await type('End')
      return await row('Bulk 9997').isVisible()
    })
    expect(await page.getByRole('row').count()).toBeLessThan(90)
    await type('Home')
    await row('Bulk 5').first().waitFor()
    await look(page, 'many')
    await type('/')
    await page.keyboard.type('bulk 777')
    await row('Bulk 7770').waitFor()
    await type('Enter')
    await eventually('the address follows', async () => page.url().includes('q=bulk'))
    await go('/tasks?view=board')
    await page.locator('[data-card]').first().waitFor()
    expect(await page.locator('[data-card]').count()).toBeLessThan(120)
    await look(page, 'board-many')
  })

  it('no page logged an error', () => {
    const unexpected = device.problems.filter((problem) => !/Failed to load resource|net::|WebSocket/.test(problem))
    expect(unexpected).toEqual([])
  })
})
