-- Purpose: taking back means gone: a message with all that was made from it, or one fact or note.
--
-- What a message set in an object (a working memory, a note) is known by its sources and its changes;
-- taking it back restores what was there before. What was removed on purpose stays removed.

-- The advisory lock of those who note what an answer is made of and then look whether any of it is gone
-- (shared), and of who takes a message back and then looks for answers made of it (exclusive): one of them
-- sees the other. One for all, and before any lock of a row, so that nobody waits in a circle.
create or replace function bot_private.sources_lock() returns bigint
language sql immutable parallel safe security invoker set search_path = ''
as $$ select hashtextextended('bot_private.sources_lock', 0) $$;

-- Who writes down what somebody said comes before a taking back, which then finds it, or after it, and then
-- knows of it.
create or replace function bot_private.besides_taking_back() returns boolean
language sql volatile security invoker
return pg_advisory_xact_lock_shared(bot_private.sources_lock()) is not null;

-- A turn whose question was taken back changes nothing any more. Waits for a taking back that is under
-- way, and makes the next one wait.
create or replace function public.require_turn_stands(p_turn_id text) returns void
language plpgsql volatile security invoker set search_path = ''
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

-- The sources of p_after, which turn p_turn_id made of p_before (null: nobody that is remembered).
create or replace function public.next_sources(
  p_sources jsonb, p_before jsonb, p_after jsonb, p_turn_id text
) returns jsonb
language sql stable security invoker set search_path = ''
as $$
  select coalesce(jsonb_object_agg(e.key, s.source) filter (where s.source is not null), '{}')
  from jsonb_each(p_after) e
  cross join lateral (select case
    when p_before -> e.key = e.value then p_sources -> e.key
    when p_turn_id is not null then jsonb_build_object('turn', p_turn_id, 'at', now()) end as source) s
$$;

-- Whether any key of p_sources comes from the turn.
create or replace function public.comes_from(p_sources jsonb, p_turn_id text) returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select exists (select from jsonb_each(p_sources) s where s.value ->> 'turn' = p_turn_id)
$$;

