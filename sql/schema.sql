-- Purpose: the whole database of the bot. scripts/migrate applies this file to an empty database; databases that are
-- there already get the numbered files beside it (docs/changing-sql.md). psql can apply it, too.
--
-- Every row carries its author (actor_id), its subject (user_id), its place (chat_id, in a tenant) and
-- its source (the turn's or the card's message). The token of a turn names the place in which the answer
-- is given (chat_id, chat_type), the subject (sub) and the sender (actor). Who may read what:
--
--   In a group, what was said to the bot in that group, by anybody.
--   In p2p, the person's own p2p, and the groups they are in, since they joined.
--   With the claim sharing = 'person' only what the sender wrote or what is about them.
--
-- user_id = sub says whose history a thread shows and where a turn is written; it gives no right to read. Nobody reads
-- a row without an author. Grants on columns say what may change of a row: who, where and of what it is never does.
--
-- A policy `…_of_a_tenant` compares tenant_key twice. From two values of one column the planner infers that they are
-- equal, and checks that before it reads a row: a token without claims is told at once that there is nothing. It
-- restricts every operation, so the other policies of its table do not name the tenant. A policy `…_told` keeps from a
-- chat what was said before its newest member joined, where the chat wants that; `is not false` keeps the planner from
-- going by that condition, which mostly holds for every row.
--
-- Hosted Supabase grants everything in `public` to everybody by default, hence `revoke all` for each table.

-- Section: roles

-- Hosted Supabase has the first three roles already; elsewhere they are created, by an owner who may create
-- roles and has bypassrls. Without these rights the statements for a superuser are named.
do $$
declare
  -- since Postgres 16 who creates a role is a member of it without being able to act as it
  acting constant text := case when current_setting('server_version_num')::int >= 160000
                          then 'set' else 'member' end;
  r text;
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
  -- reads what the operators' console shows, and nothing else
  if not exists (select from pg_roles where rolname = 'bot_console') then
    create role bot_console nologin noinherit;
  end if;
  -- reads everything that is stored, to verify a receipt (feishu_bot.let_verifier_read)
  if not exists (select from pg_roles where rolname = 'bot_verifier') then
    create role bot_verifier nologin noinherit;
  end if;
  -- the bot's own connection acts as these roles, one transaction at a time
  foreach r in array array['authenticated', 'service_role', 'bot_console', 'bot_verifier'] loop
    if not pg_has_role(current_user, r, acting) then
      execute format('grant %I to %I', r, current_user);
    end if;
  end loop;
exception when insufficient_privilege then
  raise exception 'a superuser has to run once, leaving out what is there: create role anon nologin noinherit; create role authenticated nologin noinherit; create role service_role nologin noinherit bypassrls; create role bot_console nologin noinherit; create role bot_verifier nologin noinherit; grant authenticated, service_role, bot_console, bot_verifier to %', quote_ident(current_user)
    using errcode = 'PT403';
end
$$;

-- A time limit for whoever signs in, where there is none: 8 s, as hosted Supabase has it. It is the
-- role's, and the role may be other apps' too, so a limit that is there stays.
do $$
begin
  if not exists (
    select from pg_db_role_setting s, unnest(s.setconfig) c
    where s.setrole = 'authenticated'::regrole and c like 'statement_timeout=%'
  ) then
    alter role authenticated set statement_timeout = '8s';
  end if;
exception when insufficient_privilege then
  null;
end
$$;

-- Section: schemas

-- What functions are made of. No API serves this schema, so nobody with a token can call them past the limits and the
-- identity that the functions in front of them check. Those run with the caller's rights, so the caller may use it.
create schema bot_private;
revoke all on schema bot_private from public;
grant usage on schema bot_private to authenticated, service_role, bot_console, bot_verifier;
grant usage on schema public to anon, authenticated, service_role, bot_console, bot_verifier;

-- The queue and what operators see. No API serves this schema; row-level security without a policy leaves a table to
-- its owner.
create schema feishu_bot;
revoke all on schema feishu_bot from public;
grant usage on schema feishu_bot to bot_console, bot_verifier;

-- A token makes no types or tables of its own that could stand in for ours. The owner may still.
do $$
begin
  execute format('revoke temporary on database %I from public, anon, authenticated', current_database());
end
$$;

-- Section: functions that policies call

-- They name tables that come below, and functions call each other.
set check_function_bodies = off;

\ir functions/policies.sql

-- Section: People, chats and who is in them

-- Who is who: an open_id in a tenant and, where wanted, one user of Supabase Auth. Only the service writes.
create table public.people (
  tenant_key text not null,
  open_id text not null check (open_id <> ''),
  name text not null default '',  -- as Feishu last gave it; '' while nobody has said it
  name_seen_at timestamptz,  -- when that name was last seen
  auth_user_id uuid,  -- auth.users.id; null while there is no such user
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  primary key (tenant_key, open_id),
  constraint people_check check ((name = '') = (name_seen_at is null))
);
create unique index people_auth_user_idx on public.people (auth_user_id) where auth_user_id is not null;
create index people_open_id_idx on public.people (open_id);
create index people_unlinked_idx on public.people (tenant_key, open_id) where auth_user_id is null;
alter table public.people enable row level security;
create policy people_select on public.people
  for select to authenticated using (
    (tenant_key = coalesce((select public.claim('tenant_key')), '')
     and (select public.claim('actor')) is not null
     and open_id in ((select public.claim('sub')), (select public.claim('actor'))))
    or auth_user_id = (select public.token_auth_user()));
create policy people_console on public.people for select to bot_console using (true);
revoke all on public.people from anon, authenticated;
grant select on public.people to authenticated, bot_console;
grant select, insert, update, delete on public.people to service_role;

-- A person's places with the bot alone: their p2p chat, and the place of private answers, whose chat_id is their
-- open_id. Ids only.
create table public.p2p_chats (
  tenant_key text not null default '',
  open_id text not null check (open_id <> ''),
  chat_id text not null check (chat_id <> ''),
  person_tenant text,  -- null: from before, not known
  primary key (tenant_key, open_id, chat_id)
);
create index p2p_chats_chat_idx on public.p2p_chats (chat_id);
alter table public.p2p_chats enable row level security;
create policy p2p_chats_select on public.p2p_chats
  for select to authenticated using (
    open_id = (select public.claim('actor'))
    and open_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy p2p_chats_insert on public.p2p_chats
  for insert to authenticated with check (
    open_id = (select public.claim('actor'))
    and open_id = (select public.claim('sub'))
    and chat_id = (select public.claim('chat_id'))
    and (select public.claim('chat_type')) = 'p2p'
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
revoke all on public.p2p_chats from anon, authenticated;
grant select, insert on public.p2p_chats to authenticated;
grant select, insert, update, delete on public.p2p_chats to service_role;

-- Which chats there are, learned in the background. A group of two tenants is two rows.
create table public.chats (
  tenant_key text not null default '',  -- the sender's, as in the other tables
  chat_id text not null check (chat_id <> ''),
  chat_type text check (chat_type in ('group', 'p2p')),  -- null: not learned yet
  name text not null default '',
  name_seen_at timestamptz,  -- when Feishu last gave that name
  active_at timestamptz,  -- the last message known, or the adding of the bot
  members_read_at timestamptz,  -- as of when everybody in it was known; null: never
  gone_at timestamptz,  -- the bot was removed, or the chat was disbanded
  asked_at timestamptz,  -- when a worker last took it to ask Feishu
  due_at timestamptz not null default now(),  -- not to be asked about before
  failures smallint not null default 0,  -- how often in a row Feishu did not answer
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- The event that the bot's first words are for, ms since epoch; null: none yet.
  welcome_for_ms bigint,
  welcomed_at timestamptz,  -- when they were said, or found to be needed no more
  topics boolean,  -- null: not learned yet
  primary key (tenant_key, chat_id)
);
create index chats_chat_idx on public.chats (chat_id);
create index chats_due_idx on public.chats (due_at) where gone_at is null and chat_type is distinct from 'p2p';
alter table public.chats enable row level security;
create policy chats_select on public.chats
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id')) or (select public.readable_chats()) ? chat_id));
create policy chats_of_a_tenant on public.chats
  as restrictive for all to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy chats_console on public.chats for select to bot_console using (true);
revoke all on public.chats from anon, authenticated;
grant select on public.chats to authenticated, bot_console;
grant select, insert, update, delete on public.chats to service_role;

-- Who is in which group. A membership that nothing confirmed for membership_lasts() gives no right.
create table public.chat_members (
  tenant_key text not null default '',  -- the member's
  chat_id text not null check (chat_id <> ''),
  open_id text not null check (open_id <> ''),
  joined_at timestamptz,  -- null: there already when the list was first read
  seen_at timestamptz not null default now(),  -- when this was last confirmed; expires
  left_at timestamptz,  -- out since then; kept until a list says so too
  primary key (tenant_key, chat_id, open_id)
);
create index chat_members_chat_idx on public.chat_members (chat_id);
create index chat_members_person_idx on public.chat_members (open_id, tenant_key) where left_at is null;
alter table public.chat_members enable row level security;
create policy chat_members_select on public.chat_members
  for select to authenticated using (
    open_id = (select public.claim('actor'))
    and open_id = (select public.claim('sub'))
    and tenant_key = (select public.own_tenant()));
create policy chat_members_console on public.chat_members for select to bot_console using (true);
revoke all on public.chat_members from anon, authenticated;
grant select on public.chat_members to authenticated, bot_console;
grant select, insert, update, delete on public.chat_members to service_role;

-- Who may change the rules of a chat, as Feishu said a moment ago. In a p2p chat it is the person.
create table public.chat_managers (
  tenant_key text not null default '',
  chat_id text not null check (chat_id <> ''),
  open_id text not null check (open_id <> ''),
  role text not null check (role in ('manager', 'adder')),  -- the owner is a manager
  seen_at timestamptz not null default now(),  -- when Feishu said so; a manager's expires
  primary key (tenant_key, chat_id, open_id, role)
);
create index chat_managers_person_idx on public.chat_managers (open_id);
alter table public.chat_managers enable row level security;
create policy chat_managers_select on public.chat_managers
  for select to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and open_id = (select public.claim('actor')));
revoke all on public.chat_managers from anon, authenticated;
grant select on public.chat_managers to authenticated;
grant select, insert, update, delete on public.chat_managers to service_role;

-- The rules that a chat gives the bot. Everybody in the chat reads them; its owner, its managers and whoever added
-- the bot change them.
create table public.chat_rules (
  tenant_key text not null default '',
  chat_id text not null check (chat_id <> ''),
  mode text check (mode in ('mention', 'threads', 'follow', 'all')),  -- null: the environment's
  language text check (language in ('zh', 'en', 'auto')),  -- null: the environment's
  instructions text not null default '' check (length(instructions) <= 500),
  updated_at timestamptz not null default now(),
  proactive boolean not null default false,
  history text check (history in ('hidden', 'shown')),  -- null: everybody's
  -- rules without a column
  choices jsonb not null default '{}' check (jsonb_typeof(choices) = 'object' and length(choices::text) <= 4000),
  primary key (tenant_key, chat_id)
);
alter table public.chat_rules enable row level security;
create policy chat_rules_select on public.chat_rules
  for select to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy chat_rules_insert on public.chat_rules
  for insert to authenticated with check (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and exists (select from public.chat_managers m where m.chat_id = chat_rules.chat_id and
      m.tenant_key = chat_rules.tenant_key and m.open_id = (select public.claim('actor')) and
      (m.role = 'adder' or m.seen_at > (now() - interval '10 minutes'))));
create policy chat_rules_update on public.chat_rules
  for update to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and exists (select from public.chat_managers m where m.chat_id = chat_rules.chat_id and
      m.tenant_key = chat_rules.tenant_key and m.open_id = (select public.claim('actor')) and
      (m.role = 'adder' or m.seen_at > (now() - interval '10 minutes'))));
