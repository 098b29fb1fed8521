-- Purpose: the buttons under a card, who pressed them, and a fresh start within a thread.
--
-- A button stands in a chat where everyone can see it, so it is read with a token of that chat,
-- whoever presses. What it does stands here and never in the card: the card carries the id only.
-- A press is a row of its own whose key is the group, so that the first one wins without a lock.

create table public.agent_buttons (
  id text primary key,                    -- 128 random bits, base64url
  group_id text not null,                 -- of the buttons of a group only one can be pressed
  turn_id text not null references public.agent_turns (id) on delete cascade,
  chunk smallint not null,                -- the card of the turn that shows it
  ordinal smallint not null,
  conversation_id text not null,
  user_id text not null check (user_id <> ''),   -- the subject of the turn
  actor_id text not null check (actor_id <> ''), -- who asked; only they press a confirmation
  tenant_key text not null default '',
  chat_id text not null,
  chat_type text not null check (chat_type in ('group', 'p2p')),
  kind text not null check (kind in ('follow_up', 'confirm')),
  label text not null,
  payload jsonb not null default '{}',
  message_id text,                        -- of the card, once it is sent
  expires_at timestamptz not null,
  created_at timestamptz not null default now()
);
create index agent_buttons_turn_idx on public.agent_buttons (turn_id, chunk, ordinal);
create index agent_buttons_conversation_idx on public.agent_buttons (conversation_id, user_id);
create index agent_buttons_user_idx on public.agent_buttons (user_id);
create index agent_buttons_actor_idx on public.agent_buttons (actor_id);

create table public.agent_presses (
  group_id text primary key,
  button_id text not null references public.agent_buttons (id) on delete cascade,
  chat_id text not null,
  tenant_key text not null default '',
  operator_id text not null check (operator_id <> ''),
  event_id text not null,                 -- the click; delivered again it is the same press
  created_at timestamptz not null default now()
);
create index agent_presses_button_idx on public.agent_presses (button_id);
create index agent_presses_operator_idx on public.agent_presses (operator_id);

alter table public.agent_buttons enable row level security;
alter table public.agent_presses enable row level security;

create policy agent_buttons_select on public.agent_buttons for select to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_buttons_insert on public.agent_buttons for insert to authenticated with check (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and user_id = (select public.claim('sub')) and actor_id = (select public.claim('actor')));
create policy agent_buttons_update on public.agent_buttons for update to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and user_id = (select public.claim('sub')) and actor_id = (select public.claim('actor'))
) with check (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and user_id = (select public.claim('sub')) and actor_id = (select public.claim('actor')));

create policy agent_presses_select on public.agent_presses for select to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_presses_insert on public.agent_presses for insert to authenticated with check (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and operator_id = (select public.claim('actor')));

revoke all on public.agent_buttons, public.agent_presses from anon;
grant select, insert, update on public.agent_buttons to authenticated;
grant select, insert on public.agent_presses to authenticated;
grant select, insert, update, delete on public.agent_buttons, public.agent_presses to service_role;

-- A fresh start: messages up to this id are kept, and no longer given to the model.
alter table public.agent_chats add column history_from bigint not null default 0;
