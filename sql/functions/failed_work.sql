-- Purpose: what was given up, for operators: jobs that failed (J), and answers that Feishu did not take (A, by the
-- id of their turn). None of these functions shows what people wrote.

-- The last p_limit of them, latest first; with p_kind and p_id that one. An A is also found by the message
-- that was to be answered, whatever became of it.
create or replace function feishu_bot.failed_work(p_kind text, p_id text, p_limit integer)
returns jsonb
language sql stable security invoker set search_path = feishu_bot
as $$
  select coalesce(jsonb_agg(to_jsonb(f) order by f.failed_at desc nulls last, f.id desc), '[]')
  from (
    select * from (
      select 'J' as kind, j.id::text as id, j.task as what, j.args ->> 'failed_with' as reason, j.attempts,
             coalesce(j.args ->> 'conversation_id', j.lock) as conversation_id,
             coalesce(j.args #>> '{payload,event,message,message_id}', j.args #>> '{turn,turn_id}') as message_id,
             coalesce(j.args #>> '{payload,event,sender,sender_id,open_id}',
                      j.args #>> '{payload,event,operator,open_id}',
                      j.args #>> '{payload,event,operator,operator_id,open_id}', j.args ->> 'user_id') as person,
             to_timestamp((j.args ->> 'received_ms')::bigint / 1000.0) as asked_at,
             (j.events #>> '{-1,at}')::timestamptz as failed_at,
             coalesce((j.args ->> 'excused')::boolean, false) as excused
      from jobs j where j.status = 'failed'
      union all
      select 'A', t.id, 'answer', t.outcome_reason, t.attempts, t.conversation_id,
             bot_private.answered_message(t.id), t.actor_id, t.created_at, t.updated_at,
             exists (select from public.agent_turns o
                     where o.parent_id = t.id and o.origin = 'private_answer' and o.cause = 'undelivered'
                       and o.state = 'sent')
      from public.agent_turns t
      where t.outcome = 'undelivered' and t.cause is distinct from 'undelivered'  -- not what told its asker
        and exists (
          select from public.agent_messages m
          where m.turn_id = t.id and m.role = 'assistant' and m.status = 'failed')) a
    where (p_kind is null or a.kind = p_kind) and (p_id is null or a.id = p_id)
      or p_kind = 'A' and a.message_id = p_id
    order by a.failed_at desc nulls last, a.id desc
    limit p_limit) f
$$;

-- What happened to a job, oldest first: kind and time.
create or replace function feishu_bot.job_events(p_id bigint) returns jsonb
language sql stable security invoker set search_path = feishu_bot
as $$
  select coalesce(
    (select jsonb_build_array(jsonb_build_object('type', 'queued', 'at', j.queued_at)) || j.events
     from jobs j where j.id = p_id), '[]')
$$;

-- Tries one of them again; false when it is not there. Who was told meanwhile that there is no answer
-- gets one beside that: the job is then told how many times this was done. p_not_sent: somebody has
-- seen that no card of it is in the chat.
create or replace function feishu_bot.retry_failed(
  p_kind text, p_id text, p_not_sent boolean default false
) returns boolean
language plpgsql security invoker set search_path = feishu_bot
as $$
begin
  case p_kind
    when 'J' then
      update jobs
      set status = 'waiting', attempts = 0, scheduled_at = null,
          events = with_event(events, 'retried'),
          args = (args - '{failed_with,failed_once,given_up,excused}'::text[]
                       - case when p_not_sent then '{maybe_sent_ms}'::text[] else '{}' end)
                 || jsonb_build_object('retried_ms', (extract(epoch from now()) * 1000)::bigint)
                 || case when (args ->> 'excused')::boolean then
                      jsonb_build_object('anew', coalesce((args ->> 'anew')::integer, 0) + 1)
                    else '{}' end
      where id = p_id::bigint and status = 'failed';
    when 'A' then return retry_answer(p_id, p_not_sent);
  end case;
  return found;
end
$$;

-- The stored answer of an undelivered turn is pending again, and a worker sends it within a minute
-- (pending_replies). A message names what was given up of it.
create or replace function feishu_bot.retry_answer(p_id text, p_not_sent boolean) returns boolean
language plpgsql security invoker set search_path = feishu_bot
as $$
declare
  v_one record;
  v_any boolean := false;
begin
  for v_one in
    select f.kind, f.id, f.reason
    from jsonb_to_recordset(failed_work('A', p_id, 100)) f(kind text, id text, reason text)
  loop
    v_any := true;
    if v_one.kind <> 'A' then
      perform retry_failed(v_one.kind, v_one.id, p_not_sent);
      continue;
    end if;
    update public.agent_turns t
    set state = 'pending', updated_at = least(t.updated_at, now() - interval '15 minutes'),
        error = case when v_one.reason = 'OutcomeUnknown' and not p_not_sent then 'retried, maybe sent'
                else 'retried' end
    where t.id = v_one.id;
    update public.agent_messages m set status = 'pending', error = null
    where m.turn_id = v_one.id and m.role = 'assistant' and m.status = 'failed';
  end loop;
  return v_any;
end
$$;

-- Deletes one of them for good; false when it is not there.
create or replace function feishu_bot.drop_failed(p_kind text, p_id text) returns boolean
language plpgsql security invoker set search_path = feishu_bot
as $$
begin
  case p_kind
    when 'J' then delete from jobs where id = p_id::bigint and status = 'failed';
    when 'A' then
      delete from public.agent_messages m using public.agent_turns t
      where t.id = p_id and t.outcome = 'undelivered'
        and m.turn_id = t.id and m.role = 'assistant' and m.status = 'failed';
  end case;
  return found;
end
$$;

-- Deletes those that failed more than p_days ago (at least one day). Returns how many.
create or replace function feishu_bot.forget_failed(p_days integer) returns bigint
language sql volatile security invoker set search_path = feishu_bot
as $$
  select count(*) filter (where drop_failed(f.kind, f.id))
  from jsonb_to_recordset(failed_work(null, null, 10000))
       f(kind text, id text, asked_at timestamptz, failed_at timestamptz)
  where coalesce(f.failed_at, f.asked_at) < now() - make_interval(days => greatest(p_days, 1))
$$;