revoke all on public.chat_rules from anon, authenticated;
grant select, insert, update (mode, language, instructions, updated_at, proactive, history, choices) on
    public.chat_rules to authenticated;
grant select, insert, update, delete on public.chat_rules to service_role;

-- Who had the bot forget them and when, as a mark that names nobody, for as long back as a digest reads.
create table public.forgotten_people (
  mark text primary key,
  at timestamptz not null default now()
);
alter table public.forgotten_people enable row level security;
create policy forgotten_people_select on public.forgotten_people
  for select to authenticated using (
    mark = encode(sha256(convert_to('forgotten ' || (select public.claim('actor')), 'UTF8')),
      'hex'));
revoke all on public.forgotten_people from anon, authenticated;
grant select on public.forgotten_people to authenticated;
grant select, insert, update, delete on public.forgotten_people to service_role;

-- What operators looked at. The role of the console reads the words of people only in a transaction that noted the
-- look here first.
create table feishu_bot.console_audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  admin text not null check (admin <> ''),
  action text not null check (length(action) between 1 and 60),  -- read turn, retry job, …
  about text not null default '' check (length(about) <= 300),  -- ids, never words
  xact xid8 default pg_current_xact_id()
);
create index console_audit_about_idx on feishu_bot.console_audit (about);
create index console_audit_at_idx on feishu_bot.console_audit (at);
create index console_audit_xact_idx on feishu_bot.console_audit (xact);
alter table feishu_bot.console_audit enable row level security;
create policy console_audit_select on feishu_bot.console_audit
  for select to bot_console using (true);
create policy console_audit_insert on feishu_bot.console_audit
  for insert to bot_console with check (true);
grant select, insert (admin, action, about) on feishu_bot.console_audit to bot_console;

-- Section: Conversations, turns and what stands on cards

-- A conversation as one subject has it: a thread of a chat, or the main conversation of a p2p chat. user_id is the
-- subject, whose history it is.
create table public.agent_chats (
  id text not null,  -- feishu:{chat_id}:{root}
  user_id text not null check (user_id <> ''),
  tenant_key text not null default '',
  chat_id text not null,
  root_id text not null,
  title text not null default '',  -- somebody's words, which no token reads
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- A fresh start: messages up to this id are kept, and no longer given to the model.
  history_from bigint not null default 0,
  -- The kind of place, as the event said it.
  chat_type text check (chat_type in ('group', 'p2p')),
  primary key (tenant_key, id, user_id),
  constraint agent_chats_place
    check (id = ('feishu:' || chat_id || case when starts_with(chat_id, 'doc:') then '' else ':' || root_id end))
);
create index agent_chats_chat_idx on public.agent_chats (chat_id);
create index agent_chats_user_idx on public.agent_chats (user_id, updated_at desc);
alter table public.agent_chats enable row level security;
create policy agent_chats_select on public.agent_chats
  for select to authenticated using (
    (chat_id = (select public.claim('chat_id'))
     or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
    and ((select public.claim('sharing')) is distinct from 'person'
         or user_id in ((select public.claim('sub')), (select public.claim('actor')))));
create policy agent_chats_insert on public.agent_chats
  for insert to authenticated with check (
    chat_id = (select public.claim('chat_id'))
    and chat_type is not distinct from (select public.claim('chat_type'))
    and user_id in ((select public.claim('sub')), (select public.claim('actor')))
    and ((select public.claim('chat_type')) is distinct from 'p2p'
         or (select public.claim('sub')) = (select public.claim('actor'))));
create policy agent_chats_update on public.agent_chats
  for update to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and user_id in ((select public.claim('sub')), (select public.claim('actor'))));
create policy agent_chats_delete on public.agent_chats
  for delete to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and user_id = (select public.claim('sub'))
    and user_id = (select public.claim('actor')));
create policy agent_chats_of_a_tenant on public.agent_chats
  as restrictive for all to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_chats_console on public.agent_chats for select to bot_console using (true);
revoke all on public.agent_chats from anon, authenticated;
grant select (id, user_id, tenant_key, chat_id, root_id, created_at, updated_at, history_from, chat_type),
    insert, update (title, updated_at, history_from, chat_type), delete on public.agent_chats to authenticated;
grant select (id, user_id, tenant_key, chat_id, root_id, created_at, updated_at, history_from, chat_type) on
    public.agent_chats to bot_console;
grant select, insert, update, delete on public.agent_chats to service_role;

-- One row per answer: the idempotency record of a turn. actor_id is the sender.
create table public.agent_turns (
  id text primary key,  -- the question's Feishu message_id
  conversation_id text not null,
  user_id text not null,
  actor_id text not null,
  tenant_key text not null default '',
  chat_id text not null,
  state text not null default 'open',
  attempts integer not null default 1,
  error text,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- A turn that forgot something keeps no words of its own, once its card is sent.
  forgets boolean not null default false,
  -- Of a private answer the turns that its prompt was given. Ids only.
  drawn_on text[] not null default '{}',
  -- Of a turn that keeps no words the cards it is shown by.
  kept_cards text[] not null default '{}',
  -- The messages, besides the question itself, whose contents the answer was given. Ids only.
  read_messages text[] not null default '{}' check (cardinality(read_messages) <= 50),
  again_of text,  -- the turn whose question this one answers again; it goes with that
  -- What stands below the answer besides its words: seconds, names of tools, when and where what
  -- was recalled was said. Never anybody's words.
  shown jsonb,
  -- Names of tools, in order, while the turn is open.
  done text[] not null default '{}' check (cardinality(done) <= 100),
  -- Of the turn's answer: ids of messages and turns, the question itself not among them.
  given text[] not null default '{}' check (cardinality(given) <= 2000),
  -- As in agent_messages.
  thread bigint not null generated always as ((('x' || left(md5(tenant_key || ' ' || conversation_id
    || ' ' || user_id), 16)))::bit(64)::bigint) stored,
  origin text not null default 'message',
  parent_id text,
  cause text not null default '',
  -- what the stored reply is once people have it, {outcome, reason}; null: an answer
  intended jsonb,
  outcome text,
  outcome_reason text not null default '',
  -- Of an offer the thread of the question, or the group in whose main chat it stands.
  offered_in text,
  -- Of what the answer was given the messages whose ids are om_ and 32 digits, as these digits;
  -- `given` has what else there is, and of answers from before this column everything.
  -- bot_private.given_ids tells both.
  given_messages uuid[] not null default '{}',
  constraint agent_turns_origin_known
    check (origin = any ('{message,button,again,retry,reaction,reminder,digest,unasked,offer,private_answer}')),
  constraint agent_turns_origin_parent check ((origin in ('message', 'unasked')) = (parent_id is null)),
  constraint agent_turns_outcome_known
    check (outcome = any ('{answered,apologised,refused,stopped,silent,undelivered,taken_back,offer}')),
  constraint agent_turns_chat_fkey foreign key (tenant_key, conversation_id, user_id)
    references public.agent_chats (tenant_key, id, user_id) on delete cascade,
  constraint agent_turns_drawn_on_private
    check (drawn_on = '{}' or chat_id = actor_id or origin = 'private_answer' and user_id = actor_id),
  constraint agent_turns_given_messages_check check (cardinality(given_messages) <= 2000),
  constraint agent_turns_place check (starts_with(conversation_id || ':', 'feishu:' || chat_id || ':')),
  constraint agent_turns_state_check check (state = any ('{open,pending,sent,failed,cancelled}'))
) with (autovacuum_vacuum_scale_factor=0.05);
create index agent_turns_actor_idx on public.agent_turns (actor_id);
create index agent_turns_again_idx on public.agent_turns (again_of) where again_of is not null;
create index agent_turns_command_idx on public.agent_turns (id) where (intended ->> 'reason') = 'command';
create index agent_turns_conversation_idx on public.agent_turns using hash (conversation_id);
create index agent_turns_created_idx on public.agent_turns (created_at);
create index agent_turns_drawn_on_idx on public.agent_turns using gin (drawn_on) where drawn_on <> '{}';
create index agent_turns_forgets_idx on public.agent_turns (id) where forgets;
create index agent_turns_given_idx on public.agent_turns (hashtextextended(chat_id, 0), created_at);
create index agent_turns_kept_card_idx on public.agent_turns using gin (kept_cards) where kept_cards <> '{}';
create index agent_turns_kept_cards_idx on public.agent_turns (tenant_key, user_id) where kept_cards <> '{}';
create index agent_turns_offered_idx on public.agent_turns (tenant_key, user_id, offered_in, created_at)
  where offered_in is not null;
create unique index agent_turns_parent_key on public.agent_turns (parent_id, origin, cause)
  where parent_id is not null;
create index agent_turns_read_messages_idx on public.agent_turns using gin (read_messages)
  where read_messages <> '{}';
create unique index agent_turns_thread_key on public.agent_turns (thread, id);
create index agent_turns_undelivered_idx on public.agent_turns (updated_at) where outcome = 'undelivered';
create index agent_turns_unfinished_idx on public.agent_turns (updated_at) where state in ('open', 'pending');
alter table public.agent_turns add constraint agent_turns_again_fkey foreign key (thread, again_of) references
  public.agent_turns (thread, id) on delete cascade;
alter table public.agent_turns enable row level security;
create policy agent_turns_select on public.agent_turns
  for select to authenticated using (
    (chat_id = (select public.claim('chat_id'))
     or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
    and ((select public.claim('sharing')) is distinct from 'person'
         or (select public.claim('actor')) in (user_id, actor_id)));
create policy agent_turns_insert on public.agent_turns
  for insert to authenticated with check (
    chat_id = (select public.claim('chat_id'))
    and user_id = (select public.claim('sub'))
    and actor_id = (select public.claim('actor')));
create policy agent_turns_update on public.agent_turns
  for update to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and user_id = (select public.claim('sub'))
    and actor_id = (select public.claim('actor')));
create policy agent_turns_delete on public.agent_turns
  for delete to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and (select public.claim('sub')) = (select public.claim('actor'))
    and (select public.claim('actor')) in (user_id, actor_id));
