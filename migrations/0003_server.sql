-- What only the server has: sign-in, invitations, credentials of gateways, clocks of columns, and the two functions of the write path.
-- @server

-- better-auth 1.7 (its own column names; ids are its own random text).
create table "auth_user" (
  "id" text primary key,
  "name" text not null,
  "email" text not null unique,
  "emailVerified" boolean not null,
  "image" text,
  "createdAt" timestamptz not null default now(),
  "updatedAt" timestamptz not null default now()
);
create table "auth_session" (
  "id" text primary key,
  "expiresAt" timestamptz not null,
  "token" text not null unique,
  "createdAt" timestamptz not null default now(),
  "updatedAt" timestamptz not null,
  "ipAddress" text,
  "userAgent" text,
  "userId" text not null references "auth_user" ("id") on delete cascade
);
create table "auth_account" (
  "id" text primary key,
  "accountId" text not null,
  "providerId" text not null,
  "userId" text not null references "auth_user" ("id") on delete cascade,
  "accessToken" text,
  "refreshToken" text,
  "idToken" text,
  "accessTokenExpiresAt" timestamptz,
  "refreshTokenExpiresAt" timestamptz,
  "scope" text,
  "password" text,
  "createdAt" timestamptz not null default now(),
  "updatedAt" timestamptz not null
);
create table "auth_verification" (
  "id" text primary key,
  "identifier" text not null,
  "value" text not null,
  "expiresAt" timestamptz not null,
  "createdAt" timestamptz not null default now(),
  "updatedAt" timestamptz not null default now()
);
create index "auth_session_userId_idx" on "auth_session" ("userId");
create index "auth_account_userId_idx" on "auth_account" ("userId");
create index "auth_verification_identifier_idx" on "auth_verification" ("identifier");
create unique index people_user_key on people (user_id);

-- Links that let somebody in. Only the hash of the token is kept.
create table invitations (
  id uuid primary key,
  tenant_id uuid not null references tenants (id),
  email text,
  role text not null check (role in ('owner', 'admin', 'member', 'viewer')),
  token_hash text not null unique,
  invited_by uuid not null references people (id),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  accepted_at timestamptz,
  accepted_by uuid references people (id),
  revoked_at timestamptz
);

-- Single-use tokens with which a gateway introduces itself, and what it is known by afterwards. Hashes only.
create table gateway_registration_tokens (
  id uuid primary key,
  tenant_id uuid not null references tenants (id),
  label text,
  token_hash text not null unique,
  created_by uuid references people (id),
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  consumed_at timestamptz,
  consumed_by_gateway_id uuid references gateways (id),
  revoked_at timestamptz
);
create table gateway_credentials (
  id uuid primary key,
  gateway_id uuid not null references gateways (id),
  tenant_id uuid not null references tenants (id),
  token_hash text not null unique,
  created_at timestamptz not null default now(),
  revoked_at timestamptz
);

-- Facts about this database: `epoch` changes when it is restored from a backup.
create table server_state (
  key text primary key,
  value jsonb not null
);

-- The clock of each column of each row: {column: {"h": hlc, "t": actor type, "i": actor id}}; `*` stands for all columns of the insert.
create table row_clocks (
  tenant_id uuid not null references tenants (id),
  table_name text not null,
  row_id uuid not null,
  clocks jsonb not null,
  primary key (table_name, row_id)
);

-- Which mutation had which number of a replica: the newest 2,000 of each (push.ts), so that a copy of a replica is told from a repeat.
create table taken_mutations (
  replica_id uuid not null,
  seq bigint not null,
  mutation_id uuid not null,
  primary key (replica_id, seq)
);
create index taken_mutations_mutation_idx on taken_mutations (mutation_id);

-- The present rows of a push, locked, in one order for everybody (so that two pushes seldom deadlock).
-- p_refs: [{"table": …, "ids": […], "texts": [columns that travel as text]}], sorted by table.
create function hq_load(p_tenant uuid, p_refs jsonb)
returns table (table_name text, row_id uuid, data jsonb)
language plpgsql as $$
declare
  ref jsonb;
  texts text;
begin
  for ref in select value from jsonb_array_elements(p_refs) loop
    select coalesce(string_agg(format('%L, t.%I::text', c, c), ', '), '') into texts from jsonb_array_elements_text(ref->'texts') as c;
    return query execute format(
      'select %L::text, t.id, to_jsonb(t) || jsonb_build_object(%s) from public.%I t
        where t.id = any($1) and t.tenant_id = $2 order by t.id for no key update',
      ref->>'table', texts, ref->>'table')
      using array(select value::uuid from jsonb_array_elements_text(ref->'ids')), p_tenant;
  end loop;
end $$;

