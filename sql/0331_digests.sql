-- Purpose: digests: what was said in a chat, in short, now or on a schedule; and what each was made of.
--
-- A chat has one schedule, a timer of its own kind, set by who manages the chat: the service looks at
-- who asks. When a message is taken back, or its author forgotten, the digests made of it go too.

alter table public.agent_timers drop constraint agent_timers_kind_check;
alter table public.agent_timers add constraint agent_timers_kind_check
  check (kind in ('reminder', 'digest'));
drop policy agent_timers_insert on public.agent_timers;
create policy agent_timers_insert on public.agent_timers for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and user_id = (select public.claim('sub')) and actor_id = (select public.claim('actor'))
  and kind = 'reminder');

-- The messages that the card of a turn is made of. Ids only.
create table public.agent_digest_sources (
  turn_id text not null references public.agent_turns (id) on delete cascade,
  tenant_key text not null default '',
  chat_id text not null check (chat_id <> ''),
  message_id text not null check (message_id <> ''),
  author_id text not null default '',
  primary key (turn_id, message_id)
);
create index agent_digest_sources_message_idx on public.agent_digest_sources (message_id);
create index agent_digest_sources_author_idx on public.agent_digest_sources (author_id);
alter table public.agent_digest_sources enable row level security;
create policy agent_digest_sources_select on public.agent_digest_sources
  for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id')));
revoke all on public.agent_digest_sources from anon, authenticated;
grant select on public.agent_digest_sources to authenticated;
grant select, insert, update, delete on public.agent_digest_sources to service_role;
