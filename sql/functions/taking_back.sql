-- Purpose: taking back means gone: a message with all that was made from it, or one fact or note.
--
-- What a message set in an object (a working memory, a note) is known by its sources and its changes;
-- taking it back restores what was there before. What was removed on purpose stays removed.

-- The advisory lock of those who note what an answer is made of and then look whether any of it is gone
-- (shared), and of who takes a message back and then looks for answers made of it (exclusive): one of them
-- sees the other. One for all, and before any lock of a row, so that nobody waits in a circle.
create or replace function bot_private.sources_lock() returns bigint
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$ select hashtextextended('bot_private.sources_lock', 0) $$;

-- Who writes down what somebody said comes before a taking back, which then finds it, or after it, and then
-- knows of it.
create or replace function bot_private.besides_taking_back() returns boolean
language sql volatile security invoker
return pg_advisory_xact_lock_shared(bot_private.sources_lock()) is not null;

-- A turn whose question was taken back changes nothing any more. Waits for a taking back that is under
-- way, and makes the next one wait.
create or replace function bot_private.require_turn_stands(p_turn_id text) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  if p_turn_id is null then
    return;
  end if;
  perform from public.agent_turns t where t.id = p_turn_id for share;
  if exists (select from public.recalled_messages r where r.message_id = p_turn_id) then
    raise exception 'the message was taken back' using errcode = 'PT409';
  end if;
end
$$;