create policy agent_turns_of_a_tenant on public.agent_turns
  as restrictive for all to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_turns_console on public.agent_turns for select to bot_console using (true);
revoke all on public.agent_turns from anon, authenticated;
grant select, insert, update (state, attempts, error, updated_at, forgets, drawn_on, kept_cards, read_messages, shown,
    done, given, intended, given_messages), delete on public.agent_turns to authenticated;
grant select on public.agent_turns to bot_console;
grant select, insert, update, delete on public.agent_turns to service_role;

-- What was asked and answered, card by card. Words that were said or sent do not change, which a
create table public.agent_messages (
  id bigint generated always as identity primary key,
  conversation_id text not null,
  user_id text not null,
  turn_id text not null,
  tenant_key text not null default '',
  chat_id text not null,
  role text not null,
  chunk smallint not null default 0,  -- a long answer is several cards, one row each
  content text not null,  -- of an assistant row: the card's markdown, byte for byte
  actor_id text,  -- who wrote a user row
  actor_name text not null default '',
  message_id text,  -- Feishu message_id of the question or of the sent card
  quotes text,  -- of a user row: the message_id that it replies to, outside of threads
  status text not null,
  error text,
  tool_calls jsonb not null default '[]',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- What is sent: {name, kind, content}; once it is sent, {name, kind}. Null: the row is a card.
  file jsonb,
  -- The person's thread as a number, by which its rows are found in order. A column, not an index
  -- on an expression: under row-level security an index serves only operators that tell nothing of
  -- their arguments. Who looks for the number compares the texts too.
  thread bigint not null generated always as ((('x' || left(md5(tenant_key || ' ' || conversation_id
    || ' ' || user_id), 16)))::bit(64)::bigint) stored,
  constraint agent_messages_turn_id_role_chunk_key unique (turn_id, role, chunk),
  constraint agent_messages_check check (file is null or role = 'assistant' and jsonb_typeof(file) = 'object'),
  constraint agent_messages_chat_fkey foreign key (tenant_key, conversation_id, user_id)
    references public.agent_chats (tenant_key, id, user_id) on delete cascade,
  constraint agent_messages_author check (actor_id <> ''),
  constraint agent_messages_place check (starts_with(conversation_id || ':', 'feishu:' || chat_id || ':')),
  constraint agent_messages_role_check check (role = any ('{user,assistant}')),
  constraint agent_messages_status_check check (status = any ('{received,pending,sent,failed}')),
  constraint agent_messages_turn_fkey foreign key (thread, turn_id)
    references public.agent_turns (thread, id) on delete cascade
);
create index agent_messages_author_idx on public.agent_messages (actor_id, id desc) where actor_id <> user_id;
create index agent_messages_card_idx on public.agent_messages using hash (message_id)
  where role = 'assistant' and message_id is not null;
create index agent_messages_chat_idx on public.agent_messages (chat_id, id);
create index agent_messages_conversation_idx on public.agent_messages (conversation_id, id);
create index agent_messages_thread_author_idx on public.agent_messages (conversation_id, actor_id, id desc)
  where actor_id <> user_id;
create index agent_messages_thread_idx on public.agent_messages (thread, id);
create index agent_messages_user_idx on public.agent_messages (user_id);
alter table public.agent_messages enable row level security;
create policy agent_messages_select on public.agent_messages
  for select to authenticated using (
    (chat_id = (select public.claim('chat_id'))
     or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
    and actor_id is not null
    and ((select public.claim('sharing')) is distinct from 'person'
         or (select public.claim('actor')) in (user_id, actor_id)));
create policy agent_messages_told on public.agent_messages
  as restrictive for select to authenticated using (
    (created_at >= (select bot_private.told_since()) or (turn_id = any ((select
      bot_private.turns_under_way())::text[]))) is not false);
create policy agent_messages_insert on public.agent_messages
  for insert to authenticated with check (
    chat_id = (select public.claim('chat_id'))
    and user_id = (select public.claim('sub'))
    and actor_id = (select public.claim('actor')));
create policy agent_messages_update on public.agent_messages
  for update to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and (select public.claim('sub')) in (user_id, actor_id));
create policy agent_messages_delete on public.agent_messages
  for delete to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and (select public.claim('sub')) = (select public.claim('actor'))
    and (select public.claim('actor')) in (user_id, actor_id));
create policy agent_messages_of_a_tenant on public.agent_messages
  as restrictive for all to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_messages_console on public.agent_messages
  for select to bot_console using (
    exists (select from feishu_bot.console_audit a where a.xact = pg_current_xact_id_if_assigned()));
revoke all on public.agent_messages from anon, authenticated;
grant select, insert, update (content, message_id, status, error, tool_calls, updated_at, file), delete on
    public.agent_messages to authenticated;
grant select on public.agent_messages to bot_console;
grant select, insert, update, delete on public.agent_messages to service_role;

-- What was said in a turn and was or may yet be delivered.
create view public.agent_turn_texts with (security_invoker=true) as
 select turn_id,
    conversation_id,
    user_id,
    tenant_key,
    chat_id,
    min(id) as first_id,
    min(created_at) as asked_at,
    string_agg(content, '
' order by id) as content,
    max(actor_id) as actor_id,
    max(actor_name) filter (where role = 'user') as actor_name
   from public.agent_messages
  where status <> 'failed'
  group by turn_id, conversation_id, user_id, tenant_key, chat_id;
revoke all on public.agent_turn_texts from anon, authenticated;
grant select on public.agent_turn_texts to authenticated, service_role;

-- The card of an answer that is still being written, so that whoever continues the turn after a crash continues the
-- same card. Feishu requires a rising number with every operation on a card; a worker reserves a block of numbers
-- here, so that one write serves all its frames.
create table public.agent_cards (
  turn_id text primary key,
  conversation_id text not null,
  user_id text not null check (user_id <> ''),  -- the subject of the turn
  actor_id text not null check (actor_id <> ''),  -- who asked
  tenant_key text not null default '',
  chat_id text not null,
  card_id text not null,  -- of CardKit
  reply_to text not null,  -- the message that the card answers
  in_thread boolean not null,
  message_id text,  -- of the message that shows the card, once it is known
  sequence integer not null,  -- the last number of the block that was reserved last
  streaming boolean not null default true,  -- false: finished, or never sent
  opened_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- As in agent_messages.
  thread bigint not null generated always as ((('x' || left(md5(tenant_key || ' ' || conversation_id
    || ' ' || user_id), 16)))::bit(64)::bigint) stored,
  constraint agent_cards_place check (starts_with(conversation_id, 'feishu:' || chat_id || ':')),
  constraint agent_cards_turn_fkey foreign key (thread, turn_id)
    references public.agent_turns (thread, id) on delete cascade
);
create index agent_cards_actor_idx on public.agent_cards (actor_id);
create index agent_cards_conversation_idx on public.agent_cards (conversation_id, user_id);
create index agent_cards_streaming_idx on public.agent_cards (opened_at) where streaming;
create index agent_cards_user_idx on public.agent_cards (user_id);
alter table public.agent_cards enable row level security;
create policy agent_cards_select on public.agent_cards
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and user_id = (select public.claim('sub'))
    and actor_id = (select public.claim('actor')));
create policy agent_cards_insert on public.agent_cards
  for insert to authenticated with check (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and user_id = (select public.claim('sub'))
    and actor_id = (select public.claim('actor')));
create policy agent_cards_update on public.agent_cards
  for update to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and user_id = (select public.claim('sub'))
    and actor_id = (select public.claim('actor')));
revoke all on public.agent_cards from anon, authenticated;
grant select, insert, update (card_id, message_id, sequence, streaming, opened_at, updated_at) on public.agent_cards
    to authenticated;
grant select, insert, update, delete on public.agent_cards to service_role;

-- Buttons of cards. A press is bound to the chat and, where it confirms, to the person who asked.
create table public.agent_buttons (
  id text primary key,  -- 128 random bits, base64url
  group_id text not null,  -- of the buttons of a group only one can be pressed
  turn_id text not null,
  chunk smallint not null,  -- the card of the turn that shows it
  ordinal smallint not null,
  conversation_id text not null,
  user_id text not null check (user_id <> ''),  -- the subject of the turn
  actor_id text not null check (actor_id <> ''),  -- who asked; only they press a confirmation
  tenant_key text not null default '',
  chat_id text not null,
  chat_type text not null check (chat_type in ('group', 'p2p')),
  kind text not null check (kind in ('follow_up', 'confirm', 'show', 'share', 'stop')),
  label text not null,
  payload jsonb not null default '{}',
  message_id text,  -- of the card, once it is sent
  expires_at timestamptz not null,
  created_at timestamptz not null default now(),
  -- As in agent_messages.
  thread bigint not null generated always as ((('x' || left(md5(tenant_key || ' ' || conversation_id
    || ' ' || user_id), 16)))::bit(64)::bigint) stored,
  constraint agent_buttons_asks_its_label
    check (kind <> 'follow_up' or (payload ->> 'text') is not distinct from label),
  constraint agent_buttons_place check (starts_with(conversation_id, 'feishu:' || chat_id || ':')),
  constraint agent_buttons_private
    check ((kind not in ('show', 'share')) or user_id = actor_id and chat_type = 'p2p'),
  constraint agent_buttons_turn_fkey foreign key (thread, turn_id)
    references public.agent_turns (thread, id) on delete cascade
);
create index agent_buttons_actor_idx on public.agent_buttons (actor_id);
create index agent_buttons_conversation_idx on public.agent_buttons (conversation_id, user_id);
create unique index agent_buttons_place_key on public.agent_buttons (id, tenant_key, chat_id);
create index agent_buttons_turn_idx on public.agent_buttons (turn_id, chunk, ordinal);
create index agent_buttons_user_idx on public.agent_buttons (user_id);
alter table public.agent_buttons enable row level security;
create policy agent_buttons_select on public.agent_buttons
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or (chat_id = (select public.claim('actor')) and chat_id = (select public.claim('sub')))
         or (((kind in ('show', 'share')) or payload ? 'beside')
             and chat_id in (select p.chat_id from public.p2p_chats p))));
create policy agent_buttons_insert on public.agent_buttons
  for insert to authenticated with check (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and user_id = (select public.claim('sub'))
    and actor_id = (select public.claim('actor')));
create policy agent_buttons_update on public.agent_buttons
  for update to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and user_id = (select public.claim('sub'))
    and actor_id = (select public.claim('actor'))) with check (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and user_id = (select public.claim('sub'))
    and actor_id = (select public.claim('actor')));
create policy agent_buttons_of_a_tenant on public.agent_buttons
  as restrictive for all to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_buttons_console on public.agent_buttons
  for select to bot_console using (
    exists (select from feishu_bot.console_audit a where a.xact = pg_current_xact_id_if_assigned()));
