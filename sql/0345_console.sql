-- Purpose: the operators' console: who may sign in, who looked at what, and a role that can read what
-- the console shows, and nothing else.
--
-- The role reads who, where, when and how a turn went. What people wrote it reads only in a
-- transaction that has noted the look in console_audit first; it can change nothing there.

create table feishu_bot.console_links (
  digest bytea primary key check (length(digest) = 32),  -- SHA-256 of the key in the link
  admin text not null check (admin <> ''),
  expires_at timestamptz not null
);

create table feishu_bot.console_sessions (
  digest bytea primary key check (length(digest) = 32),  -- SHA-256 of the cookie
  admin text not null check (admin <> ''),
  created_at timestamptz not null default now(),
  seen_at timestamptz not null default now()
);

create table feishu_bot.console_audit (
  id bigint generated always as identity primary key,
  at timestamptz not null default now(),
  admin text not null check (admin <> ''),
  action text not null check (length(action) between 1 and 60),  -- read turn, retry job, …
  about text not null default '' check (length(about) <= 300),   -- ids, never words
  xact xid8 default pg_current_xact_id()
);
create index console_audit_at_idx on feishu_bot.console_audit (at);
create index console_audit_about_idx on feishu_bot.console_audit (about);
create index console_audit_xact_idx on feishu_bot.console_audit (xact);

alter table feishu_bot.console_links enable row level security;
alter table feishu_bot.console_sessions enable row level security;
alter table feishu_bot.console_audit enable row level security;
revoke all on feishu_bot.console_links, feishu_bot.console_sessions, feishu_bot.console_audit
  from public;

do $$
begin
  if not exists (select from pg_roles where rolname = 'bot_console') then
    create role bot_console nologin noinherit;
  end if;
  if not pg_has_role(current_user, 'bot_console',
                     case when current_setting('server_version_num')::int >= 160000
                          then 'set' else 'member' end) then
    execute format('grant bot_console to %I', current_user);
  end if;
exception when insufficient_privilege then
  raise exception 'a superuser has to run once, leaving out what is there: create role bot_console nologin noinherit; grant bot_console to %', quote_ident(current_user)
    using errcode = 'PT403';
end
$$;

grant usage on schema public, feishu_bot to bot_console;
grant select, insert (admin, action, about) on feishu_bot.console_audit to bot_console;
create policy console_audit_select on feishu_bot.console_audit
  for select to bot_console using (true);
create policy console_audit_insert on feishu_bot.console_audit
  for insert to bot_console with check (true);

-- Who, where, when, how.
grant select (id, user_id, tenant_key, chat_id, chat_type, root_id, created_at, updated_at)
  on public.agent_chats to bot_console;
grant select on public.agent_turns, public.agent_decisions, public.people, public.chats,
  public.chat_members to bot_console;
create policy agent_chats_console on public.agent_chats
  for select to bot_console using (true);
create policy agent_turns_console on public.agent_turns
  for select to bot_console using (true);
create policy agent_decisions_console on public.agent_decisions
  for select to bot_console using (true);
create policy people_console on public.people
  for select to bot_console using (true);
create policy chats_console on public.chats
  for select to bot_console using (true);
create policy chat_members_console on public.chat_members
  for select to bot_console using (true);

-- What people wrote, and what was made of it.
grant select on public.agent_messages, public.agent_working_memory,
  public.agent_working_memory_history, public.agent_notes, public.agent_summaries,
  public.chat_transcript, public.agent_buttons to bot_console;
create policy agent_messages_console on public.agent_messages
  for select to bot_console using (exists (
    select from feishu_bot.console_audit a where a.xact = pg_current_xact_id_if_assigned()));
create policy agent_working_memory_console on public.agent_working_memory
  for select to bot_console using (exists (
    select from feishu_bot.console_audit a where a.xact = pg_current_xact_id_if_assigned()));
create policy agent_working_memory_history_console on public.agent_working_memory_history
  for select to bot_console using (exists (
    select from feishu_bot.console_audit a where a.xact = pg_current_xact_id_if_assigned()));
create policy agent_notes_console on public.agent_notes
  for select to bot_console using (exists (
    select from feishu_bot.console_audit a where a.xact = pg_current_xact_id_if_assigned()));
create policy agent_summaries_console on public.agent_summaries
  for select to bot_console using (exists (
    select from feishu_bot.console_audit a where a.xact = pg_current_xact_id_if_assigned()));
create policy chat_transcript_console on public.chat_transcript
  for select to bot_console using (exists (
    select from feishu_bot.console_audit a where a.xact = pg_current_xact_id_if_assigned()));
create policy agent_buttons_console on public.agent_buttons
  for select to bot_console using (exists (
    select from feishu_bot.console_audit a where a.xact = pg_current_xact_id_if_assigned()));
