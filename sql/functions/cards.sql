-- Purpose: the card of an answer that is still being written, and its blocks of numbers. A block is
-- more than a card can take in its ten minutes: ten operations a second.

create or replace function bot_private.card_block() returns integer
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$ select 10000 $$;

-- What a worker needs of a card: it may use the last block of numbers up to `sequence`.
create or replace function bot_private.card_row(p_card public.agent_cards) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select to_jsonb(p_card) - 'opened_at' - 'updated_at' - 'streaming'
         || jsonb_build_object('first', p_card.sequence - bot_private.card_block() + 1)
$$;

-- Keeps the card of an open turn before it is sent, with the button p_stop_id that stops the turn. When
-- the turn has a card already, that one counts.
create or replace function public.keep_card(
  p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text,
  p_card_id text, p_reply_to text, p_in_thread boolean, p_stop_id text default null
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_card public.agent_cards;
begin
  perform bot_private.require_size('p_card_id', p_card_id, 1024);
  perform bot_private.require_size('p_reply_to', p_reply_to, 1024);
  perform bot_private.require_size('p_stop_id', p_stop_id, 1024);
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  insert into public.agent_cards as c
    (turn_id, conversation_id, user_id, actor_id, tenant_key, chat_id, card_id, reply_to, in_thread,
     sequence)
  select t.id, t.conversation_id, t.user_id, t.actor_id, t.tenant_key, t.chat_id, p_card_id,
         p_reply_to, p_in_thread, bot_private.card_block()
  from public.agent_turns t
  where t.id = p_turn_id and t.user_id = p_user_id and t.conversation_id = p_conversation_id
    and t.state = 'open'
  on conflict (turn_id) do update set
    card_id = case when c.streaming then c.card_id else excluded.card_id end,
    message_id = case when c.streaming then c.message_id end,
    sequence = case when c.streaming then c.sequence + bot_private.card_block()
                    else excluded.sequence end,
    opened_at = case when c.streaming then c.opened_at else now() end,
    streaming = true, updated_at = now()
  returning * into v_card;
  if v_card.turn_id is null then
    raise exception 'turn % is not open', p_turn_id using errcode = 'PT404';
  end if;
  if p_stop_id is not null then
    insert into public.agent_buttons
      (id, group_id, turn_id, chunk, ordinal, conversation_id, user_id, actor_id, tenant_key,
       chat_id, chat_type, kind, label, payload, expires_at)
    values (p_stop_id, 'stop ' || p_turn_id, p_turn_id, -1, 1, v_card.conversation_id,
            v_card.user_id, v_card.actor_id, v_card.tenant_key, v_card.chat_id,
            coalesce(public.claim('chat_type'), 'group'), 'stop', '',
            jsonb_build_object('turn_id', p_turn_id), now() + interval '1 day')
    on conflict (id) do nothing;
  end if;
  return bot_private.card_row(v_card);
end
$$;

-- The card that an earlier attempt at the turn left unfinished, with a new block of numbers; null
-- when there is none.
create or replace function public.resume_card(
  p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_card public.agent_cards;
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  update public.agent_cards c
  set sequence = c.sequence + bot_private.card_block(), updated_at = now()
  where c.turn_id = p_turn_id and c.user_id = p_user_id
    and c.conversation_id = p_conversation_id and c.streaming
  returning * into v_card;
  return case when v_card.turn_id is not null then bot_private.card_row(v_card) end;
end
$$;

-- What became of a card: it is shown by p_message_id (null: not known), it is written on or not.
create or replace function public.note_card(
  p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text,
  p_message_id text, p_streaming boolean
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_size('p_message_id', p_message_id, 1024);
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  update public.agent_cards
  set message_id = coalesce(p_message_id, message_id), streaming = p_streaming, updated_at = now()
  where turn_id = p_turn_id and user_id = p_user_id and conversation_id = p_conversation_id;
  return 'null'::jsonb;
end
$$;

-- The turn is over: nobody goes on with its card.
create or replace function bot_private.leave_card(p_turn_id text) returns void
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  update public.agent_cards set streaming = false, updated_at = now()
  where turn_id = p_turn_id and streaming;
end
$$;

-- For the service: cards that have been written on for p_older_s seconds or longer and that nobody
-- has touched for p_untouched_s, each with a new block of numbers. Two workers never get the same
-- one. What could not be finished within a day is given up.
create or replace function public.take_left_cards(
  p_older_s integer, p_untouched_s integer, p_limit integer
) returns jsonb
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  with taken as (
    update public.agent_cards c
    set sequence = c.sequence + bot_private.card_block(), updated_at = now()
    where c.turn_id in (
      select s.turn_id from public.agent_cards s
      where s.streaming
        and s.opened_at between now() - interval '1 day' and now() - make_interval(secs => p_older_s)
        and s.updated_at <= now() - make_interval(secs => p_untouched_s)
      order by s.opened_at limit p_limit
      for update skip locked)
    returning c.*)
  select coalesce(jsonb_agg(bot_private.card_row(t)), '[]') from taken t
$$;
