-- Purpose: notes of a person, and the registry of the notes each conversation has worked with.
--
-- A note is reachable by its owner speaking for themselves (sub = actor), and readable in the chat
-- it was explicitly shared with. The registry of a conversation belongs to the same person.

create table public.agent_notes (
  id text primary key,                    -- note_ and ten base32 characters
  user_id text not null check (user_id <> ''),
  tenant_key text not null default '',
  chat_id text not null,                  -- where it was created
  conversation_id text not null,
  title text not null check (length(title) between 1 and 200),
  body text not null default '' check (length(body) <= 20000),
  tags text[] not null default '{}' check (cardinality(tags) <= 20),
  shared_chat_id text,                    -- null: only the owner reads it
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now()
);
create index agent_notes_user_idx on public.agent_notes (user_id, created_at desc);
create index agent_notes_shared_idx on public.agent_notes (shared_chat_id)
  where shared_chat_id is not null;

create table public.agent_note_uses (
  conversation_id text not null,
  user_id text not null,
  note_id text not null references public.agent_notes (id) on delete cascade,
  tenant_key text not null default '',
  ordinal bigint generated always as identity,  -- order of creation or first touch
  last_action text not null
    check (last_action in ('created', 'read', 'found', 'listed', 'updated', 'shared', 'unshared')),
  last_used_at timestamptz,               -- null: only listed so far, never worked with
  primary key (conversation_id, user_id, note_id),
  foreign key (conversation_id, user_id)
    references public.agent_chats (id, user_id) on delete cascade
);
create index agent_note_uses_note_idx on public.agent_note_uses (note_id);

alter table public.agent_notes enable row level security;
alter table public.agent_note_uses enable row level security;

-- One policy per operation; only reading knows sharing.
create policy agent_notes_select on public.agent_notes for select to authenticated using (
    (user_id = (select public.claim('sub'))
     and user_id = (select public.claim('actor'))
     and tenant_key = coalesce((select public.claim('tenant_key')), ''))
    or (shared_chat_id = (select public.claim('chat_id'))
        and tenant_key = coalesce((select public.claim('tenant_key')), '')));
create policy agent_notes_insert on public.agent_notes for insert to authenticated with check (
    user_id = (select public.claim('sub'))
    and user_id = (select public.claim('actor'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_notes_update on public.agent_notes for update to authenticated using (
    user_id = (select public.claim('sub'))
    and user_id = (select public.claim('actor'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
) with check (
    user_id = (select public.claim('sub'))
    and user_id = (select public.claim('actor'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_notes_delete on public.agent_notes for delete to authenticated using (
    user_id = (select public.claim('sub'))
    and user_id = (select public.claim('actor'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));

create policy agent_note_uses_select on public.agent_note_uses for select to authenticated using (
    user_id = (select public.claim('sub'))
    and user_id = (select public.claim('actor'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_note_uses_insert on public.agent_note_uses
  for insert to authenticated with check (
    user_id = (select public.claim('sub'))
    and user_id = (select public.claim('actor'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_note_uses_update on public.agent_note_uses for update to authenticated using (
    user_id = (select public.claim('sub'))
    and user_id = (select public.claim('actor'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
) with check (
    user_id = (select public.claim('sub'))
    and user_id = (select public.claim('actor'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_note_uses_delete on public.agent_note_uses for delete to authenticated using (
    user_id = (select public.claim('sub'))
    and user_id = (select public.claim('actor'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));

revoke all on public.agent_notes, public.agent_note_uses from anon;
grant select, insert, update, delete on public.agent_notes, public.agent_note_uses
  to authenticated, service_role;
