/**
 * The SQL that ties one synced table to the outbox and to the apply layer, made from its declaration.
 *
 * Per table `x`: capture triggers (skipped while `sync.applying` is on), and three functions that run with `sync.applying` on:
 *  - `sync.apply_x(rows jsonb, deletes uuid[]) → uuid[]`  what the server sent; values are text, cast by Postgres (R7); ids that really changed
 *  - `sync.fold_x(ids uuid[]) → uuid[]`                   rows with pending mutations, computed anew from base and patches
 *  - `sync.swap_x()`                                      the staged snapshot becomes the table, in one go (R6)
 *
 * A1 An upsert that changes nothing writes nothing and reports nothing (R2).
 * A2 What arrives for a row with a `pending_base` goes there, never over the local change.
 * A3 A column that the sender does not know gets its default, so that a newer replica reads an older server.
 */
import type { PGlite } from '@electric-sql/pglite'
import type { MergeRule, TableSpec } from '../schema/columns.ts'
import { quote } from '../schema/sql.ts'

const EXACT_TYPES = new Set(['bigint', 'numeric', 'double precision'])

/** Columns whose values travel as strings in patches, so that no digit is lost. */
export const exactColumns = (table: TableSpec): string[] =>
  Object.entries(table.columns).flatMap(([name, { spec }]) => (EXACT_TYPES.has(spec.type) ? [name] : []))

export const columnsWith = (table: TableSpec, rule: MergeRule): string[] =>
  Object.entries(table.columns).flatMap(([name, { spec }]) => (spec.merge === rule ? [name] : []))

/** Columns that only the server writes: never sent. */
export const serverColumns = (table: TableSpec): string[] => columnsWith(table, 'server')

const textArray = (names: readonly string[]): string => `'{${names.join(',')}}'`

/** Attaches all tables, once per declaration: the fingerprint says what is attached. */
export async function attachTables(db: PGlite, tables: readonly TableSpec[]): Promise<void> {
  const sql = tables.map(attachTable).join('\n')
  const fingerprint = fingerprintOf(sql)
  const known = await db.query('select from sync.attached where fingerprint = $1', [fingerprint])
  if (known.rows.length > 0) return
  await db.exec(
    `begin;\n${sql}\ndelete from sync.attached; insert into sync.attached values ('${fingerprint}');\ncommit;`,
  )
}

/** FNV-1a over the text: tells declarations apart, nothing more. */
export function fingerprintOf(text: string): string {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return `${(hash >>> 0).toString(16)}-${text.length}`
}

