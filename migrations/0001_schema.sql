-- Made by `npm run schema` from shared/schema. Do not edit: change the declaration.

-- @server

create table "tenants" (
  "id" uuid primary key,
  "name" text not null,
  "slug" text not null unique,
  "created_at" timestamptz not null default now()
);

-- @both

create table "workspace" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "name" text not null,
  "slug" text not null,
  "description" text,
  "initialized" boolean not null default false,
  "owner_name" text,
  "owner_preferred_name" text,
  "owner_timezone" text not null default 'UTC',
  "settings" jsonb not null default '{}',
  "default_agent_budget_usd" numeric,
  "default_soft_threshold_pct" integer not null default 80,
  "default_hard_cutoff" boolean not null default true
);

create table "people" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "user_id" text,
  "name" text not null,
  "email" text not null,
  "role" text not null,
  "avatar_color" text,
  "timezone" text
);

create table "gateways" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "gateway_id" uuid not null,
  "slug" text not null,
  "label" text not null,
  "public_key" text,
  "status" text not null default 'provisioning',
  "last_seen_at" timestamptz,
  "started_at" timestamptz,
  "pause_requested_at" timestamptz,
  "meta" jsonb not null default '{}'
);

create table "agent_templates" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "gateway_id" uuid not null,
  "slug" text not null,
  "name" text not null,
  "description" text not null default '',
  "emoji" text not null default '',
  "team" text,
  "domains" text[] not null default '{}',
  "capabilities" text[] not null default '{}',
  "error" text
);

create table "agents" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "gateway_id" uuid,
  "epoch" integer not null default 1,
  "name" text not null,
  "slug" text not null,
  "description" text,
  "status" text not null default 'provisioning',
  "status_reason" text,
  "last_seen_at" timestamptz,
  "pause_requested_at" timestamptz,
  "paused_by" uuid,
  "runtime" text not null default 'builtin',
  "model" text,
  "thinking" text not null default 'none',
  "tool_policy" jsonb not null default '{}',
  "reports_to_id" uuid,
  "domains" text[] not null default '{}',
  "capabilities" text[] not null default '{}',
  "gate" text,
  "gate_detail" text,
  "gate_until" timestamptz,
  "meta" jsonb not null default '{}'
);
create index "agents_gateway_id_idx" on "agents" ("gateway_id");

create table "agent_files" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "gateway_id" uuid not null,
  "agent_id" uuid not null,
  "path" text not null,
  "size" bigint not null,
  "sha" text not null,
  "content" text,
  "commit" text
);
create index "agent_files_agent_id_path_idx" on "agent_files" ("agent_id", "path");

create table "agent_commands" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "gateway_id" uuid not null,
  "agent_id" uuid,
  "action" text not null,
  "payload" jsonb not null default '{}',
  "requested_by" uuid,
  "requested_by_agent_id" uuid,
  "cancel_requested_at" timestamptz,
  "status" text not null default 'pending',
  "attempt_count" integer not null default 0,
  "max_attempts" integer not null default 2,
  "lease_owner" text,
  "lease_token" integer not null default 0,
  "leased_until" timestamptz,
  "started_at" timestamptz,
  "completed_at" timestamptz,
  "exit_code" integer,
  "progress" jsonb not null default '{}',
  "result" jsonb,
  "error_message" text
);
create index "agent_commands_gateway_id_status_idx" on "agent_commands" ("gateway_id", "status");
create index "agent_commands_agent_id_created_at_idx" on "agent_commands" ("agent_id", "created_at");

create table "command_output" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "gateway_id" uuid not null,
  "command_id" uuid not null,
  "seq" integer not null,
  "stream" text not null,
  "text" text not null
);
create index "command_output_command_id_seq_idx" on "command_output" ("command_id", "seq");

create table "agent_runs" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "gateway_id" uuid not null,
  "agent_id" uuid not null,
  "inbox_item_id" uuid,
  "task_id" uuid,
  "runtime" text not null,
  "provider" text,
  "model" text,
  "demo" boolean not null default false,
  "status" text not null default 'running',
  "started_at" timestamptz not null default now(),
  "ended_at" timestamptz,
  "turns" integer not null default 0,
  "tool_calls" integer not null default 0,
  "input_tokens" bigint not null default 0,
  "output_tokens" bigint not null default 0,
  "cost_usd" numeric,
  "summary" text,
  "error_message" text
);
create index "agent_runs_agent_id_started_at_idx" on "agent_runs" ("agent_id", "started_at");
create index "agent_runs_task_id_idx" on "agent_runs" ("task_id");

