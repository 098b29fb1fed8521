-- Purpose: what the bot does at a time: reminders.
--
-- A timer's place is the conversation it was set in: whoever reads that chat may know of it, and there
-- its card is shown. Its author changes it. Cancelling is the service's, which looks at who asks: the
-- author, whom it is for, or who manages the chat.

create table public.agent_timers (
  id text primary key,
  conversation_id text not null,
  chat_id text not null check (chat_id <> ''),
  root_id text not null,
  chat_type text not null check (chat_type in ('group', 'p2p')),
  tenant_key text not null default '',
  user_id text not null check (user_id <> ''),
  actor_id text not null check (actor_id <> ''),  -- the author
  turn_id text not null,                          -- the message it was made from
  kind text not null default 'reminder' check (kind in ('reminder')),
  content text not null default '' check (length(content) <= 1000),
  language text not null default 'en' check (language in ('zh', 'en')),
  for_all boolean not null default false,         -- the whole chat, without mentioning everybody
  for_people text[] not null default '{}' check (cardinality(for_people) <= 20),
  local_at text not null,                         -- wall clock of its beginning: 2026-11-23T15:00
  zone text not null,                             -- IANA name
  repeats text not null default 'once'
    check (repeats in ('once', 'daily', 'weekdays', 'weekly', 'monthly')),
  due_at timestamptz not null,                    -- the next time
  state text not null default 'active' check (state in ('active', 'done', 'cancelled', 'stopped')),
  queued_until timestamptz,                       -- nobody else queues it before then
  fired integer not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  constraint agent_timers_place
    check (starts_with(conversation_id, 'feishu:' || chat_id || ':'))
);
create index agent_timers_due_idx on public.agent_timers (due_at) where state = 'active';
create index agent_timers_chat_idx on public.agent_timers (chat_id, due_at) where state = 'active';
create index agent_timers_turn_idx on public.agent_timers (turn_id);
create index agent_timers_actor_idx on public.agent_timers (actor_id);
create index agent_timers_user_idx on public.agent_timers (user_id);

alter table public.agent_timers enable row level security;
create policy agent_timers_select on public.agent_timers for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and ((select public.claim('sharing')) is distinct from 'person'
       or (select public.claim('actor')) in (user_id, actor_id)));
create policy agent_timers_insert on public.agent_timers for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and user_id = (select public.claim('sub')) and actor_id = (select public.claim('actor')));
create policy agent_timers_update on public.agent_timers for update to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and actor_id = (select public.claim('actor')));
revoke all on public.agent_timers from anon, authenticated;
grant select, insert on public.agent_timers to authenticated;
grant update (content, for_all, for_people, local_at, zone, repeats, due_at, updated_at)
  on public.agent_timers to authenticated;
grant select, insert, update, delete on public.agent_timers to service_role;
