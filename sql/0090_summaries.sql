-- Purpose: the running summary of a long thread, folded from messages that the window no longer
-- shows. The messages stay; who reaches them reaches their summary.

create table public.agent_summaries (
  id bigint generated always as identity primary key,
  conversation_id text not null,
  user_id text not null check (user_id <> ''),
  tenant_key text not null default '',
  chat_id text not null,
  version integer not null default 1,     -- counts the folds
  content text not null,
  verbatim jsonb not null default '[]',   -- ids and names that every version has to hold
  until_message_id bigint not null,       -- the last row of agent_messages whose words are in it
  messages integer not null default 0,    -- how many messages were folded
  created_at timestamptz not null default now(),
  updated_at timestamptz not null default now(),
  unique (conversation_id, user_id),
  foreign key (conversation_id, user_id)
    references public.agent_chats (id, user_id) on delete cascade
);
create index agent_summaries_user_idx on public.agent_summaries (user_id);

alter table public.agent_summaries enable row level security;

do $$
declare
  mine constant text := $rule$
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
  $rule$;
  reachable constant text := mine || $rule$
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor')))
  $rule$;
begin
  execute format('create policy agent_summaries_select on public.agent_summaries'
                 ' for select to authenticated using (%s)', reachable);
  execute format('create policy agent_summaries_insert on public.agent_summaries'
                 ' for insert to authenticated with check (%s)', reachable);
  execute format('create policy agent_summaries_update on public.agent_summaries'
                 ' for update to authenticated using (%s) with check (%s)', reachable, reachable);
  execute format('create policy agent_summaries_delete on public.agent_summaries'
                 ' for delete to authenticated using (%s'
                 ' and user_id = (select public.claim(''actor'')))', mine);
end
$$;
revoke all on public.agent_summaries from anon;
grant select, insert, update, delete on public.agent_summaries to authenticated, service_role;

