-- Purpose: what is kept while the memory is away: turns, and writes outside of turns.

-- Keeps a turn as it is known, or finds it as an earlier attempt left it. A reply that is here stays.
-- A turn whose question was taken back while the memory is away is cancelled. `oldest_s` is for how
-- long the spool has not been empty, at least.
create or replace function feishu_bot.spool_open_turn(p_turn jsonb) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_turn jsonb;
  v_known text;
begin
  if jsonb_typeof(p_turn -> 'origin') = 'object' then  -- an earlier version may have kept it under another id
    select s.turn_id into v_known from feishu_bot.spool s where s.origin = p_turn -> 'origin';
    p_turn := p_turn || jsonb_build_object('turn_id', coalesce(v_known, p_turn ->> 'turn_id'));
  end if;
  if exists (
      select from feishu_bot.late_writes
      where function = 'recall_message'
        and message_ids[1] in (p_turn ->> 'turn_id', bot_private.goes_with(p_turn -> 'origin'))) then
    return to_jsonb(jsonb_populate_record(null::feishu_bot.spool, p_turn))
           || '{"state": "cancelled", "content": "", "cards": [], "tool_calls": [], "version": 0}';
  end if;
  insert into feishu_bot.spool as s
    (turn_id, conversation_id, chat_id, root_id, user_id, actor_id, actor_name, tenant_key, content,
     origin, state, attempts, cards, tool_calls, given, intended, answered_at)
  select t.turn_id, t.conversation_id, t.chat_id, t.root_id, t.user_id, t.actor_id, t.actor_name,
         t.tenant_key, t.content, t.origin, t.state, t.attempts, t.cards, t.tool_calls, coalesce(t.given, '[]'),
         t.intended, case when t.state <> 'open' then now() end
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

-- Stores the reply of a turn that has none, and what it was given; returns the turn, null when it is not here.
drop function if exists feishu_bot.spool_record_reply(text, jsonb, jsonb);
drop function if exists feishu_bot.spool_record_reply(text, jsonb, jsonb, jsonb);
create or replace function feishu_bot.spool_record_reply(
  p_turn_id text, p_cards jsonb, p_tool_calls jsonb, p_given jsonb default '[]', p_intended jsonb default null
) returns jsonb
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  update feishu_bot.spool s
  set version = s.version + 1,
      state = case when s.state = 'open' then 'pending' else s.state end,
      cards = case when s.state = 'open' then p_cards else s.cards end,
      tool_calls = case when s.state = 'open' then p_tool_calls else s.tool_calls end,
      given = case when s.state = 'open' then p_given else s.given end,
      intended = case when s.state = 'open' then p_intended else s.intended end,
      answered_at = coalesce(s.answered_at, now())
  where s.turn_id = p_turn_id
  returning to_jsonb(s)
$$;

