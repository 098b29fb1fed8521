-- Purpose: what was said in a conversation, as the model and the person are told of it.

-- Those of the turns that were commands whose answers list nothing that is asked about next: nothing that a model is told.
-- With the owner's rights: whoever knows a turn learns this of it alone, and no policy is looked at.
create or replace function bot_private.commands_among(p_turn_ids text[]) returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select array(
    select t.id from public.agent_turns t
    where t.id = any (p_turn_ids) and t.intended ->> 'reason' in ('command', 'elsewhere')
      and not exists (
        select from public.agent_messages m
        where m.turn_id = t.id and m.role = 'assistant' and m.tool_calls <> '[]'))
$$;

-- Characters that a prompt shows of another person's line, or of an answer to one.
create or replace function bot_private.longest_line(p_role text default 'user') returns integer
language sql immutable parallel safe security invoker
return case p_role when 'user' then 1000 else 300 end;

-- The message under which a conversation's thread hangs; 'main' outside of threads.
create or replace function bot_private.root_of(p_conversation_id text) returns text
language sql immutable parallel safe security invoker
return case when starts_with(p_conversation_id, 'feishu:doc:') then 'main'
  else split_part(p_conversation_id, ':', 3) end;

-- The message under which a line stands: what it quotes, or the root of its thread. Null: it stands for itself.
create or replace function bot_private.line_above(p_message public.agent_messages) returns text
language sql immutable parallel safe security invoker
return coalesce(
  p_message.quotes,
  nullif(nullif(bot_private.root_of(p_message.conversation_id), 'main'), p_message.message_id));

-- The lines of a place by their ids, in the order in which they were said, the last of p_ids last: messages of turns,
-- the cards of one answer as one, and, by negative numbers, lines of the chat's transcript. What tools did is told to
-- the person they did it for, p_actor_id, and to nobody else; of long texts of others the beginning.
create or replace function bot_private.messages_told(
  p_ids bigint[], p_actor_id text, p_chat_id text default null
) returns table (lines jsonb)
language sql stable security invoker
begin atomic
  with told as materialized (
    select m.id, m.turn_id, m.role, m.actor_id, m.actor_name, m.created_at, m.message_id, m.tool_calls,
           m.actor_id = p_actor_id as is_own, m.content, bot_private.line_above(m) as replies_to
    from public.agent_messages m
    where m.id = any (p_ids)
  ), further as materialized (
    select c.turn_id, string_agg(e'\n\n' || c.content, '' order by c.chunk) as content
    from public.agent_messages c
    where c.turn_id = any (array(select turn_id from told where role = 'assistant')) and c.role = 'assistant'
      and c.chunk > 0 and c.status <> 'failed'
    group by c.turn_id
  ), heard as materialized (
    select t.number, t.message_id, t.author_id, t.author, t.content, t."timestamp", t.is_bot,
           coalesce(t.quotes, t.root_id) as replies_to
    from public.chat_transcript t
    where t.chat_id = p_chat_id and t.number = any (array(select -i from unnest(p_ids) i where i < 0))
  ), commands as materialized (
    select bot_private.commands_among(array(
      select turn_id from told union all select message_id from heard)) as ids
  ), lines as (
    select m.id, m.created_at as said_at, jsonb_build_object(
      'id', m.id, 'role', m.role, 'actor_id', m.actor_id, 'actor_name', m.actor_name,
      'created_at', m.created_at, 'message_id', m.message_id, 'replies_to', m.replies_to,
      'tool_calls', case when m.is_own then m.tool_calls else '[]' end,
      'content', case when m.is_own then l.content else left(l.content, bot_private.longest_line(m.role)) end)
      || case when m.turn_id = any (c.ids) then '{"command": true}'::jsonb else '{}' end as line
    from told m cross join commands c
    left join further f on f.turn_id = m.turn_id and m.role = 'assistant'
    cross join lateral (select concat(m.content, f.content) as content) l
    union all
    select -t.number, l.said_at, jsonb_build_object(
      'id', -t.number, 'role', 'user', 'actor_id', t.author_id, 'actor_name', t.author, 'created_at', l.said_at,
      'message_id', t.message_id, 'by_bot', t.is_bot, 'replies_to', t.replies_to, 'tool_calls', '[]'::jsonb,
      'content', left(t.content, bot_private.longest_line()))
      || case when t.message_id = any (c.ids) then '{"command": true}'::jsonb else '{}' end
    from heard t, commands c, to_timestamp(t."timestamp" / 1000.0) l (said_at)
  )
  select coalesce(jsonb_agg(l.line order by l.id = p_ids[cardinality(p_ids)], l.said_at, l.id), '[]') from lines l;