revoke all on public.agent_buttons from anon, authenticated;
grant select, insert, update (message_id) on public.agent_buttons to authenticated;
grant select on public.agent_buttons to bot_console;
grant select, insert, update, delete on public.agent_buttons to service_role;

-- Which button of a group of buttons was pressed, once for each group.
create table public.agent_presses (
  group_id text primary key,
  button_id text not null,
  chat_id text not null,
  tenant_key text not null default '',
  operator_id text not null check (operator_id <> ''),
  event_id text not null,  -- the click; delivered again it is the same press
  created_at timestamptz not null default now(),
  constraint agent_presses_button_fkey foreign key (button_id, tenant_key, chat_id)
    references public.agent_buttons (id, tenant_key, chat_id) on delete cascade
);
create index agent_presses_button_idx on public.agent_presses (button_id);
create index agent_presses_operator_idx on public.agent_presses (operator_id);
alter table public.agent_presses enable row level security;
create policy agent_presses_select on public.agent_presses
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or (chat_id = (select public.claim('actor')) and chat_id = (select public.claim('sub')))
         or (chat_id in (select p.chat_id from public.p2p_chats p)
             and exists (select from public.agent_buttons b where b.id = agent_presses.button_id))));
create policy agent_presses_insert on public.agent_presses
  for insert to authenticated with check (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and operator_id = (select public.claim('actor'))
    and (chat_id = (select public.claim('chat_id'))
         or (chat_id = (select public.claim('actor')) and chat_id = (select public.claim('sub')))
         or (chat_id in (select p.chat_id from public.p2p_chats p)
             and exists (select from public.agent_buttons b where b.id = agent_presses.button_id))));
create policy agent_presses_of_a_tenant on public.agent_presses
  as restrictive for all to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
revoke all on public.agent_presses from anon, authenticated;
grant select, insert on public.agent_presses to authenticated;
grant select, insert, update, delete on public.agent_presses to service_role;

-- What people said of an answer, by a button or by a reaction. Only they read it; operators count it.
create table public.agent_feedback (
  turn_id text not null,
  conversation_id text not null,
  user_id text not null check (user_id <> ''),  -- the subject of the turn
  actor_id text not null check (actor_id <> ''),  -- who says so
  tenant_key text not null default '',
  chat_id text not null,
  source text not null check (source in ('button', 'reaction')),
  helpful boolean not null,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- As in agent_messages.
  thread bigint not null generated always as ((('x' || left(md5(tenant_key || ' ' || conversation_id
    || ' ' || user_id), 16)))::bit(64)::bigint) stored,
  primary key (turn_id, actor_id, source),
  constraint agent_feedback_place check (starts_with(conversation_id, 'feishu:' || chat_id || ':')),
  constraint agent_feedback_turn_fkey foreign key (thread, turn_id)
    references public.agent_turns (thread, id) on delete cascade
);
create index agent_feedback_actor_idx on public.agent_feedback (actor_id);
create index agent_feedback_conversation_idx on public.agent_feedback (conversation_id, user_id);
create index agent_feedback_updated_idx on public.agent_feedback (updated_at);
create index agent_feedback_user_idx on public.agent_feedback (user_id);
alter table public.agent_feedback enable row level security;
create policy agent_feedback_select on public.agent_feedback
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and actor_id = (select public.claim('actor')));
create policy agent_feedback_insert on public.agent_feedback
  for insert to authenticated with check (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and actor_id = (select public.claim('actor')));
create policy agent_feedback_update on public.agent_feedback
  for update to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and actor_id = (select public.claim('actor'))) with check (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and actor_id = (select public.claim('actor')));
create policy agent_feedback_delete on public.agent_feedback
  for delete to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and actor_id = (select public.claim('actor')));
create policy agent_feedback_console on public.agent_feedback
  for select to bot_console using (true);
revoke all on public.agent_feedback from anon, authenticated;
grant select, insert, update (helpful, updated_at), delete on public.agent_feedback to authenticated;
grant select on public.agent_feedback to bot_console;
grant select, insert, update, delete on public.agent_feedback to service_role;

-- What a turn was made of, for a few days: ids, counts and times, no words.
create table public.agent_turn_records (
  turn_id text primary key references public.agent_turns (id) on delete cascade,
  at timestamptz not null default now(),
  short text not null,  -- as bot_private.short_record makes it
  constraint agent_turn_records_short_size check (length(short) <= 65536)
);
create index agent_turn_records_at_idx on public.agent_turn_records (at);
alter table public.agent_turn_records enable row level security;
create policy agent_turn_records_console on public.agent_turn_records
  for select to bot_console using (true);
revoke all on public.agent_turn_records from anon, authenticated;
grant select on public.agent_turn_records to bot_console;
grant select, insert, update, delete on public.agent_turn_records to service_role;

-- Cards of ours that are still shown and must not be. Ids only.
create table public.agent_withdrawals (
  message_id text primary key,
  chat_id text not null,
  tenant_key text not null default '',
  tries integer not null default 0,
  due_at timestamptz not null default now(),
  created_at timestamptz not null default now(),
  -- Whether one person may see the card beside a group, where it is deleted by another call.
  of_one boolean not null default false
);
create index agent_withdrawals_due_idx on public.agent_withdrawals (due_at);
alter table public.agent_withdrawals enable row level security;
create policy agent_withdrawals_select on public.agent_withdrawals
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id')));
create policy agent_withdrawals_of_a_tenant on public.agent_withdrawals
  as restrictive for all to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
revoke all on public.agent_withdrawals from anon, authenticated;
grant select on public.agent_withdrawals to authenticated;
grant select, insert, update, delete on public.agent_withdrawals to service_role;

-- Messages that were recalled before their turn began; it is then cancelled from the start.
create table public.recalled_messages (
  message_id text primary key,
  chat_id text not null,
  created_at timestamptz not null default now()
);
create index recalled_messages_chat_idx on public.recalled_messages (chat_id);
alter table public.recalled_messages enable row level security;
create policy recalled_messages_select on public.recalled_messages
  for select to authenticated using (
    chat_id = any (array(select jsonb_object_keys(public.readable_chats())) || (select public.claim('chat_id'))));
revoke all on public.recalled_messages from anon, authenticated;
grant select on public.recalled_messages to authenticated;
grant select, insert, update, delete on public.recalled_messages to service_role;

-- What each deletion removed, in ids, counts and hashes. The signed lines are a chain in the order of `number`; a row
-- without one waits for its signature.
create table public.agent_receipts (
  id bigint generated always as identity primary key,
  reader_id text check (reader_id <> ''),  -- whose words went, until they are forgotten
  tenant_key text not null default '',
  salt text,  -- of the commitments, until the reader has taken it
  mark text not null,  -- SHA-256 of the salt
  draft jsonb not null,
  number bigint unique,
  line text,  -- canonical JSON, as it is signed
  hash text,  -- SHA-256 of the line
  created_at timestamptz not null default now(),
  constraint agent_receipts_signed check (num_nulls(number, line, hash) in (0, 3))
);
create index agent_receipts_mark_idx on public.agent_receipts using hash (mark);
create index agent_receipts_reader_idx on public.agent_receipts (tenant_key, reader_id, number);
create index agent_receipts_unsigned_idx on public.agent_receipts (id) where number is null;
alter table public.agent_receipts enable row level security;
create policy agent_receipts_select on public.agent_receipts
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and reader_id = (select public.claim('actor')));
revoke all on public.agent_receipts from anon, authenticated;
grant select (id, reader_id, tenant_key, number, line, hash, created_at) on public.agent_receipts to authenticated;
grant select, insert, update, delete on public.agent_receipts to service_role;

-- Section: Working memory, notes and summaries