-- Begins a turn or finds it as it was left. Returns state, attempts, reply (when one is stored)
-- and, unless the turn is over, history (the question last), working_memory, the registry of notes,
-- and with p_fold_after above 0 the summary of what came before, and whether so many messages lie
-- between it and the history that it is time to fold them. What tools found for the subject is given
-- back only to the subject.
drop function public.open_turn(text, text, text, text, text, text, text, text, text, integer);
create function public.open_turn(
  p_turn_id text, p_conversation_id text, p_chat_id text, p_root_id text,
  p_user_id text, p_actor_id text, p_actor_name text, p_tenant_key text,
  p_content text, p_history_limit integer, p_fold_after integer default 0
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
declare
  v_turn public.agent_turns;
  v_question bigint;
  v_history jsonb;
  v_from bigint;
  v_summary public.agent_summaries;
  v_overdue bigint;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if exists (select from public.recalled_messages r where r.message_id = p_turn_id) then
    return jsonb_build_object('state', 'cancelled', 'attempts', 0, 'reply', '[]'::jsonb);
  end if;

  insert into public.agent_chats (id, user_id, tenant_key, chat_id, root_id, title)
  values (p_conversation_id, p_user_id, p_tenant_key, p_chat_id, p_root_id, left(p_content, 80))
  on conflict (id, user_id) do update set updated_at = now()
  returning history_from into v_from;

  insert into public.agent_turns (id, conversation_id, user_id, actor_id, tenant_key, chat_id)
  values (p_turn_id, p_conversation_id, p_user_id, p_actor_id, p_tenant_key, p_chat_id)
  on conflict (id) do update
    set attempts = public.agent_turns.attempts + 1, updated_at = now()
    where public.agent_turns.user_id = p_user_id
      and public.agent_turns.conversation_id = p_conversation_id
  returning * into v_turn;
  if v_turn.id is null then
    raise exception 'turn % belongs to another conversation', p_turn_id using errcode = '42501';
  end if;

  if v_turn.attempts = 1 then
    insert into public.agent_messages (conversation_id, user_id, turn_id, tenant_key, chat_id, role,
                                       content, actor_id, actor_name, message_id, status)
    values (p_conversation_id, p_user_id, p_turn_id, p_tenant_key, p_chat_id, 'user',
            p_content, p_actor_id, p_actor_name, p_turn_id, 'received')
    returning id into v_question;
  else
    select m.id into v_question from public.agent_messages m
    where m.turn_id = p_turn_id and m.role = 'user' and m.chunk = 0;
  end if;

  if v_turn.state <> 'open' then
    return jsonb_build_object('state', v_turn.state, 'attempts', v_turn.attempts,
                              'reply', public.turn_reply(p_turn_id));
  end if;
  v_history := public.conversation_history(p_conversation_id, p_user_id, v_question, p_history_limit);
  if p_user_id <> p_actor_id then
    select jsonb_agg(m.value || '{"tool_calls": []}' order by m.ordinality) into v_history
    from jsonb_array_elements(v_history) with ordinality m;
  end if;
  if p_fold_after > 0 then
    select * into v_summary from public.agent_summaries s
    where s.conversation_id = p_conversation_id and s.user_id = p_user_id
      and s.until_message_id > v_from;
    -- The message that far back, however long the thread is. It is compared afterwards: bounded on
    -- both sides the scan might take the index of the person's messages in all conversations.
    select m.id into v_overdue from public.agent_messages m
    where m.conversation_id = p_conversation_id and m.user_id = p_user_id
      and m.id <= v_question and m.chunk = 0 and m.status <> 'failed'
    order by m.id desc
    offset p_history_limit + p_fold_after - 1 limit 1;
  end if;
  return jsonb_build_object(
    'state', v_turn.state, 'attempts', v_turn.attempts, 'reply', '[]'::jsonb,
    'history', v_history,
    'working_memory',
      public.get_working_memory(p_conversation_id, p_user_id, p_actor_id, p_tenant_key),
    'registry', public.note_registry(
      p_conversation_id, p_user_id, p_actor_id, p_tenant_key, p_chat_id),
    'summary', case when v_summary.id is not null then jsonb_build_object(
      'content', v_summary.content, 'version', v_summary.version,
      'messages', v_summary.messages) end,
    'fold_due', coalesce(v_overdue > greatest(v_from, v_summary.until_message_id), false));
end
$$;

-- What a fold starts from: the summary, and the oldest p_limit messages after it that the last
-- p_window do not include, if there are at least p_least of them. A summary from before a fresh
-- start is only named, so that it can be replaced. Of tool calls nothing is given but the ids of
-- notes that were worked with. `rows`: every row whose words are in a message.
create function public.open_fold(
  p_conversation_id text, p_user_id text, p_actor_id text,
  p_window integer, p_least integer, p_limit integer
) returns jsonb
language plpgsql stable security invoker set search_path = ''
-- knowing that a thread is very long, the planner would walk through everybody's messages for it
set plan_cache_mode = force_generic_plan
as $$
declare
  v_from bigint;
  v_until bigint;
  v_enough bigint;
  v_summary public.agent_summaries;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  select c.history_from into v_from from public.agent_chats c
  where c.id = p_conversation_id and c.user_id = p_user_id;
  select * into v_summary from public.agent_summaries s
  where s.conversation_id = p_conversation_id and s.user_id = p_user_id;
  if v_summary.until_message_id <= v_from then
    v_summary.content := null;
  else
    v_from := greatest(v_from, v_summary.until_message_id);
  end if;

  select m.id into v_until from public.agent_messages m
  where m.conversation_id = p_conversation_id and m.user_id = p_user_id
    and m.chunk = 0 and m.status <> 'failed'
  order by m.id desc offset p_window limit 1;
  select m.id into v_enough from public.agent_messages m
  where m.conversation_id = p_conversation_id and m.user_id = p_user_id
    and m.chunk = 0 and m.status <> 'failed'
  order by m.id desc offset p_window + p_least - 1 limit 1;

  return jsonb_build_object(
    'id', v_summary.id, 'version', coalesce(v_summary.version, 0),
    'content', coalesce(v_summary.content, ''),
    'verbatim', case when v_summary.content is null then '[]' else v_summary.verbatim end,
    'folded', case when v_summary.content is null then 0 else v_summary.messages end,
    'messages', coalesce((
      select jsonb_agg(to_jsonb(f) order by f.id)
      from (
        select m.id, m.role, coalesce(m.actor_id, '') as actor_id, m.actor_name, m.created_at,
          m.content || coalesce((
            select string_agg(e'\n\n' || c.content, '' order by c.chunk)
            from public.agent_messages c
            where c.turn_id = m.turn_id and c.role = m.role and c.chunk > 0
              and c.status <> 'failed'), '') as content,
          (select jsonb_agg(c.id order by c.id) from public.agent_messages c
           where c.turn_id = m.turn_id and c.role = m.role) as rows,
          array(
            select distinct note.id[1]
            from jsonb_array_elements(m.tool_calls) call,
                 regexp_matches(call.value::text, '\mnote_[a-z2-7]{10}\M', 'g') note (id)
            where coalesce(call.value ->> 'name', '') <> all ('{list_notes,search_notes}')
            order by 1) as note_ids
        from public.agent_messages m
        where m.conversation_id = p_conversation_id and m.user_id = p_user_id
          and m.id > v_from and m.chunk = 0 and m.status <> 'failed' and v_enough > v_from
        order by m.id
        limit p_limit
      ) f
      where f.id <= v_until), '[]'));
end
$$;

-- Stores what was folded from the rows p_rows (JSON array of ids), if the summary is still the one
-- the fold started from (p_summary_id null: none) and every row is still there. Returns the new
-- version, null when another fold was first or words of it were taken back meanwhile. The rows are
-- locked, so that whoever deletes one of them waits and then finds the summary that goes with it.
create function public.save_summary(
  p_conversation_id text, p_user_id text, p_actor_id text,
  p_summary_id bigint, p_expected_version integer,
  p_content text, p_verbatim text, p_rows text, p_messages integer
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
declare
  v_rows constant bigint[] := array(select jsonb_array_elements_text(p_rows::jsonb)::bigint);
  v_found bigint;
  v_version integer;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  perform from public.agent_messages m
  where m.id = any (v_rows) and m.conversation_id = p_conversation_id and m.user_id = p_user_id
  order by m.id for key share;
  get diagnostics v_found = row_count;
  if v_found = 0 or v_found <> cardinality(v_rows) then
    return jsonb_build_object('version', null);
  end if;

  if p_summary_id is null then
    insert into public.agent_summaries (conversation_id, user_id, tenant_key, chat_id, content,
                                        verbatim, until_message_id, messages)
    select c.id, c.user_id, c.tenant_key, c.chat_id, p_content, p_verbatim::jsonb,
           (select max(r) from unnest(v_rows) r), p_messages
    from public.agent_chats c
    where c.id = p_conversation_id and c.user_id = p_user_id
    on conflict (conversation_id, user_id) do nothing
    returning version into v_version;
  else
    update public.agent_summaries s
    set version = s.version + 1, content = p_content, verbatim = p_verbatim::jsonb,
        until_message_id = (select max(r) from unnest(v_rows) r), messages = p_messages,
        updated_at = now()
    where s.id = p_summary_id and s.version = p_expected_version
      and s.conversation_id = p_conversation_id and s.user_id = p_user_id
    returning version into v_version;
  end if;
  return jsonb_build_object('version', v_version);
end
$$;

do $$
declare
  f regprocedure;
begin
  for f in
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace = 'public'::regnamespace
      and p.proname in ('open_turn', 'open_fold', 'save_summary')
  loop
    execute format('revoke execute on function %s from public, anon', f);
    execute format('grant execute on function %s to authenticated, service_role', f);
  end loop;
end
$$;

-- A job that has begun stands no longer for those to come. It could not be tried again otherwise
-- while another one waits with the same queueing lock: the queue's index allows one (Procrastinate
-- 3.10, schema.sql), and the job would stay in the hands of a worker that has given it up.
create function feishu_bot.free_queueing_lock() returns trigger
language plpgsql security invoker set search_path = ''
as $$
begin
  new.queueing_lock := null;
  return new;
end
$$;
revoke execute on function feishu_bot.free_queueing_lock() from public;

create trigger free_queueing_lock_of_running
  before update of status on feishu_bot.procrastinate_jobs
  for each row when (new.status = 'doing' and old.status = 'todo' and old.queueing_lock is not null)
  execute function feishu_bot.free_queueing_lock();
