-- Purpose: turns that were answered while the memory was away, kept beside the queue until it is back.
--
-- While a turn has a row here, the row is the truth about it, as agent_turns is otherwise. No API
-- exposes the schema; row-level security without a policy leaves the tables to their owner.

create table feishu_bot.spool (
  seq bigint generated always as identity primary key,
  turn_id text not null unique,           -- the question's Feishu message_id
  conversation_id text not null check (conversation_id <> ''),
  chat_id text not null,
  root_id text not null,
  user_id text not null check (user_id <> ''),
  actor_id text not null check (actor_id <> ''),
  actor_name text not null default '',
  tenant_key text not null default '',
  content text not null,
  state text not null default 'open' check (state in ('open', 'pending', 'sent', 'failed')),
  attempts integer not null default 1,
  cards jsonb not null default '[]',      -- [{chunk, content, status, message_id}]
  tool_calls jsonb not null default '[]',
  error text,
  refused text,                           -- why the memory does not take it; for operators
  version integer not null default 1,     -- counts the changes
  asked_at timestamptz not null default now(),
  answered_at timestamptz
);
create index spool_waiting_idx on feishu_bot.spool (conversation_id, user_id, seq)
  where refused is null;
create index spool_person_idx on feishu_bot.spool (user_id);
create index spool_actor_idx on feishu_bot.spool (actor_id);
alter table feishu_bot.spool enable row level security;