export function attachTable(table: TableSpec): string {
  const { name } = table
  const t = quote(name)
  const columns = Object.entries(table.columns)
  const names = columns.map(([column]) => quote(column))
  const list = names.join(', ')
  const asText = names.map((column) => `${column} text`).join(', ')
  /** From text, by Postgres' own input functions. */
  const cast = columns.map(([column, { spec }]) => withDefault(`r.${quote(column)}::${spec.type}`, spec)).join(', ')
  /** From jsonb_populate_record, already typed. */
  const typed = columns.map(([column, { spec }]) => withDefault(`r.${quote(column)}`, spec)).join(', ')
  const assignments = names.filter((column) => column !== '"id"').map((column) => `${column} = excluded.${column}`)
  const upsert = `on conflict (id) do update set ${assignments.join(', ')} where (t.*) is distinct from (excluded.*)`
  const exact = exactColumns(table)
  const image = (row: string): string =>
    exact.length === 0
      ? `to_jsonb(${row})`
      : `to_jsonb(${row}) || jsonb_build_object(${exact.map((column) => `'${column}', ${row}.${quote(column)}::text`).join(', ')})`
  const triggers = triggersOf(table)
  const sums = textArray(columnsWith(table, 'increment'))
  const sets = textArray(columnsWith(table, 'add_remove'))

  return `
${triggers}
create or replace function sync.${quote(`fold_${name}`)}(ids uuid[]) returns uuid[] language plpgsql set sync.applying = 'on' as $fn$
declare
  changed uuid[];
begin
  with folded as materialized (select i.id, sync.folded('${name}', i.id, ${sums}, ${sets}) as seen from unnest(ids) i(id)),
  gone as (delete from ${t} t using folded f where f.seen is null and t.id = f.id returning t.id),
  kept as (
    insert into ${t} as t (${list})
    select ${typed} from folded f, jsonb_populate_record(null::${t}, f.seen) r where f.seen is not null
    ${upsert} returning t.id)
  select array_agg(id) into changed from (select id from gone union all select id from kept) c;
  return coalesce(changed, '{}');
end $fn$;

create or replace function sync.${quote(`apply_${name}`)}(rows jsonb, deletes uuid[]) returns uuid[] language plpgsql set sync.applying = 'on' as $fn$
declare
  held uuid[] := '{}';
  changed uuid[];
begin
  if exists (select from sync.pending_base where table_name = '${name}') then
    with r as materialized (select ${cast} from jsonb_to_recordset(rows) as r(${asText})),
    incoming(${list}) as (select * from r),
    new as (
      update sync.pending_base b set "row" = ${image('i')} from incoming i
      where b.table_name = '${name}' and b.row_id = i.id returning b.row_id),
    gone as (
      update sync.pending_base b set "row" = null where b.table_name = '${name}' and b.row_id = any (deletes) returning b.row_id)
    select array_agg(row_id) into held from (select row_id from new union select row_id from gone) h;
    held := coalesce(held, '{}');
  end if;
  with gone as (delete from ${t} t where t.id = any (deletes) and t.id <> all (held) returning t.id),
  kept as (
    insert into ${t} as t (${list})
    select ${cast} from jsonb_to_recordset(rows) as r(${asText}) where cardinality(held) = 0 or r.id::uuid <> all (held)
    ${upsert} returning t.id)
  select array_agg(id) into changed from (select id from gone union all select id from kept) c;
  if cardinality(held) > 0 then changed := coalesce(changed, '{}') || sync.${quote(`fold_${name}`)}(held); end if;
  return coalesce(changed, '{}');
end $fn$;

create or replace function sync.${quote(`swap_${name}`)}() returns void language plpgsql set sync.applying = 'on' as $fn$
begin
  update sync.pending_base b set "row" = (
    select ${image('i')} from (
      select ${cast} from sync.staging s, jsonb_to_record(s."row") as r(${asText}) where s.table_name = '${name}' and s.row_id = b.row_id
    ) i(${list}))
    where b.table_name = '${name}';
  delete from ${t} t where not exists (select from sync.staging s where s.table_name = '${name}' and s.row_id = t.id)
    and not exists (select from sync.pending_base b where b.table_name = '${name}' and b.row_id = t.id);
  insert into ${t} as t (${list})
    select ${cast} from sync.staging s, jsonb_to_record(s."row") as r(${asText}) where s.table_name = '${name}'
      and not exists (select from sync.pending_base b where b.table_name = '${name}' and b.row_id = s.row_id)
    ${upsert};
  perform sync.${quote(`fold_${name}`)}(array(select row_id from sync.pending_base where table_name = '${name}'));
  delete from sync.staging where table_name = '${name}';
end $fn$;
`
}

const withDefault = (value: string, spec: { nullable: boolean; default: string | undefined }): string =>
  spec.nullable || spec.default === undefined ? value : `coalesce(${value}, ${spec.default})`

function triggersOf(table: TableSpec): string {
  const t = quote(table.name)
  const local = `when (current_setting('sync.applying', true) is distinct from 'on')`
  return `
drop trigger if exists sync_touch on ${t};
create trigger sync_touch before update on ${t} for each row ${local} execute function sync.touch();
drop trigger if exists sync_soft_delete on ${t};
create trigger sync_soft_delete before delete on ${t} for each row ${local} execute function sync.soft_delete();
drop trigger if exists sync_capture on ${t};
create trigger sync_capture after insert or update on ${t} for each row ${local}
  execute function sync.capture(${textArray(serverColumns(table))}, ${textArray(exactColumns(table))});
drop trigger if exists sync_truncate on ${t};
create trigger sync_truncate before truncate on ${t} for each statement execute function sync.refuse_truncate();`
}
