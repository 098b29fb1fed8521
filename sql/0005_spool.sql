-- Purpose: turns that were answered while the memory was away, kept beside the queue until it is back.
--
-- While a turn has a row here, the row is the truth about it, as agent_turns is otherwise. No API
-- exposes the schema; row-level security without a policy leaves the tables to their owner.

create table feishu_bot.spool (
  seq bigint generated always as identity primary key,
  turn_id text not null unique,           -- the question's Feishu message_id
  conversation_id text not null check (conversation_id <> ''),
  chat_id text not null,
  root_id text not null,
  user_id text not null check (user_id <> ''),
  actor_id text not null check (actor_id <> ''),
  actor_name text not null default '',
  tenant_key text not null default '',
  content text not null,
  state text not null default 'open' check (state in ('open', 'pending', 'sent', 'failed')),
  attempts integer not null default 1,
  cards jsonb not null default '[]',      -- [{chunk, content, status, message_id}]
  tool_calls jsonb not null default '[]',
  error text,
  refused text,                           -- why the memory does not take it; for operators
  version integer not null default 1,     -- counts the changes
  asked_at timestamptz not null default now(),
  answered_at timestamptz
);
create index spool_waiting_idx on feishu_bot.spool (conversation_id, user_id, seq)
  where refused is null;
create index spool_person_idx on feishu_bot.spool (user_id);
create index spool_actor_idx on feishu_bot.spool (actor_id);
alter table feishu_bot.spool enable row level security;

-- Keeps a turn as it is known, or finds it as an earlier attempt left it. A reply that is here stays.
create function feishu_bot.spool_open_turn(p_turn jsonb) returns jsonb
language sql volatile security invoker set search_path = ''
as $$
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
  returning to_jsonb(s)
$$;

-- Stores the reply of a turn that has none; returns the turn, null when it is not here.
create function feishu_bot.spool_record_reply(p_turn_id text, p_cards jsonb, p_tool_calls jsonb)
returns jsonb
language sql volatile security invoker set search_path = ''
as $$
  update feishu_bot.spool s
  set version = s.version + 1,
      state = case when s.state = 'open' then 'pending' else s.state end,
      cards = case when s.state = 'open' then p_cards else s.cards end,
      tool_calls = case when s.state = 'open' then p_tool_calls else s.tool_calls end,
      answered_at = coalesce(s.answered_at, now())
  where s.turn_id = p_turn_id
  returning to_jsonb(s)
$$;

-- A card was delivered; the turn is sent with its last card. Null when the turn is not here.
create function feishu_bot.spool_mark_sent(
  p_turn_id text, p_chunk integer, p_content text, p_message_id text
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
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

-- What is pending will never be delivered. Null when the turn is not here.
create function feishu_bot.spool_mark_failed(p_turn_id text, p_error text) returns jsonb
language sql volatile security invoker set search_path = ''
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

-- The oldest p_limit waiting turns of a conversation, in order, and how many wait in all.
create function feishu_bot.spool_waiting(
  p_conversation_id text, p_user_id text, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_build_object(
    'waiting', (select count(*) from feishu_bot.spool where refused is null),
    'turns', coalesce((
      select jsonb_agg(to_jsonb(t) order by t.seq) from (
        select * from feishu_bot.spool s
        where s.conversation_id = p_conversation_id and s.user_id = p_user_id
          and s.refused is null
        order by s.seq limit p_limit) t), '[]'))
$$;

-- How many turns wait, how many were refused, since when, and the conversations that waited longest.
create function feishu_bot.spool_state(p_limit integer) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select jsonb_build_object(
    'waiting', (select count(*) from feishu_bot.spool where refused is null),
    'refused', (select count(*) from feishu_bot.spool where refused is not null),
    'since', (select min(asked_at) from feishu_bot.spool where refused is null),
    'conversations', coalesce((
      select jsonb_agg(jsonb_build_array(c.conversation_id, c.user_id) order by c.first) from (
        select s.conversation_id, s.user_id, min(s.seq) as first
        from feishu_bot.spool s
        where s.refused is null
        group by s.conversation_id, s.user_id
        order by 3 limit p_limit) c), '[]'))
$$;

-- The memory has the turn as it was at p_version: forgets it, unless it has changed since.
create function feishu_bot.spool_drop(p_turn_id text, p_version integer) returns boolean
language sql volatile security invoker set search_path = ''
as $$
  with gone as (
    delete from feishu_bot.spool where turn_id = p_turn_id and version = p_version returning 1
  )
  select exists (select from gone)
$$;

-- The memory refuses the turn (p_reason: a code, no text): it stays here and no longer waits.
create function feishu_bot.spool_set_aside(p_turn_id text, p_reason text) returns void
language sql volatile security invoker set search_path = ''
as $$
  update feishu_bot.spool set refused = p_reason where turn_id = p_turn_id
$$;

-- Refused turns wait again, for instance because the reason was a wrong key. Returns how many.
create function feishu_bot.spool_take_back() returns bigint
language sql volatile security invoker set search_path = ''
as $$
  with again as (
    update feishu_bot.spool set refused = null where refused is not null returning 1
  )
  select count(*) from again
$$;

-- Forgets what waits of a person, as subject or author, or of a conversation (null matches all, not
-- both). Returns how many turns went.
create function feishu_bot.spool_forget(p_user_id text, p_tenant_key text, p_conversation_id text)
returns bigint
language sql volatile security invoker set search_path = ''
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

do $$
declare
  f regprocedure;
begin
  for f in select p.oid::regprocedure from pg_proc p
           where p.pronamespace = 'feishu_bot'::regnamespace and p.proname ~ '^spool_' loop
    execute format('revoke execute on function %s from public', f);
  end loop;
end
$$;

-- The memory's side: writes a whole turn as it went while the memory was away, with the times it
-- went at. Can be repeated, also with an older state of the turn. A reply that the memory has itself
-- stays, unless other cards were delivered: what people saw is what is remembered.
-- p_cards: JSON array of {chunk, content, status, message_id}.
create function public.restore_turn(
  p_turn_id text, p_conversation_id text, p_chat_id text, p_root_id text,
  p_user_id text, p_actor_id text, p_actor_name text, p_tenant_key text,
  p_content text, p_cards text, p_tool_calls text, p_error text,
  p_asked_at timestamptz, p_answered_at timestamptz
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
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

  insert into public.agent_messages (conversation_id, user_id, turn_id, tenant_key, chat_id, role,
                                     content, actor_id, actor_name, message_id, status, created_at)
  values (p_conversation_id, p_user_id, p_turn_id, p_tenant_key, p_chat_id, 'user', p_content,
          p_actor_id, p_actor_name, p_turn_id, 'received', p_asked_at)
  on conflict (turn_id, role, chunk) do nothing;

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

revoke execute on function public.restore_turn(text, text, text, text, text, text, text, text, text,
  text, text, text, timestamptz, timestamptz) from public, anon;
grant execute on function public.restore_turn(text, text, text, text, text, text, text, text, text,
  text, text, text, timestamptz, timestamptz) to authenticated, service_role;
