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
    select j.id, j.task as what, j.status = 'running' as running, j.attempts, j.args ->> 'waits_for' as reason,
           coalesce(j.args ->> 'conversation_id', j.lock) as conversation_id, j.scheduled_at,
           coalesce(j.args #>> '{payload,event,message,message_id}', j.args #>> '{turn,turn_id}') as message_id,
           coalesce(j.args #>> '{payload,event,sender,sender_id,open_id}',
                    j.args #>> '{payload,event,operator,open_id}',
                    j.args #>> '{payload,event,operator,operator_id,open_id}', j.args ->> 'user_id') as person,
           coalesce(to_timestamp((j.args ->> 'received_ms')::bigint / 1000.0),
                    j.queued_at) as since
    from jobs j where j.status in ('waiting', 'running')
    order by j.status = 'running' desc, j.id
    limit p_limit) w
$$;

-- Deletes a job that no worker has in hand yet; false when there is none such.
create or replace function feishu_bot.cancel_waiting(p_id bigint) returns boolean
language plpgsql volatile security invoker set search_path = feishu_bot
as $$
begin
  delete from jobs where id = p_id and status = 'waiting';
  return found;
end
$$;

-- Takes a person out of the notes of who looked at what; the notes stay.
create or replace function feishu_bot.forget_in_audit(p_open_id text) returns void
language sql volatile security invoker set search_path = feishu_bot
as $$
  update console_audit set about = '(forgotten)' where about = p_open_id
$$;

-- People whose name holds p_name ('' for all), the last seen first, from p_offset on, at most p_limit:
-- [{tenant_key, open_id, name, turns, last_at, facts, notes, helpful, unhelpful}]. Turns are their questions. Facts are those by
-- them and about them. Numbers, no words.
create or replace function feishu_bot.people_in_numbers(
  p_name text, p_offset integer, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = feishu_bot
as $$
  with asked as (
    select t.tenant_key, t.actor_id as open_id, count(*) as turns, max(t.created_at) as last_at
    from public.agent_turns t where bot_private.is_question(t.origin)
    group by t.tenant_key, t.actor_id),
  found as (
    select tenant_key, open_id, coalesce(p.name, '') as name, coalesce(a.turns, 0) as turns, a.last_at
    from public.people p full join asked a using (tenant_key, open_id)
    where p_name = '' or strpos(lower(p.name), lower(p_name)) > 0
    order by a.last_at desc nulls last, 3, 2, 1
    offset greatest(p_offset, 0) limit least(greatest(p_limit, 1), 200))
  select coalesce(jsonb_agg(to_jsonb(f) || jsonb_build_object(
    'facts', (select count(*) from public.agent_working_memory w, jsonb_object_keys(w.content)
              where w.tenant_key = f.tenant_key and f.open_id in (w.user_id, w.actor_id)),
    'notes', (select count(*) from public.agent_notes n
              where n.tenant_key = f.tenant_key and n.user_id = f.open_id),
    'connected_at', (select u.granted_at from public.user_tokens u
                     where u.tenant_key = f.tenant_key and u.open_id = f.open_id),
    'documents', (select count(*) from bot_private.told_documents d
                  where d.tenant_key = f.tenant_key and d.actor_id = f.open_id),
    'helpful', (select count(*) from public.agent_feedback b
                where b.tenant_key = f.tenant_key and b.actor_id = f.open_id and b.helpful),
    'unhelpful', (select count(*) from public.agent_feedback b
                  where b.tenant_key = f.tenant_key and b.actor_id = f.open_id and not b.helpful))
    order by f.last_at desc nulls last, f.name, f.open_id, f.tenant_key), '[]')
  from found f
$$;