create table "agent_run_events" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "gateway_id" uuid not null,
  "run_id" uuid not null,
  "seq" integer not null,
  "kind" text not null,
  "data" jsonb not null default '{}'
);
create index "agent_run_events_run_id_seq_idx" on "agent_run_events" ("run_id", "seq");

create table "agent_usage" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "gateway_id" uuid not null,
  "agent_id" uuid not null,
  "run_id" uuid,
  "task_id" uuid,
  "provider" text not null,
  "model" text not null,
  "input_tokens" bigint not null default 0,
  "output_tokens" bigint not null default 0,
  "cache_read" bigint not null default 0,
  "cache_write" bigint not null default 0,
  "cost_usd" numeric,
  "occurred_at" timestamptz not null default now()
);
create index "agent_usage_agent_id_occurred_at_idx" on "agent_usage" ("agent_id", "occurred_at");

create table "agent_budgets" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "agent_id" uuid not null,
  "monthly_limit_usd" numeric,
  "monthly_limit_tokens" bigint,
  "soft_threshold_pct" integer not null default 80,
  "hard_cutoff" boolean not null default true
);

create table "streams" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "name" text not null,
  "description" text,
  "color" text,
  "icon" text,
  "sort_order" integer not null default 0,
  "type" text not null default 'functional',
  "is_archived" boolean not null default false
);

create table "contacts" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "name" text not null,
  "email" text,
  "phone" text,
  "company" text,
  "title" text,
  "location" text,
  "website_url" text,
  "linkedin_url" text,
  "notes" text,
  "tags" text[] not null default '{}',
  "source" text,
  "status" text,
  "priority" text,
  "last_contact_date" timestamptz,
  "extended" jsonb not null default '{}',
  "archived_at" timestamptz
);
create index "contacts_name_idx" on "contacts" ("name");

create table "tasks" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "title" text not null,
  "description" text,
  "status" text not null default 'todo',
  "priority" text not null default 'medium',
  "stream_id" uuid,
  "parent_id" uuid,
  "assignee_type" text,
  "assignee_agent_id" uuid,
  "assignee_person_id" uuid,
  "assignment_generation" integer not null default 0,
  "model_override" text,
  "thinking_override" text,
  "due_date" timestamptz,
  "completed_at" timestamptz,
  "contact_id" uuid,
  "tags" text[] not null default '{}',
  "sort_order" double precision not null default 0,
  "archived_at" timestamptz,
  "created_by_type" text not null default 'human',
  "created_by_id" uuid
);
create index "tasks_status_sort_order_idx" on "tasks" ("status", "sort_order");
create index "tasks_assignee_agent_id_idx" on "tasks" ("assignee_agent_id");
create index "tasks_parent_id_idx" on "tasks" ("parent_id");
create index "tasks_updated_at_idx" on "tasks" ("updated_at");
create index "tasks_due_date_idx" on "tasks" ("due_date");

create table "task_relations" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "source_task_id" uuid not null,
  "target_task_id" uuid not null,
  "relation_type" text not null
);
create index "task_relations_source_task_id_idx" on "task_relations" ("source_task_id");
create index "task_relations_target_task_id_idx" on "task_relations" ("target_task_id");

create table "comments" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "entity_type" text not null,
  "entity_id" uuid not null,
  "parent_id" uuid,
  "body" text not null,
  "actor_type" text not null,
  "actor_person_id" uuid,
  "actor_agent_id" uuid,
  "run_id" uuid,
  "mentions" text[] not null default '{}'
);
create index "comments_entity_id_created_at_idx" on "comments" ("entity_id", "created_at");

create table "entity_links" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "owner_type" text not null,
  "owner_id" uuid not null,
  "target_type" text not null,
  "target_id" uuid,
  "url" text,
  "label" text,
  "body" text,
  "sort_order" integer not null default 0,
  "is_deliverable" boolean not null default false,
  "review_status" text,
  "review_round" integer not null default 1,
  "review_note" text,
  "reviewed_by" uuid,
  "reviewed_at" timestamptz,
  "submitted_by_agent_id" uuid,
  "submitted_by_person_id" uuid,
  "run_id" uuid,
  "supersedes_id" uuid
);
create index "entity_links_owner_id_idx" on "entity_links" ("owner_id");
create index "entity_links_target_id_idx" on "entity_links" ("target_id");

