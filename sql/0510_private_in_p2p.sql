-- Purpose: what one person alone is shown of a question asked in a group belongs to their p2p chat with the bot.
--
-- What earlier versions kept under a conversation of its own, with the person's open_id as chat_id, stays there
-- and is found there. So is what is shown to somebody whose p2p chat is not known.

-- Whether one person may see the card beside a group, where it is deleted by another call.
alter table public.agent_withdrawals add column of_one boolean not null default false;
update public.agent_withdrawals set of_one = true where starts_with(chat_id, 'ou_');

create index p2p_chats_chat_idx on public.p2p_chats (chat_id);

alter table public.agent_turns drop constraint agent_turns_check;
alter table public.agent_turns add constraint agent_turns_drawn_on_private
  check (drawn_on = '{}' or chat_id = actor_id or (origin = 'private_answer' and user_id = actor_id)) not valid;

-- Only who reads them alone is offered or shown anything. Not valid: it holds for the rows that are there.
alter table public.agent_buttons drop constraint agent_buttons_private;
alter table public.agent_buttons add constraint agent_buttons_private
  check (kind not in ('show', 'share') or (user_id = actor_id and chat_type = 'p2p')) not valid;

-- The buttons of a card that stands beside the group are pressed there, under a token of the group. Of the other
-- buttons of the person's p2p chat nothing is read there.
drop policy agent_buttons_select on public.agent_buttons;
create policy agent_buttons_select on public.agent_buttons
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or (chat_id = (select public.claim('actor')) and chat_id = (select public.claim('sub')))
         or ((kind in ('show', 'share') or payload ? 'beside')
             and chat_id in (select p.chat_id from public.p2p_chats p))));

drop policy agent_presses_select on public.agent_presses;
create policy agent_presses_select on public.agent_presses
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or (chat_id = (select public.claim('actor')) and chat_id = (select public.claim('sub')))
         or (chat_id in (select p.chat_id from public.p2p_chats p)
             and exists (select from public.agent_buttons b where b.id = button_id))));
drop policy agent_presses_insert on public.agent_presses;
create policy agent_presses_insert on public.agent_presses
  for insert to authenticated with check (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and operator_id = (select public.claim('actor'))
    and (chat_id = (select public.claim('chat_id'))
         or (chat_id = (select public.claim('actor')) and chat_id = (select public.claim('sub')))
         or (chat_id in (select p.chat_id from public.p2p_chats p)
             and exists (select from public.agent_buttons b where b.id = button_id))));
