-- Purpose: a worker's side of the queue. The tables are Procrastinate's (3.10, schema.sql) and their
-- rules are kept: of one lock the job of the highest priority that came first runs, alone; a job
-- that is taken is `doing` and names its worker; an attempt is counted when it is over. What differs
-- is that jobs are taken several at a time, that an end counts only from whoever has the job, and
-- that a worker is known by a lock of its session, which Postgres frees when the worker is gone.

-- The first key of that lock; the second is the worker's id.
create or replace function feishu_bot.worker_lock() returns integer
language sql immutable security invoker set search_path = ''
as $$ select 1718973799 $$;

-- Registers a worker, or takes up again the session of one that is still registered. Returns its id.
-- With a session up to p_places jobs are handed to it over p_channel, to which it listens already.
drop function if exists feishu_bot.begin_work(bigint, boolean);
create or replace function feishu_bot.begin_work(
  p_worker bigint, p_session boolean, p_places integer default 0, p_channel text default ''
) returns bigint
language plpgsql security invoker set search_path = feishu_bot
as $$
declare
  v_worker bigint;
begin
  update procrastinate_workers set last_heartbeat = now() where id = p_worker
  returning id into v_worker;
  if v_worker is not null and p_session
     and not pg_try_advisory_lock(worker_lock(), v_worker::integer) then
    v_worker := null;  -- somebody is just taking its jobs over
  end if;
  if v_worker is null then
    insert into procrastinate_workers default values returning id into v_worker;
    if p_session then
      perform pg_advisory_lock(worker_lock(), v_worker::integer);
    end if;
  end if;
  if p_session then
    insert into session_workers (worker_id, places, channel)
    values (v_worker, p_places, p_channel)
    on conflict (worker_id) do update set places = p_places, channel = p_channel;
  end if;
  return v_worker;
end
$$;

-- The worker is on its way out: it is handed no more jobs.
create or replace function feishu_bot.close_places(p_worker bigint) returns void
language sql volatile security invoker set search_path = feishu_bot
as $$ update session_workers set places = 0 where worker_id = p_worker $$;

-- The worker to hand a job to: alive, and with the largest share of its places free; null when there
-- is none. It cannot be taken for gone before this transaction ends. Whether its session lives is
-- asked with a shared lock, so that those who ask at the same time do not stand for it.
create or replace function feishu_bot.worker_with_room(out worker_id bigint, out channel text)
language plpgsql volatile security invoker set search_path = feishu_bot
as $$
begin
  select w.id, s.channel into worker_id, channel
  from session_workers s
  join procrastinate_workers w on w.id = s.worker_id
  cross join lateral (select count(*) as jobs from procrastinate_jobs j
                      where j.worker_id = s.worker_id and j.status = 'doing') busy
  where s.places > busy.jobs and w.last_heartbeat > now() - interval '8 seconds'
    and not pg_try_advisory_xact_lock_shared(worker_lock(), s.worker_id::integer)
  order by busy.jobs::real / s.places, random()
  limit 1
  for key share of w skip locked;
end
$$;

-- A job as its worker is told of it.
create or replace function feishu_bot.job_told(j feishu_bot.procrastinate_jobs) returns jsonb
language sql immutable security invoker set search_path = ''
as $$
  select jsonb_build_object(
    'id', j.id, 'task', j.task_name, 'args', j.args, 'lock', j.lock, 'attempt', j.attempts + 1)
$$;

-- Takes up to p_most jobs that may run now.
create or replace function feishu_bot.claim_jobs(p_worker bigint, p_queue text, p_most integer)
returns jsonb
language plpgsql security invoker set search_path = feishu_bot
as $$
declare
  v_jobs jsonb;
begin
  with first as (
    select j.id from procrastinate_jobs j
    where j.status = 'todo' and j.queue_name = p_queue
      and (j.scheduled_at is null or j.scheduled_at <= now())
      and not exists (
        select from procrastinate_jobs o
        where o.lock = j.lock and o.status in ('todo', 'doing')
          and (o.status = 'doing' or o.priority > j.priority
               or (o.priority = j.priority and o.id < j.id)))
    order by j.priority desc, j.id
    limit p_most
    for update of j skip locked
  ), taken as (
    update procrastinate_jobs j set status = 'doing', worker_id = p_worker
    from first where j.id = first.id
    returning j.id, j.priority, job_told(j) as told
  )
  select coalesce(jsonb_agg(t.told order by t.priority desc, t.id), '[]') into v_jobs
  from taken t;
  return v_jobs;
