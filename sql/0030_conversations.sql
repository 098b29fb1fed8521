-- Purpose: the group conversation the bot is part of, its transcript, and the log of decisions.
--
-- What stands in a chat can be read by everyone in it, so these rows belong to the chat: a token
-- needs the chat_id, whoever's memory the turn uses. Times are ms since epoch, as Feishu's are.

create table public.chat_conversations (
  chat_id text primary key check (chat_id <> ''),
  tenant_key text not null default '',
  active boolean not null default false,
  quiet boolean not null default false,
  started_at bigint not null default 0,
  last_activity bigint not null default 0,
  updated_at timestamptz not null default now()
);

create table public.chat_transcript (
  chat_id text not null references public.chat_conversations (chat_id) on delete cascade,
  message_id text not null,
  tenant_key text not null default '',
  root_id text,
  author text not null,
  author_id text not null,
  content text not null,
  "timestamp" bigint not null,
  is_bot boolean not null,
  ours boolean not null default false,
  primary key (chat_id, message_id)
);
create index chat_transcript_time_idx on public.chat_transcript (chat_id, "timestamp" desc);
create index chat_transcript_author_idx on public.chat_transcript (author_id);

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
  unique (message_id)
);
create index agent_decisions_chat_idx on public.agent_decisions (chat_id, id desc);
create index agent_decisions_time_idx on public.agent_decisions (created_at);

alter table public.chat_conversations enable row level security;
alter table public.chat_transcript enable row level security;
alter table public.agent_decisions enable row level security;

do $$
declare
  of_this_chat constant text := $rule$
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
  $rule$;
  t text;
begin
  foreach t in array array['chat_conversations', 'chat_transcript'] loop
    execute format('create policy %I on public.%I for select to authenticated using (%s)',
                   t || '_select', t, of_this_chat);
    execute format('create policy %I on public.%I for insert to authenticated with check (%s)',
                   t || '_insert', t, of_this_chat);
    execute format('create policy %I on public.%I for update to authenticated using (%s) with check (%s)',
                   t || '_update', t, of_this_chat, of_this_chat);
    execute format('create policy %I on public.%I for delete to authenticated using (%s)',
                   t || '_delete', t, of_this_chat);
  end loop;
  -- The first decision on a message holds when its job is tried again.
  execute format('create policy agent_decisions_select on public.agent_decisions'
                 ' for select to authenticated using (%s)', of_this_chat);
  execute format('create policy agent_decisions_insert on public.agent_decisions'
                 ' for insert to authenticated with check (%s and actor_id = (select public.claim(''actor'')))',
                 of_this_chat);
end
$$;

revoke all on public.chat_conversations, public.chat_transcript, public.agent_decisions from anon;
grant select, insert, update, delete on public.chat_conversations, public.chat_transcript
  to authenticated, service_role;
grant select, insert on public.agent_decisions to authenticated;
grant select, insert, update, delete on public.agent_decisions to service_role;

-- The conversation as it stands, messages oldest first; null when none is active.
create function public.load_conversation(p_chat_id text) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_build_object(
    'channel_id', c.chat_id, 'started_at', c.started_at, 'last_activity', c.last_activity,
    'quiet', c.quiet,
    'messages', coalesce((
      select jsonb_agg(to_jsonb(t) - 'chat_id' - 'tenant_key' || jsonb_build_object(
               'answered', coalesce(d.respond, false)) order by t."timestamp", t.message_id)
      from public.chat_transcript t
      left join public.agent_decisions d on d.message_id = t.message_id
      where t.chat_id = c.chat_id), '[]'))
  from public.chat_conversations c
  where c.chat_id = p_chat_id and c.active
$$;

-- The quietness of a chat, with or without a conversation.
create function public.chat_is_quiet(p_chat_id text) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select to_jsonb(coalesce((select c.quiet from public.chat_conversations c
                            where c.chat_id = p_chat_id), false))
$$;

-- Adds transcript rows (JSON array) that are not there yet.
create function public.add_to_transcript(p_chat_id text, p_tenant_key text, p_records text)
returns void
language sql volatile security invoker set search_path = ''
as $$
  insert into public.chat_transcript
    (chat_id, tenant_key, message_id, root_id, author, author_id, content, "timestamp", is_bot, ours)
  select p_chat_id, p_tenant_key, r.message_id, r.root_id, r.author, r.author_id, r.content,
         r."timestamp", r.is_bot, r.ours
  from jsonb_to_recordset(p_records::jsonb) as r(
    message_id text, root_id text, author text, author_id text, content text,
    "timestamp" bigint, is_bot boolean, ours boolean)
  on conflict do nothing
$$;

