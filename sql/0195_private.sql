-- Purpose: private knowledge in public places, and buttons that ask what stands on them.
--
-- What a person is told privately in a group has a place of its own: the person. Its chat_id is their
-- open_id, its conversations are 'feishu:<open_id>:<the message they asked in the group>'; the token for
-- it says p2p, and is made for nobody else. A button that stands in that place is pressed by that person
-- only, wherever its card is shown.

-- The chats that a person has with the bot alone, that place among them. Ids only.
create table public.p2p_chats (
  tenant_key text not null default '',
  open_id text not null check (open_id <> ''),
  chat_id text not null check (chat_id <> ''),
  primary key (tenant_key, open_id, chat_id)
);
alter table public.p2p_chats enable row level security;
create policy p2p_chats_select on public.p2p_chats for select to authenticated using (
  open_id = (select public.claim('actor'))
  and open_id = (select public.claim('sub'))
  and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy p2p_chats_insert on public.p2p_chats for insert to authenticated with check (
  open_id = (select public.claim('actor'))
  and open_id = (select public.claim('sub'))
  and chat_id = (select public.claim('chat_id'))
  and (select public.claim('chat_type')) = 'p2p'
  and tenant_key = coalesce((select public.claim('tenant_key')), ''));
revoke all on public.p2p_chats from anon, authenticated;
grant select, insert on public.p2p_chats to authenticated;
grant select, insert, update, delete on public.p2p_chats to service_role;
insert into public.p2p_chats (tenant_key, open_id, chat_id)
select distinct c.tenant_key, c.user_id, c.chat_id from public.agent_chats c where c.chat_type = 'p2p';

-- The other places that may be read, {chat_id: since when}: in p2p, the person's own, and the groups
-- they are in. In a group there are none.
create or replace function public.readable_chats() returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if public.claim('chat_type') is distinct from 'p2p'
     or public.claim('sub') is distinct from public.claim('actor') then
    return '{}';
  end if;
  return (
    select coalesce(jsonb_object_agg(r.chat_id, r.since), '{}')
    from (
      select m.chat_id, coalesce(m.joined_at, '-infinity') as since
      from public.chat_members m
      where m.open_id = public.claim('actor')
        and m.tenant_key = coalesce(public.claim('tenant_key'), '')
        and m.left_at is null and m.seen_at > now() - public.membership_lasts()
      union all
      select p.chat_id, '-infinity'
      from public.p2p_chats p
      where p.open_id = public.claim('actor')
        and p.tenant_key = coalesce(public.claim('tenant_key'), '')
    ) r);
end
$$;

-- Two more kinds: `show` offers a private answer, `share` publishes one.
alter table public.agent_buttons drop constraint agent_buttons_kind_check;
alter table public.agent_buttons add constraint agent_buttons_kind_check
  check (kind in ('follow_up', 'confirm', 'show', 'share'));
alter table public.agent_buttons add constraint agent_buttons_private
  check (kind not in ('show', 'share') or chat_id = actor_id);
-- What is asked is what is shown. Rows from before are not checked again: they count as expired.
alter table public.agent_buttons add constraint agent_buttons_asks_its_label
  check (kind <> 'follow_up' or (payload ->> 'text') is not distinct from label) not valid;

drop policy agent_buttons_select on public.agent_buttons;
create policy agent_buttons_select on public.agent_buttons for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and (chat_id = (select public.claim('chat_id'))
       or (chat_id = (select public.claim('actor')) and chat_id = (select public.claim('sub')))));
drop policy agent_presses_select on public.agent_presses;
create policy agent_presses_select on public.agent_presses for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and (chat_id = (select public.claim('chat_id'))
       or (chat_id = (select public.claim('actor')) and chat_id = (select public.claim('sub')))));
drop policy agent_presses_insert on public.agent_presses;
create policy agent_presses_insert on public.agent_presses for insert to authenticated with check (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and operator_id = (select public.claim('actor'))
  and (chat_id = (select public.claim('chat_id'))
       or (chat_id = (select public.claim('actor')) and chat_id = (select public.claim('sub')))));
