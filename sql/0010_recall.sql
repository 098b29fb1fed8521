-- Purpose: what recall searches: the tokens of every turn, derived from its messages.

create table public.agent_turn_terms (
  turn_id text primary key references public.agent_turns (id) on delete cascade,
  conversation_id text not null,
  user_id text not null,
  tenant_key text not null,
  chat_id text not null,
  first_id bigint not null,               -- of the turn's messages in agent_messages
  asked_at timestamptz not null,
  length integer not null,                -- tokens in the turn
  terms tsvector not null
);
create index agent_turn_terms_thread_idx
  on public.agent_turn_terms (conversation_id, user_id, first_id);
create index agent_turn_terms_user_idx on public.agent_turn_terms (user_id, chat_id);

alter table public.agent_turn_terms enable row level security;

-- Reachable as the messages are (0002); derived rows come and go with what they are derived from.
create policy agent_turn_terms_select on public.agent_turn_terms for select to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
create policy agent_turn_terms_insert on public.agent_turn_terms
  for insert to authenticated with check (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
create policy agent_turn_terms_update on public.agent_turn_terms for update to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor')))
) with check (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
create policy agent_turn_terms_delete on public.agent_turn_terms for delete to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
revoke all on public.agent_turn_terms from anon;
grant select, insert, update, delete on public.agent_turn_terms to authenticated, service_role;

-- What turns are found by: everything said in them that was or may yet be delivered.
create view public.agent_turn_texts with (security_invoker = true) as
select turn_id, conversation_id, user_id, tenant_key, chat_id, min(id) as first_id,
       min(created_at) as asked_at, string_agg(content, e'\n' order by id) as content
from public.agent_messages
where status <> 'failed'
group by turn_id, conversation_id, user_id, tenant_key, chat_id;
revoke all on public.agent_turn_texts from anon;
grant select on public.agent_turn_texts to authenticated, service_role;
