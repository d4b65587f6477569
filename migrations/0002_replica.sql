-- What a replica keeps beside the synced tables: identity, outbox, the server's version of rows with pending changes, positions of shapes.
-- Triggers and the per-table functions `sync.apply_x`, `sync.fold_x`, `sync.swap_x` are made by shared/sync/attach.ts from shared/schema.
--
-- C1 One local transaction is one mutation: its first captured row takes the next `seq`, in that transaction, so that a rollback gives it back.
-- C2 Per row and mutation there is one patch: insert+update is an insert, update+update one update with the first base, and what nets to nothing is nothing.
-- C3 Columns with the merge rule `server` are never sent; what was put there is kept in `local`, so that folding gives back what the writer saw.
-- C4 A mutation that the server could not take for its size is refused here, when it is written.
-- C5 The clock of mutations never goes back, also not over a restart or when the machine's clock does.

-- @replica

create schema if not exists sync;

create table sync.replica (
  only_row boolean primary key default true check (only_row),
  replica_id uuid not null,
  tenant_id uuid not null,
  kind text not null,
  owner_id uuid not null,
  guard text,
  next_seq bigint not null default 1,
  hlc_ms bigint not null default 0,
  hlc_counter integer not null default 0,
  ack_seq bigint not null default 0,
  ack_lsn numeric,
  ack_mutation uuid
);

create table sync.attached (fingerprint text primary key);

create table sync.outbox (
  seq bigint primary key,
  mutation_id uuid not null,
  actor_type text,
  actor_id uuid,
  run_id uuid,
  hlc text,
  created_at timestamptz,
  state text not null default 'pending' check (state in ('pending', 'accepted', 'rejected')),
  code text,
  message text,
  bytes bigint not null default 0
);

create table sync.patches (
  seq bigint not null,
  n bigint not null,
  table_name text not null,
  row_id uuid not null,
  op text not null,
  set jsonb not null,
  base jsonb not null,
  local jsonb not null,
  primary key (seq, table_name, row_id)
);
-- Orders the patches of a mutation; gaps mean nothing.
create sequence sync.patch_order;
create index patches_row_idx on sync.patches (table_name, row_id);

create table sync.pending_base (
  table_name text not null,
  row_id uuid not null,
  "row" jsonb,
  primary key (table_name, row_id)
);

create table sync.shapes (
  table_name text primary key,
  handle text,
  "offset" text not null,
  position numeric not null default 0,
  loaded boolean not null default false,
  "schema" text
);

create table sync.staging (
  table_name text not null,
  row_id uuid not null,
  "row" jsonb not null,
  primary key (table_name, row_id)
);

-- For badges: every row that is not (only) what the server says, with the newest reason. Rejected rows stay until retried or discarded.
create view sync.row_states as
  select distinct on (p.table_name, p.row_id) p.table_name, p.row_id, o.state, o.seq, o.code, o.message
  from sync.patches p join sync.outbox o using (seq)
  order by p.table_name, p.row_id, (o.state = 'rejected') desc, o.seq desc;

create function sync.begin_mutation() returns bigint language plpgsql as $$
declare
  taken bigint;
begin
  -- `next_seq` itself moves in `finish`, together with the clock.
  select next_seq into taken from sync.replica;
  if taken is null then
    raise exception 'This database is not a replica yet, so a change could not be recorded.'
      using errcode = 'HQ001', hint = 'Open it with openReplica before writing.';
  end if;
  insert into sync.outbox (seq, mutation_id) values (taken, uuidv7());
  perform set_config('sync.seq', taken::text, true);
  return taken;
end $$;

-- Arguments: columns of merge rule 'server', columns whose values travel as strings.
create function sync.capture() returns trigger language plpgsql as $$
declare
  server text[] := tg_argv[0];
  exact text[] := tg_argv[1];
  mutation bigint := nullif(current_setting('sync.seq', true), '');
  after jsonb := to_jsonb(new);
  before jsonb;
  was sync.patches;
  new_set jsonb;
  new_base jsonb := '{}';
  new_local jsonb;
