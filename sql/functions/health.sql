-- Purpose: whether people get answers: what the console, /readyz, the doctor and the monitor say of it.

-- {in_a_row, since, last_at: questions without an answer since the last that the model answered, within a day;
-- failed, asked: those of the last 15 minutes; reasons: [{outcome, reason, times}] of the first, else of these,
-- the latest first; undelivered,
-- undelivered_since: answers that can be sent again; unfinished: the oldest {turn, seconds}; p95 (s, of the last 15 minutes); workers that
-- live; oldest_in_hand_s: the age of what one of them has, or had before it fell silent; tried_again {jobs,
-- oldest_s, reasons}: jobs that were tried before, and what for they failed last; memory_p95_ms: what the memory took of an answer, of the last
-- 15 minutes} and queue_depth.
create or replace function feishu_bot.health() returns jsonb
language sql stable security invoker set search_path = feishu_bot
as $$
  with asked as materialized (
    select t.outcome, t.outcome_reason as reason, t.created_at,
           extract(epoch from t.updated_at - t.created_at) as seconds,
           t.created_at > now() - interval '15 minutes' as is_recent,
           t.outcome in ('apologised', 'undelivered') as is_failed,
           -- a command or a press says nothing of the model
           t.outcome = 'answered' and t.origin in ('message', 'again', 'retry')
             and t.outcome_reason not in ('command', 'elsewhere') as is_answered
    from public.agent_turns t
    where t.created_at > now() - interval '1 day'
      and t.outcome in ('answered', 'apologised', 'undelivered')
      and t.origin in ('message', 'button', 'again', 'retry', 'reaction')
  ), told as (
    select a.*, a.is_failed and a.created_at > coalesce(
      (select max(g.created_at) from asked g where g.is_answered), '-infinity') as is_in_a_row
    from asked a
  ), left_over as (
    select t.updated_at from public.agent_turns t
    where t.outcome = 'undelivered' and t.cause is distinct from 'undelivered'  -- not what told its asker
      and exists (
        select from public.agent_messages m
        where m.turn_id = t.id and m.role = 'assistant' and m.status = 'failed')
  )
  select queue_depth() || jsonb_build_object(
    'in_a_row', count(*) filter (where is_in_a_row),
    'since', min(created_at) filter (where is_in_a_row),
    'last_at', max(created_at) filter (where is_in_a_row),
    'failed_turns', count(*) filter (where is_recent and is_failed),
    'asked_turns', count(*) filter (where is_recent and (is_failed or is_answered)),
    'p95', percentile_cont(0.95) within group (order by seconds)
             filter (where is_recent and outcome = 'answered'),
    'reasons', (select coalesce(jsonb_agg(to_jsonb(r) - 'last_at' order by r.last_at desc, r.reason), '[]')
                from (select x.outcome, x.reason, count(*) as times, max(x.created_at) as last_at from told x
                      where x.is_in_a_row or x.is_failed and x.is_recent
                        and not exists (select from told y where y.is_in_a_row) group by 1, 2) r),
    'undelivered', (select count(*) from left_over),
    'undelivered_since', (select min(updated_at) from left_over),
    'memory_p95_ms', (
      select percentile_cont(0.95) within group (order by
               coalesce((f.record ->> 'memory_load_ms')::numeric, 0)
               + coalesce((f.record ->> 'memory_save_ms')::numeric, 0))
      from public.agent_turn_records r, bot_private.whole_record(r.short) f (record) where r.at > now() - interval '15 minutes'),
    'workers', (select count(*) from workers w where w.last_heartbeat > now() - interval '10 seconds'),
    'oldest_in_hand_s', (select extract(epoch from now() - min(j.queued_at)) from jobs j where j.status = 'running'),
    'tried_again', (select jsonb_build_object('jobs', count(*), 'oldest_s', extract(epoch from now() - min(j.queued_at)),
                  'reasons', coalesce(jsonb_agg(distinct j.args ->> 'waits_for') filter (where j.args ? 'waits_for'), '[]'))
                from jobs j where j.status <> 'failed' and j.attempts > 0 and j.task <> 'feishu.store'),
    'unfinished', (select jsonb_build_object('turn', u.id, 'seconds', extract(epoch from now() - u.created_at))
                   from public.agent_turns u where u.state in ('open', 'pending')
                   order by u.created_at limit 1))
  from told
$$;