-- What is remembered of a conversation (scope chat) or a person (scope user), kept by place and author.
create table public.agent_working_memory (
  id bigint generated always as identity primary key,
  conversation_id text not null default '',  -- '' for scope user
  user_id text not null check (user_id <> ''),
  tenant_key text not null default '',
  chat_id text not null default '',  -- '' for scope user
  scope text not null check (scope in ('chat', 'user')),
  content jsonb not null default '{}' check (jsonb_typeof(content) = 'object'),
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- What is kept of a person is kept by place and author: what somebody says of another is theirs.
  actor_id text check (actor_id <> ''),
  -- {key: {"turn": the message's id, "at": when, "replaces": [ids of facts, as fact_id gives them]}};
  -- without an entry: by an operator.
  sources jsonb not null default '{}',
  constraint agent_working_memory_check check ((scope = 'user') = (conversation_id = '')),
  constraint agent_working_memory_place
    check (conversation_id = '' or starts_with(conversation_id || ':', 'feishu:' || chat_id || ':'))
);
create index agent_working_memory_author_idx on public.agent_working_memory (conversation_id, actor_id)
  where actor_id <> user_id;
create index agent_working_memory_chat_idx on public.agent_working_memory (conversation_id) where scope = 'chat';
create index agent_working_memory_place_idx on public.agent_working_memory (chat_id);
create unique index agent_working_memory_place_key
  on public.agent_working_memory (tenant_key, user_id, actor_id, scope, chat_id, conversation_id);
alter table public.agent_working_memory enable row level security;
create policy agent_working_memory_select on public.agent_working_memory
  for select to authenticated using (
    (chat_id = (select public.claim('chat_id'))
     or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
    and actor_id is not null
    and ((select public.claim('sharing')) is distinct from 'person'
         or (select public.claim('actor')) in (user_id, actor_id)));
create policy agent_working_memory_told on public.agent_working_memory
  as restrictive for select to authenticated using (
    (updated_at >= (select bot_private.told_since())) is not false);
create policy agent_working_memory_insert on public.agent_working_memory
  for insert to authenticated with check (
    chat_id = (select public.claim('chat_id'))
    and user_id = (select public.claim('sub'))
    and actor_id = (select public.claim('actor'))
    and (scope = 'chat' or user_id = actor_id));
create policy agent_working_memory_update on public.agent_working_memory
  for update to authenticated using (
    (user_id = (select public.claim('sub'))
     and actor_id = (select public.claim('actor'))
     and chat_id = (select public.claim('chat_id')))
    or ((select public.claim('sub')) = (select public.claim('actor'))
        and (select public.claim('actor')) in (user_id, actor_id)
        and (chat_id = (select public.claim('chat_id'))
             or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)));
create policy agent_working_memory_delete on public.agent_working_memory
  for delete to authenticated using (
    (select public.claim('sub')) = (select public.claim('actor'))
    and (select public.claim('actor')) in (user_id, actor_id)
    and (chat_id = (select public.claim('chat_id'))
         or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz));
create policy agent_working_memory_of_a_tenant on public.agent_working_memory
  as restrictive for all to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_working_memory_console on public.agent_working_memory
  for select to bot_console using (
    exists (select from feishu_bot.console_audit a where a.xact = pg_current_xact_id_if_assigned()));
revoke all on public.agent_working_memory from anon, authenticated;
grant select, insert, update (content, updated_at, sources), delete on public.agent_working_memory to authenticated;
grant select on public.agent_working_memory to bot_console;
grant select, insert, update, delete on public.agent_working_memory to service_role;

-- Who changed which keys of a working memory, and when: at most 50 changes each. A turn writes it; operators read it.
create table public.agent_working_memory_history (
  id bigint generated always as identity primary key,
  working_memory_id bigint not null references public.agent_working_memory (id) on delete cascade,
  user_id text not null,
  tenant_key text not null default '',
  actor_id text not null,  -- the token's sender; 'service' where no token was used
  scope text not null,
  conversation_id text not null default '',
  chat_id text not null default '',
  was jsonb not null,  -- the keys that changed, as they were
  became jsonb not null,  -- and as they are now
  at timestamptz not null default clock_timestamp(),
  turn_id text,  -- the message that made this change
  was_sources jsonb not null default '{}',  -- whence the values of before came
  constraint agent_working_memory_history_place
    check (conversation_id = '' or starts_with(conversation_id || ':', 'feishu:' || chat_id || ':'))
);
create index agent_working_memory_history_idx on public.agent_working_memory_history (working_memory_id, id desc);
alter table public.agent_working_memory_history enable row level security;
create policy agent_working_memory_history_select on public.agent_working_memory_history
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (select public.claim('actor')) in (user_id, actor_id)
    and (chat_id = (select public.claim('chat_id'))
         or at >= ((select public.readable_chats()) ->> chat_id)::timestamptz));
create policy agent_working_memory_history_told on public.agent_working_memory_history
  as restrictive for select to authenticated using (
    (select bot_private.told_since()) = '-infinity');
create policy agent_working_memory_history_insert on public.agent_working_memory_history
  for insert to authenticated with check (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and actor_id = (select public.claim('actor'))
    and (select public.claim('sub')) in (user_id, actor_id)
    and (chat_id = (select public.claim('chat_id'))
         or at >= ((select public.readable_chats()) ->> chat_id)::timestamptz));
create policy agent_working_memory_history_delete on public.agent_working_memory_history
  for delete to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (select public.claim('actor')) in (user_id, actor_id)
    and (chat_id = (select public.claim('chat_id'))
         or at >= ((select public.readable_chats()) ->> chat_id)::timestamptz));
create policy agent_working_memory_history_of_a_tenant on public.agent_working_memory_history
  as restrictive for all to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_working_memory_history_console on public.agent_working_memory_history
  for select to bot_console using (
    exists (select from feishu_bot.console_audit a where a.xact = pg_current_xact_id_if_assigned()));
revoke all on public.agent_working_memory_history from anon, authenticated;
grant select, insert, delete on public.agent_working_memory_history to authenticated;
grant select on public.agent_working_memory_history to bot_console;
grant select, insert, update, delete on public.agent_working_memory_history to service_role;

-- Notes of a person. Their author changes them; they are read where they were written or shared.
create table public.agent_notes (
  id text not null,  -- note_ and ten base32 characters
  user_id text not null check (user_id <> ''),
  tenant_key text not null default '',
  chat_id text not null,  -- where it was created
  conversation_id text not null,
  title text not null check (length(title) between 1 and 200),
  body text not null default '' check (length(body) <= 20000),
  tags text[] not null default '{}' check (cardinality(tags) <= 20),
  shared_chat_id text,  -- null: only the owner reads it
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- Of a note the message it was created by, and by which its title, body and tags were last
  -- changed.
  turn_id text,
  sources jsonb not null default '{}',
  primary key (id, tenant_key, user_id),
  constraint agent_notes_place check (starts_with(conversation_id, 'feishu:' || chat_id || ':'))
);
create index agent_notes_shared_idx on public.agent_notes (shared_chat_id) where shared_chat_id is not null;
create index agent_notes_turn_idx on public.agent_notes (turn_id) where turn_id is not null;
create index agent_notes_user_idx on public.agent_notes (user_id, created_at desc);
alter table public.agent_notes enable row level security;
create policy agent_notes_select on public.agent_notes
  for select to authenticated using (
    (chat_id = (select public.claim('chat_id'))
     or shared_chat_id = (select public.claim('chat_id'))
     or created_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
    and ((select public.claim('sharing')) is distinct from 'person'
         or shared_chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor'))));
create policy agent_notes_told on public.agent_notes
  as restrictive for select to authenticated using (
    (created_at >= (select bot_private.told_since())) is not false);
create policy agent_notes_insert on public.agent_notes
  for insert to authenticated with check (
    chat_id = (select public.claim('chat_id')) and user_id = (select public.claim('actor')));
create policy agent_notes_update on public.agent_notes
  for update to authenticated using (
    user_id = (select public.claim('actor'))) with check (
    user_id = (select public.claim('actor'))
    and (shared_chat_id is null
         or shared_chat_id = (select public.claim('chat_id'))
         or shared_chat_id = chat_id
         or (select public.readable_chats()) ? shared_chat_id));
create policy agent_notes_delete on public.agent_notes
  for delete to authenticated using (user_id = (select public.claim('actor')));
create policy agent_notes_of_a_tenant on public.agent_notes
  as restrictive for all to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_notes_console on public.agent_notes
  for select to bot_console using (
    exists (select from feishu_bot.console_audit a where a.xact = pg_current_xact_id_if_assigned()));
revoke all on public.agent_notes from anon, authenticated;
grant select, insert, update (title, body, tags, shared_chat_id, updated_at, sources), delete on public.agent_notes to
    authenticated;
grant select on public.agent_notes to bot_console;
grant select, insert, update, delete on public.agent_notes to service_role;

-- What a note was before a message changed it: only the fields that changed, at most 20 changes a note.
create table public.agent_note_changes (
  id bigint generated always as identity primary key,
  note_id text not null,
  user_id text not null check (user_id <> ''),
  tenant_key text not null default '',
  turn_id text not null,
  was jsonb not null,
  was_sources jsonb not null default '{}',
  at timestamptz not null default now(),
  constraint agent_note_changes_note_id_tenant_key_user_id_fkey foreign key (note_id, tenant_key, user_id)
    references public.agent_notes (id, tenant_key, user_id) on delete cascade
);
create index agent_note_changes_note_idx on public.agent_note_changes (note_id, tenant_key, user_id, id);
create index agent_note_changes_turn_idx on public.agent_note_changes (turn_id);
alter table public.agent_note_changes enable row level security;
create policy agent_note_changes_select on public.agent_note_changes
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and user_id = (select public.claim('actor'))
    and exists (select from public.agent_notes n where n.id = agent_note_changes.note_id and
      n.tenant_key = agent_note_changes.tenant_key and n.user_id = agent_note_changes.user_id));
create policy agent_note_changes_insert on public.agent_note_changes
  for insert to authenticated with check (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and user_id = (select public.claim('actor'))
    and exists (select from public.agent_notes n where n.id = agent_note_changes.note_id and
      n.tenant_key = agent_note_changes.tenant_key and n.user_id = agent_note_changes.user_id));
create policy agent_note_changes_delete on public.agent_note_changes
  for delete to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and user_id = (select public.claim('actor'))
    and exists (select from public.agent_notes n where n.id = agent_note_changes.note_id and
      n.tenant_key = agent_note_changes.tenant_key and n.user_id = agent_note_changes.user_id));
revoke all on public.agent_note_changes from anon, authenticated;
grant select, insert, delete on public.agent_note_changes to authenticated;
grant select, insert, update, delete on public.agent_note_changes to service_role;

-- The notes that a conversation has worked with, and the order in which a card listed them last.
create table public.agent_note_uses (
  conversation_id text not null,
  user_id text not null,
  note_id text not null,
  tenant_key text not null default '',
  ordinal bigint generated always as identity,  -- order of creation or first touch
  last_action text not null check (last_action in ('created', 'read', 'found', 'listed', 'updated',
    'shared', 'unshared')),
  last_used_at timestamptz,  -- null: only listed so far, never worked with
  -- The number in the list shown last; null: it was not in it.
  shown_place integer check (shown_place > 0),
  -- Of a note the owner: an id that somebody else's note has tells nobody that there is one.
  owner_id text not null,
  shown_at timestamptz,
  primary key (conversation_id, user_id, note_id, owner_id),
  constraint agent_note_uses_chat_fkey foreign key (tenant_key, conversation_id, user_id)
    references public.agent_chats (tenant_key, id, user_id) on delete cascade,
  constraint agent_note_uses_note_fkey foreign key (note_id, tenant_key, owner_id)
    references public.agent_notes (id, tenant_key, user_id) on delete cascade
);
create index agent_note_uses_note_idx on public.agent_note_uses (note_id);
create index agent_note_uses_shown_idx on public.agent_note_uses (user_id, shown_at) where shown_at is not null;
alter table public.agent_note_uses enable row level security;
create policy agent_note_uses_select on public.agent_note_uses
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and user_id = (select public.claim('actor'))
    and starts_with(conversation_id, 'feishu:' || (select public.claim('chat_id')) || ':'));
create policy agent_note_uses_insert on public.agent_note_uses
  for insert to authenticated with check (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and user_id = (select public.claim('actor'))
    and starts_with(conversation_id, 'feishu:' || (select public.claim('chat_id')) || ':'));
create policy agent_note_uses_update on public.agent_note_uses
  for update to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and user_id = (select public.claim('actor'))
    and starts_with(conversation_id, 'feishu:' || (select public.claim('chat_id')) || ':'));
create policy agent_note_uses_delete on public.agent_note_uses
  for delete to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and user_id = (select public.claim('actor'))
    and starts_with(conversation_id, 'feishu:' || (select public.claim('chat_id')) || ':'));
revoke all on public.agent_note_uses from anon, authenticated;
grant select, insert, update (last_action, last_used_at, shown_place, shown_at), delete on public.agent_note_uses to
    authenticated;
grant select, insert, update, delete on public.agent_note_uses to service_role;

-- The running summary of a long conversation, made of messages that the window no longer shows. It is read in its own
-- place only: it holds words from before somebody joined.
create table public.agent_summaries (
  id bigint generated always as identity primary key,
  conversation_id text not null,
  user_id text not null,  -- '': of everybody there; a person's own where people are kept apart
  tenant_key text not null default '',
  chat_id text not null,
  version integer not null default 1,  -- counts the folds
  content text not null,
  verbatim jsonb not null default '[]',  -- ids and names that every version has to hold
  from_message_id bigint not null default 0,  -- the first row of agent_messages whose words are in it; 0: unknown
  until_message_id bigint not null,  -- the last one
  messages integer not null default 0,  -- how many messages were folded
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  -- Of a summary the time of the first words in it; unknown of those from before.
  first_said_at timestamptz not null default '-infinity',
  constraint agent_summaries_conversation_key unique (tenant_key, conversation_id, user_id),
  constraint agent_summaries_place check (starts_with(conversation_id || ':', 'feishu:' || chat_id || ':'))
);
create index agent_summaries_user_idx on public.agent_summaries (user_id);
alter table public.agent_summaries enable row level security;
create policy agent_summaries_select on public.agent_summaries
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and ((select public.claim('sharing')) is distinct from 'person'
         or user_id = (select public.claim('actor'))));
