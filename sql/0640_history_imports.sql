-- Purpose: the history of a chat from before the bot came, read from Feishu on request, and who may read it.

-- The rule `history`, as its owner states it; null: nobody has stated it.
alter table public.chat_rules drop constraint chat_rules_history_check;
alter table public.chat_rules add constraint chat_rules_history_check check (history in ('hidden', 'shown'));

-- One for each chat. It goes with all that came of it.
create table public.chat_imports (
  id integer generated always as identity primary key,
  tenant_key text not null,
  chat_id text not null check (chat_id <> ''),
  chat_type text not null check (chat_type in ('group', 'p2p')),
  started_by text not null default '',  -- an open_id; '': an operator
  since timestamptz,  -- null: everything
  until timestamptz not null,
  state text not null default 'running'
    check (state in ('running', 'paused', 'removing', 'done', 'failed')),
  phase text not null default 'chat' check (phase in ('chat', 'threads', 'finishing')),
  position text not null default '' check (length(position) <= 1000),  -- how far the chat has been read
  estimated integer not null default 0,
  pages integer not null default 0,
  messages integer not null default 0,
  report jsonb not null default '{}',  -- what was not kept, counted by kind
  error text not null default '',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  finished_at timestamptz,
  unique (tenant_key, chat_id)
);
alter table public.chat_imports enable row level security;
revoke all on sequence public.chat_imports_id_seq from public, anon, authenticated;
create policy chat_imports_select on public.chat_imports for select to authenticated using (
  tenant_key = coalesce((select public.claim('tenant_key')), '')
  and chat_id = any (array(select jsonb_object_keys(public.readable_chats()))
                     || (select public.claim('chat_id'))));
create policy chat_imports_insert on public.chat_imports for insert to authenticated with check (
  chat_id = (select public.claim('chat_id'))
  and tenant_key = coalesce((select public.claim('tenant_key')), '')
  and started_by = (select public.claim('actor'))
  and exists (select from public.chat_managers m where m.chat_id = chat_imports.chat_id and
    m.tenant_key = chat_imports.tenant_key and m.open_id = (select public.claim('actor')) and
    (m.role = 'adder' or m.seen_at > now() - interval '10 minutes')));
create policy chat_imports_update on public.chat_imports for update to authenticated using (
  chat_id = (select public.claim('chat_id'))
  and tenant_key = coalesce((select public.claim('tenant_key')), '')
  and exists (select from public.chat_managers m where m.chat_id = chat_imports.chat_id and
    m.tenant_key = chat_imports.tenant_key and m.open_id = (select public.claim('actor')) and
    (m.role = 'adder' or m.seen_at > now() - interval '10 minutes')));
revoke all on public.chat_imports from anon, authenticated;
grant select, insert (tenant_key, chat_id, chat_type, started_by, since, until, estimated),
  update (started_by, since, until, state, phase, position, estimated, pages, report, error, updated_at,
    finished_at) on public.chat_imports to authenticated;
grant select, insert, update, delete, truncate on public.chat_imports to service_role;

-- Threads that are still to be read.
create table bot_private.import_threads (
  import_id integer not null references public.chat_imports (id) on delete cascade,
  thread_id text not null,
  position text not null default '' check (length(position) <= 1000),
  is_read boolean not null default false,
  primary key (import_id, thread_id)
);
alter table bot_private.import_threads enable row level security;
grant select, insert, update, delete, truncate on bot_private.import_threads to service_role;

-- What the messages of the system said of joining and leaving, by name, until the import is done.
create table bot_private.import_joins (
  import_id integer not null references public.chat_imports (id) on delete cascade,
  name text not null,
  at timestamptz not null,
  joined boolean not null,
  primary key (import_id, name, at, joined)
);
alter table bot_private.import_joins enable row level security;
grant select, insert, update, delete, truncate on bot_private.import_joins to service_role;

-- Since when each member may read the import. Who is not in it reads nothing of it.
create table bot_private.import_members (
  import_id integer not null references public.chat_imports (id) on delete cascade,
  open_id text not null,
  since timestamptz not null,
  primary key (import_id, open_id)
);
alter table bot_private.import_members enable row level security;
grant select, insert, update, delete, truncate on bot_private.import_members to service_role;

-- Since when a member of its group (null: all of them) may read an import. Nothing is known of somebody: never.
create function bot_private.import_since(p_import_id integer, p_open_id text) returns timestamptz
language sql stable security definer set search_path = ''
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
create function bot_private.readable_imports() returns jsonb
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_tenant_key constant text := coalesce(public.claim('tenant_key'), '');
  v_own constant text := public.claim('chat_id');
  v_p2p constant boolean := public.claim('chat_type') is not distinct from 'p2p';
  v_chats text[] := array[v_own];
begin
  if public.claim('sharing') is not distinct from 'person'
     or not exists (select from public.chat_imports i where i.tenant_key = v_tenant_key) then
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
revoke all on function bot_private.import_since(integer, text), bot_private.readable_imports()
  from public, anon;
grant execute on function bot_private.import_since(integer, text), bot_private.readable_imports()
  to authenticated, service_role;

-- A message from before, as Feishu lists it. Its id is below zero and follows from time and message_id, so it is
-- the same in whatever order the history is read, and stands where the message stood.
create table public.imported_messages (
  id bigint primary key check (id < 0),
  sent_at timestamptz not null,
  import_id integer not null references public.chat_imports (id) on delete cascade,
  position integer not null default 0,  -- its number in the chat; 0: Feishu does not tell
  tenant_key text not null,
  message_id text not null,
  root_id text,  -- of the thread; null outside of threads
  author_id text not null,  -- an open_id; of a bot its app_id
  author_name text not null,
  content text not null
);
create index imported_messages_message_idx on public.imported_messages (hashtext(message_id));
create index imported_messages_import_idx on public.imported_messages (import_id);
alter table public.imported_messages enable row level security;
create policy imported_messages_select on public.imported_messages for select to authenticated using (
  sent_at >= ((select bot_private.readable_imports()) ->> import_id::text)::timestamptz);
create policy imported_messages_of_a_tenant on public.imported_messages as restrictive for all to authenticated
  using (tenant_key = (select public.claim('tenant_key'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
revoke all on public.imported_messages from anon, authenticated;
grant select on public.imported_messages to authenticated;
grant select, insert, update, delete, truncate on public.imported_messages to service_role;

-- What recall searches holds imported messages, too. Triggers of the functions take their place; a backfill
-- deletes what is left over of the moment between.
alter table bot_private.turn_words drop constraint turn_words_first_id_fkey;