exception when unique_violation then
  return '[]';  -- another job of one of the locks has just begun: it will bring these about
end
$$;

-- For workers of the version before `end_and_take`.
create or replace function feishu_bot.end_job(p_id bigint, p_worker bigint) returns boolean
language plpgsql security invoker set search_path = feishu_bot
as $$
declare
  v_lock text;
begin
  delete from procrastinate_jobs where id = p_id and worker_id = p_worker and status = 'doing'
  returning lock into v_lock;
  if not found then
    return null;
  end if;
  return exists (select from procrastinate_jobs j where j.lock = v_lock and j.status = 'todo');
end
$$;

-- The job is done, unless it was not this worker's. Whoever ends it takes the next of its lock:
-- returned is that job as `claim_jobs` gives it, or null.
create or replace function feishu_bot.end_and_take(p_id bigint, p_worker bigint) returns jsonb
language plpgsql security invoker set search_path = feishu_bot
set plan_cache_mode = force_generic_plan
as $$
declare
  v_lock text;
  v_next bigint;
  v_job jsonb;
begin
  delete from procrastinate_jobs where id = p_id and worker_id = p_worker and status = 'doing'
  returning lock into v_lock;
  if v_lock is null then
    return null;
  end if;
  select j.id into v_next from procrastinate_jobs j
  where j.lock = v_lock and j.status = 'todo'
  order by j.priority desc, j.id limit 1
  for update skip locked;
  if v_next is null then
    return null;
  end if;
  update procrastinate_jobs j set status = 'doing', worker_id = p_worker
  where j.id = v_next and (j.scheduled_at is null or j.scheduled_at <= now())
  returning job_told(j) into v_job;
  return v_job;
end
$$;

-- Puts a job back for another attempt; `behind` the others of its lock if need be. p_note (JSON) is
-- added to its arguments.
create or replace function feishu_bot.retry_job(
  p_id bigint, p_worker bigint, p_pause_s double precision, p_behind boolean, p_note text
) returns boolean
language plpgsql security invoker set search_path = feishu_bot
as $$
begin
  update procrastinate_jobs
  set status = 'todo', worker_id = null, attempts = attempts + 1,
      scheduled_at = case when p_pause_s > 0 then now() + make_interval(secs => p_pause_s) end,
      priority = case when p_behind then least(priority, -1) else priority end,
      args = args || p_note::jsonb
  where id = p_id and worker_id = p_worker and status = 'doing';
  return found;
end
$$;

-- The job gets no other attempt and stays for operators to see. p_reason: a kind, nobody's words;
-- p_note (JSON) is added to its arguments.
drop function if exists feishu_bot.fail_job(bigint, bigint, text);
create or replace function feishu_bot.fail_job(
  p_id bigint, p_worker bigint, p_reason text, p_note text default '{}'
) returns boolean
language plpgsql security invoker set search_path = feishu_bot
as $$
begin
  update procrastinate_jobs
  set status = 'failed', worker_id = null, attempts = attempts + 1,
      args = args || jsonb_build_object('failed_with', p_reason) || p_note::jsonb
  where id = p_id and worker_id = p_worker and status = 'doing';
  return found;
end
$$;

-- Workers, other than p_but, with jobs that stand still: gone, or silent for a minute. 0 stands for
-- one that is not even registered any more.
create or replace function feishu_bot.gone_workers(p_but bigint) returns setof bigint
language sql stable security invoker set search_path = feishu_bot
as $$
  select distinct coalesce(j.worker_id, 0)
  from procrastinate_jobs j
  left join procrastinate_workers w on w.id = j.worker_id
  left join session_workers s on s.worker_id = j.worker_id
  where j.status = 'doing' and j.worker_id is distinct from p_but
    and (w.id is null
         or w.last_heartbeat < now() - case when s.worker_id is null
                                            then interval '14 seconds' else interval '1 minute' end
         or (s.worker_id is not null and not exists (
               select from pg_catalog.pg_locks l
               where l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and l.granted
                 and l.objsubid = 2
                 and l.classid = worker_lock()::oid and l.objid = s.worker_id::oid
                 and l.database = (select d.oid from pg_catalog.pg_database d
                                   where d.datname = current_database()))))
$$;