-- A card was delivered; the turn is sent with its last card. Null when the turn is not here.
create or replace function feishu_bot.spool_mark_sent(
  p_turn_id text, p_chunk integer, p_content text, p_message_id text
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_turn feishu_bot.spool;
begin
  update feishu_bot.spool s
  set version = s.version + 1, cards = (
    select jsonb_agg(
      case when (c ->> 'chunk')::integer = p_chunk then
        jsonb_build_object('chunk', p_chunk, 'content', p_content, 'status', 'sent',
                           'message_id', p_message_id, 'file', c -> 'file')
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

-- What is pending will never be delivered. Null when the turn is not here.
create or replace function feishu_bot.spool_mark_failed(p_turn_id text, p_error text) returns jsonb
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
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

-- The oldest p_limit waiting turns of a conversation, in order, and how many wait in all; and how
-- many messages taken back wait: those are written first.
create or replace function feishu_bot.spool_waiting(
  p_conversation_id text, p_user_id text, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
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

-- How many turns and writes outside of turns wait, how many were refused, and the conversations that
-- waited longest; `since` is of whatever waited longest.
create or replace function feishu_bot.spool_state(p_limit integer) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
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

-- The memory has the turn as it was at p_version: forgets it, unless it has changed since.
create or replace function feishu_bot.spool_drop(p_turn_id text, p_version integer) returns boolean
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  with gone as (
    delete from feishu_bot.spool where turn_id = p_turn_id and version = p_version returning 1
  )
  select exists (select from gone)
$$;

-- The memory refuses the turn (p_reason: a code, no text): it stays here and no longer waits.
create or replace function feishu_bot.spool_set_aside(p_turn_id text, p_reason text) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  update feishu_bot.spool set refused = p_reason where turn_id = p_turn_id
$$;

-- What was refused waits again, for instance because the reason was a wrong key. Returns how many
-- turns and writes.
create or replace function feishu_bot.spool_take_back() returns bigint
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  with turns as (
    update feishu_bot.spool set refused = null where refused is not null returning 1
  ), writes as (
    update feishu_bot.late_writes set refused = null where refused is not null returning 1
  )
  select (select count(*) from turns) + (select count(*) from writes)
$$;

-- Forgets what waits of a person, as subject or author, or of a conversation (null matches all, not
-- both). Returns how many turns went.
create or replace function feishu_bot.spool_forget(
  p_user_id text, p_tenant_key text, p_conversation_id text
) returns bigint
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
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

-- Keeps a write, unless the message it is about was taken back meanwhile.
create or replace function feishu_bot.spool_keep_write(p_write jsonb) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  insert into feishu_bot.late_writes
    (function, params, context, conversation_id, message_ids, people)
  select w.function, w.params, w.context, w.conversation_id, w.message_ids, w.people
  from jsonb_populate_record(null::feishu_bot.late_writes, p_write) w
  where not exists (
    select from feishu_bot.late_writes r
    where r.function = 'recall_message' and r.message_ids && w.message_ids)
$$;

-- A message was taken back: nothing that waits tells of it any more, and the memory will hear of it.
create or replace function feishu_bot.spool_keep_recall(p_message_id text, p_chat_id text)
returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  -- the cards that only the spool knows are withdrawn when the memory hears of it
  insert into feishu_bot.late_writes (function, params, message_ids)
  select 'recall_message',
         jsonb_build_object('p_message_id', p_message_id, 'p_chat_id', p_chat_id, 'p_cards', coalesce((
           select jsonb_agg(c.value -> 'message_id')
           from feishu_bot.spool s, jsonb_array_elements(s.cards) c
           where p_message_id in (s.turn_id, bot_private.goes_with(s.origin))
             and c.value ->> 'message_id' <> ''), '[]')::text),
         array[p_message_id]
  where not exists (
    select from feishu_bot.late_writes
    where function = 'recall_message' and message_ids = array[p_message_id]);
  delete from feishu_bot.spool
  where turn_id = p_message_id or bot_private.goes_with(origin) = p_message_id;
  delete from feishu_bot.late_writes
  where p_message_id = any (message_ids) and function <> 'recall_message';
$$;

-- The oldest p_limit writes that wait, in order: messages taken back, or all the others.
create or replace function feishu_bot.spool_writes(p_recalls boolean, p_limit integer) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(to_jsonb(w) order by w.seq), '[]')
  from (
    select seq, function, params, context from feishu_bot.late_writes
    where refused is null and (function = 'recall_message') = p_recalls
    order by seq limit p_limit) w
$$;

-- The memory has these writes.
create or replace function feishu_bot.spool_drop_writes(p_seqs bigint[]) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  delete from feishu_bot.late_writes where seq = any (p_seqs)
$$;

-- The memory refuses the write (p_reason: a code, no text): it stays here and no longer waits.
create or replace function feishu_bot.spool_refuse_write(p_seq bigint, p_reason text) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  update feishu_bot.late_writes set refused = p_reason where seq = p_seq
$$;
