/**
 * The record of writes already carried out on this device, which makes a write safe to ask for again.
 *
 * It lives beside the replica's own tables in the schema `hq_client`, is written in the same transaction as the write it
 * records, and is kept for an hour: nobody asks again after `CALL_LIMIT_MS`.
 */
export const CLIENT_SCHEMA_SQL = `
create schema if not exists hq_client;
create table if not exists hq_client.writes (
  id uuid primary key,
  result text not null,
  at timestamptz not null default now()
);
create index if not exists writes_at_idx on hq_client.writes (at);
`

export const FIND_WRITE = 'select result from hq_client.writes where id = $1'
export const RECORD_WRITE = 'insert into hq_client.writes (id, result) values ($1, $2)'
export const PRUNE_WRITES = `delete from hq_client.writes where at < now() - interval '1 hour'`
