-- Purpose: the buttons under a card: stored with the reply, placed with the card, pressed once.

-- As record_reply, with the buttons of the last card: they are stored with the reply or not at all.
-- p_buttons: JSON array of {id, group_id, chat_type, kind, label, payload, lives_s}.
create or replace function public.record_reply_with_buttons(
  p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text,
  p_cards text, p_tool_calls text, p_buttons text, p_shown text default null, p_given text default '[]',
  p_intended text default null
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_turn public.agent_turns;
  v_kept jsonb;
begin
  perform bot_private.require_size('p_buttons', p_buttons, 262144);
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  perform pg_advisory_xact_lock_shared(bot_private.sources_lock());
  select * into v_turn from public.agent_turns t
  where t.id = p_turn_id and t.user_id = p_user_id and t.conversation_id = p_conversation_id
  for update;
  v_kept := public.record_reply(
    p_turn_id, p_conversation_id, p_user_id, p_actor_id, p_cards, p_tool_calls, p_shown,
    p_given, p_intended);
  if v_turn.state <> 'open' or v_kept ->> 'state' <> 'pending' then
    return v_kept;
  end if;
  insert into public.agent_buttons
    (id, group_id, turn_id, chunk, ordinal, conversation_id, user_id, actor_id, tenant_key, chat_id,
     chat_type, kind, label, payload, expires_at)
  select b.value ->> 'id', b.value ->> 'group_id', v_turn.id,
         (select count(*) from jsonb_array_elements(p_cards::jsonb) c
          where jsonb_typeof(c.value) = 'string') - 1, b.ordinality, v_turn.conversation_id,
         v_turn.user_id, v_turn.actor_id, v_turn.tenant_key, v_turn.chat_id,
         b.value ->> 'chat_type', b.value ->> 'kind', b.value ->> 'label', b.value -> 'payload',
         now() + make_interval(secs => (b.value ->> 'lives_s')::integer)
  from jsonb_array_elements(p_buttons::jsonb) with ordinality b;
  perform bot_private.keep_told_terms(p_turn_id);
  return v_kept || jsonb_build_object('reply', bot_private.turn_reply(p_turn_id));
end
$$;

-- What a press that counts is told of its button; p_with_turn: and of which turn it is.
create or replace function bot_private.accepted_press(
  p_button public.agent_buttons, p_with_turn boolean
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select case when p_with_turn then jsonb_build_object('turn_id', p_button.turn_id)
    else '{}' end || jsonb_build_object(
    'verdict', 'accepted', 'kind', p_button.kind, 'label', p_button.label,
    'payload', p_button.payload, 'conversation_id', p_button.conversation_id,
    'chat_type', p_button.chat_type, 'user_id', p_button.user_id, 'actor_id', p_button.actor_id)
$$;

-- Presses a button for the click p_event_id, or only looks what pressing it would give. Returns the
-- verdict and, when it is accepted, what the button does. A click that is delivered again is the same
-- press; of all others in the group the first won, but for buttons that can be pressed again. A card that is sent but not yet marked as sent has
-- no message_id to compare. A button that only the operator sees is pressed wherever its card is shown;
-- to others it is unknown. Who left a group shares nothing there. A turn is stopped by who asked or whom it is about, while it runs.
-- p_with_turn: an accepted press also returns the button's `turn_id`.
create or replace function public.press_button(
  p_button_id text, p_chat_id text, p_message_id text, p_operator_id text, p_tenant_key text,
  p_event_id text, p_only_look boolean, p_with_turn boolean default false
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_button_id', p_button_id, 4096)
    and bot_private.require_size('p_chat_id', p_chat_id, 4096) and bot_private.require_size('p_operator_id', p_operator_id, 4096);
  v_button public.agent_buttons;
  v_press public.agent_presses;
begin
  if coalesce(p_operator_id, '') = '' or coalesce(p_event_id, '') = '' then
    raise exception 'identity missing: operator_id and event_id are required'
      using errcode = 'PT428';
  end if;
  select * into v_button from public.agent_buttons b
  where b.id = p_button_id and b.tenant_key = p_tenant_key
    and (b.chat_id in (p_chat_id, p_operator_id)
         or (b.kind in ('show', 'share') or b.payload ? 'beside') and exists (
           select from public.p2p_chats p
           where p.chat_id = b.chat_id and p.open_id = p_operator_id and p.tenant_key = p_tenant_key))
    and coalesce(b.message_id, p_message_id) = p_message_id;
  if v_button.id is null or v_button.kind = 'share' and exists (
      select from public.chat_members m
      where m.chat_id = v_button.payload ->> 'chat_id' and m.open_id = p_operator_id
        and m.left_at is not null) then
    return jsonb_build_object('verdict', 'unknown');
  elsif (v_button.kind = 'confirm' and v_button.actor_id <> p_operator_id)
     or (v_button.kind = 'stop' and p_operator_id not in (v_button.user_id, v_button.actor_id)) then
    return jsonb_build_object('verdict', 'not_yours');
  elsif v_button.kind = 'stop' and not exists (
      select from public.agent_turns t where t.id = v_button.turn_id and t.state = 'open') then
    return jsonb_build_object('verdict', 'over');
  end if;

  select * into v_press from public.agent_presses p where p.group_id = v_button.group_id;
  if v_press.group_id is null and v_button.expires_at < now() then
    return jsonb_build_object('verdict', 'expired');
  elsif (v_button.payload -> 'again') = 'true' then
    return bot_private.accepted_press(v_button, p_with_turn);
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
    return jsonb_build_object('verdict', 'used') || case when v_button.kind = 'stop'
      then jsonb_build_object('kind', 'stop', 'payload', v_button.payload) else '{}' end;
  end if;
  return bot_private.accepted_press(v_button, p_with_turn);
end
$$;

-- The press that began the turn p_turn_id did nothing: what shares a private answer can be pressed again.
create or replace function public.release_share(p_turn_id text) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  delete from public.agent_presses p
  using public.agent_turns t, public.agent_buttons b
  where t.id = p_turn_id and t.origin = 'button' and p.event_id = t.cause and p.operator_id = t.actor_id
    and b.id = p.button_id and b.kind = 'share'
$$;

-- Returns {confirm, cancel, message_id}: the buttons and the card of the one action that waits for
-- p_actor_id's confirmation in this conversation, on the card p_card_id if that is given. Null if no
-- action or several wait there, if it has expired or was pressed by anything but p_event_id, or if the
-- person has asked something else since.
create or replace function public.pending_confirmation(
  p_conversation_id text, p_actor_id text, p_tenant_key text, p_event_id text, p_card_id text
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_conversation_id', p_conversation_id, 4096)
    and bot_private.require_size('p_actor_id', p_actor_id, 4096) and bot_private.require_size('p_card_id', p_card_id, 4096);
begin
  return (
  with waiting as (
    select b.group_id, b.turn_id, min(b.message_id) as message_id, min(b.expires_at) as expires_at,
           array_agg(b.id) filter (where b.payload ->> 'decision' = 'confirm') as confirm,
           array_agg(b.id) filter (where b.payload ->> 'decision' = 'cancel') as cancel
    from public.agent_buttons b
    where b.actor_id = p_actor_id and b.tenant_key = p_tenant_key and b.kind = 'confirm'
      and b.conversation_id = p_conversation_id and b.payload ? 'tool' and b.message_id is not null
      and (p_card_id = '' or b.message_id = p_card_id)
      and not exists (
        select from public.agent_turns t
        where t.conversation_id = b.conversation_id and t.actor_id = p_actor_id
          and t.tenant_key = p_tenant_key and t.id not in (b.turn_id, p_event_id)
          and t.created_at > b.created_at)
    group by b.group_id, b.turn_id
  )
  select jsonb_build_object(
    'confirm', w.confirm[1], 'cancel', w.cancel[1], 'message_id', w.message_id)
  from waiting w
  left join public.agent_presses p on p.group_id = w.group_id
  where (select count(*) from waiting) = 1
    and cardinality(w.confirm) = 1 and cardinality(w.cancel) = 1
    and case when p.group_id is null then w.expires_at > now() else p.event_id = p_event_id end);
end
$$;