end;

-- So many bytes of the newest lines of others a window shows.
create or replace function bot_private.others_bytes() returns integer
language sql immutable parallel safe security invoker
return 1300;

-- The window of a question: what anybody said in its place, and the answers, as ids for messages_told.
--
-- In a thread that is the thread, its root, and what the mention that opened it saw. Outside of threads (p_recent_s >
-- 0) it is also the chat, so many seconds back. There are the root, the last p_limit messages of the asker's own exchanges,
-- of others' exchanges the newest p_bytes, and of what was said to nobody four times as much, for recall does not find
-- that. With them is what the newest of them quote, and the root of a thread in which others wrote. A fresh start of the
-- asker ends what came before it. Where people are kept apart (sharing: person), and in p2p, only the asker's exchanges
-- are there.
create or replace function bot_private.window_ids(
  p_tenant_key text, p_conversation_id text, p_chat_id text, p_user_id text, p_actor_id text,
  p_question bigint, p_recent_s integer, p_limit integer, p_bytes integer
) returns bigint[]
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  most constant integer := 100;
  most_above constant integer := 4;
  v_root constant text := bot_private.root_of(p_conversation_id);
  v_apart constant boolean := coalesce(public.claim('sharing') = 'person', false);
  v_alone constant boolean := v_apart or coalesce(public.claim('chat_type') = 'p2p', false);
  v_is_thread constant boolean := p_recent_s = 0;
  v_root_turn text;  -- of the exchange that the thread hangs under
  v_opening public.agent_messages;  -- the mention that opened the thread
  v_from bigint;
  v_since timestamptz;
  v_talk_since timestamptz;
  v_stored bigint[];
  v_window bigint[];
  v_message_ids text[];
  v_above text[];