-- An object without what turn p_turn_id set in it. p_changes: how it came to be what it is, oldest
-- first, [{id, turn_id, was, became, was_sources}]. Returns its content and sources, and the changes
-- by others, without those values.
create or replace function public.without_turn(
  p_content jsonb, p_sources jsonb, p_changes jsonb, p_turn_id text
) returns jsonb
language plpgsql immutable security invoker set search_path = ''
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
    for v_key in select jsonb_object_keys(v_change -> 'was' || (v_change -> 'became')) loop
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
    end if;
  end loop;
  for v_key in select s.key from jsonb_each(p_sources) s where s.value ->> 'turn' = p_turn_id loop
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
language sql immutable security invoker set search_path = ''
as $$
  select coalesce(array_agg(distinct t #>> '{}'), '{}')
  from jsonb_path_query(p_value, 'strict $.** ? (@.type() == "string")') t
$$;

-- Working memory as it was before the turn; returns the texts that went.
create or replace function public.take_back_facts(p_turn_id text, p_chat_id text) returns text[]
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  v_memory public.agent_working_memory;
  v_changes jsonb;
  v_left jsonb;
  v_texts text[] := '{}';
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
    v_texts := v_texts || public.texts_in(jsonb_build_object(
      'now', (select jsonb_agg(e.value) from jsonb_each(v_memory.content) e
              where v_memory.sources #>> array[e.key, 'turn'] = p_turn_id),
      'then', (select jsonb_agg(c.value -> 'became') from jsonb_array_elements(v_changes) c
               where c.value ->> 'turn_id' = p_turn_id)));
    v_left := public.without_turn(v_memory.content, v_memory.sources, v_changes, p_turn_id);
    perform public.rewrite_memory(v_memory.id, v_left);
  end loop;
  return v_texts;
end
$$;

-- A working memory as p_left ({content, sources, changes}) says, with no other history than that.
create or replace function public.rewrite_memory(p_id bigint, p_left jsonb) returns void
language plpgsql volatile security invoker set search_path = ''
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

-- Notes as they were before the turn: those it created are gone. Returns the texts that went.
create or replace function public.take_back_notes(p_turn_id text) returns text[]
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  v_note public.agent_notes;
  v_changes jsonb;
  v_left jsonb;
  v_texts text[] := '{}';
begin
  for v_note in
    select n.* from public.agent_notes n
    where n.turn_id = p_turn_id or (n.id, n.tenant_key, n.user_id) in (
      select c.note_id, c.tenant_key, c.user_id from public.agent_note_changes c
      where c.turn_id = p_turn_id)
    order by n.id for update
  loop
    v_texts := v_texts || public.texts_in((select jsonb_agg(v.value)
      from jsonb_each(public.note_fields(v_note)) v
      where v_note.sources #>> array[v.key, 'turn'] = p_turn_id));
    if v_note.turn_id = p_turn_id then
      delete from public.agent_notes n
      where n.id = v_note.id and n.tenant_key = v_note.tenant_key and n.user_id = v_note.user_id;
      continue;
    end if;
    select jsonb_agg(to_jsonb(c) || '{"became": {}}' order by c.id) into v_changes
    from public.agent_note_changes c
    where c.note_id = v_note.id and c.tenant_key = v_note.tenant_key and c.user_id = v_note.user_id;
    v_left := public.without_turn(
      public.note_fields(v_note), v_note.sources, v_changes, p_turn_id);
    update public.agent_notes n
    set title = coalesce(v_left #>> '{content,title}', n.title),
        body = coalesce(v_left #>> '{content,body}', ''),
        tags = array(select jsonb_array_elements_text(coalesce(v_left #> '{content,tags}', '[]'))),
        sources = v_left -> 'sources'
    where n.id = v_note.id and n.tenant_key = v_note.tenant_key and n.user_id = v_note.user_id;
    delete from public.agent_note_changes c
    where c.note_id = v_note.id and c.tenant_key = v_note.tenant_key and c.user_id = v_note.user_id
      and c.turn_id = p_turn_id;
    update public.agent_note_changes c
    set was = k.value -> 'was', was_sources = k.value -> 'was_sources'
    from jsonb_array_elements(v_left -> 'changes') k where c.id = (k.value ->> 'id')::bigint;
  end loop;
  return v_texts;
end
$$;

-- What of a note can change.
create or replace function public.note_fields(p_note public.agent_notes) returns jsonb
language sql immutable security invoker set search_path = ''
as $$
  select jsonb_build_object(
    'title', p_note.title, 'body', p_note.body, 'tags', to_jsonb(p_note.tags))
$$;

-- Cards of ours that are to be withdrawn.
create or replace function public.withdraw_later(
  p_message_ids text[], p_chat_id text, p_tenant_key text
) returns void
language sql volatile security invoker set search_path = ''
as $$
  insert into public.agent_withdrawals (message_id, chat_id, tenant_key)
  select distinct m, p_chat_id, p_tenant_key from unnest(p_message_ids) m where m <> ''
  on conflict do nothing
$$;

-- The kept cards of a turn that goes will be withdrawn. Waits for who says which they are.
create or replace function bot_private.withdraw_kept(p_turn_id text) returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  v_turn public.agent_turns;
begin
  select * into v_turn from public.agent_turns t where t.id = p_turn_id for update;
  perform public.withdraw_later(v_turn.kept_cards, v_turn.chat_id, v_turn.tenant_key)
  where v_turn.kept_cards <> '{}';
end
$$;

-- The words of a turn go: question and answer, its lines in the transcript, buttons, a card that is
-- being written, what was said of it, and with them (triggers) title, summaries, terms and vectors. Its
-- cards will be withdrawn unless p_keep_cards. What was asked by its buttons, what answered its
-- question again and what was shown privately with it goes the same way.
create or replace function public.drop_turn(p_turn_id text, p_keep_cards boolean) returns text[]
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  v_turn public.agent_turns;
  v_cards text[];
  v_then record;
  v_texts text[];
begin
  select * into v_turn from public.agent_turns t where t.id = p_turn_id;
  select coalesce(array_agg(m.message_id) filter (where m.role = 'assistant'), '{}')
         || array(select c.message_id from public.agent_cards c where c.turn_id = p_turn_id),
         coalesce(array_agg(btrim(m.content)) filter (where m.role = 'user'), '{}')
  into v_cards, v_texts
  from public.agent_messages m where m.turn_id = p_turn_id;
  if p_keep_cards then
    update public.agent_turns set kept_cards = v_cards where id = p_turn_id;
  else
    perform public.withdraw_later(
      v_cards || v_turn.kept_cards, v_turn.chat_id, v_turn.tenant_key);
    perform public.drop_answers_made_from(c) from unnest(v_cards) c where c is not null;
    for v_then in
      select t.id, t.chat_id
      from public.agent_buttons b join public.agent_turns t on t.id = 'click:' || b.id
      where b.turn_id = p_turn_id
      union all
      select t.id, t.chat_id from public.agent_turns t where t.again_of = p_turn_id
      union all
      select t.id, t.chat_id from public.agent_turns t
      where t.id in ('private:' || p_turn_id, 'offer:' || p_turn_id)
    loop
      v_texts := v_texts || public.drop_message(v_then.id, v_then.chat_id);
    end loop;
  end if;
  delete from public.agent_turn_records where turn_id = p_turn_id;
  delete from public.chat_transcript t
  where t.chat_id = v_turn.chat_id and (t.message_id = p_turn_id or t.message_id = any (v_cards));
  -- a confirmation names its item only
  delete from public.agent_buttons
  where turn_id = p_turn_id and not (p_keep_cards and kind = 'confirm');
  delete from public.agent_cards where turn_id = p_turn_id and not streaming;
  delete from public.agent_feedback where turn_id = p_turn_id;
  update public.agent_turns set shown = null where id = p_turn_id and shown is not null;
  delete from public.agent_messages where turn_id = p_turn_id;
  return v_texts;
end
$$;

-- A message with everything that was made from it; returns the texts that went.
create or replace function public.drop_message(p_message_id text, p_chat_id text) returns text[]
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  insert into public.recalled_messages (message_id, chat_id) values (p_message_id, p_chat_id)
  on conflict do nothing;
  -- a card may be on its way; if its worker is killed nobody says which
  insert into public.agent_withdrawals (message_id, chat_id, tenant_key)
  select 'of:' || t.id, t.chat_id, t.tenant_key from public.agent_turns t
  where t.id = p_message_id and t.state in ('open', 'pending') and t.chat_id <> t.actor_id
  on conflict do nothing;
  update public.agent_turns
  set state = case when state in ('open', 'pending') then 'cancelled' else state end,
      error = null, updated_at = now()
  where id = p_message_id;
  update public.agent_decisions set cue = null where message_id = p_message_id;
  perform public.drop_digests_of(array[p_message_id] || array(
    select m.message_id from public.agent_messages m
    where m.turn_id = p_message_id and m.message_id is not null), '');
  return public.drop_turn(p_message_id, false) || public.take_back_kept(p_message_id, p_chat_id);
end
$$;

-- Texts that are long enough to be told from everybody's everyday words, in lower case: whole ones, and
-- what stands in them sentence by sentence, without mentions.
create or replace function public.telling_texts(p_texts text[]) returns text[]
language sql immutable security invoker set search_path = ''
as $$
  select coalesce(array_agg(distinct lower(btrim(t))), '{}')
  from (
    select t from unnest(p_texts) t
    where length(btrim(t)) >= 6 or (length(btrim(t)) >= 3 and t ~ '[\u3400-\u9fff]')
    union
    select s from unnest(p_texts) t, regexp_split_to_table(
      regexp_replace(t, '@\S+', '', 'g'), '[.!?;](?=\s|$)|[。！？；]|\n+') s
    where s !~ '^\s*\[' and cardinality(public.long_texts(array[lower(btrim(s))])) = 1
  ) told
$$;

-- Those that are not by chance in somebody else's talk.
create or replace function public.long_texts(p_texts text[]) returns text[]
language sql immutable security invoker set search_path = ''
as $$
  select array(select t from unnest(p_texts) t
               where length(t) >= 12 or (length(t) >= 5 and t ~ '[\u3400-\u9fff]'))
$$;

-- Whether p_text holds any of p_texts, which are lower case.
create or replace function public.repeats(p_text text, p_texts text[]) returns boolean
language sql immutable security invoker set search_path = ''
as $$
  select exists (select from unnest(p_texts) t where strpos(lower(p_text), t) > 0)
$$;

-- Later answers that repeat what went: the card goes, and what tools said and kept. Answers to p_people, or about
-- them; with what is told from everybody's talk also those to others, where they could know it from: in the
-- chat p_chat_id and where p_people were given it, and alone with the bot if they are in that chat.
drop function if exists public.drop_repetitions(text[], text[], text, bigint);
create or replace function public.drop_repetitions(
  p_texts text[], p_people text[], p_tenant_key text, p_after bigint, p_chat_id text default null
) returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  v_texts constant text[] := public.telling_texts(p_texts);
  v_long constant text[] := public.long_texts(v_texts);
  v_chats text[];
  v_alone text[];
  v_card public.agent_messages;
begin
  if cardinality(v_texts) = 0 then
    return;
  end if;
  v_chats := p_chat_id || array(
    select distinct m.chat_id from public.agent_messages m
    where (m.user_id = any (p_people) or m.actor_id = any (p_people))
      and m.tenant_key = p_tenant_key and m.role = 'assistant'
      and m.id > p_after and public.repeats(m.content, v_long));
  v_alone := array(
    select distinct p.chat_id from public.p2p_chats p join public.chat_members c
      on c.open_id = p.open_id and c.tenant_key = p.tenant_key
    where c.chat_id = any (v_chats) and p.tenant_key = p_tenant_key);
  for v_card in
    select m.*
    from public.agent_messages m
    where m.tenant_key = p_tenant_key and m.role = 'assistant'
      and m.id > p_after
      and public.repeats(case when m.file is null then m.content else bot_private.told_by(m) end, case
        when m.user_id = any (p_people) or m.actor_id = any (p_people) then v_texts
        when m.chat_id = any (v_chats || v_alone) then v_long end)
    order by m.id
  loop
    perform public.take_card(v_card);
  end loop;
  update public.agent_messages m
  set tool_calls = (
    select jsonb_agg(case when not public.repeats(c.value::text, v_texts) then c.value
      else jsonb_build_object('name', c.value -> 'name', 'arguments', '{}'::jsonb, 'ok', c.value -> 'ok',
                              'ms', 0, 'result', 'What this told was taken back.') end
      order by c.ordinality)
    from jsonb_array_elements(m.tool_calls) with ordinality c)
  where m.tenant_key = p_tenant_key and m.role = 'assistant'
    and m.id > p_after and m.tool_calls <> '[]' and public.repeats(m.tool_calls::text, case
      when m.user_id = any (p_people) or m.actor_id = any (p_people) then v_texts
      when m.chat_id = any (v_chats || v_alone) then v_long end);
  delete from public.agent_buttons b
  where b.tenant_key = p_tenant_key and public.repeats(b.label || b.payload::text, case
    when b.user_id = any (p_people) or b.actor_id = any (p_people) then v_texts
    when b.chat_id = any (v_chats || v_alone) then v_long end);
  perform public.drop_kept_repetitions(
    v_texts, v_long, p_people, v_chats || v_alone, p_tenant_key, p_after);
end
$$;

-- What tools kept later that repeats what went: p_texts in turns of p_people, p_long in those of p_chats. What
-- stands in the words of the turn's own question is kept.
create or replace function public.drop_kept_repetitions(
  p_texts text[], p_long text[], p_people text[], p_chats text[], p_tenant_key text, p_after bigint
) returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  v_turn record;
begin
  for v_turn in
    with kept as (
      select w.sources #>> array[e.key, 'turn'] as turn_id, e.value #>> '{}' as told
      from public.agent_working_memory w cross join jsonb_each(w.content) e
      where w.tenant_key = p_tenant_key
      union all
      select n.sources #>> array[f.key, 'turn'], f.value #>> '{}'
      from public.agent_notes n cross join jsonb_each(public.note_fields(n)) f
      where n.tenant_key = p_tenant_key
      union all
      select t.turn_id, t.content from public.agent_timers t where t.tenant_key = p_tenant_key
    )
    select distinct q.turn_id, q.chat_id
    from kept k join public.agent_messages q on q.turn_id = k.turn_id and q.role = 'user'
    cross join lateral (select case
      when q.user_id = any (p_people) or q.actor_id = any (p_people) then p_texts
      when q.chat_id = any (p_chats) then p_long end as texts) looked
    where q.tenant_key = p_tenant_key and q.id > p_after and public.repeats(k.told, looked.texts)
      and not public.repeats(q.content, looked.texts)
  loop
    perform public.take_back_kept(v_turn.turn_id, v_turn.chat_id);
  end loop;
end
$$;

-- Facts, notes and reminders as they were before the turn.
create or replace function public.take_back_kept(p_turn_id text, p_chat_id text) returns text[]
language sql volatile security invoker set search_path = ''
as $$
  select public.take_back_facts(p_turn_id, p_chat_id) || public.take_back_notes(p_turn_id)
         || public.take_back_timers(p_turn_id)
$$;

-- What only one person was shown, and drew on one of these turns, goes with them.
create or replace function public.drop_drawn_on(p_turn_ids text[]) returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  v_turn public.agent_turns;
begin
  for v_turn in
    select t.* from public.agent_turns t
    where t.drawn_on && p_turn_ids and t.drawn_on <> '{}' order by t.id
  loop
    perform public.drop_message(v_turn.id, v_turn.chat_id);
  end loop;
end
$$;

-- Answers that were given what came with a message: their cards go, the questions are others'. One that is
-- still being made is not given.
create or replace function public.drop_answers_made_from(p_message_id text) returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  v_card public.agent_messages;
begin
  update public.agent_turns t set state = 'cancelled', error = null, updated_at = now()
  where t.read_messages && array[p_message_id] and t.read_messages <> '{}'
    and t.state in ('open', 'pending');
  for v_card in
    select m.* from public.agent_messages m join public.agent_turns t on t.id = m.turn_id
    where t.read_messages && array[p_message_id] and t.read_messages <> '{}' and m.role = 'assistant'
    order by m.id
  loop
    perform public.take_card(v_card);
  end loop;
end
$$;

-- The terms by which it is seen that one text tells another, as recall cuts them: without everyday words, and
-- in Chinese without pairs that hold a word of grammar. 14th is 14.
create or replace function bot_private.telling_terms(p_text text) returns setof text
language sql immutable parallel safe security invoker set search_path = ''
as $$
  select distinct regexp_replace(w, '^([0-9]+)(st|nd|rd|th)$', '\1')
  from unnest(bot_private.recall_tokens(p_text)) w
  where w ~ '..' and w !~ '[是在有要会已把被请去来想说用定改换到作为就也和都很不没这那]'
    and w <> all (bot_private.asking_words()) and w <> all (bot_private.recall_tokens(
      'all everybody everyone everything nobody nothing good great nice fine sure right well really very
       think like see look make let get got go going come take put use work new old first last next time
       day week thing people team up out off down over after before back sound done still only too
       大家 时候 因为 所以 但是 需要 应该 觉得 问题 事情 收到 好的 明白 我们 你们'))
$$;

-- Whether an answer tells a message of which p_own are the terms that its prompt had from nowhere else, and
-- p_told those that it uses: two of them, of a long message a tenth; of a short one half; or a number.
create or replace function bot_private.tells(p_told text[], p_own text[]) returns boolean
language sql immutable parallel safe security invoker set search_path = ''
as $$
  select cardinality(p_told) > 0 and (
    cardinality(p_told) >= greatest(2, 0.1 * cardinality(p_own))
    or 2 * cardinality(p_told) >= cardinality(p_own)
    or exists (select from unnest(p_told) t where t ~ '[0-9]{2}'))
$$;

-- What a card tells: its words, and of a file what it was made of.
create or replace function bot_private.told_by(p_card public.agent_messages) returns text
language sql stable security invoker set search_path = ''
as $$
  select concat_ws(e'\n', p_card.content, p_card.file ->> 'content', (
    select string_agg(c.value #>> '{arguments,content}', e'\n')
    from public.agent_messages m cross join jsonb_array_elements(m.tool_calls) c
    where p_card.file is not null and m.turn_id = p_card.turn_id and m.role = 'assistant'
      and c.value ->> 'name' = 'send_file'))
$$;

-- What the tools of a turn kept: facts, notes and reminders, as text.
create or replace function bot_private.kept_by(p_turn_id text, p_chat_id text) returns setof text
language sql stable security invoker set search_path = ''
as $$
  select e.value::text
  from public.agent_working_memory w cross join jsonb_each(w.content) e
  where w.chat_id = p_chat_id and w.sources #>> array[e.key, 'turn'] = p_turn_id
  union all
  select h.became::text from public.agent_working_memory_history h where h.turn_id = p_turn_id
  union all
  select f.value::text
  from public.agent_notes n cross join jsonb_each(public.note_fields(n)) f
  where n.chat_id = p_chat_id and n.sources #>> array[f.key, 'turn'] = p_turn_id
  union all
  select t.content from public.agent_timers t where t.turn_id = p_turn_id
$$;

-- Of these words those that the prompt of a turn had from nowhere but the message they are of: not from the
-- question nor from anything else that was shown.
create or replace function bot_private.had_from_nowhere_else(
  p_turn public.agent_turns, p_words text[]
) returns text[]
language sql stable security invoker set search_path = ''
as $$
  select array(
    select unnest(p_words) except
    select bot_private.telling_terms(m.content) from public.agent_messages m
    where m.role = 'user' and (m.turn_id = p_turn.id or m.turn_id = any (p_turn.given))
    except
    select bot_private.telling_terms(c.content) from public.chat_transcript c
    where c.chat_id = p_turn.chat_id and c.message_id = any (p_turn.given) and not c.is_bot)
$$;

-- Whether p_texts, which a turn told or kept, tell a message of which p_own are the words that it had from
-- nowhere else. What is said in that chat time and again is not told from it.
create or replace function bot_private.tells_of(
  p_turn public.agent_turns, p_texts text[], p_own text[]
) returns boolean
language sql stable security invoker set search_path = ''
as $$
  select bot_private.tells(array(
    select w from (
      select unnest(p_own) as w intersect
      select bot_private.telling_terms(t) from unnest(p_texts) t) told
    where (select count(*) from (
      select from bot_private.turn_words x join public.agent_messages m on m.id = x.first_id
      where x.place + 0 = p.place and x.words && bot_private.recall_words(p.place, array[w])
        and m.turn_id <> p_turn.id limit 4) common) < 4), p_own)
  from (select bot_private.recall_number(p_turn.tenant_key, p_turn.chat_id) as place) p
$$;

-- Answers whose prompt showed a message that is gone, of which p_texts were the words: the cards of those go
-- that tell it, in whatever words, and the questions stay. So does what their tools kept of it.
create or replace function public.drop_answers_that_tell(
  p_message_id text, p_texts text[], p_since timestamptz
) returns void
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  v_words constant text[] := array(
    select distinct w from unnest(p_texts) t, bot_private.telling_terms(t) w);
  v_turn public.agent_turns;
  v_own text[];
  v_card public.agent_messages;
begin
  if cardinality(v_words) = 0 then
    return;
  end if;
  for v_turn in
    select t.* from public.agent_turns t
    where t.created_at >= p_since and t.given @> array[p_message_id] order by t.created_at
  loop
    v_own := bot_private.had_from_nowhere_else(v_turn, v_words);
    if bot_private.tells_of(
      v_turn, array(select bot_private.kept_by(v_turn.id, v_turn.chat_id)), v_own) then
      perform public.take_back_kept(v_turn.id, v_turn.chat_id);
    end if;
    continue when not bot_private.tells_of(v_turn, array(
      select bot_private.told_by(m) from public.agent_messages m
      where m.turn_id = v_turn.id and m.role = 'assistant'), v_own);
    for v_card in
      select m.* from public.agent_messages m where m.turn_id = v_turn.id and m.role = 'assistant'
    loop
      perform public.take_card(v_card);
    end loop;
  end loop;
end
$$;

-- Cards that list what is kept of these people, of turns that keep no words: those of p_since and later
-- may show what is gone. An offer shows its question only.
create or replace function public.withdraw_kept_cards(
  p_people text[], p_tenant_key text, p_since timestamptz
) returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform public.withdraw_later(t.kept_cards, t.chat_id, t.tenant_key)
  from public.agent_turns t
  where t.user_id = any (p_people) and t.tenant_key = p_tenant_key
    and t.kept_cards <> '{}' and t.created_at >= p_since and not starts_with(t.id, 'offer:');
  update public.agent_turns t set kept_cards = '{}'
  where t.user_id = any (p_people) and t.tenant_key = p_tenant_key
    and t.kept_cards <> '{}' and t.created_at >= p_since and not starts_with(t.id, 'offer:');
end
$$;

-- The stored copy of one card of ours.
create or replace function public.drop_card(p_message_id text) returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  delete from public.agent_buttons b using public.agent_messages m
  where m.message_id = p_message_id and m.role = 'assistant'
    and b.turn_id = m.turn_id and b.chunk = m.chunk;
  delete from public.agent_cards where message_id = p_message_id and not streaming;
  delete from public.agent_messages where message_id = p_message_id and role = 'assistant';
  delete from public.chat_transcript where message_id = p_message_id;
end
$$;

-- The stored copy of one card goes, and the card, and what was made from it, and what listed it for the people
-- it answered. One that is not shown yet is not going to be.
create or replace function public.take_card(p_card public.agent_messages) returns void
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform public.withdraw_kept_cards(
    array[p_card.user_id, p_card.actor_id], p_card.tenant_key, p_card.created_at);
  if p_card.message_id is null then
    update public.agent_turns t set state = 'cancelled', error = null, updated_at = now()
    where t.id = p_card.turn_id and t.state = 'pending';
    delete from public.agent_messages where id = p_card.id;
    return;
  end if;
  perform public.withdraw_later(array[p_card.message_id], p_card.chat_id, p_card.tenant_key);
  perform public.drop_card(p_card.message_id);
  perform public.drop_answers_made_from(p_card.message_id);
end
$$;

-- A Feishu message was recalled, a person's or one of ours: it goes with all that was made from it.
-- A turn that has not begun never will. p_cards (JSON array of message_ids) are cards of ours that
-- answered it and that only the caller knows. For the service only: the event names no sender. Returns
-- the state of the turn, null when it had not begun.
drop function if exists public.recall_message(text, text);
create or replace function public.recall_message(
  p_message_id text, p_chat_id text, p_cards text default '[]'
) returns jsonb
language plpgsql security invoker set search_path = ''
as $$
declare
  v_turn public.agent_turns;
  v_heard public.chat_transcript;
  v_first bigint;
  v_texts text[];
begin
  perform pg_advisory_xact_lock(bot_private.sources_lock());
  -- in the order in which a turn that begins takes them
  perform from public.agent_chats c join public.agent_turns t
    on c.id = t.conversation_id and c.user_id = t.user_id and c.tenant_key = t.tenant_key
  where t.id = p_message_id for update of c;
  select * into v_turn from public.agent_turns t where t.id = p_message_id for update;
  select min(m.id) into v_first from public.agent_messages m where m.turn_id = p_message_id;
  select * into v_heard from public.chat_transcript t
  where t.message_id = p_message_id and t.chat_id = p_chat_id and not t.is_bot;
  perform public.withdraw_later(
    array(select jsonb_array_elements_text(p_cards::jsonb)), p_chat_id, coalesce(v_turn.tenant_key, ''));
  perform public.drop_card(p_message_id);
  v_texts := public.drop_message(p_message_id, coalesce(v_turn.chat_id, p_chat_id));
  delete from public.chat_transcript where message_id = p_message_id;
  perform public.drop_drawn_on(array[p_message_id]);
  perform public.drop_answers_made_from(p_message_id);
  perform public.drop_answers_that_tell(
    p_message_id, case when v_turn.id is null then array[v_heard.content] else v_texts end,
    coalesce(v_turn.created_at, to_timestamp(v_heard."timestamp" / 1000 - 60)));
  if v_first is not null then
    perform public.drop_repetitions(
      v_texts, array[v_turn.user_id, v_turn.actor_id], v_turn.tenant_key, v_first, v_turn.chat_id);
    perform public.withdraw_kept_cards(
      array[v_turn.user_id, v_turn.actor_id], v_turn.tenant_key, v_turn.created_at);
  elsif v_heard.content is not null then  -- nobody asked the bot, but it may have told others
    select min(m.id) - 1 into v_first from public.agent_messages m
    where m.chat_id = p_chat_id and m.created_at >= to_timestamp(v_heard."timestamp" / 1000 - 60);
    perform public.drop_repetitions(array[v_heard.content], array[v_heard.author_id],
                                    v_heard.tenant_key, v_first, p_chat_id)
    where v_first is not null;
  end if;
  return (select to_jsonb(t.state) from public.agent_turns t where t.id = p_message_id);
end
$$;

-- Turns that forgot something and are over: of them nothing stays but their cards in the chat. Returns
-- how many.
create or replace function public.drop_forgetting_turns() returns integer
language plpgsql volatile security invoker set search_path = ''
as $$
declare
  v_id text;
  v_count integer := 0;
begin
  for v_id in
    select t.id from public.agent_turns t
    where t.forgets and t.state not in ('open', 'pending') for update skip locked
  loop
    perform public.drop_turn(v_id, true);
    update public.agent_turns set forgets = false where id = v_id;
    v_count := v_count + 1;
  end loop;
  return v_count;
end
$$;

-- For the service: a turn is to be answered anew, what its tools kept is undone.
create or replace function public.undo_kept(p_turn_id text, p_chat_id text) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $$
begin
  perform public.take_back_kept(p_turn_id, p_chat_id) from public.agent_turns t
  where t.id = p_turn_id and t.state = 'open';
  return 'null'::jsonb;
end
$$;

-- What is due to be withdrawn, each taken by one worker; after a failure it is due again after ever longer,
-- at most an hour. [{message_id, chat_id, age_s, since_ms}]: a card of ours, of what one person sees in that
-- person's place; or 'of:' and the id of a question: cards that answer it and were sent since_ms (ms since
-- epoch) or later, which nobody reported.
create or replace function public.take_due_withdrawals(p_limit integer) returns jsonb
language sql volatile security invoker set search_path = ''
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
    'message_id', w.message_id, 'chat_id', w.chat_id,
    'age_s', extract(epoch from now() - w.created_at),
    'since_ms', (extract(epoch from coalesce(t.created_at, w.created_at)) * 1000)::bigint)), '[]')
  from taken w left join public.agent_turns t on 'of:' || t.id = w.message_id
$$;

-- The same for workers of the last release: cards, ids only.
create or replace function public.take_withdrawals(p_limit integer) returns jsonb
language sql volatile security invoker set search_path = ''
as $$
  select coalesce(jsonb_agg(d -> 'message_id'), '[]')
  from jsonb_array_elements(public.take_due_withdrawals(p_limit)) d
  where not starts_with(d ->> 'message_id', 'of:')
$$;

create or replace function public.drop_withdrawal(p_message_id text) returns jsonb
language sql volatile security invoker set search_path = ''
as $$
  delete from public.agent_withdrawals where message_id = p_message_id;
  select 'null'::jsonb
$$;
