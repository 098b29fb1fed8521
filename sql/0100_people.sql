-- Purpose: who is who. A person is an open_id in a tenant, under whatever name; and, where it is
-- wanted, one user of Supabase Auth, so that other apps of the team can tell people by auth.uid().
--
-- Only the service writes. A turn's token reads the two people it speaks of; the token of an Auth
-- user reads their own row.

create table public.people (
  tenant_key text not null,
  open_id text not null check (open_id <> ''),
  name text not null default '',          -- as Feishu last gave it; '' while nobody has said it
  name_seen_at timestamptz,               -- when that name was last seen
  auth_user_id uuid,                      -- auth.users.id; null while there is no such user
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_key, open_id),
  check ((name = '') = (name_seen_at is null))
);
create index people_open_id_idx on public.people (open_id);
create unique index people_auth_user_idx on public.people (auth_user_id)
  where auth_user_id is not null;
create index people_unlinked_idx on public.people (tenant_key, open_id)
  where auth_user_id is null;

-- The Auth user of the request's token; null for the token of a turn, whose sub is an open_id.
create function public.token_auth_user() returns uuid
language sql stable security invoker
return case
  when public.claim('actor') is null
    and public.claim('sub') ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'
  then public.claim('sub')::uuid end;
revoke execute on function public.token_auth_user() from public, anon;
grant execute on function public.token_auth_user() to authenticated, service_role;

alter table public.people enable row level security;
create policy people_select on public.people for select to authenticated using (
  (tenant_key = coalesce((select public.claim('tenant_key')), '')
   and (select public.claim('actor')) is not null
   and open_id in ((select public.claim('sub')), (select public.claim('actor'))))
  or auth_user_id = (select public.token_auth_user()));

revoke all on public.people from anon, authenticated;
grant select on public.people to authenticated;
grant select, insert, update, delete on public.people to service_role;

-- For other apps: who the signed-in user is in Feishu. No row: nobody that the bot has met.
create function public.feishu_person() returns table (tenant_key text, open_id text, name text)
language sql stable security invoker set search_path = ''
as $$
  select p.tenant_key, p.open_id, p.name
  from public.people p
  where p.auth_user_id = (select public.token_auth_user())
$$;
revoke execute on function public.feishu_person() from public, anon;
grant execute on function public.feishu_person() to authenticated, service_role;

-- Names as they are known in one tenant. p_open_ids: a JSON array. Who is not known is absent.
create function public.people_named(p_tenant_key text, p_open_ids text) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'open_id', p.open_id, 'name', p.name,
    'seen_ms', coalesce(round(extract(epoch from p.name_seen_at) * 1000)::bigint, 0))), '[]')
  from public.people p
  where p.tenant_key = p_tenant_key
    and p.open_id in (select jsonb_array_elements_text(p_open_ids::jsonb))
$$;

-- Stores sightings: a JSON array of {tenant_key, open_id, name, seen_ms}. A new name replaces an
-- older sighting, never a later one; a sighting without a name only makes the person known.
-- Returns how many people are new.
create function public.remember_people(p_people text) returns integer
language sql volatile security invoker set search_path = ''
as $$
  with seen as (
    -- in the order of the key, so that two workers never wait for each other in a circle
    select distinct on (s.tenant_key, s.open_id)
      s.tenant_key, s.open_id, s.name,
      case when s.name <> '' then to_timestamp(s.seen_ms / 1000.0) end as name_seen_at
    from jsonb_to_recordset(p_people::jsonb)
      as s (tenant_key text, open_id text, name text, seen_ms bigint)
    order by s.tenant_key, s.open_id, (s.name <> '') desc, s.seen_ms desc
  ),
  stored as (
    insert into public.people as p (tenant_key, open_id, name, name_seen_at)
    select * from seen
    on conflict (tenant_key, open_id) do update set
      name = excluded.name,
      name_seen_at = excluded.name_seen_at,
      updated_at = case when p.name = excluded.name then p.updated_at else now() end
    where excluded.name <> ''
      and (p.name_seen_at is null or p.name_seen_at < excluded.name_seen_at)
    returning xmax = 0 as is_new
  )
  select count(*)::integer from stored where is_new
$$;

-- People in the order of their key, after (p_after_tenant, p_after_open_id); each filter may be null.
create function public.list_people(
  p_open_id text, p_tenant_key text, p_unlinked boolean,
  p_after_tenant text, p_after_open_id text, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'tenant_key', r.tenant_key, 'open_id', r.open_id, 'name', r.name,
    'auth_user_id', r.auth_user_id) order by r.tenant_key, r.open_id), '[]')
  from (
    select * from public.people p
    where (p_open_id is null or p.open_id = p_open_id)
      and (p_tenant_key is null or p.tenant_key = p_tenant_key)
      and (not coalesce(p_unlinked, false) or p.auth_user_id is null)
      and (p_after_open_id is null
           or (p.tenant_key, p.open_id) > (p_after_tenant, p_after_open_id))
    order by p.tenant_key, p.open_id
    limit p_limit
  ) r
$$;

create function public.count_people(p_unlinked boolean) returns bigint
language sql stable security invoker set search_path = ''
as $$
  select count(*) from public.people p where not p_unlinked or p.auth_user_id is null
$$;

-- Links a person to their Auth user; the first link stays. Returns the user linked now, null for
-- somebody who is not known (any more).
create function public.link_person(p_tenant_key text, p_open_id text, p_auth_user_id text)
returns text
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  v_linked uuid;
begin
  update public.people
  set auth_user_id = p_auth_user_id::uuid, updated_at = now()
  where tenant_key = p_tenant_key and open_id = p_open_id and auth_user_id is null;
  select p.auth_user_id into v_linked
  from public.people p where p.tenant_key = p_tenant_key and p.open_id = p_open_id;
  return v_linked;
end
$$;

do $$
declare
  f regprocedure;
begin
  for f in
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.proname in (
      'people_named', 'remember_people', 'list_people', 'count_people',
      'link_person')
  loop
    execute format('revoke execute on function %s from public, anon, authenticated', f);
    execute format('grant execute on function %s to service_role', f);
  end loop;
end
$$;

-- Everybody whom the memory knows already, other bots left out.
with named as (
  select distinct on (m.tenant_key, m.actor_id)
    m.tenant_key, m.actor_id as open_id, m.actor_name as name, m.created_at as name_seen_at
  from public.agent_messages m
  where m.role = 'user' and m.actor_name not in ('', m.actor_id)
  order by m.tenant_key, m.actor_id, m.id desc
)
insert into public.people (tenant_key, open_id, name, name_seen_at)
select k.tenant_key, k.open_id, coalesce(n.name, ''), n.name_seen_at
from (
  select c.tenant_key, c.user_id as open_id from public.agent_chats c
  union
  select t.tenant_key, t.actor_id from public.agent_turns t where t.actor_id <> ''
) k
left join named n using (tenant_key, open_id)
where not exists (select from public.chat_transcript t where t.author_id = k.open_id and t.is_bot)
on conflict do nothing;
