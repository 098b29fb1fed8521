-- Purpose: the group conversation the bot is part of, its transcript, and the log of decisions.
--
-- What stands in a chat can be read by everyone in it, so these rows belong to the chat: a token
-- needs the chat_id, whoever's memory the turn uses. Times are ms since epoch, as Feishu's are.

create table public.chat_conversations (
  chat_id text primary key check (chat_id <> ''),
  tenant_key text not null default '',
  active boolean not null default false,
  quiet boolean not null default false,
  started_at bigint not null default 0,
  last_activity bigint not null default 0,
  updated_at timestamptz not null default now()
);

create table public.chat_transcript (
  chat_id text not null references public.chat_conversations (chat_id) on delete cascade,
  message_id text not null,
  tenant_key text not null default '',
  root_id text,
  author text not null,
  author_id text not null,
  content text not null,
  "timestamp" bigint not null,
  is_bot boolean not null,
  ours boolean not null default false,
  primary key (chat_id, message_id)
);
create index chat_transcript_time_idx on public.chat_transcript (chat_id, "timestamp" desc);
create index chat_transcript_author_idx on public.chat_transcript (author_id);

create table public.agent_decisions (
  id bigint generated always as identity primary key,
  message_id text not null,
  chat_id text not null,
  tenant_key text not null default '',
  actor_id text not null,
  respond boolean not null,
  reason text not null,
  tier text not null,
  cue text,
  since_bot_ms bigint,
  verdict text,
  judge_ms integer,
  created_at timestamptz not null default now(),
  unique (message_id)
);
create index agent_decisions_chat_idx on public.agent_decisions (chat_id, id desc);
create index agent_decisions_time_idx on public.agent_decisions (created_at);

alter table public.chat_conversations enable row level security;
alter table public.chat_transcript enable row level security;
alter table public.agent_decisions enable row level security;

create policy chat_conversations_select on public.chat_conversations
  for select to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy chat_conversations_insert on public.chat_conversations
  for insert to authenticated with check (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy chat_conversations_update on public.chat_conversations
  for update to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
) with check (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy chat_conversations_delete on public.chat_conversations
  for delete to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));

create policy chat_transcript_select on public.chat_transcript for select to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy chat_transcript_insert on public.chat_transcript
  for insert to authenticated with check (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy chat_transcript_update on public.chat_transcript for update to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
) with check (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy chat_transcript_delete on public.chat_transcript for delete to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));

-- The first decision on a message holds when its job is tried again.
create policy agent_decisions_select on public.agent_decisions for select to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_decisions_insert on public.agent_decisions
  for insert to authenticated with check (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and actor_id = (select public.claim('actor')));

revoke all on public.chat_conversations, public.chat_transcript, public.agent_decisions from anon;
grant select, insert, update, delete on public.chat_conversations, public.chat_transcript
  to authenticated, service_role;
grant select, insert on public.agent_decisions to authenticated;
grant select, insert, update, delete on public.agent_decisions to service_role;
