-- Purpose: what happens outside of turns while the memory is away: messages taken back, what was said
-- in a group, decisions. Kept beside the spool and written when the memory is back.
--
-- Each of these operations can be repeated. Messages taken back come first, before the turns; the
-- others are independent of the turns and follow them.

create table feishu_bot.late_writes (
  seq bigint generated always as identity primary key,
  function text not null check (
    function in ('recall_message', 'append_to_conversation', 'continue_conversation', 'log_decision')),
  params jsonb not null,
  context jsonb,                            -- whose token: chat_id, root_id, user_id, actor_id, tenant_key
  conversation_id text,
  message_ids text[] not null,              -- the Feishu messages it is about
  people text[] not null default '{}',      -- open_ids: who spoke in them
  refused text,                             -- why the memory does not take it; for operators
  asked_at timestamptz not null default now()
);
create index late_writes_recall_idx on feishu_bot.late_writes (seq)
  where function = 'recall_message' and refused is null;
alter table feishu_bot.late_writes enable row level security;

-- Keeps a write, unless the message it is about was taken back meanwhile.
create function feishu_bot.spool_keep_write(p_write jsonb) returns void
language sql volatile security invoker set search_path = ''
as $$
  insert into feishu_bot.late_writes
    (function, params, context, conversation_id, message_ids, people)
  select w.function, w.params, w.context, w.conversation_id, w.message_ids, w.people
  from jsonb_populate_record(null::feishu_bot.late_writes, p_write) w
  where not exists (
    select from feishu_bot.late_writes r
    where r.function = 'recall_message' and r.message_ids && w.message_ids)
$$;

-- A message was taken back: nothing that waits tells of it any more, and the memory will hear of it.
create function feishu_bot.spool_keep_recall(p_message_id text, p_chat_id text) returns void
language sql volatile security invoker set search_path = ''
as $$
  delete from feishu_bot.spool where turn_id = p_message_id;
  delete from feishu_bot.late_writes
  where p_message_id = any (message_ids) and function <> 'recall_message';
  insert into feishu_bot.late_writes (function, params, message_ids)
  select 'recall_message',
         jsonb_build_object('p_message_id', p_message_id, 'p_chat_id', p_chat_id), array[p_message_id]
  where not exists (
    select from feishu_bot.late_writes
    where function = 'recall_message' and message_ids = array[p_message_id])
$$;

-- The oldest p_limit writes that wait, in order: messages taken back, or all the others.
create function feishu_bot.spool_writes(p_recalls boolean, p_limit integer) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(to_jsonb(w) order by w.seq), '[]')
  from (
    select seq, function, params, context from feishu_bot.late_writes
    where refused is null and (function = 'recall_message') = p_recalls
    order by seq limit p_limit) w
$$;

-- The memory has these writes.
create function feishu_bot.spool_drop_writes(p_seqs bigint[]) returns void
language sql volatile security invoker set search_path = ''
as $$
  delete from feishu_bot.late_writes where seq = any (p_seqs)
$$;

-- The memory refuses the write (p_reason: a code, no text): it stays here and no longer waits.
create function feishu_bot.spool_refuse_write(p_seq bigint, p_reason text) returns void
language sql volatile security invoker set search_path = ''
as $$
  update feishu_bot.late_writes set refused = p_reason where seq = p_seq
$$;

