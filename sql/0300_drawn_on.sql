-- Purpose: what else goes when a message is taken back: answers that only one person sees, found by what
-- they drew on, and cards of turns whose own words are not kept.

-- Of a private answer the turns that its prompt was given. Ids only.
alter table public.agent_turns add column drawn_on text[] not null default '{}'
  check (drawn_on = '{}' or chat_id = actor_id);
grant update (drawn_on) on public.agent_turns to authenticated;
create index agent_turns_drawn_on_idx on public.agent_turns using gin (drawn_on) where drawn_on <> '{}';

-- Of a turn that keeps no words the cards it is shown by.
alter table public.agent_turns add column kept_cards text[] not null default '{}';
create index agent_turns_kept_cards_idx on public.agent_turns (tenant_key, user_id)
  where kept_cards <> '{}';
