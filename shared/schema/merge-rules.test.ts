/** Every column declares its rule, and nobody gets `lww` without having thought of it: whoever adds a column meets these lists. */
import { expect, test } from 'vitest'
import type { MergeRule } from './columns.ts'
import { tables } from './tables.ts'

const columns = Object.values(tables).flatMap(({ name, write, columns }) =>
  Object.entries(columns).map(([column, { spec }]) => ({ table: name, column, spec, write })),
)
const withRule = (...rules: MergeRule[]): Record<string, string> => {
  const found: Record<string, string> = {}
  for (const { table, column, spec } of columns) {
    if (rules.includes(spec.merge)) found[table] = found[table] ? `${found[table]} ${column}` : column
  }
  return found
}

test('what the later clock decides, the loser kept', () => {
  expect(withRule('lww')).toMatchInlineSnapshot(`
    {
      "agent_budgets": "monthly_limit_usd monthly_limit_tokens soft_threshold_pct hard_cutoff",
      "agent_commands": "cancel_requested_at",
      "agents": "name description pause_requested_at paused_by runtime model thinking tool_policy reports_to_id meta",
      "approvals": "decided_by decided_at note",
      "comments": "body",
      "conflicts": "resolved_at",
      "contacts": "name email phone company title location website_url linkedin_url notes source status priority last_contact_date extended archived_at",
      "entity_links": "url label body review_round review_note reviewed_by reviewed_at",
      "gateways": "label pause_requested_at",
      "knowledge_items": "title icon scope plain_text mime_type file_size archived_at",
      "model_connections": "label base_url default_model secret_id oauth is_default",
      "notification_reads": "read_at dismissed_at",
      "people": "name avatar_color timezone",
      "secrets": "name note",
      "streams": "name description color icon type is_archived",
      "tasks": "title description status priority stream_id parent_id assignee_type assignee_agent_id assignee_person_id assignment_generation model_override thinking_override due_date completed_at contact_id archived_at",
      "workspace": "name description owner_name owner_preferred_name owner_timezone settings default_agent_budget_usd default_soft_threshold_pct default_hard_cutoff",
    }
  `)
})

test('what is neither the later clock nor written once', () => {
  expect(withRule('strict', 'increment', 'add_remove', 'last')).toMatchInlineSnapshot(`
    {
      "agents": "gateway_id domains capabilities",
      "approvals": "status",
      "contacts": "tags",
      "entity_links": "sort_order review_status",
      "knowledge_items": "tags",
      "people": "role",
      "sealed_secrets": "sealed",
      "secrets": "version",
      "streams": "sort_order",
      "tasks": "tags sort_order",
    }
  `)
})

test('a list of words is a set, a place in an order is not worth a conflict, a delete wins', () => {
  for (const { table, column, spec } of columns) {
    const where = `${table}.${column}`
    if (spec.type === 'text[]') expect(['add_remove', 'owner', 'immutable'], where).toContain(spec.merge)
    if (/^(sort_order|position)$/.test(column)) expect(spec.merge, where).toBe('last')
    expect(spec.merge === 'delete', where).toBe(column === 'deleted_at')
    if (spec.merge === 'increment') expect(spec.type, where).toMatch(/integer|bigint|numeric/)
  }
})

test('what no person may write has no rule for people', () => {
  for (const { table, column, spec, write } of columns) {
    if (write.browser !== 'none' || column === 'deleted_at') continue
    expect(['immutable', 'owner', 'server'], `${table}.${column}`).toContain(spec.merge)
  }
})

test('what identifies a row, and whose it is, is written once', () => {
  for (const { table, column, spec } of columns) {
    if (['id', 'tenant_id', 'created_at'].includes(column)) expect(spec.merge, `${table}.${column}`).toBe('immutable')
  }
})