create table "agent_inbox_items" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "gateway_id" uuid,
  "agent_id" uuid not null,
  "event_type" text not null,
  "dedup_key" text not null,
  "task_id" uuid,
  "comment_id" uuid,
  "link_id" uuid,
  "priority" text not null default 'medium',
  "context" jsonb not null default '{}',
  "status" text not null default 'pending',
  "attempt_count" integer not null default 0,
  "max_attempts" integer not null default 3,
  "lease_owner" text,
  "lease_token" integer not null default 0,
  "leased_until" timestamptz,
  "not_before" timestamptz,
  "completed_at" timestamptz,
  "run_id" uuid,
  "summary" text,
  "error_message" text
);
create index "agent_inbox_items_gateway_id_status_idx" on "agent_inbox_items" ("gateway_id", "status");
create index "agent_inbox_items_agent_id_status_idx" on "agent_inbox_items" ("agent_id", "status");
create index "agent_inbox_items_task_id_idx" on "agent_inbox_items" ("task_id");

create table "knowledge_items" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "kind" text not null,
  "title" text not null,
  "icon" text,
  "scope" text not null default 'library',
  "tags" text[] not null default '{}',
  "plain_text" text,
  "mime_type" text,
  "file_size" bigint,
  "archived_at" timestamptz
);
create index "knowledge_items_kind_updated_at_idx" on "knowledge_items" ("kind", "updated_at");

create table "notifications" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "type" text not null,
  "title" text not null,
  "body" text,
  "person_id" uuid,
  "entity_type" text,
  "entity_id" uuid,
  "actor_type" text not null default 'system',
  "actor_agent_id" uuid,
  "dedup_key" text
);
create index "notifications_created_at_idx" on "notifications" ("created_at");

create table "notification_reads" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "notification_id" uuid not null,
  "person_id" uuid not null,
  "read_at" timestamptz,
  "dismissed_at" timestamptz
);

create table "audit_log" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "actor_type" text not null,
  "actor_id" uuid,
  "replica_id" uuid,
  "run_id" uuid,
  "entity_type" text not null,
  "entity_id" uuid not null,
  "action" text not null,
  "summary" text,
  "changes" jsonb not null default '{}',
  "occurred_at" timestamptz not null
);
create index "audit_log_entity_id_occurred_at_idx" on "audit_log" ("entity_id", "occurred_at");
create index "audit_log_occurred_at_idx" on "audit_log" ("occurred_at");

create table "replicas" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "replica_id" uuid not null,
  "kind" text not null,
  "label" text,
  "person_id" uuid,
  "gateway_id" uuid,
  "last_seen_at" timestamptz,
  "revoked_at" timestamptz
);

create table "client_progress" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "replica_id" uuid not null,
  "last_seq" bigint not null,
  "last_mutation_id" uuid
);

create table "mutation_results" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "replica_id" uuid not null,
  "seq" bigint not null,
  "mutation_id" uuid not null,
  "outcome" text not null,
  "code" text,
  "message" text,
  "detail" jsonb not null default '{}'
);

create table "conflicts" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "table_name" text not null,
  "row_id" uuid not null,
  "column_name" text not null,
  "winner" jsonb,
  "loser" jsonb,
  "winner_actor" jsonb not null default '{}',
  "loser_actor" jsonb not null default '{}',
  "winner_hlc" text,
  "loser_hlc" text,
  "resolved_at" timestamptz
);
create index "conflicts_row_id_idx" on "conflicts" ("row_id");

create table "secrets" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "gateway_id" uuid not null,
  "agent_id" uuid,
  "category" text not null default 'user',
  "key" text not null,
  "name" text not null,
  "note" text,
  "version" integer not null default 1,
  "created_by" uuid,
  "sync_status" text not null default 'pending',
  "synced_version" integer,
  "last_synced_at" timestamptz,
  "sync_error" text
);

create table "sealed_secrets" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "gateway_id" uuid not null,
  "secret_id" uuid not null,
  "version" integer not null,
  "sealed" text not null,
  "public_key" text not null
);
create index "sealed_secrets_secret_id_version_idx" on "sealed_secrets" ("secret_id", "version");

create table "model_connections" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "gateway_id" uuid not null,
  "label" text not null,
  "provider" text not null,
  "base_url" text,
  "default_model" text,
  "secret_id" uuid,
  "oauth" jsonb,
  "is_default" boolean not null default true,
  "created_by" uuid,
  "status" text not null default 'unchecked',
  "status_detail" text,
  "checked_at" timestamptz
);

create table "approvals" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "gateway_id" uuid not null,
  "agent_id" uuid,
  "run_id" uuid,
  "task_id" uuid,
  "kind" text not null,
  "subject" text not null,
  "title" text not null,
  "detail" jsonb not null default '{}',
  "expires_at" timestamptz,
  "status" text not null default 'pending',
  "decided_by" uuid,
  "decided_at" timestamptz,
  "note" text,
  "applied_at" timestamptz,
  "error_message" text
);
create index "approvals_gateway_id_status_idx" on "approvals" ("gateway_id", "status");
create index "approvals_agent_id_idx" on "approvals" ("agent_id");

