-- Purpose: what can be pressed below every answer: whether it helped, and Again. These buttons carry
-- their name only; what is pressed is known by the card on which it stands.

-- The turn whose card this is, and where; null when the caller sees none.
create or replace function bot_private.turn_of_card(
  p_message_id text, p_chat_id text, p_tenant_key text
) returns public.agent_turns
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select t.* from public.agent_messages m join public.agent_turns t on t.id = m.turn_id
  where m.message_id = p_message_id and m.role = 'assistant' and m.tenant_key = p_tenant_key
    and (p_chat_id is null or m.chat_id = p_chat_id) and t.state = 'sent'
  limit 1
$$;

-- A person says whether the answer on a card helped (p_helpful), or takes that back; with p_toggles
-- saying the same again takes it back. Returns what counts now: true, false, or null; and whether there
-- is such a card.
create or replace function bot_private.keep_feedback(
  p_turn public.agent_turns, p_actor_id text, p_source text, p_helpful boolean,
  p_gone boolean, p_toggles boolean
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_gone boolean := p_gone;
begin
  if p_gone or p_toggles then
    delete from public.agent_feedback f
    where f.turn_id = p_turn.id and f.actor_id = p_actor_id and f.source = p_source
      and f.helpful = p_helpful;
    v_gone := p_gone or found;
  end if;
  if not v_gone then
    insert into public.agent_feedback
      (turn_id, conversation_id, user_id, actor_id, tenant_key, chat_id, source, helpful)
    values (p_turn.id, p_turn.conversation_id, p_turn.user_id, p_actor_id, p_turn.tenant_key,
            p_turn.chat_id, p_source, p_helpful)
    on conflict (turn_id, actor_id, source) do update
      set helpful = excluded.helpful, updated_at = now();
  end if;
  return jsonb_build_object('verdict', case when v_gone then 'taken_back' else 'thanks' end);
end
$$;

-- The press of a button below a card, by the token of whoever presses: `helpful` and `unhelpful` are
-- kept, for everybody who reads the card; `again` is only looked at, for who asked or whom it is about:
-- the turn that it leads to is what is done once. Returns the verdict, and for `again` the turn of the card,
-- what is asked, and when that was written.
create or replace function public.press_handle(
  p_handle text, p_chat_id text, p_message_id text, p_operator_id text, p_tenant_key text
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_turn public.agent_turns;
  v_question public.agent_messages;
begin
  perform bot_private.require_size('p_message_id', p_message_id, 1024);
  if coalesce(p_operator_id, '') = '' then
    raise exception 'identity missing: operator_id is required' using errcode = 'PT428';
  end if;
  v_turn := bot_private.turn_of_card(p_message_id, p_chat_id, p_tenant_key);
  if v_turn.id is null then
    return '{"verdict": "unknown"}';
  elsif p_handle in ('helpful', 'unhelpful') then
    return bot_private.keep_feedback(
      v_turn, p_operator_id, 'button', p_handle = 'helpful', false, true);
  elsif p_handle <> 'again' then
    return '{"verdict": "unknown"}';
  elsif p_operator_id not in (v_turn.user_id, v_turn.actor_id) then
    return '{"verdict": "not_yours"}';
  end if;
  select * into v_question from public.agent_messages m
  where m.turn_id = v_turn.id and m.role = 'user' and m.chunk = 0;
  return jsonb_build_object(
    'verdict', case when bot_private.led_to('again', v_turn.id, '') is null
                    then 'accepted' else 'used' end,
    'turn_id', v_turn.id, 'conversation_id', v_turn.conversation_id, 'subject', v_turn.user_id,
    'chat_type', (select c.chat_type from public.agent_chats c
                  where c.id = v_turn.conversation_id and c.user_id = v_turn.user_id
                    and c.tenant_key = v_turn.tenant_key),
    'question', v_question.content,
    'asked_ms', (extract(epoch from bot_private.written_at(v_turn.id)) * 1000)::bigint,
    'is_unanswered', coalesce(v_turn.outcome = 'apologised', false));
end
$$;

-- For the service, because the event names no chat: a reaction to a card of ours, or (p_gone) that it
-- was taken away. Null: the message is none of our answers.
create or replace function public.note_reaction(
  p_message_id text, p_open_id text, p_tenant_key text, p_helpful boolean, p_gone boolean
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_turn public.agent_turns;
begin
  perform public.require_person(p_open_id);
  v_turn := bot_private.turn_of_card(p_message_id, null, p_tenant_key);
  if v_turn.id is null then
    return null;
  end if;
  return bot_private.keep_feedback(v_turn, p_open_id, 'reaction', p_helpful, p_gone, false);
end
$$;

-- For the service: a card of ours as it is to be drawn anew after a press, with a block of numbers where
-- CardKit has it. Null: it is none of ours, or not there any more.
create or replace function public.card_to_redraw(p_message_id text, p_tenant_key text) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_turn public.agent_turns;
  v_card public.agent_cards;
  v_message public.agent_messages;
begin
  v_turn := bot_private.turn_of_card(p_message_id, null, p_tenant_key);
  if v_turn.id is null then
    return null;
  end if;
  select * into v_message from public.agent_messages m
  where m.turn_id = v_turn.id and m.role = 'assistant' and m.message_id = p_message_id;
  update public.agent_cards c
  set sequence = c.sequence + bot_private.card_block(), updated_at = now()
  where c.turn_id = v_turn.id and c.message_id = p_message_id
  returning * into v_card;
  return jsonb_build_object(
    'turn_id', v_turn.id, 'chunk', v_message.chunk, 'content', v_message.content,
    'card_id', v_card.card_id, 'number', v_card.sequence, 'shown', bot_private.told_foot(v_turn.shown),
    'is_last', not exists (select from public.agent_messages m where m.turn_id = v_turn.id
                           and m.role = 'assistant' and m.file is null
                           and m.chunk > v_message.chunk),
    'again', bot_private.led_to('again', v_turn.id, '') is null,
    'asked', (select b.label
              from bot_private.first_asked(v_turn.id) f
              join public.agent_buttons b on b.turn_id = f.parent_id and b.id = f.cause
              where f.origin = 'button' and b.kind = 'follow_up'),
    'buttons', coalesce((
      select jsonb_agg(jsonb_build_object('id', b.id, 'label', b.label, 'pressed', (
        -- one that can be pressed again stays as it is
        select p.button_id = b.id from public.agent_presses p
        where p.group_id = b.group_id and b.payload -> 'again' is null))
        || bot_private.button_looks(b.payload) order by b.ordinal)
      from public.agent_buttons b
      where b.turn_id = v_turn.id and b.chunk = v_message.chunk), '[]'));
end
$$;
