-- Purpose: what is done with the queue and the inbox in front of it.

-- Accepts an event once: the idempotency key and the job in one transaction.
-- Returns the job's id, or null when the event was accepted before.
-- The job is handed to a worker that has room for it, `running` from the beginning and with all it
-- holds, if nothing of its lock waits or runs. Otherwise it waits and the workers are told so: no
-- worker has a session or a free place, or the job is longer than a notification may be (8000 bytes).
-- p_lock_in_topic: the lock if the chat is known as a topic group.
create or replace function feishu_bot.enqueue(
  p_key text, p_task text, p_lock text, p_args jsonb, p_lock_in_topic text default null
) returns bigint
language plpgsql volatile security invoker set search_path = feishu_bot
set plan_cache_mode = force_generic_plan
-- a plan from when the queue was empty would read all of a full one
set enable_seqscan = off
as $$
declare
  v_lock constant text := case
    when p_lock_in_topic is not null and public.is_topic_group(split_part(p_lock, ':', 2))
    then p_lock_in_topic else p_lock end;
  v_told text := jsonb_build_object('task', p_task, 'lock', v_lock, 'args', p_args)::text;
  v_worker bigint;
  v_channel text;
  v_follows boolean;
  v_job bigint;
begin
  insert into inbox (key) values (p_key) on conflict do nothing;
  if not found then
    return null;
  end if;
  -- Held until this ends: whoever ends that job sees this one, and takes it (`end_and_take`).
  perform from jobs o where o.lock = v_lock and o.status = 'running' for share;
  v_follows := found;
  if not v_follows and octet_length(v_told) < 7900 and not exists (
    select from jobs o where o.lock = v_lock and o.status = 'waiting')
  then
    -- alive, and with the largest share of its places free. It cannot be taken for gone before this transaction ends.
    -- Whether its session lives is asked with a shared lock, so that those who ask at the same time do not stand for it.
    select w.id, w.channel into v_worker, v_channel
    from workers w
    cross join lateral (select count(*) as jobs from jobs j
                        where j.worker_id = w.id and j.status = 'running') busy
    where w.has_session and w.places > busy.jobs
      and w.last_heartbeat > now() - interval '8 seconds'
      and not pg_try_advisory_xact_lock_shared(worker_lock(), w.id::integer)
    order by busy.jobs::real / w.places, random()
    limit 1
    for key share of w skip locked;
    if found then
      insert into jobs (task, lock, args, status, worker_id)
      values (p_task, v_lock, p_args, 'running', v_worker)
      on conflict (lock) where status = 'running' do nothing  -- one of its lock has just begun
      returning id into v_job;
    end if;
    if v_job is not null then
      perform pg_notify(v_channel, v_job || ' ' || v_told);
      return v_job;
    end if;
  end if;
  if not v_follows then
    perform tell_workers();
  end if;
  insert into jobs (task, lock, args, priority)
  values (p_task, v_lock, p_args, fair_priority(v_lock, p_args))
  returning id into v_job;
  return v_job;
end
$$;

-- The open_id of who wrote the message that a job carries.
create or replace function feishu_bot.sender_of(p_args jsonb) returns text
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$ select p_args #>> '{payload,event,sender,sender_id,open_id}' $$;

-- Below 0 for a message whose author has three waiting in the conversation already: what others write
-- there goes first. One person's messages stay in order.
create or replace function feishu_bot.fair_priority(p_lock text, p_args jsonb) returns integer
language sql stable security invoker set search_path = feishu_bot
as $$
  select case when count(*) >= 3 or bool_or(j.priority < 0) then -1 else 0 end
  from jobs j
  where j.lock = p_lock and j.status = 'waiting' and sender_of(j.args) = sender_of(p_args)
$$;

-- There is a job to take.
create or replace function feishu_bot.tell_workers() returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$ begin perform pg_notify('feishu_bot_jobs', ''); end $$;