begin
  if tg_op = 'UPDATE' then
    before := to_jsonb(old);
    if before = after then return null; end if;
    if old.id <> new.id or old.tenant_id <> new.tenant_id then
      raise exception 'The id and the workspace of a row of % cannot be changed.', tg_table_name
        using errcode = 'HQ002', hint = 'Insert a new row and delete this one.';
    end if;
  end if;
  if cardinality(exact) > 0 then
    after := after || (select jsonb_object_agg(k, after ->> k) from unnest(exact) k);
    if before is not null then before := before || (select jsonb_object_agg(k, before ->> k) from unnest(exact) k); end if;
  end if;

  if mutation is null then mutation := sync.begin_mutation();
  else select * into was from sync.patches where seq = mutation and table_name = tg_table_name and row_id = new.id;
  end if;
  if was.seq is null then
    insert into sync.pending_base values (tg_table_name, new.id, before) on conflict do nothing;
  end if;

  if tg_op = 'INSERT' or was.op = 'insert' then
    select coalesce(jsonb_object_agg(key, value) filter (where key <> all (server)), '{}'),
           coalesce(jsonb_object_agg(key, value) filter (where key = any (server)), '{}')
      into new_set, new_local from jsonb_each(after) where value <> 'null';
  else
    select coalesce(jsonb_object_agg(key, value) filter (where key <> all (server)), '{}'),
           coalesce(jsonb_object_agg(key, before -> key) filter (where key <> all (server)), '{}'),
           coalesce(jsonb_object_agg(key, value) filter (where key = any (server)), '{}')
      into new_set, new_base, new_local from jsonb_each(after) where value <> before -> key;
    if was.seq is not null then
      new_set := was.set || new_set;
      new_base := new_base || was.base;
      new_local := was.local || new_local;
      select coalesce(jsonb_object_agg(key, value), '{}'), coalesce(jsonb_object_agg(key, new_base -> key), '{}')
        into new_set, new_base from jsonb_each(new_set) where value <> new_base -> key;
    end if;
  end if;

  if was.seq is null then
    insert into sync.patches
      values (mutation, nextval('sync.patch_order'), tg_table_name, new.id, lower(tg_op), new_set, new_base, new_local);
  else
    update sync.patches set set = new_set, base = new_base, local = new_local
      where seq = mutation and table_name = tg_table_name and row_id = new.id;
  end if;
  return null;
end $$;

create function sync.touch() returns trigger language plpgsql as $$
begin
  if new is distinct from old then new.updated_at := clock_timestamp(); end if;
  return new;
end $$;

-- DELETE marks the row. Only a row that was made in this same transaction really goes, and its patch with it.
create function sync.soft_delete() returns trigger language plpgsql as $$
declare
  mutation bigint := nullif(current_setting('sync.seq', true), '');
begin
  if mutation is not null then
    delete from sync.patches where seq = mutation and table_name = tg_table_name and row_id = old.id and op = 'insert';
    if found then
      perform sync.drop_bases(tg_table_name, array[old.id]);
      return old;
    end if;
  end if;
  execute format('update %I set deleted_at = clock_timestamp() where id = $1 and deleted_at is null', tg_table_name) using old.id;
  return null;
end $$;

create function sync.refuse_truncate() returns trigger language plpgsql as $$
begin
  raise exception 'A synced table cannot be truncated: %', tg_table_name using errcode = 'HQ003', hint = 'Delete its rows instead.';
end $$;

-- Forgets the server's version of rows that have no live patch (any more).
create function sync.drop_bases(name text, ids uuid[]) returns void language sql as $$
  delete from sync.pending_base b where b.table_name = name and b.row_id = any (ids)
    and not exists (
      select from sync.patches p join sync.outbox o using (seq)
      where p.table_name = name and p.row_id = b.row_id and o.state <> 'rejected')
$$;

-- Completes the open mutation: drops what nets to nothing (C2), checks its size (C4), stamps it (C5). `seq` is null when nothing changed.
create function sync.finish(now_ms bigint, actor_type text, actor_id uuid, run_id uuid, out mutation bigint, out changes jsonb)
language plpgsql as $$
declare
  names text[];
  ids uuid[];
  me sync.replica;
  size bigint;
  patch_count bigint;
  empty_count bigint;
