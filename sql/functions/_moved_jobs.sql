-- Purpose: a queue that is still Procrastinate's becomes ours, in the transaction that changes the
-- functions: a process of the version before calls them the moment before and the moment after.

do $$
declare
  f regprocedure;
begin
  if to_regclass('feishu_bot.procrastinate_jobs') is null then
    return;
  end if;

  -- The functions of the version before lock these tables in different orders. None is held while
  -- this waits, so nobody waits for it in a circle.
  loop
    begin
      lock table feishu_bot.procrastinate_workers, feishu_bot.session_workers,
        feishu_bot.procrastinate_jobs in access exclusive mode nowait;
      exit;
    exception when lock_not_available then
      perform pg_sleep(0.01);
    end;
  end loop;

  insert into feishu_bot.workers (id, last_heartbeat, has_session, places, channel)
  overriding system value
  select w.id, w.last_heartbeat, s.worker_id is not null, coalesce(s.places, 0),
         coalesce(s.channel, '')
  from feishu_bot.procrastinate_workers w
  left join feishu_bot.session_workers s on s.worker_id = w.id;
  perform setval('feishu_bot.workers_id_seq', s.last_value, s.is_called)
  from feishu_bot.procrastinate_workers_id_seq s;

  -- The others are over: succeeded, cancelled, aborted.
  insert into feishu_bot.jobs (id, task, args, lock, unique_key, status, priority, scheduled_at,
                               attempts, worker_id, queued_at, events)
  overriding system value
  select j.id, j.task_name, j.args, j.lock, case when j.status = 'todo' then j.queueing_lock end,
         case j.status when 'todo' then 'waiting' when 'doing' then 'running' else 'failed' end,
         j.priority, j.scheduled_at, j.attempts,
         case when j.status = 'doing' then coalesce(j.worker_id, 0) end,
         coalesce((select min(e.at) from feishu_bot.procrastinate_events e where e.job_id = j.id),
                  now()),
         (select coalesce(jsonb_agg(jsonb_build_object('type', l.type, 'at', l.at) order by l.id), '[]')
          from (select e.id, e.at, case e.type when 'deferred_for_retry' then 'put_back'
                                               else e.type::text end as type
                from feishu_bot.procrastinate_events e
                where e.job_id = j.id and e.type in ('deferred_for_retry', 'failed', 'retried')
                order by e.id desc limit 50) l)
  from feishu_bot.procrastinate_jobs j
  where j.status in ('todo', 'doing', 'failed');
  perform setval('feishu_bot.jobs_id_seq', s.last_value, s.is_called)
  from feishu_bot.procrastinate_jobs_id_seq s;

  drop function if exists feishu_bot.job_told(feishu_bot.procrastinate_jobs);
  for f in
    select p.oid from pg_proc p
    where p.pronamespace = 'feishu_bot'::regnamespace and p.proname ~ '^procrastinate_'
      and p.prorettype <> 'trigger'::regtype
  loop
    execute format('drop function %s', f);
  end loop;
  drop table feishu_bot.session_workers, feishu_bot.procrastinate_periodic_defers,
    feishu_bot.procrastinate_events, feishu_bot.procrastinate_jobs, feishu_bot.procrastinate_workers;
  for f in
    select p.oid from pg_proc p
    where p.pronamespace = 'feishu_bot'::regnamespace
      and p.proname ~ '^(procrastinate_|free_queueing_lock$)'
  loop
    execute format('drop function %s', f);
  end loop;
  drop type feishu_bot.procrastinate_job_to_defer_v1, feishu_bot.procrastinate_job_event_type,
    feishu_bot.procrastinate_job_status;
end
$$;
