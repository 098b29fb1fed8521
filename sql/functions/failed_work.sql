-- Purpose: what was given up, for operators: jobs that failed (J), turns (T) and writes outside of
-- turns (W) that the memory refused. None of these functions shows what people wrote.

-- The last p_limit of them, latest first; with p_kind and p_id that one.
create or replace function feishu_bot.failed_work(p_kind text, p_id bigint, p_limit integer)
returns jsonb
language sql stable security invoker set search_path = feishu_bot
as $$
  select coalesce(jsonb_agg(to_jsonb(f) order by f.failed_at desc nulls last, f.id desc), '[]')
  from (
    select * from (
      select 'J' as kind, j.id, j.task as what, j.args ->> 'failed_with' as reason, j.attempts,
             j.lock as conversation_id,
             j.args #>> '{payload,event,message,message_id}' as message_id,
             coalesce(j.args #>> '{payload,event,sender,sender_id,open_id}',
                      j.args #>> '{payload,event,operator,open_id}', j.args ->> 'user_id') as person,
             to_timestamp((j.args ->> 'received_ms')::bigint / 1000.0) as asked_at,
             (j.events #>> '{-1,at}')::timestamptz as failed_at,
             coalesce((j.args ->> 'excused')::boolean, false) as excused
      from jobs j where j.status = 'failed'
      union all
      select 'T', s.seq, 'turn', s.refused, s.attempts, s.conversation_id, s.turn_id, s.actor_id,
             s.asked_at, s.asked_at, false
      from spool s where s.refused is not null
      union all
      select 'W', w.seq, w.function, w.refused, 1, w.conversation_id, w.message_ids[1], w.people[1],
             w.asked_at, w.asked_at, false
      from late_writes w where w.refused is not null) a
    where (p_kind is null or a.kind = p_kind) and (p_id is null or a.id = p_id)
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
  p_kind text, p_id bigint, p_not_sent boolean default false
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
      where id = p_id and status = 'failed';
    when 'T' then update spool set refused = null where seq = p_id and refused is not null;
    when 'W' then update late_writes set refused = null where seq = p_id and refused is not null;
  end case;
  return found;
end
$$;

-- Deletes one of them for good; false when it is not there.
create or replace function feishu_bot.drop_failed(p_kind text, p_id bigint) returns boolean
language plpgsql security invoker set search_path = feishu_bot
as $$
begin
  case p_kind
    when 'J' then delete from jobs where id = p_id and status = 'failed';
    when 'T' then delete from spool where seq = p_id and refused is not null;
    when 'W' then delete from late_writes where seq = p_id and refused is not null;
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
       f(kind text, id bigint, asked_at timestamptz, failed_at timestamptz)
  where coalesce(f.failed_at, f.asked_at) < now() - make_interval(days => greatest(p_days, 1))
$$;
