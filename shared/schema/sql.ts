/**
 * SQL of the declared schema. Pure: the same declaration gives the same text.
 *
 * S1 Both sides create the same columns with the same types, defaults and NOT NULL.
 * S2 Only the server has foreign keys, CHECKs and uniqueness: a replica must accept in any order whatever the server accepted.
 * S3 Foreign keys are deferred: one mutation may insert a child before its parent.
 * S4 A row refers only to rows of its own tenant, so that nobody can bind, or find out about, what another tenant has.
 */
import type { ColumnSpec, TableSpec } from './columns.ts'
import { ENUMS } from './enums.ts'

export const quote = (name: string): string => `"${name.replaceAll('"', '""')}"`
const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`

/** CREATE TABLE and indexes, for both sides (S1). */
export function createTable({ name, columns, indexes }: TableSpec): string {
  const lines = Object.entries(columns).map(([column, { spec }]) => `  ${columnDefinition(column, spec)}`)
  const statements = [`create table ${quote(name)} (\n${lines.join(',\n')}\n);`]
  for (const index of indexes) {
    const label = quote(`${name}_${index.join('_')}_idx`)
    statements.push(`create index ${label} on ${quote(name)} (${index.map(quote).join(', ')});`)
  }
  return statements.join('\n')
}

function columnDefinition(name: string, spec: ColumnSpec): string {
  const parts = [quote(name), spec.type]
  if (spec.primaryKey) parts.push('primary key')
  else if (!spec.nullable) parts.push('not null')
  if (spec.default !== undefined) parts.push(`default ${spec.default}`)
  return parts.join(' ')
}

/** What the shapes of a table ask for: the tenant, and what else is equal in all rows that one reader sees (shared/domain/access.ts). */
function shapeColumns({ visibility: { browser, gateway } }: TableSpec): string[] {
  const narrower = { own: 'gateway_id', person: 'person_id', replica: 'replica_id' } as const
  const found = [browser, gateway].flatMap((seen) => (seen in narrower ? narrower[seen as keyof typeof narrower] : []))
  return ['tenant_id', ...new Set(found)]
}

/** What only the server enforces (S2), and what logical decoding needs. */
export function constrainTable(table: TableSpec, isReferred: boolean): string {
  const name = quote(table.name)
  const statements = [`alter table ${name} replica identity full;`]
  // What is referred to has a unique index that begins with the tenant.
  if (table.columns['tenant_id'] && !isReferred)
    statements.push(`create index ${quote(`${table.name}_tenant_idx`)} on ${name} (${shapeColumns(table).join(', ')});`)
  for (const [column, { spec }] of Object.entries(table.columns)) {
    if (spec.enum) {
      const values = ENUMS[spec.enum].map(literal).join(', ')
      statements.push(
        `alter table ${name} add constraint ${quote(`${table.name}_${column}_check`)} check (${quote(column)} in (${values}));`,
      )
    }
    if (spec.references) {
      const [target = '', key = 'id'] = spec.references.split('.')
      const within = target === TENANTS_TABLE ? [] : ['tenant_id']
      const [from, to] = [
        [...within, column],
        [...within, key],
      ].map((names) => names.map(quote).join(', '))
      statements.push(
        `alter table ${name} add constraint ${quote(`${table.name}_${column}_fkey`)} foreign key (${from}) ` +
          `references ${quote(target)} (${to}) deferrable initially deferred;`,
      )
    }
  }
  for (const { columns, where } of table.unique) {
    const label = quote([table.name, ...columns, 'key'].join('_'))
    statements.push(
      `create unique index ${label} on ${name} (${['tenant_id', ...columns].map(quote).join(', ')})${where ? ` where ${where}` : ''};`,
    )
  }
  return statements.join('\n')
}

/** What foreign keys within a tenant refer to (S4). */
const uniqueWithinTenant = (name: string): string =>
  `alter table ${quote(name)} add constraint ${quote(`${name}_tenant_key`)} unique ("tenant_id", "id");`

/** The whole first migration: `-- @both` is for server and replica, `-- @server` for the server only. */
export function initialMigration(tables: readonly TableSpec[]): string {
  const both = tables.map(createTable)
  const referred = new Set(
    tables.flatMap(({ columns }) => Object.values(columns).map(({ spec }) => spec.references?.split('.')[0])),
  )
  const server = [
    ...tables.filter(({ name }) => referred.has(name)).map(({ name }) => uniqueWithinTenant(name)),
    ...tables.map((table) => constrainTable(table, referred.has(table.name))),
  ]
  return [
    '-- Made by `npm run schema` from shared/schema. Do not edit: change the declaration.',
    '-- @server',
    TENANTS,
    '-- @both',
    ...both,
    '-- @server',
    ...server,
    '',
  ].join('\n\n')
}

const TENANTS_TABLE = 'tenants'

const TENANTS = `create table "tenants" (
  "id" uuid primary key,
  "name" text not null,
  "slug" text not null unique,
  "created_at" timestamptz not null default now()
);`
