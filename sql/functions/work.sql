-- Purpose: a worker's side of the queue. Of one lock the job of the highest priority that came first
-- runs, alone. Jobs are taken several at a time; an attempt is counted when it is over, and an end
-- counts only from the worker that runs the job. A worker is known by a lock of its session, which
-- Postgres frees when the worker is gone.

-- The first key of that lock; the second is the worker's id.
create or replace function feishu_bot.worker_lock() returns integer
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$ select 1718973799 $$;

-- Registers a worker, or takes up again the session of one that is still registered. Returns its id.
-- With a session up to p_places jobs are handed to it over p_channel, to which it listens already.
create or replace function feishu_bot.begin_work(
  p_worker bigint, p_session boolean, p_places integer default 0, p_channel text default ''
) returns bigint
language plpgsql security invoker set search_path = feishu_bot
as $$
declare
  v_worker bigint;
  v_locked boolean := not p_session;
begin
  -- Whoever hands out a job, or takes this worker's jobs over, holds the lock for a moment.
  for v_try in 1 .. case when p_worker > 0 then 50 else 0 end loop
    v_locked := v_locked or pg_try_advisory_lock(worker_lock(), p_worker::integer);
    exit when v_locked;
    perform pg_sleep(0.01);
  end loop;
  if v_locked then
    update workers set last_heartbeat = now() where id = p_worker returning id into v_worker;
    if v_worker is null and p_session and p_worker > 0 then
      perform pg_advisory_unlock(worker_lock(), p_worker::integer);
    end if;
  end if;
  if v_worker is null then
    insert into workers default values returning id into v_worker;
    if p_session then
      perform pg_advisory_lock(worker_lock(), v_worker::integer);
    end if;
  end if;
  if p_session then
    update workers set has_session = true, places = p_places, channel = p_channel
    where id = v_worker;
  end if;
  return v_worker;
end
$$;

-- The worker is on its way out: it is handed no more jobs.
create or replace function feishu_bot.close_places(p_worker bigint) returns void
language sql volatile security invoker set search_path = feishu_bot
as $$ update workers set places = 0 where id = p_worker $$;

-- A job as its worker is told of it.
create or replace function feishu_bot.job_told(j feishu_bot.jobs) returns jsonb
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'id', j.id, 'task', j.task, 'args', j.args, 'lock', j.lock, 'attempt', j.attempts + 1)
$$;

-- What happened to a job (see `jobs.events`), and this now: fifty at most, the latest.
create or replace function feishu_bot.with_event(p_events jsonb, p_type text) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select case when jsonb_array_length(p_events) < 50 then p_events else p_events - 0 end
         || jsonb_build_object('type', p_type, 'at', now())
$$;

-- Takes up to p_most jobs that may run now; none for a worker that is not registered any more.
create or replace function feishu_bot.take_jobs(p_worker bigint, p_most integer) returns jsonb
language plpgsql security invoker set search_path = feishu_bot
as $$
declare
  v_jobs jsonb;