begin
  if v_root <> 'main' and v_is_thread then
    v_root_turn := (
      select r.turn_id from (
        select q.turn_id from public.agent_messages q where q.turn_id = v_root and q.role = 'user'
        union all
        select a.turn_id from public.agent_messages a where a.message_id = v_root and a.role = 'assistant') r limit 1);
  end if;
  if v_root_turn = v_root and not v_alone then
    select * into v_opening from public.agent_messages m
    where m.turn_id = v_root and m.role = 'user' and m.chunk = 0 and m.tenant_key = p_tenant_key
      and m.conversation_id = p_conversation_id and m.id < p_question;
  end if;
  v_since := coalesce(v_opening.created_at, now())
    - make_interval(secs => coalesce(nullif(p_recent_s, 0), 86400));
  v_from := coalesce((
    select max(c.history_from) from public.agent_chats c
    where c.tenant_key = p_tenant_key and c.user_id = p_actor_id
      and case when v_is_thread then c.id = p_conversation_id
          -- a thread's time is that of the hour
          else c.chat_id = p_chat_id and c.updated_at >= v_since - interval '1 hour' end), 0);
  if v_from > 0 then
    v_talk_since := (select f.created_at from public.agent_messages f where f.id = v_from);
  end if;
  -- one small statement for each place: every table in one has all its policies, and most places are empty
  v_stored := array(
    select m.id from public.agent_messages m
    where m.conversation_id = p_conversation_id and m.id < p_question
      and m.turn_id is distinct from v_root_turn
    order by m.id desc limit most);
  if not v_is_thread or v_opening.id is not null then
    v_stored := v_stored || array(
      select m.id from public.agent_messages m
      where m.chat_id = p_chat_id and m.conversation_id <> p_conversation_id
        and m.id < coalesce(v_opening.id, p_question) and m.created_at >= v_since
      order by m.id desc limit most);
  end if;
  if v_root_turn is not null then
    v_stored := v_stored || array(
      select m.id from public.agent_messages m
      where m.turn_id = v_root_turn and m.chat_id = p_chat_id and m.id < p_question);
  end if;
  with stored as (
    select m.* from public.agent_messages m where m.id = any (v_stored)
  ), talk as (
    select t.number, t.message_id, t.root_id, t.content, t.quotes, coalesce(t.quotes, t.root_id) as above, l.said_at
    from public.chat_transcript t, to_timestamp(t."timestamp" / 1000.0) l (said_at)
    where not v_alone and t.tenant_key = p_tenant_key and t.chat_id = p_chat_id and not t.ours
      and (not v_is_thread or v_root in (t.root_id, t.message_id) or l.said_at < v_opening.created_at)
      and (v_is_thread or l.said_at >= v_since)
      and l.said_at > coalesce(v_talk_since, '-infinity')
    order by t."timestamp" desc limit most
  ), lines as (
    select s.id, s.created_at as said_at, octet_length(left(s.content, bot_private.longest_line(s.role))) as bytes,
           s.turn_id is not distinct from v_root_turn as is_root, v_apart or s.actor_id = p_actor_id as is_own,
           1 as share, s.message_id, s.quotes, bot_private.line_above(s) as above
    from stored s
    where s.chunk = 0 and s.id > v_from
      and (s.role = 'user' or s.status = 'sent' or s.status = 'pending' and s.actor_id = p_actor_id)
      and (not v_apart or s.conversation_id <> p_conversation_id or p_user_id in (s.user_id, s.actor_id))
    union all
    select -t.number, t.said_at, octet_length(left(t.content, bot_private.longest_line())),
           t.message_id = v_root, false, 4, t.message_id, t.quotes, t.above
    from talk t
    where t.message_id not in (
      select q.turn_id from public.agent_messages q
      where q.turn_id = any (array(select message_id from talk)) and q.role = 'user')
  ), counted as (
    select l.id, l.said_at, l.is_root, l.is_own, l.share, l.message_id, l.quotes, l.above,
           row_number() over newest as place, sum(l.bytes + 32) over newest as bytes
    from lines l
    window newest as (partition by l.is_own, l.share order by l.said_at desc, l.id desc)
  )
  select array_agg(c.id order by c.said_at, c.id), array_agg(c.message_id),
         array_agg(c.above order by c.said_at desc)
           filter (where c.above <> v_root and (c.quotes is not null or not c.is_own))
  into v_window, v_message_ids, v_above
  from counted c
  where c.is_root or case when c.is_own then c.place <= p_limit else c.bytes <= c.share * p_bytes and not v_alone end;
  v_above := (array(select a from unnest(v_above) a where a <> all (v_message_ids)))[:most_above];
  if v_above = '{}' then
    return coalesce(v_window, '{}');
  end if;
  return v_window || array(
    with above as materialized (  -- by the ids alone: the planner would rather read all of the chat
      select m.id, m.chat_id, m.actor_id = p_actor_id as is_own from public.agent_messages m
      where m.turn_id = any (v_above) and m.role = 'user'
      union all
      select m.id, m.chat_id, m.actor_id = p_actor_id from public.agent_messages m
      where m.message_id = any (v_above) and m.role = 'assistant' and m.status = 'sent'
      union all
      select -t.number, t.chat_id, false from public.chat_transcript t
      where t.tenant_key = p_tenant_key and t.chat_id = p_chat_id and t.message_id = any (v_above) and not t.ours
        and to_timestamp(t."timestamp" / 1000.0) > coalesce(v_talk_since, '-infinity')
        and not exists (select from public.agent_messages m where m.turn_id = t.message_id and m.role = 'user')
    )
    select a.id from above a
    where a.chat_id = p_chat_id and (a.is_own or not v_alone)
      and (a.id < 0 or a.id > v_from and a.id < p_question));
end
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
