-- Purpose: which chats there are, and who is in which group, as Feishu said it in the background.
--
-- Nobody is asked about it on the way of a message. What is not known counts as not being in: a
-- membership that nothing has confirmed for `membership_lasts()` gives no right. Only the service
-- writes; a turn's token reads its own chat, and a person speaking for themselves their memberships.

-- For how long a membership holds after it was last confirmed. Policies may depend on it.
create function public.membership_lasts() returns interval
language sql immutable security invoker
return interval '24 hours';

-- A chat as one tenant's people use it: a group of two tenants is two rows.
create table public.chats (
  tenant_key text not null default '',   -- the sender's, as in the other tables
  chat_id text not null check (chat_id <> ''),
  chat_type text check (chat_type in ('group', 'p2p')),  -- null: not learned yet
  name text not null default '',
  name_seen_at timestamptz,              -- when Feishu last gave that name
  active_at timestamptz,                 -- the last message known, or the adding of the bot
  members_read_at timestamptz,           -- as of when everybody in it was known; null: never
  gone_at timestamptz,                   -- the bot was removed, or the chat was disbanded
  asked_at timestamptz,                  -- when a worker last took it to ask Feishu
  due_at timestamptz not null default now(),  -- not to be asked about before
  failures smallint not null default 0,  -- how often in a row Feishu did not answer
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_key, chat_id)
);
create index chats_chat_idx on public.chats (chat_id);
create index chats_due_idx on public.chats (due_at)
  where gone_at is null and chat_type is distinct from 'p2p';

create table public.chat_members (
  tenant_key text not null default '',   -- the member's
  chat_id text not null check (chat_id <> ''),
  open_id text not null check (open_id <> ''),
  joined_at timestamptz,                 -- null: there already when the list was first read
  seen_at timestamptz not null default now(),  -- when this was last confirmed; expires
  left_at timestamptz,                   -- out since then; kept until a list says so too
  primary key (tenant_key, chat_id, open_id)
);
create index chat_members_chat_idx on public.chat_members (chat_id);
create index chat_members_person_idx on public.chat_members (open_id, tenant_key)
  where left_at is null;

alter table public.chats enable row level security;
alter table public.chat_members enable row level security;

create policy chats_select on public.chats for select to authenticated using (
  chat_id = (select public.claim('chat_id'))
  and tenant_key = coalesce((select public.claim('tenant_key')), ''));

create policy chat_members_select on public.chat_members for select to authenticated using (
  open_id = (select public.claim('actor'))
  and open_id = (select public.claim('sub'))
  and tenant_key = coalesce((select public.claim('tenant_key')), ''));

revoke all on public.chats, public.chat_members from anon, authenticated;
grant select on public.chats, public.chat_members to authenticated;
grant select, insert, update, delete on public.chats, public.chat_members to service_role;
