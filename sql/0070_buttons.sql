-- Purpose: the buttons under a card, who pressed them, and a fresh start within a thread.
--
-- A button stands in a chat where everyone can see it, so it is read with a token of that chat,
-- whoever presses. What it does stands here and never in the card: the card carries the id only.
-- A press is a row of its own whose key is the group, so that the first one wins without a lock.

create table public.agent_buttons (
  id text primary key,                    -- 128 random bits, base64url
  group_id text not null,                 -- of the buttons of a group only one can be pressed
  turn_id text not null references public.agent_turns (id) on delete cascade,
  chunk smallint not null,                -- the card of the turn that shows it
  ordinal smallint not null,
  conversation_id text not null,
  user_id text not null check (user_id <> ''),   -- the subject of the turn
  actor_id text not null check (actor_id <> ''), -- who asked; only they press a confirmation
  tenant_key text not null default '',
  chat_id text not null,
  chat_type text not null check (chat_type in ('group', 'p2p')),
  kind text not null check (kind in ('follow_up', 'confirm')),
  label text not null,
  payload jsonb not null default '{}',
  message_id text,                        -- of the card, once it is sent
  expires_at timestamptz not null,
  created_at timestamptz not null default now()
);
create index agent_buttons_turn_idx on public.agent_buttons (turn_id, chunk, ordinal);
create index agent_buttons_conversation_idx on public.agent_buttons (conversation_id, user_id);
create index agent_buttons_user_idx on public.agent_buttons (user_id);
create index agent_buttons_actor_idx on public.agent_buttons (actor_id);

create table public.agent_presses (
  group_id text primary key,
  button_id text not null references public.agent_buttons (id) on delete cascade,
  chat_id text not null,
  tenant_key text not null default '',
  operator_id text not null check (operator_id <> ''),
  event_id text not null,                 -- the click; delivered again it is the same press
  created_at timestamptz not null default now()
);
create index agent_presses_button_idx on public.agent_presses (button_id);
create index agent_presses_operator_idx on public.agent_presses (operator_id);

alter table public.agent_buttons enable row level security;
alter table public.agent_presses enable row level security;

do $$
declare
  of_this_chat constant text := $rule$
    chat_id = (select public.claim('chat_id'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
  $rule$;
  of_this_turn constant text := $rule$
    and user_id = (select public.claim('sub')) and actor_id = (select public.claim('actor'))
  $rule$;
begin
  execute format('create policy agent_buttons_select on public.agent_buttons'
                 ' for select to authenticated using (%s)', of_this_chat);
  execute format('create policy agent_buttons_insert on public.agent_buttons'
                 ' for insert to authenticated with check (%s)', of_this_chat || of_this_turn);
  execute format('create policy agent_buttons_update on public.agent_buttons'
                 ' for update to authenticated using (%s) with check (%s)',
                 of_this_chat || of_this_turn, of_this_chat || of_this_turn);
  execute format('create policy agent_presses_select on public.agent_presses'
                 ' for select to authenticated using (%s)', of_this_chat);
  execute format('create policy agent_presses_insert on public.agent_presses'
                 ' for insert to authenticated with check (%s'
                 ' and operator_id = (select public.claim(''actor'')))', of_this_chat);
end
$$;

revoke all on public.agent_buttons, public.agent_presses from anon;
grant select, insert, update on public.agent_buttons to authenticated;
grant select, insert on public.agent_presses to authenticated;
grant select, insert, update, delete on public.agent_buttons, public.agent_presses to service_role;

-- The answer of a turn as stored, one element per card, each with the buttons it shows.
create or replace function public.turn_reply(p_turn_id text) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'chunk', m.chunk, 'content', m.content, 'status', m.status, 'message_id', m.message_id,
    'buttons', coalesce((
      select jsonb_agg(jsonb_build_object('id', b.id, 'label', b.label) order by b.ordinal)
      from public.agent_buttons b
      where b.turn_id = m.turn_id and b.chunk = m.chunk), '[]')
  ) order by m.chunk), '[]')
  from public.agent_messages m
  where m.turn_id = p_turn_id and m.role = 'assistant'
$$;

