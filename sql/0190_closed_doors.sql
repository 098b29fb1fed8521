-- Purpose: what a token could still reach beside the policies: functions, sequences, and rows that lean
-- on rows of another place.

-- A schema for the functions that other functions are made of. It is none of those that Supabase's API
-- serves, so nobody with a token can call them by themselves, past the limits and the identity that
-- the functions in front of them check. Those run with the caller's rights, so the caller needs the
-- right to these too.
create schema if not exists bot_private;
revoke all on schema bot_private from public;
grant usage on schema bot_private to authenticated, service_role;

-- Hosted Supabase gives everybody every sequence of schema public, with the right to set it back. Who
-- inserts needs none: our columns are identities.
do $$
declare
  s regclass;
begin
  for s in
    select d.objid from pg_depend d join pg_class c on c.oid = d.objid and c.relkind = 'S'
    join pg_class t on t.oid = d.refobjid and t.relkind = 'r'
    where d.deptype = 'i' and t.relnamespace = 'public'::regnamespace
      and t.relname ~ '^(agent|chat)_'
  loop
    execute format('revoke all on sequence %s from anon, authenticated', s);
  end loop;
end
$$;

-- A time limit for whoever signs in, where there is none: 8 s, as hosted Supabase has it. It is the
-- role's, and the role may be other apps' too, so a limit that is there stays.
do $$
begin
  if not exists (
    select from pg_db_role_setting s, unnest(s.setconfig) c
    where s.setrole = 'authenticated'::regrole and c like 'statement_timeout=%'
  ) then
    alter role authenticated set statement_timeout = '8s';
  end if;
exception when insufficient_privilege then
  null;
end
$$;

-- A conversation lies in its chat, as in the tables before.
alter table public.agent_buttons add constraint agent_buttons_place
  check (starts_with(conversation_id, 'feishu:' || chat_id || ':')) not valid;
alter table public.agent_working_memory_history add constraint agent_working_memory_history_place
  check (conversation_id = '' or starts_with(conversation_id, 'feishu:' || chat_id || ':')) not valid;
do $$
begin
  if to_regclass('public.agent_embeddings') is not null then
    alter table public.agent_embeddings add constraint agent_embeddings_place
      check (starts_with(conversation_id, 'feishu:' || chat_id || ':')) not valid;
  end if;
end
$$;

-- What belongs to a turn lies where the turn does. Somebody else's turn is refused as one that is not
-- there: a foreign key looks past the policies. The key begins with the thread and takes the place of
-- its index: with both, the check of a foreign key would read the whole thread.
create unique index agent_turns_place_key
  on public.agent_turns (conversation_id, user_id, tenant_key, id);
drop index public.agent_turns_chat_idx;
alter table public.agent_messages
  drop constraint agent_messages_turn_id_fkey,
  add constraint agent_messages_turn_fkey foreign key (turn_id, tenant_key, conversation_id, user_id)
    references public.agent_turns (id, tenant_key, conversation_id, user_id)
    on delete cascade not valid;
alter table public.agent_turn_terms
  drop constraint agent_turn_terms_turn_id_fkey,
  add constraint agent_turn_terms_turn_fkey
    foreign key (turn_id, tenant_key, conversation_id, user_id)
    references public.agent_turns (id, tenant_key, conversation_id, user_id)
    on delete cascade not valid;
alter table public.agent_buttons
  drop constraint agent_buttons_turn_id_fkey,
  add constraint agent_buttons_turn_fkey foreign key (turn_id, tenant_key, conversation_id, user_id)
    references public.agent_turns (id, tenant_key, conversation_id, user_id)
    on delete cascade not valid;
alter table public.agent_cards
  drop constraint agent_cards_turn_id_fkey,
  add constraint agent_cards_turn_fkey foreign key (turn_id, tenant_key, conversation_id, user_id)
    references public.agent_turns (id, tenant_key, conversation_id, user_id)
    on delete cascade not valid;

-- A press is of a button of the same chat, a decision of a message of its chat.
create unique index agent_buttons_place_key on public.agent_buttons (id, tenant_key, chat_id);
alter table public.agent_presses
  drop constraint agent_presses_button_id_fkey,
  add constraint agent_presses_button_fkey foreign key (button_id, tenant_key, chat_id)
    references public.agent_buttons (id, tenant_key, chat_id) on delete cascade not valid;
create unique index agent_decisions_message_key
  on public.agent_decisions (tenant_key, chat_id, message_id);
alter table public.agent_decisions drop constraint agent_decisions_message_id_key;