-- Starts a conversation with these messages in place of any other.
create function public.begin_conversation(
  p_chat_id text, p_tenant_key text, p_now bigint, p_records text
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
begin
  insert into public.chat_conversations as c
    (chat_id, tenant_key, active, started_at, last_activity)
  values (p_chat_id, p_tenant_key, true, p_now, p_now)
  on conflict (chat_id) do update
    set active = true, started_at = p_now, last_activity = p_now, updated_at = now();
  delete from public.chat_transcript where chat_id = p_chat_id;
  perform public.add_to_transcript(p_chat_id, p_tenant_key, p_records);
  return 'null'::jsonb;
end
$$;

-- Records a message if the conversation is active since p_active_since; the newest p_keep stay.
-- Returns the conversation, or null when none is active.
create function public.append_to_conversation(
  p_chat_id text, p_tenant_key text, p_records text, p_at bigint, p_active_since bigint,
  p_keep integer
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
begin
  update public.chat_conversations
  set last_activity = greatest(last_activity, p_at), updated_at = now()
  where chat_id = p_chat_id and active and last_activity >= p_active_since;
  if not found then
    return null;
  end if;
  perform public.add_to_transcript(p_chat_id, p_tenant_key, p_records);
  delete from public.chat_transcript t
  where t.chat_id = p_chat_id and t."timestamp" < (
    select k."timestamp" from public.chat_transcript k where k.chat_id = p_chat_id
    order by k."timestamp" desc offset p_keep - 1 limit 1);
  return public.load_conversation(p_chat_id);
end
$$;

create function public.remove_from_conversation(p_chat_id text, p_message_id text) returns jsonb
language sql volatile security invoker set search_path = ''
as $$
  delete from public.chat_transcript where chat_id = p_chat_id and message_id = p_message_id;
  select 'null'::jsonb
$$;

create function public.finish_conversation(p_chat_id text) returns jsonb
language sql volatile security invoker set search_path = ''
as $$
  update public.chat_conversations set active = false, updated_at = now() where chat_id = p_chat_id;
  delete from public.chat_transcript where chat_id = p_chat_id;
  select 'null'::jsonb
$$;

create function public.set_chat_quiet(p_chat_id text, p_tenant_key text, p_quiet boolean)
returns jsonb
language sql volatile security invoker set search_path = ''
as $$
  insert into public.chat_conversations (chat_id, tenant_key, quiet)
  values (p_chat_id, p_tenant_key, p_quiet)
  on conflict (chat_id) do update set quiet = p_quiet, updated_at = now();
  select 'null'::jsonb
$$;

-- One row per message that was decided on; a message decided again keeps its first row, which is
-- what this returns, so that a turn taken up again is not dropped half way.
create function public.log_decision(
  p_chat_id text, p_tenant_key text, p_actor_id text, p_message_id text, p_respond boolean,
  p_reason text, p_tier text, p_cue text, p_since_bot_ms bigint, p_verdict text, p_judge_ms integer
) returns jsonb
language sql volatile security invoker set search_path = ''
as $$
  insert into public.agent_decisions
    (chat_id, tenant_key, actor_id, message_id, respond, reason, tier, cue, since_bot_ms, verdict,
     judge_ms)
  values (p_chat_id, p_tenant_key, p_actor_id, p_message_id, p_respond, p_reason, p_tier, p_cue,
          p_since_bot_ms, p_verdict, p_judge_ms)
  on conflict do nothing;
  select jsonb_build_object('respond', d.respond, 'reason', d.reason)
  from public.agent_decisions d where d.message_id = p_message_id
$$;

-- A Feishu message was recalled: its stored copy goes, and its turn is cancelled unless an answer
-- is stored already; a turn that has not begun never will. For the service only: the event names no
-- sender. Returns the state of the turn, null when it had not begun.
create function public.recall_message(p_message_id text, p_chat_id text) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
declare
  v_state text;
begin
  insert into public.recalled_messages (message_id, chat_id) values (p_message_id, p_chat_id)
  on conflict do nothing;
  delete from public.chat_transcript where message_id = p_message_id;
  update public.agent_turns
  set state = case when state = 'open' then 'cancelled' else state end, updated_at = now()
  where id = p_message_id
  returning state into v_state;
  delete from public.agent_messages
  where message_id = p_message_id or (turn_id = p_message_id and role = 'user');
  return to_jsonb(v_state);
end
$$;

-- For operators: decisions, latest first.
create function public.list_decisions(
  p_chat_id text, p_since timestamptz, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(to_jsonb(d) order by d.id desc), '[]')
  from (
    select * from public.agent_decisions
    where (p_chat_id is null or chat_id = p_chat_id) and (p_since is null or created_at >= p_since)
    order by id desc
    limit p_limit
  ) d
$$;

do $$
declare
  f regprocedure;
begin
  for f in
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.proname in (
      'load_conversation', 'chat_is_quiet', 'add_to_transcript', 'begin_conversation',
      'append_to_conversation', 'remove_from_conversation', 'finish_conversation',
      'set_chat_quiet', 'log_decision', 'recall_message', 'list_decisions')
  loop
    execute format('revoke execute on function %s from public, anon, authenticated', f);
    execute format('grant execute on function %s to service_role', f);
    if f::text !~ '(recall_message|list_decisions)' then
      execute format('grant execute on function %s to authenticated', f);
    end if;
  end loop;
end
$$;
