-- Purpose: what was said in a conversation, as the model and the person are told of it.

-- Those of the turns that were commands whose answers list nothing that is asked about next: nothing that a model is told.
-- With the owner's rights: whoever knows a turn learns this of it alone, and no policy is looked at.
create or replace function bot_private.commands_among(p_turn_ids text[]) returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select array(
    select t.id from public.agent_turns t
    where t.id = any (p_turn_ids) and t.intended ->> 'reason' = 'command'
      and not exists (
        select from public.agent_messages m
        where m.turn_id = t.id and m.role = 'assistant' and m.tool_calls <> '[]'))
$$;

-- Messages by their ids, those after p_after, oldest first; the cards of one answer are one message. What tools did is told
-- to the person they did it for, p_actor_id, and to nobody else.
create or replace function bot_private.messages_told(
  p_ids bigint[], p_actor_id text, p_after bigint default 0
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  with told as materialized (
    select m.id, m.turn_id, m.role, m.actor_id, m.actor_name, m.created_at, m.message_id, m.tool_calls, m.content
    from public.agent_messages m
    where m.id = any (p_ids) and m.id > p_after
  ), commands as materialized (
    select bot_private.commands_among(array(select turn_id from told)) as ids
  )
  select coalesce(jsonb_agg(jsonb_build_object(
    'id', m.id, 'role', m.role, 'actor_id', m.actor_id, 'actor_name', m.actor_name,
    'created_at', m.created_at, 'message_id', m.message_id, 'command', m.turn_id = any (c.ids),
    'tool_calls', case when m.actor_id = p_actor_id then m.tool_calls else '[]' end,
    'content', m.content || coalesce((
      select string_agg(e'\n\n' || c.content, '' order by c.chunk)
      from public.agent_messages c
      where c.turn_id = m.turn_id and c.role = m.role and c.chunk > 0
        and c.status <> 'failed'), '')
  ) order by m.id), '[]')
  from told m, commands c
$$;

-- A person's thread as a number, as agent_messages.thread has it.
create or replace function bot_private.thread_number(
  p_tenant_key text, p_conversation_id text, p_user_id text
) returns bigint
language sql immutable parallel safe security invoker
return ('x' || left(md5(p_tenant_key || ' ' || p_conversation_id || ' ' || p_user_id), 16))::bit(64)::bigint;

-- The newest p_limit messages of a person's thread up to p_until, newest first: what they asked, what
-- was asked about them, and the answers. The planner must take the indexes of that thread: it would
-- rather walk back through the newest messages of everybody, all of them where nobody wrote about the
-- person. So the thread is a range, which only its index has in this order; the limit is one that is
-- known, for of one that is not it expects a tenth of a long thread, and sorts that; and the few
-- questions about others are sorted by what no index has. So one plan is good for all, and planned once.
create or replace function bot_private.newest_of_thread(
  p_tenant_key text, p_conversation_id text, p_user_id text, p_until bigint, p_limit integer
) returns setof bigint
language sql stable security invoker set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
  select id from (
    (select id from (
       select m.id, m.conversation_id, m.user_id from public.agent_messages m
       where m.thread >= bot_private.thread_number(p_tenant_key, p_conversation_id, p_user_id)
         and m.thread <= bot_private.thread_number(p_tenant_key, p_conversation_id, p_user_id)
         and m.id <= p_until and m.chunk = 0 and m.status <> 'failed'
       order by m.thread desc, m.id desc limit 1500) of_thread
     where conversation_id = p_conversation_id and user_id = p_user_id
     limit p_limit)
    union all
    (select m.id from public.agent_messages m
     where m.conversation_id = p_conversation_id and m.actor_id = p_user_id
       and m.actor_id <> m.user_id
       and m.id <= p_until and m.chunk = 0 and m.status <> 'failed'
     order by -m.id limit p_limit)
  ) of_either
  order by id desc limit p_limit
$$;

-- The newest messages of a thread (p_thread, at most p_limit, newest first) with those of other
-- conversations that belong there: in the main conversation of a p2p chat what earlier versions kept of
-- quotations as conversations of their own; in a thread the exchange that its first message is of, which
-- stands elsewhere where threads were off, in p2p, or where an earlier version took a quotation for a thread.
create or replace function bot_private.read_along(
  p_tenant_key text, p_conversation_id text, p_user_id text, p_until bigint, p_limit integer,
  p_thread bigint[]
) returns bigint[]
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_chat constant text := bot_private.chat_of(p_conversation_id);
  v_root constant text := bot_private.root_of(p_conversation_id);
  v_more bigint[];
begin
  if v_root = 'main' then
    v_more := array(
      select m.id from (
        select c.id from public.agent_chats c
        where c.chat_id = v_chat and c.from_quote and c.tenant_key = p_tenant_key
          and c.user_id = p_user_id
        order by c.updated_at desc limit 20) c,
      lateral bot_private.newest_of_thread(p_tenant_key, c.id, p_user_id, p_until, p_limit) m (id));
    return case when v_more = '{}' then p_thread else array(
      select id from unnest(p_thread || v_more) t (id) order by id desc limit p_limit) end;
  elsif cardinality(p_thread) >= p_limit then
    return p_thread;
  end if;
  return p_thread || array(
    select m.id from public.agent_messages m
    where m.chunk = 0 and m.status <> 'failed' and p_user_id in (m.user_id, m.actor_id)
      and m.turn_id = (
        select f.turn_id from (
          select q.* from public.agent_messages q where q.turn_id = v_root and q.role = 'user'
          union all
          select a.* from public.agent_messages a where a.message_id = v_root and a.role = 'assistant') f
        where f.tenant_key = p_tenant_key and f.chat_id = v_chat
          and f.conversation_id <> p_conversation_id and f.id <= p_until
        order by f.id limit 1));
end
$$;

-- The p_place-th newest of them, null when there are fewer.
create or replace function bot_private.nth_of_thread(
  p_tenant_key text, p_conversation_id text, p_user_id text, p_until bigint, p_place integer
) returns bigint
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select id from bot_private.newest_of_thread(
    p_tenant_key, p_conversation_id, p_user_id, p_until, p_place) t (id)
  order by id desc offset p_place - 1 limit 1
$$;

-- What was said in other threads of this chat, before message p_before and since p_since, by the
-- sender or the subject, or about them, and answered: at most p_limit messages, oldest first. A fresh
-- start in one of their threads ends what came before it in all. Found among three times as many, 100 at
-- most, of each of their last 100 threads (a long answer has several cards), and the last 100 they wrote
-- about others, so that it costs the same however much there is. Ranges, as in newest_of_thread.
create or replace function bot_private.recent_exchanges(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text,
  p_before bigint, p_since timestamptz, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  with people as materialized (
    select distinct id from unnest(array[p_user_id, p_actor_id]) p (id)
  ),
  threads as materialized (
    select bot_private.thread_number(p_tenant_key, c.id, p.id) as number from people p, lateral (
      select c.id from public.agent_chats c
      where c.user_id = p.id and c.tenant_key = p_tenant_key and c.chat_id = p_chat_id
        and c.id <> p_conversation_id
        -- a thread's time is that of the hour
        and c.updated_at >= p_since - interval '1 hour'
      order by c.updated_at desc limit 100) c
  ),
  latest as materialized (
    select l.* from threads t, lateral (
      select * from (
        select m.id, m.conversation_id, m.tenant_key, m.chat_id, m.chunk, m.status, m.created_at
        from public.agent_messages m
        where m.thread >= t.number and m.thread <= t.number and m.id < p_before
        order by m.thread desc, m.id desc limit 100) of_thread
      limit 3 * p_limit) l
    union
    select l.* from people p, lateral (
      select m.id, m.conversation_id, m.tenant_key, m.chat_id, m.chunk, m.status, m.created_at
      from public.agent_messages m
      where m.actor_id >= p.id and m.actor_id <= p.id and m.actor_id <> m.user_id and m.id < p_before
      order by m.actor_id, m.id desc limit 100) l
  ),
  here as materialized (
    select distinct l.id, l.conversation_id from latest l
    where l.tenant_key = p_tenant_key and l.chat_id = p_chat_id and l.created_at >= p_since
      and l.conversation_id <> p_conversation_id and l.chunk = 0 and l.status <> 'failed'
  )
  select bot_private.messages_told(array(
    select h.id from here h
    where h.id > coalesce((
      select max(c.history_from) from public.agent_chats c
      where c.user_id in (select id from people) and c.tenant_key = p_tenant_key
        and c.id in (select conversation_id from here)), 0)
    order by h.id desc limit p_limit), p_actor_id)
$$;

-- A message of this chat that somebody said to the bot or was told by it, by its Feishu message_id;
-- null when there is none.
create or replace function public.said_message(
  p_conversation_id text, p_user_id text, p_actor_id text,
  p_tenant_key text, p_chat_id text, p_message_id text
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  return (
    select jsonb_build_object(
      'id', m.id, 'role', m.role, 'content', m.content, 'actor_id', m.actor_id,
      'actor_name', m.actor_name, 'message_id', m.message_id, 'created_at', m.created_at,
      'tool_calls', '[]'::jsonb)
    from public.agent_messages m
    where (m.turn_id = p_message_id and m.role = 'user'
           or m.message_id = p_message_id and m.role = 'assistant')
      and m.tenant_key = p_tenant_key and m.chat_id = p_chat_id and m.status <> 'failed'
    order by m.id limit 1);
end
$$;

-- A fresh start: what was said stays stored, and is no longer given to the model.
create or replace function public.start_afresh(
  p_conversation_id text, p_user_id text, p_actor_id text
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  perform bot_private.tell_nothing();
  update public.agent_chats c
  set history_from = coalesce(bot_private.nth_of_thread(
    c.tenant_key, p_conversation_id, p_user_id, 9223372036854775807, 1), 0)
  where c.id = p_conversation_id and c.user_id = p_user_id;
  return 'null'::jsonb;
end
$$;

-- How much is kept of a person, told to that person only.
create or replace function public.memory_overview(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if p_user_id <> p_actor_id then
    raise exception 'only the person is told what is kept about them' using errcode = 'PT403';
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
