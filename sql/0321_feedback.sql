-- Purpose: what people say of an answer, a second answer to a question, and the line below an answer.

-- What a person said of an answer to whom it was of use, by a button or by a reaction. It goes with the
-- turn. Only they read it; operators count it.
create table public.agent_feedback (
  turn_id text not null,
  conversation_id text not null,
  user_id text not null check (user_id <> ''),   -- the subject of the turn
  actor_id text not null check (actor_id <> ''), -- who says so
  tenant_key text not null default '',
  chat_id text not null,
  source text not null check (source in ('button', 'reaction')),
  helpful boolean not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (turn_id, actor_id, source),
  constraint agent_feedback_place check (starts_with(conversation_id, 'feishu:' || chat_id || ':')),
  constraint agent_feedback_turn_fkey foreign key (turn_id, tenant_key, conversation_id, user_id)
    references public.agent_turns (id, tenant_key, conversation_id, user_id) on delete cascade
);
create index agent_feedback_conversation_idx on public.agent_feedback (conversation_id, user_id);
create index agent_feedback_user_idx on public.agent_feedback (user_id);
create index agent_feedback_actor_idx on public.agent_feedback (actor_id);
create index agent_feedback_updated_idx on public.agent_feedback (updated_at);

alter table public.agent_feedback enable row level security;
create policy agent_feedback_select on public.agent_feedback for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and actor_id = (select public.claim('actor')));
create policy agent_feedback_insert on public.agent_feedback for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and actor_id = (select public.claim('actor')));
create policy agent_feedback_update on public.agent_feedback for update to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and actor_id = (select public.claim('actor')))
with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and actor_id = (select public.claim('actor')));
create policy agent_feedback_delete on public.agent_feedback for delete to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = (select public.claim('chat_id'))
  and actor_id = (select public.claim('actor')));
revoke all on public.agent_feedback from anon, authenticated;
grant select, insert, delete on public.agent_feedback to authenticated;
grant update (helpful, updated_at) on public.agent_feedback to authenticated;
grant select, insert, update, delete on public.agent_feedback to service_role;

-- `again_of`: the turn whose question this one answers again; it goes with that. `shown`: what stands
-- below the answer besides its words: seconds, names of tools, when and where what was recalled was
-- said. Never anybody's words.
alter table public.agent_turns add column again_of text;
alter table public.agent_turns add column shown jsonb;
alter table public.agent_turns add constraint agent_turns_again_fkey
  foreign key (again_of, tenant_key, conversation_id, user_id)
  references public.agent_turns (id, tenant_key, conversation_id, user_id) on delete cascade;
grant update (shown) on public.agent_turns to authenticated;
create index agent_turns_again_idx on public.agent_turns (again_of) where again_of is not null;
