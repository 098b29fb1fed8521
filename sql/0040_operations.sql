-- Purpose: the history of working memory: who changed which keys, and when. At most 50 changes are
-- kept per memory.

create table public.agent_working_memory_history (
  id bigint generated always as identity primary key,
  working_memory_id bigint not null
    references public.agent_working_memory (id) on delete cascade,
  user_id text not null,
  tenant_key text not null default '',
  actor_id text not null,                 -- the token's sender; 'service' where no token was used
  scope text not null,
  conversation_id text not null default '',
  chat_id text not null default '',
  was jsonb not null,                     -- the keys that changed, as they were
  became jsonb not null,                  -- and as they are now
  at timestamptz not null default clock_timestamp()
);
create index agent_working_memory_history_idx
  on public.agent_working_memory_history (working_memory_id, id desc);

alter table public.agent_working_memory_history enable row level security;

-- Written by the trigger in the turn that changes the memory, within reach of whoever reaches that.
create policy agent_working_memory_history_select on public.agent_working_memory_history
  for select to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (user_id = (select public.claim('actor'))
         or (scope = 'chat' and chat_id = (select public.claim('chat_id')))));
create policy agent_working_memory_history_insert on public.agent_working_memory_history
  for insert to authenticated with check (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (user_id = (select public.claim('actor'))
         or (scope = 'chat' and chat_id = (select public.claim('chat_id'))))
    and actor_id = (select public.claim('actor')));
create policy agent_working_memory_history_delete on public.agent_working_memory_history
  for delete to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (user_id = (select public.claim('actor'))
         or (scope = 'chat' and chat_id = (select public.claim('chat_id')))));
revoke all on public.agent_working_memory_history from anon;
grant select, insert, delete on public.agent_working_memory_history to authenticated;
grant select, insert, update, delete on public.agent_working_memory_history to service_role;

create index agent_turns_actor_idx on public.agent_turns (actor_id);
create index agent_turns_created_idx on public.agent_turns (created_at);