create table "backups" (
  "id" uuid primary key,
  "tenant_id" uuid not null,
  "created_at" timestamptz not null default now(),
  "updated_at" timestamptz not null default now(),
  "deleted_at" timestamptz,
  "gateway_id" uuid not null,
  "reason" text not null,
  "status" text not null default 'running',
  "size" bigint,
  "sha256" text,
  "key_id" text,
  "contents" jsonb not null default '{}',
  "finished_at" timestamptz,
  "error_message" text
);
create index "backups_gateway_id_created_at_idx" on "backups" ("gateway_id", "created_at");

-- @server

alter table "people" add constraint "people_tenant_key" unique ("tenant_id", "id");

alter table "gateways" add constraint "gateways_tenant_key" unique ("tenant_id", "id");

alter table "agents" add constraint "agents_tenant_key" unique ("tenant_id", "id");

alter table "agent_commands" add constraint "agent_commands_tenant_key" unique ("tenant_id", "id");

alter table "agent_runs" add constraint "agent_runs_tenant_key" unique ("tenant_id", "id");

alter table "streams" add constraint "streams_tenant_key" unique ("tenant_id", "id");

alter table "contacts" add constraint "contacts_tenant_key" unique ("tenant_id", "id");

alter table "tasks" add constraint "tasks_tenant_key" unique ("tenant_id", "id");

alter table "notifications" add constraint "notifications_tenant_key" unique ("tenant_id", "id");

alter table "secrets" add constraint "secrets_tenant_key" unique ("tenant_id", "id");

alter table "workspace" replica identity full;
create index "workspace_tenant_idx" on "workspace" (tenant_id);
alter table "workspace" add constraint "workspace_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
create unique index "workspace_key" on "workspace" ("tenant_id");

alter table "people" replica identity full;
alter table "people" add constraint "people_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "people" add constraint "people_role_check" check ("role" in ('owner', 'admin', 'member', 'viewer'));
create unique index "people_email_key" on "people" ("tenant_id", "email");

alter table "gateways" replica identity full;
alter table "gateways" add constraint "gateways_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "gateways" add constraint "gateways_status_check" check ("status" in ('provisioning', 'ready', 'paused', 'error', 'hibernating', 'retired'));
create unique index "gateways_slug_key" on "gateways" ("tenant_id", "slug");

alter table "agent_templates" replica identity full;
create index "agent_templates_tenant_idx" on "agent_templates" (tenant_id);
alter table "agent_templates" add constraint "agent_templates_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "agent_templates" add constraint "agent_templates_gateway_id_fkey" foreign key ("tenant_id", "gateway_id") references "gateways" ("tenant_id", "id") deferrable initially deferred;
create unique index "agent_templates_gateway_id_slug_key" on "agent_templates" ("tenant_id", "gateway_id", "slug");

alter table "agents" replica identity full;
alter table "agents" add constraint "agents_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "agents" add constraint "agents_gateway_id_fkey" foreign key ("tenant_id", "gateway_id") references "gateways" ("tenant_id", "id") deferrable initially deferred;
alter table "agents" add constraint "agents_status_check" check ("status" in ('provisioning', 'ready', 'paused', 'hibernating', 'error', 'removing'));
alter table "agents" add constraint "agents_runtime_check" check ("runtime" in ('builtin', 'openclaw'));
alter table "agents" add constraint "agents_thinking_check" check ("thinking" in ('none', 'low', 'medium', 'high'));
alter table "agents" add constraint "agents_reports_to_id_fkey" foreign key ("tenant_id", "reports_to_id") references "agents" ("tenant_id", "id") deferrable initially deferred;
create unique index "agents_slug_key" on "agents" ("tenant_id", "slug") where deleted_at is null;

alter table "agent_files" replica identity full;
create index "agent_files_tenant_idx" on "agent_files" (tenant_id);
alter table "agent_files" add constraint "agent_files_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "agent_files" add constraint "agent_files_gateway_id_fkey" foreign key ("tenant_id", "gateway_id") references "gateways" ("tenant_id", "id") deferrable initially deferred;
alter table "agent_files" add constraint "agent_files_agent_id_fkey" foreign key ("tenant_id", "agent_id") references "agents" ("tenant_id", "id") deferrable initially deferred;
create unique index "agent_files_agent_id_path_key" on "agent_files" ("tenant_id", "agent_id", "path");