create policy agent_summaries_told on public.agent_summaries
  as restrictive for select to authenticated using (
    first_said_at >= (select bot_private.told_since()));
create policy agent_summaries_insert on public.agent_summaries
  for insert to authenticated with check (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and user_id = case (select public.claim('sharing')) when 'person' then (select public.claim('sub')) else '' end);
create policy agent_summaries_update on public.agent_summaries
  for update to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and user_id = case (select public.claim('sharing')) when 'person' then (select public.claim('sub')) else '' end);
create policy agent_summaries_delete on public.agent_summaries
  for delete to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and user_id = case (select public.claim('sharing')) when 'person' then (select public.claim('sub')) else '' end
    and (select public.claim('sub')) = (select public.claim('actor')));
create policy agent_summaries_of_a_tenant on public.agent_summaries
  as restrictive for all to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_summaries_console on public.agent_summaries
  for select to bot_console using (
    exists (select from feishu_bot.console_audit a where a.xact = pg_current_xact_id_if_assigned()));
revoke all on public.agent_summaries from anon, authenticated;
grant select, insert,
    update (version, content, verbatim, from_message_id, until_message_id, messages, updated_at, first_said_at),
    delete on public.agent_summaries to authenticated;
grant select on public.agent_summaries to bot_console;
grant select, insert, update, delete on public.agent_summaries to service_role;

-- Section: Group conversations

-- The group conversation that the bot takes part in. Times are ms since epoch, as in Feishu.
create table public.chat_conversations (
  chat_id text not null check (chat_id <> ''),
  tenant_key text not null default '',
  active boolean not null default false,
  quiet boolean not null default false,
  started_at bigint not null default 0,
  last_activity bigint not null default 0,
  updated_at timestamptz not null default now(),
  asked_ms bigint,  -- ms since epoch
  -- Messages of other bots to this one, oldest first: {message_id, bot_id, at}. note_bot_message
  -- keeps them.
  bot_talk jsonb not null default '[]',
  primary key (tenant_key, chat_id)
);
alter table public.chat_conversations enable row level security;
create policy chat_conversations_select on public.chat_conversations
  for select to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy chat_conversations_insert on public.chat_conversations
  for insert to authenticated with check (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy chat_conversations_update on public.chat_conversations
  for update to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')) with check (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy chat_conversations_delete on public.chat_conversations
  for delete to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
revoke all on public.chat_conversations from anon, authenticated;
grant select, insert, update (active, quiet, started_at, last_activity, updated_at, asked_ms, bot_talk), delete on
    public.chat_conversations to authenticated;
grant select, insert, update, delete on public.chat_conversations to service_role;

-- What was said in a group while the bot took part. Everyone in the chat can read it there.
create table public.chat_transcript (
  chat_id text not null,
  message_id text not null,
  tenant_key text not null default '',
  root_id text,
  author text not null,
  author_id text not null,
  content text not null,
  timestamp bigint not null,
  is_bot boolean not null,
  ours boolean not null default false,
  quotes text,  -- the message_id that it replies to, outside of threads
  number bigint generated always as identity,
  primary key (tenant_key, chat_id, message_id),
  constraint chat_transcript_chat_fkey foreign key (tenant_key, chat_id)
    references public.chat_conversations (tenant_key, chat_id) on delete cascade
);
create index chat_transcript_author_idx on public.chat_transcript (author_id);
create index chat_transcript_number_idx on public.chat_transcript (tenant_key, chat_id, number);
create index chat_transcript_time_idx on public.chat_transcript (chat_id, timestamp desc);
alter table public.chat_transcript enable row level security;
create policy chat_transcript_select on public.chat_transcript
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and ((select public.claim('sharing')) is distinct from 'person'
         or author_id = (select public.claim('actor'))));
create policy chat_transcript_told on public.chat_transcript
  as restrictive for select to authenticated using (
    (timestamp >= ((select extract(epoch from bot_private.told_since()) *
      1000))) is not false);
create policy chat_transcript_insert on public.chat_transcript
  for insert to authenticated with check (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy chat_transcript_delete on public.chat_transcript
  for delete to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy chat_transcript_console on public.chat_transcript
  for select to bot_console using (
    exists (select from feishu_bot.console_audit a where a.xact = pg_current_xact_id_if_assigned()));
revoke all on public.chat_transcript from anon, authenticated;
grant select, insert, delete on public.chat_transcript to authenticated;
grant select on public.chat_transcript to bot_console;
grant select, insert, update, delete on public.chat_transcript to service_role;

-- Which topic of a conversation a message belongs to. A topic is named by the time of its first message (ms since
-- epoch), so it outlives that message.
create table public.chat_topics (
  tenant_key text not null default '',
  chat_id text not null,
  message_id text not null,
  topic bigint not null,
  number bigint generated always as identity,
  primary key (tenant_key, chat_id, message_id),
  constraint chat_topics_tenant_key_chat_id_message_id_fkey foreign key (tenant_key, chat_id, message_id)
    references public.chat_transcript (tenant_key, chat_id, message_id) on delete cascade
);
alter table public.chat_topics enable row level security;
create policy chat_topics_select on public.chat_topics
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and (select public.claim('sharing')) is distinct from 'person');
create policy chat_topics_insert on public.chat_topics
  for insert to authenticated with check (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id')));
revoke all on public.chat_topics from anon, authenticated;
grant select, insert on public.chat_topics to authenticated;
grant select, insert, update, delete on public.chat_topics to service_role;

-- Why a message of a group was answered or not. The first decision on a message holds when its job is tried again.
create table public.agent_decisions (
  id bigint generated always as identity primary key,
  message_id text not null,
  chat_id text not null,
  tenant_key text not null default '',
  actor_id text not null,
  respond boolean not null,
  reason text not null,
  tier text not null,
  cue text,
  since_bot_ms bigint,
  verdict text,
  judge_ms integer,
  created_at timestamptz not null default now(),
  root_id text,  -- null: outside of threads, or not known
  -- When a person wrote it to this bot or another (ms since epoch, as Feishu's), and whether to
  -- both at once.
  request_ms bigint,
  shared boolean not null default false,
  constraint agent_decisions_message_key exclude using hash ((tenant_key || ' ' || chat_id || ' ' || message_id) with
    =)
);
create index agent_decisions_chat_idx on public.agent_decisions (chat_id, id desc);
create index agent_decisions_message_idx on public.agent_decisions using hash (message_id);
create index agent_decisions_time_idx on public.agent_decisions (created_at);
alter table public.agent_decisions enable row level security;
create policy agent_decisions_select on public.agent_decisions
  for select to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_decisions_insert on public.agent_decisions
  for insert to authenticated with check (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and actor_id = (select public.claim('actor')));
create policy agent_decisions_console on public.agent_decisions
  for select to bot_console using (true);
revoke all on public.agent_decisions from anon, authenticated;
grant select, insert on public.agent_decisions to authenticated;
grant select on public.agent_decisions to bot_console;
grant select, insert, update, delete on public.agent_decisions to service_role;

-- Section: Timers and digests

-- What the bot does at a time: reminders, digests on a schedule, questions that wait for somebody else to answer.
-- Whoever reads the chat may know of a timer; only its author changes it.
create table public.agent_timers (
  id text primary key,
  conversation_id text not null,
  chat_id text not null check (chat_id <> ''),
  root_id text not null,
  chat_type text not null check (chat_type in ('group', 'p2p')),
  tenant_key text not null default '',
  user_id text not null check (user_id <> ''),
  actor_id text not null check (actor_id <> ''),  -- the author
  turn_id text not null,  -- the message it was made from
  kind text not null default 'reminder' check (kind in ('reminder', 'digest', 'proactive')),
  content text not null default '' check (length(content) <= 1000),
  language text not null default 'en' check (language in ('zh', 'en')),
  for_all boolean not null default false,  -- the whole chat, without mentioning everybody
  for_people text[] not null default '{}' check (cardinality(for_people) <= 20),
  local_at text not null,  -- wall clock of its beginning: 2026-11-23T15:00
  zone text not null,  -- IANA name
  repeats text not null default 'once' check (repeats in ('once', 'daily', 'weekdays', 'weekly', 'monthly')),
  due_at timestamptz not null,  -- the next time
  state text not null default 'active' check (state in ('active', 'done', 'cancelled', 'stopped')),
  queued_until timestamptz,  -- nobody else queues it before then
  fired integer not null default 0,
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  changed_by text[] not null default '{}' check (cardinality(changed_by) <= 20),
  constraint agent_timers_place check (starts_with(conversation_id, 'feishu:' || chat_id || ':'))
);
create index agent_timers_actor_idx on public.agent_timers (actor_id);
create index agent_timers_chat_idx on public.agent_timers (chat_id, due_at) where state = 'active';
create index agent_timers_due_idx on public.agent_timers (due_at) where state = 'active';
create index agent_timers_turn_idx on public.agent_timers (turn_id);
create index agent_timers_user_idx on public.agent_timers (user_id);
alter table public.agent_timers enable row level security;
create policy agent_timers_select on public.agent_timers
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and ((select public.claim('sharing')) is distinct from 'person'
         or (select public.claim('actor')) in (user_id, actor_id)));
create policy agent_timers_insert on public.agent_timers
  for insert to authenticated with check (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and user_id = (select public.claim('sub'))
    and actor_id = (select public.claim('actor'))
    and kind = 'reminder');
create policy agent_timers_update on public.agent_timers
  for update to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and actor_id = (select public.claim('actor')));
create policy agent_timers_of_a_tenant on public.agent_timers
  as restrictive for all to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
revoke all on public.agent_timers from anon, authenticated;
grant select, insert, update (content, for_all, for_people, local_at, zone, repeats, due_at, updated_at, changed_by)
    on public.agent_timers to authenticated;
grant select, insert, update, delete on public.agent_timers to service_role;

-- The messages that a digest was made of. It goes when one of them is taken back. Ids only.
create table public.agent_digest_sources (
  turn_id text not null references public.agent_turns (id) on delete cascade,
  tenant_key text not null default '',
  chat_id text not null check (chat_id <> ''),
  message_id text not null check (message_id <> ''),
  author_id text not null default '',
  primary key (turn_id, message_id)
);
create index agent_digest_sources_author_idx on public.agent_digest_sources (author_id);
create index agent_digest_sources_message_idx on public.agent_digest_sources (message_id);
alter table public.agent_digest_sources enable row level security;
create policy agent_digest_sources_select on public.agent_digest_sources
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id')));
create policy agent_digest_sources_of_a_tenant on public.agent_digest_sources
  as restrictive for all to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
revoke all on public.agent_digest_sources from anon, authenticated;
grant select on public.agent_digest_sources to authenticated;
grant select, insert, update, delete on public.agent_digest_sources to service_role;

