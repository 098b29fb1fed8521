-- Purpose: signing in to the operators' console, and its part of the queue. All for the owner alone.
-- Keys and cookies come as SHA-256 digests: what is stored opens nothing.

-- Notes a link for p_admin that works once within p_seconds.
create or replace function feishu_bot.invite_to_console(
  p_digest bytea, p_admin text, p_seconds integer
) returns void
language sql volatile security invoker set search_path = feishu_bot
as $$
  delete from console_links where expires_at < now();
  insert into console_links (digest, admin, expires_at)
  values (p_digest, p_admin, now() + make_interval(secs => p_seconds));
$$;

-- Uses a link up and begins a session; who signed in, null when the link is unknown, used or too old.
create or replace function feishu_bot.enter_console(p_link bytea, p_session bytea) returns text
language plpgsql volatile security invoker set search_path = feishu_bot
as $$
declare
  v_admin text;
begin
  delete from console_links where digest = p_link and expires_at > now() returning admin into v_admin;
  if v_admin is not null then
    insert into console_sessions (digest, admin) values (p_session, v_admin);
    insert into console_audit (admin, action) values (v_admin, 'sign in');
  end if;
  return v_admin;
end
$$;

-- Whose session it is, null when it is over: nobody did anything for p_idle_s, or it is p_longest_s
-- old. p_active: somebody did something now; a page that draws itself again does not count.
create or replace function feishu_bot.console_admin(
  p_session bytea, p_idle_s integer, p_longest_s integer, p_active boolean
) returns text
language sql volatile security invoker set search_path = feishu_bot
as $$
  delete from console_sessions
  where seen_at < now() - make_interval(secs => p_idle_s)
     or created_at < now() - make_interval(secs => p_longest_s);
  update console_sessions set seen_at = now()
  where digest = p_session and p_active and seen_at < now() - interval '1 minute';
  select admin from console_sessions where digest = p_session;
$$;

-- Ends a session.
create or replace function feishu_bot.leave_console(p_session bytea) returns void
language sql volatile security invoker set search_path = feishu_bot
as $$
  delete from console_sessions where digest = p_session
$$;

-- Jobs that wait or are at work, oldest first, at most p_limit, without what people wrote.
create or replace function feishu_bot.unfinished_work(p_limit integer) returns jsonb
language sql stable security invoker set search_path = feishu_bot
as $$
  select coalesce(jsonb_agg(to_jsonb(w) order by w.running desc, w.id), '[]')
  from (
    select j.id, j.task_name as what, j.status = 'doing' as running, j.attempts,
           j.lock as conversation_id, j.scheduled_at,
           j.args #>> '{payload,event,message,message_id}' as message_id,
           coalesce(j.args #>> '{payload,event,sender,sender_id,open_id}',
                    j.args #>> '{payload,event,operator,open_id}', j.args ->> 'user_id') as person,
           coalesce(to_timestamp((j.args ->> 'received_ms')::bigint / 1000.0),
                    (select min(e.at) from procrastinate_events e where e.job_id = j.id)) as since
    from procrastinate_jobs j where j.status in ('todo', 'doing')
    order by j.status = 'doing' desc, j.id
    limit p_limit) w
$$;

-- Deletes a job that no worker has in hand yet; false when there is none such.
create or replace function feishu_bot.cancel_waiting(p_id bigint) returns boolean
language plpgsql volatile security invoker set search_path = feishu_bot
as $$
begin
  delete from procrastinate_jobs where id = p_id and status = 'todo';
  return found;
end
$$;

-- Takes a person out of the notes of who looked at what; the notes stay.
create or replace function feishu_bot.forget_in_audit(p_open_id text) returns void
language sql volatile security invoker set search_path = feishu_bot
as $$
  update console_audit set about = '(forgotten)' where about = p_open_id
$$;