alter table "agent_commands" replica identity full;
alter table "agent_commands" add constraint "agent_commands_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "agent_commands" add constraint "agent_commands_gateway_id_fkey" foreign key ("tenant_id", "gateway_id") references "gateways" ("tenant_id", "id") deferrable initially deferred;
alter table "agent_commands" add constraint "agent_commands_agent_id_fkey" foreign key ("tenant_id", "agent_id") references "agents" ("tenant_id", "id") deferrable initially deferred;
alter table "agent_commands" add constraint "agent_commands_action_check" check ("action" in ('provision', 'update', 'remove', 'move', 'list_models', 'set_agent_model', 'restart_runtime', 'install_runtime', 'backup', 'restore', 'auth_set_api_key', 'auth_start', 'auth_paste', 'auth_list', 'auth_remove', 'auth_refresh', 'auth_set_default', 'approve_pairing', 'file_list', 'file_read', 'file_write', 'file_delete', 'run_shell', 'file_history', 'file_diff', 'file_restore', 'upgrade_template', 'container_list', 'container_logs', 'container_action'));
alter table "agent_commands" add constraint "agent_commands_status_check" check ("status" in ('pending', 'leased', 'running', 'done', 'failed', 'cancelled', 'dead_letter'));

alter table "command_output" replica identity full;
create index "command_output_tenant_idx" on "command_output" (tenant_id);
alter table "command_output" add constraint "command_output_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "command_output" add constraint "command_output_gateway_id_fkey" foreign key ("tenant_id", "gateway_id") references "gateways" ("tenant_id", "id") deferrable initially deferred;
alter table "command_output" add constraint "command_output_command_id_fkey" foreign key ("tenant_id", "command_id") references "agent_commands" ("tenant_id", "id") deferrable initially deferred;
alter table "command_output" add constraint "command_output_stream_check" check ("stream" in ('stdout', 'stderr', 'progress'));

alter table "agent_runs" replica identity full;
alter table "agent_runs" add constraint "agent_runs_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "agent_runs" add constraint "agent_runs_gateway_id_fkey" foreign key ("tenant_id", "gateway_id") references "gateways" ("tenant_id", "id") deferrable initially deferred;
alter table "agent_runs" add constraint "agent_runs_agent_id_fkey" foreign key ("tenant_id", "agent_id") references "agents" ("tenant_id", "id") deferrable initially deferred;
alter table "agent_runs" add constraint "agent_runs_runtime_check" check ("runtime" in ('builtin', 'openclaw'));
alter table "agent_runs" add constraint "agent_runs_status_check" check ("status" in ('running', 'done', 'failed', 'cancelled', 'interrupted'));

alter table "agent_run_events" replica identity full;
create index "agent_run_events_tenant_idx" on "agent_run_events" (tenant_id);
alter table "agent_run_events" add constraint "agent_run_events_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "agent_run_events" add constraint "agent_run_events_gateway_id_fkey" foreign key ("tenant_id", "gateway_id") references "gateways" ("tenant_id", "id") deferrable initially deferred;
alter table "agent_run_events" add constraint "agent_run_events_run_id_fkey" foreign key ("tenant_id", "run_id") references "agent_runs" ("tenant_id", "id") deferrable initially deferred;
alter table "agent_run_events" add constraint "agent_run_events_kind_check" check ("kind" in ('status', 'message', 'reasoning', 'tool_call', 'tool_result', 'error', 'usage'));

alter table "agent_usage" replica identity full;
create index "agent_usage_tenant_idx" on "agent_usage" (tenant_id);
alter table "agent_usage" add constraint "agent_usage_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "agent_usage" add constraint "agent_usage_gateway_id_fkey" foreign key ("tenant_id", "gateway_id") references "gateways" ("tenant_id", "id") deferrable initially deferred;
alter table "agent_usage" add constraint "agent_usage_agent_id_fkey" foreign key ("tenant_id", "agent_id") references "agents" ("tenant_id", "id") deferrable initially deferred;

alter table "agent_budgets" replica identity full;
create index "agent_budgets_tenant_idx" on "agent_budgets" (tenant_id);
alter table "agent_budgets" add constraint "agent_budgets_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "agent_budgets" add constraint "agent_budgets_agent_id_fkey" foreign key ("tenant_id", "agent_id") references "agents" ("tenant_id", "id") deferrable initially deferred;
create unique index "agent_budgets_agent_id_key" on "agent_budgets" ("tenant_id", "agent_id") where deleted_at is null;

alter table "streams" replica identity full;
alter table "streams" add constraint "streams_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "streams" add constraint "streams_type_check" check ("type" in ('functional', 'project', 'custom'));
create unique index "streams_name_key" on "streams" ("tenant_id", "name") where deleted_at is null;