-- As in 0005; a turn whose question was taken back while the memory is away is cancelled. `oldest_s` is
-- for how long the spool has not been empty, at least.
create or replace function feishu_bot.spool_open_turn(p_turn jsonb) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  v_turn jsonb;
begin
  if exists (select from feishu_bot.late_writes
             where function = 'recall_message' and message_ids = array[p_turn ->> 'turn_id']) then
    return to_jsonb(jsonb_populate_record(null::feishu_bot.spool, p_turn))
           || '{"state": "cancelled", "content": "", "cards": [], "tool_calls": [], "version": 0}';
  end if;
  insert into feishu_bot.spool as s
    (turn_id, conversation_id, chat_id, root_id, user_id, actor_id, actor_name, tenant_key, content,
     state, attempts, cards, tool_calls, answered_at)
  select t.turn_id, t.conversation_id, t.chat_id, t.root_id, t.user_id, t.actor_id, t.actor_name,
         t.tenant_key, t.content, t.state, t.attempts, t.cards, t.tool_calls,
         case when t.state <> 'open' then now() end
  from jsonb_populate_record(null::feishu_bot.spool, p_turn) t
  on conflict (turn_id) do update
    set attempts = s.attempts + 1, version = s.version + 1,
        state = case when s.state = 'open' then excluded.state else s.state end,
        cards = case when s.state = 'open' then excluded.cards else s.cards end,
        tool_calls = case when s.state = 'open' then excluded.tool_calls else s.tool_calls end,
        answered_at = case when s.state = 'open' then excluded.answered_at else s.answered_at end
    where s.conversation_id = excluded.conversation_id and s.user_id = excluded.user_id
  returning to_jsonb(s) into v_turn;
  return v_turn || jsonb_build_object('oldest_s', (
    select extract(epoch from now() - s.asked_at) from feishu_bot.spool s
    where s.refused is null order by s.seq limit 1));
end
$$;