-- The arguments of a job whose worker was lost: it may have sent something, not later than now.
create or replace function feishu_bot.maybe_sent(p_args jsonb) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_build_object('maybe_sent_ms', (extract(epoch from now()) * 1000)::bigint) || p_args
$$;

-- Hands back the jobs of those of p_workers that are still gone; returns how many jobs.
create or replace function feishu_bot.take_over(p_workers bigint[]) returns integer
language plpgsql security invoker set search_path = feishu_bot
as $$
declare
  v_worker bigint;
  v_jobs integer;
  v_taken integer := 0;
begin
  for v_worker in
    select g from gone_workers(null) g where g = any (p_workers) order by g
  loop
    -- Held until this ends: the worker cannot come back under this id in between.
    perform pg_try_advisory_xact_lock(worker_lock(), v_worker::integer);
    update procrastinate_jobs
    set status = 'todo', worker_id = null, attempts = attempts + 1, scheduled_at = null,
        args = maybe_sent(args)
    where status = 'doing' and coalesce(worker_id, 0) = v_worker;
    get diagnostics v_jobs = row_count;
    v_taken := v_taken + v_jobs;
    delete from procrastinate_workers where id = v_worker;
  end loop;
  return v_taken;
end
$$;

-- A worker's heartbeat. Takes up to p_most jobs. Names as `missing` those of its own that are not in
-- its hands (p_running): their beginning or their end was lost, or is still on its way. So only those
-- that were missing before (p_missing) are handed back; null: all of them.
drop function if exists feishu_bot.work_round(bigint, text, bigint[], integer);
create or replace function feishu_bot.work_round(
  p_worker bigint, p_queue text, p_running bigint[], p_most integer,
  p_missing bigint[] default null
) returns jsonb
language plpgsql security invoker set search_path = feishu_bot
as $$
declare
  v_known boolean;
  v_lost bigint[];
begin
  update procrastinate_workers set last_heartbeat = now()
  where id = p_worker and last_heartbeat < now() - interval '3 seconds';
  v_known := exists (select from procrastinate_workers w where w.id = p_worker);
  with handed_back as (
    update procrastinate_jobs
    set status = 'todo', worker_id = null, attempts = attempts + 1, scheduled_at = null,
        args = maybe_sent(args)
    where worker_id = p_worker and status = 'doing' and not (id = any (p_running))
      and (p_missing is null or id = any (p_missing))
    returning id
  )
  select coalesce(array_agg(id), '{}') into v_lost from handed_back;
  return jsonb_build_object(
    'known', v_known,
    'lost', cardinality(v_lost),
    'handed_back', to_jsonb(v_lost),
    'missing', (select coalesce(jsonb_agg(j.id), '[]') from procrastinate_jobs j
                where j.worker_id = p_worker and j.status = 'doing'
                  and not (j.id = any (p_running))),
    'jobs', case when v_known and p_most > 0 then claim_jobs(p_worker, p_queue, p_most) else '[]' end,
    'suspects', (select coalesce(jsonb_agg(g), '[]') from gone_workers(p_worker) g),
    'stops', recent_stops(),
    'workers', (select count(*) from procrastinate_workers w
                where w.last_heartbeat > now() - interval '8 seconds'));
end
$$;

-- Queues the tending of a conversation unless it waits already; p_at_once run at a time.
create or replace function feishu_bot.defer_tending(
  p_queue text, p_task text, p_priority integer, p_at_once integer, p_whose text, p_args text
) returns boolean
language plpgsql security invoker set search_path = feishu_bot
as $$
begin
  perform procrastinate_defer_jobs_v1(array[row(
    p_queue, p_task, p_priority, 'tending ' || abs(hashtext(p_whose) % p_at_once),
    'tending ' || p_whose, p_args::jsonb, null
  )::procrastinate_job_to_defer_v1]);
  perform tell_workers(p_queue);
  return true;
exception when unique_violation then
  return false;
end
$$;

-- Queues the job of a timer's time unless it waits already; those of one timer run one after the other.
create or replace function feishu_bot.defer_timer(p_queue text, p_task text, p_timer_id text, p_args text)
returns boolean
language plpgsql security invoker set search_path = feishu_bot
as $$
begin
  perform procrastinate_defer_jobs_v1(array[row(
    p_queue, p_task, 0, 'timer ' || p_timer_id, 'timer ' || p_timer_id, p_args::jsonb, null
  )::procrastinate_job_to_defer_v1]);
  perform tell_workers(p_queue);
  return true;
exception when unique_violation then
  return false;
end
$$;