alter table "contacts" replica identity full;
alter table "contacts" add constraint "contacts_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;

alter table "tasks" replica identity full;
alter table "tasks" add constraint "tasks_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "tasks" add constraint "tasks_status_check" check ("status" in ('todo', 'in_progress', 'blocked', 'done', 'cancelled'));
alter table "tasks" add constraint "tasks_priority_check" check ("priority" in ('low', 'medium', 'high', 'urgent'));
alter table "tasks" add constraint "tasks_stream_id_fkey" foreign key ("tenant_id", "stream_id") references "streams" ("tenant_id", "id") deferrable initially deferred;
alter table "tasks" add constraint "tasks_parent_id_fkey" foreign key ("tenant_id", "parent_id") references "tasks" ("tenant_id", "id") deferrable initially deferred;
alter table "tasks" add constraint "tasks_assignee_type_check" check ("assignee_type" in ('human', 'agent', 'system'));
alter table "tasks" add constraint "tasks_assignee_agent_id_fkey" foreign key ("tenant_id", "assignee_agent_id") references "agents" ("tenant_id", "id") deferrable initially deferred;
alter table "tasks" add constraint "tasks_assignee_person_id_fkey" foreign key ("tenant_id", "assignee_person_id") references "people" ("tenant_id", "id") deferrable initially deferred;
alter table "tasks" add constraint "tasks_thinking_override_check" check ("thinking_override" in ('none', 'low', 'medium', 'high'));
alter table "tasks" add constraint "tasks_contact_id_fkey" foreign key ("tenant_id", "contact_id") references "contacts" ("tenant_id", "id") deferrable initially deferred;
alter table "tasks" add constraint "tasks_created_by_type_check" check ("created_by_type" in ('human', 'agent', 'system'));

alter table "task_relations" replica identity full;
create index "task_relations_tenant_idx" on "task_relations" (tenant_id);
alter table "task_relations" add constraint "task_relations_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "task_relations" add constraint "task_relations_source_task_id_fkey" foreign key ("tenant_id", "source_task_id") references "tasks" ("tenant_id", "id") deferrable initially deferred;
alter table "task_relations" add constraint "task_relations_target_task_id_fkey" foreign key ("tenant_id", "target_task_id") references "tasks" ("tenant_id", "id") deferrable initially deferred;
alter table "task_relations" add constraint "task_relations_relation_type_check" check ("relation_type" in ('blocks', 'relates_to'));
create unique index "task_relations_source_task_id_target_task_id_relation_type_key" on "task_relations" ("tenant_id", "source_task_id", "target_task_id", "relation_type") where deleted_at is null;

alter table "comments" replica identity full;
create index "comments_tenant_idx" on "comments" (tenant_id);
alter table "comments" add constraint "comments_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "comments" add constraint "comments_entity_type_check" check ("entity_type" in ('workspace', 'person', 'gateway', 'agent', 'task', 'comment', 'command', 'inbox_item', 'deliverable', 'knowledge_item', 'contact', 'organization', 'stream', 'run', 'secret', 'model_connection', 'approval', 'backup'));
alter table "comments" add constraint "comments_actor_type_check" check ("actor_type" in ('human', 'agent', 'system'));
alter table "comments" add constraint "comments_actor_person_id_fkey" foreign key ("tenant_id", "actor_person_id") references "people" ("tenant_id", "id") deferrable initially deferred;
alter table "comments" add constraint "comments_actor_agent_id_fkey" foreign key ("tenant_id", "actor_agent_id") references "agents" ("tenant_id", "id") deferrable initially deferred;

alter table "entity_links" replica identity full;
create index "entity_links_tenant_idx" on "entity_links" (tenant_id);
alter table "entity_links" add constraint "entity_links_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "entity_links" add constraint "entity_links_owner_type_check" check ("owner_type" in ('task', 'routine', 'collection_record', 'agent'));
alter table "entity_links" add constraint "entity_links_target_type_check" check ("target_type" in ('knowledge_item', 'collection_record', 'contact', 'organization', 'task', 'agent_file', 'url', 'text'));
alter table "entity_links" add constraint "entity_links_review_status_check" check ("review_status" in ('draft', 'submitted', 'approved', 'revision_requested', 'rejected'));
alter table "entity_links" add constraint "entity_links_reviewed_by_fkey" foreign key ("tenant_id", "reviewed_by") references "people" ("tenant_id", "id") deferrable initially deferred;
alter table "entity_links" add constraint "entity_links_submitted_by_agent_id_fkey" foreign key ("tenant_id", "submitted_by_agent_id") references "agents" ("tenant_id", "id") deferrable initially deferred;
alter table "entity_links" add constraint "entity_links_submitted_by_person_id_fkey" foreign key ("tenant_id", "submitted_by_person_id") references "people" ("tenant_id", "id") deferrable initially deferred;

