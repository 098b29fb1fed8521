-- Purpose: one fact, note or summary at a time: what there is, whence, who can see it; corrected, deleted for good.
--
-- The author corrects and deletes; the subject has it deleted. Deleting is like taking back: what it was
-- made from and what repeats it goes too.

-- What is kept of the sender, from them or about them, as far as it may be read here: `fact` (of a
-- thread: scope chat, lasting: scope user), what another said about them among it, and `note`. Newest
-- first. `before` is the value that a fact had last, from when until when.
-- The turn p_turn_id that shows them keeps no words, once it is over: nothing is stored a second time.
create or replace function public.list_items(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text,
  p_offset integer, p_limit integer, p_turn_id text default null
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if p_user_id <> p_actor_id then
    raise exception 'only the person is told what is kept about them' using errcode = 'PT403';
  end if;
  update public.agent_turns set forgets = true where id = p_turn_id;
  return (
    with items as materialized (
      select 'fact' as kind, w.id::text as id, e.key, e.value, w.scope, w.actor_id, w.user_id, w.chat_id,
             null as shared_chat_id, w.sources #>> array[e.key, 'turn'] as turn_id,
             coalesce((w.sources #>> array[e.key, 'at'])::timestamptz, w.updated_at) as at,
             w.id as memory_id
      from public.agent_working_memory w,
        jsonb_each(bot_private.facts_since(w.content, w.sources, bot_private.told_since())) e
      where w.tenant_key = p_tenant_key and p_actor_id in (w.user_id, w.actor_id)
      union all
      select 'note', n.id, n.title, to_jsonb(n.body), 'user', n.user_id, n.user_id, n.chat_id,
             n.shared_chat_id, n.turn_id, n.updated_at, null
      from public.agent_notes n
      where n.tenant_key = p_tenant_key and n.user_id = p_actor_id
    ),
    page as (
      select i.*, k.chat_type, k.name as chat_name, coalesce(s.name, '') as shared_chat_name
      from items i
      left join lateral (
        select max(c.name) as name, coalesce(max(c.chat_type), (
          select max(a.chat_type) from public.agent_chats a
          where a.chat_id = i.chat_id and a.tenant_key = p_tenant_key)) as chat_type
        from public.chats c where c.chat_id = i.chat_id and c.tenant_key = p_tenant_key) k on true
      left join public.chats s on s.chat_id = i.shared_chat_id and s.tenant_key = p_tenant_key
      order by i.at desc, i.kind, i.id, i.key
      offset greatest(p_offset, 0) limit least(greatest(p_limit, 1), 50)
    )
    select jsonb_build_object(
      'total', (select count(*) from items),
      'items', coalesce((
        select jsonb_agg(to_jsonb(p) - 'memory_id' || jsonb_build_object('before', (
          select to_jsonb(f) - 'key' from bot_private.former_values(p.memory_id) f
          where f.key = p.key order by f.until desc limit 1)) order by p.at desc, p.kind, p.id, p.key)
        from page p), '[]')));
end
$$;

-- The working memories, as far as they may be read here, in which p_key is a fact by the sender or
-- about them: of this thread, or (p_scope user) lasting.
create or replace function public.find_facts(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_key text, p_scope text
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if p_user_id <> p_actor_id then
    raise exception 'only the person can have it deleted' using errcode = 'PT403';
  end if;
  perform bot_private.tell_nothing();
  return (
    select coalesce(jsonb_agg(w.id::text order by w.id), '[]')
    from public.agent_working_memory w
    where w.tenant_key = p_tenant_key and p_actor_id in (w.user_id, w.actor_id)
      and w.scope = p_scope and w.content ? p_key
      and (p_scope = 'user' or w.conversation_id = p_conversation_id));
end
$$;

-- Deletes one fact for good and returns it as it was; null: there is none that p_person may delete.
create or replace function public.forget_fact(
  p_id bigint, p_key text, p_person text, p_tenant_key text, p_by_turn text
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_memory public.agent_working_memory;
  v_value jsonb;
  v_texts text[];
  v_turns text[];
begin
  select * into v_memory from public.agent_working_memory w
  where w.id = p_id and w.tenant_key = p_tenant_key and p_person in (w.user_id, w.actor_id)
  for update;
  v_value := v_memory.content -> p_key;
  if v_value is null then
    return null;
  end if;
  select public.texts_in(jsonb_agg(jsonb_build_array(h.was -> p_key, h.became -> p_key))),
         array_agg(h.was_sources #>> array[p_key, 'turn'])
  into v_texts, v_turns from public.agent_working_memory_history h
  where h.working_memory_id = p_id and (h.was ? p_key or h.became ? p_key);
  update public.agent_working_memory
  set content = content - p_key, sources = sources - p_key, updated_at = now() where id = p_id;
  update public.agent_working_memory_history
  set was = was - p_key, became = became - p_key, was_sources = was_sources - p_key
  where working_memory_id = p_id and (was ? p_key or became ? p_key);
  delete from public.agent_working_memory_history
  where working_memory_id = p_id and was = '{}' and became = '{}';
  perform public.forget_sources(
    v_turns || (v_memory.sources #>> array[p_key, 'turn']),
    public.texts_in(v_value) || coalesce(v_texts, '{}'), p_tenant_key, p_by_turn);
  return jsonb_build_object('kind', 'fact', 'key', p_key, 'value', v_value);
end
$$;

-- The turns that something was made from lose their words, and so does what was made from them, or was given
-- them and tells p_texts.
create or replace function public.forget_sources(
  p_turns text[], p_texts text[], p_tenant_key text, p_by_turn text
) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_turns constant text[] := array(
    select t.id from public.agent_turns t
    where t.id = any (p_turns) and t.tenant_key = p_tenant_key and t.id is distinct from p_by_turn
    order by t.id);
begin
  perform pg_advisory_xact_lock(bot_private.sources_lock());
  perform public.take_back_sources(v_turns, p_texts || array(
    select m.content from public.agent_messages m
    where m.turn_id = any (v_turns) and m.role = 'user'), '{}', null, p_by_turn);
  perform public.drop_turn(t, false) from unnest(v_turns) t;
  update public.agent_turns set forgets = true where id = p_by_turn;
end
$$;

-- The lists that show an item, which p_person may delete, will be withdrawn: its buttons under them know
-- the cards.
create or replace function public.withdraw_lists(
  p_kind text, p_id text, p_key text, p_person text, p_tenant_key text
) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  select public.withdraw_later(array_agg(b.message_id), b.chat_id, p_tenant_key)
  from public.agent_buttons b
  where b.tenant_key = p_tenant_key and b.kind = 'confirm' and b.message_id <> ''
    and b.payload ->> 'tool' = 'memory.ask_delete'
    and b.payload #> '{arguments}' @> jsonb_build_object('kind', p_kind, 'id', p_id)
    and case p_kind when 'note' then exists (
          select from public.agent_notes n
          where n.id = p_id and n.tenant_key = p_tenant_key and n.user_id = p_person)
        else b.payload #>> '{arguments,key}' = p_key and exists (
          select from public.agent_working_memory w
          where w.id = p_id::bigint and w.tenant_key = p_tenant_key
            and p_person in (w.user_id, w.actor_id)) end
  group by b.chat_id
$$;

-- Deletes the summary of a thread, of p_person or ('') of everybody there, with all the messages it was made from, and
-- returns it as it was; null: there is none. From anything less it would be made again.
create or replace function public.forget_summary(
  p_id bigint, p_person text, p_tenant_key text, p_by_turn text
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_summary public.agent_summaries;
  v_turns text[];
begin
  delete from public.agent_summaries s
  where s.id = p_id and s.tenant_key = p_tenant_key and s.user_id = p_person
  returning * into v_summary;
  if v_summary.id is null then
    return null;
  end if;
  select array_agg(distinct m.turn_id) into v_turns
  from public.agent_messages m
  where m.conversation_id = v_summary.conversation_id and m.tenant_key = p_tenant_key
    and p_person in ('', m.user_id, m.actor_id) and m.id <= v_summary.until_message_id
    and m.id > bot_private.summary_from(p_tenant_key, v_summary.conversation_id, p_person);
  perform public.forget_sources(v_turns, array[v_summary.content], p_tenant_key, p_by_turn);
  return jsonb_build_object('kind', 'summary', 'key', '', 'value', v_summary.content);
end
$$;

-- Deletes one item for good and returns it as it was; null: there is none that p_person may delete.
-- p_by_turn is the turn that asks for it, which keeps no words either. For the service only: an item
-- may be of another chat than the one where its deletion is asked for.
create or replace function public.forget_item(
  p_kind text, p_id text, p_key text, p_person text, p_tenant_key text, p_by_turn text
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_before constant jsonb := bot_private.rows_written();
  v_gone constant jsonb := bot_private.drop_item(p_kind, p_id, p_key, p_person, p_tenant_key, p_by_turn);
begin
  perform bot_private.draft_receipt(
    'item', array[p_kind || ':' || p_id], array_remove(public.texts_in(v_gone -> 'value'), null), v_before,
    p_person, p_tenant_key, null)
  where v_gone is not null;
  return v_gone;
end
$$;

-- The same without its receipt.
create or replace function bot_private.drop_item(
  p_kind text, p_id text, p_key text, p_person text, p_tenant_key text, p_by_turn text
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_note public.agent_notes;
  v_turns text[];
  v_texts text[];
begin
  perform public.withdraw_lists(p_kind, p_id, p_key, p_person, p_tenant_key);
  if p_kind = 'fact' then
    return public.forget_fact(p_id::bigint, p_key, p_person, p_tenant_key, p_by_turn);
  elsif p_kind = 'summary' then
    return public.forget_summary(p_id::bigint, p_person, p_tenant_key, p_by_turn);
  end if;
  select array_agg(c.turn_id), public.texts_in(jsonb_agg(c.was - 'tags')) into v_turns, v_texts
  from public.agent_note_changes c
  where c.note_id = p_id and c.tenant_key = p_tenant_key and c.user_id = p_person;
  delete from public.agent_notes n
  where n.id = p_id and n.tenant_key = p_tenant_key and n.user_id = p_person
  returning * into v_note;
  if v_note.id is null then
    return null;
  end if;
  perform public.forget_sources(
    v_turns || v_note.turn_id, array[v_note.title, v_note.body] || coalesce(v_texts, '{}'),
    p_tenant_key, p_by_turn);
  return jsonb_build_object('kind', 'note', 'key', v_note.title, 'value', v_note.body);
end
$$;

-- Gives one item of p_person's own another value (JSON), of a note or a summary its text; message
-- p_turn_id said so. Later messages are folded into a summary as it was corrected.
-- Returns it as it was; null: there is none that they may correct.
create or replace function public.correct_item(
  p_kind text, p_id text, p_key text, p_value text, p_person text, p_tenant_key text, p_turn_id text
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_memory public.agent_working_memory;
  v_summary public.agent_summaries;
  v_old public.agent_notes;
  v_new public.agent_notes;
  v_content jsonb;
  v_text constant text := p_value::jsonb #>> '{}';
begin
  perform bot_private.require_turn_stands(p_turn_id);
  if p_kind = 'fact' then
    select * into v_memory from public.agent_working_memory w
    where w.id = p_id::bigint and w.tenant_key = p_tenant_key and w.actor_id = p_person for update;
    if v_memory.id is null or not v_memory.content ? p_key then
      return null;
    end if;
    v_content := v_memory.content || jsonb_build_object(p_key, p_value::jsonb);
    if octet_length(v_content::text) > 16384 then
      raise exception 'working memory would hold % bytes, the limit is 16384: remove keys first',
        octet_length(v_content::text) using errcode = 'PT413';
    end if;
    update public.agent_working_memory w
    set content = v_content, updated_at = now(),
        sources = bot_private.next_sources(w.sources, w.content, v_content, p_turn_id)
    where w.id = v_memory.id;
    return jsonb_build_object('kind', 'fact', 'key', p_key, 'value', v_memory.content -> p_key);
  elsif p_kind = 'summary' then
    select * into v_summary from public.agent_summaries s
    where s.id = p_id::bigint and s.tenant_key = p_tenant_key and s.user_id = p_person for update;
    if v_summary.id is null then
      return null;
    end if;
    if length(v_text) > 4000 then
      raise exception 'the summary would have % characters, at most 4000 are kept', length(v_text)
        using errcode = 'PT422';
    end if;
    -- what it had to name and does not any more was wrong
    update public.agent_summaries s
    set content = v_text, version = s.version + 1, updated_at = now(),
        verbatim = (select coalesce(jsonb_agg(v), '[]') from jsonb_array_elements_text(s.verbatim) v
                    where strpos(v_text, v) > 0)
    where s.id = v_summary.id;
    return jsonb_build_object('kind', 'summary', 'key', '', 'value', v_summary.content);
  end if;
  select * into v_old from public.agent_notes n
  where n.id = p_id and n.tenant_key = p_tenant_key and n.user_id = p_person for update;
  if v_old.id is null then
    return null;
  end if;
  update public.agent_notes n set body = bot_private.note_body(p_value::jsonb #>> '{}'), updated_at = now()
  where n.id = p_id and n.tenant_key = p_tenant_key and n.user_id = p_person
  returning * into v_new;
  perform bot_private.keep_note_change(v_old, v_new, p_turn_id);
  return jsonb_build_object('kind', 'note', 'key', v_old.title, 'value', v_old.body);
end
$$;