-- As in 0005, with how many messages taken back wait: those are written first.
create or replace function feishu_bot.spool_waiting(
  p_conversation_id text, p_user_id text, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_build_object(
    'waiting', (select count(*) from feishu_bot.spool where refused is null),
    'recalls', (select count(*) from feishu_bot.late_writes
                where function = 'recall_message' and refused is null),
    'turns', coalesce((
      select jsonb_agg(to_jsonb(t) order by t.seq) from (
        select * from feishu_bot.spool s
        where s.conversation_id = p_conversation_id and s.user_id = p_user_id
          and s.refused is null
        order by s.seq limit p_limit) t), '[]'))
$$;

-- As in 0005, with the writes outside of turns; `since` is of whatever waited longest.
create or replace function feishu_bot.spool_state(p_limit integer) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_build_object(
    'waiting', (select count(*) from feishu_bot.spool where refused is null),
    'recalls', w.recalls,
    'writes', w.writes,
    'refused', (select count(*) from feishu_bot.spool where refused is not null) + w.refused,
    'since', least(w.since, (select min(asked_at) from feishu_bot.spool where refused is null)),
    'oldest_s', extract(epoch from now() - least(
      w.since, (select min(asked_at) from feishu_bot.spool where refused is null))),
    'conversations', coalesce((
      select jsonb_agg(jsonb_build_array(c.conversation_id, c.user_id) order by c.first) from (
        select s.conversation_id, s.user_id, min(s.seq) as first
        from feishu_bot.spool s
        where s.refused is null
        group by s.conversation_id, s.user_id
        order by 3 limit p_limit) c), '[]'))
  from (
    select count(*) filter (where function = 'recall_message' and refused is null) as recalls,
           count(*) filter (where function <> 'recall_message' and refused is null) as writes,
           count(*) filter (where refused is not null) as refused,
           min(asked_at) filter (where refused is null) as since
    from feishu_bot.late_writes) w
$$;

-- As in 0005, with the writes. Returns how many of both.
create or replace function feishu_bot.spool_take_back() returns bigint
language sql volatile security invoker set search_path = ''
as $$
  with turns as (
    update feishu_bot.spool set refused = null where refused is not null returning 1
  ), writes as (
    update feishu_bot.late_writes set refused = null where refused is not null returning 1
  )
  select (select count(*) from turns) + (select count(*) from writes)
$$;

-- As in 0040, with the writes: one that tells of several people goes as a whole.
create or replace function feishu_bot.forget_in_queue(
  p_open_id text, p_conversation_id text, p_message_id text
) returns jsonb
language plpgsql security invoker set search_path = feishu_bot
as $$
declare
  v_ids bigint[];
  v_jobs bigint;
  v_running bigint;
  v_turns bigint;
  v_table text;
begin
  if coalesce(p_open_id, p_conversation_id, p_message_id, '') = '' then
    raise exception 'nothing to forget was named' using errcode = '22004';
  end if;
  v_ids := array(
    select j.id from procrastinate_jobs j
    where (p_open_id is null or is_job_of_person(j.args, p_open_id))
      and (p_conversation_id is null or p_conversation_id in (j.lock, j.args ->> 'conversation_id'))
      and (p_message_id is null
           or p_message_id = j.args #>> '{payload,event,message,message_id}'));
  delete from procrastinate_jobs where id = any (v_ids) and status <> 'doing';
  get diagnostics v_jobs = row_count;
  select count(*) into v_running from procrastinate_jobs where id = any (v_ids);
  delete from spool
  where (p_open_id is null or p_open_id in (user_id, actor_id))
    and (p_conversation_id is null or conversation_id = p_conversation_id)
    and (p_message_id is null or turn_id = p_message_id);
  get diagnostics v_turns = row_count;
  delete from late_writes
  where function <> 'recall_message'
    and (p_open_id is null or p_open_id = any (people))
    and (p_conversation_id is null or conversation_id = p_conversation_id)
    and (p_message_id is null or p_message_id = any (message_ids));
  if p_conversation_id is null and p_message_id is null then
    for v_table in select distinct p.table_name from public.person_columns('feishu_bot') p loop
      execute format('delete from feishu_bot.%I where %s', v_table,
                     public.person_condition('feishu_bot', v_table))
        using p_open_id, null::text;
    end loop;
  end if;
  return jsonb_build_object('jobs', v_jobs, 'running', v_running, 'turns', v_turns);
end
$$;

-- As in 0040, with the writes.
create or replace function feishu_bot.export_from_queue(p_open_id text)
returns table (table_name text, content jsonb)
language sql stable security invoker set search_path = feishu_bot
as $$
  select 'procrastinate_jobs', to_jsonb(j)
  from procrastinate_jobs j where is_job_of_person(j.args, p_open_id)
  union all
  select 'spool', to_jsonb(s) from spool s where p_open_id in (s.user_id, s.actor_id)
  union all
  select 'late_writes', to_jsonb(w) from late_writes w where p_open_id = any (w.people)
$$;

-- As in 0041, with what waits for the memory: turns, and the age (s) of the oldest of anything.
create or replace function feishu_bot.queue_depth() returns jsonb
language sql stable security invoker set search_path = feishu_bot
as $$
  select jsonb_build_object(
    'waiting', count(*) filter (where j.status = 'todo'),
    'running', count(*) filter (where j.status = 'doing'),
    'failed', count(*) filter (where j.status = 'failed'),
    'oldest_waiting_s', extract(epoch from now() - min(e.at) filter (where j.status = 'todo')))
    || (select jsonb_build_object('spooled', s.state -> 'waiting', 'refused', s.state -> 'refused',
                                  'oldest_spooled_s', s.state -> 'oldest_s')
        from (select spool_state(0) as state) s)
  from procrastinate_jobs j
  left join lateral (select min(e.at) as at from procrastinate_events e
                     where e.job_id = j.id and e.type = 'deferred') e on true
$$;

-- The memory's side. Goes on with the conversation that is active since p_active_since, or begins one
-- with these messages; one that is newer is left as it is. Can be repeated, also much later.
create function public.continue_conversation(
  p_chat_id text, p_tenant_key text, p_records text, p_now bigint, p_active_since bigint,
  p_keep integer
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
declare
  v_conversation jsonb;
begin
  v_conversation := public.append_to_conversation(
    p_chat_id, p_tenant_key, p_records, p_now, p_active_since, p_keep);
  if v_conversation is null and not exists (
    select from public.chat_conversations c where c.chat_id = p_chat_id and c.last_activity > p_now
  ) then
    perform public.begin_conversation(p_chat_id, p_tenant_key, p_now, p_records);
    v_conversation := public.load_conversation(p_chat_id);
  end if;
  return v_conversation;
end
$$;

-- As in 0005; a question that the memory stored itself, later than it was asked (a call that was given
-- up and still arrived), keeps the time at which it was asked.
create or replace function public.restore_turn(
  p_turn_id text, p_conversation_id text, p_chat_id text, p_root_id text,
  p_user_id text, p_actor_id text, p_actor_name text, p_tenant_key text,
  p_content text, p_cards text, p_tool_calls text, p_error text,
  p_asked_at timestamptz, p_answered_at timestamptz
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
declare
  v_cards jsonb := p_cards::jsonb;
  v_turn public.agent_turns;
  v_pending boolean;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if exists (select from public.recalled_messages r where r.message_id = p_turn_id) then
    return jsonb_build_object('state', 'cancelled');
  end if;

  insert into public.agent_chats as c (id, user_id, tenant_key, chat_id, root_id, title, created_at)
  values (p_conversation_id, p_user_id, p_tenant_key, p_chat_id, p_root_id, left(p_content, 80),
          p_asked_at)
  on conflict (id, user_id) do update set updated_at = greatest(c.updated_at, p_asked_at);

  insert into public.agent_turns as t
    (id, conversation_id, user_id, actor_id, tenant_key, chat_id, created_at)
  values (p_turn_id, p_conversation_id, p_user_id, p_actor_id, p_tenant_key, p_chat_id, p_asked_at)
  on conflict (id) do update set updated_at = now()
    where t.user_id = p_user_id and t.conversation_id = p_conversation_id
  returning * into v_turn;
  if v_turn.id is null then
    raise exception 'turn % belongs to another conversation', p_turn_id using errcode = '42501';
  end if;

  insert into public.agent_messages as m
    (conversation_id, user_id, turn_id, tenant_key, chat_id, role, content, actor_id, actor_name,
     message_id, status, created_at)
  values (p_conversation_id, p_user_id, p_turn_id, p_tenant_key, p_chat_id, 'user', p_content,
          p_actor_id, p_actor_name, p_turn_id, 'received', p_asked_at)
  on conflict (turn_id, role, chunk) do update set created_at = excluded.created_at
    where m.created_at > excluded.created_at;

  -- Over, or nothing to add to it, or only a reply of which nobody has seen anything.
  if v_turn.state not in ('open', 'pending') or (p_error is null and (
       v_cards = '[]' or (v_turn.state = 'pending' and not v_cards @> '[{"status": "sent"}]'))) then
    return jsonb_build_object('state', v_turn.state);
  end if;

  insert into public.agent_messages as m
    (conversation_id, user_id, turn_id, tenant_key, chat_id, role, chunk, content, message_id,
     status, error, tool_calls, created_at)
  select p_conversation_id, p_user_id, p_turn_id, p_tenant_key, p_chat_id, 'assistant', c.chunk,
         c.content, c.message_id, c.status, case when c.status = 'failed' then p_error end,
         case when c.chunk = 0 then p_tool_calls::jsonb else '[]' end,
         coalesce(p_answered_at, p_asked_at)
  from jsonb_to_recordset(v_cards) c(chunk smallint, content text, status text, message_id text)
  order by c.chunk
  on conflict (turn_id, role, chunk) do update
    set content = excluded.content, message_id = excluded.message_id, status = excluded.status,
        error = excluded.error, updated_at = now(),
        tool_calls = coalesce(nullif(excluded.tool_calls, '[]'), m.tool_calls)
    where m.status = 'pending';
  update public.agent_messages
  set status = 'failed', error = 'never sent', updated_at = now()
  where turn_id = p_turn_id and role = 'assistant' and status = 'pending'
    and chunk >= jsonb_array_length(v_cards);

  select exists (select from public.agent_messages where turn_id = p_turn_id
                 and role = 'assistant' and status = 'pending') into v_pending;
  update public.agent_turns
  set updated_at = now(), error = p_error,
      state = case when p_error is not null then 'failed' when v_pending then 'pending'
                   else 'sent' end
  where id = p_turn_id
  returning state into v_turn.state;
  return jsonb_build_object('state', v_turn.state);
end
$$;

do $$
declare
  f regprocedure;
begin
  for f in select p.oid::regprocedure from pg_proc p
           where p.pronamespace = 'feishu_bot'::regnamespace and p.proname ~ '^spool_' loop
    execute format('revoke execute on function %s from public', f);
  end loop;
  revoke execute on function public.continue_conversation(text, text, text, bigint, bigint, integer)
    from public, anon;
  grant execute on function public.continue_conversation(text, text, text, bigint, bigint, integer)
    to authenticated, service_role;
end
$$;