-- Forgets idempotency keys older than p_hours (Feishu's last retry comes after 7.1 hours), and workers
-- that have gone without leaving a job.
create or replace function feishu_bot.prune_inbox(p_hours integer) returns bigint
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  delete from feishu_bot.workers w
  where w.last_heartbeat < now() - interval '1 hour'
    and not exists (select from feishu_bot.jobs j where j.worker_id = w.id);
  delete from feishu_bot.stops where asked_at < now() - interval '1 day';
  with gone as (
    delete from feishu_bot.inbox
    where received_at < now() - make_interval(hours => greatest(p_hours, 24)) returning 1
  )
  select count(*) from gone
$$;

-- Those of p_keys (ids of messages and buttons) of which no job tells.
create or replace function feishu_bot.without_jobs(p_keys text[]) returns text[]
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(array_agg(k), '{}') from unnest(p_keys) k
  where not exists (select from feishu_bot.jobs j where strpos(j.args::text, k) > 0)
$$;

-- Whether a job carries an event of this person (they wrote it, or clicked), or is about them.
create or replace function feishu_bot.is_job_of_person(p_args jsonb, p_open_id text) returns boolean
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(p_open_id in (
    p_args #>> '{payload,event,sender,sender_id,open_id}',
    p_args #>> '{payload,event,operator,open_id}',
    p_args #>> '{payload,event,operator_id,open_id}',
    p_args #>> '{payload,event,operator,operator_id,open_id}',
    p_args ->> 'user_id', p_args ->> 'actor_id') or p_args -> 'people' ? p_open_id, false)
$$;

-- Deletes what this schema holds of a person, a conversation or one message (null: any; not all
-- three), but for the jobs that a worker has in hand. Returns how many jobs and turns that wait for the
-- memory went, and how many jobs are running: those need another call. The inbox keeps its keys for their
-- 48 hours: they hold no words, and without them a repeated delivery would bring the message back.
-- A message in jobs for the memory is up to `take_back_waiting`.
create or replace function feishu_bot.forget_in_queue(
  p_open_id text, p_conversation_id text, p_message_id text
) returns jsonb
language plpgsql security invoker set search_path = feishu_bot
as $$
declare
  v_ids bigint[];
  v_gone record;
  v_running bigint;
begin
  if coalesce(p_open_id, p_conversation_id, p_message_id, '') = '' then
    raise exception 'nothing to forget was named' using errcode = 'PT428';
  end if;
  v_ids := array(
    select j.id from jobs j
    where (p_open_id is null or is_job_of_person(j.args, p_open_id))
      and (p_conversation_id is null or p_conversation_id in (j.lock, j.args ->> 'conversation_id'))
      and (p_message_id is null
           or p_message_id = j.args #>> '{payload,event,message,message_id}'));
  with gone as (
    delete from jobs where id = any (v_ids) and status <> 'running' returning task, args
  )
  select count(*) filter (where task <> 'feishu.store') as jobs,
         count(*) filter (where task = 'feishu.store' and args ? 'turn') as turns
  into v_gone from gone;
  select count(*) into v_running from jobs where id = any (v_ids);
  delete from stops where turn_id = p_message_id;
  if p_conversation_id is null and p_message_id is null then
    perform forget_rows_of(p_open_id);
  end if;
  return jsonb_build_object('jobs', v_gone.jobs, 'running', v_running, 'turns', v_gone.turns);
end
$$;

-- Deletes the rows that name a person, but no job: what they send from now on is answered.
create or replace function feishu_bot.forget_rows_of(p_open_id text) returns void
language plpgsql volatile security invoker set search_path = feishu_bot
as $$
declare
  v_table text;
begin
  for v_table in select distinct p.table_name from public.person_columns('feishu_bot') p loop
    execute format('delete from feishu_bot.%I where %s', v_table,
                   public.person_condition('feishu_bot', v_table))
      using p_open_id, null::text;
  end loop;
  perform forget_in_audit(p_open_id);
end
$$;

-- Deletes what has waited here for longer than p_days, whatever it waits for, but for the jobs that a
-- worker has in hand and for messages taken back. Returns how many jobs went.
create or replace function feishu_bot.forget_old(p_days integer) returns bigint
language sql volatile security invoker set search_path = feishu_bot
as $$
  with jobs as (
    delete from jobs j
    where j.status <> 'running' and case
      when j.task = 'feishu.store' then
        not j.args ? 'recall' and j.queued_at < now() - make_interval(days => greatest(p_days, 1))
      else (j.args ->> 'received_ms')::bigint
           < extract(epoch from now() - make_interval(days => greatest(p_days, 1))) * 1000 end
    returning 1
  ), looks as (
    delete from console_audit where at < now() - make_interval(days => greatest(p_days, 1))
  )
  select count(*) from jobs
$$;

-- What this schema holds of a person: the table of each row, and the row.
create or replace function feishu_bot.export_from_queue(p_open_id text)
returns table (table_name text, content jsonb)
language sql stable security invoker set search_path = feishu_bot
as $$
  select 'jobs', to_jsonb(j)
  from jobs j where is_job_of_person(j.args, p_open_id)
$$;

-- Depth of the queue: jobs by state, and the age (s) of the oldest that waits for a worker; and of those
-- that wait for the memory how many are turns, and the age (s) of the oldest.
create or replace function feishu_bot.queue_depth() returns jsonb
language sql stable security invoker set search_path = feishu_bot
as $$
  select jsonb_build_object(
    'waiting', count(*) filter (where j.status = 'waiting'),
    'running', count(*) filter (where j.status = 'running'),
    'failed', count(*) filter (where j.status = 'failed'),
    -- a job that is tried again waits from its beginning, another one from when it may run
    'oldest_waiting_s', extract(epoch from now() - min(
      case when j.attempts > 0 then j.queued_at else greatest(j.queued_at, j.scheduled_at) end)
      filter (where j.status = 'waiting' and (j.attempts > 0 or j.scheduled_at is null or j.scheduled_at <= now()))))
    || (select jsonb_build_object('unstored', s.state -> 'turns', 'oldest_unstored_s', s.state -> 'oldest_s')
        from (select waiting_stores() as state) s)
  from jobs j
  where j.task <> 'feishu.store' or j.status = 'failed'
$$;

-- Tables of this schema without row-level security.
create or replace function feishu_bot.unprotected_tables() returns setof text
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select c.relname::text from pg_catalog.pg_class c
  where c.relnamespace = 'feishu_bot'::regnamespace and c.relkind in ('r', 'p')
    and not c.relrowsecurity
  order by 1
$$;
