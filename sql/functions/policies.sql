-- Purpose: the functions that policies call. They decide what a token may read, so a change here changes every
-- policy at once. schema.sql includes this file before the tables.

-- A claim of the request's token as text, null when there is no token or no such claim.
-- Set by PostgREST on hosted Supabase, by the bot itself over a direct connection.
create or replace function public.claim(name text) returns text
language sql stable security invoker
-- a body in this form is resolved once, here, so it needs no search path and can be inlined
return nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> name;

-- The Auth user of the request's token; null for the token of a turn, whose sub is an open_id.
create or replace function public.token_auth_user() returns uuid
language sql stable security invoker
return case
  when public.claim('actor') is null
    and public.claim('sub') ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
  then public.claim('sub')::uuid end;

-- For how long a membership holds after it was last confirmed. Policies may depend on it.
create or replace function public.membership_lasts() returns interval
language sql immutable security invoker
return interval '24 hours';

-- The sender's own tenant. In a group of several companies a guest's is another than the group's, which the claim
-- actor_tenant says; what is done later, without an event, finds it with the p2p chat.
create or replace function bot_private.tenant_outside_groups() returns text
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    nullif(public.claim('actor_tenant'), ''),
    (select p.person_tenant from public.p2p_chats p
     where p.tenant_key = coalesce(public.claim('tenant_key'), '')
       and p.open_id = public.claim('actor') and p.chat_id = public.claim('chat_id')),
    public.claim('tenant_key'), '')
$$;

-- This and other functions that every query of a turn asks are expressions: the planner writes them into the policy, and
-- calls another function only where the claims alone do not decide.
create or replace function public.own_tenant() returns text
language sql stable security invoker
return case
  when public.claim('chat_type') = 'group'
  then coalesce(nullif(public.claim('actor_tenant'), ''), public.claim('tenant_key'), '')
  else bot_private.tenant_outside_groups() end;

-- The other places that may be read, {chat_id: since when}: in p2p the person's own, and the groups they are in. In a
-- group there are none.
create or replace function bot_private.chats_of_sender() returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_own constant text := public.own_tenant();
begin
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

create or replace function public.readable_chats() returns jsonb
language sql stable security invoker
return case
  when public.claim('chat_type') is distinct from 'p2p'
    or public.claim('sub') is distinct from public.claim('actor')
  then '{}' else bot_private.chats_of_sender() end;

-- The groups that the person of the token is in, in p2p; in a group none. At most p_most.
create or replace function public.shared_groups(p_most integer) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(g.chat_id), '[]') from (
    select r.key as chat_id from jsonb_each(public.readable_chats()) r
    where r.key <> public.claim('chat_id') order by 1 limit p_most) g
$$;

-- Since when what was said in the token's chat may be told there: where newcomers do not see earlier messages, since
-- the newest member joined; where nobody knows who is in it, now. Only the time leaves: who is a member is no token's
-- to read.
--
-- feishu_bot.tells: 'nothing' where a function tells nothing of what it reads; 'all' where bot_private.tell_all found,
-- earlier in the same call, that nothing is hidden from anybody in the chat.
create or replace function bot_private.look_up_told_since() returns timestamptz
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_chat_id constant text := public.claim('chat_id');
begin
  if not exists (
    select from public.chat_rules r
    where r.chat_id = v_chat_id and r.tenant_key = coalesce(public.claim('tenant_key'), '')
      and r.history = 'hidden')
  then
    return '-infinity';
  elsif not exists (
    select from public.chats c
    where c.chat_id = v_chat_id and c.members_read_at > now() - public.membership_lasts())
  then
    return now();
  end if;
  return coalesce((
    select max(m.joined_at) from public.chat_members m
    where m.chat_id = v_chat_id and m.left_at is null), '-infinity');
end
$$;

create or replace function bot_private.told_since() returns timestamptz
language sql stable security invoker
return case
  when current_setting('feishu_bot.tells', true) in ('nothing', 'all') then '-infinity'
  else bot_private.look_up_told_since() end;

-- The sender's turns that are not answered yet: somebody who joins meanwhile does not stop them.
create or replace function bot_private.turns_under_way() returns text[]
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select array(
    select t.id from public.agent_turns t
    where t.state in ('open', 'pending') and t.actor_id = public.claim('actor')
      and t.chat_id = public.claim('chat_id')
      and t.tenant_key = coalesce(public.claim('tenant_key'), ''))
$$;

-- Since when a member of its group (null: all of them) may read an import. Nothing is known of somebody: never.
create or replace function bot_private.import_since(p_import_id integer, p_open_id text) returns timestamptz
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select case
    when exists (select from public.chat_rules r
                 where r.tenant_key = i.tenant_key and r.chat_id = i.chat_id and r.history = 'shown')
      then '-infinity'
    when p_open_id is null and not exists (
        select from public.chats c where c.tenant_key = i.tenant_key and c.chat_id = i.chat_id
          and c.members_read_at > now() - public.membership_lasts())
      then 'infinity'
    else coalesce((
      select max(case when m.joined_at is null then coalesce(k.since, 'infinity')
                 else greatest(m.joined_at, k.since) end)
      from public.chat_members m
      left join bot_private.import_members k on k.import_id = i.id and k.open_id = m.open_id
      where m.chat_id = i.chat_id and m.left_at is null
        and (m.open_id = p_open_id or p_open_id is null)), 'infinity') end
  from public.chat_imports i where i.id = p_import_id
$$;

-- The imports that the token of this turn may read, {id: since when}. An answer to a group draws on what all of
-- its members may read, one in p2p on what that person may.
create or replace function bot_private.readable_imports() returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_tenant_key constant text := coalesce(public.claim('tenant_key'), '');
  v_own constant text := public.claim('chat_id');
  v_p2p constant boolean := public.claim('chat_type') is not distinct from 'p2p';
  v_chats text[] := array[v_own];
begin
  if public.claim('sharing') is not distinct from 'person' then
    return '{}';
  end if;
  if v_p2p then
    v_chats := v_chats || array(select jsonb_object_keys(public.readable_chats()));
  end if;
  return (
    select coalesce(jsonb_object_agg(i.id, t.since) filter (where t.since < 'infinity'), '{}')
    from public.chat_imports i
    cross join lateral (
      select case
        when i.chat_type = 'group' then
          bot_private.import_since(i.id, case when v_p2p then public.claim('actor') end)
        when v_p2p and i.chat_id = v_own then '-infinity' else 'infinity' end::timestamptz as since) t
    where i.tenant_key = v_tenant_key and i.chat_id = any (v_chats) and i.state <> 'removing');
end
$$;
