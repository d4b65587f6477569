/**
 * Publishes what this gateway's templates are, as `agent_templates` rows. A broken one is a row with `error`; one that is gone gets a
 * tombstone. Ids come from gateway and slug, so that a template that comes back is the same row. Only changes are written.
 */
import { derivedId } from '@hq/shared/domain/ids.ts'
import type { Row } from '@hq/shared/schema/tables.ts'
import type { GatewayContext } from '../service.ts'
import type { TemplateReport } from './contract.ts'

type Context = Pick<GatewayContext, 'replica' | 'gatewayId' | 'tenantId' | 'now'>
const COLUMNS = ['name', 'description', 'emoji', 'team', 'domains', 'capabilities', 'error'] as const
type Shown = Pick<Row<'agent_templates'>, (typeof COLUMNS)[number]>

/** How many rows were written. */
export async function publishTemplates(context: Context, reports: readonly TemplateReport[]): Promise<number> {
  const { replica, gatewayId, tenantId } = context
  const rows = await replica.query<Row<'agent_templates'>>('select * from agent_templates where gateway_id = $1', [
    gatewayId,
  ])
  const known = new Map(rows.map((row) => [row.slug, row]))
  let written = 0
  await replica.write(async (tx) => {
    for (const report of reports) {
      const row = known.get(report.slug)
      known.delete(report.slug)
      const shown = show(report)
      const values = COLUMNS.map((name) => shown[name])
      if (!row) {
        await tx.query(
          `insert into agent_templates (id, tenant_id, gateway_id, slug, ${COLUMNS.join(', ')}) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
          [derivedId('agent_template', gatewayId, report.slug), tenantId, gatewayId, report.slug, ...values],
        )
      } else if (
        row.deleted_at !== null ||
        COLUMNS.some((name) => JSON.stringify(row[name]) !== JSON.stringify(shown[name]))
      ) {
        const set = COLUMNS.map((name, index) => `${name} = $${index + 2}`).join(', ')
        await tx.query(`update agent_templates set ${set}, deleted_at = null where id = $1`, [row.id, ...values])
      } else continue
      written += 1
    }
    for (const { id, deleted_at } of known.values()) {
      if (deleted_at !== null) continue
      await tx.query('update agent_templates set deleted_at = $2 where id = $1', [id, new Date(context.now())])
      written += 1
    }
  })
  return written
}

const show = ({ slug, template, error }: TemplateReport): Shown => ({
  name: template?.name ?? slug,
  description: template?.description ?? '',
  emoji: template?.emoji ?? '',
  team: template?.team ?? null,
  domains: [...(template?.domains ?? [])],
  capabilities: [...(template?.capabilities ?? [])],
  error: error ?? null,
})