alter table "agent_inbox_items" replica identity full;
create index "agent_inbox_items_tenant_idx" on "agent_inbox_items" (tenant_id);
alter table "agent_inbox_items" add constraint "agent_inbox_items_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "agent_inbox_items" add constraint "agent_inbox_items_gateway_id_fkey" foreign key ("tenant_id", "gateway_id") references "gateways" ("tenant_id", "id") deferrable initially deferred;
alter table "agent_inbox_items" add constraint "agent_inbox_items_agent_id_fkey" foreign key ("tenant_id", "agent_id") references "agents" ("tenant_id", "id") deferrable initially deferred;
alter table "agent_inbox_items" add constraint "agent_inbox_items_event_type_check" check ("event_type" in ('task_assignment', 'task_reassignment', 'task_comment_mention', 'task_comment', 'deliverable_review', 'blocker_resolved', 'routine_schedule', 'routine_event', 'task_overdue', 'escalation'));
alter table "agent_inbox_items" add constraint "agent_inbox_items_priority_check" check ("priority" in ('low', 'medium', 'high', 'urgent'));
alter table "agent_inbox_items" add constraint "agent_inbox_items_status_check" check ("status" in ('pending', 'leased', 'done', 'failed', 'dead_letter', 'cancelled'));
create unique index "agent_inbox_items_dedup_key_key" on "agent_inbox_items" ("tenant_id", "dedup_key");

alter table "knowledge_items" replica identity full;
create index "knowledge_items_tenant_idx" on "knowledge_items" (tenant_id);
alter table "knowledge_items" add constraint "knowledge_items_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "knowledge_items" add constraint "knowledge_items_kind_check" check ("kind" in ('page', 'skill', 'file', 'source'));
alter table "knowledge_items" add constraint "knowledge_items_scope_check" check ("scope" in ('workspace', 'agent', 'library'));

alter table "notifications" replica identity full;
alter table "notifications" add constraint "notifications_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "notifications" add constraint "notifications_type_check" check ("type" in ('agent_comment', 'mention', 'task_assigned', 'task_completed', 'task_blocked', 'task_overdue', 'deliverable_submitted', 'command_failed', 'run_failed', 'dead_letter', 'budget_warned', 'budget_exceeded', 'approval_requested', 'system'));
alter table "notifications" add constraint "notifications_entity_type_check" check ("entity_type" in ('workspace', 'person', 'gateway', 'agent', 'task', 'comment', 'command', 'inbox_item', 'deliverable', 'knowledge_item', 'contact', 'organization', 'stream', 'run', 'secret', 'model_connection', 'approval', 'backup'));
alter table "notifications" add constraint "notifications_actor_type_check" check ("actor_type" in ('human', 'agent', 'system'));

alter table "notification_reads" replica identity full;
create index "notification_reads_tenant_idx" on "notification_reads" (tenant_id, person_id);
alter table "notification_reads" add constraint "notification_reads_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "notification_reads" add constraint "notification_reads_notification_id_fkey" foreign key ("tenant_id", "notification_id") references "notifications" ("tenant_id", "id") deferrable initially deferred;
alter table "notification_reads" add constraint "notification_reads_person_id_fkey" foreign key ("tenant_id", "person_id") references "people" ("tenant_id", "id") deferrable initially deferred;

alter table "audit_log" replica identity full;
create index "audit_log_tenant_idx" on "audit_log" (tenant_id);
alter table "audit_log" add constraint "audit_log_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "audit_log" add constraint "audit_log_actor_type_check" check ("actor_type" in ('human', 'agent', 'system'));
alter table "audit_log" add constraint "audit_log_action_check" check ("action" in ('created', 'updated', 'deleted', 'restored', 'archived', 'status_changed', 'assigned', 'commented', 'reviewed', 'attached', 'sent'));

alter table "replicas" replica identity full;
create index "replicas_tenant_idx" on "replicas" (tenant_id);
alter table "replicas" add constraint "replicas_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;

alter table "client_progress" replica identity full;
create index "client_progress_tenant_idx" on "client_progress" (tenant_id, replica_id);
alter table "client_progress" add constraint "client_progress_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;

