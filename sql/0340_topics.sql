-- Purpose: which topic of a chat's conversation a message belongs to.
--
-- A topic is named by when its first message was sent (ms since epoch), so that it outlives that message.
-- A row goes with its line of the transcript: by retention, by taking back, by forgetting. Who is kept
-- to their own words sees no conversation, and no topics.

create table public.chat_topics (
  tenant_key text not null default '',
  chat_id text not null,
  message_id text not null,
  topic bigint not null,
  primary key (tenant_key, chat_id, message_id),
  foreign key (tenant_key, chat_id, message_id)
    references public.chat_transcript (tenant_key, chat_id, message_id) on delete cascade
);

alter table public.chat_topics enable row level security;

create policy chat_topics_select on public.chat_topics for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and (select public.claim('sharing')) is distinct from 'person');
create policy chat_topics_insert on public.chat_topics for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id')));

revoke all on public.chat_topics from anon, authenticated;
grant select, insert on public.chat_topics to authenticated;
grant select, insert, update, delete on public.chat_topics to service_role;