begin
  mutation := nullif(current_setting('sync.seq', true), '');
  if mutation is null then return; end if;
  select jsonb_object_agg(t.table_name, t.ids), sum(t.size), sum(t.kept), sum(t.total) - sum(t.kept) into changes, size, patch_count, empty_count
    from (
      select p.table_name, jsonb_agg(p.row_id) ids, count(*) total, count(*) filter (where p.op <> 'update' or p.set <> '{}') kept,
        sum(octet_length(p.set::text) + octet_length(p.base::text) + octet_length(p.table_name) + 100) size
      from sync.patches p where p.seq = mutation group by 1) t;
  if empty_count > 0 then
    -- Folded, because what nets to nothing has still moved columns of the server.
    with gone as (delete from sync.patches p where p.seq = mutation and p.op = 'update' and p.set = '{}' returning p.table_name, p.row_id)
    select array_agg(g.table_name), array_agg(g.row_id) into names, ids from gone g;
    perform sync.refold(names, ids);
  end if;
  perform set_config('sync.seq', '', true);

  if coalesce(patch_count, 0) = 0 then
    delete from sync.outbox o where o.seq = mutation;
    mutation := null;
    return;
  end if;
  if patch_count > 2000 or size > 2097152 then
    raise exception 'This change is too large to be sent: % rows, % bytes; the limits of one transaction are 2000 rows and 2097152 bytes.', patch_count, size
      using errcode = 'HQ413', hint = 'Write it in several transactions, or put large content into a file.';
  end if;

  update sync.replica r set
      next_seq = mutation + 1,
      hlc_ms = case when now_ms > r.hlc_ms then now_ms when r.hlc_counter < 65535 then r.hlc_ms else r.hlc_ms + 1 end,
      hlc_counter = case when now_ms > r.hlc_ms or r.hlc_counter >= 65535 then 0 else r.hlc_counter + 1 end
    returning * into me;
  update sync.outbox o set
      hlc = lpad(to_hex(me.hlc_ms), 12, '0') || '-' || lpad(to_hex(me.hlc_counter), 4, '0') || '-' || me.replica_id,
      created_at = to_timestamp(now_ms / 1000.0),
      bytes = size + 400,
      actor_type = coalesce(finish.actor_type, case me.kind when 'browser' then 'human' else 'system' end),
      actor_id = case when finish.actor_type is not null then finish.actor_id when me.kind = 'browser' then me.owner_id end,
      run_id = finish.run_id
    where o.seq = mutation;
end $$;

-- For SQL that came in by another way than `write`: completes the mutation at commit and says so on the channel `sync_written`.
create function sync.finish_at_commit() returns trigger language plpgsql as $$
declare
  done record;
begin
  if nullif(current_setting('sync.seq', true), '') is distinct from new.seq::text then return null; end if;
  done := sync.finish((extract(epoch from clock_timestamp()) * 1000)::bigint, null, null, null);
  if done.changes is not null then perform pg_notify('sync_written', coalesce(done.mutation::text, '')); end if;
  return null;
end $$;

create constraint trigger finish_at_commit after insert on sync.outbox
  deferrable initially deferred for each row execute function sync.finish_at_commit();