-- Section: Imported history

-- One for each chat. It goes with all that came of it.
create table public.chat_imports (
  id integer generated always as identity primary key,
  tenant_key text not null,
  chat_id text not null check (chat_id <> ''),
  chat_type text not null check (chat_type in ('group', 'p2p')),
  started_by text not null default '',  -- an open_id; '': an operator
  since timestamptz,  -- null: everything
  until timestamptz not null,
  state text not null default 'running' check (state in ('running', 'paused', 'removing', 'done', 'failed')),
  phase text not null default 'chat' check (phase in ('chat', 'threads', 'finishing')),
  -- how far the chat has been read
  position text not null default '' check (length(position) <= 1000),
  estimated integer not null default 0,
  pages integer not null default 0,
  messages integer not null default 0,
  report jsonb not null default '{}',  -- what was not kept, counted by kind
  error text not null default '',
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  finished_at timestamptz,
  constraint chat_imports_tenant_key_chat_id_key unique (tenant_key, chat_id)
);
alter table public.chat_imports enable row level security;
create policy chat_imports_select on public.chat_imports
  for select to authenticated using (
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = any (array(select jsonb_object_keys(public.readable_chats())) || (select public.claim('chat_id'))));
create policy chat_imports_insert on public.chat_imports
  for insert to authenticated with check (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and started_by = (select public.claim('actor'))
    and exists (select from public.chat_managers m where m.chat_id = chat_imports.chat_id and
      m.tenant_key = chat_imports.tenant_key and m.open_id = (select public.claim('actor')) and
      (m.role = 'adder' or m.seen_at > (now() - interval '10 minutes'))));
create policy chat_imports_update on public.chat_imports
  for update to authenticated using (
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and exists (select from public.chat_managers m where m.chat_id = chat_imports.chat_id and
      m.tenant_key = chat_imports.tenant_key and m.open_id = (select public.claim('actor')) and
      (m.role = 'adder' or m.seen_at > (now() - interval '10 minutes'))));
revoke all on public.chat_imports from anon, authenticated;
grant select, insert (tenant_key, chat_id, chat_type, started_by, since, until, estimated), update (started_by, since,
    until, state, phase, position, estimated, pages, report, error, updated_at, finished_at) on public.chat_imports to
    authenticated;
grant select, insert, update, delete, truncate on public.chat_imports to service_role;

-- A message from before, as Feishu lists it. Its id is below zero and follows from time and message_id, so it is the
-- same in whatever order the history is read, and stands where the message stood.
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
create index imported_messages_import_idx on public.imported_messages (import_id);
create index imported_messages_message_idx on public.imported_messages (hashtext(message_id));
alter table public.imported_messages enable row level security;
create policy imported_messages_select on public.imported_messages
  for select to authenticated using (
    sent_at >= (((select bot_private.readable_imports()) ->> import_id::text)::timestamptz));
create policy imported_messages_of_a_tenant on public.imported_messages
  as restrictive for all to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
revoke all on public.imported_messages from anon, authenticated;
grant select on public.imported_messages to authenticated;
grant select, insert, update, delete, truncate on public.imported_messages to service_role;

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

-- Section: Recall and retraction

-- What recall searches: the words of every turn as numbers. No token and no API reaches it; functions that run as its
-- owner apply the rule of the messages.
create table bot_private.turn_words (
  first_id bigint primary key,
  place bigint not null,  -- of tenant and chat, as recall_number makes it
  thread bigint not null,  -- of tenant and conversation
  asked_at timestamptz not null,
  length integer not null,  -- tokens in the turn
  words integer[] not null  -- as recall_words makes them; one that stands twice, twice
);
alter table bot_private.turn_words alter column words set storage main;
create index turn_words_thread_idx on bot_private.turn_words (thread, first_id);
create index turn_words_time_idx on bot_private.turn_words (place, asked_at);
create index turn_words_words_idx on bot_private.turn_words using gin (words) with (fastupdate=off);
alter table bot_private.turn_words enable row level security;
grant select, truncate on bot_private.turn_words to service_role;

-- The pads of HMAC-SHA256 for a random key, made once for each database.
create table bot_private.source_key (
  inner_pad bytea not null check (octet_length(inner_pad) = 64),
  outer_pad bytea not null check (octet_length(outer_pad) = 64)
);
create unique index source_key_is_one on bot_private.source_key ((true));
alter table bot_private.source_key enable row level security;
alter table bot_private.source_key replica identity full;  -- as of feishu_bot.inbox
do $$
declare
  v_key constant bytea :=
    uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid());
  v_inner bytea := decode(repeat('36', 64), 'hex');
  v_outer bytea := decode(repeat('5c', 64), 'hex');
begin
  for n in 0 .. octet_length(v_key) - 1 loop
    v_inner := set_byte(v_inner, n, get_byte(v_inner, n) # get_byte(v_key, n));
    v_outer := set_byte(v_outer, n, get_byte(v_outer, n) # get_byte(v_key, n));
  end loop;
  insert into bot_private.source_key values (v_inner, v_outer);
end
$$;

-- The hashed words of a file, forward or quotation that a turn was given, so that what repeats them can be found.
create table bot_private.source_terms (
  source text not null,  -- message_id
  turn_id text not null references public.agent_turns (id) on delete cascade,
  terms bigint[] not null,
  primary key (source, turn_id)
);
create index source_terms_turn_idx on bot_private.source_terms (turn_id);
alter table bot_private.source_terms enable row level security;
grant truncate on bot_private.source_terms to service_role;

-- The hashed words of a line that left its transcript, and the turns that were given it.
create table bot_private.talk_terms (
  source text primary key,  -- message_id
  first_given timestamptz not null,  -- when the earliest of these turns began
  readers bigint[] not null,  -- the turns, as reader_number makes them
  terms bigint[] not null
);
alter table bot_private.talk_terms enable row level security;
grant truncate on bot_private.talk_terms to service_role;

-- A document that a person had read in a chat; `doc:<id>` is what their answers there were given. What was read is
-- not kept, but what tells it is (bot_private.source_terms), as for files.
create table bot_private.told_documents (
  id bigint generated always as identity primary key,
  tenant_key text not null,
  chat_id text not null,
  chat_type text not null,
  kind text not null,  -- and its token, as the link names them
  token text not null,
  actor_id text not null,
  actor_tenant text not null default '',
  told_at timestamptz not null default now(),
  looked_at timestamptz not null default now(),
  open_at timestamptz,  -- null: not since it was told
  closed_at timestamptz,
  first_at timestamptz not null default now(),  -- when it was first told there
  constraint told_documents_tenant_key_chat_id_actor_id_kind_token_key unique (tenant_key, chat_id, actor_id, kind,
    token)
);
create index told_documents_looked_idx on bot_private.told_documents (looked_at);
alter table bot_private.told_documents enable row level security;
grant select, insert, update, delete, truncate on bot_private.told_documents to service_role;

-- Section: Tokens of people at Feishu

-- One row a person: what they granted and until when, and what they are asked for now (ask_…). It holds no token.
-- Only a token of the person's own place reads it, where chat_id is their open_id: no chat's token does.
create table public.user_tokens (
  tenant_key text not null,
  open_id text not null check (open_id <> ''),
  scopes text not null default '',  -- as Feishu granted them, with spaces between
  granted_at timestamptz,  -- null: nothing is granted
  access_until timestamptz,
  refresh_until timestamptz,  -- null: it cannot be refreshed
  sealed_with text not null default '',  -- the name of the key
  refreshed_by text not null default '',  -- who sends the refresh token now, which works once
  refresh_began_at timestamptz,
  -- why; until they are told
  ended text not null default '' check (ended = any ('{"",lost,refused,expired}')),
  ended_at timestamptz,
  language text not null default '',  -- in which they last asked
  ask text not null default '',  -- the id of what is asked; '': nothing is
  ask_scopes text not null default '',
  ask_until timestamptz,
  ask_interval_s integer not null default 5,
  ask_sealed_with text not null default '',
  -- what came of it, until they are told
  ask_outcome text not null default '' check (ask_outcome = any
    ('{"",connected,denied,expired,somebody_else,failed}')),
  ask_card text not null default '',  -- the card with the link
  ask_aside boolean not null default false,  -- whether it stands beside a group
  ask_place jsonb not null default '{}',  -- where and in which language it was asked for
  updated_at timestamptz not null default now(),
  primary key (tenant_key, open_id)
);
alter table public.user_tokens enable row level security;
create policy user_tokens_select on public.user_tokens
  for select to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and open_id = (select public.claim('actor'))
    and open_id = (select public.claim('sub'))
    and open_id = (select public.claim('chat_id'))
    and (select public.claim('chat_type')) = 'p2p'
    and (select public.claim('actor_tenant')) is null);
create policy user_tokens_insert on public.user_tokens
  for insert to authenticated with check (
    tenant_key = (select public.claim('tenant_key'))
    and open_id = (select public.claim('actor'))
    and open_id = (select public.claim('sub'))
    and open_id = (select public.claim('chat_id'))
    and (select public.claim('chat_type')) = 'p2p'
    and (select public.claim('actor_tenant')) is null);
create policy user_tokens_update on public.user_tokens
  for update to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and open_id = (select public.claim('actor'))
    and open_id = (select public.claim('sub'))
    and open_id = (select public.claim('chat_id'))
    and (select public.claim('chat_type')) = 'p2p'
    and (select public.claim('actor_tenant')) is null);
create policy user_tokens_delete on public.user_tokens
  for delete to authenticated using (
    tenant_key = (select public.claim('tenant_key'))
    and open_id = (select public.claim('actor'))
    and open_id = (select public.claim('sub'))
    and open_id = (select public.claim('chat_id'))
    and (select public.claim('chat_type')) = 'p2p'
    and (select public.claim('actor_tenant')) is null);
revoke all on public.user_tokens from anon, authenticated;
grant select, insert, update (scopes, granted_at, access_until, refresh_until, sealed_with, refreshed_by,
    refresh_began_at, ended, ended_at, language, ask, ask_scopes, ask_until, ask_interval_s, ask_sealed_with,
    ask_outcome, ask_card, ask_aside, ask_place, updated_at), delete on public.user_tokens to authenticated;
grant select, insert, update, delete, truncate on public.user_tokens to service_role;

-- The tokens themselves, and the code of a device grant. No role reads or writes it, operators' neither, and no
-- backup has it: functions read and write what is of the person of the token. Operators can only empty it.
create table bot_private.user_token_seals (
  tenant_key text not null,
  open_id text not null,
  kind text not null check (kind = any ('{access,refresh,device}')),
  sealed text not null check (length(sealed) between 1 and 16384),
  primary key (tenant_key, open_id, kind),
  constraint user_token_seals_tenant_key_open_id_fkey foreign key (tenant_key, open_id)
    references public.user_tokens (tenant_key, open_id) on delete cascade
);
alter table bot_private.user_token_seals enable row level security;
grant truncate on bot_private.user_token_seals to service_role;