-- As record_reply, with the buttons of the last card: they are stored with the reply or not at all.
-- p_buttons: JSON array of {id, group_id, chat_type, kind, label, payload, lives_s}.
create function public.record_reply_with_buttons(
  p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text,
  p_cards text, p_tool_calls text, p_buttons text
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
declare
  v_turn public.agent_turns;
  v_kept jsonb;
begin
  select * into v_turn from public.agent_turns t
  where t.id = p_turn_id and t.user_id = p_user_id and t.conversation_id = p_conversation_id
  for update;
  v_kept := public.record_reply(
    p_turn_id, p_conversation_id, p_user_id, p_actor_id, p_cards, p_tool_calls);
  if v_turn.state <> 'open' or p_cards::jsonb = '[]' then
    return v_kept;
  end if;
  insert into public.agent_buttons
    (id, group_id, turn_id, chunk, ordinal, conversation_id, user_id, actor_id, tenant_key, chat_id,
     chat_type, kind, label, payload, expires_at)
  select b.value ->> 'id', b.value ->> 'group_id', v_turn.id,
         jsonb_array_length(p_cards::jsonb) - 1, b.ordinality, v_turn.conversation_id,
         v_turn.user_id, v_turn.actor_id, v_turn.tenant_key, v_turn.chat_id,
         b.value ->> 'chat_type', b.value ->> 'kind', b.value ->> 'label', b.value -> 'payload',
         now() + make_interval(secs => (b.value ->> 'lives_s')::integer)
  from jsonb_array_elements(p_buttons::jsonb) with ordinality b;
  return v_kept || jsonb_build_object('reply', public.turn_reply(p_turn_id));
end
$$;

-- A card that was sent tells its buttons where they stand.
create function public.place_buttons() returns trigger
language plpgsql security invoker set search_path = ''
as $$
begin
  update public.agent_buttons set message_id = new.message_id
  where turn_id = new.turn_id and chunk = new.chunk;
  return null;
end
$$;
create trigger agent_messages_place_buttons after update of message_id on public.agent_messages
  for each row when (new.role = 'assistant' and new.message_id is distinct from old.message_id)
  execute function public.place_buttons();

-- Presses a button for the click p_event_id, or only looks what pressing it would give. Returns the
-- verdict and, when it is accepted, what the button does. A click that is delivered again is the same
-- press; of all others in the group the first won. A card that is sent but not yet marked as sent has
-- no message_id to compare.
create function public.press_button(
  p_button_id text, p_chat_id text, p_message_id text, p_operator_id text, p_tenant_key text,
  p_event_id text, p_only_look boolean
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
declare
  v_button public.agent_buttons;
  v_press public.agent_presses;
begin
  if coalesce(p_operator_id, '') = '' or coalesce(p_event_id, '') = '' then
    raise exception 'identity missing: operator_id and event_id are required'
      using errcode = '22004';
  end if;
  select * into v_button from public.agent_buttons b
  where b.id = p_button_id and b.chat_id = p_chat_id and b.tenant_key = p_tenant_key
    and coalesce(b.message_id, p_message_id) = p_message_id;
  if v_button.id is null then
    return jsonb_build_object('verdict', 'unknown');
  elsif v_button.kind = 'confirm' and v_button.actor_id <> p_operator_id then
    return jsonb_build_object('verdict', 'not_yours');
  end if;

  select * into v_press from public.agent_presses p where p.group_id = v_button.group_id;
  if v_press.group_id is null and v_button.expires_at < now() then
    return jsonb_build_object('verdict', 'expired');
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
    return jsonb_build_object('verdict', 'used');
  end if;
  return jsonb_build_object(
    'verdict', 'accepted', 'kind', v_button.kind, 'label', v_button.label,
    'payload', v_button.payload, 'conversation_id', v_button.conversation_id,
    'chat_type', v_button.chat_type, 'user_id', v_button.user_id, 'actor_id', v_button.actor_id);
end
$$;

-- A fresh start: messages up to this id are kept, and no longer given to the model.
alter table public.agent_chats add column history_from bigint not null default 0;

create function public.start_afresh(p_conversation_id text, p_user_id text, p_actor_id text)
returns jsonb
language plpgsql security invoker set search_path = ''
as $$
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  update public.agent_chats c
  set history_from = coalesce((
    select max(m.id) from public.agent_messages m
    where m.conversation_id = p_conversation_id and m.user_id = p_user_id), 0)
  where c.id = p_conversation_id and c.user_id = p_user_id;
  return 'null'::jsonb;
end
$$;

-- The last p_limit messages up to p_until since the last fresh start, oldest first; the cards of one
-- answer are one message.
create or replace function public.conversation_history(
  p_conversation_id text, p_user_id text, p_until bigint, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(to_jsonb(h) order by h.id), '[]')
  from (
    select m.id, m.role, m.actor_id, m.actor_name, m.tool_calls, m.created_at, m.message_id,
           m.content || coalesce((
             select string_agg(e'\n\n' || c.content, '' order by c.chunk)
             from public.agent_messages c
             where c.turn_id = m.turn_id and c.role = m.role and c.chunk > 0
               and c.status <> 'failed'), '') as content
    from public.agent_messages m
    where m.conversation_id = p_conversation_id and m.user_id = p_user_id
      and m.id <= p_until and m.chunk = 0 and m.status <> 'failed'
      and m.id > coalesce((select c.history_from from public.agent_chats c
                           where c.id = p_conversation_id and c.user_id = p_user_id), 0)
    order by m.id desc
    limit p_limit
  ) h
$$;

-- How much is kept of a person, told to that person only.
create function public.memory_overview(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text
) returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if p_user_id <> p_actor_id then
    raise exception 'only the person is told what is kept about them' using errcode = '42501';
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

do $$
declare
  f regprocedure;
begin
  for f in
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.proname in (
      'record_reply_with_buttons', 'place_buttons', 'press_button', 'start_afresh',
      'memory_overview')
  loop
    execute format('revoke execute on function %s from public, anon', f);
    execute format('grant execute on function %s to authenticated, service_role', f);
  end loop;
end
$$;