-- D1 of shared/schema/differences.ts. The result is text, so that no digit is lost.
create function sync.add_difference(present jsonb, base jsonb, wanted jsonb) returns jsonb language sql immutable as $$
  select to_jsonb((coalesce(present #>> '{}', '0')::numeric + coalesce(wanted #>> '{}', '0')::numeric - coalesce(base #>> '{}', '0')::numeric)::text)
$$;

-- D2, D3
create function sync.add_and_remove(present jsonb, base jsonb, wanted jsonb) returns jsonb language plpgsql immutable as $$
begin
  if jsonb_typeof(present) is distinct from 'array' then present := '[]'; end if;
  if jsonb_typeof(base) is distinct from 'array' then base := '[]'; end if;
  if jsonb_typeof(wanted) is distinct from 'array' then wanted := '[]'; end if;
  if present = base then return wanted; end if;
  return (
    select coalesce(jsonb_agg(e order by part, place), '[]') from (
      select e, 0 as part, place from jsonb_array_elements(present) with ordinality p(e, place)
        where not base @> jsonb_build_array(e) or wanted @> jsonb_build_array(e)
      union all
      select e, 1, min(place) from jsonb_array_elements(wanted) with ordinality w(e, place)
        where not base @> jsonb_build_array(e) and not present @> jsonb_build_array(e) group by e) x);
end $$;

-- The columns of a patch that are merged by their differences, as they are over the version `seen`.
create function sync.by_difference(seen jsonb, op text, set jsonb, base jsonb, sums text[], sets text[]) returns jsonb language sql immutable as $$
  select coalesce(jsonb_object_agg(k, v), '{}') from (
    select k, case op when 'insert' then coalesce(nullif(seen -> k, 'null'), set -> k) else sync.add_difference(seen -> k, base -> k, set -> k) end
      from unnest(sums) k where set ? k
    union all
    select k, sync.add_and_remove(seen -> k, base -> k, set -> k) from unnest(sets) k where set ? k) c(k, v)
$$;

-- The row as its readers see it: the server's version, then the live patches in order. Null: there is no such row.
-- `sums`, `sets`: its columns with the merge rules `increment` and `add_remove`.
create function sync.folded(name text, id uuid, sums text[], sets text[]) returns jsonb language plpgsql stable as $$
declare
  seen jsonb;
  patch record;
begin
  select b."row" into seen from sync.pending_base b where b.table_name = name and b.row_id = id;
  for patch in
    select p.op, p.set, p.base, p.local from sync.patches p join sync.outbox o using (seq)
    where p.table_name = name and p.row_id = id and o.state <> 'rejected' order by p.seq
  loop
    if seen is null then
      if patch.op = 'insert' then seen := patch.set || patch.local; end if;
    elsif patch.set ?| sums or patch.set ?| sets then
      seen := seen || patch.set || patch.local || sync.by_difference(seen, patch.op, patch.set, patch.base, sums, sets);
    else
      seen := seen || patch.set || patch.local;
    end if;
  end loop;
  return seen;
end $$;

-- Folds rows of several tables anew and forgets bases no longer needed. Returns {table: [ids that changed]}.
create function sync.refold(names text[], ids uuid[]) returns jsonb language plpgsql as $$
declare
  part record;
  changed uuid[];
  result jsonb := '{}';
begin
  for part in select t.name, array_agg(distinct t.id) ids from unnest(names, ids) t(name, id) group by 1 loop
    execute format('select sync.%I($1)', 'fold_' || part.name) into changed using part.ids;
    perform sync.drop_bases(part.name, part.ids);
    if cardinality(changed) > 0 then result := result || jsonb_build_object(part.name, changed); end if;
  end loop;
  return result;
end $$;

-- Ends all mutations up to `upto`, given under the identity `under`: the rejected ones stay in the outbox without effect, the others go; their rows are folded anew.
create function sync.settle(upto bigint, under uuid, out changes jsonb, out settled bigint, out rejected bigint) language plpgsql as $$
declare
  ending bigint[];
  refused bigint[];
  names text[];
  ids uuid[];
begin
  select coalesce(array_agg(o.seq), '{}') into ending from sync.outbox o
    where o.seq <= upto and o.state <> 'rejected' and o.seq > 0 and exists (select from sync.replica r where r.replica_id = under);
  with gone as (
    update sync.outbox o set state = 'rejected', code = coalesce(r.code, 'invalid'), message = coalesce(r.message, 'The server refused this change.')
    from mutation_results r, sync.replica me
    where o.seq = any (ending) and r.replica_id = me.replica_id and r.seq = o.seq and r.outcome = 'rejected' returning o.seq)
  select coalesce(array_agg(gone.seq), '{}') into refused from gone;
  select coalesce(array_agg(p.table_name), '{}'), coalesce(array_agg(p.row_id), '{}') into names, ids from sync.patches p where p.seq = any (ending);
  delete from sync.patches p where p.seq = any (ending) and p.seq <> all (refused);
  delete from sync.outbox o where o.seq = any (ending) and o.seq <> all (refused);
  changes := sync.refold(names, ids);
  settled := cardinality(ending) - cardinality(refused);
  rejected := cardinality(refused);
end $$;

-- The server has taken mutations up to `upto`, given under the identity `under`; that it keeps them comes by the shapes.
create function sync.accept(upto bigint, under uuid) returns void language sql as $$
  update sync.outbox o set state = 'accepted' from sync.replica r
    where r.replica_id = under and o.state = 'pending' and o.seq > 0 and o.seq <= upto
$$;

-- The server expects `expected` next: what is below it has been taken, the rest has not (any more), whatever it acknowledged before it was restored.
create function sync.realign(expected bigint, under uuid) returns void language sql as $$
  update sync.outbox o set state = case when o.seq < expected then 'accepted' else 'pending' end from sync.replica r
    where r.replica_id = under and o.state in ('pending', 'accepted') and o.seq > 0;
  update sync.replica r set ack_seq = 0, ack_lsn = null, ack_mutation = null where r.replica_id = under and r.ack_seq >= expected
$$;

-- Applies what came from shapes:
-- [{table, upserts: [{column: text}], deletes: [id], handle, offset, position, loaded, schema, ack_seq, ack_lsn, ack_mutation}].
-- Rows and positions change in one transaction (R1). Returns {table: [ids that changed]}.
create function sync.apply(batches jsonb) returns jsonb language plpgsql as $$
declare
  batch jsonb;
  changed uuid[];
  result jsonb := '{}';
begin
  for batch in select value from jsonb_array_elements(batches) loop
    execute format('select sync.%I($1, $2)', 'apply_' || (batch ->> 'table'))
      into changed using batch -> 'upserts', array(select jsonb_array_elements_text(batch -> 'deletes')::uuid);
    if cardinality(changed) > 0 then
      result := jsonb_set(result, array[batch ->> 'table'], coalesce(result -> (batch ->> 'table'), '[]') || to_jsonb(changed));
    end if;
    perform sync.keep_position(batch);
  end loop;
  return result;
end $$;

create function sync.keep_position(batch jsonb) returns void language plpgsql as $$
begin
  if batch ? 'offset' then
    insert into sync.shapes (table_name, handle, "offset", position, loaded, "schema")
      values (batch ->> 'table', batch ->> 'handle', batch ->> 'offset', (batch ->> 'position')::numeric, (batch ->> 'loaded')::boolean, batch ->> 'schema')
      on conflict (table_name) do update set handle = excluded.handle, "offset" = excluded."offset", position = excluded.position,
        loaded = excluded.loaded, "schema" = coalesce(excluded."schema", shapes."schema");
  end if;
  if batch ->> 'offset' = '0_inf' and batch ->> 'table' = 'client_progress' then
    -- The server may have been restored: what it acknowledged before is sent again unless it says so once more (core/overlay.ts, O7).
    update sync.replica set ack_seq = 0, ack_lsn = null, ack_mutation = null;
    update sync.outbox set state = 'pending' where state = 'accepted' and seq > 0;
  end if;
  if batch ? 'ack_seq' then
    update sync.replica set ack_seq = (batch ->> 'ack_seq')::bigint, ack_lsn = (batch ->> 'ack_lsn')::numeric,
        ack_mutation = (batch ->> 'ack_mutation')::uuid
      where ack_seq <= (batch ->> 'ack_seq')::bigint;
    update sync.outbox set state = 'accepted' where state = 'pending' and seq <= (batch ->> 'ack_seq')::bigint and seq > 0;
  end if;
end $$;

-- Pending mutations as the wire wants them, in order, at most `most` of them and about `most_bytes` (but one at least).
create function sync.to_push(most integer, most_bytes bigint) returns table (seq bigint, body text) language sql stable as $$
  select w.seq, jsonb_build_object(
      'seq', w.seq, 'mutation_id', w.mutation_id, 'run_id', w.run_id, 'hlc', w.hlc,
      'actor', jsonb_build_object('type', w.actor_type, 'id', w.actor_id),
      'patches', (
        select jsonb_agg(jsonb_build_object('table', p.table_name, 'id', p.row_id, 'op', p.op, 'set', p.set, 'base', p.base) order by p.n)
        from sync.patches p where p.seq = w.seq))::text
  from (select o.*, sum(o.bytes) over (order by o.seq) - o.bytes as before
        from (select * from sync.outbox where state = 'pending' and seq > 0 order by seq limit most) o) w
  where w.before = 0 or w.before + w.bytes <= most_bytes
  order by w.seq
$$;

-- A new identity: what is pending is numbered anew from 1, refused mutations get numbers below zero (they are never sent as they are),
-- and what belonged to the old identity's shapes is forgotten.
create function sync.remint(new_id uuid) returns void language plpgsql as $$
declare
  old record;
  fresh bigint := 0;
  aside bigint;
begin
  select least(coalesce(min(seq), 0), 0) into aside from sync.outbox;
  for old in select seq from sync.outbox where state = 'rejected' and seq > 0 order by seq loop
    aside := aside - 1;
    update sync.outbox set seq = aside where seq = old.seq;
    update sync.patches set seq = aside where seq = old.seq;
  end loop;
  for old in select seq from sync.outbox where seq > 0 order by seq loop
    fresh := fresh + 1;
    update sync.outbox set seq = fresh, state = 'pending' where seq = old.seq;
    update sync.patches set seq = fresh where seq = old.seq;
  end loop;
  update sync.replica set replica_id = new_id, next_seq = fresh + 1, ack_seq = 0, ack_lsn = null, ack_mutation = null;
  perform set_config('sync.applying', 'on', true);
  delete from client_progress;
  delete from mutation_results;
  delete from sync.shapes where table_name in ('client_progress', 'mutation_results');
  perform set_config('sync.applying', '', true);
end $$;

-- Outbox entries whole, for people and for the copy outside the database.
create view sync.entries as
  select o.seq, o.mutation_id, o.state, o.created_at, o.actor_type, o.actor_id, o.run_id, o.code, o.message,
    (select jsonb_agg(jsonb_build_object('table', p.table_name, 'id', p.row_id, 'op', p.op, 'set', p.set, 'base', p.base, 'local', p.local) order by p.n)
     from sync.patches p where p.seq = o.seq) as patches
  from sync.outbox o;

create function sync.copy_of(mutation bigint) returns text language sql stable as $$
  select to_jsonb(e)::text from sync.entries e where e.seq = mutation
$$;
