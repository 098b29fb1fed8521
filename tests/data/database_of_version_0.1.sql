-- A database as version 0.1.0 made it while functions still stood in the numbered files: with rows
-- in every table, those of the queue and the ledger of migrations included.
--
-- Made by writing through that version's own stores (turns with cards and buttons, a press, a card
-- that streams, notes, working memory, a summary, embeddings, people, a group's conversation,
-- decisions, the spool, late writes, jobs) and `pg_dump --inserts --no-owner` of the Postgres 18 that
-- the embedded database is; then pg_dump's comments and psql's commands were taken out, and the
-- roles, which are no part of a dump, were put in front. It loads over any connection of a superuser
-- into an empty database, as one script. It is never made again: it is what migrations start from.

do $$
begin
  if not exists (select from pg_roles where rolname = 'anon') then
    create role anon nologin noinherit;
  end if;
  if not exists (select from pg_roles where rolname = 'authenticated') then
    create role authenticated nologin noinherit;
  end if;
  if not exists (select from pg_roles where rolname = 'service_role') then
    create role service_role nologin noinherit bypassrls;
  end if;
end
$$;

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET transaction_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

CREATE SCHEMA extensions;

CREATE SCHEMA feishu_bot;

CREATE EXTENSION IF NOT EXISTS vector WITH SCHEMA extensions;

CREATE TYPE feishu_bot.procrastinate_job_event_type AS ENUM (
    'deferred',
    'started',
    'deferred_for_retry',
    'failed',
    'succeeded',
    'cancelled',
    'abort_requested',
    'aborted',
    'scheduled',
    'retried'
);

CREATE TYPE feishu_bot.procrastinate_job_status AS ENUM (
    'todo',
    'doing',
    'succeeded',
    'failed',
    'cancelled',
    'aborting',
    'aborted'
);

CREATE TYPE feishu_bot.procrastinate_job_to_defer_v1 AS (
	queue_name character varying,
	task_name character varying,
	priority integer,
	lock text,
	queueing_lock text,
	args jsonb,
	scheduled_at timestamp with time zone
);

CREATE FUNCTION feishu_bot.enqueue_event(p_key text, p_queue text, p_task text, p_lock text, p_args jsonb) RETURNS bigint
    LANGUAGE sql
    SET search_path TO 'feishu_bot'
    AS $$
  with fresh as (
    insert into feishu_bot.inbox (key) values (p_key) on conflict do nothing returning key
  )
  select (procrastinate_defer_jobs_v1(array[
    row(p_queue, p_task, 0, p_lock, null, p_args, null)::procrastinate_job_to_defer_v1
  ]))[1]
  from fresh
$$;

CREATE FUNCTION feishu_bot.export_from_queue(p_open_id text) RETURNS TABLE(table_name text, content jsonb)
    LANGUAGE sql STABLE
    SET search_path TO 'feishu_bot'
    AS $$
  select 'procrastinate_jobs', to_jsonb(j)
  from procrastinate_jobs j where is_job_of_person(j.args, p_open_id)
  union all
  select 'spool', to_jsonb(s) from spool s where p_open_id in (s.user_id, s.actor_id)
  union all
  select 'late_writes', to_jsonb(w) from late_writes w where p_open_id = any (w.people)
$$;

