-- Purpose: conversations, turns, messages and working memory, each under row-level security.
--
-- user_id is the subject (whose memory it is), actor_id the sender (who wrote).
-- A row is reachable with a token whose sub is its subject, and then only from the same chat,
-- or from anywhere when the subject speaks for themselves (actor = sub).

create table public.agent_chats (
  id text not null,                       -- feishu:{chat_id}:{root}
  user_id text not null check (user_id <> ''),
  tenant_key text not null default '',
  chat_id text not null,
  root_id text not null,
  title text not null default '',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (id, user_id)
);
create index agent_chats_user_idx on public.agent_chats (user_id, updated_at desc);
create index agent_chats_chat_idx on public.agent_chats (chat_id);

-- One row per Feishu message that is answered: the idempotency record of a turn.
create table public.agent_turns (
  id text primary key,                    -- the question's Feishu message_id
  conversation_id text not null,
  user_id text not null,
  actor_id text not null,
  tenant_key text not null default '',
  chat_id text not null,
  state text not null default 'open'
    check (state in ('open', 'pending', 'sent', 'failed', 'cancelled')),
  attempts integer not null default 1,
  error text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  foreign key (conversation_id, user_id)
    references public.agent_chats (id, user_id) on delete cascade
);
create index agent_turns_chat_idx on public.agent_turns (conversation_id, user_id);
create index agent_turns_unfinished_idx on public.agent_turns (updated_at)
  where state in ('open', 'pending');

create table public.agent_messages (
  id bigint generated always as identity primary key,
  conversation_id text not null,
  user_id text not null,
  turn_id text not null references public.agent_turns (id) on delete cascade,
  tenant_key text not null default '',
  chat_id text not null,
  role text not null check (role in ('user', 'assistant')),
  chunk smallint not null default 0,      -- a long answer is several cards, one row each
  content text not null,                  -- of an assistant row: the card's markdown, byte for byte
  actor_id text,                          -- who wrote a user row
  actor_name text not null default '',
  message_id text,                        -- Feishu message_id of the question or of the sent card
  status text not null check (status in ('received', 'pending', 'sent', 'failed')),
  error text,
  tool_calls jsonb not null default '[]',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (turn_id, role, chunk),
  foreign key (conversation_id, user_id)
    references public.agent_chats (id, user_id) on delete cascade
);
create index agent_messages_history_idx
  on public.agent_messages (conversation_id, user_id, id desc);
create index agent_messages_message_idx on public.agent_messages (message_id);
create index agent_messages_user_idx on public.agent_messages (user_id, id desc);

create table public.agent_working_memory (
  id bigint generated always as identity primary key,
  conversation_id text not null default '',  -- '' for scope user
  user_id text not null check (user_id <> ''),
  tenant_key text not null default '',
  chat_id text not null default '',          -- '' for scope user
  scope text not null check (scope in ('chat', 'user')),
  content jsonb not null default '{}' check (jsonb_typeof(content) = 'object'),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  check ((scope = 'user') = (conversation_id = '')),
  unique (user_id, tenant_key, scope, conversation_id)
);
create index agent_working_memory_chat_idx
  on public.agent_working_memory (conversation_id) where scope = 'chat';

alter table public.agent_chats enable row level security;
alter table public.agent_turns enable row level security;
alter table public.agent_messages enable row level security;
alter table public.agent_working_memory enable row level security;

-- The same rule on the three tables that belong to a chat; one policy per operation.
create policy agent_chats_select on public.agent_chats for select to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
create policy agent_chats_insert on public.agent_chats for insert to authenticated with check (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
create policy agent_chats_update on public.agent_chats for update to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor')))
) with check (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
create policy agent_chats_delete on public.agent_chats for delete to authenticated using (
    user_id = (select public.claim('sub'))
    and user_id = (select public.claim('actor'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));

create policy agent_turns_select on public.agent_turns for select to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
create policy agent_turns_insert on public.agent_turns for insert to authenticated with check (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor')))
    and (actor_id is null or actor_id = (select public.claim('actor'))));
create policy agent_turns_update on public.agent_turns for update to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor')))
) with check (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
create policy agent_turns_delete on public.agent_turns for delete to authenticated using (
    user_id = (select public.claim('sub'))
    and user_id = (select public.claim('actor'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));

create policy agent_messages_select on public.agent_messages for select to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
create policy agent_messages_insert on public.agent_messages
  for insert to authenticated with check (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor')))
    and (actor_id is null or actor_id = (select public.claim('actor'))));
create policy agent_messages_update on public.agent_messages for update to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor')))
) with check (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
create policy agent_messages_delete on public.agent_messages for delete to authenticated using (
    user_id = (select public.claim('sub'))
    and user_id = (select public.claim('actor'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));

-- Working memory of a conversation follows the conversation; that of a person needs the person.
create policy agent_working_memory_select on public.agent_working_memory
  for select to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (user_id = (select public.claim('actor'))
         or (scope = 'chat' and chat_id = (select public.claim('chat_id')))));
create policy agent_working_memory_insert on public.agent_working_memory
  for insert to authenticated with check (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (user_id = (select public.claim('actor'))
         or (scope = 'chat' and chat_id = (select public.claim('chat_id')))));
create policy agent_working_memory_update on public.agent_working_memory
  for update to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (user_id = (select public.claim('actor'))
         or (scope = 'chat' and chat_id = (select public.claim('chat_id')))));
create policy agent_working_memory_delete on public.agent_working_memory
  for delete to authenticated using (
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and user_id = (select public.claim('actor')));

revoke all on public.agent_chats, public.agent_turns, public.agent_messages,
  public.agent_working_memory from anon;
grant select, insert, update, delete on public.agent_chats, public.agent_turns,
  public.agent_messages, public.agent_working_memory to authenticated, service_role;
