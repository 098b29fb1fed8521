-- Purpose: who is who: names as they were last seen, and the users of Supabase Auth.

-- For other apps: who the signed-in user is in Feishu. No row: nobody that the bot has met.
create or replace function public.feishu_person()
returns table (tenant_key text, open_id text, name text)
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select p.tenant_key, p.open_id, p.name
  from public.people p
  where p.auth_user_id = (select public.token_auth_user())
$$;

-- Names as they are known in one tenant. p_open_ids: a JSON array. Who is not known is absent.
create or replace function public.people_named(p_tenant_key text, p_open_ids text) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'open_id', p.open_id, 'name', p.name,
    'seen_ms', coalesce(round(extract(epoch from p.name_seen_at) * 1000)::bigint, 0))), '[]')
  from public.people p
  where p.tenant_key = p_tenant_key
    and p.open_id in (select jsonb_array_elements_text(p_open_ids::jsonb))
$$;

-- The advisory lock of who stores names (shared) and who forgets somebody (exclusive): a name is stored before the
-- forgetting, which deletes it, or after it, and is then refused.
create or replace function bot_private.names_lock() returns bigint
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$ select hashtextextended('bot_private.names_lock', 0) $$;

-- Stores sightings: a JSON array of {tenant_key, open_id, name, seen_ms, met}. A new name replaces an
-- older sighting, never a later one; a sighting without a name only makes the person known. Whoever was forgotten becomes
-- known only when they are met again; a look-up of their name (met: false) is not enough. Returns how many people are new.
create or replace function public.remember_people(p_people text) returns integer
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_new integer;
begin
  perform pg_advisory_xact_lock_shared(bot_private.names_lock());
  with seen as (
    -- in the order of the key, so that two workers never wait for each other in a circle
    select distinct on (s.tenant_key, s.open_id)
      s.tenant_key, s.open_id, s.name,
      case when s.name <> '' then to_timestamp(s.seen_ms / 1000.0) end as name_seen_at
    from jsonb_to_recordset(p_people::jsonb)
      as s (tenant_key text, open_id text, name text, seen_ms bigint, met boolean)
    where not exists (
      select from public.forgotten_people f
      where f.mark = public.person_mark(s.open_id)
        and (f.at >= to_timestamp(s.seen_ms / 1000.0) or s.met is false and not exists (
          select from public.people p where (p.tenant_key, p.open_id) = (s.tenant_key, s.open_id))))
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
  select count(*)::integer into v_new from stored where is_new;
  return v_new;
end
$$;

-- People in the order of their key, after (p_after_tenant, p_after_open_id); each filter may be null.
create or replace function public.list_people(
  p_open_id text, p_tenant_key text, p_unlinked boolean,
  p_after_tenant text, p_after_open_id text, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
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

create or replace function public.count_people(p_unlinked boolean) returns bigint
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select count(*) from public.people p where not p_unlinked or p.auth_user_id is null
$$;

-- Links a person to their Auth user; the first link stays. Returns the user linked now, null for
-- somebody who is not known (any more).
create or replace function public.link_person(
  p_tenant_key text, p_open_id text, p_auth_user_id text
) returns text
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
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
