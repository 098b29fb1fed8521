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

alter table public.people enable row level security;
create policy people_select on public.people for select to authenticated using (
  (tenant_key = coalesce((select public.claim('tenant_key')), '')
   and (select public.claim('actor')) is not null
   and open_id in ((select public.claim('sub')), (select public.claim('actor'))))
  or auth_user_id = (select public.token_auth_user()));

revoke all on public.people from anon, authenticated;
grant select on public.people to authenticated;
grant select, insert, update, delete on public.people to service_role;

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
