-- Purpose: the three roles the policies name, and the one way to read a token's claims.
-- Hosted Supabase has the roles already; elsewhere they are created, by an owner who may create roles
-- and has bypassrls. Without these the statements for a superuser are named.

do $$
declare
  -- since Postgres 16 who creates a role is a member of it without being able to act as it
  acting constant text := case when current_setting('server_version_num')::int >= 160000
                          then 'set' else 'member' end;
begin
  if not exists (select from pg_roles where rolname = 'anon') then
    create role anon nologin noinherit;
  end if;
  if not exists (select from pg_roles where rolname = 'authenticated') then
    create role authenticated nologin noinherit;
  end if;
  if not exists (select from pg_roles where rolname = 'service_role') then
    create role service_role nologin noinherit bypassrls;
  end if;
  -- the bot's own connection acts as these roles, one transaction at a time
  if not pg_has_role(current_user, 'authenticated', acting) then
    execute format('grant authenticated to %I', current_user);
  end if;
  if not pg_has_role(current_user, 'service_role', acting) then
    execute format('grant service_role to %I', current_user);
  end if;
exception when insufficient_privilege then
  raise exception 'a superuser has to run once, leaving out what is there: create role anon nologin noinherit; create role authenticated nologin noinherit; create role service_role nologin noinherit bypassrls; grant authenticated, service_role to %', quote_ident(current_user)
    using errcode = 'PT403';
end
$$;

grant usage on schema public to anon, authenticated, service_role;

-- A claim of the request's token as text, null when there is no token or no such claim.
-- Set by PostgREST on hosted Supabase, by the bot itself over a direct connection.
create function public.claim(name text) returns text
language sql stable security invoker
-- a body in this form is resolved once, here, so it needs no search path and can be inlined
return nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> name;