-- The sources of p_after, which turn p_turn_id made of p_before (null: nobody that is remembered). What it states again
-- (p_stated) comes from it too. p_replaces are the ids of facts that what it states replaces.
create or replace function bot_private.next_sources(
  p_sources jsonb, p_before jsonb, p_after jsonb, p_turn_id text, p_stated text[] default '{}',
  p_replaces text[] default '{}'
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(e.key, s.source) filter (where s.source is not null), '{}')
  from jsonb_each(p_after) e
  cross join lateral (select case
    when p_before -> e.key = e.value and (p_turn_id is null or e.key <> all (p_stated)) then p_sources -> e.key
    when p_turn_id is not null then jsonb_strip_nulls(jsonb_build_object('turn', p_turn_id, 'at', now(), 'replaces', (
      select jsonb_agg(distinct r.id) from (
        select jsonb_array_elements_text(p_sources #> array[e.key, 'replaces'])
        union select unnest(p_replaces) where e.key = any (p_stated)) r (id)))) end as source) s
$$;

-- Whether any key of p_sources comes from the turn.
create or replace function public.comes_from(p_sources jsonb, p_turn_id text) returns boolean
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select exists (select from jsonb_each(p_sources) s where s.value ->> 'turn' = p_turn_id)
$$;

-- An object without what turn p_turn_id set in it, or of that only p_keys. p_changes: how it came to be what it is, oldest
-- first, [{id, turn_id, was, became, was_sources}]. Returns its content and sources, and the changes
-- by others, without those values.
create or replace function public.without_turn(
  p_content jsonb, p_sources jsonb, p_changes jsonb, p_turn_id text, p_keys text[] default null
) returns jsonb
language plpgsql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_change jsonb;
  v_key text;
  v_before jsonb := '{}';
  v_from jsonb := '{}';
  v_kept jsonb := '[]';
begin
  for v_change in
    select c.value from jsonb_array_elements(p_changes) with ordinality c order by c.ordinality
  loop
    for v_key in
      select k from jsonb_object_keys(v_change -> 'was' || (v_change -> 'became')) k
      where p_keys is null or k = any (p_keys)
    loop
      if v_change ->> 'turn_id' = p_turn_id then
        if not v_change -> 'was' ? v_key then
          v_before := v_before - v_key;
        elsif (v_change #>> array['was_sources', v_key, 'turn']) is distinct from p_turn_id then
          v_before := jsonb_set(v_before, array[v_key], v_change #> array['was', v_key]);
          v_from := case when v_change -> 'was_sources' ? v_key
            then jsonb_set(v_from, array[v_key], v_change #> array['was_sources', v_key])
            else v_from - v_key end;
        end if;
      elsif v_change #>> array['was_sources', v_key, 'turn'] = p_turn_id then
        v_change := v_change #- array['was', v_key] #- array['was_sources', v_key];
        if v_before ? v_key then
          v_change := jsonb_set(v_change, array['was', v_key], v_before -> v_key);
          if v_from ? v_key then
            v_change := jsonb_set(v_change, array['was_sources', v_key], v_from -> v_key);
          end if;
        end if;
      end if;
    end loop;
    if v_change ->> 'turn_id' is distinct from p_turn_id then
      v_kept := v_kept || v_change;
    elsif ((v_change -> 'was') || (v_change -> 'became')) - p_keys <> '{}' then
      v_kept := v_kept || (v_change || jsonb_build_object(
        'was', (v_change -> 'was') - p_keys, 'became', (v_change -> 'became') - p_keys));
    end if;
  end loop;
  for v_key in
    select s.key from jsonb_each(p_sources) s
    where s.value ->> 'turn' = p_turn_id and (p_keys is null or s.key = any (p_keys))
  loop
    p_content := p_content - v_key;
    p_sources := p_sources - v_key;
    if v_before ? v_key then
      p_content := jsonb_set(p_content, array[v_key], v_before -> v_key);
      if v_from ? v_key then
        p_sources := jsonb_set(p_sources, array[v_key], v_from -> v_key);
      end if;
    end if;
  end loop;
  return jsonb_build_object('content', p_content, 'sources', p_sources, 'changes', v_kept);
end
$$;

-- The texts in a JSON value.
create or replace function public.texts_in(p_value jsonb) returns text[]
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(array_agg(distinct t #>> '{}'), '{}')
  from jsonb_path_query(p_value, 'strict $.** ? (@.type() == "string")') t
$$;

-- Working memory as it was before the turn; p_told: of what it set only these facts go, each its name and value.
create or replace function public.take_back_facts(
  p_turn_id text, p_chat_id text, p_told text[] default null
) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_memory public.agent_working_memory;
  v_changes jsonb;
  v_left jsonb;
begin
  for v_memory in
    select w.* from public.agent_working_memory w
    where w.chat_id = p_chat_id and (public.comes_from(w.sources, p_turn_id) or exists (
      select from public.agent_working_memory_history h
      where h.working_memory_id = w.id
        and (h.turn_id = p_turn_id or public.comes_from(h.was_sources, p_turn_id))))
    order by w.id for update
  loop
    select coalesce(jsonb_agg(jsonb_build_object(
      'id', h.id, 'turn_id', h.turn_id, 'was', h.was, 'became', h.became,
      'was_sources', h.was_sources) order by h.id), '[]')
    into v_changes from public.agent_working_memory_history h
    where h.working_memory_id = v_memory.id;
    v_left := public.without_turn(
      v_memory.content, v_memory.sources, v_changes, p_turn_id, case when p_told is not null then array(
        select e.key from jsonb_each_text(v_memory.content) e
        where concat_ws(' ', e.key, e.value) = any (p_told) and v_memory.sources #>> array[e.key, 'turn'] = p_turn_id
        union
        select e.key from jsonb_array_elements(v_changes) c, jsonb_each_text(c.value -> 'became') e
        where c.value ->> 'turn_id' = p_turn_id and concat_ws(' ', e.key, e.value) = any (p_told)) end);
    perform public.rewrite_memory(v_memory.id, v_left);
  end loop;
end
$$;

-- A working memory as p_left ({content, sources, changes}) says, with no other history than that.
create or replace function public.rewrite_memory(p_id bigint, p_left jsonb) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  update public.agent_working_memory set content = p_left -> 'content', sources = p_left -> 'sources'
  where id = p_id;
  delete from public.agent_working_memory_history h
  where h.working_memory_id = p_id
    and h.id not in (select (c.value ->> 'id')::bigint from jsonb_array_elements(p_left -> 'changes') c);
  update public.agent_working_memory_history h
  set was = c.value -> 'was', was_sources = c.value -> 'was_sources', became = c.value -> 'became'
  from jsonb_array_elements(p_left -> 'changes') c
  where h.id = (c.value ->> 'id')::bigint;
end
$$;

-- Notes as they were before the turn: those it created are gone. p_told: only what it made of these texts goes, and
-- what somebody has corrected since stays.
create or replace function public.take_back_notes(p_turn_id text, p_told text[] default null)
returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_note public.agent_notes;
  v_changes jsonb;
  v_left jsonb;
  v_fields text[];
begin
  for v_note in
    select n.* from public.agent_notes n
    where n.turn_id = p_turn_id or (n.id, n.tenant_key, n.user_id) in (
      select c.note_id, c.tenant_key, c.user_id from public.agent_note_changes c
      where c.turn_id = p_turn_id)
    order by n.id for update
  loop
    if p_told is not null then
      v_fields := array(
        select e.key from jsonb_each_text(bot_private.note_fields(v_note)) e
        where e.value = any (p_told) and v_note.sources #>> array[e.key, 'turn'] = p_turn_id
        union
        select e.key from public.agent_note_changes c, jsonb_each_text(c.was) e
        where c.note_id = v_note.id and c.tenant_key = v_note.tenant_key and c.user_id = v_note.user_id
          and e.value = any (p_told) and c.was_sources #>> array[e.key, 'turn'] = p_turn_id);
      continue when v_fields = '{}';
    end if;
    perform public.note_gone(array['note:' || v_note.id], v_note.chat_id);
    if v_note.turn_id = p_turn_id and (p_told is null or exists (
      select from jsonb_each(v_note.sources) s where s.key = any (v_fields) and s.value ->> 'turn' = p_turn_id)) then
      delete from public.agent_notes n
      where n.id = v_note.id and n.tenant_key = v_note.tenant_key and n.user_id = v_note.user_id;
      continue;
    end if;
    select jsonb_agg(to_jsonb(c) || '{"became": {}}' order by c.id) into v_changes
    from public.agent_note_changes c
    where c.note_id = v_note.id and c.tenant_key = v_note.tenant_key and c.user_id = v_note.user_id;
    v_left := public.without_turn(
      bot_private.note_fields(v_note), v_note.sources, v_changes, p_turn_id, v_fields);
    if not v_left -> 'content' ?& '{title,body}' then  -- nothing was there before
      delete from public.agent_notes n
      where n.id = v_note.id and n.tenant_key = v_note.tenant_key and n.user_id = v_note.user_id;
      continue;
    end if;
    update public.agent_notes n
    set title = v_left #>> '{content,title}', body = v_left #>> '{content,body}',
        tags = array(select jsonb_array_elements_text(coalesce(v_left #> '{content,tags}', '[]'))),
        sources = v_left -> 'sources'
    where n.id = v_note.id and n.tenant_key = v_note.tenant_key and n.user_id = v_note.user_id;
    delete from public.agent_note_changes c
    where c.note_id = v_note.id and c.tenant_key = v_note.tenant_key and c.user_id = v_note.user_id
      and c.turn_id = p_turn_id and c.id not in (
        select (k.value ->> 'id')::bigint from jsonb_array_elements(v_left -> 'changes') k);
    update public.agent_note_changes c
    set was = k.value -> 'was', was_sources = k.value -> 'was_sources'
    from jsonb_array_elements(v_left -> 'changes') k where c.id = (k.value ->> 'id')::bigint;
  end loop;
end
$$;

-- What of a note can change.
create or replace function bot_private.note_fields(p_note public.agent_notes) returns jsonb
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'title', p_note.title, 'body', p_note.body, 'tags', to_jsonb(p_note.tags))
$$;

-- Cards of ours that are to be withdrawn. One of a p2p chat may be shown to that person beside a group.
create or replace function public.withdraw_later(
  p_message_ids text[], p_chat_id text, p_tenant_key text
) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  insert into public.agent_withdrawals (message_id, chat_id, tenant_key, of_one)
  select distinct m, p_chat_id, p_tenant_key,
    exists (select from public.p2p_chats p where p.chat_id = p_chat_id and p.tenant_key = p_tenant_key)
  from unnest(p_message_ids) m where m <> ''
  on conflict do nothing
$$;

-- The kept cards of a turn that goes will be withdrawn. Waits for who says which they are.
create or replace function bot_private.withdraw_kept(p_turn_id text) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_turn public.agent_turns;
begin
  select * into v_turn from public.agent_turns t where t.id = p_turn_id for update;
  perform bot_private.withdraw_own(v_turn.kept_cards, v_turn.chat_id, v_turn.tenant_key)
  where v_turn.kept_cards <> '{}';
end
$$;

-- The same for a turn, which names the cards itself: only in its own place, and no card that is stored as
-- somebody else's. What they told is gone. It runs as its owner because a token neither adds withdrawals nor sees
-- other chats.
create or replace function bot_private.withdraw_own(
  p_message_ids text[], p_chat_id text, p_tenant_key text
) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$
  select public.withdraw_later(own.ids, p_chat_id, p_tenant_key), public.note_gone(own.ids, p_chat_id)
  from (select array(
    select m from unnest(p_message_ids) m
    where current_setting('role') in ('service_role', 'none')
      or ((p_chat_id, p_tenant_key) = (public.claim('chat_id'), coalesce(public.claim('tenant_key'), ''))
          and not bot_private.is_card_of_others(m))) as ids) own
$$;

-- Whether a card is stored as the answer to anybody but whom the token is about and of, there.
create or replace function bot_private.is_card_of_others(p_message_id text) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from (
      select m.tenant_key, m.chat_id, m.user_id, m.actor_id from public.agent_messages m
      where m.message_id = p_message_id and m.role = 'assistant'
      union all
      select c.tenant_key, c.chat_id, c.user_id, c.actor_id from public.agent_cards c
      where c.message_id = p_message_id and c.streaming
      union all
      select t.tenant_key, t.chat_id, t.user_id, t.actor_id from public.agent_turns t
      where t.kept_cards @> array[p_message_id] and t.kept_cards <> '{}') card
    where (card.tenant_key, card.chat_id, card.user_id, card.actor_id) is distinct from (
      coalesce(public.claim('tenant_key'), ''), public.claim('chat_id'), public.claim('sub'),
      public.claim('actor')))
$$;

-- The words of a turn go: question and answer, its lines in the transcript, buttons, a card that is
-- being written, what was said of it, and with them (triggers) title, summaries, terms and vectors. Its
-- cards will be withdrawn unless p_keep_cards.
create or replace function public.drop_turn(p_turn_id text, p_keep_cards boolean) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_turn public.agent_turns;
  v_cards text[];
begin
  select * into v_turn from public.agent_turns t where t.id = p_turn_id;
  v_cards := array(
    select m.message_id from public.agent_messages m where m.turn_id = p_turn_id and m.role = 'assistant'
    union all select c.message_id from public.agent_cards c where c.turn_id = p_turn_id);
  if p_keep_cards then
    update public.agent_turns set kept_cards = v_cards where id = p_turn_id;
  else
    perform public.withdraw_later(
      v_cards || v_turn.kept_cards, v_turn.chat_id, v_turn.tenant_key);
  end if;
  delete from public.agent_turn_records where turn_id = p_turn_id;
  delete from public.chat_transcript t
  where t.chat_id = v_turn.chat_id and (t.message_id = p_turn_id or t.message_id = any (v_cards));
  -- a confirmation names its item only, a form what can be chosen
  delete from public.agent_buttons
  where turn_id = p_turn_id and not (p_keep_cards and (kind = 'confirm' or payload ? 'form'));
  delete from public.agent_cards where turn_id = p_turn_id and not streaming;
  delete from public.agent_feedback where turn_id = p_turn_id;
  perform public.note_gone(
    v_cards || bot_private.thread_sources(v_turn.conversation_id, array[v_turn.user_id]), v_turn.chat_id);
  update public.agent_turns set shown = null where id = p_turn_id and shown is not null;
  delete from public.agent_messages where turn_id = p_turn_id;
  perform bot_private.forget_source_terms(v_cards || p_turn_id);
end
$$;

-- A message goes with its answer and what its turn kept. A turn that is being answered is cancelled.
create or replace function public.drop_message(p_message_id text, p_chat_id text) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  insert into public.recalled_messages (message_id, chat_id) values (p_message_id, p_chat_id)
  on conflict do nothing;
  -- a card may be on its way; if its worker is killed nobody says which
  insert into public.agent_withdrawals (message_id, chat_id, tenant_key)
  select 'of:' || t.id, t.chat_id, t.tenant_key from public.agent_turns t
  where t.id = p_message_id and t.state in ('open', 'pending') and t.chat_id <> t.actor_id
    and not bot_private.is_private(t)
  on conflict do nothing;
  update public.agent_turns
  set state = case when state in ('open', 'pending') then 'cancelled' else state end,
      intended = '{"outcome": "taken_back"}', error = null, updated_at = now()
  where id = p_message_id;
  update public.agent_decisions set cue = null where message_id = p_message_id;
  perform public.drop_turn(p_message_id, false);
  perform public.take_back_kept(p_message_id, p_chat_id);
end
$$;

-- Facts, notes and reminders as they were before the turn; p_told: of what it kept only these texts go.
create or replace function public.take_back_kept(
  p_turn_id text, p_chat_id text, p_told text[] default null
) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  select public.take_back_facts(p_turn_id, p_chat_id, p_told),
         public.take_back_notes(p_turn_id, p_told), public.take_back_timers(p_turn_id, p_told)
$$;

-- Something that a turn told or kept goes; p_ids: as what prompts may have been given it, the turn, a card, a note, a
-- thread in its summary. An answer that is being made and was given it is made again.
create or replace function public.note_gone(p_ids text[], p_chat_id text) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  insert into public.recalled_messages (message_id, chat_id, created_at)
  select distinct 'answer:' || i, p_chat_id, clock_timestamp() from unnest(p_ids) i where i is not null
  on conflict (message_id) do update set created_at = excluded.created_at
$$;

-- The answer of a turn goes, and its cards; the question is a person's own.
create or replace function public.drop_answer(p_turn_id text) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_card public.agent_messages;
begin
  for v_card in
    select m.* from public.agent_messages m where m.turn_id = p_turn_id and m.role = 'assistant'
  loop
    perform public.take_card(v_card);
  end loop;
end
$$;

-- Messages are taken back, whose words were p_texts and whose facts and notes, p_kept, go, with all that was made from them; answers that were given
-- them, or what was made from them, go if they tell them. p_ids that are turns go themselves, as the caller
-- wants it. p_card_turn: the turn of a card of ours that goes alone. p_by_turn asked for it, and stays.
create or replace function public.take_back_sources(
  p_ids text[], p_texts text[], p_kept text[], p_card_turn text default null, p_by_turn text default null
) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_sources text[] := p_ids || bot_private.known_as(p_ids);
  v_whole text[] := '{}';
  v_answers text[] := '{}';
  v_gone text[];
  v_more text[];
  v_more_answers text[];
  v_since timestamptz;
  v_units jsonb;
  v_turn public.agent_turns;
begin
  loop  -- what was made from what was made from them
    select array_agg(m.turn_id) filter (where m.whole and m.turn_id <> all (v_whole)),
           array_agg(distinct m.turn_id) filter (where not m.whole and m.turn_id <> all (v_answers))
    into v_more, v_more_answers
    from bot_private.made_from(v_sources || bot_private.cards_of(v_answers), p_ids || v_whole || v_answers) m
    where m.turn_id <> all (p_ids) and m.turn_id is distinct from p_by_turn;
    exit when v_more is null and v_more_answers is null;
    v_whole := v_whole || coalesce(v_more, '{}');
    v_answers := v_answers || coalesce(v_more_answers, '{}');
    v_sources := v_sources || bot_private.known_as(v_more);
  end loop;
  v_gone := bot_private.known_as(array_remove(v_answers || p_card_turn, null));
  v_since := bot_private.said_since(p_ids, v_whole || v_answers || p_card_turn);
  v_units := bot_private.told_units(p_texts, p_kept);
  perform public.take_back_tellers(p_ids, v_units, v_sources, v_gone, p_by_turn, v_since);
  perform public.take_back_told(t, p_ids, v_units, v_sources, v_gone, v_since)
  from public.agent_turns t where t.id = any (v_answers);
  for v_turn in select t.* from public.agent_turns t where t.id = any (v_whole) order by t.id loop
    perform public.drop_message(v_turn.id, v_turn.chat_id);
  end loop;
  update public.agent_turns t
  set state = case when t.state in ('open', 'pending') then 'cancelled' else t.state end,
      intended = '{"outcome": "taken_back"}', error = null, updated_at = now()
  where t.id = any (v_answers);
  perform public.note_gone(array[t.id], t.chat_id), public.drop_answer(t.id)
  from public.agent_turns t where t.id = any (v_answers);
  perform bot_private.forget_source_terms(p_ids);
end
$$;

-- The answers since p_since that were given p_sources, or p_gone, which tells them: those go that tell p_units or
-- what came with p_ids, and with them what their tools kept of it, or said.
create or replace function public.take_back_tellers(
  p_ids text[], p_units jsonb, p_sources text[], p_gone text[], p_by_turn text, p_since timestamptz
) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_gone text[] := p_gone;
  v_known text[];
  v_turn public.agent_turns;
  v_before integer := -1;
begin
  -- those that were given what goes now are looked at next
  while cardinality(v_gone) > v_before loop
    v_before := cardinality(v_gone);
    for v_turn in select * from bot_private.turns_given(p_sources || v_gone, p_since) loop
      continue when v_turn.id = any (p_sources || v_gone || p_by_turn);
      v_known := bot_private.known_as(array[v_turn.id]);
      -- what a turn said whose answer is gone already is not known any more: others may tell it
      if public.take_back_told(v_turn, p_ids, p_units, p_sources, v_gone, p_since) or not exists (
          select from public.agent_messages m where m.turn_id = v_turn.id and m.role = 'assistant') then
        v_gone := v_gone || v_known;
      end if;
    end loop;
  end loop;
end
$$;

-- What a turn that stands tells of p_units goes: its answer, what its tools kept and what they said. A question
-- that is a copy, or a model's, goes with the answer. Returns whether it told anything.
create or replace function public.take_back_told(
  p_turn public.agent_turns, p_ids text[], p_units jsonb, p_sources text[], p_gone text[],
  p_since timestamptz
) returns boolean
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_card constant text := bot_private.told_by(p_turn.id);
  v_kept constant text[] := array(select bot_private.kept_by(array[p_turn.id]));
  v_calls constant text := (
    select string_agg(bot_private.words_of_call(c.value), e'\n')
    from public.agent_messages m cross join jsonb_array_elements(m.tool_calls) c where m.turn_id = p_turn.id);
  v_words constant text := concat_ws(e'\n', v_card, array_to_string(v_kept, e'\n'), v_calls);
  v_used constant text[] := array(
    select distinct w from unnest(v_kept || v_card || v_calls) t, bot_private.telling_terms(t) w);
  v_terms constant text[] := bot_private.source_terms_among(p_units, p_ids, v_used);
  v_units constant jsonb := bot_private.units_without_others(p_turn, p_units, v_words, p_sources, p_gone);
  v_elsewhere text[];
  v_items text[];
  v_told boolean := false;
begin
  if not v_terms && v_used and bot_private.phrases_of(v_units) = '{}' then
    return false;
  end if;
  v_elsewhere := bot_private.from_elsewhere(p_turn, v_terms, p_sources, p_gone);
  v_elsewhere := v_elsewhere || bot_private.common_terms(p_turn, array(
    select unnest(v_terms) intersect select unnest(v_used)), p_since);
  v_items := array(
    select k from unnest(v_kept) k where bot_private.tells_any(k, v_units, v_elsewhere, p_ids));
  if v_items <> '{}' then
    v_told := true;
    perform public.take_back_kept(p_turn.id, p_turn.chat_id, v_items);
  end if;
  if bot_private.tells_any(v_calls, v_units, v_elsewhere, p_ids) then
    v_told := true;
    perform public.take_back_calls(p_turn.id, v_units, v_elsewhere, p_ids);
  end if;
  if bot_private.tells_any(v_card, v_units, v_elsewhere, p_ids) then
    v_told := true;
    if p_turn.drawn_on <> '{}' or p_turn.origin in ('reminder', 'digest')
       or bot_private.is_pressed(p_turn) then
      perform public.drop_message(p_turn.id, p_turn.chat_id);
    else
      perform public.drop_answer(p_turn.id);
    end if;
  end if;
  if v_told then
    perform public.note_gone(array[p_turn.id], p_turn.chat_id);
  end if;
  return v_told;
end
$$;

-- Of the tool calls of a turn those that tell p_units are told without their words.
create or replace function public.take_back_calls(
  p_turn_id text, p_units jsonb, p_elsewhere text[], p_ids text[]
) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  update public.agent_messages m
  set tool_calls = (
    select jsonb_agg(case when not bot_private.tells_any(
        bot_private.words_of_call(c.value), p_units, p_elsewhere, p_ids) then c.value
      else jsonb_build_object('name', c.value -> 'name', 'arguments', '{}'::jsonb, 'ok', c.value -> 'ok',
                              'ms', 0, 'result', 'What this told was taken back.') end
      order by c.ordinality)
    from jsonb_array_elements(m.tool_calls) with ordinality c)
  where m.turn_id = p_turn_id and m.tool_calls <> '[]'
$$;

-- Cards that list what is kept of these people, of turns that keep no words: those of p_since and later
-- may show what is gone. An offer shows its question only.
create or replace function public.withdraw_kept_cards(
  p_people text[], p_tenant_key text, p_since timestamptz
) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform public.withdraw_later(t.kept_cards, t.chat_id, t.tenant_key)
  from public.agent_turns t
  where t.user_id = any (p_people) and t.tenant_key = p_tenant_key
    and t.kept_cards <> '{}' and t.created_at >= p_since and t.origin <> 'offer';
  update public.agent_turns t set kept_cards = '{}'
  where t.user_id = any (p_people) and t.tenant_key = p_tenant_key
    and t.kept_cards <> '{}' and t.created_at >= p_since and t.origin <> 'offer';
end
$$;

-- The stored copy of one card of ours.
create or replace function public.drop_card(p_message_id text) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  delete from public.agent_buttons b using public.agent_messages m
  where m.message_id = p_message_id and m.role = 'assistant'
    and b.turn_id = m.turn_id and b.chunk = m.chunk;
  delete from public.agent_cards where message_id = p_message_id and not streaming;
  delete from public.agent_messages where message_id = p_message_id and role = 'assistant';
  perform bot_private.forget_source_terms(array[p_message_id]);
  delete from public.chat_transcript where message_id = p_message_id;
end
$$;

-- The stored copy of one card goes, and the card, and what listed it for the people it answered. One that is
-- not shown yet is not going to be.
create or replace function public.take_card(p_card public.agent_messages) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform public.withdraw_kept_cards(
    array[p_card.user_id, p_card.actor_id], p_card.tenant_key, p_card.created_at);
  if p_card.message_id is null then
    update public.agent_turns t set state = 'cancelled', error = null, updated_at = now()
    where t.id = p_card.turn_id and t.state = 'pending';
    perform public.note_gone(array[p_card.turn_id], p_card.chat_id);
    delete from public.agent_messages where id = p_card.id;
    return;
  end if;
  perform public.withdraw_later(array[p_card.message_id], p_card.chat_id, p_card.tenant_key);
  perform public.note_gone(array[p_card.turn_id, p_card.message_id]
    || bot_private.thread_sources(p_card.conversation_id, array[p_card.user_id]), p_card.chat_id);
  perform public.drop_card(p_card.message_id);
end
$$;

-- A Feishu message was recalled, a person's or one of ours: it goes with all that was made from it.
-- A turn that has not begun never will. p_cards (JSON array of message_ids) are cards of ours that
-- answered it and that only the caller knows. For the service only: the event names no sender. Returns
-- the state of the turn, null when it had not begun.
create or replace function public.recall_message(
  p_message_id text, p_chat_id text, p_cards text default '[]'
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_turn public.agent_turns;
  v_card public.agent_messages;
  v_before constant jsonb := bot_private.rows_written();
  v_texts text[];
  v_said record;
begin
  perform pg_advisory_xact_lock(bot_private.sources_lock());
  -- in the order in which a turn that begins takes them
  perform from public.agent_chats c join public.agent_turns t
    on c.id = t.conversation_id and c.user_id = t.user_id and c.tenant_key = t.tenant_key
  where t.id = p_message_id for update of c;
  select * into v_turn from public.agent_turns t where t.id = p_message_id for update;
  select * into v_card from public.agent_messages m
  where m.message_id = p_message_id and m.role = 'assistant';
  perform public.withdraw_later(
    array(select jsonb_array_elements_text(p_cards::jsonb)), p_chat_id, coalesce(v_turn.tenant_key, ''));
  select t.actor_id as author, t.tenant_key into v_said from public.agent_turns t where t.id = p_message_id
  union all
  select t.author_id, t.tenant_key from public.chat_transcript t
  where t.message_id = p_message_id and t.chat_id = p_chat_id and not t.is_bot
  union all
  select m.author_id, m.tenant_key from public.imported_messages m
  where hashtext(m.message_id) = hashtext(p_message_id) and m.message_id = p_message_id
  limit 1;
  v_texts := array(
    select m.content from public.agent_messages m where m.turn_id = p_message_id and m.role = 'user'
    union all
    select t.content from public.chat_transcript t
    where t.message_id = p_message_id and t.chat_id = p_chat_id and not t.is_bot and v_turn.id is null
    union all
    select m.content from public.imported_messages m
    where hashtext(m.message_id) = hashtext(p_message_id) and m.message_id = p_message_id
    union all
    select bot_private.told_by(v_card.turn_id) where v_card.id is not null);
  perform public.take_back_sources(
    array[p_message_id], v_texts, array(select bot_private.kept_by(array[p_message_id])), v_card.turn_id);
  perform public.note_gone(array[v_card.turn_id], v_card.chat_id) where v_card.id is not null;
  perform public.drop_card(p_message_id);
  perform public.drop_message(p_message_id, coalesce(v_turn.chat_id, p_chat_id));
  delete from public.imported_messages m
  where hashtext(m.message_id) = hashtext(p_message_id) and m.message_id = p_message_id;
  perform public.withdraw_kept_cards(
    array[v_turn.user_id, v_turn.actor_id], v_turn.tenant_key, v_turn.created_at)
  where v_turn.id is not null;
  perform bot_private.draft_receipt(
    'retraction', array[p_message_id], v_texts, v_before, nullif(v_said.author, ''),
    v_said.tenant_key, null);
  return (select to_jsonb(t.state) from public.agent_turns t where t.id = p_message_id);
end
$$;

-- A person edited a message, of which Feishu tells no app. What it said before goes with all that was made from it,
-- as if it had been taken back; what it says now stands in its place: p_said to the bot, p_heard in the chat.
-- p_by_turn noticed it, and stays. For the service only. Returns whether the stored text was another.
create or replace function public.replace_message(
  p_message_id text, p_chat_id text, p_said text, p_heard text, p_by_turn text
) returns boolean
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_said', p_said, 1048576)
    and bot_private.require_size('p_heard', p_heard, 1048576);
  v_said public.agent_messages;
  v_heard public.chat_transcript;
  v_before constant jsonb := bot_private.rows_written();
  v_texts text[];
begin
  perform pg_advisory_xact_lock(bot_private.sources_lock());
  perform from public.agent_turns t where t.id = p_message_id for update;
  select * into v_said from public.agent_messages m
  where m.turn_id = p_message_id and m.chat_id = p_chat_id and m.role = 'user' and m.chunk = 0;
  select * into v_heard from public.chat_transcript t
  where t.message_id = p_message_id and t.chat_id = p_chat_id and not t.is_bot;
  if coalesce(v_said.content = p_said, true) and coalesce(v_heard.content = p_heard, true) then
    return false;
  end if;
  v_texts := array_remove(array[v_said.content, v_heard.content], null);
  perform public.take_back_sources(
    array[p_message_id], v_texts, array(select bot_private.kept_by(array[p_message_id])), null, p_by_turn);
  perform public.take_back_kept(p_message_id, p_chat_id);
  perform public.drop_answer(t.id) from public.agent_turns t where t.id = p_message_id;
  perform public.note_gone(array(select distinct unnest(bot_private.known_as(array[p_message_id]))), p_chat_id);
  delete from public.agent_turn_records where turn_id = p_message_id;
  -- what was said is not changed: another row takes its place, and what was derived from the old one goes with it
  delete from public.agent_messages where id = v_said.id;
  insert into public.agent_messages (
    id, turn_id, conversation_id, user_id, tenant_key, chat_id, role, chunk, content, actor_id, actor_name,
    message_id, status, created_at, quotes)
  overriding system value
  select v_said.id, v_said.turn_id, v_said.conversation_id, v_said.user_id, v_said.tenant_key, v_said.chat_id,
         v_said.role, v_said.chunk, p_said, v_said.actor_id, v_said.actor_name, v_said.message_id, v_said.status,
         v_said.created_at, v_said.quotes
  where v_said.id is not null;
  perform bot_private.keep_terms(p_message_id) where v_said.id is not null;
  -- with another number, so that no worker goes on with what it holds
  delete from public.chat_transcript where message_id = p_message_id and chat_id = p_chat_id;
  insert into public.chat_transcript (
    chat_id, message_id, tenant_key, root_id, author, author_id, content, "timestamp", is_bot, ours, quotes)
  select v_heard.chat_id, v_heard.message_id, v_heard.tenant_key, v_heard.root_id, v_heard.author, v_heard.author_id,
         p_heard, v_heard."timestamp", v_heard.is_bot, v_heard.ours, v_heard.quotes
  where v_heard.message_id is not null;
  perform bot_private.draft_receipt(
    'edit', array[p_message_id], v_texts, v_before, coalesce(v_said.actor_id, nullif(v_heard.author_id, '')),
    coalesce(v_said.tenant_key, v_heard.tenant_key), null);
  return true;
end
$$;

-- Turns that forgot something, or said nothing, and are over: of them nothing stays but their cards in the
-- chat, and what one person was shown in place of an answer. Returns how many.
create or replace function public.drop_forgetting_turns() returns integer
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_id text;
  v_count integer := 0;
begin
  for v_id in
    select t.id from public.agent_turns t
    where t.forgets and t.state not in ('open', 'pending')
    order by t.created_at desc  -- what came of a question before that, or its card would go with it
    for update skip locked
  loop
    perform public.drop_turn(c.id, true) from public.agent_turns c
    where c.parent_id = v_id and c.origin = 'private_answer' and c.state not in ('open', 'pending')
      and not exists (
        select from public.agent_messages m where m.turn_id = v_id and m.role = 'assistant');
    perform public.drop_turn(v_id, true);
    update public.agent_turns set forgets = false where id = v_id;
    v_count := v_count + 1;
  end loop;
  return v_count;
end
$$;

-- For the service: a turn is to be answered anew, what its tools kept is undone.
create or replace function public.undo_kept(p_turn_id text, p_chat_id text) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform public.take_back_kept(p_turn_id, p_chat_id) from public.agent_turns t
  where t.id = p_turn_id and t.state = 'open';
  return 'null'::jsonb;
end
$$;

-- What is due to be withdrawn, each taken by one worker; after a failure it is due again after ever longer,
-- at most an hour. [{message_id, chat_id, of_one, chats, age_s, since_ms}]: a card of ours, of_one if one
-- person may see it beside a group; `chats`: where it may stand, for the turn that named it may have lied; or 'of:' and the id of a question: cards that answer it and were sent since_ms (ms since
-- epoch) or later, which nobody reported.
create or replace function public.take_due_withdrawals(p_limit integer) returns jsonb
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  with taken as (
    update public.agent_withdrawals w
    set tries = w.tries + 1,
        due_at = now() + make_interval(secs => least(3600, 5 * 2 ^ least(w.tries, 10)))
    where w.message_id in (
      select d.message_id from public.agent_withdrawals d where d.due_at <= now()
      order by d.due_at limit p_limit for update skip locked)
    returning w.*)
  select coalesce(jsonb_agg(jsonb_build_object(
    'message_id', w.message_id, 'chat_id', w.chat_id, 'of_one', w.of_one,
    'chats', array(select p.chat_id from public.p2p_chats p where p.open_id = w.chat_id union select w.chat_id),
    'age_s', extract(epoch from now() - w.created_at),
    'since_ms', (extract(epoch from coalesce(t.created_at, w.created_at)) * 1000)::bigint)), '[]')
  from taken w left join public.agent_turns t on 'of:' || t.id = w.message_id
$$;

create or replace function public.drop_withdrawal(p_message_id text) returns jsonb
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  delete from public.agent_withdrawals where message_id = p_message_id;
  select 'null'::jsonb
$$;
