-- Purpose: what happens outside of turns while the memory is away: messages taken back, what was said
-- in a group, decisions. Kept beside the spool and written when the memory is back.
--
-- Each of these operations can be repeated. Messages taken back come first, before the turns; the
-- others are independent of the turns and follow them.

create table feishu_bot.late_writes (
  seq bigint generated always as identity primary key,
  function text not null check (
    function in ('recall_message', 'append_to_conversation', 'continue_conversation', 'log_decision')),
  params jsonb not null,
  context jsonb,                            -- whose token: chat_id, root_id, user_id, actor_id, tenant_key
  conversation_id text,
  message_ids text[] not null,              -- the Feishu messages it is about
  people text[] not null default '{}',      -- open_ids: who spoke in them
  refused text,                             -- why the memory does not take it; for operators
  asked_at timestamptz not null default now()
);
create index late_writes_recall_idx on feishu_bot.late_writes (seq)
  where function = 'recall_message' and refused is null;
alter table feishu_bot.late_writes enable row level security;