-- Writes planned mutations, each as a unit: a subtransaction, with all constraints checked before it ends.
-- Stops at the first one that the database refuses and says which and why; those before it stand.
-- p_entries: [{seq, mutation_id, ops: [{op: insert | ignore | update, table, columns, rows}], audit: [rows], clocks: [{table_name, row_id, clocks}],
--              result: null | {outcome, code, message, detail}}]
create function hq_apply(p_tenant uuid, p_replica uuid, p_entries jsonb)
returns jsonb
language plpgsql as $$
declare
  entry jsonb;
  op jsonb;
  columns text;
  at int := 0;
  v_state text; v_message text; v_constraint text; v_table text; v_column text; v_detail text;
begin
  for entry in select value from jsonb_array_elements(p_entries) loop
    begin
      for op in select value from jsonb_array_elements(entry->'ops') loop
        if op->>'op' = 'update' then
          select string_agg(quote_ident(c), ', ') into columns from jsonb_array_elements_text(op->'columns') as c;
          execute format(
            'update public.%I t set (%s) = (select %s from jsonb_populate_record(null::public.%I, $1)) where t.id = ($1->>''id'')::uuid and t.tenant_id = $2',
            op->>'table', columns, columns, op->>'table') using op->'rows'->0, p_tenant;
        else
          select string_agg(quote_ident(c), ', ') into columns from jsonb_array_elements_text(op->'columns') as c;
          execute format(
            'insert into public.%I (%s) select %s from jsonb_populate_recordset(null::public.%I, $1)%s',
            op->>'table', columns, columns, op->>'table',
            case op->>'op' when 'ignore' then ' on conflict do nothing' else '' end) using op->'rows';
        end if;
      end loop;
      if jsonb_array_length(entry->'audit') > 0 then
        insert into audit_log (id, tenant_id, actor_type, actor_id, replica_id, run_id, entity_type, entity_id, action, summary, changes, occurred_at)
        select r.id, p_tenant, r.actor_type, r.actor_id, p_replica, r.run_id, r.entity_type, r.entity_id, r.action, r.summary, r.changes, r.occurred_at
          from jsonb_populate_recordset(null::audit_log, entry->'audit') r
        on conflict do nothing;
      end if;
      if jsonb_array_length(entry->'clocks') > 0 then
        insert into row_clocks as k (tenant_id, table_name, row_id, clocks)
        select p_tenant, r.table_name, r.row_id, r.clocks
          from jsonb_to_recordset(entry->'clocks') as r (table_name text, row_id uuid, clocks jsonb)
        on conflict (table_name, row_id) do update set clocks = k.clocks || excluded.clocks;
      end if;
      set constraints all immediate;
      set constraints all deferred;
    exception when others then
      get stacked diagnostics v_state = returned_sqlstate, v_message = message_text, v_constraint = constraint_name,
        v_table = table_name, v_column = column_name, v_detail = pg_exception_detail;
      -- A deadlock, a full disk, a shutdown or a bug is no fault of the mutation: the whole push is tried again.
      if left(v_state, 2) in ('08', '25', '40', '42', '53', '55', '57', '58', 'XX') then
        raise;
      end if;
      return jsonb_build_object('failed', at, 'state', v_state, 'message', v_message, 'constraint', v_constraint,
        'table', v_table, 'column', v_column, 'detail', v_detail);
    end;
    if jsonb_typeof(entry->'result') = 'object' then
      insert into mutation_results (id, tenant_id, replica_id, seq, mutation_id, outcome, code, message, detail)
      values ((entry->'result'->>'id')::uuid, p_tenant, p_replica, (entry->>'seq')::bigint, (entry->>'mutation_id')::uuid,
        entry->'result'->>'outcome', entry->'result'->>'code', entry->'result'->>'message', coalesce(entry->'result'->'detail', '{}'));
    end if;
    at := at + 1;
  end loop;
  return jsonb_build_object('failed', null);
end $$;

create index mutation_results_seq_idx on mutation_results (replica_id, seq);

-- Tells every server that what it knows of people, gateways, devices and sessions may be out of date, whoever changed it (people/access-feed.ts).
create function hq_access_changed() returns trigger language plpgsql as $$
begin
  notify hq_access;
  return null;
end $$;
create trigger access_changed after update on people for each row
  when ((old.role, old.user_id, old.deleted_at) is distinct from (new.role, new.user_id, new.deleted_at))
  execute function hq_access_changed();
create trigger access_changed after update on gateways for each row
  when (old.deleted_at is distinct from new.deleted_at) execute function hq_access_changed();
create trigger access_changed after update on replicas for each row
  when ((old.revoked_at, old.person_id, old.gateway_id) is distinct from (new.revoked_at, new.person_id, new.gateway_id))
  execute function hq_access_changed();
create trigger access_changed after update on gateway_credentials for each row
  when (old.revoked_at is distinct from new.revoked_at) execute function hq_access_changed();
create trigger access_shortened after update on auth_session for each row
  when (new."expiresAt" < old."expiresAt") execute function hq_access_changed();
create trigger access_ended after delete on auth_session for each statement execute function hq_access_changed();
create trigger access_removed after delete on people for each statement execute function hq_access_changed();
create trigger access_removed after delete on gateway_credentials for each statement execute function hq_access_changed();
