-- Purpose: “forget …” in words: what somebody said, and what was kept, goes as if it had been retracted.

-- What p_person said in a chat (null: in any), newest first: [{message_id, content, at}]. For the service only.
create or replace function public.said_to_forget(
  p_chat_id text, p_person text, p_tenant_key text, p_turn_id text
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(to_jsonb(s) order by s.at desc), '[]')
  from (
    select distinct on (u.message_id) u.*
    from (
      (select m.turn_id as message_id, m.content, m.created_at as at
       from public.agent_messages m join public.agent_turns t on t.id = m.turn_id
       where m.role = 'user' and m.chunk = 0 and m.tenant_key = p_tenant_key and m.turn_id <> p_turn_id
         and m.actor_id = p_person and coalesce(m.chat_id = p_chat_id, true)
         and t.origin = 'message' and not t.forgets
       order by m.id desc limit 1000)
      union all
      select c.message_id, c.content, to_timestamp(c."timestamp" / 1000.0)
      from public.chat_transcript c
      where c.tenant_key = p_tenant_key and not c.is_bot and c.message_id <> p_turn_id
        and c.author_id = p_person and coalesce(c.chat_id = p_chat_id, true)
        and not exists (select from public.agent_turns t where t.id = c.message_id and t.forgets)
      union all
      select m.message_id, m.content, m.sent_at
      from public.imported_messages m join public.chat_imports i on i.id = m.import_id
      where m.author_id = p_person and m.tenant_key = p_tenant_key and coalesce(i.chat_id = p_chat_id, true)) u
    order by u.message_id, length(u.content), u.at) s  -- what was asked, without the mention in front
$$;

-- What others said in the token's chat, as far as the asker may read it there, newest first: [{author, content}].
create or replace function public.said_by_others() returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(jsonb_build_object('author', s.author, 'content', s.content) order by s.at desc), '[]')
  from (
    (select m.actor_name as author, m.content, m.created_at as at
     from public.agent_messages m join public.agent_turns t on t.id = m.turn_id
     where m.role = 'user' and m.chunk = 0 and m.chat_id = public.claim('chat_id') and t.chat_id = m.chat_id
       and m.actor_id <> public.claim('actor') and t.origin = 'message' and not t.forgets
     order by m.id desc limit 1000)
    union all
    select c.author, c.content, to_timestamp(c."timestamp" / 1000.0)
    from public.chat_transcript c
    where c.chat_id = public.claim('chat_id') and not c.is_bot and c.author_id <> public.claim('actor')
      and not exists (select from public.agent_turns t where t.id = c.message_id and t.forgets)) s
$$;

-- A message without mentions in front and signs around it, in lower case.
create or replace function bot_private.bare_words(p_text text) returns text
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select lower(btrim(regexp_replace(p_text, '^(?:@\S+\s+)+', ''), E' \t\n.!?。！？'))
$$;

-- Where the authors of these messages (JSON array of message_ids) said the same words in another message of a chat that
-- they can read: {person, chats: [name]}, a name is "" where it is not known; null if nowhere. Words that everybody
-- repeats (“thank you”) do not count. For the service only.
create or replace function public.said_elsewhere(p_messages text) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  with given as (
    select distinct i as id from jsonb_array_elements_text(p_messages::jsonb) i),
  gone as (
    select m.actor_id as person, m.tenant_key, m.chat_id, bot_private.bare_words(m.content) as words
    from public.agent_messages m join given g on m.turn_id = g.id where m.role = 'user' and m.chunk = 0
    union
    select c.author_id, c.tenant_key, c.chat_id, bot_private.bare_words(c.content)
    from public.chat_transcript c join given g on c.message_id = g.id where not c.is_bot
    union
    select m.author_id, m.tenant_key, i.chat_id, bot_private.bare_words(m.content)
    from public.imported_messages m
    join given g on hashtext(m.message_id) = hashtext(g.id) and m.message_id = g.id
    join public.chat_imports i on i.id = m.import_id),
  same as (
    select distinct g.person, g.tenant_key, s.chat_id
    from gone g cross join lateral (
      select m.chat_id, m.turn_id as id, m.content from public.agent_messages m
      where g.person in (m.user_id, m.actor_id) and m.actor_id = g.person and m.tenant_key = g.tenant_key
        and m.role = 'user' and m.chunk = 0
      union all
      select c.chat_id, c.message_id, c.content from public.chat_transcript c
      where c.author_id = g.person and c.tenant_key = g.tenant_key and not c.is_bot
      union all
      select i.chat_id, m.message_id, m.content
      from public.imported_messages m join public.chat_imports i on i.id = m.import_id
      where m.author_id = g.person and m.tenant_key = g.tenant_key) s
    where s.chat_id <> g.chat_id and octet_length(g.words) >= 15 and bot_private.bare_words(s.content) = g.words
      and s.id not in (select id from given))
  select jsonb_build_object('person', s.person, 'chats', jsonb_agg(coalesce(c.name, '') order by c.name))
  from same s
  left join public.chats c on c.chat_id = s.chat_id and c.tenant_key = s.tenant_key
  where exists (
    select from public.chat_members m
    where m.chat_id = s.chat_id and m.open_id = s.person and m.left_at is null)
    or exists (select from public.p2p_chats p where p.chat_id = s.chat_id and p.open_id = s.person)
  group by s.person limit 1
