-- Purpose: what belongs to a turn refers to it by the number of its thread, no longer by all the ids that
-- make it: the key of a turn's place took two thirds of what the indexes of turns did.
--
-- The number is that of 0450_threads.sql. Somebody else's turn is still refused as one that is not there.

alter table public.agent_turns add column thread bigint not null generated always as (
  ('x' || left(md5(tenant_key || ' ' || conversation_id || ' ' || user_id), 16))::bit(64)::bigint
) stored;
alter table public.agent_buttons add column thread bigint not null generated always as (
  ('x' || left(md5(tenant_key || ' ' || conversation_id || ' ' || user_id), 16))::bit(64)::bigint
) stored;
alter table public.agent_cards add column thread bigint not null generated always as (
  ('x' || left(md5(tenant_key || ' ' || conversation_id || ' ' || user_id), 16))::bit(64)::bigint
) stored;
alter table public.agent_feedback add column thread bigint not null generated always as (
  ('x' || left(md5(tenant_key || ' ' || conversation_id || ' ' || user_id), 16))::bit(64)::bigint
) stored;

create unique index agent_turns_thread_key on public.agent_turns (thread, id);
create index agent_turns_conversation_idx on public.agent_turns (conversation_id);
alter table public.agent_messages
  drop constraint agent_messages_turn_fkey,
  add constraint agent_messages_turn_fkey foreign key (thread, turn_id)
    references public.agent_turns (thread, id) on delete cascade not valid;
alter table public.agent_buttons
  drop constraint agent_buttons_turn_fkey,
  add constraint agent_buttons_turn_fkey foreign key (thread, turn_id)
    references public.agent_turns (thread, id) on delete cascade not valid;
alter table public.agent_cards
  drop constraint agent_cards_turn_fkey,
  add constraint agent_cards_turn_fkey foreign key (thread, turn_id)
    references public.agent_turns (thread, id) on delete cascade not valid;
alter table public.agent_feedback
  drop constraint agent_feedback_turn_fkey,
  add constraint agent_feedback_turn_fkey foreign key (thread, turn_id)
    references public.agent_turns (thread, id) on delete cascade;
alter table public.agent_turns
  drop constraint agent_turns_again_fkey,
  add constraint agent_turns_again_fkey foreign key (thread, again_of)
    references public.agent_turns (thread, id) on delete cascade;
-- where it is not gone yet
alter table if exists public.agent_turn_terms
  drop constraint agent_turn_terms_turn_fkey,
  add constraint agent_turn_terms_turn_fkey foreign key (turn_id)
    references public.agent_turns (id) on delete cascade not valid;
drop index public.agent_turns_place_key;