alter table "mutation_results" replica identity full;
create index "mutation_results_tenant_idx" on "mutation_results" (tenant_id, replica_id);
alter table "mutation_results" add constraint "mutation_results_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "mutation_results" add constraint "mutation_results_outcome_check" check ("outcome" in ('applied', 'rejected'));

alter table "conflicts" replica identity full;
create index "conflicts_tenant_idx" on "conflicts" (tenant_id);
alter table "conflicts" add constraint "conflicts_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;

alter table "secrets" replica identity full;
alter table "secrets" add constraint "secrets_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "secrets" add constraint "secrets_gateway_id_fkey" foreign key ("tenant_id", "gateway_id") references "gateways" ("tenant_id", "id") deferrable initially deferred;
alter table "secrets" add constraint "secrets_agent_id_fkey" foreign key ("tenant_id", "agent_id") references "agents" ("tenant_id", "id") deferrable initially deferred;
alter table "secrets" add constraint "secrets_category_check" check ("category" in ('user', 'channel', 'integration', 'model'));
alter table "secrets" add constraint "secrets_sync_status_check" check ("sync_status" in ('pending', 'active', 'error', 'waiting', 'revoked'));
create unique index "secrets_gateway_id_agent_id_key_key" on "secrets" ("tenant_id", "gateway_id", "agent_id", "key") where deleted_at is null;
create unique index "secrets_gateway_id_key_key" on "secrets" ("tenant_id", "gateway_id", "key") where agent_id is null and deleted_at is null;

alter table "sealed_secrets" replica identity full;
create index "sealed_secrets_tenant_idx" on "sealed_secrets" (tenant_id, gateway_id);
alter table "sealed_secrets" add constraint "sealed_secrets_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "sealed_secrets" add constraint "sealed_secrets_gateway_id_fkey" foreign key ("tenant_id", "gateway_id") references "gateways" ("tenant_id", "id") deferrable initially deferred;
alter table "sealed_secrets" add constraint "sealed_secrets_secret_id_fkey" foreign key ("tenant_id", "secret_id") references "secrets" ("tenant_id", "id") deferrable initially deferred;
create unique index "sealed_secrets_secret_id_version_key" on "sealed_secrets" ("tenant_id", "secret_id", "version") where deleted_at is null;

alter table "model_connections" replica identity full;
create index "model_connections_tenant_idx" on "model_connections" (tenant_id, gateway_id);
alter table "model_connections" add constraint "model_connections_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "model_connections" add constraint "model_connections_gateway_id_fkey" foreign key ("tenant_id", "gateway_id") references "gateways" ("tenant_id", "id") deferrable initially deferred;
alter table "model_connections" add constraint "model_connections_provider_check" check ("provider" in ('openai', 'anthropic', 'openrouter', 'ollama'));
alter table "model_connections" add constraint "model_connections_secret_id_fkey" foreign key ("tenant_id", "secret_id") references "secrets" ("tenant_id", "id") deferrable initially deferred;
alter table "model_connections" add constraint "model_connections_status_check" check ("status" in ('unchecked', 'ok', 'failed'));

alter table "approvals" replica identity full;
create index "approvals_tenant_idx" on "approvals" (tenant_id, gateway_id);
alter table "approvals" add constraint "approvals_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "approvals" add constraint "approvals_gateway_id_fkey" foreign key ("tenant_id", "gateway_id") references "gateways" ("tenant_id", "id") deferrable initially deferred;
alter table "approvals" add constraint "approvals_agent_id_fkey" foreign key ("tenant_id", "agent_id") references "agents" ("tenant_id", "id") deferrable initially deferred;
alter table "approvals" add constraint "approvals_kind_check" check ("kind" in ('tool', 'exec', 'pairing'));
alter table "approvals" add constraint "approvals_status_check" check ("status" in ('pending', 'allowed', 'denied', 'expired', 'cancelled'));
alter table "approvals" add constraint "approvals_decided_by_fkey" foreign key ("tenant_id", "decided_by") references "people" ("tenant_id", "id") deferrable initially deferred;

alter table "backups" replica identity full;
create index "backups_tenant_idx" on "backups" (tenant_id, gateway_id);
alter table "backups" add constraint "backups_tenant_id_fkey" foreign key ("tenant_id") references "tenants" ("id") deferrable initially deferred;
alter table "backups" add constraint "backups_gateway_id_fkey" foreign key ("tenant_id", "gateway_id") references "gateways" ("tenant_id", "id") deferrable initially deferred;
alter table "backups" add constraint "backups_reason_check" check ("reason" in ('demand', 'schedule', 'shutdown'));
alter table "backups" add constraint "backups_status_check" check ("status" in ('running', 'done', 'failed', 'removed'));

