-- Purpose: which documents answers told of, where, and as whom Feishu can be asked whether that still may be.

-- A document that a person had read in a chat; `doc:<id>` is what their answers there were given. What was read is not
-- kept, but what tells it is (bot_private.source_terms), as for files.
create table bot_private.told_documents (
  id bigint generated always as identity primary key,
  tenant_key text not null,
  chat_id text not null,
  chat_type text not null,
  kind text not null,  -- and its token, as the link names them
  token text not null,
  actor_id text not null,
  actor_tenant text not null default '',
  told_at timestamptz not null default now(),
  looked_at timestamptz not null default now(),
  unique (tenant_key, chat_id, actor_id, kind, token)
);
create index told_documents_looked_idx on bot_private.told_documents (looked_at);
alter table bot_private.told_documents enable row level security;
revoke all on bot_private.told_documents from public, anon, authenticated;
grant select, insert, update, delete, truncate on bot_private.told_documents to service_role;
