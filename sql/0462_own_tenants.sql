-- Purpose: a person is an open_id in their own tenant. In a group of several companies a guest's is another
-- than the one that has the bot, which is the tenant of all rows of the group.
--
-- The claim actor_tenant says it where it differs. What is done later, without an event, finds it with the p2p chat.

alter table public.p2p_chats add column person_tenant text;  -- null: from before, not known

create function public.own_tenant() returns text
language sql stable security invoker set search_path = ''
as $$
  select coalesce(
    nullif(public.claim('actor_tenant'), ''),
    (select p.person_tenant from public.p2p_chats p
     where p.tenant_key = coalesce(public.claim('tenant_key'), '')
       and p.open_id = public.claim('actor') and p.chat_id = public.claim('chat_id')),
    public.claim('tenant_key'), '')
$$;
revoke all on function public.own_tenant() from public, anon;
grant execute on function public.own_tenant() to authenticated, service_role;

drop policy chat_members_select on public.chat_members;
create policy chat_members_select on public.chat_members for select to authenticated using (
  open_id = (select public.claim('actor'))
  and open_id = (select public.claim('sub'))
  and tenant_key = (select public.own_tenant()));

create or replace function public.readable_chats() returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  v_own text;
begin
  if public.claim('chat_type') is distinct from 'p2p'
     or public.claim('sub') is distinct from public.claim('actor') then
    return '{}';
  end if;
  v_own := public.own_tenant();
  return (
    select coalesce(jsonb_object_agg(r.chat_id, r.since), '{}')
    from (
      select m.chat_id, coalesce(m.joined_at, '-infinity') as since
      from public.chat_members m
      where m.open_id = public.claim('actor') and m.tenant_key = v_own
        and m.left_at is null and m.seen_at > now() - public.membership_lasts()
      union all
      select p.chat_id, '-infinity'
      from public.p2p_chats p
      where p.open_id = public.claim('actor')
        and p.tenant_key = coalesce(public.claim('tenant_key'), '')
        and coalesce(p.person_tenant, v_own) = v_own
    ) r);
end
$$;
