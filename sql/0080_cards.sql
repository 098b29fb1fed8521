-- Purpose: the card of an answer that is still being written, so that whoever goes on with the turn
-- after a crash goes on with the same card.
--
-- Feishu wants a number with every operation on a card, and each greater than the last. Whoever works
-- on a card reserves a block of numbers here first, and one database write serves all its frames.

create table public.agent_cards (
  turn_id text primary key references public.agent_turns (id) on delete cascade,
  conversation_id text not null,
  user_id text not null check (user_id <> ''),   -- the subject of the turn
  actor_id text not null check (actor_id <> ''), -- who asked
  tenant_key text not null default '',
  chat_id text not null,
  card_id text not null,                  -- of CardKit
  reply_to text not null,                 -- the message that the card answers
  in_thread boolean not null,
  message_id text,                        -- of the message that shows the card, once it is known
  sequence integer not null,              -- the last number of the block that was reserved last
  streaming boolean not null default true, -- false: finished, or never sent
  opened_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index agent_cards_conversation_idx on public.agent_cards (conversation_id, user_id);
create index agent_cards_user_idx on public.agent_cards (user_id);
create index agent_cards_actor_idx on public.agent_cards (actor_id);
create index agent_cards_streaming_idx on public.agent_cards (opened_at) where streaming;

alter table public.agent_cards enable row level security;

-- Within reach of whoever reaches the turn.
create policy agent_cards_select on public.agent_cards for select to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
create policy agent_cards_insert on public.agent_cards for insert to authenticated with check (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor')))
    and actor_id = (select public.claim('actor')));
create policy agent_cards_update on public.agent_cards for update to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor')))
) with check (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));

revoke all on public.agent_cards from anon;
grant select, insert, update on public.agent_cards to authenticated;
grant select, insert, update, delete on public.agent_cards to service_role;
