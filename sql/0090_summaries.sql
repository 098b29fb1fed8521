-- Purpose: the running summary of a long thread, folded from messages that the window no longer
-- shows. The messages stay; who reaches them reaches their summary.

create table public.agent_summaries (
  id bigint generated always as identity primary key,
  conversation_id text not null,
  user_id text not null check (user_id <> ''),
  tenant_key text not null default '',
  chat_id text not null,
  version integer not null default 1,     -- counts the folds
  content text not null,
  verbatim jsonb not null default '[]',   -- ids and names that every version has to hold
  until_message_id bigint not null,       -- the last row of agent_messages whose words are in it
  messages integer not null default 0,    -- how many messages were folded
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (conversation_id, user_id),
  foreign key (conversation_id, user_id)
    references public.agent_chats (id, user_id) on delete cascade
);
create index agent_summaries_user_idx on public.agent_summaries (user_id);

alter table public.agent_summaries enable row level security;

create policy agent_summaries_select on public.agent_summaries for select to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
create policy agent_summaries_insert on public.agent_summaries
  for insert to authenticated with check (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
create policy agent_summaries_update on public.agent_summaries for update to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor')))
) with check (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
create policy agent_summaries_delete on public.agent_summaries for delete to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and user_id = (select public.claim('actor')));
revoke all on public.agent_summaries from anon;
grant select, insert, update, delete on public.agent_summaries to authenticated, service_role;