begin
  perform from workers w where w.id = p_worker for key share;
  if not found then
    return '[]';
  end if;
  with first as (
    select j.id from jobs j
    where j.status = 'waiting' and (j.scheduled_at is null or j.scheduled_at <= now())
      and not exists (select from jobs o where o.lock = j.lock and o.status = 'running')
      and not exists (
        select from jobs o where o.lock = j.lock and o.status = 'waiting'
          and (o.priority > j.priority or (o.priority = j.priority and o.id < j.id)))
    order by j.priority desc, j.id
    limit p_most
    for update of j skip locked
  ), taken as (
    update jobs j set status = 'running', worker_id = p_worker, unique_key = null
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

-- The job is done, unless it was not this worker's. Whoever ends it takes the next of its lock:
-- returned is that job as `take_jobs` gives it, or null.
create or replace function feishu_bot.end_and_take(p_id bigint, p_worker bigint) returns jsonb
language plpgsql security invoker set search_path = feishu_bot
set plan_cache_mode = force_generic_plan
-- a plan from when the queue was empty would read all of a full one
set enable_seqscan = off
as $$
declare
  v_lock text;
  v_next bigint;
  v_job jsonb;
begin
  delete from jobs where id = p_id and worker_id = p_worker and status = 'running'
  returning lock into v_lock;
  if v_lock is null then
    return null;
  end if;
  select j.id into v_next from jobs j
  where j.lock = v_lock and j.status = 'waiting'
  order by j.priority desc, j.id limit 1
  for update skip locked;
  if v_next is null then
    return null;
  end if;
  update jobs j set status = 'running', worker_id = p_worker, unique_key = null
  where j.id = v_next and (j.scheduled_at is null or j.scheduled_at <= now())
  returning job_told(j) into v_job;
  return v_job;
end
$$;

-- The same for the job of a message, if this transaction has stored that the bot does not answer it
-- (`public.log_decision`); else null, and the job stays. Nothing is promised to anybody: what a crash of the
-- server takes, decision and end of the job, is heard again.
create or replace function feishu_bot.end_if_silent(p_id bigint, p_worker bigint, p_message_id text)
returns jsonb
language plpgsql security invoker set search_path = feishu_bot
as $$
begin
  if current_setting('feishu_bot.silent', true) is distinct from p_message_id then
    return null;
  end if;
  perform set_config('synchronous_commit', 'off', true);
  return end_and_take(p_id, p_worker);
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
  update jobs
  set status = 'waiting', worker_id = null, attempts = attempts + 1,
      scheduled_at = case when p_pause_s > 0 then now() + make_interval(secs => p_pause_s) end,
      priority = case when p_behind then least(priority, -1) else priority end,
      args = args || p_note::jsonb,
      events = with_event(events, 'put_back')
  where id = p_id and worker_id = p_worker and status = 'running';
  return found;
end
$$;

-- The job gets no other attempt and stays for operators to see. p_reason: a kind, nobody's words;
-- p_note (JSON) is added to its arguments.
create or replace function feishu_bot.fail_job(
  p_id bigint, p_worker bigint, p_reason text, p_note text default '{}'
) returns boolean
language plpgsql security invoker set search_path = feishu_bot
as $$
begin
  update jobs
  set status = 'failed', worker_id = null, attempts = attempts + 1,
      args = args || jsonb_build_object('failed_with', p_reason) || p_note::jsonb,
      events = with_event(events, 'failed')
  where id = p_id and worker_id = p_worker and status = 'running';
  return found;
end
$$;

-- Workers, other than p_but, with jobs that stand still: gone, or silent for a minute.
create or replace function feishu_bot.gone_workers(p_but bigint) returns setof bigint
language sql stable security invoker set search_path = feishu_bot
as $$
  select distinct j.worker_id
  from jobs j
  left join workers w on w.id = j.worker_id
  where j.status = 'running' and j.worker_id is distinct from p_but
    and (w.id is null
         or w.last_heartbeat < now() - case when w.has_session then interval '1 minute'
                                            else interval '14 seconds' end
         or (w.has_session and not exists (
               select from pg_catalog.pg_locks l
               where l.locktype = 'advisory' and l.mode = 'ExclusiveLock' and l.granted
                 and l.objsubid = 2
                 and l.classid = worker_lock()::oid and l.objid = w.id::oid
                 and l.database = (select d.oid from pg_catalog.pg_database d
                                   where d.datname = current_database()))))
$$;

-- The arguments of a job whose worker was lost: it may have sent something since p_last_seen, when the
-- worker was last known to live, which can be days ago; null: since the event came.
create or replace function feishu_bot.maybe_sent(p_args jsonb, p_last_seen timestamptz) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object('maybe_sent_ms', coalesce(
    (extract(epoch from p_last_seen) * 1000)::bigint, (p_args ->> 'received_ms')::bigint,
    (extract(epoch from now()) * 1000)::bigint)) || p_args
$$;

-- Puts those of p_jobs back that the worker runs (null: all that it runs). Returns which.
create or replace function feishu_bot.hand_back(p_worker bigint, p_jobs bigint[]) returns bigint[]
language sql volatile security invoker set search_path = feishu_bot
as $$
  with handed_back as (
    update jobs
    set status = 'waiting', worker_id = null, attempts = attempts + 1, scheduled_at = null,
        args = maybe_sent(args, (select w.last_heartbeat from workers w where w.id = p_worker)),
        events = with_event(events, 'handed_back')
    where worker_id = p_worker and status = 'running' and (p_jobs is null or id = any (p_jobs))
    returning id
  )
  select coalesce(array_agg(id), '{}') from handed_back
$$;

-- Hands back the jobs of those of p_workers that are still gone; returns how many jobs.
create or replace function feishu_bot.take_over(p_workers bigint[]) returns integer
language plpgsql security invoker set search_path = feishu_bot
as $$
declare
  v_worker bigint;
  v_taken integer := 0;
begin
  for v_worker in
    select g from gone_workers(null) g where g = any (p_workers) order by g
  loop
    -- Held until this ends: the worker cannot come back under this id in between.
    perform pg_try_advisory_xact_lock(worker_lock(), v_worker::integer);
    v_taken := v_taken + cardinality(hand_back(v_worker, null));
    delete from workers where id = v_worker;
  end loop;
  return v_taken;
end
$$;

-- A worker's heartbeat. Takes up to p_most jobs. Names as `missing` those of its own that are not in
-- its hands (p_running): their beginning or their end was lost, or is still on its way. So only those
-- that were missing before (p_missing) are handed back.
create or replace function feishu_bot.look_round(
  p_worker bigint, p_running bigint[], p_most integer, p_missing bigint[]
) returns jsonb
language plpgsql security invoker set search_path = feishu_bot
as $$
declare
  v_lost constant bigint[] := hand_back(
    p_worker, array(select m from unnest(p_missing) m where m <> all (p_running)));
begin
  update workers set last_heartbeat = now()
  where id = p_worker and last_heartbeat < now() - interval '3 seconds';
  return jsonb_build_object(
    'known', exists (select from workers w where w.id = p_worker),
    'handed_back', to_jsonb(v_lost),
    'missing', (select coalesce(jsonb_agg(j.id), '[]') from jobs j
                where j.worker_id = p_worker and j.status = 'running'
                  and not (j.id = any (p_running))),
    'jobs', case when p_most > 0 then take_jobs(p_worker, p_most) else '[]' end,
    'suspects', (select coalesce(jsonb_agg(g), '[]') from gone_workers(p_worker) g),
    'stops', recent_stops(),
    'now_s', extract(epoch from clock_timestamp()),
    'workers', (select count(*) from workers w
                where w.last_heartbeat > now() - interval '8 seconds'));
end
$$;

-- Queues the tending of a conversation unless it waits already; p_at_once run at a time.
create or replace function feishu_bot.queue_tending(
  p_task text, p_priority integer, p_at_once integer, p_whose text, p_args text
) returns void
language sql volatile security invoker set search_path = feishu_bot
as $$
  select queue_once(
    p_task, p_priority, 'tending ' || abs(hashtext(p_whose) % p_at_once), 'tending ' || p_whose,
    p_args::jsonb)
$$;

-- Queues the job of a timer's time unless it waits already; those of one timer run one after the other.
create or replace function feishu_bot.queue_timer(p_task text, p_timer_id text, p_args text)
returns void
language sql volatile security invoker set search_path = feishu_bot
as $$
  select queue_once(p_task, 0, 'timer ' || p_timer_id, 'timer ' || p_timer_id, p_args::jsonb)
$$;

-- Queues a step of an import, p_at_once of all imports run at a time. One that waits already takes p_args over,
-- and its time if that is sooner. With p_wait_s it waits so long, behind the others of its place. p_if_idle: only
-- if no job of the import waits or runs; one that has waited long enough stands in line like the others again.
-- Returns whether there is a new one.
create or replace function feishu_bot.queue_import(
  p_task text, p_priority integer, p_at_once integer, p_import_id integer, p_args text,
  p_wait_s double precision default 0, p_if_idle boolean default false
) returns boolean
language plpgsql volatile security invoker set search_path = feishu_bot
as $$
declare
  v_key constant text := 'import ' || p_import_id;
  v_lock constant text := 'import ' || p_import_id % p_at_once;
  v_new boolean;
begin
  if p_if_idle and exists (
    select from jobs j where j.lock = v_lock and j.status in ('waiting', 'running')
      and (j.args ->> 'import_id')::integer = p_import_id) then
    update jobs j set priority = p_priority
    where j.unique_key = v_key and j.status = 'waiting' and j.priority < p_priority
      and j.scheduled_at <= now();
    return false;
  end if;
  insert into jobs as j (task, priority, lock, unique_key, args, scheduled_at)
  values (p_task, p_priority - (p_wait_s > 0)::integer, v_lock, v_key, p_args::jsonb,
          case when p_wait_s > 0 then now() + make_interval(secs => p_wait_s) end)
  on conflict (unique_key) where status = 'waiting' do update set
    args = j.args || excluded.args, priority = greatest(j.priority, excluded.priority),
    scheduled_at = case when j.scheduled_at is not null and excluded.scheduled_at is not null
      then least(j.scheduled_at, excluded.scheduled_at) end
  returning j.xmax = 0 into v_new;
  perform tell_workers();
  return v_new;
end
$$;

-- Queues what is next for a person's own tokens, in p_wait_s; one that waits already goes when the sooner of the two
-- would. p_if_idle: only if none waits or runs. Returns whether there is a new one.
create or replace function feishu_bot.queue_connect(
  p_task text, p_whose text, p_args text, p_wait_s double precision default 0, p_if_idle boolean default false
) returns boolean
language plpgsql volatile security invoker set search_path = feishu_bot
as $$
declare
  v_key constant text := 'connect ' || p_whose;
  v_new boolean;
begin
  if p_if_idle and exists (
    select from jobs j where j.lock = v_key and j.status in ('waiting', 'running')) then
    return false;
  end if;
  insert into jobs as j (task, lock, unique_key, args, scheduled_at)
  values (p_task, v_key, v_key, p_args::jsonb,
          case when p_wait_s > 0 then now() + make_interval(secs => p_wait_s) end)
  on conflict (unique_key) where status = 'waiting' do update set
    scheduled_at = case when j.scheduled_at is not null and excluded.scheduled_at is not null
      then least(j.scheduled_at, excluded.scheduled_at) end
  returning j.xmax = 0 into v_new;
  perform tell_workers();
  return v_new;
end
$$;

-- Queues a job unless one with its key waits already.
create or replace function feishu_bot.queue_once(
  p_task text, p_priority integer, p_lock text, p_key text, p_args jsonb
) returns void
language plpgsql security invoker set search_path = feishu_bot
as $$
begin
  insert into jobs (task, priority, lock, unique_key, args)
  values (p_task, p_priority, p_lock, p_key, p_args)
  on conflict (unique_key) where status = 'waiting' do nothing;
  if found then
    perform tell_workers();
  end if;
end
$$;