-- Section: The queue

-- Which parts of sql/ the database has: schema.sql, the numbered files, and the functions by their digest.
create table feishu_bot.migrations (
  name text primary key,
  applied_at timestamptz not null default now()
);
alter table feishu_bot.migrations enable row level security;

-- Events that were accepted, so that one that is delivered again is accepted once.
create table feishu_bot.inbox (
  key text not null,  -- message:{message_id} or event:{event_id}
  received_at timestamptz not null default now(),
  constraint inbox_key exclude using hash (key with =)
);
create index inbox_received_idx on feishu_bot.inbox using brin (received_at);
alter table feishu_bot.inbox enable row level security;
-- It has no primary key, and under a publication for all tables Postgres deletes only what it can name to subscribers.
alter table feishu_bot.inbox replica identity full;

-- The queue: a job is one event to handle, or a conversation to tend.
create table feishu_bot.jobs (
  id bigint generated always as identity primary key,  -- a card names it: J12
  task text not null,
  args jsonb not null,
  lock text,  -- jobs of one lock run in order, one at a time
  unique_key text,  -- one job at most waits with it
  status text not null default 'waiting' check (status in ('waiting', 'running', 'failed')),
  priority integer not null default 0,  -- the highest goes first
  scheduled_at timestamptz,  -- not before then
  attempts integer not null default 0,  -- those that are over
  worker_id bigint,  -- who runs it; 0: nobody that is known
  queued_at timestamptz not null default now(),
  events jsonb not null default '[]',  -- [{type, at}]: what did not go as it should, oldest first
  constraint jobs_worker check ((status = 'running') = (worker_id is not null))
);
create unique index jobs_running_lock_key on feishu_bot.jobs (lock) where status = 'running';
create index jobs_waiting_idx on feishu_bot.jobs (priority desc, id) where status = 'waiting';
create unique index jobs_waiting_key on feishu_bot.jobs (unique_key) where status = 'waiting';
create index jobs_waiting_lock_idx on feishu_bot.jobs (lock, priority desc, id) where status = 'waiting';
create index jobs_worker_idx on feishu_bot.jobs (worker_id) where status = 'running';
alter table feishu_bot.jobs enable row level security;

-- The processes that run jobs, and when each was last known to live.
create table feishu_bot.workers (
  id bigint generated always as identity primary key,
  last_heartbeat timestamptz not null default now(),
  -- it holds an advisory lock while it lives (`begin_work`)
  has_session boolean not null default false,
  -- It runs at most so many jobs that are handed to it (`enqueue`); at 0 it takes jobs itself.
  places integer not null default 0,
  -- Where it hears of them. Postgres lets everybody listen to a channel whose name they know, and
  -- what people wrote goes there: only the worker and the owner of this schema know the name.
  channel text not null default ''
);
alter table feishu_bot.workers enable row level security;

-- Turns that were asked to stop, for whichever worker has them, now or after a crash. Kept for a day.
create table feishu_bot.stops (
  turn_id text primary key check (length(turn_id) between 1 and 200),
  asked_at timestamptz not null default now()
);
create index stops_asked_idx on feishu_bot.stops (asked_at);
alter table feishu_bot.stops enable row level security;

-- What one process of all machines does at a time, and which one.
create table feishu_bot.leases (
  name text primary key,  -- long connection
  holder text not null,  -- a name that the process has made up
  held_until timestamptz not null  -- by this server's clock: no machine's own matters
);
alter table feishu_bot.leases enable row level security;

-- The requests that a person has left.
create table feishu_bot.person_rates (
  tenant_key text not null check (length(tenant_key) <= 200),
  open_id text not null check (length(open_id) between 1 and 200),
  level real not null,  -- requests left; below 0 where workers together took too many
  at_ms bigint not null,  -- when that was so, ms since epoch, by the clock of the events
  told boolean not null default false,  -- that requests are skipped; until the level is full again
  primary key (tenant_key, open_id)
);
alter table feishu_bot.person_rates enable row level security;

-- Section: Writes that wait for the memory

-- Section: Operators and usage

-- Which kinds of events arrived, and what the webhook refused: Feishu has no call that lists subscriptions.
create table feishu_bot.arrivals (
  -- im.message.receive_v1, refused: …
  kind text primary key check (length(kind) between 1 and 100),
  first_at timestamptz not null default now(),
  last_at timestamptz not null default now()  -- within the hour
);
alter table feishu_bot.arrivals enable row level security;

-- Calls of Feishu's API, counted against its monthly limit, and requests to models in the background.
create table feishu_bot.calls (
  day date not null,  -- in the time zone of the settings
  service text not null check (service in ('feishu', 'model')),
  name text not null check (length(name) between 1 and 60),  -- an API; judge, summary, embedding
  calls bigint not null default 0,
  tokens_in bigint not null default 0,
  tokens_out bigint not null default 0,
  primary key (day, service, name)
);
alter table feishu_bot.calls enable row level security;
create policy calls_console on feishu_bot.calls for select to bot_console using (true);
grant select on feishu_bot.calls to bot_console;

-- What people and chats used of the model, a day.
create table feishu_bot.model_usage (
  day date not null,  -- in the time zone of the settings
  tenant_key text not null default '',
  chat_id text not null,
  actor_id text not null,  -- who asked
  turns bigint not null default 0,
  tokens_in bigint not null default 0,
  tokens_out bigint not null default 0,
  primary key (day, tenant_key, chat_id, actor_id)
);
alter table feishu_bot.model_usage enable row level security;
create policy model_usage_console on feishu_bot.model_usage for select to bot_console using (true);
grant select on feishu_bot.model_usage to bot_console;

-- Links that sign an operator in, once.
create table feishu_bot.console_links (
  digest bytea primary key check (length(digest) = 32),  -- SHA-256 of the key in the link
  admin text not null check (admin <> ''),
  expires_at timestamptz not null
);
alter table feishu_bot.console_links enable row level security;

-- Operators who are signed in.
create table feishu_bot.console_sessions (
  digest bytea primary key check (length(digest) = 32),  -- SHA-256 of the cookie
  admin text not null check (admin <> ''),
  created_at timestamptz not null default now(),
  seen_at timestamptz not null default now()
);
alter table feishu_bot.console_sessions enable row level security;

-- Section: sequences

-- Hosted Supabase gives everybody every sequence of schema public, with the right to set it back. An insert needs no
-- right to one: the columns are identities.
do $$
declare
  s regclass;
begin
  for s in
    select d.objid from pg_depend d join pg_class c on c.oid = d.objid and c.relkind = 'S'
    join pg_class t on t.oid = d.refobjid and t.relkind = 'r'
    where d.deptype = 'i' and t.relnamespace = 'public'::regnamespace and t.relname ~ '^(agent|chat)_'
  loop
    execute format('revoke all on sequence %s from anon, authenticated', s);
  end loop;
end
$$;

-- Section: functions, one definition each

\ir functions/arrivals.sql
\ir functions/buttons.sql
\ir functions/cards.sql
\ir functions/chat_rules.sql
\ir functions/chats.sql
\ir functions/console.sql
\ir functions/digests.sql
\ir functions/documents.sql
\ir functions/failed_work.sql
\ir functions/feedback.sql
\ir functions/forgetting.sql
\ir functions/group.sql
\ir functions/health.sql
\ir functions/history.sql
\ir functions/imports.sql
\ir functions/inspection.sql
\ir functions/items.sql
\ir functions/forget_by_words.sql
\ir functions/leases.sql
\ir functions/notes.sql
\ir functions/origins.sql
\ir functions/outcomes.sql
\ir functions/people.sql
\ir functions/person_rates.sql
\ir functions/private.sql
\ir functions/proactive.sql
\ir functions/provenance.sql
\ir functions/queue.sql
\ir functions/reactions.sql
\ir functions/recall.sql
\ir functions/receipts.sql
\ir functions/stops.sql
\ir functions/store_jobs.sql
\ir functions/summaries.sql
\ir functions/taking_back.sql
\ir functions/telling.sql
\ir functions/timers.sql
\ir functions/turn_records.sql
\ir functions/turns.sql
\ir functions/user_tokens.sql
\ir functions/vectors.sql
\ir functions/work.sql
\ir functions/working_memory.sql

-- Section: triggers

create trigger agent_messages_drop_words after delete on public.agent_messages
  referencing old table as gone
  for each statement execute function public.drop_words_of_messages();
create trigger imported_messages_count after delete on public.imported_messages
  referencing old table as gone for each statement execute function public.count_import_messages();
create trigger agent_turns_end
  before insert or update of state, error, intended on public.agent_turns
  for each row when (new.state not in ('open', 'pending') or new.outcome is not null)
  execute function public.end_turn();
create trigger agent_chats_keep_p2p_insert after insert on public.agent_chats
  for each row when (new.chat_type = 'p2p') execute function public.keep_p2p_chat();
create trigger agent_chats_keep_p2p_update after update of chat_type on public.agent_chats
  for each row when (new.chat_type = 'p2p' and old.chat_type is distinct from new.chat_type)
  execute function public.keep_p2p_chat();
create trigger agent_messages_drop_private after delete on public.agent_messages
  for each row when (old.role = 'user' and old.chunk = 0 and old.chat_id <> old.actor_id)
  execute function public.drop_private_answers();
create trigger agent_turns_forget_readers after delete on public.agent_turns
  referencing old table as gone
  for each statement execute function bot_private.forget_readers();
-- a question that was received is kept with its answer: once a turn, and never the one being asked
create trigger agent_messages_index_insert after insert on public.agent_messages
  for each row when (new.role = 'assistant' or new.status <> 'received')
  execute function public.index_turn();
create trigger agent_messages_index_update
  after update of content, status on public.agent_messages
  for each row
  when (old.content <> new.content or (old.status = 'failed') <> (new.status = 'failed'))
  execute function public.index_turn();
create trigger agent_messages_index_delete after delete on public.agent_messages
  for each row execute function public.index_turn();
create trigger agent_messages_drop_turn_words after delete on public.agent_messages
  referencing old table as gone for each statement execute function public.drop_turn_words();
create trigger imported_messages_drop_turn_words after delete on public.imported_messages
  referencing old table as gone for each statement execute function public.drop_turn_words();
create trigger agent_messages_keep_words before update of content on public.agent_messages
  for each row
  when (old.content <> new.content and not (old.role = 'assistant' and old.status = 'pending'))
  execute function public.keep_words();
create trigger agent_chats_drop_working_memory after delete on public.agent_chats
  for each row execute function public.drop_working_memory_of_chat();
create trigger agent_working_memory_record_insert
  after insert on public.agent_working_memory
  for each row execute function public.record_working_memory_change();
create trigger agent_working_memory_record_update after update of content, sources
  on public.agent_working_memory for each row
  when (old.content <> new.content or old.sources <> new.sources)
  execute function public.record_working_memory_change();

-- Section: who may call which function

\ir access.sql