CREATE FUNCTION feishu_bot.forget_in_queue(p_open_id text, p_conversation_id text, p_message_id text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'feishu_bot'
    AS $$
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

CREATE FUNCTION feishu_bot.free_queueing_lock() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
begin
  new.queueing_lock := null;
  return new;
end
$$;

CREATE FUNCTION feishu_bot.is_job_of_person(p_args jsonb, p_open_id text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    SET search_path TO ''
    AS $$
  select coalesce(p_open_id in (
    p_args #>> '{payload,event,sender,sender_id,open_id}',
    p_args #>> '{payload,event,operator,open_id}',
    p_args #>> '{payload,event,operator_id,open_id}',
    p_args ->> 'user_id', p_args ->> 'actor_id'), false)
$$;

CREATE FUNCTION feishu_bot.procrastinate_cancel_job_v1(job_id bigint, abort boolean, delete_job boolean) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
    _job_id bigint;
BEGIN
    IF delete_job THEN
        DELETE FROM procrastinate_jobs
        WHERE id = job_id AND status = 'todo'
        RETURNING id INTO _job_id;
    END IF;
    IF _job_id IS NULL THEN
        IF abort THEN
            UPDATE procrastinate_jobs
            SET abort_requested = true,
                status = CASE status
                    WHEN 'todo' THEN 'cancelled'::procrastinate_job_status ELSE status
                END
            WHERE id = job_id AND status IN ('todo', 'doing')
            RETURNING id INTO _job_id;
        ELSE
            UPDATE procrastinate_jobs
            SET status = 'cancelled'::procrastinate_job_status
            WHERE id = job_id AND status = 'todo'
            RETURNING id INTO _job_id;
        END IF;
    END IF;
    RETURN _job_id;
END;
$$;

CREATE FUNCTION feishu_bot.procrastinate_defer_jobs_v1(jobs feishu_bot.procrastinate_job_to_defer_v1[]) RETURNS bigint[]
    LANGUAGE plpgsql
    AS $$
DECLARE
    job_ids bigint[];
BEGIN
    WITH inserted_jobs AS (
        INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args, scheduled_at)
        SELECT (job).queue_name,
               (job).task_name,
               (job).priority,
               (job).lock,
               (job).queueing_lock,
               (job).args,
               (job).scheduled_at
        FROM unnest(jobs) AS job
        RETURNING id
    )
    SELECT array_agg(id) FROM inserted_jobs INTO job_ids;

    RETURN job_ids;
END;
$$;

CREATE FUNCTION feishu_bot.procrastinate_defer_periodic_job_v2(_queue_name character varying, _lock character varying, _queueing_lock character varying, _task_name character varying, _priority integer, _periodic_id character varying, _defer_timestamp bigint, _args jsonb) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
DECLARE
	_job_id bigint;
	_defer_id bigint;
BEGIN
    INSERT
        INTO procrastinate_periodic_defers (task_name, periodic_id, defer_timestamp)
        VALUES (_task_name, _periodic_id, _defer_timestamp)
        ON CONFLICT DO NOTHING
        RETURNING id into _defer_id;

    IF _defer_id IS NULL THEN
        RETURN NULL;
    END IF;

    UPDATE procrastinate_periodic_defers
        SET job_id = (
            SELECT COALESCE((
                SELECT unnest(procrastinate_defer_jobs_v1(
                    ARRAY[
                        ROW(
                            _queue_name,
                            _task_name,
                            _priority,
                            _lock,
                            _queueing_lock,
                            _args,
                            NULL::timestamptz
                        )
                    ]::procrastinate_job_to_defer_v1[]
                ))
            ), NULL)
        )
        WHERE id = _defer_id
        RETURNING job_id INTO _job_id;

    DELETE
        FROM procrastinate_periodic_defers
        USING (
            SELECT id
            FROM procrastinate_periodic_defers
            WHERE procrastinate_periodic_defers.task_name = _task_name
            AND procrastinate_periodic_defers.periodic_id = _periodic_id
            AND procrastinate_periodic_defers.defer_timestamp < _defer_timestamp
            ORDER BY id
            FOR UPDATE
        ) to_delete
        WHERE procrastinate_periodic_defers.id = to_delete.id;

    RETURN _job_id;
END;
$$;

SET default_tablespace = '';

SET default_table_access_method = heap;

CREATE TABLE feishu_bot.procrastinate_jobs (
    id bigint NOT NULL,
    queue_name character varying(128) NOT NULL,
    task_name character varying(128) NOT NULL,
    priority integer DEFAULT 0 NOT NULL,
    lock text,
    queueing_lock text,
    args jsonb DEFAULT '{}'::jsonb NOT NULL,
    status feishu_bot.procrastinate_job_status DEFAULT 'todo'::feishu_bot.procrastinate_job_status NOT NULL,
    scheduled_at timestamp with time zone,
    attempts integer DEFAULT 0 NOT NULL,
    abort_requested boolean DEFAULT false NOT NULL,
    worker_id bigint,
    CONSTRAINT check_not_todo_abort_requested CHECK ((NOT ((status = 'todo'::feishu_bot.procrastinate_job_status) AND (abort_requested = true))))
);

CREATE FUNCTION feishu_bot.procrastinate_fetch_job_v2(target_queue_names character varying[], p_worker_id bigint) RETURNS feishu_bot.procrastinate_jobs
    LANGUAGE plpgsql
    AS $$
DECLARE
	found_jobs procrastinate_jobs;
BEGIN
    WITH candidate AS (
        SELECT jobs.*
            FROM procrastinate_jobs AS jobs
            WHERE
                -- reject the job if its lock has earlier or higher priority jobs
                NOT EXISTS (
                    SELECT 1
                        FROM procrastinate_jobs AS other_jobs
                        WHERE
                            jobs.lock IS NOT NULL
                            AND other_jobs.lock = jobs.lock
                            AND (
                                -- job with same lock is already running
                                other_jobs.status = 'doing'
                                OR
                                -- job with same lock is waiting and has higher priority (or same priority but was queued first)
                                (
                                    other_jobs.status = 'todo'
                                    AND (
                                        other_jobs.priority > jobs.priority
                                        OR (
                                        other_jobs.priority = jobs.priority
                                        AND other_jobs.id < jobs.id
                                        )
                                    )
                                )
                            )
                )
                AND jobs.status = 'todo'
                AND (target_queue_names IS NULL OR jobs.queue_name = ANY( target_queue_names ))
                AND (jobs.scheduled_at IS NULL OR jobs.scheduled_at <= now())
            ORDER BY jobs.priority DESC, jobs.id ASC LIMIT 1
            FOR UPDATE OF jobs SKIP LOCKED
    )
    UPDATE procrastinate_jobs
        SET status = 'doing', worker_id = p_worker_id
        FROM candidate
        WHERE procrastinate_jobs.id = candidate.id
        RETURNING procrastinate_jobs.* INTO found_jobs;

 RETURN found_jobs;
END;
$$;

CREATE FUNCTION feishu_bot.procrastinate_finish_job_v1(job_id bigint, end_status feishu_bot.procrastinate_job_status, delete_job boolean) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    _job_id bigint;
BEGIN
    IF end_status NOT IN ('succeeded', 'failed', 'aborted') THEN
        RAISE 'End status should be either "succeeded", "failed" or "aborted" (job id: %)', job_id;
    END IF;
    IF delete_job THEN
        DELETE FROM procrastinate_jobs
        WHERE id = job_id AND status IN ('todo', 'doing')
        RETURNING id INTO _job_id;
    ELSE
        UPDATE procrastinate_jobs
        SET status = end_status,
            abort_requested = false,
            attempts = CASE status
                WHEN 'doing' THEN attempts + 1 ELSE attempts
            END
        WHERE id = job_id AND status IN ('todo', 'doing')
        RETURNING id INTO _job_id;
    END IF;
    IF _job_id IS NULL THEN
        RAISE 'Job was not found or not in "doing" or "todo" status (job id: %)', job_id;
    END IF;
END;
$$;

CREATE FUNCTION feishu_bot.procrastinate_notify_queue_abort_job_v1() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    payload TEXT;
BEGIN
    SELECT json_build_object('type', 'abort_job_requested', 'job_id', NEW.id)::text INTO payload;
	PERFORM pg_notify('procrastinate_queue_v1#' || NEW.queue_name, payload);
	PERFORM pg_notify('procrastinate_any_queue_v1', payload);
	RETURN NEW;
END;
$$;

CREATE FUNCTION feishu_bot.procrastinate_notify_queue_job_inserted_v1() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
DECLARE
    payload TEXT;
BEGIN
    SELECT json_build_object('type', 'job_inserted', 'job_id', NEW.id)::text INTO payload;
	PERFORM pg_notify('procrastinate_queue_v1#' || NEW.queue_name, payload);
	PERFORM pg_notify('procrastinate_any_queue_v1', payload);
	RETURN NEW;
END;
$$;

CREATE FUNCTION feishu_bot.procrastinate_prune_stalled_workers_v1(seconds_since_heartbeat double precision) RETURNS TABLE(worker_id bigint)
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN QUERY
    DELETE FROM procrastinate_workers
    WHERE last_heartbeat < NOW() - (seconds_since_heartbeat || 'SECOND')::INTERVAL
    RETURNING procrastinate_workers.id;
END;
$$;

CREATE FUNCTION feishu_bot.procrastinate_register_worker_v1() RETURNS TABLE(worker_id bigint)
    LANGUAGE plpgsql
    AS $$
BEGIN
    RETURN QUERY
    INSERT INTO procrastinate_workers DEFAULT VALUES
    RETURNING procrastinate_workers.id;
END;
$$;

CREATE FUNCTION feishu_bot.procrastinate_retry_job_v1(job_id bigint, retry_at timestamp with time zone, new_priority integer, new_queue_name character varying, new_lock character varying) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    _job_id bigint;
    _abort_requested boolean;
BEGIN
    SELECT abort_requested FROM procrastinate_jobs
    WHERE id = job_id AND status = 'doing'
    FOR UPDATE
    INTO _abort_requested;
    IF _abort_requested THEN
        UPDATE procrastinate_jobs
        SET status = 'failed'::procrastinate_job_status
        WHERE id = job_id AND status = 'doing'
        RETURNING id INTO _job_id;
    ELSE
        UPDATE procrastinate_jobs
        SET status = 'todo'::procrastinate_job_status,
            attempts = attempts + 1,
            scheduled_at = retry_at,
            priority = COALESCE(new_priority, priority),
            queue_name = COALESCE(new_queue_name, queue_name),
            lock = COALESCE(new_lock, lock)
        WHERE id = job_id AND status = 'doing'
        RETURNING id INTO _job_id;
    END IF;

    IF _job_id IS NULL THEN
        RAISE 'Job was not found or not in "doing" status (job id: %)', job_id;
    END IF;
END;
$$;

CREATE FUNCTION feishu_bot.procrastinate_retry_job_v2(job_id bigint, retry_at timestamp with time zone, new_priority integer, new_queue_name character varying, new_lock character varying) RETURNS void
    LANGUAGE plpgsql
    AS $$
DECLARE
    _job_id bigint;
    _abort_requested boolean;
    _current_status procrastinate_job_status;
BEGIN
    SELECT status, abort_requested FROM procrastinate_jobs
    WHERE id = job_id AND status IN ('doing', 'failed')
    FOR UPDATE
    INTO _current_status, _abort_requested;
    IF _current_status = 'doing' AND _abort_requested THEN
        UPDATE procrastinate_jobs
        SET status = 'failed'::procrastinate_job_status
        WHERE id = job_id AND status = 'doing'
        RETURNING id INTO _job_id;
    ELSE
        UPDATE procrastinate_jobs
        SET status = 'todo'::procrastinate_job_status,
            attempts = attempts + 1,
            scheduled_at = retry_at,
            priority = COALESCE(new_priority, priority),
            queue_name = COALESCE(new_queue_name, queue_name),
            lock = COALESCE(new_lock, lock)
        WHERE id = job_id AND status IN ('doing', 'failed')
        RETURNING id INTO _job_id;
    END IF;

    IF _job_id IS NULL THEN
        RAISE 'Job was not found or has an invalid status to retry (job id: %)', job_id;
    END IF;

END;
$$;

CREATE FUNCTION feishu_bot.procrastinate_trigger_abort_requested_events_procedure_v1() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO procrastinate_events(job_id, type)
        VALUES (NEW.id, 'abort_requested'::procrastinate_job_event_type);
    RETURN NEW;
END;
$$;

CREATE FUNCTION feishu_bot.procrastinate_trigger_function_scheduled_events_v1() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO procrastinate_events(job_id, type, at)
        VALUES (NEW.id, 'scheduled'::procrastinate_job_event_type, NEW.scheduled_at);

	RETURN NEW;
END;
$$;

CREATE FUNCTION feishu_bot.procrastinate_trigger_function_status_events_insert_v1() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    INSERT INTO procrastinate_events(job_id, type)
        VALUES (NEW.id, 'deferred'::procrastinate_job_event_type);
	RETURN NEW;
END;
$$;

CREATE FUNCTION feishu_bot.procrastinate_trigger_function_status_events_update_v1() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    WITH t AS (
        SELECT CASE
            WHEN OLD.status = 'todo'::procrastinate_job_status
                AND NEW.status = 'doing'::procrastinate_job_status
                THEN 'started'::procrastinate_job_event_type
            WHEN OLD.status = 'doing'::procrastinate_job_status
                AND NEW.status = 'todo'::procrastinate_job_status
                THEN 'deferred_for_retry'::procrastinate_job_event_type
            WHEN OLD.status = 'doing'::procrastinate_job_status
                AND NEW.status = 'failed'::procrastinate_job_status
                THEN 'failed'::procrastinate_job_event_type
            WHEN OLD.status = 'doing'::procrastinate_job_status
                AND NEW.status = 'succeeded'::procrastinate_job_status
                THEN 'succeeded'::procrastinate_job_event_type
            WHEN OLD.status = 'todo'::procrastinate_job_status
                AND (
                    NEW.status = 'cancelled'::procrastinate_job_status
                    OR NEW.status = 'failed'::procrastinate_job_status
                    OR NEW.status = 'succeeded'::procrastinate_job_status
                )
                THEN 'cancelled'::procrastinate_job_event_type
            WHEN OLD.status = 'doing'::procrastinate_job_status
                AND NEW.status = 'aborted'::procrastinate_job_status
                THEN 'aborted'::procrastinate_job_event_type
            WHEN OLD.status = 'failed'::procrastinate_job_status
                AND NEW.status = 'todo'::procrastinate_job_status
                THEN 'retried'::procrastinate_job_event_type
            ELSE NULL
        END as event_type
    )
    INSERT INTO procrastinate_events(job_id, type)
        SELECT NEW.id, t.event_type
        FROM t
        WHERE t.event_type IS NOT NULL;
	RETURN NEW;
END;
$$;

CREATE FUNCTION feishu_bot.procrastinate_unlink_periodic_defers_v1() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE procrastinate_periodic_defers
    SET job_id = NULL
    WHERE job_id = OLD.id;
    RETURN OLD;
END;
$$;

CREATE FUNCTION feishu_bot.procrastinate_unregister_worker_v1(worker_id bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    DELETE FROM procrastinate_workers
    WHERE id = worker_id;
END;
$$;

CREATE FUNCTION feishu_bot.procrastinate_update_heartbeat_v1(worker_id bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    UPDATE procrastinate_workers
    SET last_heartbeat = NOW()
    WHERE id = worker_id;
END;
$$;

CREATE FUNCTION feishu_bot.prune_inbox(p_hours integer) RETURNS bigint
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  with gone as (
    delete from feishu_bot.inbox
    where received_at < now() - make_interval(hours => greatest(p_hours, 24)) returning 1
  )
  select count(*) from gone
$$;

CREATE FUNCTION feishu_bot.queue_depth() RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO 'feishu_bot'
    AS $$
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

CREATE FUNCTION feishu_bot.spool_drop(p_turn_id text, p_version integer) RETURNS boolean
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  with gone as (
    delete from feishu_bot.spool where turn_id = p_turn_id and version = p_version returning 1
  )
  select exists (select from gone)
$$;

CREATE FUNCTION feishu_bot.spool_drop_writes(p_seqs bigint[]) RETURNS void
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  delete from feishu_bot.late_writes where seq = any (p_seqs)
$$;

CREATE FUNCTION feishu_bot.spool_forget(p_user_id text, p_tenant_key text, p_conversation_id text) RETURNS bigint
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  with gone as (
    delete from feishu_bot.spool s
    where coalesce(p_user_id, p_conversation_id) is not null
      and (p_user_id is null or ((s.user_id = p_user_id or s.actor_id = p_user_id)
                                 and s.tenant_key = p_tenant_key))
      and (p_conversation_id is null or s.conversation_id = p_conversation_id)
    returning 1
  )
  select count(*) from gone
$$;

CREATE FUNCTION feishu_bot.spool_keep_recall(p_message_id text, p_chat_id text) RETURNS void
    LANGUAGE sql
    SET search_path TO ''
    AS $$
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

CREATE FUNCTION feishu_bot.spool_keep_write(p_write jsonb) RETURNS void
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  insert into feishu_bot.late_writes
    (function, params, context, conversation_id, message_ids, people)
  select w.function, w.params, w.context, w.conversation_id, w.message_ids, w.people
  from jsonb_populate_record(null::feishu_bot.late_writes, p_write) w
  where not exists (
    select from feishu_bot.late_writes r
    where r.function = 'recall_message' and r.message_ids && w.message_ids)
$$;

CREATE FUNCTION feishu_bot.spool_mark_failed(p_turn_id text, p_error text) RETURNS jsonb
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  update feishu_bot.spool s
  set version = s.version + 1,
      error = case when s.state in ('open', 'pending') then p_error else s.error end,
      state = case when s.state in ('open', 'pending') then 'failed' else s.state end,
      cards = coalesce((
        select jsonb_agg(case when c ->> 'status' = 'pending'
                              then c || '{"status": "failed"}' else c end
                         order by (c ->> 'chunk')::integer)
        from jsonb_array_elements(s.cards) c), '[]')
  where s.turn_id = p_turn_id
  returning to_jsonb(s)
$$;

CREATE FUNCTION feishu_bot.spool_mark_sent(p_turn_id text, p_chunk integer, p_content text, p_message_id text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_turn feishu_bot.spool;
begin
  update feishu_bot.spool s
  set version = s.version + 1, cards = (
    select jsonb_agg(
      case when (c ->> 'chunk')::integer = p_chunk then
        jsonb_build_object('chunk', p_chunk, 'content', p_content, 'status', 'sent',
                           'message_id', p_message_id)
      else c end order by (c ->> 'chunk')::integer)
    from jsonb_array_elements(s.cards) c)
  where s.turn_id = p_turn_id
    and s.cards @> jsonb_build_array(jsonb_build_object('chunk', p_chunk))
  returning * into v_turn;
  if v_turn.seq is null then
    return null;
  end if;
  if not v_turn.cards @> '[{"status": "pending"}]' then
    update feishu_bot.spool s set state = 'sent' where s.seq = v_turn.seq returning * into v_turn;
  end if;
  return to_jsonb(v_turn);
end
$$;

CREATE FUNCTION feishu_bot.spool_open_turn(p_turn jsonb) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
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

CREATE FUNCTION feishu_bot.spool_record_reply(p_turn_id text, p_cards jsonb, p_tool_calls jsonb) RETURNS jsonb
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  update feishu_bot.spool s
  set version = s.version + 1,
      state = case when s.state = 'open' then 'pending' else s.state end,
      cards = case when s.state = 'open' then p_cards else s.cards end,
      tool_calls = case when s.state = 'open' then p_tool_calls else s.tool_calls end,
      answered_at = coalesce(s.answered_at, now())
  where s.turn_id = p_turn_id
  returning to_jsonb(s)
$$;

CREATE FUNCTION feishu_bot.spool_refuse_write(p_seq bigint, p_reason text) RETURNS void
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  update feishu_bot.late_writes set refused = p_reason where seq = p_seq
$$;

CREATE FUNCTION feishu_bot.spool_set_aside(p_turn_id text, p_reason text) RETURNS void
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  update feishu_bot.spool set refused = p_reason where turn_id = p_turn_id
$$;

CREATE FUNCTION feishu_bot.spool_state(p_limit integer) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
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

CREATE FUNCTION feishu_bot.spool_take_back() RETURNS bigint
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  with turns as (
    update feishu_bot.spool set refused = null where refused is not null returning 1
  ), writes as (
    update feishu_bot.late_writes set refused = null where refused is not null returning 1
  )
  select (select count(*) from turns) + (select count(*) from writes)
$$;

CREATE FUNCTION feishu_bot.spool_waiting(p_conversation_id text, p_user_id text, p_limit integer) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
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

CREATE FUNCTION feishu_bot.spool_writes(p_recalls boolean, p_limit integer) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select coalesce(jsonb_agg(to_jsonb(w) order by w.seq), '[]')
  from (
    select seq, function, params, context from feishu_bot.late_writes
    where refused is null and (function = 'recall_message') = p_recalls
    order by seq limit p_limit) w
$$;

CREATE FUNCTION feishu_bot.wake_waiting() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_waiting bigint;
begin
  select j.id into v_waiting
  from feishu_bot.procrastinate_jobs j
  where j.lock = old.lock and j.status = 'todo'
    and (j.scheduled_at is null or j.scheduled_at <= now())
  order by j.id limit 1;
  if v_waiting is not null then
    perform pg_notify(
      'procrastinate_queue_v1#' || old.queue_name,
      json_build_object('type', 'job_inserted', 'job_id', v_waiting)::text
    );
  end if;
  return null;
end
$$;

CREATE FUNCTION public.add_to_transcript(p_chat_id text, p_tenant_key text, p_records text) RETURNS void
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  insert into public.chat_transcript
    (chat_id, tenant_key, message_id, root_id, author, author_id, content, "timestamp", is_bot, ours)
  select p_chat_id, p_tenant_key, r.message_id, r.root_id, r.author, r.author_id, r.content,
         r."timestamp", r.is_bot, r.ours
  from jsonb_to_recordset(p_records::jsonb) as r(
    message_id text, root_id text, author text, author_id text, content text,
    "timestamp" bigint, is_bot boolean, ours boolean)
  on conflict do nothing
$$;

CREATE FUNCTION public.append_to_conversation(p_chat_id text, p_tenant_key text, p_records text, p_at bigint, p_active_since bigint, p_keep integer) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
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

CREATE FUNCTION public.apply_retention(p_days integer, p_batch integer) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $_$
declare
  v_before constant timestamptz := now() - make_interval(days => p_days);
  v_before_ms constant bigint := extract(epoch from v_before) * 1000;
  v_old record;
  v_count bigint;
  v_counts jsonb := '{}';
begin
  if p_days < 1 or p_batch < 1 then
    raise exception 'days and batch are at least 1' using errcode = '22023';
  end if;
  for v_old in
    select * from (values
      ('agent_turns', format('created_at < %L', v_before)),
      ('agent_chats', format('updated_at < %L and not exists (select from public.agent_turns t
        where t.conversation_id = r.id and t.user_id = r.user_id)', v_before)),
      ('agent_decisions', format('created_at < %L', v_before)),
      ('agent_working_memory_history', format('at < %L', v_before)),
      ('chat_transcript', format('"timestamp" < %s', v_before_ms)),
      ('chat_conversations', format('updated_at < %L and not quiet and not exists (select
        from public.chat_transcript t where t.chat_id = r.chat_id)', v_before)),
      ('recalled_messages', format('created_at < %L', v_before))
    ) as old (table_name, condition)
  loop
    execute format('delete from public.%I where ctid = any (array(
                      select r.ctid from public.%I r where %s limit $1 for update skip locked))',
                   v_old.table_name, v_old.table_name, v_old.condition)
      using p_batch;
    get diagnostics v_count = row_count;
    v_counts := v_counts || jsonb_build_object(v_old.table_name, v_count);
  end loop;
  return v_counts;
end
$_$;

CREATE FUNCTION public.begin_conversation(p_chat_id text, p_tenant_key text, p_now bigint, p_records text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
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

CREATE FUNCTION public.born_within(p_born text, p_age text) RETURNS text
    LANGUAGE sql IMMUTABLE
    SET search_path TO ''
    AS $$
  select case when p_born is null then 'null::bigint'
         else format('count(*) filter (where %I > now() - interval %L)', p_born, p_age) end
$$;

CREATE FUNCTION public.card_block() RETURNS integer
    LANGUAGE sql IMMUTABLE
    SET search_path TO ''
    AS $$ select 1000 $$;

CREATE TABLE public.agent_cards (
    turn_id text NOT NULL,
    conversation_id text NOT NULL,
    user_id text NOT NULL,
    actor_id text NOT NULL,
    tenant_key text DEFAULT ''::text NOT NULL,
    chat_id text NOT NULL,
    card_id text NOT NULL,
    reply_to text NOT NULL,
    in_thread boolean NOT NULL,
    message_id text,
    sequence integer NOT NULL,
    streaming boolean DEFAULT true NOT NULL,
    opened_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT agent_cards_actor_id_check CHECK ((actor_id <> ''::text)),
    CONSTRAINT agent_cards_user_id_check CHECK ((user_id <> ''::text))
);

CREATE FUNCTION public.card_row(p_card public.agent_cards) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select to_jsonb(p_card) - 'opened_at' - 'updated_at' - 'streaming'
         || jsonb_build_object('first', p_card.sequence - public.card_block() + 1)
$$;

CREATE FUNCTION public.chat_is_quiet(p_chat_id text) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select to_jsonb(coalesce((select c.quiet from public.chat_conversations c
                            where c.chat_id = p_chat_id), false))
$$;

CREATE FUNCTION public.claim(name text) RETURNS text
    LANGUAGE sql STABLE
    RETURN ((NULLIF(current_setting('request.jwt.claims'::text, true), ''::text))::jsonb ->> name);

CREATE FUNCTION public.clear_working_memory(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_scope text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if p_scope = 'user' and p_user_id <> p_actor_id then
    raise exception 'only the person can clear what is kept about them everywhere'
      using errcode = '42501';
  end if;
  update public.agent_working_memory set content = '{}', updated_at = now()
  where user_id = p_user_id and tenant_key = p_tenant_key and scope = p_scope
    and conversation_id = case when p_scope = 'chat' then p_conversation_id else '' end;
  return '{}'::jsonb;
end
$$;

CREATE FUNCTION public.continue_conversation(p_chat_id text, p_tenant_key text, p_records text, p_now bigint, p_active_since bigint, p_keep integer) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
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

CREATE FUNCTION public.conversation_history(p_conversation_id text, p_user_id text, p_until bigint, p_limit integer) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select coalesce(jsonb_agg(to_jsonb(h) order by h.id), '[]')
  from (
    select m.id, m.role, m.actor_id, m.actor_name, m.tool_calls, m.created_at, m.message_id,
           m.content || coalesce((
             select string_agg(e'\n\n' || c.content, '' order by c.chunk)
             from public.agent_messages c
             where c.turn_id = m.turn_id and c.role = m.role and c.chunk > 0
               and c.status <> 'failed'), '') as content
    from public.agent_messages m
    where m.conversation_id = p_conversation_id and m.user_id = p_user_id
      and m.id <= p_until and m.chunk = 0 and m.status <> 'failed'
      and m.id > coalesce((select c.history_from from public.agent_chats c
                           where c.id = p_conversation_id and c.user_id = p_user_id), 0)
    order by m.id desc
    limit p_limit
  ) h
$$;

CREATE FUNCTION public.conversations_to_embed(p_model text) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path TO ''
    AS $$
begin
  if to_regclass('public.agent_embeddings') is null then
    return null;
  end if;
  return (
    select coalesce(jsonb_agg(to_jsonb(c) order by c.conversation_id, c.user_id), '[]')
    from (
      select m.conversation_id, m.user_id, m.tenant_key, count(*) as messages
      from public.agent_messages m
      where m.status in ('received', 'sent') and btrim(m.content, e' \t\r\n') <> ''
        and not exists (select from public.agent_embeddings e
                        where e.id = m.id and e.model = p_model)
      group by 1, 2, 3
    ) c
  );
end
$$;

CREATE FUNCTION public.count_people(p_unlinked boolean) RETURNS bigint
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select count(*) from public.people p where not p_unlinked or p.auth_user_id is null
$$;

CREATE FUNCTION public.count_person(p_user_id text, p_tenant_key text) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path TO ''
    AS $$
declare
  v_counts jsonb := '{}';
  v_table text;
  v_count bigint;
begin
  perform public.require_person(p_user_id);
  for v_table in select distinct p.table_name from public.person_columns('public') p loop
    execute format('select count(*) from public.%I where %s', v_table,
                   public.person_condition('public', v_table))
      into v_count using p_user_id, p_tenant_key;
    v_counts := v_counts || jsonb_build_object(v_table, v_count);
  end loop;
  return v_counts;
end
$$;

CREATE FUNCTION public.create_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_note_id text, p_title text, p_body text, p_tags text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_note public.agent_notes;
begin
  perform public.require_own_notes(p_user_id, p_actor_id, p_conversation_id);
  insert into public.agent_notes (id, user_id, tenant_key, chat_id, conversation_id, title, body, tags)
  values (p_note_id, p_user_id, p_tenant_key, p_chat_id, p_conversation_id,
          public.note_title(p_title), public.note_body(p_body),
          public.require_tag_count(public.note_tags(p_tags)))
  on conflict (id) do nothing;
  select * into v_note from public.agent_notes n
  where n.id = p_note_id and n.user_id = p_user_id and n.tenant_key = p_tenant_key;
  if v_note.id is null then
    raise exception 'this note id belongs to somebody else' using errcode = '42501';
  end if;
  perform public.touch_notes(p_conversation_id, p_user_id, p_tenant_key, array[v_note.id], 'created');
  return public.note_json(v_note);
end
$$;

CREATE FUNCTION public.delete_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_note_id text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_note public.agent_notes;
begin
  perform public.require_own_notes(p_user_id, p_actor_id, p_conversation_id);
  delete from public.agent_notes n
  where n.id = p_note_id and n.user_id = p_user_id and n.tenant_key = p_tenant_key
  returning * into v_note;
  if v_note.id is null then
    raise exception 'no note of this person has this id' using errcode = 'PT404';
  end if;
  return public.note_json(v_note);
end
$$;

CREATE FUNCTION public.drop_embedding() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
begin
  delete from public.agent_embeddings where id = new.id;
  return null;
end
$$;

CREATE FUNCTION public.drop_words_of_messages() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
begin
  update public.agent_chats c set title = ''
  from gone g
  where g.role = 'user' and c.id = g.conversation_id and c.user_id = g.user_id
    and c.title <> '' and c.title = left(g.content, 80);
  if exists (select from pg_catalog.pg_attribute a
             where a.attrelid = to_regclass('public.agent_summaries')
               and a.attname = 'until_message_id') then
    execute 'delete from public.agent_summaries s using gone g
             where s.conversation_id = g.conversation_id and s.user_id = g.user_id
               and s.until_message_id >= g.id';
  end if;
  return null;
end
$$;

CREATE FUNCTION public.drop_working_memory_of_chat() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
begin
  delete from public.agent_working_memory
  where conversation_id = old.id and user_id = old.user_id and scope = 'chat';
  return old;
end
$$;

CREATE FUNCTION public.enable_vectors() RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $_$
declare
  reachable constant text := $rule$
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor')))
  $rule$;
  v_schema text;
begin
  if to_regclass('public.agent_embeddings') is not null then
    return '';
  end if;
  if not exists (select from pg_catalog.pg_available_extensions where name = 'vector') then
    return 'the server has no pgvector: install it, or choose a server that has it';
  end if;
  if not exists (select from pg_catalog.pg_extension where extname = 'vector') then
    begin
      create schema if not exists extensions;
      create extension vector schema extensions;
    exception when insufficient_privilege then
      return 'only a superuser may run: create schema if not exists extensions; '
             'create extension vector schema extensions';
    end;
  end if;
  select e.extnamespace::regnamespace::text into v_schema
  from pg_catalog.pg_extension e where e.extname = 'vector';
  if v_schema not in ('extensions', 'public') then
    return 'pgvector is in schema ' || v_schema
           || ': run alter extension vector set schema extensions';
  end if;
  if to_regtype(v_schema || '.halfvec') is null then
    return 'pgvector is older than 0.7: run alter extension vector update';
  end if;
  if v_schema = 'extensions' then
    grant usage on schema extensions to authenticated, service_role;
  end if;

  execute format('create table public.agent_embeddings (
    id bigint primary key references public.agent_messages (id) on delete cascade,
    turn_id text not null,
    conversation_id text not null,
    user_id text not null,
    tenant_key text not null,
    chat_id text not null,
    model text not null,
    embedding %I.halfvec not null
  )', v_schema);
  -- in the row itself, up to some 4,000 dimensions: looked up elsewhere it takes twice the time
  alter table public.agent_embeddings set (toast_tuple_target = 8160);
  alter table public.agent_embeddings alter column embedding set storage main;
  create index agent_embeddings_turn_idx on public.agent_embeddings (turn_id);
  create index agent_embeddings_conversation_idx
    on public.agent_embeddings (conversation_id, user_id);
  create index agent_embeddings_user_idx on public.agent_embeddings (user_id);

  alter table public.agent_embeddings enable row level security;
  execute format('create policy agent_embeddings_select on public.agent_embeddings
                  for select to authenticated using (%s)', reachable);
  execute format('create policy agent_embeddings_insert on public.agent_embeddings
                  for insert to authenticated with check (%s)', reachable);
  execute format('create policy agent_embeddings_update on public.agent_embeddings
                  for update to authenticated using (%s) with check (%s)', reachable, reachable);
  execute format('create policy agent_embeddings_delete on public.agent_embeddings
                  for delete to authenticated using (%s)', reachable);
  revoke all on public.agent_embeddings from anon;
  grant select, insert, update, delete on public.agent_embeddings to authenticated, service_role;

  create trigger agent_messages_drop_embedding
    after update of content, status on public.agent_messages for each row
    when (old.content <> new.content or (old.status = 'failed') <> (new.status = 'failed'))
    execute function public.drop_embedding();
  return '';
end
$_$;

CREATE FUNCTION public.export_person(p_user_id text, p_tenant_key text, p_table text, p_after text, p_limit integer) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path TO ''
    AS $_$
declare
  v_condition constant text := public.person_condition('public', p_table);
  v_page jsonb;
begin
  perform public.require_person(p_user_id);
  if v_condition is null then
    raise exception 'table % holds nothing of a person', p_table using errcode = '22023';
  end if;
  -- ctid orders any table, with or without a key, and needs no index
  execute format($page$
    with page as materialized (
      select r.ctid as place, to_jsonb(r) - case
        when %L = 'agent_working_memory_history' and to_jsonb(r) ->> 'user_id' <> $1
        then 'was' else '' end as content
      from public.%I r where %s and ($3 is null or r.ctid > $3::tid)
      order by r.ctid limit $4
    )
    select jsonb_build_object(
      'rows', coalesce(jsonb_agg(content order by place), '[]'),
      'next', case when count(*) = $4 then max(place)::text end)
    from page
  $page$, p_table, p_table, v_condition)
    into v_page using p_user_id, p_tenant_key, p_after, p_limit;
  return v_page;
end
$_$;

CREATE FUNCTION public.feishu_person() RETURNS TABLE(tenant_key text, open_id text, name text)
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select p.tenant_key, p.open_id, p.name
  from public.people p
  where p.auth_user_id = (select public.token_auth_user())
$$;

CREATE FUNCTION public.finish_conversation(p_chat_id text) RETURNS jsonb
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  update public.chat_conversations set active = false, updated_at = now() where chat_id = p_chat_id;
  delete from public.chat_transcript where chat_id = p_chat_id;
  select 'null'::jsonb
$$;

CREATE FUNCTION public.forget_conversation(p_conversation_id text, p_user_id text, p_keep_notes boolean) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $_$
declare
  v_counts jsonb := '{}';
  v_table text;
  v_count bigint;
begin
  if coalesce(p_conversation_id, '') = '' then
    raise exception 'identity missing: conversation_id is required' using errcode = '22004';
  end if;
  v_count := public.forget_in_transcript(array(
    select t.id from public.agent_turns t
    where t.conversation_id = p_conversation_id and (p_user_id is null or t.user_id = p_user_id)));
  if p_user_id is null then
    v_count := v_count + public.forget_thread_transcript(p_conversation_id);
  end if;
  v_counts := jsonb_build_object('chat_transcript', v_count);

  for v_table in
    select c.relname::text
    from pg_catalog.pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
      and not c.relispartition and not (p_keep_notes and c.relname = 'agent_notes')
      and 2 = (select count(*) from pg_catalog.pg_attribute a
               where a.attrelid = c.oid and a.attname in ('conversation_id', 'user_id'))
    order by 1
  loop
    execute format('delete from public.%I where conversation_id = $1
                    and ($2 is null or user_id = $2)', v_table)
      using p_conversation_id, p_user_id;
    get diagnostics v_count = row_count;
    v_counts := v_counts || jsonb_build_object(v_table, v_count);
  end loop;
  delete from public.agent_chats
  where id = p_conversation_id and (p_user_id is null or user_id = p_user_id);
  get diagnostics v_count = row_count;
  return v_counts || jsonb_build_object('agent_chats', v_count);
end
$_$;

CREATE FUNCTION public.forget_in_others(p_user_id text, p_tenant_key text) RETURNS void
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_memories bigint[];
begin
  select array_agg(distinct h.working_memory_id) into v_memories
  from public.agent_working_memory_history h
  where h.actor_id = p_user_id and h.user_id <> p_user_id
    and (p_tenant_key is null or h.tenant_key = p_tenant_key);
  update public.agent_working_memory w
  set content = w.content - array(
    select e.key
    from public.agent_working_memory_history h, jsonb_each(h.became) e
    where h.working_memory_id = w.id and h.actor_id = p_user_id and w.content -> e.key = e.value)
  where w.id = any (v_memories);
  -- as a whole: the next person's change shows what theirs was
  delete from public.agent_working_memory_history where working_memory_id = any (v_memories);

  delete from public.agent_turns t
  where t.actor_id = p_user_id and t.user_id <> p_user_id
    and (p_tenant_key is null or t.tenant_key = p_tenant_key);
end
$$;

CREATE FUNCTION public.forget_in_transcript(p_turn_ids text[]) RETURNS integer
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  with gone as (
    delete from public.chat_transcript t
    where t.message_id = any (p_turn_ids)
       or t.message_id in (select m.message_id from public.agent_messages m
                           where m.turn_id = any (p_turn_ids) and m.message_id is not null)
    returning 1
  )
  select count(*)::integer from gone
$$;

CREATE FUNCTION public.forget_person(p_user_id text, p_tenant_key text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_counts jsonb;
  v_table text;
  v_count bigint;
begin
  perform public.require_person(p_user_id);
  v_counts := public.count_person(p_user_id, p_tenant_key);
  delete from public.chat_transcript
  where author_id = p_user_id and (p_tenant_key is null or tenant_key = p_tenant_key);
  v_count := public.forget_in_transcript(array(
    select t.id from public.agent_turns t
    where (t.user_id = p_user_id or t.actor_id = p_user_id)
      and (p_tenant_key is null or t.tenant_key = p_tenant_key)));
  v_counts := jsonb_set(v_counts, '{chat_transcript}',
                        to_jsonb((v_counts ->> 'chat_transcript')::bigint + v_count));
  perform public.forget_in_others(p_user_id, p_tenant_key);

  update public.agent_decisions set actor_id = '', message_id = 'forgotten:' || id
  where actor_id = p_user_id and (p_tenant_key is null or tenant_key = p_tenant_key);

  for v_table in select distinct p.table_name from public.person_columns('public') p loop
    execute format('delete from public.%I where %s', v_table,
                   public.person_condition('public', v_table))
      using p_user_id, p_tenant_key;
  end loop;
  return v_counts;
end
$$;

CREATE FUNCTION public.forget_thread_transcript(p_conversation_id text) RETURNS integer
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  with gone as (
    delete from public.chat_transcript t
    where t.chat_id = split_part(p_conversation_id, ':', 2)
      and case split_part(p_conversation_id, ':', 3)
            when 'main' then t.root_id is null
            else split_part(p_conversation_id, ':', 3) in (t.root_id, t.message_id) end
    returning 1
  )
  select count(*)::integer from gone
$$;

CREATE FUNCTION public.get_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_note_id text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_note public.agent_notes;
begin
  perform public.require_own_notes(p_user_id, p_actor_id, p_conversation_id);
  select * into v_note from public.agent_notes n
  where n.id = p_note_id and n.tenant_key = p_tenant_key
    and (n.user_id = p_user_id or n.shared_chat_id = p_chat_id);
  if v_note.id is null then
    raise exception 'no note has this id' using errcode = 'PT404';
  end if;
  perform public.touch_notes(p_conversation_id, p_user_id, p_tenant_key, array[v_note.id], 'read');
  return public.note_json(v_note);
end
$$;

CREATE FUNCTION public.get_working_memory(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path TO ''
    AS $$
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  return (
    select jsonb_build_object('chat', '{}'::jsonb, 'user', '{}'::jsonb)
           || coalesce(jsonb_object_agg(w.scope, w.content), '{}')
    from public.agent_working_memory w
    where w.user_id = p_user_id and w.tenant_key = p_tenant_key
      and ((w.scope = 'chat' and w.conversation_id = p_conversation_id)
           or (w.scope = 'user' and w.conversation_id = '' and p_user_id = p_actor_id)));
end
$$;

CREATE FUNCTION public.index_turn() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_turn_id text := coalesce(new.turn_id, old.turn_id);
begin
  -- a question is indexed with its answer: once a turn, and never the question being asked
  if tg_op = 'INSERT' and new.role = 'user'
     and exists (select from public.agent_turns t where t.id = v_turn_id and t.state = 'open') then
    return null;
  end if;
  insert into public.agent_turn_terms
  select t.turn_id, t.conversation_id, t.user_id, t.tenant_key, t.chat_id, t.first_id, t.asked_at,
         cardinality(k.tokens), public.recall_terms(k.tokens)
  from public.agent_turn_texts t, public.recall_tokens(t.content) k(tokens)
  where t.turn_id = v_turn_id
  on conflict (turn_id) do update
    set first_id = excluded.first_id, asked_at = excluded.asked_at,
        length = excluded.length, terms = excluded.terms;
  if not found then
    delete from public.agent_turn_terms where turn_id = v_turn_id;
  end if;
  return null;
end
$$;

CREATE FUNCTION public.keep_card(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_card_id text, p_reply_to text, p_in_thread boolean) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_card public.agent_cards;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  insert into public.agent_cards as c
    (turn_id, conversation_id, user_id, actor_id, tenant_key, chat_id, card_id, reply_to, in_thread,
     sequence)
  select t.id, t.conversation_id, t.user_id, t.actor_id, t.tenant_key, t.chat_id, p_card_id,
         p_reply_to, p_in_thread, public.card_block()
  from public.agent_turns t
  where t.id = p_turn_id and t.user_id = p_user_id and t.conversation_id = p_conversation_id
    and t.state = 'open'
  on conflict (turn_id) do update set
    card_id = case when c.streaming then c.card_id else excluded.card_id end,
    message_id = case when c.streaming then c.message_id end,
    sequence = case when c.streaming then c.sequence + public.card_block()
                    else excluded.sequence end,
    opened_at = case when c.streaming then c.opened_at else now() end,
    streaming = true, updated_at = now()
  returning * into v_card;
  if v_card.turn_id is null then
    raise exception 'turn % is not open', p_turn_id using errcode = 'PT404';
  end if;
  return public.card_row(v_card);
end
$$;

CREATE FUNCTION public.link_person(p_tenant_key text, p_open_id text, p_auth_user_id text) RETURNS text
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_linked uuid;
begin
  update public.people
  set auth_user_id = p_auth_user_id::uuid, updated_at = now()
  where tenant_key = p_tenant_key and open_id = p_open_id and auth_user_id is null;
  select p.auth_user_id into v_linked
  from public.people p where p.tenant_key = p_tenant_key and p.open_id = p_open_id;
  return v_linked;
end
$$;

CREATE FUNCTION public.list_conversations(p_chat_id text, p_conversation_id text, p_user_id text, p_since timestamp with time zone, p_limit integer) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select coalesce(jsonb_agg(to_jsonb(c) order by c.updated_at desc), '[]')
  from (
    select a.id as conversation_id, a.user_id, a.tenant_key, a.chat_id, a.root_id, a.title,
           a.created_at, a.updated_at,
           count(m.id) as messages, min(m.created_at) as first_at, max(m.created_at) as last_at,
           count(m.id) filter (where m.status = 'pending') as pending,
           count(m.id) filter (where m.status = 'failed') as failed
    from (
      select * from public.agent_chats a
      where (p_chat_id is null or a.chat_id = p_chat_id)
        and (p_conversation_id is null or a.id = p_conversation_id)
        and (p_user_id is null or a.user_id = p_user_id)
        and (p_since is null or a.updated_at >= p_since)
      order by a.updated_at desc
      limit p_limit
    ) a
    left join public.agent_messages m on m.conversation_id = a.id and m.user_id = a.user_id
    group by a.id, a.user_id, a.tenant_key, a.chat_id, a.root_id, a.title, a.created_at, a.updated_at
  ) c
$$;

CREATE FUNCTION public.list_decisions(p_chat_id text, p_since timestamp with time zone, p_limit integer) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select coalesce(jsonb_agg(to_jsonb(d) order by d.id desc), '[]')
  from (
    select * from public.agent_decisions
    where (p_chat_id is null or chat_id = p_chat_id) and (p_since is null or created_at >= p_since)
    order by id desc
    limit p_limit
  ) d
$$;

CREATE FUNCTION public.list_messages(p_conversation_id text, p_user_id text, p_limit integer) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select coalesce(jsonb_agg(to_jsonb(m) order by m.id), '[]')
  from (
    select id, conversation_id, user_id, turn_id, chat_id, role, chunk, content, actor_id,
           actor_name, message_id, status, error, tool_calls, created_at, updated_at
    from public.agent_messages
    where conversation_id = p_conversation_id and (p_user_id is null or user_id = p_user_id)
    order by id desc
    limit p_limit
  ) m
$$;

CREATE FUNCTION public.list_notes(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_tags text, p_limit integer) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_tags text[] := public.note_tags(p_tags);
  v_notes jsonb;
  v_ids text[];
begin
  perform public.require_own_notes(p_user_id, p_actor_id, p_conversation_id);
  select coalesce(jsonb_agg(public.note_json(l) order by l.created_at, l.id), '[]'),
         array_agg(l.id order by l.created_at, l.id)
  into v_notes, v_ids
  from (
    select * from public.agent_notes n
    where n.tenant_key = p_tenant_key
      and (n.user_id = p_user_id or n.shared_chat_id = p_chat_id)
      and not exists (select from unnest(v_tags) w
                      where lower(w) not in (select lower(t) from unnest(n.tags) t))
    order by n.created_at desc, n.id desc
    limit least(greatest(p_limit, 1), 200)
  ) l;
  perform public.touch_notes(p_conversation_id, p_user_id, p_tenant_key, v_ids, 'listed');
  return v_notes;
end
$$;

CREATE FUNCTION public.list_orphans(p_limit integer) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select coalesce(jsonb_agg(to_jsonb(o)), '[]')
  from (
    select 'agent_messages' as "table", m.id::text as id, 'its turn is missing' as problem
    from public.agent_messages m
    where not exists (select from public.agent_turns t where t.id = m.turn_id)
    union all
    select 'agent_messages', m.id::text, 'its conversation is missing'
    from public.agent_messages m
    where not exists (select from public.agent_chats c
                      where c.id = m.conversation_id and c.user_id = m.user_id)
    union all
    select 'agent_turns', t.id, 'it is ' || t.state || ' but has no answer stored'
    from public.agent_turns t
    where t.state in ('pending', 'sent')
      and not exists (select from public.agent_messages m
                      where m.turn_id = t.id and m.role = 'assistant')
    union all
    select 'agent_working_memory', w.id::text, 'its conversation never had a message'
    from public.agent_working_memory w
    where w.scope = 'chat' and w.updated_at < now() - interval '1 day'
      and not exists (select from public.agent_chats c
                      where c.id = w.conversation_id and c.user_id = w.user_id)
    limit p_limit
  ) o
$$;

CREATE FUNCTION public.list_people(p_open_id text, p_tenant_key text, p_unlinked boolean, p_after_tenant text, p_after_open_id text, p_limit integer) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'tenant_key', r.tenant_key, 'open_id', r.open_id, 'name', r.name,
    'auth_user_id', r.auth_user_id) order by r.tenant_key, r.open_id), '[]')
  from (
    select * from public.people p
    where (p_open_id is null or p.open_id = p_open_id)
      and (p_tenant_key is null or p.tenant_key = p_tenant_key)
      and (not coalesce(p_unlinked, false) or p.auth_user_id is null)
      and (p_after_open_id is null
           or (p.tenant_key, p.open_id) > (p_after_tenant, p_after_open_id))
    order by p.tenant_key, p.open_id
    limit p_limit
  ) r
$$;

CREATE FUNCTION public.list_tables() RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path TO ''
    AS $$
declare
  v_table record;
  v_rows jsonb;
  v_tables jsonb := '[]';
begin
  for v_table in
    select c.oid, c.relname::text as name, c.relrowsecurity as rls,
           pg_catalog.pg_total_relation_size(c.oid) as bytes,
           (select count(*) from pg_catalog.pg_policy y where y.polrelid = c.oid) as policies,
           (select min(a.attname::text) from pg_catalog.pg_attribute a
            where a.attrelid = c.oid and a.attname in ('created_at', 'at', 'asked_at', 'opened_at')) as born
    from pg_catalog.pg_class c
    where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p')
    order by 4 desc
  loop
    execute format('select jsonb_build_object(''rows'', count(*), ''day'', %s, ''week'', %s)
                    from public.%I', public.born_within(v_table.born, '1 day'),
                   public.born_within(v_table.born, '7 days'), v_table.name) into v_rows;
    v_tables := v_tables || jsonb_build_array(v_rows || jsonb_build_object(
      'table', v_table.name, 'bytes', v_table.bytes, 'rls', v_table.rls,
      'policies', v_table.policies));
  end loop;
  return v_tables;
end
$$;

CREATE FUNCTION public.list_working_memory(p_user_id text, p_conversation_id text, p_limit integer) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select coalesce(jsonb_agg(to_jsonb(w) order by w.updated_at desc), '[]')
  from (
    select * from public.agent_working_memory
    where (p_user_id is null or user_id = p_user_id)
      and (p_conversation_id is null or conversation_id = p_conversation_id)
    order by updated_at desc limit p_limit
  ) w
$$;

CREATE FUNCTION public.list_working_memory_changes(p_user_id text, p_conversation_id text, p_limit integer) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select coalesce(jsonb_agg(to_jsonb(h) order by h.id desc), '[]')
  from (
    select * from public.agent_working_memory_history
    where (p_user_id is null or user_id = p_user_id)
      and (p_conversation_id is null or conversation_id = p_conversation_id)
    order by id desc limit p_limit
  ) h
$$;

CREATE FUNCTION public.load_conversation(p_chat_id text) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
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

CREATE FUNCTION public.log_decision(p_chat_id text, p_tenant_key text, p_actor_id text, p_message_id text, p_respond boolean, p_reason text, p_tier text, p_cue text, p_since_bot_ms bigint, p_verdict text, p_judge_ms integer) RETURNS jsonb
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  insert into public.agent_decisions
    (chat_id, tenant_key, actor_id, message_id, respond, reason, tier, cue, since_bot_ms, verdict,
     judge_ms)
  values (p_chat_id, p_tenant_key, p_actor_id, p_message_id, p_respond, p_reason, p_tier, p_cue,
          p_since_bot_ms, p_verdict, p_judge_ms)
  on conflict do nothing;
  select jsonb_build_object('respond', d.respond, 'reason', d.reason)
  from public.agent_decisions d where d.message_id = p_message_id
$$;

CREATE FUNCTION public.mark_failed(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_error text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  update public.agent_messages set status = 'failed', error = p_error, updated_at = now()
  where turn_id = p_turn_id and user_id = p_user_id and conversation_id = p_conversation_id
    and role = 'assistant' and status = 'pending';
  update public.agent_turns set state = 'failed', error = p_error, updated_at = now()
  where id = p_turn_id and user_id = p_user_id and conversation_id = p_conversation_id
    and state in ('open', 'pending');
  return jsonb_build_object('state', 'failed');
end
$$;

CREATE FUNCTION public.mark_sent(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_chunk integer, p_content text, p_message_id text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_state text;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  update public.agent_messages
  set status = 'sent', content = p_content, message_id = p_message_id, error = null,
      updated_at = now()
  where turn_id = p_turn_id and user_id = p_user_id and conversation_id = p_conversation_id
    and role = 'assistant' and chunk = p_chunk;
  if not found then
    raise exception 'turn % has no card %', p_turn_id, p_chunk using errcode = 'PT404';
  end if;
  update public.agent_turns t set updated_at = now(), error = null, state =
    case when exists (select from public.agent_messages m where m.turn_id = t.id
                      and m.role = 'assistant' and m.status = 'pending') then 'pending' else 'sent' end
  where t.id = p_turn_id and t.user_id = p_user_id
  returning t.state into v_state;
  return jsonb_build_object('state', v_state);
end
$$;

CREATE FUNCTION public.memory_overview(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path TO ''
    AS $$
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if p_user_id <> p_actor_id then
    raise exception 'only the person is told what is kept about them' using errcode = '42501';
  end if;
  return (
    select jsonb_build_object(
      'messages', count(*), 'since', min(m.created_at),
      'messages_here', count(*) filter (where m.conversation_id = p_conversation_id),
      'conversations', (select count(*) from public.agent_chats c
                        where c.user_id = p_user_id and c.tenant_key = p_tenant_key),
      'notes', (select count(*) from public.agent_notes n
                where n.user_id = p_user_id and n.tenant_key = p_tenant_key))
    from public.agent_messages m
    where m.user_id = p_user_id and m.tenant_key = p_tenant_key
      and m.chunk = 0 and m.status <> 'failed');
end
$$;

CREATE FUNCTION public.merge_patch(p_target jsonb, p_patch jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO ''
    AS $$
declare
  v_result jsonb;
  v_key text;
  v_value jsonb;
begin
  if jsonb_typeof(p_patch) <> 'object' then
    return p_patch;
  end if;
  v_result := case when jsonb_typeof(p_target) = 'object' then p_target else '{}' end;
  for v_key, v_value in select * from jsonb_each(p_patch) loop
    if jsonb_typeof(v_value) = 'null' then
      v_result := v_result - v_key;
    else
      v_result := jsonb_set(v_result, array[v_key],
                            public.merge_patch(v_result -> v_key, v_value), true);
    end if;
  end loop;
  return v_result;
end
$$;

CREATE FUNCTION public.merge_working_memory(p_conversation_id text, p_chat_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_scope text, p_patch text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_patch jsonb := p_patch::jsonb;
  v_content jsonb;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if jsonb_typeof(v_patch) <> 'object' then
    raise exception 'a working memory patch is a JSON object, not %', jsonb_typeof(v_patch)
      using errcode = '22023';
  end if;
  if p_scope = 'user' and p_user_id <> p_actor_id then
    raise exception 'only the person can change what is kept about them everywhere'
      using errcode = '42501';
  end if;

  insert into public.agent_working_memory as w
    (conversation_id, user_id, tenant_key, chat_id, scope, content)
  values (case when p_scope = 'chat' then p_conversation_id else '' end, p_user_id, p_tenant_key,
          case when p_scope = 'chat' then p_chat_id else '' end, p_scope,
          public.merge_patch('{}', v_patch))
  on conflict (user_id, tenant_key, scope, conversation_id) do update
    set content = public.merge_patch(w.content, v_patch), updated_at = now()
  returning content into v_content;

  if octet_length(v_content::text) > 16384 then
    raise exception 'working memory would hold % bytes, the limit is 16384: remove keys first',
      octet_length(v_content::text) using errcode = 'PT413';
  end if;
  return v_content;
end
$$;

CREATE FUNCTION public.messages_to_embed(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_model text, p_limit integer, p_recent integer DEFAULT NULL::integer) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path TO ''
    AS $$
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if to_regclass('public.agent_embeddings') is null then
    return null;
  end if;
  return (
    with recent as (
      select m.id, m.content, m.status
      from public.agent_messages m
      where m.conversation_id = p_conversation_id and m.user_id = p_user_id
        and m.tenant_key = p_tenant_key
      order by m.id desc limit p_recent
    ),
    missing as (
      select r.id, r.content from recent r
      where r.status in ('received', 'sent') and btrim(r.content, e' \t\r\n') <> ''
        and not exists (select from public.agent_embeddings e
                        where e.id = r.id and e.model = p_model)
      order by r.id desc limit p_limit
    )
    select coalesce(jsonb_agg(jsonb_build_object(
      'id', id, 'content', content, 'digest', md5(content)) order by id desc), '[]')
    from missing
  );
end
$$;

CREATE FUNCTION public.note_body(p_body text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO ''
    AS $$
begin
  if length(p_body) > 20000 then
    raise exception 'the body has % characters, at most 20000 are kept: shorten or split it',
      length(p_body) using errcode = 'PT422';
  end if;
  return coalesce(p_body, '');
end
$$;

CREATE FUNCTION public.note_card(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_message_id text, p_streaming boolean) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  update public.agent_cards
  set message_id = coalesce(p_message_id, message_id), streaming = p_streaming, updated_at = now()
  where turn_id = p_turn_id and user_id = p_user_id and conversation_id = p_conversation_id;
  return 'null'::jsonb;
end
$$;

CREATE TABLE public.agent_notes (
    id text NOT NULL,
    user_id text NOT NULL,
    tenant_key text DEFAULT ''::text NOT NULL,
    chat_id text NOT NULL,
    conversation_id text NOT NULL,
    title text NOT NULL,
    body text DEFAULT ''::text NOT NULL,
    tags text[] DEFAULT '{}'::text[] NOT NULL,
    shared_chat_id text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT agent_notes_body_check CHECK ((length(body) <= 20000)),
    CONSTRAINT agent_notes_tags_check CHECK ((cardinality(tags) <= 20)),
    CONSTRAINT agent_notes_title_check CHECK (((length(title) >= 1) AND (length(title) <= 200))),
    CONSTRAINT agent_notes_user_id_check CHECK ((user_id <> ''::text))
);

CREATE FUNCTION public.note_json(n public.agent_notes) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select jsonb_build_object(
    'id', n.id, 'user_id', n.user_id, 'title', n.title, 'body', n.body, 'tags', to_jsonb(n.tags),
    'shared_chat_id', n.shared_chat_id, 'created_at', n.created_at, 'updated_at', n.updated_at)
$$;

CREATE FUNCTION public.note_registry(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select coalesce(jsonb_agg(to_jsonb(r) order by r.ordinal), '[]')
  from (
    select u.note_id as id, n.title, to_jsonb(n.tags) as tags, u.last_action, u.last_used_at,
           row_number() over (order by u.ordinal) as ordinal,
           case when u.last_used_at is not null then
             row_number() over (order by u.last_used_at desc nulls last, u.ordinal desc) end as recency,
           row_number() over (order by u.last_used_at desc nulls last, u.ordinal desc) as rank
    from public.agent_note_uses u
    join public.agent_notes n on n.id = u.note_id
    where u.conversation_id = p_conversation_id and u.user_id = p_user_id
      and u.tenant_key = p_tenant_key and p_user_id = p_actor_id
      and n.tenant_key = p_tenant_key
      and (n.user_id = p_user_id or n.shared_chat_id = p_chat_id)
  ) r
  where r.ordinal <= 10 or r.rank <= 40
$$;

CREATE FUNCTION public.note_tags(p_tags text) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO ''
    AS $$
declare
  v_tags text[];
begin
  select coalesce(array_agg(tag order by place), '{}') into v_tags
  from (
    select distinct on (lower(tag)) tag, place
    from (
      select btrim(regexp_replace(t.value, '\s+', ' ', 'g'), ' #') as tag, t.ordinality as place
      from jsonb_array_elements_text(coalesce(p_tags, '[]')::jsonb) with ordinality t
    ) cleaned
    where tag <> ''
    order by lower(tag), place
  ) once;
  if exists (select from unnest(v_tags) t where length(t) > 40) then
    raise exception 'a tag has more than 40 characters: use shorter tags' using errcode = 'PT422';
  end if;
  return v_tags;
end
$$;

CREATE FUNCTION public.note_title(p_title text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO ''
    AS $$
declare
  v_title text := btrim(regexp_replace(coalesce(p_title, ''), '\s+', ' ', 'g'));
begin
  if v_title = '' then
    raise exception 'the title is empty: give a title of 1 to 200 characters'
      using errcode = 'PT422';
  elsif length(v_title) > 200 then
    raise exception 'the title has % characters, at most 200 are kept: shorten it', length(v_title)
      using errcode = 'PT422';
  end if;
  return v_title;
end
$$;

CREATE FUNCTION public.open_fold(p_conversation_id text, p_user_id text, p_actor_id text, p_window integer, p_least integer, p_limit integer) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path TO ''
    SET plan_cache_mode TO 'force_generic_plan'
    AS $$
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

CREATE FUNCTION public.open_turn(p_turn_id text, p_conversation_id text, p_chat_id text, p_root_id text, p_user_id text, p_actor_id text, p_actor_name text, p_tenant_key text, p_content text, p_history_limit integer, p_fold_after integer DEFAULT 0) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
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

CREATE FUNCTION public.people_named(p_tenant_key text, p_open_ids text) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'open_id', p.open_id, 'name', p.name,
    'seen_ms', coalesce(round(extract(epoch from p.name_seen_at) * 1000)::bigint, 0))), '[]')
  from public.people p
  where p.tenant_key = p_tenant_key
    and p.open_id in (select jsonb_array_elements_text(p_open_ids::jsonb))
$$;

CREATE FUNCTION public.person_columns(p_schema text) RETURNS TABLE(table_name text, column_name text, has_tenant boolean)
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select c.relname::text, a.attname::text,
         exists (select from pg_catalog.pg_attribute t
                 where t.attrelid = c.oid and t.attname = 'tenant_key' and not t.attisdropped)
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  join pg_catalog.pg_attribute a on a.attrelid = c.oid and not a.attisdropped
  where n.nspname = p_schema and c.relkind in ('r', 'p') and not c.relispartition
    and a.attname = any ('{user_id,open_id,actor_id,author_id,sender_id,operator_id}')
  order by 1, 2
$$;

CREATE FUNCTION public.person_condition(p_schema text, p_table text) RETURNS text
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $_$
  select '(' || string_agg(format('%I = $1', p.column_name), ' or ') || ')'
         || case when bool_or(p.has_tenant) then ' and ($2 is null or tenant_key = $2)' else '' end
  from public.person_columns(p_schema) p
  where p.table_name = p_table
$_$;

CREATE FUNCTION public.place_buttons() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
begin
  update public.agent_buttons set message_id = new.message_id
  where turn_id = new.turn_id and chunk = new.chunk;
  return null;
end
$$;

CREATE FUNCTION public.press_button(p_button_id text, p_chat_id text, p_message_id text, p_operator_id text, p_tenant_key text, p_event_id text, p_only_look boolean) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_button public.agent_buttons;
  v_press public.agent_presses;
begin
  if coalesce(p_operator_id, '') = '' or coalesce(p_event_id, '') = '' then
    raise exception 'identity missing: operator_id and event_id are required'
      using errcode = '22004';
  end if;
  select * into v_button from public.agent_buttons b
  where b.id = p_button_id and b.chat_id = p_chat_id and b.tenant_key = p_tenant_key
    and coalesce(b.message_id, p_message_id) = p_message_id;
  if v_button.id is null then
    return jsonb_build_object('verdict', 'unknown');
  elsif v_button.kind = 'confirm' and v_button.actor_id <> p_operator_id then
    return jsonb_build_object('verdict', 'not_yours');
  end if;

  select * into v_press from public.agent_presses p where p.group_id = v_button.group_id;
  if v_press.group_id is null and v_button.expires_at < now() then
    return jsonb_build_object('verdict', 'expired');
  elsif v_press.group_id is null and not p_only_look then
    insert into public.agent_presses
      (group_id, button_id, chat_id, tenant_key, operator_id, event_id)
    values (v_button.group_id, v_button.id, v_button.chat_id, v_button.tenant_key,
            p_operator_id, p_event_id)
    on conflict do nothing;
    select * into v_press from public.agent_presses p where p.group_id = v_button.group_id;
  end if;
  if (v_press.button_id, v_press.operator_id, v_press.event_id)
     <> (v_button.id, p_operator_id, p_event_id) then
    return jsonb_build_object('verdict', 'used');
  end if;
  return jsonb_build_object(
    'verdict', 'accepted', 'kind', v_button.kind, 'label', v_button.label,
    'payload', v_button.payload, 'conversation_id', v_button.conversation_id,
    'chat_type', v_button.chat_type, 'user_id', v_button.user_id, 'actor_id', v_button.actor_id);
end
$$;

CREATE FUNCTION public.recall(p_conversation_id text, p_user_id text, p_actor_id text, p_chat_id text, p_tenant_key text, p_query text, p_scope text, p_k integer, p_spans text DEFAULT '[]'::text, p_boost double precision DEFAULT 1, p_before_id bigint DEFAULT NULL::bigint, p_model text DEFAULT NULL::text, p_embedding text DEFAULT NULL::text, p_weight double precision DEFAULT 0) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path TO ''
    SET enable_nestloop TO 'off'
    SET jit TO 'off'
    AS $$
declare
  v_terms constant text[] := array(
    select distinct unnest(public.recall_tokens(left(p_query, 500))));
  v_before constant bigint := coalesce(p_before_id, 9223372036854775807);
  v_weight constant double precision :=
    case when p_embedding is null then 0 else least(greatest(p_weight, 0), 1) end;
  -- BM25's constants; b is small because neighbours already even the lengths out
  k1 constant double precision := 1.2;
  b constant double precision := 0.3;
  half constant double precision := 0.5;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if p_scope not in ('thread', 'chat', 'everywhere') then
    raise exception 'scope is thread, chat or everywhere, not %', p_scope using errcode = '22023';
  end if;
  if p_scope = 'everywhere' and p_user_id <> p_actor_id then
    raise exception 'only the person can search what they said everywhere' using errcode = '42501';
  end if;

  return (
    with scoped as materialized (
      -- setweight marks the query's lexemes, ts_filter drops the others
      select t.turn_id, t.conversation_id, t.first_id, t.asked_at, t.length,
             ts_filter(setweight(t.terms, 'A', v_terms), '{a}') as hits
      from public.agent_turn_terms t
      where p_scope = 'thread' and t.conversation_id = p_conversation_id
        and t.user_id = p_user_id and t.tenant_key = p_tenant_key and t.first_id < v_before
      union all
      select t.turn_id, t.conversation_id, t.first_id, t.asked_at, t.length,
             ts_filter(setweight(t.terms, 'A', v_terms), '{a}')
      from public.agent_turn_terms t
      where p_scope <> 'thread' and t.user_id = p_user_id and t.tenant_key = p_tenant_key
        and (p_scope = 'everywhere' or t.chat_id = p_chat_id)
        and (t.conversation_id <> p_conversation_id or t.first_id < v_before)
    ),
    -- A turn is searched with its neighbours: a half of the next on each side, a quarter of the one
    -- after. A gap in place keeps the neighbours of different conversations apart.
    turns as materialized (
      select first_id, turn_id, asked_at, hits,
        1000000 * dense_rank() over (order by conversation_id) + row_number() over around as place,
        (sum(length) over around)::double precision as length
      from scoped
      window around as (partition by conversation_id order by first_id
                        rows between 2 preceding and 2 following)
    ),
    whole as materialized (
      select count(*)::double precision as n, avg(length) as length from turns
    ),
    found as materialized (
      select place, array_position(v_terms, (hit).lexeme) as term,
             cardinality((hit).positions)::double precision as tf
      from (select place, unnest(hits) as hit from turns where hits <> '') h
    ),
    -- what stands in every third turn tells nothing, and would be most of the work
    telling as (
      select term from found group by term
      having count(*) <= greatest(10, (select n / 3 from whole))
    ),
    spread as (
      select f.term, f.place + n.distance as place, sum(f.tf * n.weight) as tf
      from found f
      join telling using (term)
      cross join (values (-2, 0.25::double precision), (-1, 0.5), (0, 1), (1, 0.5), (2, 0.25))
        n (distance, weight)
      group by 1, 2
    ),
    weighed as materialized (
      select t.place, t.first_id, t.length, s.term, s.tf from spread s join turns t using (place)
    ),
    worth as (
      select term, (k1 + 1)
        * ln(1 + ((select n from whole) - count(*) + half) / (count(*) + half)) as idf
      from weighed group by term
    ),
    scores as materialized (
      select place, first_id, sum(
        idf * tf / (tf + k1 * (1 - b + b * length / (select length from whole)))) as score
      from weighed join worth using (term) group by 1, 2
    ),
    top as materialized (select coalesce(max(score), 1) as score from scores),
    -- likeness counts from the average up, 1 is the most alike: the scale of a model is its own
    alike as materialized (
      select t.place, (a.similarity - avg(a.similarity) over ())
        / nullif(max(a.similarity) over () - avg(a.similarity) over (), 0) as likeness
      from public.recall_alike(array(select turn_id from turns), p_model, p_embedding) a
      join turns t using (turn_id)
      where v_weight > 0
    ),
    span as materialized (
      select since, until
      from jsonb_array_elements(p_spans::jsonb) with ordinality p(pair, preference),
        lateral (select (pair ->> 0)::timestamptz, (pair ->> 1)::timestamptz) s(since, until)
      where exists (select from turns t where t.asked_at >= since and t.asked_at < until)
      order by preference limit 1
    ),
    best as materialized (
      select place, sum(score) as score
      from (
        select place, first_id, (1 - v_weight) * score as score from scores
        union all
        select t.place, t.first_id, v_weight * (select score from top) * max(a.likeness * n.weight)
        from alike a
        cross join (values (-1, 0.5::double precision), (0, 1), (1, 0.5)) n (distance, weight)
        join turns t on t.place = a.place + n.distance
        where a.likeness > 0 and v_weight > 0
        group by 1, 2
        union all
        select t.place, t.first_id, p_boost * (select score from top)
        from turns t join span d on t.asked_at >= d.since and t.asked_at < d.until
        where p_boost > 0
      ) s
      group by place, first_id order by score desc, first_id desc limit p_k
    ),
    near as materialized (
      select place, turn_id, first_id, asked_at from turns
      where place = any (array(select place + d from best, unnest('{-1,0,1}'::integer[]) d))
    ),
    ranked as materialized (
      select t.turn_id, t.first_id, t.asked_at, best.score,
             p.turn_id as before, f.turn_id as after
      from best join near t using (place)
      left join near p on p.place = t.place - 1
      left join near f on f.place = t.place + 1
    ),
    said as (
      select m.turn_id,
        string_agg(m.content, e'\n\n' order by m.chunk) filter (where m.role = 'user') as question,
        string_agg(m.content, e'\n\n' order by m.chunk) filter (where m.role = 'assistant') as answer
      from public.agent_messages m
      where m.status <> 'failed' and m.turn_id = any (array(select turn_id from near))
      group by m.turn_id
    )
    select coalesce(jsonb_agg(jsonb_build_object(
      'turn_id', r.turn_id, 'asked_at', r.asked_at, 'score', round(r.score::numeric, 4),
      'question', s.question, 'answer', s.answer,
      'before', concat_ws(e'\n', before.question, before.answer),
      'after', concat_ws(e'\n', after.question, after.answer)
    ) || (
      select jsonb_build_object(
        'message_id', q.id, 'conversation_id', q.conversation_id, 'chat_id', q.chat_id,
        'actor_id', q.actor_id, 'actor_name', q.actor_name)
      from public.agent_messages q where q.id = r.first_id
    ) order by r.score desc, r.first_id desc), '[]')
    from ranked r
    join said s using (turn_id)
    left join said before on before.turn_id = r.before
    left join said after on after.turn_id = r.after
  );
end
$$;

CREATE FUNCTION public.recall_alike(p_turn_ids text[], p_model text, p_embedding text) RETURNS TABLE(turn_id text, similarity double precision)
    LANGUAGE plpgsql STABLE
    SET search_path TO 'extensions', 'public', 'pg_temp'
    AS $$
begin
  if p_embedding is null or to_regclass('public.agent_embeddings') is null then
    return;
  end if;
  return query
    with question as materialized (select p_embedding::halfvec as embedding)
    select e.turn_id, max(1 - (e.embedding <=> (select q.embedding from question q)))
    from public.agent_embeddings e
    where e.turn_id = any (p_turn_ids) and e.model = p_model
      and vector_dims(e.embedding) = (select vector_dims(q.embedding) from question q)
    group by e.turn_id
    having max(1 - (e.embedding <=> (select q.embedding from question q))) <> 'NaN';
end
$$;

CREATE FUNCTION public.recall_message(p_message_id text, p_chat_id text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
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

CREATE FUNCTION public.recall_stem(p_word text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $_$
  select regexp_replace(
    coalesce(substring(p_word from '^([a-z]{3,}?)(?:ie|e|y|i)?(?:ing|ed|s)?$'), p_word),
    '(..)(.)\2$', '\1\2')
$_$;

CREATE FUNCTION public.recall_terms(p_tokens text[]) RETURNS tsvector
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $$
  select coalesce(string_agg(token || ':' || n, ' '), '')::tsvector
  from unnest(p_tokens) with ordinality t(token, n)
$$;

CREATE FUNCTION public.recall_tokens(p_text text) RETURNS text[]
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    SET search_path TO ''
    AS $$
  with runs as materialized (
    select string_to_array(run[1], null) as signs, left(run[2], 60) as word, place
    from regexp_matches(
      regexp_replace(lower(normalize(left(p_text, 30000), nfkc)),
        '[为為]?什[么麼]|哪[些个個里裡家位]?|怎[么麼]|多少|[的了吗嗎呢吧啊么麼我你您他她它们們]', ' ', 'g'),
      '([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+)'
      '|([0-9a-z\u00c0-\u02af\u0370-\u0fff]+)', 'g') with ordinality r(run, place)
  ),
  tokens as (
    select place, n, one || coalesce(next, '') as token
    from runs, rows from (unnest(signs), unnest(signs[2:])) with ordinality p(one, next, n)
    where signs is not null and (n = 1 or next is not null)
    union all
    select place, 0, left(public.recall_stem(word), 40)
    from runs
    where word <> all ('{a,an,the,and,or,of,to,in,on,at,for,from,with,by,as,is,are,was,were,be,been,
      do,does,did,has,have,had,what,when,where,who,whose,which,why,how,that,this,it,its,s,t}')
  )
  select coalesce(array_agg(token order by place, n), '{}') from tokens
$$;

CREATE FUNCTION public.recalled_among(p_message_ids text) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select coalesce(jsonb_agg(r.message_id), '[]')
  from public.recalled_messages r
  where r.message_id in (select jsonb_array_elements_text(p_message_ids::jsonb))
$$;

CREATE FUNCTION public.recent_activity(p_seconds integer) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  with turns as (
    select t.state, t.attempts, extract(epoch from t.updated_at - t.created_at) as seconds
    from public.agent_turns t
    where t.created_at > now() - make_interval(secs => p_seconds)
  )
  select jsonb_build_object(
    'turns', (select coalesce(jsonb_object_agg(state, n), '{}')
              from (select state, count(*) as n from turns group by state) s),
    'decisions', (select coalesce(jsonb_object_agg(reason, n), '{}')
                  from (select d.reason, count(*) as n from public.agent_decisions d
                        where d.created_at > now() - make_interval(secs => p_seconds)
                        group by d.reason) s),
    'retries', (select coalesce(sum(attempts - 1), 0) from turns),
    'p50', (select percentile_cont(0.5) within group (order by seconds) from turns
            where state = 'sent'),
    'p95', (select percentile_cont(0.95) within group (order by seconds) from turns
            where state = 'sent'),
    'unfinished', (select count(*) from public.agent_turns t where t.state in ('open', 'pending')),
    'oldest_unfinished_s', (select extract(epoch from now() - min(t.created_at))
                            from public.agent_turns t where t.state in ('open', 'pending')))
$$;

CREATE FUNCTION public.record_reply(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_cards text, p_tool_calls text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_turn public.agent_turns;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  select * into v_turn from public.agent_turns t
  where t.id = p_turn_id and t.user_id = p_user_id and t.conversation_id = p_conversation_id
  for update;
  if v_turn.id is null then
    raise exception 'turn % is not open', p_turn_id using errcode = 'PT404';
  end if;

  if v_turn.state = 'open' then
    insert into public.agent_messages (conversation_id, user_id, turn_id, tenant_key, chat_id, role,
                                       chunk, content, status, tool_calls)
    select v_turn.conversation_id, v_turn.user_id, v_turn.id, v_turn.tenant_key, v_turn.chat_id,
           'assistant', c.ordinality - 1, c.value, 'pending',
           case when c.ordinality = 1 then p_tool_calls::jsonb else '[]' end
    from jsonb_array_elements_text(p_cards::jsonb) with ordinality c;
    update public.agent_turns set state = 'pending', updated_at = now() where id = p_turn_id;
    v_turn.state := 'pending';
  end if;
  return jsonb_build_object('state', v_turn.state, 'reply', public.turn_reply(p_turn_id));
end
$$;

CREATE FUNCTION public.record_reply_with_buttons(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_cards text, p_tool_calls text, p_buttons text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_turn public.agent_turns;
  v_kept jsonb;
begin
  select * into v_turn from public.agent_turns t
  where t.id = p_turn_id and t.user_id = p_user_id and t.conversation_id = p_conversation_id
  for update;
  v_kept := public.record_reply(
    p_turn_id, p_conversation_id, p_user_id, p_actor_id, p_cards, p_tool_calls);
  if v_turn.state <> 'open' or p_cards::jsonb = '[]' then
    return v_kept;
  end if;
  insert into public.agent_buttons
    (id, group_id, turn_id, chunk, ordinal, conversation_id, user_id, actor_id, tenant_key, chat_id,
     chat_type, kind, label, payload, expires_at)
  select b.value ->> 'id', b.value ->> 'group_id', v_turn.id,
         jsonb_array_length(p_cards::jsonb) - 1, b.ordinality, v_turn.conversation_id,
         v_turn.user_id, v_turn.actor_id, v_turn.tenant_key, v_turn.chat_id,
         b.value ->> 'chat_type', b.value ->> 'kind', b.value ->> 'label', b.value -> 'payload',
         now() + make_interval(secs => (b.value ->> 'lives_s')::integer)
  from jsonb_array_elements(p_buttons::jsonb) with ordinality b;
  return v_kept || jsonb_build_object('reply', public.turn_reply(p_turn_id));
end
$$;

CREATE FUNCTION public.record_working_memory_change() RETURNS trigger
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_before constant jsonb := case when tg_op = 'UPDATE' then old.content else '{}' end;
  v_was jsonb;
  v_became jsonb;
begin
  select coalesce(jsonb_object_agg(o.key, o.value) filter (where o.key is not null), '{}'),
         coalesce(jsonb_object_agg(n.key, n.value) filter (where n.key is not null), '{}')
  into v_was, v_became
  from jsonb_each(v_before) o full join jsonb_each(new.content) n on o.key = n.key
  where o.value is distinct from n.value;
  if v_was <> '{}' or v_became <> '{}' then
    insert into public.agent_working_memory_history
      (working_memory_id, user_id, tenant_key, actor_id, scope, conversation_id, chat_id, was, became)
    values (new.id, new.user_id, new.tenant_key, coalesce(public.claim('actor'), 'service'),
            new.scope, new.conversation_id, new.chat_id, v_was, v_became);
    delete from public.agent_working_memory_history
    where working_memory_id = new.id and id <= (
      select h.id from public.agent_working_memory_history h
      where h.working_memory_id = new.id order by h.id desc offset 50 limit 1);
  end if;
  return null;
end
$$;

CREATE FUNCTION public.remember_people(p_people text) RETURNS integer
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  with seen as (
    -- in the order of the key, so that two workers never wait for each other in a circle
    select distinct on (s.tenant_key, s.open_id)
      s.tenant_key, s.open_id, s.name,
      case when s.name <> '' then to_timestamp(s.seen_ms / 1000.0) end as name_seen_at
    from jsonb_to_recordset(p_people::jsonb)
      as s (tenant_key text, open_id text, name text, seen_ms bigint)
    order by s.tenant_key, s.open_id, (s.name <> '') desc, s.seen_ms desc
  ),
  stored as (
    insert into public.people as p (tenant_key, open_id, name, name_seen_at)
    select * from seen
    on conflict (tenant_key, open_id) do update set
      name = excluded.name,
      name_seen_at = excluded.name_seen_at,
      updated_at = case when p.name = excluded.name then p.updated_at else now() end
    where excluded.name <> ''
      and (p.name_seen_at is null or p.name_seen_at < excluded.name_seen_at)
    returning xmax = 0 as is_new
  )
  select count(*)::integer from stored where is_new
$$;

CREATE FUNCTION public.remove_from_conversation(p_chat_id text, p_message_id text) RETURNS jsonb
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  delete from public.chat_transcript where chat_id = p_chat_id and message_id = p_message_id;
  select 'null'::jsonb
$$;

CREATE FUNCTION public.require_identity(p_user_id text, p_actor_id text, p_conversation_id text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO ''
    AS $$
begin
  if coalesce(p_user_id, '') = '' or coalesce(p_actor_id, '') = ''
     or coalesce(p_conversation_id, '') = '' then
    raise exception 'identity missing: user_id, actor_id and conversation_id are required'
      using errcode = '22004';
  end if;
end
$$;

CREATE FUNCTION public.require_own_notes(p_user_id text, p_actor_id text, p_conversation_id text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO ''
    AS $$
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if p_user_id <> p_actor_id then
    raise exception 'notes are reached only by the person they belong to' using errcode = '42501';
  end if;
end
$$;

CREATE FUNCTION public.require_person(p_user_id text) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO ''
    AS $$
begin
  if coalesce(p_user_id, '') = '' then
    raise exception 'identity missing: user_id is required' using errcode = '22004';
  end if;
end
$$;

CREATE FUNCTION public.require_tag_count(p_tags text[]) RETURNS text[]
    LANGUAGE plpgsql IMMUTABLE
    SET search_path TO ''
    AS $$
begin
  if cardinality(p_tags) > 20 then
    raise exception 'the note would have % tags, at most 20 are kept: remove some first',
      cardinality(p_tags) using errcode = 'PT422';
  end if;
  return p_tags;
end
$$;

CREATE FUNCTION public.restore_turn(p_turn_id text, p_conversation_id text, p_chat_id text, p_root_id text, p_user_id text, p_actor_id text, p_actor_name text, p_tenant_key text, p_content text, p_cards text, p_tool_calls text, p_error text, p_asked_at timestamp with time zone, p_answered_at timestamp with time zone) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
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

CREATE FUNCTION public.resume_card(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_card public.agent_cards;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  update public.agent_cards c
  set sequence = c.sequence + public.card_block(), updated_at = now()
  where c.turn_id = p_turn_id and c.user_id = p_user_id
    and c.conversation_id = p_conversation_id and c.streaming
  returning * into v_card;
  return case when v_card.turn_id is not null then public.card_row(v_card) end;
end
$$;

CREATE FUNCTION public.said_message(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_message_id text) RETURNS jsonb
    LANGUAGE plpgsql STABLE
    SET search_path TO ''
    AS $$
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  return (
    select jsonb_build_object(
      'id', m.id, 'role', m.role, 'content', m.content, 'actor_id', m.actor_id,
      'actor_name', m.actor_name, 'message_id', m.message_id, 'created_at', m.created_at,
      'tool_calls', '[]'::jsonb)
    from public.agent_messages m
    where m.message_id = p_message_id and m.user_id = p_user_id and m.tenant_key = p_tenant_key
      and m.chat_id = p_chat_id and m.status <> 'failed'
    order by m.id limit 1);
end
$$;

CREATE FUNCTION public.save_embeddings(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_model text, p_embeddings text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO 'extensions', 'public', 'pg_temp'
    AS $$
declare
  v_count bigint;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  insert into public.agent_embeddings
    (id, turn_id, conversation_id, user_id, tenant_key, chat_id, model, embedding)
  select m.id, m.turn_id, m.conversation_id, m.user_id, m.tenant_key, m.chat_id, p_model,
         g.embedding::halfvec
  from jsonb_to_recordset(p_embeddings::jsonb) g (id bigint, digest text, embedding text)
  join public.agent_messages m using (id)
  where m.conversation_id = p_conversation_id and m.user_id = p_user_id
    and m.tenant_key = p_tenant_key and m.status in ('received', 'sent')
    and md5(m.content) = g.digest
  on conflict (id) do update set model = excluded.model, embedding = excluded.embedding;
  get diagnostics v_count = row_count;
  return to_jsonb(v_count);
end
$$;

CREATE FUNCTION public.save_summary(p_conversation_id text, p_user_id text, p_actor_id text, p_summary_id bigint, p_expected_version integer, p_content text, p_verbatim text, p_rows text, p_messages integer) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
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

CREATE FUNCTION public.search_notes(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_terms text, p_limit integer) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_notes jsonb;
  v_ids text[];
begin
  perform public.require_own_notes(p_user_id, p_actor_id, p_conversation_id);
  select coalesce(jsonb_agg(public.note_json(f.note) order by f.score desc, (f.note).updated_at desc), '[]'),
         array_agg((f.note).id order by f.score desc, (f.note).updated_at desc)
  into v_notes, v_ids
  from (
    select n as note, sum(
      3 * (position(t.value in lower(n.title)) > 0)::integer
      + 3 * (position(t.value in lower(array_to_string(n.tags, ' '))) > 0)::integer
      + (position(t.value in lower(n.body)) > 0)::integer) as score
    from public.agent_notes n, jsonb_array_elements_text(p_terms::jsonb) t
    where n.tenant_key = p_tenant_key
      and (n.user_id = p_user_id or n.shared_chat_id = p_chat_id)
    group by n.id
    order by score desc, n.updated_at desc
    limit least(greatest(p_limit, 1), 50)
  ) f
  where f.score > 0;
  -- the one note that was found is the one people go on to speak of
  perform public.touch_notes(p_conversation_id, p_user_id, p_tenant_key, v_ids,
                             case when cardinality(v_ids) = 1 then 'found' else 'listed' end);
  return v_notes;
end
$$;

CREATE FUNCTION public.set_chat_quiet(p_chat_id text, p_tenant_key text, p_quiet boolean) RETURNS jsonb
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  insert into public.chat_conversations (chat_id, tenant_key, quiet)
  values (p_chat_id, p_tenant_key, p_quiet)
  on conflict (chat_id) do update set quiet = p_quiet, updated_at = now();
  select 'null'::jsonb
$$;

CREATE FUNCTION public.share_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_note_id text, p_share boolean) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_note public.agent_notes;
begin
  perform public.require_own_notes(p_user_id, p_actor_id, p_conversation_id);
  update public.agent_notes n
  set shared_chat_id = case when p_share then p_chat_id end, updated_at = now()
  where n.id = p_note_id and n.user_id = p_user_id and n.tenant_key = p_tenant_key
  returning * into v_note;
  if v_note.id is null then
    raise exception 'no note of this person has this id' using errcode = 'PT404';
  end if;
  perform public.touch_notes(p_conversation_id, p_user_id, p_tenant_key, array[v_note.id],
                             case when p_share then 'shared' else 'unshared' end);
  return public.note_json(v_note);
end
$$;

CREATE FUNCTION public.start_afresh(p_conversation_id text, p_user_id text, p_actor_id text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  update public.agent_chats c
  set history_from = coalesce((
    select max(m.id) from public.agent_messages m
    where m.conversation_id = p_conversation_id and m.user_id = p_user_id), 0)
  where c.id = p_conversation_id and c.user_id = p_user_id;
  return 'null'::jsonb;
end
$$;

CREATE FUNCTION public.take_left_cards(p_older_s integer, p_untouched_s integer, p_limit integer) RETURNS jsonb
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  with taken as (
    update public.agent_cards c
    set sequence = c.sequence + public.card_block(), updated_at = now()
    where c.turn_id in (
      select s.turn_id from public.agent_cards s
      where s.streaming
        and s.opened_at between now() - interval '1 day' and now() - make_interval(secs => p_older_s)
        and s.updated_at <= now() - make_interval(secs => p_untouched_s)
      order by s.opened_at limit p_limit
      for update skip locked)
    returning c.*)
  select coalesce(jsonb_agg(public.card_row(t)), '[]') from taken t
$$;

CREATE FUNCTION public.token_auth_user() RETURNS uuid
    LANGUAGE sql STABLE
    RETURN CASE WHEN ((public.claim('actor'::text) IS NULL) AND (public.claim('sub'::text) ~ '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$'::text)) THEN (public.claim('sub'::text))::uuid ELSE NULL::uuid END;

CREATE FUNCTION public.touch_notes(p_conversation_id text, p_user_id text, p_tenant_key text, p_note_ids text[], p_action text) RETURNS void
    LANGUAGE sql
    SET search_path TO ''
    AS $$
  insert into public.agent_note_uses as u
    (conversation_id, user_id, tenant_key, note_id, last_action, last_used_at)
  select c.id, c.user_id, p_tenant_key, t.note_id, p_action,
         case when p_action <> 'listed' then clock_timestamp() end
  from unnest(p_note_ids) with ordinality t (note_id, place)
  join public.agent_chats c on c.id = p_conversation_id and c.user_id = p_user_id
  order by t.place
  on conflict (conversation_id, user_id, note_id) do update
    set last_action = excluded.last_action, last_used_at = excluded.last_used_at
    where excluded.last_used_at is not null
$$;

CREATE FUNCTION public.turn_reply(p_turn_id text) RETURNS jsonb
    LANGUAGE sql STABLE
    SET search_path TO ''
    AS $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'chunk', m.chunk, 'content', m.content, 'status', m.status, 'message_id', m.message_id,
    'buttons', coalesce((
      select jsonb_agg(jsonb_build_object('id', b.id, 'label', b.label) order by b.ordinal)
      from public.agent_buttons b
      where b.turn_id = m.turn_id and b.chunk = m.chunk), '[]')
  ) order by m.chunk), '[]')
  from public.agent_messages m
  where m.turn_id = p_turn_id and m.role = 'assistant'
$$;

CREATE FUNCTION public.update_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_note_id text, p_title text, p_body text, p_add_tags text, p_remove_tags text) RETURNS jsonb
    LANGUAGE plpgsql
    SET search_path TO ''
    AS $$
declare
  v_old public.agent_notes;
  v_new public.agent_notes;
  v_add text[] := public.note_tags(p_add_tags);
  v_remove text[] := public.note_tags(p_remove_tags);
  v_kept text[];
  v_added text[];
begin
  perform public.require_own_notes(p_user_id, p_actor_id, p_conversation_id);
  select * into v_old from public.agent_notes n
  where n.id = p_note_id and n.user_id = p_user_id and n.tenant_key = p_tenant_key
  for update;
  if v_old.id is null then
    raise exception 'no note of this person has this id' using errcode = 'PT404';
  end if;

  select coalesce(array_agg(t.tag order by t.place), '{}') into v_kept
  from unnest(v_old.tags) with ordinality t (tag, place)
  where lower(t.tag) not in (select lower(r) from unnest(v_remove) r);
  select coalesce(array_agg(t.tag order by t.place), '{}') into v_added
  from unnest(v_add) with ordinality t (tag, place)
  where lower(t.tag) not in (select lower(k) from unnest(v_kept) k);

  update public.agent_notes n set
    title = case when p_title is null then n.title else public.note_title(p_title) end,
    body = case when p_body is null then n.body else public.note_body(p_body) end,
    tags = public.require_tag_count(v_kept || v_added),
    updated_at = now()
  where n.id = v_old.id
  returning * into v_new;

  perform public.touch_notes(p_conversation_id, p_user_id, p_tenant_key, array[v_new.id], 'updated');
  return jsonb_build_object(
    'note', public.note_json(v_new),
    'old_title', v_old.title,
    'body_changed', v_new.body <> v_old.body,
    'added', (select coalesce(jsonb_agg(a), '[]') from unnest(v_added) a
              where lower(a) not in (select lower(o) from unnest(v_old.tags) o)),
    'removed', (select coalesce(jsonb_agg(o), '[]') from unnest(v_old.tags) o
                where lower(o) not in (select lower(t) from unnest(v_new.tags) t)));
end
$$;

CREATE TABLE feishu_bot.inbox (
    key text NOT NULL,
    received_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE feishu_bot.late_writes (
    seq bigint NOT NULL,
    function text NOT NULL,
    params jsonb NOT NULL,
    context jsonb,
    conversation_id text,
    message_ids text[] NOT NULL,
    people text[] DEFAULT '{}'::text[] NOT NULL,
    refused text,
    asked_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT late_writes_function_check CHECK ((function = ANY (ARRAY['recall_message'::text, 'append_to_conversation'::text, 'continue_conversation'::text, 'log_decision'::text])))
);

ALTER TABLE feishu_bot.late_writes ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME feishu_bot.late_writes_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE feishu_bot.migrations (
    name text NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);

CREATE TABLE feishu_bot.procrastinate_events (
    id bigint NOT NULL,
    job_id bigint NOT NULL,
    type feishu_bot.procrastinate_job_event_type,
    at timestamp with time zone DEFAULT now()
);

CREATE SEQUENCE feishu_bot.procrastinate_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE feishu_bot.procrastinate_events_id_seq OWNED BY feishu_bot.procrastinate_events.id;

CREATE SEQUENCE feishu_bot.procrastinate_jobs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE feishu_bot.procrastinate_jobs_id_seq OWNED BY feishu_bot.procrastinate_jobs.id;

CREATE TABLE feishu_bot.procrastinate_periodic_defers (
    id bigint NOT NULL,
    task_name character varying(128) NOT NULL,
    defer_timestamp bigint,
    job_id bigint,
    periodic_id character varying(128) DEFAULT ''::character varying NOT NULL
);

CREATE SEQUENCE feishu_bot.procrastinate_periodic_defers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;

ALTER SEQUENCE feishu_bot.procrastinate_periodic_defers_id_seq OWNED BY feishu_bot.procrastinate_periodic_defers.id;

CREATE TABLE feishu_bot.procrastinate_workers (
    id bigint NOT NULL,
    last_heartbeat timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE feishu_bot.procrastinate_workers ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME feishu_bot.procrastinate_workers_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE feishu_bot.spool (
    seq bigint NOT NULL,
    turn_id text NOT NULL,
    conversation_id text NOT NULL,
    chat_id text NOT NULL,
    root_id text NOT NULL,
    user_id text NOT NULL,
    actor_id text NOT NULL,
    actor_name text DEFAULT ''::text NOT NULL,
    tenant_key text DEFAULT ''::text NOT NULL,
    content text NOT NULL,
    state text DEFAULT 'open'::text NOT NULL,
    attempts integer DEFAULT 1 NOT NULL,
    cards jsonb DEFAULT '[]'::jsonb NOT NULL,
    tool_calls jsonb DEFAULT '[]'::jsonb NOT NULL,
    error text,
    refused text,
    version integer DEFAULT 1 NOT NULL,
    asked_at timestamp with time zone DEFAULT now() NOT NULL,
    answered_at timestamp with time zone,
    CONSTRAINT spool_actor_id_check CHECK ((actor_id <> ''::text)),
    CONSTRAINT spool_conversation_id_check CHECK ((conversation_id <> ''::text)),
    CONSTRAINT spool_state_check CHECK ((state = ANY (ARRAY['open'::text, 'pending'::text, 'sent'::text, 'failed'::text]))),
    CONSTRAINT spool_user_id_check CHECK ((user_id <> ''::text))
);

ALTER TABLE feishu_bot.spool ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME feishu_bot.spool_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.agent_buttons (
    id text NOT NULL,
    group_id text NOT NULL,
    turn_id text NOT NULL,
    chunk smallint NOT NULL,
    ordinal smallint NOT NULL,
    conversation_id text NOT NULL,
    user_id text NOT NULL,
    actor_id text NOT NULL,
    tenant_key text DEFAULT ''::text NOT NULL,
    chat_id text NOT NULL,
    chat_type text NOT NULL,
    kind text NOT NULL,
    label text NOT NULL,
    payload jsonb DEFAULT '{}'::jsonb NOT NULL,
    message_id text,
    expires_at timestamp with time zone NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT agent_buttons_actor_id_check CHECK ((actor_id <> ''::text)),
    CONSTRAINT agent_buttons_chat_type_check CHECK ((chat_type = ANY (ARRAY['group'::text, 'p2p'::text]))),
    CONSTRAINT agent_buttons_kind_check CHECK ((kind = ANY (ARRAY['follow_up'::text, 'confirm'::text]))),
    CONSTRAINT agent_buttons_user_id_check CHECK ((user_id <> ''::text))
);

CREATE TABLE public.agent_chats (
    id text NOT NULL,
    user_id text NOT NULL,
    tenant_key text DEFAULT ''::text NOT NULL,
    chat_id text NOT NULL,
    root_id text NOT NULL,
    title text DEFAULT ''::text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    history_from bigint DEFAULT 0 NOT NULL,
    CONSTRAINT agent_chats_user_id_check CHECK ((user_id <> ''::text))
);

CREATE TABLE public.agent_decisions (
    id bigint NOT NULL,
    message_id text NOT NULL,
    chat_id text NOT NULL,
    tenant_key text DEFAULT ''::text NOT NULL,
    actor_id text NOT NULL,
    respond boolean NOT NULL,
    reason text NOT NULL,
    tier text NOT NULL,
    cue text,
    since_bot_ms bigint,
    verdict text,
    judge_ms integer,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE public.agent_decisions ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.agent_decisions_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.agent_embeddings (
    id bigint NOT NULL,
    turn_id text NOT NULL,
    conversation_id text NOT NULL,
    user_id text NOT NULL,
    tenant_key text NOT NULL,
    chat_id text NOT NULL,
    model text NOT NULL,
    embedding extensions.halfvec NOT NULL
)
WITH (toast_tuple_target='8160');
ALTER TABLE ONLY public.agent_embeddings ALTER COLUMN embedding SET STORAGE MAIN;

CREATE TABLE public.agent_messages (
    id bigint NOT NULL,
    conversation_id text NOT NULL,
    user_id text NOT NULL,
    turn_id text NOT NULL,
    tenant_key text DEFAULT ''::text NOT NULL,
    chat_id text NOT NULL,
    role text NOT NULL,
    chunk smallint DEFAULT 0 NOT NULL,
    content text NOT NULL,
    actor_id text,
    actor_name text DEFAULT ''::text NOT NULL,
    message_id text,
    status text NOT NULL,
    error text,
    tool_calls jsonb DEFAULT '[]'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT agent_messages_role_check CHECK ((role = ANY (ARRAY['user'::text, 'assistant'::text]))),
    CONSTRAINT agent_messages_status_check CHECK ((status = ANY (ARRAY['received'::text, 'pending'::text, 'sent'::text, 'failed'::text])))
);

ALTER TABLE public.agent_messages ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.agent_messages_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.agent_note_uses (
    conversation_id text NOT NULL,
    user_id text NOT NULL,
    note_id text NOT NULL,
    tenant_key text DEFAULT ''::text NOT NULL,
    ordinal bigint NOT NULL,
    last_action text NOT NULL,
    last_used_at timestamp with time zone,
    CONSTRAINT agent_note_uses_last_action_check CHECK ((last_action = ANY (ARRAY['created'::text, 'read'::text, 'found'::text, 'listed'::text, 'updated'::text, 'shared'::text, 'unshared'::text])))
);

ALTER TABLE public.agent_note_uses ALTER COLUMN ordinal ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.agent_note_uses_ordinal_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.agent_presses (
    group_id text NOT NULL,
    button_id text NOT NULL,
    chat_id text NOT NULL,
    tenant_key text DEFAULT ''::text NOT NULL,
    operator_id text NOT NULL,
    event_id text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT agent_presses_operator_id_check CHECK ((operator_id <> ''::text))
);

CREATE TABLE public.agent_summaries (
    id bigint NOT NULL,
    conversation_id text NOT NULL,
    user_id text NOT NULL,
    tenant_key text DEFAULT ''::text NOT NULL,
    chat_id text NOT NULL,
    version integer DEFAULT 1 NOT NULL,
    content text NOT NULL,
    verbatim jsonb DEFAULT '[]'::jsonb NOT NULL,
    until_message_id bigint NOT NULL,
    messages integer DEFAULT 0 NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT agent_summaries_user_id_check CHECK ((user_id <> ''::text))
);

ALTER TABLE public.agent_summaries ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.agent_summaries_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.agent_turn_terms (
    turn_id text NOT NULL,
    conversation_id text NOT NULL,
    user_id text NOT NULL,
    tenant_key text NOT NULL,
    chat_id text NOT NULL,
    first_id bigint NOT NULL,
    asked_at timestamp with time zone NOT NULL,
    length integer NOT NULL,
    terms tsvector NOT NULL
);

CREATE VIEW public.agent_turn_texts WITH (security_invoker='true') AS
 SELECT turn_id,
    conversation_id,
    user_id,
    tenant_key,
    chat_id,
    min(id) AS first_id,
    min(created_at) AS asked_at,
    string_agg(content, '
'::text ORDER BY id) AS content
   FROM public.agent_messages
  WHERE (status <> 'failed'::text)
  GROUP BY turn_id, conversation_id, user_id, tenant_key, chat_id;

CREATE TABLE public.agent_turns (
    id text NOT NULL,
    conversation_id text NOT NULL,
    user_id text NOT NULL,
    actor_id text NOT NULL,
    tenant_key text DEFAULT ''::text NOT NULL,
    chat_id text NOT NULL,
    state text DEFAULT 'open'::text NOT NULL,
    attempts integer DEFAULT 1 NOT NULL,
    error text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT agent_turns_state_check CHECK ((state = ANY (ARRAY['open'::text, 'pending'::text, 'sent'::text, 'failed'::text, 'cancelled'::text])))
);

CREATE TABLE public.agent_working_memory (
    id bigint NOT NULL,
    conversation_id text DEFAULT ''::text NOT NULL,
    user_id text NOT NULL,
    tenant_key text DEFAULT ''::text NOT NULL,
    chat_id text DEFAULT ''::text NOT NULL,
    scope text NOT NULL,
    content jsonb DEFAULT '{}'::jsonb NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT agent_working_memory_check CHECK (((scope = 'user'::text) = (conversation_id = ''::text))),
    CONSTRAINT agent_working_memory_content_check CHECK ((jsonb_typeof(content) = 'object'::text)),
    CONSTRAINT agent_working_memory_scope_check CHECK ((scope = ANY (ARRAY['chat'::text, 'user'::text]))),
    CONSTRAINT agent_working_memory_user_id_check CHECK ((user_id <> ''::text))
);

CREATE TABLE public.agent_working_memory_history (
    id bigint NOT NULL,
    working_memory_id bigint NOT NULL,
    user_id text NOT NULL,
    tenant_key text DEFAULT ''::text NOT NULL,
    actor_id text NOT NULL,
    scope text NOT NULL,
    conversation_id text DEFAULT ''::text NOT NULL,
    chat_id text DEFAULT ''::text NOT NULL,
    was jsonb NOT NULL,
    became jsonb NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);

ALTER TABLE public.agent_working_memory_history ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.agent_working_memory_history_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

ALTER TABLE public.agent_working_memory ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.agent_working_memory_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);

CREATE TABLE public.chat_conversations (
    chat_id text NOT NULL,
    tenant_key text DEFAULT ''::text NOT NULL,
    active boolean DEFAULT false NOT NULL,
    quiet boolean DEFAULT false NOT NULL,
    started_at bigint DEFAULT 0 NOT NULL,
    last_activity bigint DEFAULT 0 NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT chat_conversations_chat_id_check CHECK ((chat_id <> ''::text))
);

CREATE TABLE public.chat_transcript (
    chat_id text NOT NULL,
    message_id text NOT NULL,
    tenant_key text DEFAULT ''::text NOT NULL,
    root_id text,
    author text NOT NULL,
    author_id text NOT NULL,
    content text NOT NULL,
    "timestamp" bigint NOT NULL,
    is_bot boolean NOT NULL,
    ours boolean DEFAULT false NOT NULL
);

CREATE TABLE public.people (
    tenant_key text NOT NULL,
    open_id text NOT NULL,
    name text DEFAULT ''::text NOT NULL,
    name_seen_at timestamp with time zone,
    auth_user_id uuid,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    updated_at timestamp with time zone DEFAULT now() NOT NULL,
    CONSTRAINT people_check CHECK (((name = ''::text) = (name_seen_at IS NULL))),
    CONSTRAINT people_open_id_check CHECK ((open_id <> ''::text))
);

CREATE TABLE public.recalled_messages (
    message_id text NOT NULL,
    chat_id text NOT NULL,
    created_at timestamp with time zone DEFAULT now() NOT NULL
);

ALTER TABLE ONLY feishu_bot.procrastinate_events ALTER COLUMN id SET DEFAULT nextval('feishu_bot.procrastinate_events_id_seq'::regclass);

ALTER TABLE ONLY feishu_bot.procrastinate_jobs ALTER COLUMN id SET DEFAULT nextval('feishu_bot.procrastinate_jobs_id_seq'::regclass);

ALTER TABLE ONLY feishu_bot.procrastinate_periodic_defers ALTER COLUMN id SET DEFAULT nextval('feishu_bot.procrastinate_periodic_defers_id_seq'::regclass);

INSERT INTO feishu_bot.inbox VALUES ('message:om_30', '2026-11-21 21:19:19.333443+00');
INSERT INTO feishu_bot.inbox VALUES ('message:om_31', '2026-11-21 21:19:19.33951+00');
INSERT INTO feishu_bot.inbox VALUES ('message:om_32', '2026-11-21 21:19:19.340833+00');
INSERT INTO feishu_bot.inbox VALUES ('message:om_33', '2026-11-21 21:19:19.341605+00');

INSERT INTO feishu_bot.late_writes OVERRIDING SYSTEM VALUE VALUES (1, 'recall_message', '{"p_chat_id": "oc_group", "p_message_id": "om_22"}', NULL, NULL, '{om_22}', '{}', NULL, '2026-11-21 21:19:19.317065+00');
INSERT INTO feishu_bot.late_writes OVERRIDING SYSTEM VALUE VALUES (2, 'append_to_conversation', '{"p_at": 1790000000003, "p_keep": 20, "p_chat_id": "oc_group", "p_records": "[{\"message_id\": \"om_said_3\", \"root_id\": null, \"author\": \"Bob\", \"author_id\": \"ou_bob\", \"content\": \"late\", \"timestamp\": 1790000000003, \"is_bot\": false, \"ours\": false}]", "p_tenant_key": "tenant_1", "p_active_since": 0}', '{"chat_id": "oc_group", "root_id": "om_root", "user_id": "ou_alice", "actor_id": "ou_alice", "tenant_key": "tenant_1", "user_scope_id": "user:ou_alice", "conversation_id": "feishu:oc_group:om_root"}', 'feishu:oc_group:om_root', '{om_said_3}', '{ou_alice,ou_bob}', NULL, '2026-11-21 21:19:19.320368+00');

INSERT INTO feishu_bot.migrations VALUES ('procrastinate', '2026-11-21 21:19:18.673253+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.00.00_01_initial.sql', '2026-11-21 21:19:18.698572+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.05.00_01_drop_started_at_column.sql', '2026-11-21 21:19:18.699084+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.05.00_02_drop_started_at_column.sql', '2026-11-21 21:19:18.699355+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.05.00_03_drop_procrastinate_version_table.sql', '2026-11-21 21:19:18.699577+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.06.00_01_fix_procrastinate_fetch_job.sql', '2026-11-21 21:19:18.699776+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.07.01_01_fix_trigger_status_events_insert.sql', '2026-11-21 21:19:18.700404+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.08.01_01_add_queueing_lock_column.sql', '2026-11-21 21:19:18.700644+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.10.00_01_close_fetch_job_race_condition.sql', '2026-11-21 21:19:18.700851+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.10.00_02_add_defer_job_function.sql', '2026-11-21 21:19:18.701029+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.11.00_03_add_procrastinate_periodic_defers.sql', '2026-11-21 21:19:18.701194+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.12.00_01_add_foreign_key_index.sql', '2026-11-21 21:19:18.701387+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.14.00_01_add_locks_to_periodic_defer.sql', '2026-11-21 21:19:18.701543+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.15.02_01_fix_procrastinate_defer_periodic_job.sql', '2026-11-21 21:19:18.701695+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.16.00_01_add_finish_job_and_retry_job_functions.sql', '2026-11-21 21:19:18.701844+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.17.00_01_add_trigger_on_job_deletion.sql', '2026-11-21 21:19:18.701996+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.17.00_02_delete_finished_jobs.sql', '2026-11-21 21:19:18.702448+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.17.00_03_add_checks_to_finish_job.sql', '2026-11-21 21:19:18.702645+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.17.00_04_add_checks_to_retry_job.sql', '2026-11-21 21:19:18.702808+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.18.01_01_fix_finish_job_compat_issue.sql', '2026-11-21 21:19:18.702963+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.19.00_01_add_index_on_procrastinate_jobs.sql', '2026-11-21 21:19:18.703118+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.22.00_01_add_kwargs_to_defer_periodic_job.sql', '2026-11-21 21:19:18.703293+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/00.23.00_01_null_locks_excluded.sql', '2026-11-21 21:19:18.703456+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/01.00.00_01_remove_old_finish_job_function.sql', '2026-11-21 21:19:18.703613+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/01.01.01_01_job_id_bigint.sql', '2026-11-21 21:19:18.703768+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/02.00.03_01_add_job_priority.sql', '2026-11-21 21:19:18.703923+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/02.05.00_01_add_periodic_job_priority.sql', '2026-11-21 21:19:18.704079+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/02.06.00_01_add_cancel_states.sql', '2026-11-21 21:19:18.704357+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/02.08.00_01_add_additional_params_to_retry_job.sql', '2026-11-21 21:19:18.704689+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/02.14.01_01_add_indexes_for_fetch_job.sql', '2026-11-21 21:19:18.7049+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/03.00.00_01_pre_cancel_notification.sql', '2026-11-21 21:19:18.705065+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/03.00.00_50_post_cancel_notification.sql', '2026-11-21 21:19:18.70524+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/03.01.00_01_pre_add_heartbeat.sql', '2026-11-21 21:19:18.705411+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/03.01.00_50_post_add_heartbeat.sql', '2026-11-21 21:19:18.70557+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/03.02.00_01_pre_batch_defer_jobs.sql', '2026-11-21 21:19:18.705787+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/03.02.00_50_post_batch_defer_jobs.sql', '2026-11-21 21:19:18.705947+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/03.03.00_01_pre_priority_lock_fetch_job.sql', '2026-11-21 21:19:18.706103+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/03.04.00_01_pre_add_retry_failed_job_procedure.sql', '2026-11-21 21:19:18.706274+00');
INSERT INTO feishu_bot.migrations VALUES ('procrastinate/03.04.00_50_post_add_retry_failed_job_procedure.sql', '2026-11-21 21:19:18.706566+00');
INSERT INTO feishu_bot.migrations VALUES ('0001_roles_and_claims.sql', '2026-11-21 21:19:18.706884+00');
INSERT INTO feishu_bot.migrations VALUES ('0002_memory.sql', '2026-11-21 21:19:18.710536+00');
INSERT INTO feishu_bot.migrations VALUES ('0003_turns.sql', '2026-11-21 21:19:18.748943+00');
INSERT INTO feishu_bot.migrations VALUES ('0004_inbox.sql', '2026-11-21 21:19:18.760924+00');
INSERT INTO feishu_bot.migrations VALUES ('0005_spool.sql', '2026-11-21 21:19:18.76676+00');
INSERT INTO feishu_bot.migrations VALUES ('0006_waiting_turns.sql', '2026-11-21 21:19:18.780753+00');
INSERT INTO feishu_bot.migrations VALUES ('0010_recall.sql', '2026-11-21 21:19:18.782208+00');
INSERT INTO feishu_bot.migrations VALUES ('0020_notes.sql', '2026-11-21 21:19:18.825789+00');
INSERT INTO feishu_bot.migrations VALUES ('0030_conversations.sql', '2026-11-21 21:19:18.863949+00');
INSERT INTO feishu_bot.migrations VALUES ('0040_operations.sql', '2026-11-21 21:19:18.92029+00');
INSERT INTO feishu_bot.migrations VALUES ('0041_inspection.sql', '2026-11-21 21:19:18.941093+00');
INSERT INTO feishu_bot.migrations VALUES ('0070_buttons.sql', '2026-11-21 21:19:18.946695+00');
INSERT INTO feishu_bot.migrations VALUES ('0080_cards.sql', '2026-11-21 21:19:18.964703+00');
INSERT INTO feishu_bot.migrations VALUES ('0090_summaries.sql', '2026-11-21 21:19:18.975079+00');
INSERT INTO feishu_bot.migrations VALUES ('0100_people.sql', '2026-11-21 21:19:18.985932+00');
INSERT INTO feishu_bot.migrations VALUES ('0110_vectors.sql', '2026-11-21 21:19:18.995259+00');
INSERT INTO feishu_bot.migrations VALUES ('0120_late_writes.sql', '2026-11-21 21:19:19.026127+00');

INSERT INTO feishu_bot.procrastinate_events VALUES (1, 1, 'deferred', '2026-11-21 21:19:19.333443+00');
INSERT INTO feishu_bot.procrastinate_events VALUES (2, 2, 'deferred', '2026-11-21 21:19:19.33951+00');
INSERT INTO feishu_bot.procrastinate_events VALUES (3, 3, 'deferred', '2026-11-21 21:19:19.340833+00');
INSERT INTO feishu_bot.procrastinate_events VALUES (4, 4, 'deferred', '2026-11-21 21:19:19.341605+00');
INSERT INTO feishu_bot.procrastinate_events VALUES (5, 1, 'started', '2026-11-21 21:19:19.360097+00');
INSERT INTO feishu_bot.procrastinate_events VALUES (6, 3, 'started', '2026-11-21 21:19:19.366936+00');
INSERT INTO feishu_bot.procrastinate_events VALUES (7, 3, 'failed', '2026-11-21 21:19:19.369542+00');
INSERT INTO feishu_bot.procrastinate_events VALUES (8, 5, 'deferred', '2026-11-21 21:19:19.37167+00');
INSERT INTO feishu_bot.procrastinate_events VALUES (9, 6, 'deferred', '2026-11-21 21:19:19.374948+00');

INSERT INTO feishu_bot.procrastinate_jobs VALUES (2, 'feishu', 'feishu.event', 0, 'feishu:oc_group:om_root', NULL, '{"payload": {"event": {"sender": {"sender_id": {"open_id": "ou_alice"}}, "message": {"chat_id": "oc_group", "message_id": "om_31"}}, "header": {"event_id": "event_1"}, "schema": "2.0"}, "received_ms": 1790000000000}', 'todo', NULL, 0, false, NULL);
INSERT INTO feishu_bot.procrastinate_jobs VALUES (4, 'feishu', 'feishu.event', 0, NULL, NULL, '{"payload": {"event": {"sender": {"sender_id": {"open_id": "ou_alice"}}, "message": {"chat_id": "oc_group", "message_id": "om_33"}}, "header": {"event_id": "event_3"}, "schema": "2.0"}, "received_ms": 1790000000000}', 'todo', NULL, 0, false, NULL);
INSERT INTO feishu_bot.procrastinate_jobs VALUES (1, 'feishu', 'feishu.event', 0, 'feishu:oc_group:om_root', NULL, '{"payload": {"event": {"sender": {"sender_id": {"open_id": "ou_alice"}}, "message": {"chat_id": "oc_group", "message_id": "om_30"}}, "header": {"event_id": "event_0"}, "schema": "2.0"}, "received_ms": 1790000000000}', 'doing', NULL, 0, false, 1);
INSERT INTO feishu_bot.procrastinate_jobs VALUES (3, 'feishu', 'feishu.event', 0, NULL, NULL, '{"payload": {"event": {"sender": {"sender_id": {"open_id": "ou_alice"}}, "message": {"chat_id": "oc_group", "message_id": "om_32"}}, "header": {"event_id": "event_2"}, "schema": "2.0"}, "received_ms": 1790000000000}', 'failed', NULL, 1, false, 1);
INSERT INTO feishu_bot.procrastinate_jobs VALUES (5, 'tending', 'feishu.tend', 0, NULL, 'tend:1', '{"user_id": "ou_alice", "conversation_id": "feishu:oc_group:om_root"}', 'todo', NULL, 0, false, NULL);
INSERT INTO feishu_bot.procrastinate_jobs VALUES (6, 'tending', 'feishu.period', 0, NULL, NULL, '{"timestamp": 1790000000}', 'todo', NULL, 0, false, NULL);

INSERT INTO feishu_bot.procrastinate_periodic_defers VALUES (1, 'feishu.period', 1790000000, 6, 'p');

INSERT INTO feishu_bot.procrastinate_workers OVERRIDING SYSTEM VALUE VALUES (1, '2026-11-21 21:19:19.357188+00');

INSERT INTO feishu_bot.spool OVERRIDING SYSTEM VALUE VALUES (1, 'om_20', 'feishu:oc_group:om_root', 'oc_group', 'om_root', 'ou_alice', 'ou_alice', 'Alice 李', 'tenant_1', 'asked while it was away', 'sent', 1, '[{"chunk": 0, "status": "sent", "content": "answered without memory", "message_id": "om_20_card0"}]', '[]', NULL, NULL, 3, '2026-11-21 21:19:19.306738+00', '2026-11-21 21:19:19.310036+00');
INSERT INTO feishu_bot.spool OVERRIDING SYSTEM VALUE VALUES (2, 'om_21', 'feishu:oc_group:om_root', 'oc_group', 'om_root', 'ou_alice', 'ou_alice', '', 'tenant_1', 'refused', 'open', 1, '[]', '[]', NULL, '22P02', 1, '2026-11-21 21:19:19.313837+00', NULL);

INSERT INTO public.agent_buttons VALUES ('button_000000000000001', 'group_1', 'om_8', 0, 1, 'feishu:oc_group:om_root', 'ou_alice', 'ou_alice', 'tenant_1', 'oc_group', 'group', 'follow_up', 'Tell me more', '{"text": "more"}', 'om_8_card0', '2036-11-18 21:19:19.182459+00', '2026-11-21 21:19:19.182459+00');
INSERT INTO public.agent_buttons VALUES ('button_000000000000002', 'group_2', 'om_8', 0, 2, 'feishu:oc_group:om_root', 'ou_alice', 'ou_alice', 'tenant_1', 'oc_group', 'group', 'confirm', 'Forget?', '{"command": "forget"}', 'om_8_card0', '2036-11-18 21:19:19.182459+00', '2026-11-21 21:19:19.182459+00');

INSERT INTO public.agent_cards VALUES ('om_9', 'feishu:oc_group:om_root', 'ou_alice', 'ou_alice', 'tenant_1', 'oc_group', '7355372766134157313', 'om_9', true, 'om_9_card0', 1000, true, '2026-11-21 21:19:19.203673+00', '2026-11-21 21:19:19.209406+00');

INSERT INTO public.agent_chats VALUES ('feishu:oc_group:om_root', 'ou_alice', 'tenant_1', 'oc_group', 'om_root', '问题 1: where are the noodles of Tuesday?', '2026-11-21 21:19:19.045033+00', '2026-11-21 21:19:19.211932+00', 0);
INSERT INTO public.agent_chats VALUES ('feishu:oc_private:main', 'ou_alice', 'tenant_1', 'oc_private', 'main', '我的秘密', '2026-11-21 21:19:19.160982+00', '2026-11-21 21:19:19.160982+00', 15);

INSERT INTO public.agent_decisions OVERRIDING SYSTEM VALUE VALUES (1, 'om_1', 'oc_group', 'tenant_1', 'ou_alice', true, 'explicit_trigger', 'explicit', NULL, NULL, NULL, NULL, '2026-11-21 21:19:19.303174+00');
INSERT INTO public.agent_decisions OVERRIDING SYSTEM VALUE VALUES (2, 'om_said_2', 'oc_group', 'tenant_1', 'ou_bob', false, 'llm_judge', 'judge', 'question', 1200, 'silent', 640, '2026-11-21 21:19:19.304647+00');

INSERT INTO public.agent_embeddings VALUES (19, 'om_10', 'feishu:oc_group:om_root', 'ou_alice', 'tenant_1', 'oc_group', 'stand-in', '[0.5,-0.25,0.125]');
INSERT INTO public.agent_embeddings VALUES (18, 'om_9', 'feishu:oc_group:om_root', 'ou_alice', 'tenant_1', 'oc_group', 'stand-in', '[0.60009766,-0.25,0.125]');
INSERT INTO public.agent_embeddings VALUES (17, 'om_8', 'feishu:oc_group:om_root', 'ou_alice', 'tenant_1', 'oc_group', 'stand-in', '[0.7001953,-0.25,0.125]');

INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (1, 'feishu:oc_group:om_root', 'ou_alice', 'om_1', 'tenant_1', 'oc_group', 'user', 0, '问题 1: where are the noodles of Tuesday?', 'ou_alice', 'Alice 李', 'om_1', 'received', NULL, '[]', '2026-11-21 21:19:19.045033+00', '2026-11-21 21:19:19.045033+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (2, 'feishu:oc_group:om_root', 'ou_alice', 'om_1', 'tenant_1', 'oc_group', 'assistant', 0, '答案 1: in the *canteen*, it''s 12:30', NULL, '', 'om_1_card0', 'sent', NULL, '[{"name": "get_note", "result": "it''s ''quoted'' \\ and \n broken"}]', '2026-11-21 21:19:19.0623+00', '2026-11-21 21:19:19.076085+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (3, 'feishu:oc_group:om_root', 'ou_alice', 'om_2', 'tenant_1', 'oc_group', 'user', 0, '问题 2: where are the noodles of Tuesday?', 'ou_alice', 'Alice 李', 'om_2', 'received', NULL, '[]', '2026-11-21 21:19:19.080947+00', '2026-11-21 21:19:19.080947+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (4, 'feishu:oc_group:om_root', 'ou_alice', 'om_2', 'tenant_1', 'oc_group', 'assistant', 0, '答案 2: in the *canteen*, it''s 12:30', NULL, '', 'om_2_card0', 'sent', NULL, '[{"name": "get_note", "result": "it''s ''quoted'' \\ and \n broken"}]', '2026-11-21 21:19:19.090449+00', '2026-11-21 21:19:19.098991+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (5, 'feishu:oc_group:om_root', 'ou_alice', 'om_3', 'tenant_1', 'oc_group', 'user', 0, '问题 3: where are the noodles of Tuesday?', 'ou_alice', 'Alice 李', 'om_3', 'received', NULL, '[]', '2026-11-21 21:19:19.102496+00', '2026-11-21 21:19:19.102496+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (6, 'feishu:oc_group:om_root', 'ou_alice', 'om_3', 'tenant_1', 'oc_group', 'assistant', 0, '答案 3: in the *canteen*, it''s 12:30', NULL, '', 'om_3_card0', 'sent', NULL, '[{"name": "get_note", "result": "it''s ''quoted'' \\ and \n broken"}]', '2026-11-21 21:19:19.1079+00', '2026-11-21 21:19:19.112858+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (7, 'feishu:oc_group:om_root', 'ou_alice', 'om_4', 'tenant_1', 'oc_group', 'user', 0, '问题 4: where are the noodles of Tuesday?', 'ou_alice', 'Alice 李', 'om_4', 'received', NULL, '[]', '2026-11-21 21:19:19.11581+00', '2026-11-21 21:19:19.11581+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (8, 'feishu:oc_group:om_root', 'ou_alice', 'om_4', 'tenant_1', 'oc_group', 'assistant', 0, '答案 4: in the *canteen*, it''s 12:30', NULL, '', 'om_4_card0', 'sent', NULL, '[{"name": "get_note", "result": "it''s ''quoted'' \\ and \n broken"}]', '2026-11-21 21:19:19.12076+00', '2026-11-21 21:19:19.125466+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (9, 'feishu:oc_group:om_root', 'ou_alice', 'om_5', 'tenant_1', 'oc_group', 'user', 0, 'a long question', 'ou_alice', 'Alice 李', 'om_5', 'received', NULL, '[]', '2026-11-21 21:19:19.128275+00', '2026-11-21 21:19:19.128275+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (10, 'feishu:oc_group:om_root', 'ou_alice', 'om_5', 'tenant_1', 'oc_group', 'assistant', 0, 'first card', NULL, '', 'om_5_card0', 'sent', NULL, '[]', '2026-11-21 21:19:19.133247+00', '2026-11-21 21:19:19.139452+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (11, 'feishu:oc_group:om_root', 'ou_alice', 'om_5', 'tenant_1', 'oc_group', 'assistant', 1, 'second card', NULL, '', 'om_5_card1', 'sent', NULL, '[]', '2026-11-21 21:19:19.133247+00', '2026-11-21 21:19:19.14207+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (12, 'feishu:oc_group:om_root', 'ou_alice', 'om_6', 'tenant_1', 'oc_group', 'user', 0, 'what does she say?', 'ou_bob', 'Bob', 'om_6', 'received', NULL, '[]', '2026-11-21 21:19:19.146703+00', '2026-11-21 21:19:19.146703+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (13, 'feishu:oc_group:om_root', 'ou_alice', 'om_6', 'tenant_1', 'oc_group', 'assistant', 0, 'a thing', NULL, '', 'om_6_card0', 'sent', NULL, '[]', '2026-11-21 21:19:19.152651+00', '2026-11-21 21:19:19.157723+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (14, 'feishu:oc_private:main', 'ou_alice', 'om_7', 'tenant_1', 'oc_private', 'user', 0, '我的秘密', 'ou_alice', 'Alice 李', 'om_7', 'received', NULL, '[]', '2026-11-21 21:19:19.160982+00', '2026-11-21 21:19:19.160982+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (15, 'feishu:oc_private:main', 'ou_alice', 'om_7', 'tenant_1', 'oc_private', 'assistant', 0, 'secret kept', NULL, '', 'om_7_card0', 'sent', NULL, '[]', '2026-11-21 21:19:19.166548+00', '2026-11-21 21:19:19.171461+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (16, 'feishu:oc_group:om_root', 'ou_alice', 'om_8', 'tenant_1', 'oc_group', 'user', 0, 'with buttons', 'ou_alice', 'Alice 李', 'om_8', 'received', NULL, '[]', '2026-11-21 21:19:19.174673+00', '2026-11-21 21:19:19.174673+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (17, 'feishu:oc_group:om_root', 'ou_alice', 'om_8', 'tenant_1', 'oc_group', 'assistant', 0, 'press one', NULL, '', 'om_8_card0', 'sent', NULL, '[]', '2026-11-21 21:19:19.182459+00', '2026-11-21 21:19:19.190373+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (18, 'feishu:oc_group:om_root', 'ou_alice', 'om_9', 'tenant_1', 'oc_group', 'user', 0, 'still being answered', 'ou_alice', 'Alice 李', 'om_9', 'received', NULL, '[]', '2026-11-21 21:19:19.197783+00', '2026-11-21 21:19:19.197783+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (19, 'feishu:oc_group:om_root', 'ou_alice', 'om_10', 'tenant_1', 'oc_group', 'user', 0, 'cannot be sent', 'ou_alice', 'Alice 李', 'om_10', 'received', NULL, '[]', '2026-11-21 21:19:19.211932+00', '2026-11-21 21:19:19.211932+00');
INSERT INTO public.agent_messages OVERRIDING SYSTEM VALUE VALUES (20, 'feishu:oc_group:om_root', 'ou_alice', 'om_10', 'tenant_1', 'oc_group', 'assistant', 0, 'never seen', NULL, '', NULL, 'failed', '230002 no permission', '[]', '2026-11-21 21:19:19.218213+00', '2026-11-21 21:19:19.223229+00');

INSERT INTO public.agent_note_uses OVERRIDING SYSTEM VALUE VALUES ('feishu:oc_group:om_root', 'ou_alice', 'note_2rzv4orgly', 'tenant_1', 2, 'created', '2026-11-21 21:19:19.257967+00');
INSERT INTO public.agent_note_uses OVERRIDING SYSTEM VALUE VALUES ('feishu:oc_group:om_root', 'ou_alice', 'note_nodle477gt', 'tenant_1', 1, 'shared', '2026-11-21 21:19:19.261927+00');

INSERT INTO public.agent_notes VALUES ('note_2rzv4orgly', 'ou_alice', 'tenant_1', 'oc_group', 'feishu:oc_group:om_root', 'It''s private', '', '{}', NULL, '2026-11-21 21:19:19.254219+00', '2026-11-21 21:19:19.254219+00');
INSERT INTO public.agent_notes VALUES ('note_nodle477gt', 'ou_alice', 'tenant_1', 'oc_group', 'feishu:oc_group:om_root', 'Shopping', 'noodles
tea', '{food,周二}', 'oc_group', '2026-11-21 21:19:19.248804+00', '2026-11-21 21:19:19.259636+00');

INSERT INTO public.agent_presses VALUES ('group_1', 'button_000000000000001', 'oc_group', 'tenant_1', 'ou_bob', 'event_1', '2026-11-21 21:19:19.194349+00');

INSERT INTO public.agent_summaries OVERRIDING SYSTEM VALUE VALUES (1, 'feishu:oc_group:om_root', 'ou_alice', 'tenant_1', 'oc_group', 1, 'They spoke of noodles.', '["note_1", "Alice 李"]', 4, 4, '2026-11-21 21:19:19.27545+00', '2026-11-21 21:19:19.27545+00');

INSERT INTO public.agent_turn_terms VALUES ('om_1', 'feishu:oc_group:om_root', 'ou_alice', 'tenant_1', 'oc_group', 1, '2026-11-21 21:19:19.045033+00', 9, '''1'':2,6 ''12'':8 ''30'':9 ''canteen'':7 ''noodl'':3 ''tuesda'':4 ''答案'':5 ''问题'':1');
INSERT INTO public.agent_turn_terms VALUES ('om_2', 'feishu:oc_group:om_root', 'ou_alice', 'tenant_1', 'oc_group', 3, '2026-11-21 21:19:19.080947+00', 9, '''12'':8 ''2'':2,6 ''30'':9 ''canteen'':7 ''noodl'':3 ''tuesda'':4 ''答案'':5 ''问题'':1');
INSERT INTO public.agent_turn_terms VALUES ('om_3', 'feishu:oc_group:om_root', 'ou_alice', 'tenant_1', 'oc_group', 5, '2026-11-21 21:19:19.102496+00', 9, '''12'':8 ''3'':2,6 ''30'':9 ''canteen'':7 ''noodl'':3 ''tuesda'':4 ''答案'':5 ''问题'':1');
INSERT INTO public.agent_turn_terms VALUES ('om_4', 'feishu:oc_group:om_root', 'ou_alice', 'tenant_1', 'oc_group', 7, '2026-11-21 21:19:19.11581+00', 9, '''12'':8 ''30'':9 ''4'':2,6 ''canteen'':7 ''noodl'':3 ''tuesda'':4 ''答案'':5 ''问题'':1');
INSERT INTO public.agent_turn_terms VALUES ('om_5', 'feishu:oc_group:om_root', 'ou_alice', 'tenant_1', 'oc_group', 9, '2026-11-21 21:19:19.128275+00', 6, '''card'':4,6 ''first'':3 ''long'':1 ''question'':2 ''second'':5');
INSERT INTO public.agent_turn_terms VALUES ('om_6', 'feishu:oc_group:om_root', 'ou_alice', 'tenant_1', 'oc_group', 12, '2026-11-21 21:19:19.146703+00', 3, '''say'':2 ''she'':1 ''thing'':3');
INSERT INTO public.agent_turn_terms VALUES ('om_7', 'feishu:oc_private:main', 'ou_alice', 'tenant_1', 'oc_private', 14, '2026-11-21 21:19:19.160982+00', 3, '''kept'':3 ''secret'':2 ''秘密'':1');
INSERT INTO public.agent_turn_terms VALUES ('om_8', 'feishu:oc_group:om_root', 'ou_alice', 'tenant_1', 'oc_group', 16, '2026-11-21 21:19:19.174673+00', 3, '''button'':1 ''one'':3 ''pres'':2');
INSERT INTO public.agent_turn_terms VALUES ('om_10', 'feishu:oc_group:om_root', 'ou_alice', 'tenant_1', 'oc_group', 19, '2026-11-21 21:19:19.211932+00', 2, '''cannot'':1 ''sent'':2');

INSERT INTO public.agent_turns VALUES ('om_1', 'feishu:oc_group:om_root', 'ou_alice', 'ou_alice', 'tenant_1', 'oc_group', 'sent', 1, NULL, '2026-11-21 21:19:19.045033+00', '2026-11-21 21:19:19.076085+00');
INSERT INTO public.agent_turns VALUES ('om_2', 'feishu:oc_group:om_root', 'ou_alice', 'ou_alice', 'tenant_1', 'oc_group', 'sent', 1, NULL, '2026-11-21 21:19:19.080947+00', '2026-11-21 21:19:19.098991+00');
INSERT INTO public.agent_turns VALUES ('om_3', 'feishu:oc_group:om_root', 'ou_alice', 'ou_alice', 'tenant_1', 'oc_group', 'sent', 1, NULL, '2026-11-21 21:19:19.102496+00', '2026-11-21 21:19:19.112858+00');
INSERT INTO public.agent_turns VALUES ('om_4', 'feishu:oc_group:om_root', 'ou_alice', 'ou_alice', 'tenant_1', 'oc_group', 'sent', 1, NULL, '2026-11-21 21:19:19.11581+00', '2026-11-21 21:19:19.125466+00');
INSERT INTO public.agent_turns VALUES ('om_5', 'feishu:oc_group:om_root', 'ou_alice', 'ou_alice', 'tenant_1', 'oc_group', 'sent', 1, NULL, '2026-11-21 21:19:19.128275+00', '2026-11-21 21:19:19.14207+00');
INSERT INTO public.agent_turns VALUES ('om_6', 'feishu:oc_group:om_root', 'ou_alice', 'ou_bob', 'tenant_1', 'oc_group', 'sent', 1, NULL, '2026-11-21 21:19:19.146703+00', '2026-11-21 21:19:19.157723+00');
INSERT INTO public.agent_turns VALUES ('om_7', 'feishu:oc_private:main', 'ou_alice', 'ou_alice', 'tenant_1', 'oc_private', 'sent', 1, NULL, '2026-11-21 21:19:19.160982+00', '2026-11-21 21:19:19.171461+00');
INSERT INTO public.agent_turns VALUES ('om_8', 'feishu:oc_group:om_root', 'ou_alice', 'ou_alice', 'tenant_1', 'oc_group', 'sent', 1, NULL, '2026-11-21 21:19:19.174673+00', '2026-11-21 21:19:19.190373+00');
INSERT INTO public.agent_turns VALUES ('om_9', 'feishu:oc_group:om_root', 'ou_alice', 'ou_alice', 'tenant_1', 'oc_group', 'open', 1, NULL, '2026-11-21 21:19:19.197783+00', '2026-11-21 21:19:19.197783+00');
INSERT INTO public.agent_turns VALUES ('om_10', 'feishu:oc_group:om_root', 'ou_alice', 'ou_alice', 'tenant_1', 'oc_group', 'failed', 1, '230002 no permission', '2026-11-21 21:19:19.211932+00', '2026-11-21 21:19:19.223229+00');

INSERT INTO public.agent_working_memory OVERRIDING SYSTEM VALUE VALUES (1, 'feishu:oc_group:om_root', 'ou_alice', 'tenant_1', 'oc_group', 'chat', '{"when": {"day": "Tuesday"}, "topic": "rice"}', '2026-11-21 21:19:19.233787+00', '2026-11-21 21:19:19.239971+00');
INSERT INTO public.agent_working_memory OVERRIDING SYSTEM VALUE VALUES (3, '', 'ou_alice', 'tenant_1', '', 'user', '{"语言": "中文"}', '2026-11-21 21:19:19.244946+00', '2026-11-21 21:19:19.244946+00');

INSERT INTO public.agent_working_memory_history OVERRIDING SYSTEM VALUE VALUES (1, 1, 'ou_alice', 'tenant_1', 'ou_alice', 'chat', 'feishu:oc_group:om_root', 'oc_group', '{}', '{"when": {"day": "Tuesday"}, "topic": "noodles"}', '2026-11-21 21:19:19.237873+00');
INSERT INTO public.agent_working_memory_history OVERRIDING SYSTEM VALUE VALUES (2, 1, 'ou_alice', 'tenant_1', 'ou_bob', 'chat', 'feishu:oc_group:om_root', 'oc_group', '{"topic": "noodles"}', '{"topic": "rice"}', '2026-11-21 21:19:19.243048+00');
INSERT INTO public.agent_working_memory_history OVERRIDING SYSTEM VALUE VALUES (3, 3, 'ou_alice', 'tenant_1', 'ou_alice', 'user', '', '', '{}', '{"语言": "中文"}', '2026-11-21 21:19:19.246652+00');

INSERT INTO public.chat_conversations VALUES ('oc_group', 'tenant_1', true, false, 1790000000000, 1790000000002, '2026-11-21 21:19:19.295362+00');
INSERT INTO public.chat_conversations VALUES ('oc_quiet', 'tenant_1', false, true, 0, 0, '2026-11-21 21:19:19.300805+00');

INSERT INTO public.chat_transcript VALUES ('oc_group', 'om_said_0', 'tenant_1', NULL, 'Alice', 'ou_alice', 'message 0 it''s 你好', 1790000000000, false, false);
INSERT INTO public.chat_transcript VALUES ('oc_group', 'om_said_1', 'tenant_1', NULL, 'Bot', 'ou_bot', 'message 1 it''s 你好', 1790000000001, true, false);
INSERT INTO public.chat_transcript VALUES ('oc_group', 'om_said_2', 'tenant_1', NULL, 'Bob', 'ou_bob', 'message 2 it''s 你好', 1790000000002, false, false);

INSERT INTO public.people VALUES ('tenant_1', 'ou_bob', 'Bob', '2026-09-21 14:13:20+00', NULL, '2026-11-21 21:19:19.286416+00', '2026-11-21 21:19:19.286416+00');
INSERT INTO public.people VALUES ('tenant_1', 'ou_carol', '', NULL, NULL, '2026-11-21 21:19:19.286416+00', '2026-11-21 21:19:19.286416+00');
INSERT INTO public.people VALUES ('tenant_1', 'ou_alice', 'Alice 李', '2026-09-21 14:13:20+00', '23d767ee-895a-5cad-9dc9-8eeb44567f65', '2026-11-21 21:19:19.286416+00', '2026-11-21 21:19:19.28912+00');

INSERT INTO public.recalled_messages VALUES ('om_11', 'oc_group', '2026-11-21 21:19:19.229703+00');

SELECT pg_catalog.setval('feishu_bot.late_writes_seq_seq', 2, true);

SELECT pg_catalog.setval('feishu_bot.procrastinate_events_id_seq', 9, true);

SELECT pg_catalog.setval('feishu_bot.procrastinate_jobs_id_seq', 6, true);

SELECT pg_catalog.setval('feishu_bot.procrastinate_periodic_defers_id_seq', 1, true);

SELECT pg_catalog.setval('feishu_bot.procrastinate_workers_id_seq', 1, true);

SELECT pg_catalog.setval('feishu_bot.spool_seq_seq', 2, true);

SELECT pg_catalog.setval('public.agent_decisions_id_seq', 2, true);

SELECT pg_catalog.setval('public.agent_messages_id_seq', 20, true);

SELECT pg_catalog.setval('public.agent_note_uses_ordinal_seq', 5, true);

SELECT pg_catalog.setval('public.agent_summaries_id_seq', 1, true);

SELECT pg_catalog.setval('public.agent_working_memory_history_id_seq', 3, true);

SELECT pg_catalog.setval('public.agent_working_memory_id_seq', 3, true);

ALTER TABLE ONLY feishu_bot.inbox
    ADD CONSTRAINT inbox_pkey PRIMARY KEY (key);

ALTER TABLE ONLY feishu_bot.late_writes
    ADD CONSTRAINT late_writes_pkey PRIMARY KEY (seq);

ALTER TABLE ONLY feishu_bot.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (name);

ALTER TABLE ONLY feishu_bot.procrastinate_events
    ADD CONSTRAINT procrastinate_events_pkey PRIMARY KEY (id);

ALTER TABLE ONLY feishu_bot.procrastinate_jobs
    ADD CONSTRAINT procrastinate_jobs_pkey PRIMARY KEY (id);

ALTER TABLE ONLY feishu_bot.procrastinate_periodic_defers
    ADD CONSTRAINT procrastinate_periodic_defers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY feishu_bot.procrastinate_periodic_defers
    ADD CONSTRAINT procrastinate_periodic_defers_unique UNIQUE (task_name, periodic_id, defer_timestamp);

ALTER TABLE ONLY feishu_bot.procrastinate_workers
    ADD CONSTRAINT procrastinate_workers_pkey PRIMARY KEY (id);

ALTER TABLE ONLY feishu_bot.spool
    ADD CONSTRAINT spool_pkey PRIMARY KEY (seq);

ALTER TABLE ONLY feishu_bot.spool
    ADD CONSTRAINT spool_turn_id_key UNIQUE (turn_id);

ALTER TABLE ONLY public.agent_buttons
    ADD CONSTRAINT agent_buttons_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.agent_cards
    ADD CONSTRAINT agent_cards_pkey PRIMARY KEY (turn_id);

ALTER TABLE ONLY public.agent_chats
    ADD CONSTRAINT agent_chats_pkey PRIMARY KEY (id, user_id);

ALTER TABLE ONLY public.agent_decisions
    ADD CONSTRAINT agent_decisions_message_id_key UNIQUE (message_id);

ALTER TABLE ONLY public.agent_decisions
    ADD CONSTRAINT agent_decisions_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.agent_embeddings
    ADD CONSTRAINT agent_embeddings_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.agent_messages
    ADD CONSTRAINT agent_messages_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.agent_messages
    ADD CONSTRAINT agent_messages_turn_id_role_chunk_key UNIQUE (turn_id, role, chunk);

ALTER TABLE ONLY public.agent_note_uses
    ADD CONSTRAINT agent_note_uses_pkey PRIMARY KEY (conversation_id, user_id, note_id);

ALTER TABLE ONLY public.agent_notes
    ADD CONSTRAINT agent_notes_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.agent_presses
    ADD CONSTRAINT agent_presses_pkey PRIMARY KEY (group_id);

ALTER TABLE ONLY public.agent_summaries
    ADD CONSTRAINT agent_summaries_conversation_id_user_id_key UNIQUE (conversation_id, user_id);

ALTER TABLE ONLY public.agent_summaries
    ADD CONSTRAINT agent_summaries_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.agent_turn_terms
    ADD CONSTRAINT agent_turn_terms_pkey PRIMARY KEY (turn_id);

ALTER TABLE ONLY public.agent_turns
    ADD CONSTRAINT agent_turns_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.agent_working_memory_history
    ADD CONSTRAINT agent_working_memory_history_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.agent_working_memory
    ADD CONSTRAINT agent_working_memory_pkey PRIMARY KEY (id);

ALTER TABLE ONLY public.agent_working_memory
    ADD CONSTRAINT agent_working_memory_user_id_tenant_key_scope_conversation__key UNIQUE (user_id, tenant_key, scope, conversation_id);

ALTER TABLE ONLY public.chat_conversations
    ADD CONSTRAINT chat_conversations_pkey PRIMARY KEY (chat_id);

ALTER TABLE ONLY public.chat_transcript
    ADD CONSTRAINT chat_transcript_pkey PRIMARY KEY (chat_id, message_id);

ALTER TABLE ONLY public.people
    ADD CONSTRAINT people_pkey PRIMARY KEY (tenant_key, open_id);

ALTER TABLE ONLY public.recalled_messages
    ADD CONSTRAINT recalled_messages_pkey PRIMARY KEY (message_id);

CREATE INDEX idx_procrastinate_jobs_worker_not_null ON feishu_bot.procrastinate_jobs USING btree (worker_id) WHERE ((worker_id IS NOT NULL) AND (status = 'doing'::feishu_bot.procrastinate_job_status));

CREATE INDEX idx_procrastinate_workers_last_heartbeat ON feishu_bot.procrastinate_workers USING btree (last_heartbeat);

CREATE INDEX inbox_received_idx ON feishu_bot.inbox USING btree (received_at);

CREATE INDEX late_writes_recall_idx ON feishu_bot.late_writes USING btree (seq) WHERE ((function = 'recall_message'::text) AND (refused IS NULL));

CREATE INDEX procrastinate_events_job_id_fkey_v1 ON feishu_bot.procrastinate_events USING btree (job_id);

CREATE INDEX procrastinate_jobs_id_lock_idx_v1 ON feishu_bot.procrastinate_jobs USING btree (id, lock) WHERE (status = ANY (ARRAY['todo'::feishu_bot.procrastinate_job_status, 'doing'::feishu_bot.procrastinate_job_status]));

CREATE UNIQUE INDEX procrastinate_jobs_lock_idx_v1 ON feishu_bot.procrastinate_jobs USING btree (lock) WHERE (status = 'doing'::feishu_bot.procrastinate_job_status);

CREATE INDEX procrastinate_jobs_priority_idx_v1 ON feishu_bot.procrastinate_jobs USING btree (priority DESC, id) WHERE (status = 'todo'::feishu_bot.procrastinate_job_status);

CREATE INDEX procrastinate_jobs_queue_name_idx_v1 ON feishu_bot.procrastinate_jobs USING btree (queue_name);

CREATE UNIQUE INDEX procrastinate_jobs_queueing_lock_idx_v1 ON feishu_bot.procrastinate_jobs USING btree (queueing_lock) WHERE (status = 'todo'::feishu_bot.procrastinate_job_status);

CREATE INDEX procrastinate_periodic_defers_job_id_fkey_v1 ON feishu_bot.procrastinate_periodic_defers USING btree (job_id);

CREATE INDEX spool_actor_idx ON feishu_bot.spool USING btree (actor_id);

CREATE INDEX spool_person_idx ON feishu_bot.spool USING btree (user_id);

CREATE INDEX spool_waiting_idx ON feishu_bot.spool USING btree (conversation_id, user_id, seq) WHERE (refused IS NULL);

CREATE INDEX agent_buttons_actor_idx ON public.agent_buttons USING btree (actor_id);

CREATE INDEX agent_buttons_conversation_idx ON public.agent_buttons USING btree (conversation_id, user_id);

CREATE INDEX agent_buttons_turn_idx ON public.agent_buttons USING btree (turn_id, chunk, ordinal);

CREATE INDEX agent_buttons_user_idx ON public.agent_buttons USING btree (user_id);

CREATE INDEX agent_cards_actor_idx ON public.agent_cards USING btree (actor_id);

CREATE INDEX agent_cards_conversation_idx ON public.agent_cards USING btree (conversation_id, user_id);

CREATE INDEX agent_cards_streaming_idx ON public.agent_cards USING btree (opened_at) WHERE streaming;

CREATE INDEX agent_cards_user_idx ON public.agent_cards USING btree (user_id);

CREATE INDEX agent_chats_chat_idx ON public.agent_chats USING btree (chat_id);

CREATE INDEX agent_chats_user_idx ON public.agent_chats USING btree (user_id, updated_at DESC);

CREATE INDEX agent_decisions_chat_idx ON public.agent_decisions USING btree (chat_id, id DESC);

CREATE INDEX agent_decisions_time_idx ON public.agent_decisions USING btree (created_at);

CREATE INDEX agent_embeddings_conversation_idx ON public.agent_embeddings USING btree (conversation_id, user_id);

CREATE INDEX agent_embeddings_turn_idx ON public.agent_embeddings USING btree (turn_id);

CREATE INDEX agent_embeddings_user_idx ON public.agent_embeddings USING btree (user_id);

CREATE INDEX agent_messages_history_idx ON public.agent_messages USING btree (conversation_id, user_id, id DESC);

CREATE INDEX agent_messages_message_idx ON public.agent_messages USING btree (message_id);

CREATE INDEX agent_messages_user_idx ON public.agent_messages USING btree (user_id, id DESC);

CREATE INDEX agent_note_uses_note_idx ON public.agent_note_uses USING btree (note_id);

CREATE INDEX agent_notes_shared_idx ON public.agent_notes USING btree (shared_chat_id) WHERE (shared_chat_id IS NOT NULL);

CREATE INDEX agent_notes_user_idx ON public.agent_notes USING btree (user_id, created_at DESC);

CREATE INDEX agent_presses_button_idx ON public.agent_presses USING btree (button_id);

CREATE INDEX agent_presses_operator_idx ON public.agent_presses USING btree (operator_id);

CREATE INDEX agent_summaries_user_idx ON public.agent_summaries USING btree (user_id);

CREATE INDEX agent_turn_terms_thread_idx ON public.agent_turn_terms USING btree (conversation_id, user_id, first_id);

CREATE INDEX agent_turn_terms_user_idx ON public.agent_turn_terms USING btree (user_id, chat_id);

CREATE INDEX agent_turns_actor_idx ON public.agent_turns USING btree (actor_id);

CREATE INDEX agent_turns_chat_idx ON public.agent_turns USING btree (conversation_id, user_id);

CREATE INDEX agent_turns_created_idx ON public.agent_turns USING btree (created_at);

CREATE INDEX agent_turns_unfinished_idx ON public.agent_turns USING btree (updated_at) WHERE (state = ANY (ARRAY['open'::text, 'pending'::text]));

CREATE INDEX agent_working_memory_chat_idx ON public.agent_working_memory USING btree (conversation_id) WHERE (scope = 'chat'::text);

CREATE INDEX agent_working_memory_history_idx ON public.agent_working_memory_history USING btree (working_memory_id, id DESC);

CREATE INDEX chat_transcript_author_idx ON public.chat_transcript USING btree (author_id);

CREATE INDEX chat_transcript_time_idx ON public.chat_transcript USING btree (chat_id, "timestamp" DESC);

CREATE UNIQUE INDEX people_auth_user_idx ON public.people USING btree (auth_user_id) WHERE (auth_user_id IS NOT NULL);

CREATE INDEX people_open_id_idx ON public.people USING btree (open_id);

CREATE INDEX people_unlinked_idx ON public.people USING btree (tenant_key, open_id) WHERE (auth_user_id IS NULL);

CREATE TRIGGER free_queueing_lock_of_running BEFORE UPDATE OF status ON feishu_bot.procrastinate_jobs FOR EACH ROW WHEN (((new.status = 'doing'::feishu_bot.procrastinate_job_status) AND (old.status = 'todo'::feishu_bot.procrastinate_job_status) AND (old.queueing_lock IS NOT NULL))) EXECUTE FUNCTION feishu_bot.free_queueing_lock();

CREATE TRIGGER procrastinate_jobs_notify_queue_job_aborted_v1 AFTER UPDATE OF abort_requested ON feishu_bot.procrastinate_jobs FOR EACH ROW WHEN (((old.abort_requested = false) AND (new.abort_requested = true) AND (new.status = 'doing'::feishu_bot.procrastinate_job_status))) EXECUTE FUNCTION feishu_bot.procrastinate_notify_queue_abort_job_v1();

CREATE TRIGGER procrastinate_jobs_notify_queue_job_inserted_v1 AFTER INSERT ON feishu_bot.procrastinate_jobs FOR EACH ROW WHEN ((new.status = 'todo'::feishu_bot.procrastinate_job_status)) EXECUTE FUNCTION feishu_bot.procrastinate_notify_queue_job_inserted_v1();

CREATE TRIGGER procrastinate_trigger_abort_requested_events_v1 AFTER UPDATE OF abort_requested ON feishu_bot.procrastinate_jobs FOR EACH ROW WHEN ((new.abort_requested = true)) EXECUTE FUNCTION feishu_bot.procrastinate_trigger_abort_requested_events_procedure_v1();

CREATE TRIGGER procrastinate_trigger_delete_jobs_v1 BEFORE DELETE ON feishu_bot.procrastinate_jobs FOR EACH ROW EXECUTE FUNCTION feishu_bot.procrastinate_unlink_periodic_defers_v1();

CREATE TRIGGER procrastinate_trigger_scheduled_events_v1 AFTER INSERT OR UPDATE ON feishu_bot.procrastinate_jobs FOR EACH ROW WHEN (((new.scheduled_at IS NOT NULL) AND (new.status = 'todo'::feishu_bot.procrastinate_job_status))) EXECUTE FUNCTION feishu_bot.procrastinate_trigger_function_scheduled_events_v1();

CREATE TRIGGER procrastinate_trigger_status_events_insert_v1 AFTER INSERT ON feishu_bot.procrastinate_jobs FOR EACH ROW WHEN ((new.status = 'todo'::feishu_bot.procrastinate_job_status)) EXECUTE FUNCTION feishu_bot.procrastinate_trigger_function_status_events_insert_v1();

CREATE TRIGGER procrastinate_trigger_status_events_update_v1 AFTER UPDATE OF status ON feishu_bot.procrastinate_jobs FOR EACH ROW EXECUTE FUNCTION feishu_bot.procrastinate_trigger_function_status_events_update_v1();

CREATE TRIGGER wake_waiting_after_delete AFTER DELETE ON feishu_bot.procrastinate_jobs FOR EACH ROW WHEN (((old.status = 'doing'::feishu_bot.procrastinate_job_status) AND (old.lock IS NOT NULL))) EXECUTE FUNCTION feishu_bot.wake_waiting();

CREATE TRIGGER wake_waiting_after_end AFTER UPDATE OF status ON feishu_bot.procrastinate_jobs FOR EACH ROW WHEN (((old.status = 'doing'::feishu_bot.procrastinate_job_status) AND (new.status <> 'doing'::feishu_bot.procrastinate_job_status) AND (old.lock IS NOT NULL))) EXECUTE FUNCTION feishu_bot.wake_waiting();

CREATE TRIGGER agent_chats_drop_working_memory AFTER DELETE ON public.agent_chats FOR EACH ROW EXECUTE FUNCTION public.drop_working_memory_of_chat();

CREATE TRIGGER agent_messages_drop_embedding AFTER UPDATE OF content, status ON public.agent_messages FOR EACH ROW WHEN (((old.content <> new.content) OR ((old.status = 'failed'::text) <> (new.status = 'failed'::text)))) EXECUTE FUNCTION public.drop_embedding();

CREATE TRIGGER agent_messages_drop_words AFTER DELETE ON public.agent_messages REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION public.drop_words_of_messages();

CREATE TRIGGER agent_messages_index_delete AFTER DELETE ON public.agent_messages FOR EACH ROW EXECUTE FUNCTION public.index_turn();

CREATE TRIGGER agent_messages_index_insert AFTER INSERT ON public.agent_messages FOR EACH ROW EXECUTE FUNCTION public.index_turn();

CREATE TRIGGER agent_messages_index_update AFTER UPDATE OF content, status ON public.agent_messages FOR EACH ROW WHEN (((old.content <> new.content) OR ((old.status = 'failed'::text) <> (new.status = 'failed'::text)))) EXECUTE FUNCTION public.index_turn();

CREATE TRIGGER agent_messages_place_buttons AFTER UPDATE OF message_id ON public.agent_messages FOR EACH ROW WHEN (((new.role = 'assistant'::text) AND (new.message_id IS DISTINCT FROM old.message_id))) EXECUTE FUNCTION public.place_buttons();

CREATE TRIGGER agent_working_memory_record_insert AFTER INSERT ON public.agent_working_memory FOR EACH ROW EXECUTE FUNCTION public.record_working_memory_change();

CREATE TRIGGER agent_working_memory_record_update AFTER UPDATE OF content ON public.agent_working_memory FOR EACH ROW WHEN ((old.content <> new.content)) EXECUTE FUNCTION public.record_working_memory_change();

ALTER TABLE ONLY feishu_bot.procrastinate_events
    ADD CONSTRAINT procrastinate_events_job_id_fkey FOREIGN KEY (job_id) REFERENCES feishu_bot.procrastinate_jobs(id) ON DELETE CASCADE;

ALTER TABLE ONLY feishu_bot.procrastinate_jobs
    ADD CONSTRAINT procrastinate_jobs_worker_id_fkey FOREIGN KEY (worker_id) REFERENCES feishu_bot.procrastinate_workers(id) ON DELETE SET NULL;

ALTER TABLE ONLY feishu_bot.procrastinate_periodic_defers
    ADD CONSTRAINT procrastinate_periodic_defers_job_id_fkey FOREIGN KEY (job_id) REFERENCES feishu_bot.procrastinate_jobs(id);

ALTER TABLE ONLY public.agent_buttons
    ADD CONSTRAINT agent_buttons_turn_id_fkey FOREIGN KEY (turn_id) REFERENCES public.agent_turns(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.agent_cards
    ADD CONSTRAINT agent_cards_turn_id_fkey FOREIGN KEY (turn_id) REFERENCES public.agent_turns(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.agent_embeddings
    ADD CONSTRAINT agent_embeddings_id_fkey FOREIGN KEY (id) REFERENCES public.agent_messages(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.agent_messages
    ADD CONSTRAINT agent_messages_conversation_id_user_id_fkey FOREIGN KEY (conversation_id, user_id) REFERENCES public.agent_chats(id, user_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.agent_messages
    ADD CONSTRAINT agent_messages_turn_id_fkey FOREIGN KEY (turn_id) REFERENCES public.agent_turns(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.agent_note_uses
    ADD CONSTRAINT agent_note_uses_conversation_id_user_id_fkey FOREIGN KEY (conversation_id, user_id) REFERENCES public.agent_chats(id, user_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.agent_note_uses
    ADD CONSTRAINT agent_note_uses_note_id_fkey FOREIGN KEY (note_id) REFERENCES public.agent_notes(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.agent_presses
    ADD CONSTRAINT agent_presses_button_id_fkey FOREIGN KEY (button_id) REFERENCES public.agent_buttons(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.agent_summaries
    ADD CONSTRAINT agent_summaries_conversation_id_user_id_fkey FOREIGN KEY (conversation_id, user_id) REFERENCES public.agent_chats(id, user_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.agent_turn_terms
    ADD CONSTRAINT agent_turn_terms_turn_id_fkey FOREIGN KEY (turn_id) REFERENCES public.agent_turns(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.agent_turns
    ADD CONSTRAINT agent_turns_conversation_id_user_id_fkey FOREIGN KEY (conversation_id, user_id) REFERENCES public.agent_chats(id, user_id) ON DELETE CASCADE;

ALTER TABLE ONLY public.agent_working_memory_history
    ADD CONSTRAINT agent_working_memory_history_working_memory_id_fkey FOREIGN KEY (working_memory_id) REFERENCES public.agent_working_memory(id) ON DELETE CASCADE;

ALTER TABLE ONLY public.chat_transcript
    ADD CONSTRAINT chat_transcript_chat_id_fkey FOREIGN KEY (chat_id) REFERENCES public.chat_conversations(chat_id) ON DELETE CASCADE;

ALTER TABLE feishu_bot.inbox ENABLE ROW LEVEL SECURITY;

ALTER TABLE feishu_bot.late_writes ENABLE ROW LEVEL SECURITY;

ALTER TABLE feishu_bot.migrations ENABLE ROW LEVEL SECURITY;

ALTER TABLE feishu_bot.procrastinate_events ENABLE ROW LEVEL SECURITY;

ALTER TABLE feishu_bot.procrastinate_jobs ENABLE ROW LEVEL SECURITY;

ALTER TABLE feishu_bot.procrastinate_periodic_defers ENABLE ROW LEVEL SECURITY;

ALTER TABLE feishu_bot.procrastinate_workers ENABLE ROW LEVEL SECURITY;

ALTER TABLE feishu_bot.spool ENABLE ROW LEVEL SECURITY;

ALTER TABLE public.agent_buttons ENABLE ROW LEVEL SECURITY;

CREATE POLICY agent_buttons_insert ON public.agent_buttons FOR INSERT TO authenticated WITH CHECK (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND (user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (actor_id = ( SELECT public.claim('actor'::text) AS claim))));

CREATE POLICY agent_buttons_select ON public.agent_buttons FOR SELECT TO authenticated USING (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

CREATE POLICY agent_buttons_update ON public.agent_buttons FOR UPDATE TO authenticated USING (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND (user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (actor_id = ( SELECT public.claim('actor'::text) AS claim)))) WITH CHECK (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND (user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (actor_id = ( SELECT public.claim('actor'::text) AS claim))));

ALTER TABLE public.agent_cards ENABLE ROW LEVEL SECURITY;

CREATE POLICY agent_cards_insert ON public.agent_cards FOR INSERT TO authenticated WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim))) AND (actor_id = ( SELECT public.claim('actor'::text) AS claim))));

CREATE POLICY agent_cards_select ON public.agent_cards FOR SELECT TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

CREATE POLICY agent_cards_update ON public.agent_cards FOR UPDATE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim))))) WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

ALTER TABLE public.agent_chats ENABLE ROW LEVEL SECURITY;

CREATE POLICY agent_chats_delete ON public.agent_chats FOR DELETE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (user_id = ( SELECT public.claim('actor'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

CREATE POLICY agent_chats_insert ON public.agent_chats FOR INSERT TO authenticated WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

CREATE POLICY agent_chats_select ON public.agent_chats FOR SELECT TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

CREATE POLICY agent_chats_update ON public.agent_chats FOR UPDATE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim))))) WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

ALTER TABLE public.agent_decisions ENABLE ROW LEVEL SECURITY;

CREATE POLICY agent_decisions_insert ON public.agent_decisions FOR INSERT TO authenticated WITH CHECK (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND (actor_id = ( SELECT public.claim('actor'::text) AS claim))));

CREATE POLICY agent_decisions_select ON public.agent_decisions FOR SELECT TO authenticated USING (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

ALTER TABLE public.agent_embeddings ENABLE ROW LEVEL SECURITY;

CREATE POLICY agent_embeddings_delete ON public.agent_embeddings FOR DELETE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

CREATE POLICY agent_embeddings_insert ON public.agent_embeddings FOR INSERT TO authenticated WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

CREATE POLICY agent_embeddings_select ON public.agent_embeddings FOR SELECT TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

CREATE POLICY agent_embeddings_update ON public.agent_embeddings FOR UPDATE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim))))) WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

ALTER TABLE public.agent_messages ENABLE ROW LEVEL SECURITY;

CREATE POLICY agent_messages_delete ON public.agent_messages FOR DELETE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (user_id = ( SELECT public.claim('actor'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

CREATE POLICY agent_messages_insert ON public.agent_messages FOR INSERT TO authenticated WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim))) AND ((actor_id IS NULL) OR (actor_id = ( SELECT public.claim('actor'::text) AS claim)))));

CREATE POLICY agent_messages_select ON public.agent_messages FOR SELECT TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

CREATE POLICY agent_messages_update ON public.agent_messages FOR UPDATE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim))))) WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

ALTER TABLE public.agent_note_uses ENABLE ROW LEVEL SECURITY;

CREATE POLICY agent_note_uses_delete ON public.agent_note_uses FOR DELETE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (user_id = ( SELECT public.claim('actor'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

CREATE POLICY agent_note_uses_insert ON public.agent_note_uses FOR INSERT TO authenticated WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (user_id = ( SELECT public.claim('actor'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

CREATE POLICY agent_note_uses_select ON public.agent_note_uses FOR SELECT TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (user_id = ( SELECT public.claim('actor'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

CREATE POLICY agent_note_uses_update ON public.agent_note_uses FOR UPDATE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (user_id = ( SELECT public.claim('actor'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)))) WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (user_id = ( SELECT public.claim('actor'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

ALTER TABLE public.agent_notes ENABLE ROW LEVEL SECURITY;

CREATE POLICY agent_notes_delete ON public.agent_notes FOR DELETE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (user_id = ( SELECT public.claim('actor'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

CREATE POLICY agent_notes_insert ON public.agent_notes FOR INSERT TO authenticated WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (user_id = ( SELECT public.claim('actor'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

CREATE POLICY agent_notes_select ON public.agent_notes FOR SELECT TO authenticated USING ((((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (user_id = ( SELECT public.claim('actor'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))) OR ((shared_chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)))));

CREATE POLICY agent_notes_update ON public.agent_notes FOR UPDATE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (user_id = ( SELECT public.claim('actor'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)))) WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (user_id = ( SELECT public.claim('actor'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

ALTER TABLE public.agent_presses ENABLE ROW LEVEL SECURITY;

CREATE POLICY agent_presses_insert ON public.agent_presses FOR INSERT TO authenticated WITH CHECK (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND (operator_id = ( SELECT public.claim('actor'::text) AS claim))));

CREATE POLICY agent_presses_select ON public.agent_presses FOR SELECT TO authenticated USING (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

ALTER TABLE public.agent_summaries ENABLE ROW LEVEL SECURITY;

CREATE POLICY agent_summaries_delete ON public.agent_summaries FOR DELETE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND (user_id = ( SELECT public.claim('actor'::text) AS claim))));

CREATE POLICY agent_summaries_insert ON public.agent_summaries FOR INSERT TO authenticated WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

CREATE POLICY agent_summaries_select ON public.agent_summaries FOR SELECT TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

CREATE POLICY agent_summaries_update ON public.agent_summaries FOR UPDATE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim))))) WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

ALTER TABLE public.agent_turn_terms ENABLE ROW LEVEL SECURITY;

CREATE POLICY agent_turn_terms_delete ON public.agent_turn_terms FOR DELETE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

CREATE POLICY agent_turn_terms_insert ON public.agent_turn_terms FOR INSERT TO authenticated WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

CREATE POLICY agent_turn_terms_select ON public.agent_turn_terms FOR SELECT TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

CREATE POLICY agent_turn_terms_update ON public.agent_turn_terms FOR UPDATE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim))))) WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

ALTER TABLE public.agent_turns ENABLE ROW LEVEL SECURITY;

CREATE POLICY agent_turns_delete ON public.agent_turns FOR DELETE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (user_id = ( SELECT public.claim('actor'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

CREATE POLICY agent_turns_insert ON public.agent_turns FOR INSERT TO authenticated WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim))) AND ((actor_id IS NULL) OR (actor_id = ( SELECT public.claim('actor'::text) AS claim)))));

CREATE POLICY agent_turns_select ON public.agent_turns FOR SELECT TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

CREATE POLICY agent_turns_update ON public.agent_turns FOR UPDATE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim))))) WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) OR (user_id = ( SELECT public.claim('actor'::text) AS claim)))));

ALTER TABLE public.agent_working_memory ENABLE ROW LEVEL SECURITY;

CREATE POLICY agent_working_memory_delete ON public.agent_working_memory FOR DELETE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND (user_id = ( SELECT public.claim('actor'::text) AS claim))));

ALTER TABLE public.agent_working_memory_history ENABLE ROW LEVEL SECURITY;

CREATE POLICY agent_working_memory_history_delete ON public.agent_working_memory_history FOR DELETE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((user_id = ( SELECT public.claim('actor'::text) AS claim)) OR ((scope = 'chat'::text) AND (chat_id = ( SELECT public.claim('chat_id'::text) AS claim))))));

CREATE POLICY agent_working_memory_history_insert ON public.agent_working_memory_history FOR INSERT TO authenticated WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((user_id = ( SELECT public.claim('actor'::text) AS claim)) OR ((scope = 'chat'::text) AND (chat_id = ( SELECT public.claim('chat_id'::text) AS claim)))) AND (actor_id = ( SELECT public.claim('actor'::text) AS claim))));

CREATE POLICY agent_working_memory_history_select ON public.agent_working_memory_history FOR SELECT TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((user_id = ( SELECT public.claim('actor'::text) AS claim)) OR ((scope = 'chat'::text) AND (chat_id = ( SELECT public.claim('chat_id'::text) AS claim))))));

CREATE POLICY agent_working_memory_insert ON public.agent_working_memory FOR INSERT TO authenticated WITH CHECK (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((user_id = ( SELECT public.claim('actor'::text) AS claim)) OR ((scope = 'chat'::text) AND (chat_id = ( SELECT public.claim('chat_id'::text) AS claim))))));

CREATE POLICY agent_working_memory_select ON public.agent_working_memory FOR SELECT TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((user_id = ( SELECT public.claim('actor'::text) AS claim)) OR ((scope = 'chat'::text) AND (chat_id = ( SELECT public.claim('chat_id'::text) AS claim))))));

CREATE POLICY agent_working_memory_update ON public.agent_working_memory FOR UPDATE TO authenticated USING (((user_id = ( SELECT public.claim('sub'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND ((user_id = ( SELECT public.claim('actor'::text) AS claim)) OR ((scope = 'chat'::text) AND (chat_id = ( SELECT public.claim('chat_id'::text) AS claim))))));

ALTER TABLE public.chat_conversations ENABLE ROW LEVEL SECURITY;

CREATE POLICY chat_conversations_delete ON public.chat_conversations FOR DELETE TO authenticated USING (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

CREATE POLICY chat_conversations_insert ON public.chat_conversations FOR INSERT TO authenticated WITH CHECK (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

CREATE POLICY chat_conversations_select ON public.chat_conversations FOR SELECT TO authenticated USING (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

CREATE POLICY chat_conversations_update ON public.chat_conversations FOR UPDATE TO authenticated USING (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)))) WITH CHECK (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

ALTER TABLE public.chat_transcript ENABLE ROW LEVEL SECURITY;

CREATE POLICY chat_transcript_delete ON public.chat_transcript FOR DELETE TO authenticated USING (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

CREATE POLICY chat_transcript_insert ON public.chat_transcript FOR INSERT TO authenticated WITH CHECK (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

CREATE POLICY chat_transcript_select ON public.chat_transcript FOR SELECT TO authenticated USING (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

CREATE POLICY chat_transcript_update ON public.chat_transcript FOR UPDATE TO authenticated USING (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)))) WITH CHECK (((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)) AND (tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text))));

ALTER TABLE public.people ENABLE ROW LEVEL SECURITY;

CREATE POLICY people_select ON public.people FOR SELECT TO authenticated USING ((((tenant_key = COALESCE(( SELECT public.claim('tenant_key'::text) AS claim), ''::text)) AND (( SELECT public.claim('actor'::text) AS claim) IS NOT NULL) AND (open_id = ANY (ARRAY[( SELECT public.claim('sub'::text) AS claim), ( SELECT public.claim('actor'::text) AS claim)]))) OR (auth_user_id = ( SELECT public.token_auth_user() AS token_auth_user))));

ALTER TABLE public.recalled_messages ENABLE ROW LEVEL SECURITY;

CREATE POLICY recalled_messages_select ON public.recalled_messages FOR SELECT TO authenticated USING ((chat_id = ( SELECT public.claim('chat_id'::text) AS claim)));

GRANT USAGE ON SCHEMA extensions TO authenticated;
GRANT USAGE ON SCHEMA extensions TO service_role;

GRANT USAGE ON SCHEMA public TO anon;
GRANT USAGE ON SCHEMA public TO authenticated;
GRANT USAGE ON SCHEMA public TO service_role;

REVOKE ALL ON FUNCTION feishu_bot.enqueue_event(p_key text, p_queue text, p_task text, p_lock text, p_args jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.export_from_queue(p_open_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION feishu_bot.export_from_queue(p_open_id text) TO service_role;

REVOKE ALL ON FUNCTION feishu_bot.forget_in_queue(p_open_id text, p_conversation_id text, p_message_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION feishu_bot.forget_in_queue(p_open_id text, p_conversation_id text, p_message_id text) TO service_role;

REVOKE ALL ON FUNCTION feishu_bot.free_queueing_lock() FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.is_job_of_person(p_args jsonb, p_open_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION feishu_bot.is_job_of_person(p_args jsonb, p_open_id text) TO service_role;

REVOKE ALL ON FUNCTION feishu_bot.prune_inbox(p_hours integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.queue_depth() FROM PUBLIC;
GRANT ALL ON FUNCTION feishu_bot.queue_depth() TO service_role;

REVOKE ALL ON FUNCTION feishu_bot.spool_drop(p_turn_id text, p_version integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.spool_drop_writes(p_seqs bigint[]) FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.spool_forget(p_user_id text, p_tenant_key text, p_conversation_id text) FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.spool_keep_recall(p_message_id text, p_chat_id text) FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.spool_keep_write(p_write jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.spool_mark_failed(p_turn_id text, p_error text) FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.spool_mark_sent(p_turn_id text, p_chunk integer, p_content text, p_message_id text) FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.spool_open_turn(p_turn jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.spool_record_reply(p_turn_id text, p_cards jsonb, p_tool_calls jsonb) FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.spool_refuse_write(p_seq bigint, p_reason text) FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.spool_set_aside(p_turn_id text, p_reason text) FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.spool_state(p_limit integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.spool_take_back() FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.spool_waiting(p_conversation_id text, p_user_id text, p_limit integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.spool_writes(p_recalls boolean, p_limit integer) FROM PUBLIC;

REVOKE ALL ON FUNCTION feishu_bot.wake_waiting() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.add_to_transcript(p_chat_id text, p_tenant_key text, p_records text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.add_to_transcript(p_chat_id text, p_tenant_key text, p_records text) TO service_role;
GRANT ALL ON FUNCTION public.add_to_transcript(p_chat_id text, p_tenant_key text, p_records text) TO authenticated;

REVOKE ALL ON FUNCTION public.append_to_conversation(p_chat_id text, p_tenant_key text, p_records text, p_at bigint, p_active_since bigint, p_keep integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.append_to_conversation(p_chat_id text, p_tenant_key text, p_records text, p_at bigint, p_active_since bigint, p_keep integer) TO service_role;
GRANT ALL ON FUNCTION public.append_to_conversation(p_chat_id text, p_tenant_key text, p_records text, p_at bigint, p_active_since bigint, p_keep integer) TO authenticated;

REVOKE ALL ON FUNCTION public.apply_retention(p_days integer, p_batch integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.apply_retention(p_days integer, p_batch integer) TO service_role;

REVOKE ALL ON FUNCTION public.begin_conversation(p_chat_id text, p_tenant_key text, p_now bigint, p_records text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.begin_conversation(p_chat_id text, p_tenant_key text, p_now bigint, p_records text) TO service_role;
GRANT ALL ON FUNCTION public.begin_conversation(p_chat_id text, p_tenant_key text, p_now bigint, p_records text) TO authenticated;

REVOKE ALL ON FUNCTION public.born_within(p_born text, p_age text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.born_within(p_born text, p_age text) TO service_role;

REVOKE ALL ON FUNCTION public.card_block() FROM PUBLIC;
GRANT ALL ON FUNCTION public.card_block() TO authenticated;
GRANT ALL ON FUNCTION public.card_block() TO service_role;

GRANT SELECT,INSERT,UPDATE ON TABLE public.agent_cards TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_cards TO service_role;

REVOKE ALL ON FUNCTION public.card_row(p_card public.agent_cards) FROM PUBLIC;
GRANT ALL ON FUNCTION public.card_row(p_card public.agent_cards) TO authenticated;
GRANT ALL ON FUNCTION public.card_row(p_card public.agent_cards) TO service_role;

REVOKE ALL ON FUNCTION public.chat_is_quiet(p_chat_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.chat_is_quiet(p_chat_id text) TO service_role;
GRANT ALL ON FUNCTION public.chat_is_quiet(p_chat_id text) TO authenticated;

REVOKE ALL ON FUNCTION public.claim(name text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.claim(name text) TO authenticated;
GRANT ALL ON FUNCTION public.claim(name text) TO service_role;

REVOKE ALL ON FUNCTION public.clear_working_memory(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_scope text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.clear_working_memory(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_scope text) TO service_role;
GRANT ALL ON FUNCTION public.clear_working_memory(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_scope text) TO authenticated;

REVOKE ALL ON FUNCTION public.continue_conversation(p_chat_id text, p_tenant_key text, p_records text, p_now bigint, p_active_since bigint, p_keep integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.continue_conversation(p_chat_id text, p_tenant_key text, p_records text, p_now bigint, p_active_since bigint, p_keep integer) TO authenticated;
GRANT ALL ON FUNCTION public.continue_conversation(p_chat_id text, p_tenant_key text, p_records text, p_now bigint, p_active_since bigint, p_keep integer) TO service_role;

REVOKE ALL ON FUNCTION public.conversation_history(p_conversation_id text, p_user_id text, p_until bigint, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.conversation_history(p_conversation_id text, p_user_id text, p_until bigint, p_limit integer) TO service_role;
GRANT ALL ON FUNCTION public.conversation_history(p_conversation_id text, p_user_id text, p_until bigint, p_limit integer) TO authenticated;

REVOKE ALL ON FUNCTION public.conversations_to_embed(p_model text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.conversations_to_embed(p_model text) TO service_role;

REVOKE ALL ON FUNCTION public.count_people(p_unlinked boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION public.count_people(p_unlinked boolean) TO service_role;

REVOKE ALL ON FUNCTION public.count_person(p_user_id text, p_tenant_key text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.count_person(p_user_id text, p_tenant_key text) TO service_role;

REVOKE ALL ON FUNCTION public.create_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_note_id text, p_title text, p_body text, p_tags text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.create_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_note_id text, p_title text, p_body text, p_tags text) TO authenticated;
GRANT ALL ON FUNCTION public.create_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_note_id text, p_title text, p_body text, p_tags text) TO service_role;

REVOKE ALL ON FUNCTION public.delete_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_note_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.delete_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_note_id text) TO authenticated;
GRANT ALL ON FUNCTION public.delete_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_note_id text) TO service_role;

REVOKE ALL ON FUNCTION public.drop_embedding() FROM PUBLIC;
GRANT ALL ON FUNCTION public.drop_embedding() TO service_role;
GRANT ALL ON FUNCTION public.drop_embedding() TO authenticated;

REVOKE ALL ON FUNCTION public.drop_words_of_messages() FROM PUBLIC;
GRANT ALL ON FUNCTION public.drop_words_of_messages() TO service_role;
GRANT ALL ON FUNCTION public.drop_words_of_messages() TO authenticated;

REVOKE ALL ON FUNCTION public.drop_working_memory_of_chat() FROM PUBLIC;
GRANT ALL ON FUNCTION public.drop_working_memory_of_chat() TO authenticated;
GRANT ALL ON FUNCTION public.drop_working_memory_of_chat() TO service_role;

REVOKE ALL ON FUNCTION public.enable_vectors() FROM PUBLIC;

REVOKE ALL ON FUNCTION public.export_person(p_user_id text, p_tenant_key text, p_table text, p_after text, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.export_person(p_user_id text, p_tenant_key text, p_table text, p_after text, p_limit integer) TO service_role;

REVOKE ALL ON FUNCTION public.feishu_person() FROM PUBLIC;
GRANT ALL ON FUNCTION public.feishu_person() TO authenticated;
GRANT ALL ON FUNCTION public.feishu_person() TO service_role;

REVOKE ALL ON FUNCTION public.finish_conversation(p_chat_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.finish_conversation(p_chat_id text) TO service_role;
GRANT ALL ON FUNCTION public.finish_conversation(p_chat_id text) TO authenticated;

REVOKE ALL ON FUNCTION public.forget_conversation(p_conversation_id text, p_user_id text, p_keep_notes boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION public.forget_conversation(p_conversation_id text, p_user_id text, p_keep_notes boolean) TO service_role;

REVOKE ALL ON FUNCTION public.forget_in_others(p_user_id text, p_tenant_key text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.forget_in_others(p_user_id text, p_tenant_key text) TO service_role;

REVOKE ALL ON FUNCTION public.forget_in_transcript(p_turn_ids text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION public.forget_in_transcript(p_turn_ids text[]) TO service_role;

REVOKE ALL ON FUNCTION public.forget_person(p_user_id text, p_tenant_key text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.forget_person(p_user_id text, p_tenant_key text) TO service_role;

REVOKE ALL ON FUNCTION public.forget_thread_transcript(p_conversation_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.forget_thread_transcript(p_conversation_id text) TO service_role;

REVOKE ALL ON FUNCTION public.get_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_note_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.get_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_note_id text) TO authenticated;
GRANT ALL ON FUNCTION public.get_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_note_id text) TO service_role;

REVOKE ALL ON FUNCTION public.get_working_memory(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.get_working_memory(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text) TO service_role;
GRANT ALL ON FUNCTION public.get_working_memory(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text) TO authenticated;

REVOKE ALL ON FUNCTION public.index_turn() FROM PUBLIC;
GRANT ALL ON FUNCTION public.index_turn() TO authenticated;
GRANT ALL ON FUNCTION public.index_turn() TO service_role;

REVOKE ALL ON FUNCTION public.keep_card(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_card_id text, p_reply_to text, p_in_thread boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION public.keep_card(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_card_id text, p_reply_to text, p_in_thread boolean) TO authenticated;
GRANT ALL ON FUNCTION public.keep_card(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_card_id text, p_reply_to text, p_in_thread boolean) TO service_role;

REVOKE ALL ON FUNCTION public.link_person(p_tenant_key text, p_open_id text, p_auth_user_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.link_person(p_tenant_key text, p_open_id text, p_auth_user_id text) TO service_role;

REVOKE ALL ON FUNCTION public.list_conversations(p_chat_id text, p_conversation_id text, p_user_id text, p_since timestamp with time zone, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.list_conversations(p_chat_id text, p_conversation_id text, p_user_id text, p_since timestamp with time zone, p_limit integer) TO service_role;

REVOKE ALL ON FUNCTION public.list_decisions(p_chat_id text, p_since timestamp with time zone, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.list_decisions(p_chat_id text, p_since timestamp with time zone, p_limit integer) TO service_role;

REVOKE ALL ON FUNCTION public.list_messages(p_conversation_id text, p_user_id text, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.list_messages(p_conversation_id text, p_user_id text, p_limit integer) TO service_role;

REVOKE ALL ON FUNCTION public.list_notes(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_tags text, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.list_notes(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_tags text, p_limit integer) TO authenticated;
GRANT ALL ON FUNCTION public.list_notes(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_tags text, p_limit integer) TO service_role;

REVOKE ALL ON FUNCTION public.list_orphans(p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.list_orphans(p_limit integer) TO service_role;

REVOKE ALL ON FUNCTION public.list_people(p_open_id text, p_tenant_key text, p_unlinked boolean, p_after_tenant text, p_after_open_id text, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.list_people(p_open_id text, p_tenant_key text, p_unlinked boolean, p_after_tenant text, p_after_open_id text, p_limit integer) TO service_role;

REVOKE ALL ON FUNCTION public.list_tables() FROM PUBLIC;
GRANT ALL ON FUNCTION public.list_tables() TO service_role;

REVOKE ALL ON FUNCTION public.list_working_memory(p_user_id text, p_conversation_id text, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.list_working_memory(p_user_id text, p_conversation_id text, p_limit integer) TO service_role;

REVOKE ALL ON FUNCTION public.list_working_memory_changes(p_user_id text, p_conversation_id text, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.list_working_memory_changes(p_user_id text, p_conversation_id text, p_limit integer) TO service_role;

REVOKE ALL ON FUNCTION public.load_conversation(p_chat_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.load_conversation(p_chat_id text) TO service_role;
GRANT ALL ON FUNCTION public.load_conversation(p_chat_id text) TO authenticated;

REVOKE ALL ON FUNCTION public.log_decision(p_chat_id text, p_tenant_key text, p_actor_id text, p_message_id text, p_respond boolean, p_reason text, p_tier text, p_cue text, p_since_bot_ms bigint, p_verdict text, p_judge_ms integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.log_decision(p_chat_id text, p_tenant_key text, p_actor_id text, p_message_id text, p_respond boolean, p_reason text, p_tier text, p_cue text, p_since_bot_ms bigint, p_verdict text, p_judge_ms integer) TO service_role;
GRANT ALL ON FUNCTION public.log_decision(p_chat_id text, p_tenant_key text, p_actor_id text, p_message_id text, p_respond boolean, p_reason text, p_tier text, p_cue text, p_since_bot_ms bigint, p_verdict text, p_judge_ms integer) TO authenticated;

REVOKE ALL ON FUNCTION public.mark_failed(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_error text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.mark_failed(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_error text) TO service_role;
GRANT ALL ON FUNCTION public.mark_failed(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_error text) TO authenticated;

REVOKE ALL ON FUNCTION public.mark_sent(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_chunk integer, p_content text, p_message_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.mark_sent(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_chunk integer, p_content text, p_message_id text) TO service_role;
GRANT ALL ON FUNCTION public.mark_sent(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_chunk integer, p_content text, p_message_id text) TO authenticated;

REVOKE ALL ON FUNCTION public.memory_overview(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.memory_overview(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text) TO authenticated;
GRANT ALL ON FUNCTION public.memory_overview(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text) TO service_role;

REVOKE ALL ON FUNCTION public.merge_patch(p_target jsonb, p_patch jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION public.merge_patch(p_target jsonb, p_patch jsonb) TO service_role;
GRANT ALL ON FUNCTION public.merge_patch(p_target jsonb, p_patch jsonb) TO authenticated;

REVOKE ALL ON FUNCTION public.merge_working_memory(p_conversation_id text, p_chat_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_scope text, p_patch text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.merge_working_memory(p_conversation_id text, p_chat_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_scope text, p_patch text) TO service_role;
GRANT ALL ON FUNCTION public.merge_working_memory(p_conversation_id text, p_chat_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_scope text, p_patch text) TO authenticated;

REVOKE ALL ON FUNCTION public.messages_to_embed(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_model text, p_limit integer, p_recent integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.messages_to_embed(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_model text, p_limit integer, p_recent integer) TO service_role;
GRANT ALL ON FUNCTION public.messages_to_embed(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_model text, p_limit integer, p_recent integer) TO authenticated;

REVOKE ALL ON FUNCTION public.note_body(p_body text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.note_body(p_body text) TO authenticated;
GRANT ALL ON FUNCTION public.note_body(p_body text) TO service_role;

REVOKE ALL ON FUNCTION public.note_card(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_message_id text, p_streaming boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION public.note_card(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_message_id text, p_streaming boolean) TO authenticated;
GRANT ALL ON FUNCTION public.note_card(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_message_id text, p_streaming boolean) TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_notes TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_notes TO service_role;

REVOKE ALL ON FUNCTION public.note_json(n public.agent_notes) FROM PUBLIC;
GRANT ALL ON FUNCTION public.note_json(n public.agent_notes) TO authenticated;
GRANT ALL ON FUNCTION public.note_json(n public.agent_notes) TO service_role;

REVOKE ALL ON FUNCTION public.note_registry(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.note_registry(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text) TO authenticated;
GRANT ALL ON FUNCTION public.note_registry(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text) TO service_role;

REVOKE ALL ON FUNCTION public.note_tags(p_tags text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.note_tags(p_tags text) TO authenticated;
GRANT ALL ON FUNCTION public.note_tags(p_tags text) TO service_role;

REVOKE ALL ON FUNCTION public.note_title(p_title text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.note_title(p_title text) TO authenticated;
GRANT ALL ON FUNCTION public.note_title(p_title text) TO service_role;

REVOKE ALL ON FUNCTION public.open_fold(p_conversation_id text, p_user_id text, p_actor_id text, p_window integer, p_least integer, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.open_fold(p_conversation_id text, p_user_id text, p_actor_id text, p_window integer, p_least integer, p_limit integer) TO authenticated;
GRANT ALL ON FUNCTION public.open_fold(p_conversation_id text, p_user_id text, p_actor_id text, p_window integer, p_least integer, p_limit integer) TO service_role;

REVOKE ALL ON FUNCTION public.open_turn(p_turn_id text, p_conversation_id text, p_chat_id text, p_root_id text, p_user_id text, p_actor_id text, p_actor_name text, p_tenant_key text, p_content text, p_history_limit integer, p_fold_after integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.open_turn(p_turn_id text, p_conversation_id text, p_chat_id text, p_root_id text, p_user_id text, p_actor_id text, p_actor_name text, p_tenant_key text, p_content text, p_history_limit integer, p_fold_after integer) TO authenticated;
GRANT ALL ON FUNCTION public.open_turn(p_turn_id text, p_conversation_id text, p_chat_id text, p_root_id text, p_user_id text, p_actor_id text, p_actor_name text, p_tenant_key text, p_content text, p_history_limit integer, p_fold_after integer) TO service_role;

REVOKE ALL ON FUNCTION public.people_named(p_tenant_key text, p_open_ids text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.people_named(p_tenant_key text, p_open_ids text) TO service_role;

REVOKE ALL ON FUNCTION public.person_columns(p_schema text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.person_columns(p_schema text) TO service_role;

REVOKE ALL ON FUNCTION public.person_condition(p_schema text, p_table text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.person_condition(p_schema text, p_table text) TO service_role;

REVOKE ALL ON FUNCTION public.place_buttons() FROM PUBLIC;
GRANT ALL ON FUNCTION public.place_buttons() TO authenticated;
GRANT ALL ON FUNCTION public.place_buttons() TO service_role;

REVOKE ALL ON FUNCTION public.press_button(p_button_id text, p_chat_id text, p_message_id text, p_operator_id text, p_tenant_key text, p_event_id text, p_only_look boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION public.press_button(p_button_id text, p_chat_id text, p_message_id text, p_operator_id text, p_tenant_key text, p_event_id text, p_only_look boolean) TO authenticated;
GRANT ALL ON FUNCTION public.press_button(p_button_id text, p_chat_id text, p_message_id text, p_operator_id text, p_tenant_key text, p_event_id text, p_only_look boolean) TO service_role;

REVOKE ALL ON FUNCTION public.recall(p_conversation_id text, p_user_id text, p_actor_id text, p_chat_id text, p_tenant_key text, p_query text, p_scope text, p_k integer, p_spans text, p_boost double precision, p_before_id bigint, p_model text, p_embedding text, p_weight double precision) FROM PUBLIC;
GRANT ALL ON FUNCTION public.recall(p_conversation_id text, p_user_id text, p_actor_id text, p_chat_id text, p_tenant_key text, p_query text, p_scope text, p_k integer, p_spans text, p_boost double precision, p_before_id bigint, p_model text, p_embedding text, p_weight double precision) TO service_role;
GRANT ALL ON FUNCTION public.recall(p_conversation_id text, p_user_id text, p_actor_id text, p_chat_id text, p_tenant_key text, p_query text, p_scope text, p_k integer, p_spans text, p_boost double precision, p_before_id bigint, p_model text, p_embedding text, p_weight double precision) TO authenticated;

REVOKE ALL ON FUNCTION public.recall_alike(p_turn_ids text[], p_model text, p_embedding text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.recall_alike(p_turn_ids text[], p_model text, p_embedding text) TO service_role;
GRANT ALL ON FUNCTION public.recall_alike(p_turn_ids text[], p_model text, p_embedding text) TO authenticated;

REVOKE ALL ON FUNCTION public.recall_message(p_message_id text, p_chat_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.recall_message(p_message_id text, p_chat_id text) TO service_role;

REVOKE ALL ON FUNCTION public.recall_stem(p_word text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.recall_stem(p_word text) TO authenticated;
GRANT ALL ON FUNCTION public.recall_stem(p_word text) TO service_role;

REVOKE ALL ON FUNCTION public.recall_terms(p_tokens text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION public.recall_terms(p_tokens text[]) TO authenticated;
GRANT ALL ON FUNCTION public.recall_terms(p_tokens text[]) TO service_role;

REVOKE ALL ON FUNCTION public.recall_tokens(p_text text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.recall_tokens(p_text text) TO authenticated;
GRANT ALL ON FUNCTION public.recall_tokens(p_text text) TO service_role;

REVOKE ALL ON FUNCTION public.recalled_among(p_message_ids text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.recalled_among(p_message_ids text) TO service_role;

REVOKE ALL ON FUNCTION public.recent_activity(p_seconds integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.recent_activity(p_seconds integer) TO service_role;

REVOKE ALL ON FUNCTION public.record_reply(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_cards text, p_tool_calls text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.record_reply(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_cards text, p_tool_calls text) TO service_role;
GRANT ALL ON FUNCTION public.record_reply(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_cards text, p_tool_calls text) TO authenticated;

REVOKE ALL ON FUNCTION public.record_reply_with_buttons(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_cards text, p_tool_calls text, p_buttons text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.record_reply_with_buttons(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_cards text, p_tool_calls text, p_buttons text) TO authenticated;
GRANT ALL ON FUNCTION public.record_reply_with_buttons(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_cards text, p_tool_calls text, p_buttons text) TO service_role;

REVOKE ALL ON FUNCTION public.record_working_memory_change() FROM PUBLIC;
GRANT ALL ON FUNCTION public.record_working_memory_change() TO service_role;
GRANT ALL ON FUNCTION public.record_working_memory_change() TO authenticated;

REVOKE ALL ON FUNCTION public.remember_people(p_people text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.remember_people(p_people text) TO service_role;

REVOKE ALL ON FUNCTION public.remove_from_conversation(p_chat_id text, p_message_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.remove_from_conversation(p_chat_id text, p_message_id text) TO service_role;
GRANT ALL ON FUNCTION public.remove_from_conversation(p_chat_id text, p_message_id text) TO authenticated;

REVOKE ALL ON FUNCTION public.require_identity(p_user_id text, p_actor_id text, p_conversation_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.require_identity(p_user_id text, p_actor_id text, p_conversation_id text) TO service_role;
GRANT ALL ON FUNCTION public.require_identity(p_user_id text, p_actor_id text, p_conversation_id text) TO authenticated;

REVOKE ALL ON FUNCTION public.require_own_notes(p_user_id text, p_actor_id text, p_conversation_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.require_own_notes(p_user_id text, p_actor_id text, p_conversation_id text) TO authenticated;
GRANT ALL ON FUNCTION public.require_own_notes(p_user_id text, p_actor_id text, p_conversation_id text) TO service_role;

REVOKE ALL ON FUNCTION public.require_person(p_user_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.require_person(p_user_id text) TO service_role;

REVOKE ALL ON FUNCTION public.require_tag_count(p_tags text[]) FROM PUBLIC;
GRANT ALL ON FUNCTION public.require_tag_count(p_tags text[]) TO authenticated;
GRANT ALL ON FUNCTION public.require_tag_count(p_tags text[]) TO service_role;

REVOKE ALL ON FUNCTION public.restore_turn(p_turn_id text, p_conversation_id text, p_chat_id text, p_root_id text, p_user_id text, p_actor_id text, p_actor_name text, p_tenant_key text, p_content text, p_cards text, p_tool_calls text, p_error text, p_asked_at timestamp with time zone, p_answered_at timestamp with time zone) FROM PUBLIC;
GRANT ALL ON FUNCTION public.restore_turn(p_turn_id text, p_conversation_id text, p_chat_id text, p_root_id text, p_user_id text, p_actor_id text, p_actor_name text, p_tenant_key text, p_content text, p_cards text, p_tool_calls text, p_error text, p_asked_at timestamp with time zone, p_answered_at timestamp with time zone) TO authenticated;
GRANT ALL ON FUNCTION public.restore_turn(p_turn_id text, p_conversation_id text, p_chat_id text, p_root_id text, p_user_id text, p_actor_id text, p_actor_name text, p_tenant_key text, p_content text, p_cards text, p_tool_calls text, p_error text, p_asked_at timestamp with time zone, p_answered_at timestamp with time zone) TO service_role;

REVOKE ALL ON FUNCTION public.resume_card(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.resume_card(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text) TO authenticated;
GRANT ALL ON FUNCTION public.resume_card(p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text) TO service_role;

REVOKE ALL ON FUNCTION public.said_message(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_message_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.said_message(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_message_id text) TO authenticated;
GRANT ALL ON FUNCTION public.said_message(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_message_id text) TO service_role;

REVOKE ALL ON FUNCTION public.save_embeddings(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_model text, p_embeddings text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.save_embeddings(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_model text, p_embeddings text) TO service_role;
GRANT ALL ON FUNCTION public.save_embeddings(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_model text, p_embeddings text) TO authenticated;

REVOKE ALL ON FUNCTION public.save_summary(p_conversation_id text, p_user_id text, p_actor_id text, p_summary_id bigint, p_expected_version integer, p_content text, p_verbatim text, p_rows text, p_messages integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.save_summary(p_conversation_id text, p_user_id text, p_actor_id text, p_summary_id bigint, p_expected_version integer, p_content text, p_verbatim text, p_rows text, p_messages integer) TO authenticated;
GRANT ALL ON FUNCTION public.save_summary(p_conversation_id text, p_user_id text, p_actor_id text, p_summary_id bigint, p_expected_version integer, p_content text, p_verbatim text, p_rows text, p_messages integer) TO service_role;

REVOKE ALL ON FUNCTION public.search_notes(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_terms text, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.search_notes(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_terms text, p_limit integer) TO authenticated;
GRANT ALL ON FUNCTION public.search_notes(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_terms text, p_limit integer) TO service_role;

REVOKE ALL ON FUNCTION public.set_chat_quiet(p_chat_id text, p_tenant_key text, p_quiet boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION public.set_chat_quiet(p_chat_id text, p_tenant_key text, p_quiet boolean) TO service_role;
GRANT ALL ON FUNCTION public.set_chat_quiet(p_chat_id text, p_tenant_key text, p_quiet boolean) TO authenticated;

REVOKE ALL ON FUNCTION public.share_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_note_id text, p_share boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION public.share_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_note_id text, p_share boolean) TO authenticated;
GRANT ALL ON FUNCTION public.share_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_note_id text, p_share boolean) TO service_role;

REVOKE ALL ON FUNCTION public.start_afresh(p_conversation_id text, p_user_id text, p_actor_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.start_afresh(p_conversation_id text, p_user_id text, p_actor_id text) TO authenticated;
GRANT ALL ON FUNCTION public.start_afresh(p_conversation_id text, p_user_id text, p_actor_id text) TO service_role;

REVOKE ALL ON FUNCTION public.take_left_cards(p_older_s integer, p_untouched_s integer, p_limit integer) FROM PUBLIC;
GRANT ALL ON FUNCTION public.take_left_cards(p_older_s integer, p_untouched_s integer, p_limit integer) TO service_role;

REVOKE ALL ON FUNCTION public.token_auth_user() FROM PUBLIC;
GRANT ALL ON FUNCTION public.token_auth_user() TO authenticated;
GRANT ALL ON FUNCTION public.token_auth_user() TO service_role;

REVOKE ALL ON FUNCTION public.touch_notes(p_conversation_id text, p_user_id text, p_tenant_key text, p_note_ids text[], p_action text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.touch_notes(p_conversation_id text, p_user_id text, p_tenant_key text, p_note_ids text[], p_action text) TO authenticated;
GRANT ALL ON FUNCTION public.touch_notes(p_conversation_id text, p_user_id text, p_tenant_key text, p_note_ids text[], p_action text) TO service_role;

REVOKE ALL ON FUNCTION public.turn_reply(p_turn_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.turn_reply(p_turn_id text) TO service_role;
GRANT ALL ON FUNCTION public.turn_reply(p_turn_id text) TO authenticated;

REVOKE ALL ON FUNCTION public.update_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_note_id text, p_title text, p_body text, p_add_tags text, p_remove_tags text) FROM PUBLIC;
GRANT ALL ON FUNCTION public.update_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_note_id text, p_title text, p_body text, p_add_tags text, p_remove_tags text) TO authenticated;
GRANT ALL ON FUNCTION public.update_note(p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text, p_note_id text, p_title text, p_body text, p_add_tags text, p_remove_tags text) TO service_role;

GRANT SELECT,INSERT,UPDATE ON TABLE public.agent_buttons TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_buttons TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_chats TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_chats TO service_role;

GRANT SELECT,INSERT ON TABLE public.agent_decisions TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_decisions TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_embeddings TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_embeddings TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_messages TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_messages TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_note_uses TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_note_uses TO service_role;

GRANT SELECT,INSERT ON TABLE public.agent_presses TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_presses TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_summaries TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_summaries TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_turn_terms TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_turn_terms TO service_role;

GRANT SELECT ON TABLE public.agent_turn_texts TO authenticated;
GRANT SELECT ON TABLE public.agent_turn_texts TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_turns TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_turns TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_working_memory TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_working_memory TO service_role;

GRANT SELECT,INSERT,DELETE ON TABLE public.agent_working_memory_history TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.agent_working_memory_history TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.chat_conversations TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.chat_conversations TO service_role;

GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.chat_transcript TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.chat_transcript TO service_role;

GRANT SELECT ON TABLE public.people TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.people TO service_role;

GRANT SELECT ON TABLE public.recalled_messages TO authenticated;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE public.recalled_messages TO service_role;
