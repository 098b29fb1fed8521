-- Purpose: timers: set, listed, changed, cancelled; due, and over.
--
-- A due timer is taken by one worker, which queues its job; nobody else does before `queued_until`. The
-- card of one time of a timer is a turn of its own, `timer:<id>:<due in ms>`, so however often the job
-- is done there is one. After that the timer goes on to its next time, or is done.

create or replace function bot_private.timer_json(p_timer public.agent_timers) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'id', p_timer.id, 'kind', p_timer.kind, 'content', p_timer.content,
    'conversation_id', p_timer.conversation_id, 'chat_id', p_timer.chat_id,
    'root_id', p_timer.root_id, 'chat_type', p_timer.chat_type, 'tenant_key', p_timer.tenant_key,
    'user_id', p_timer.user_id, 'actor_id', p_timer.actor_id, 'turn_id', p_timer.turn_id,
    'language', p_timer.language, 'for_all', p_timer.for_all,
    'for_people', to_jsonb(p_timer.for_people), 'local_at', p_timer.local_at,
    'zone', p_timer.zone, 'repeats', p_timer.repeats, 'state', p_timer.state,
    'due_ms', (extract(epoch from p_timer.due_at) * 1000)::bigint)
$$;

-- Sets a timer once: again with the same id it is the one that is there. p_timer: JSON object with
-- content, language, for_all, for_people, local_at, zone, repeats and due_ms. Returns the timer, or
-- {"refused": "person"} or {"refused": "chat"} where as many are set as may be.
create or replace function public.set_timer(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text,
  p_root_id text, p_chat_type text, p_turn_id text, p_timer_id text, p_timer text,
  p_most_person integer, p_most_chat integer
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_wanted jsonb;
  v_timer public.agent_timers;
begin
  perform bot_private.require_size('p_timer', p_timer, 32768);
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_wanted := p_timer;
  perform bot_private.require_turn_stands(p_turn_id);
  select * into v_timer from public.agent_timers t
  where t.id = p_timer_id and t.actor_id = p_actor_id and t.chat_id = p_chat_id;
  if v_timer.id is not null then
    return bot_private.timer_json(v_timer);
  end if;
  if p_most_person <= (
    select count(*) from public.agent_timers t
    where t.chat_id = p_chat_id and t.tenant_key = p_tenant_key and t.actor_id = p_actor_id
      and t.state = 'active' and t.kind = 'reminder') then
    return '{"refused": "person"}';
  end if;
  if p_most_chat <= (
    select count(*) from public.agent_timers t
    where t.chat_id = p_chat_id and t.tenant_key = p_tenant_key and t.state = 'active'
      and t.kind = 'reminder') then
    return '{"refused": "chat"}';
  end if;
  insert into public.agent_timers
    (id, conversation_id, chat_id, root_id, chat_type, tenant_key, user_id, actor_id, turn_id, content,
     language, for_all, for_people, local_at, zone, repeats, due_at)
  values (
    p_timer_id, p_conversation_id, p_chat_id, p_root_id, p_chat_type, p_tenant_key, p_user_id,
    p_actor_id, p_turn_id, v_wanted ->> 'content', v_wanted ->> 'language',
    (v_wanted ->> 'for_all')::boolean,
    array(select jsonb_array_elements_text(v_wanted -> 'for_people')),
    v_wanted ->> 'local_at', v_wanted ->> 'zone', v_wanted ->> 'repeats',
    to_timestamp((v_wanted ->> 'due_ms')::bigint / 1000.0))
  returning * into v_timer;
  return bot_private.timer_json(v_timer);
end
$$;

-- The timers of the chat that are still to come, the next one first.
create or replace function public.list_timers(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text,
  p_limit integer
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  return (
    select coalesce(jsonb_agg(bot_private.timer_json(t) order by t.due_at, t.id), '[]')
    from (
      select * from public.agent_timers t
      where t.chat_id = p_chat_id and t.tenant_key = p_tenant_key and t.state = 'active'
        and t.kind = 'reminder'
      order by t.due_at, t.id limit least(p_limit, 200)) t);
end
$$;

-- Changes a timer of the sender's that is still to come. p_timer as of `set_timer`, without language.
-- p_turn_id is the message that asks for it. Returns the timer; null: there is none of theirs.
create or replace function public.change_timer(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text,
  p_timer_id text, p_timer text, p_turn_id text default null
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_wanted jsonb;
  v_timer public.agent_timers;
begin
  perform bot_private.require_size('p_timer', p_timer, 32768);
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_wanted := p_timer;
  perform bot_private.require_turn_stands(p_turn_id);
  update public.agent_timers t
  set content = v_wanted ->> 'content',
      changed_by = case
        when p_turn_id is null or t.content = v_wanted ->> 'content' then t.changed_by
        else (array_remove(t.changed_by, p_turn_id))[:19] || p_turn_id end,
      for_all = (v_wanted ->> 'for_all')::boolean,
      for_people = array(select jsonb_array_elements_text(v_wanted -> 'for_people')),
      local_at = v_wanted ->> 'local_at', zone = v_wanted ->> 'zone', repeats = v_wanted ->> 'repeats',
      due_at = to_timestamp((v_wanted ->> 'due_ms')::bigint / 1000.0), updated_at = now()
  where t.id = p_timer_id and t.chat_id = p_chat_id and t.tenant_key = p_tenant_key
    and t.actor_id = p_actor_id and t.state = 'active'
  returning * into v_timer;
  return case when v_timer.id is not null then bot_private.timer_json(v_timer) end;
end
$$;

-- For the service: p_person cancels a timer in the chat it is of: its author, whom alone it is for, or
-- who manages the chat. Somebody it is for among others is left out from now on. Returns the timer as
-- it was; null: there is none; PT403: they may not.
create or replace function public.cancel_timer(
  p_timer_id text, p_tenant_key text, p_chat_id text, p_person text
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_timer public.agent_timers;
begin
  select * into v_timer from public.agent_timers t
  where t.id = p_timer_id and t.tenant_key = p_tenant_key and t.chat_id = p_chat_id
    and t.state = 'active' for update;
  if v_timer.id is null then
    return null;
  end if;
  if v_timer.actor_id = p_person or exists (
    select from public.chat_managers m
    where m.chat_id = p_chat_id and m.tenant_key = p_tenant_key and m.open_id = p_person
      and (m.role = 'adder' or m.seen_at > now() - interval '10 minutes')) then
    update public.agent_timers set state = 'cancelled', updated_at = now() where id = p_timer_id;
  elsif p_person = any (v_timer.for_people) then
    perform public.stop_timers_for(p_chat_id, array[p_person], array[p_timer_id]);
  else
    raise exception 'only its author, whom it is for, or who manages the chat may cancel it'
      using errcode = 'PT403';
  end if;
  return bot_private.timer_json(v_timer);
end
$$;

-- People are reminded no more in a chat, by p_timer_ids (null: by any): they left it, or do not want to
-- be. What was for them alone stops. A question that waited goes.
create or replace function public.stop_timers_for(
  p_chat_id text, p_people text[], p_timer_ids text[] default null
) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  update public.agent_timers t
  set for_people = k.kept, updated_at = now(),
      state = case when k.kept = '{}' and not t.for_all then 'stopped' else t.state end
  from public.agent_timers o, lateral (
    select array(select p from unnest(o.for_people) p where p <> all (p_people)) as kept) k
  where o.id = t.id and t.chat_id = p_chat_id and t.state = 'active' and t.for_people && p_people
    and (p_timer_ids is null or t.id = any (p_timer_ids));
  delete from public.agent_timers
  where chat_id = p_chat_id and kind = 'proactive' and state = 'stopped'
$$;

-- The bot is out of the chat, or the chat is no more.
create or replace function public.stop_timers_of_chat(p_chat_id text) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  update public.agent_timers set state = 'stopped', updated_at = now()
  where chat_id = p_chat_id and state = 'active';
  delete from public.agent_timers
  where chat_id = p_chat_id and kind = 'proactive' and state = 'stopped'
$$;

-- Up to p_limit timers that are due, [{id, due_ms}], each for one caller, who queues its job within
-- p_hold_s seconds. Those of chats that the bot is no longer in stop.
create or replace function public.take_due_timers(p_limit integer, p_hold_s integer) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_chat text;
  v_taken jsonb;
begin
  for v_chat in
    select distinct t.chat_id from public.agent_timers t
    join public.chats c on c.chat_id = t.chat_id and c.gone_at is not null
    where t.state = 'active' and t.due_at <= now()
  loop
    perform public.stop_timers_of_chat(v_chat);
  end loop;
  with taken as (
    update public.agent_timers t set queued_until = now() + make_interval(secs => p_hold_s)
    where t.id in (
      select d.id from public.agent_timers d
      where d.state = 'active' and d.due_at <= now()
        and (d.queued_until is null or d.queued_until <= now())
      order by d.due_at limit p_limit for update skip locked)
    returning t.id, t.due_at)
  select coalesce(jsonb_agg(jsonb_build_object(
    'id', k.id, 'due_ms', (extract(epoch from k.due_at) * 1000)::bigint) order by k.due_at), '[]')
  into v_taken from taken k;
  return v_taken;
end
$$;

-- A timer whose time p_due_ms has come, with the database's clock as now_ms and the message that asked for it;
-- null when it has been changed, cancelled or done since.
create or replace function public.due_timer(p_timer_id text, p_due_ms bigint) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select bot_private.timer_json(t) || jsonb_build_object(
    'now_ms', (extract(epoch from now()) * 1000)::bigint,
    'asked_in', bot_private.asked_in(t.turn_id))
  from public.agent_timers t
  where t.id = p_timer_id and t.state = 'active' and t.due_at <= now()
    and (extract(epoch from t.due_at) * 1000)::bigint = p_due_ms
$$;

-- The time p_due_ms of a timer is over: the next one is p_next_ms, null: there is none. Returns whether
-- that was new.
create or replace function public.timer_fired(
  p_timer_id text, p_due_ms bigint, p_next_ms bigint
) returns boolean
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  update public.agent_timers t
  set fired = t.fired + 1, queued_until = null, updated_at = now(),
      due_at = case when p_next_ms is null then t.due_at else to_timestamp(p_next_ms / 1000.0) end,
      state = case when p_next_ms is null then 'done' else t.state end
  where t.id = p_timer_id and t.state = 'active'
    and (extract(epoch from t.due_at) * 1000)::bigint = p_due_ms;
  if not found then
    return false;
  end if;
  delete from public.agent_timers t
  where t.id = p_timer_id and t.kind = 'proactive' and t.state = 'done';
  return true;
end
$$;

-- What was made from a message that goes: its timers, and every card they sent. p_told: only those that say this.
create or replace function public.take_back_timers(p_turn_id text, p_told text[] default null)
returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_timer public.agent_timers;
begin
  for v_timer in
    select * from public.agent_timers t
    where (t.turn_id = p_turn_id or t.changed_by @> array[p_turn_id])
      and (p_told is null or t.content = any (p_told)) for update
  loop
    -- others may have been told what these cards said: they still know where it came from
    insert into public.agent_digest_sources (turn_id, chat_id, tenant_key, message_id)
    select t.id, t.chat_id, t.tenant_key, 'answer:' || v_timer.turn_id
    from public.agent_turns t
    where t.parent_id = v_timer.id and t.origin in ('reminder', 'digest') and v_timer.turn_id is not null
    on conflict do nothing;
    perform public.drop_message(t.id, v_timer.chat_id)
    from public.agent_turns t
    where t.parent_id = v_timer.id and t.origin in ('reminder', 'digest');
    delete from public.agent_timers t where t.id = v_timer.id;
  end loop;
end
$$;

-- For operators: timers, those to come first, of one chat (null: all), also those that are over.
create or replace function public.inspect_timers(
  p_chat_id text, p_over boolean, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(bot_private.timer_json(t) || jsonb_build_object(
    'fired', t.fired, 'created_at', t.created_at, 'late_s',
    case when t.state = 'active' then greatest(0, extract(epoch from now() - t.due_at))::bigint end)
    order by t.state <> 'active', t.due_at, t.id), '[]')
  from (
    select * from public.agent_timers t
    where (p_chat_id is null or t.chat_id = p_chat_id) and (p_over or t.state = 'active')
    order by t.state <> 'active', t.due_at, t.id limit p_limit) t
$$;