$$;

-- Deletes what p_person chose: p_items (JSON array of {kind, id, key}) and p_messages (JSON array of message_ids), of
-- those what is theirs, with all that was made from it. The card that lists them is withdrawn. Returns how many of each
-- went, {facts, notes, messages, answers}.
create or replace function public.forget_chosen(
  p_items text, p_messages text, p_person text, p_tenant_key text, p_by_turn text
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_item jsonb;
  v_message record;
  v_gone jsonb := '{"facts": 0, "notes": 0, "messages": 0}';
  v_field text;
  v_list public.agent_turns;
  v_cards text[];
begin
  perform bot_private.require_size('p_items', p_items, 65536);
  perform bot_private.require_size('p_messages', p_messages, 65536);
  perform public.require_person(p_person);
  perform pg_advisory_xact_lock(bot_private.sources_lock());
  select t.* into v_list from public.agent_turns b join public.agent_turns t on t.id = b.parent_id
  where b.id = p_by_turn and t.actor_id = p_person;
  v_cards := v_list.kept_cards || array(
    select m.message_id from public.agent_messages m where m.turn_id = v_list.id and m.message_id is not null);
  -- first: a message that goes takes facts along, and what is known of the messages they come from
  for v_item in select i from jsonb_array_elements(p_items::jsonb) i loop
    v_field := (v_item ->> 'kind') || 's';
    continue when v_field not in ('facts', 'notes');
    if public.forget_item(v_item ->> 'kind', v_item ->> 'id', v_item ->> 'key', p_person, p_tenant_key, p_by_turn) is not null then
      v_gone := jsonb_set(v_gone, array[v_field], to_jsonb((v_gone ->> v_field)::integer + 1));
    end if;
  end loop;
  for v_message in
    select m.id, s.chat_id
    from jsonb_array_elements_text(p_messages::jsonb) m (id) cross join lateral (
      select t.chat_id from public.agent_turns t
      where t.id = m.id and t.actor_id = p_person and t.tenant_key = p_tenant_key
      union
      select c.chat_id from public.chat_transcript c
      where c.message_id = m.id and c.author_id = p_person and c.tenant_key = p_tenant_key and not c.is_bot
      union
      select i.chat_id from public.imported_messages x join public.chat_imports i on i.id = x.import_id
      where hashtext(x.message_id) = hashtext(m.id) and x.message_id = m.id
        and x.author_id = p_person and x.tenant_key = p_tenant_key
      limit 1) s
  loop
    v_gone := jsonb_set(v_gone, '{messages}', to_jsonb((v_gone ->> 'messages')::integer + 1));
    perform public.recall_message(v_message.id, v_message.chat_id);
  end loop;
  perform public.withdraw_later(v_cards, v_list.chat_id, v_list.tenant_key) where v_list.id is not null;
  update public.agent_turns set forgets = true where id = p_by_turn;
  return v_gone || jsonb_build_object('answers', (
    select count(*) from public.agent_withdrawals w
    where w.created_at = now() and not starts_with(w.message_id, 'of:') and w.message_id <> all (coalesce(v_cards, '{}'))));
end
$$;

-- Everything that was said by and to a person in a chat outside of threads, where each question begins a conversation of
-- its own. Notes stay. Returns how many conversations there were.
create or replace function public.forget_in_chat(p_chat_id text, p_user_id text) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_conversation text;
  v_count integer := 0;
begin
  perform public.require_person(p_user_id);
  for v_conversation in
    select distinct a.id from public.agent_chats a
    where a.chat_id = p_chat_id and a.user_id = p_user_id and (
      bot_private.root_of(a.id) = 'main' or exists (
        select from public.agent_turns t  -- a question outside of threads is the root of its own
        where t.id = bot_private.root_of(a.id) and t.conversation_id = a.id))
  loop
    perform public.forget_conversation(v_conversation, p_user_id, true);
    delete from public.chat_transcript c
    where c.chat_id = p_chat_id and c.author_id = p_user_id and c.root_id = bot_private.root_of(v_conversation);
    v_count := v_count + 1;
  end loop;
  delete from public.chat_transcript c
  where c.chat_id = p_chat_id and c.author_id = p_user_id and c.root_id is null;
  return to_jsonb(v_count);
end
$$;
