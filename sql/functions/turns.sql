-- Purpose: the turn: begun, answered, delivered; each operation is one function, hence one round trip.
--
-- Here and in the other files every function of a turn takes the identity explicitly and filters by
-- it; the token has to say the same, and its policies decide what may be read. JSON travels as text: PostgREST-compatible servers disagree on jsonb
-- arguments. Errors of our own have codes PTxyz, which PostgREST answers as HTTP status xyz.
--
-- Small functions without a search path, of the form `return …` or `begin atomic … end`, are no calls: the planner writes
-- the former into their callers' expressions and the latter, which give a table, into the queries that name them in `from`.

-- Who is refused, and with which words.
create or replace function bot_private.refuse_identity(
  p_user_id text, p_actor_id text, p_conversation_id text
) returns boolean
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  if coalesce(p_user_id, '') = '' or coalesce(p_actor_id, '') = ''
     or coalesce(p_conversation_id, '') = '' then
    raise exception 'identity missing: user_id, actor_id and conversation_id are required'
      using errcode = 'PT428';
  end if;
  raise exception 'the token speaks for somebody else, or somewhere else' using errcode = 'PT403';
end
$$;

-- The chat of a conversation, and its root. A thread of comments in a document, feishu:doc:{file token}:{comment id},
-- is a chat of its own: doc:{file token}:{comment id}.
create or replace function bot_private.chat_of(p_conversation_id text) returns text
language sql immutable parallel safe security invoker
return case when starts_with(p_conversation_id, 'feishu:doc:') then substr(p_conversation_id, 8)
  else split_part(p_conversation_id, ':', 2) end;

-- A missing identity fails closed; and under a token it is the token's: nobody names another.
-- True, so that a function may ask for it where it declares its variables, before any other work.
create or replace function bot_private.require_identity(
  p_user_id text, p_actor_id text, p_conversation_id text
) returns boolean
language sql stable security invoker
return case
  when p_user_id <> '' and p_actor_id <> '' and p_conversation_id <> ''
       and octet_length(p_user_id) + octet_length(p_actor_id) + octet_length(p_conversation_id) < 4096
       and (current_user <> 'authenticated'
            or nullif(current_setting('request.jwt.claims', true), '')::jsonb @> jsonb_build_object(
              'sub', p_user_id, 'actor', p_actor_id,
              'chat_id', bot_private.chat_of(p_conversation_id)))
  then true
  else bot_private.refuse_identity(p_user_id, p_actor_id, p_conversation_id) end;

create or replace function bot_private.refuse_size(p_name text, p_bytes integer, p_most integer)
returns boolean
language plpgsql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception '% has % bytes, the limit is %', p_name, p_bytes, p_most using errcode = 'PT400';
end
$$;

-- Limits come before any work: a caller's text is looked at only when it is known to be small enough.
create or replace function bot_private.require_size(p_name text, p_text text, p_most integer)
returns boolean
language sql immutable security invoker
return case when octet_length(p_text) > p_most
  then bot_private.refuse_size(p_name, octet_length(p_text), p_most) else true end;

-- Every card that is stored has the words of the whole turn indexed again.
create or replace function bot_private.refuse_card_count(p_count integer) returns boolean
language plpgsql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'a reply has % cards, the limit is 50', p_count using errcode = 'PT400';
end
$$;

create or replace function bot_private.require_card_count(p_cards jsonb) returns boolean
language sql immutable security invoker
return case when jsonb_array_length(p_cards) > 50
  then bot_private.refuse_card_count(jsonb_array_length(p_cards)) else true end;

create or replace function bot_private.refuse_place() returns boolean
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'the token is of another chat, or of none' using errcode = 'PT403';
end
$$;

-- For functions of a chat that name no person: under a token the chat is the token's.
create or replace function bot_private.require_place(p_chat_id text) returns boolean
language sql stable security invoker
return case
  when current_user <> 'authenticated'
       or nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'chat_id' = p_chat_id
  then true
  else bot_private.refuse_place() end;

-- What of a button's payload says how it is drawn: the form around it, the entry it stands beside.
create or replace function bot_private.button_looks(p_payload jsonb) returns jsonb
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(e.key, e.value), '{}') from jsonb_each(p_payload) e
  where e.key in ('form', 'entry')
$$;

-- The answer of a turn as stored, one element per card or file, each with the buttons it shows.
create or replace function bot_private.turn_reply(p_turn_id text) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'chunk', m.chunk, 'content', m.content, 'status', m.status, 'message_id', m.message_id,
    'file', m.file,
    'buttons', coalesce((
      select jsonb_agg(jsonb_build_object('id', b.id, 'label', b.label)
               || bot_private.button_looks(b.payload) order by b.ordinal)
      from public.agent_buttons b
      where b.turn_id = m.turn_id and b.chunk = m.chunk), '[]')
  ) order by m.chunk), '[]')
  from public.agent_messages m
  where m.turn_id = p_turn_id and m.role = 'assistant'
$$;

-- What stands below an answer as agent_turns.shown keeps it, without a list that is mostly empty.
create or replace function bot_private.kept_foot(p_foot jsonb) returns jsonb
language sql immutable parallel safe security invoker
return case when p_foot -> 'recalled' = '[]' then p_foot - 'recalled' else p_foot end;

-- The ids of the messages that stand below an answer, each once.
create or replace function bot_private.cited_ids(p_shown jsonb) returns text[]
language sql immutable parallel safe security invoker
return array(
  select distinct i.value
  from jsonb_array_elements(p_shown -> 'recalled') r
  cross join lateral jsonb_array_elements_text(r.value) with ordinality i
  where i.ordinality > 2 and i.value <> '');

-- agent_turns.read_messages with the messages that stand below the answer.
create or replace function bot_private.with_cited(p_read text[], p_shown jsonb) returns text[]
language sql immutable parallel safe security invoker
return (array(select unnest(bot_private.cited_ids(p_shown)) union select unnest(p_read)))[:50];

create or replace function bot_private.also_read(p_read text[], p_shown jsonb) returns text[]
language sql immutable parallel safe security invoker
return case when coalesce(p_shown -> 'recalled', '[]') = '[]' then p_read
  else bot_private.with_cited(p_read, p_shown) end;

-- {id: {words, author, chat_id, position}} of these messages.
create or replace function bot_private.quoted_messages(p_shown jsonb) returns jsonb
language sql stable security invoker
return (
  select coalesce(jsonb_object_agg(c.id, to_jsonb(m)), '{}')
  from unnest(bot_private.cited_ids(p_shown)) c (id)
  cross join lateral (
    select left(m.content, 300) as words, m.actor_name as author, m.chat_id, 0 as position
    from public.agent_messages m where m.turn_id = c.id and m.role = 'user' and m.chunk = 0
    union all
    select left(t.content, 300), t.author, t.chat_id, 0
    from public.chat_transcript t where t.message_id = c.id and not t.is_bot
    union all
    select left(i.content, 300), i.author_name, p.chat_id, i.position
    from public.imported_messages i join public.chat_imports p on p.id = i.import_id
    where hashtext(i.message_id) = hashtext(c.id) and i.message_id = c.id
    limit 1) m);

-- What stands below an answer, with the words of the messages that it names, as far as the caller may read them and they are there.
create or replace function bot_private.told_foot(p_shown jsonb) returns jsonb
language sql stable security invoker
return '{"recalled": []}'::jsonb || p_shown || jsonb_build_object('quotes', bot_private.quoted_messages(p_shown));

-- p_origin: JSON {origin, parent_id, cause} as in agent_turns; null: it answers the message of that id. p_recent_s: as
-- window_ids takes it. p_asked_ms: when the question was written (Feishu: create_time), ms since epoch. p_quotes: the
-- message that the question replies to. `history` is its window and, last, the question.
create or replace function public.open_turn(
  p_turn_id text, p_conversation_id text, p_chat_id text, p_root_id text,
  p_user_id text, p_actor_id text, p_actor_name text, p_tenant_key text,
  p_content text, p_history_limit integer, p_fold_after integer default 0,
  p_origin text default null, p_recent_s integer default 0, p_asked_ms bigint default null,
  p_quotes text default null
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_content', p_content, 1048576)
    and bot_private.require_size('p_origin', p_origin, 4096);
  v_identity constant boolean :=
    bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_besides constant boolean := bot_private.besides_taking_back();
  v_origin constant jsonb := p_origin;
  v_turn public.agent_turns;
  v_from bigint;
  v_stale boolean;
  v_question bigint;
  v_asked_at constant timestamptz := case
    when to_timestamp(p_asked_ms / 1000.0) between now() - interval '1 day' and now()
    then to_timestamp(p_asked_ms / 1000.0) else now() end;
  v_of constant text := bot_private.summary_of(p_user_id);
  v_outside bigint[];
  v_summarised bigint;
  v_summary public.agent_summaries;
  v_first jsonb;
  v_window bigint[];
  v_history jsonb;
begin
  if exists (
      select from public.recalled_messages r
      where r.message_id in (p_turn_id, bot_private.goes_with(v_origin))) then
    return jsonb_build_object('state', 'cancelled', 'attempts', 0, 'reply', '[]'::jsonb);
  end if;

  -- the thread of the person, begun or gone on with; its time is that of the hour
  select c.history_from, c.updated_at < now() - interval '1 hour' or c.chat_type is null
  into v_from, v_stale
  from public.agent_chats c
  where c.tenant_key = p_tenant_key and c.id = p_conversation_id and c.user_id = p_user_id
  for key share;
  if v_stale is not false then
    insert into public.agent_chats
      (id, user_id, tenant_key, chat_id, chat_type, root_id, title)
    values (p_conversation_id, p_user_id, p_tenant_key, p_chat_id, public.claim('chat_type'),
            p_root_id, left(p_content, 80))
    on conflict (tenant_key, id, user_id) do update
      set updated_at = now(), chat_type = coalesce(public.agent_chats.chat_type, excluded.chat_type)
    returning history_from into v_from;
  end if;
  insert into public.agent_turns
    (id, conversation_id, user_id, actor_id, tenant_key, chat_id, origin, parent_id, cause, again_of)
  values (p_turn_id, p_conversation_id, p_user_id, p_actor_id, p_tenant_key, p_chat_id,
          coalesce(v_origin ->> 'origin', 'message'), v_origin ->> 'parent_id',
          coalesce(v_origin ->> 'cause', ''),
          case when v_origin ->> 'origin' = 'again' then v_origin ->> 'parent_id' end)
  on conflict do nothing;
  if found then
    insert into public.agent_messages (conversation_id, user_id, turn_id, tenant_key, chat_id, role,
                                       content, actor_id, actor_name, message_id, status, created_at, quotes)
    values (p_conversation_id, p_user_id, p_turn_id, p_tenant_key, p_chat_id, 'user',
            p_content, p_actor_id, p_actor_name, p_turn_id, 'received', v_asked_at, p_quotes)
    returning id into v_question;
    v_turn.state := 'open';
    v_turn.attempts := 1;
    v_turn.done := '{}';
  else
    update public.agent_turns t set attempts = t.attempts + 1, updated_at = now()
    where t.id = p_turn_id and t.user_id = p_user_id and t.conversation_id = p_conversation_id
      and t.tenant_key = p_tenant_key
    returning * into v_turn;
    if v_turn.id is null then
      raise exception 'turn % belongs to another conversation', p_turn_id using errcode = 'PT403';
    end if;
    select m.id into v_question from public.agent_messages m
    where m.turn_id = p_turn_id and m.role = 'user' and m.chunk = 0;
  end if;

  if v_turn.state <> 'open' then
    return jsonb_build_object('turn_id', p_turn_id, 'state', v_turn.state, 'attempts', v_turn.attempts,
                              'reply', bot_private.turn_reply(p_turn_id), 'shown', bot_private.told_foot(v_turn.shown),
                              'intended', v_turn.intended);
  end if;
  if p_fold_after > 0 and (p_turn_id <> p_root_id or v_turn.attempts > 1) then
    v_outside := bot_private.outside_window(
      p_tenant_key, p_conversation_id, v_of, v_question, p_history_limit, p_fold_after);
  end if;
  if v_outside <> '{}' then
    select * into v_summary from public.agent_summaries s
    where s.conversation_id = p_conversation_id and s.user_id = v_of and s.tenant_key = p_tenant_key;
  end if;
  if v_summary.id is not null or v_outside[p_fold_after] is not null then
    v_summarised := bot_private.summary_from(p_tenant_key, p_conversation_id, v_of);
    if bot_private.is_from_before(v_summary, v_summarised) then
      v_summary := null;
    end if;
    v_summarised := greatest(v_summarised, v_summary.until_message_id);
    if v_of = '' and p_actor_id <> p_user_id then
      v_from := (select c.history_from from public.agent_chats c
                 where c.tenant_key = p_tenant_key and c.id = p_conversation_id and c.user_id = p_actor_id);
    end if;
    if bot_private.is_from_before(v_summary, v_from) then
      v_summary := null;
    end if;
  end if;
  if v_origin ->> 'origin' = 'again' then
    v_first := (
      select jsonb_build_object('asked_in', bot_private.asked_in(f.id), 'first_read', array(
        select r from unnest(f.read_messages) r where not starts_with(r, 'answer:')))
      from bot_private.turn_chain(p_turn_id) f where f.origin <> 'again' limit 1);
  end if;
  v_window := bot_private.window_ids(
    p_tenant_key, p_conversation_id, p_chat_id, p_user_id, p_actor_id, v_question, p_recent_s, p_history_limit - 1,
    bot_private.others_bytes());
  select t.lines into v_history
  from bot_private.messages_told(v_window || v_question, p_actor_id, p_chat_id) t;
  return jsonb_build_object(
    'turn_id', p_turn_id, 'state', v_turn.state, 'attempts', v_turn.attempts, 'reply', '[]'::jsonb,
    'history', v_history,
    'done', to_jsonb(v_turn.done),
    'working_memory',
      bot_private.facts_told(p_conversation_id, p_user_id, p_tenant_key, p_content),
    'registry', public.note_registry(
      p_conversation_id, p_user_id, p_actor_id, p_tenant_key, p_chat_id),
    'summary', case when v_summary.id is not null then jsonb_build_object(
      'content', v_summary.content, 'version', v_summary.version, 'messages', v_summary.messages,
      'source', bot_private.thread_source(p_conversation_id, v_of)) end,
    'fold_due', coalesce(v_outside[p_fold_after] > v_summarised, false))
    || coalesce(v_first, '{}');
end
$$;

-- What begins a turn, in one: the message is recorded in the chat's conversation (p_heard, JSON with
-- the arguments of append_to_conversation, and p_before, what was said before where none is on; null: it is already, or
-- nothing is), the decision on it is
-- stored (p_decision, JSON with the arguments of log_decision; null: it is already, or none is), and the
-- turn is opened unless an earlier decision says no. Returns what open_turn does, and the conversation. p_recall: arguments of recall,
-- whose result is "recalled", and `words`, of which at least half have to stand nowhere in the turn's window; without
-- them it is searched in any case. `p_k` are wanted beside the turns of the window, of which twenty are counted at most.
-- "recalled" is null where nothing was searched, or it failed: then recall, called by itself, says why. p_elsewhere: whether it is asked, as "elsewhere", what reads_elsewhere
-- says of the sender. "documents": whether answers there told of any. p_short: {"turn": all but the conversation, "conversation": in short}.
create or replace function public.begin_turn(
  p_turn_id text, p_conversation_id text, p_chat_id text, p_root_id text,
  p_user_id text, p_actor_id text, p_actor_name text, p_tenant_key text,
  p_content text, p_history_limit integer, p_fold_after integer, p_heard text, p_decision text,
  p_recent_s integer default 0, p_recall text default null, p_elsewhere boolean default false,
  p_short boolean default false, p_origin text default null, p_asked_ms bigint default null,
  p_quotes text default null
) returns json
language plpgsql security invoker set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_heard', p_heard, 1048576)
    and bot_private.require_size('p_decision', p_decision, 16384)
    and bot_private.require_size('p_recall', p_recall, 1048576);
  v_identity constant boolean :=
    bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_besides constant boolean := bot_private.besides_taking_back();
  -- nothing is promised to anybody yet; what is committed before anything is sent takes this along
  v_promises constant text := set_config('synchronous_commit', 'off', true);
  v_all constant boolean := bot_private.tell_all();
  v_heard constant jsonb := p_heard;
  v_decision jsonb := p_decision;
  v_recall constant jsonb := p_recall;
  v_window jsonb;
  v_recalled jsonb;
  v_conversation json;
  v_opened jsonb;
  v_more jsonb;
begin
  if v_heard is not null then
    v_conversation := public.append_to_conversation(
      p_chat_id, p_tenant_key, v_heard ->> 'p_records', (v_heard ->> 'p_at')::bigint,
      (v_heard ->> 'p_active_since')::bigint, (v_heard ->> 'p_keep')::integer,
      coalesce((v_heard ->> 'p_topics')::boolean, false), p_short, v_heard ->> 'p_held');
    if v_conversation is null then
      perform bot_private.note_asked(p_chat_id, p_tenant_key, (v_heard ->> 'p_at')::bigint,
                                     (v_heard ->> 'p_active_since')::bigint);
      if v_heard ? 'p_before' then
        perform bot_private.add_to_transcript(
          p_chat_id, p_tenant_key, v_heard ->> 'p_before');
      end if;
    end if;
  end if;
  if v_decision is not null then
    v_decision := public.log_decision(
      p_chat_id, p_tenant_key, p_actor_id, v_decision ->> 'p_message_id',
      (v_decision ->> 'p_respond')::boolean, v_decision ->> 'p_reason', v_decision ->> 'p_tier',
      v_decision ->> 'p_cue', (v_decision ->> 'p_since_bot_ms')::bigint,
      v_decision ->> 'p_verdict', (v_decision ->> 'p_judge_ms')::integer,
      v_decision ->> 'p_root_id', null, (v_decision ->> 'p_request_ms')::bigint,
      (v_decision ->> 'p_shared')::boolean);
    if not (v_decision -> 'respond')::boolean then
      perform bot_private.tell_nothing(false);
      return jsonb_build_object('state', 'cancelled', 'attempts', 0, 'reply', '[]'::jsonb);
    end if;
  end if;
  v_opened := public.open_turn(
    p_turn_id, p_conversation_id, p_chat_id, p_root_id, p_user_id, p_actor_id, p_actor_name,
    p_tenant_key, p_content, p_history_limit, p_fold_after, p_origin, p_recent_s, p_asked_ms,
    p_quotes);
  select jsonb_build_object('rules', r.rules, 'documents', bot_private.documents_were_told()) into v_more
  from bot_private.rules_of(p_chat_id, p_tenant_key) r;
  if p_elsewhere and v_opened ->> 'state' = 'open' then
    select v_more || jsonb_build_object('elsewhere', e.elsewhere) into v_more
    from bot_private.reads_elsewhere(p_user_id, p_actor_id, p_tenant_key, p_chat_id) e;
  end if;
  v_opened := v_opened || v_more;
  if v_recall is not null and v_opened ->> 'state' = 'open' then
    v_window := (v_opened -> 'history') - -1;
    if jsonb_typeof(v_recall -> 'words') <> 'array' or v_window = '[]' or (
      select 2 * count(*) filter (where strpos(t.told, w.word) = 0) >= count(*)
      from jsonb_array_elements_text(v_recall -> 'words') w (word), (
        select lower(string_agg(m ->> 'content', e'\n')) as told
        from jsonb_array_elements(v_window) m) t)
    then
      begin
        v_recalled := public.recall(
          p_conversation_id, p_user_id, p_actor_id, p_chat_id, p_tenant_key, v_recall ->> 'p_query',
          v_recall ->> 'p_scope', (v_recall ->> 'p_k')::integer + 1 + least(20, jsonb_array_length(
            jsonb_path_query_array(v_window, '$[*] ? (@.role == "user" && @.id > 0)'))),
          v_recall ->> 'p_spans', (v_recall ->> 'p_boost')::double precision,
          (v_opened #>> '{history,-1,id}')::bigint,
          p_newest_too => coalesce((v_recall ->> 'p_newest_too')::boolean, false));
      exception when others then
        null;
      end;
    end if;
    v_opened := v_opened || jsonb_build_object('recalled', v_recalled);
  end if;
  perform bot_private.tell_nothing(false);
  if p_short then
    return json_build_object('turn', v_opened, 'conversation', v_conversation);
  end if;
  return v_opened || jsonb_build_object('conversation', v_conversation);
end
$$;

-- Stores the reply before it is sent. The first writer wins; everyone gets what is stored.
-- p_cards: JSON array of card texts, after them of files: {content, file}; none: nothing is said here.
-- p_tool_calls: JSON array. p_shown: agent_turns.shown. p_given: JSON array of what given_ids tells; if one of those
-- was taken back meanwhile nothing is stored, and the turn stays open: the answer is to be made without it.
-- p_intended: agent_turns.intended.
create or replace function public.record_reply(
  p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text,
  p_cards text, p_tool_calls text, p_shown text default null, p_given text default '[]',
  p_intended text default null
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_cards', p_cards, 4194304)
    and bot_private.require_size('p_tool_calls', p_tool_calls, 4194304)
    and bot_private.require_size('p_shown', p_shown, 16384)
    and bot_private.require_size('p_given', p_given, 65536)
    and bot_private.require_size('p_intended', p_intended, 1024);
  v_identity constant boolean :=
    bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_besides constant boolean := bot_private.besides_taking_back();
  v_nothing constant boolean := bot_private.tell_nothing();
  v_turn public.agent_turns;
  v_cards constant jsonb := p_cards;
  v_few constant boolean := bot_private.require_card_count(v_cards);
  v_given text[] := '{}';
begin
  if p_given <> '[]' then
    v_given := bot_private.given_sources(p_given::jsonb);
  end if;
  -- what was answered in another place is over here, and keeps no words; and the wait is not for ever:
  -- a prompt that is given the same again is not what it is for
  update public.agent_turns t
  set state = case when v_cards = '[]' then 'sent' else 'pending' end, shown = bot_private.kept_foot(p_shown::jsonb),
      -- an answer quotes its sources, so it goes with any of them
      read_messages = bot_private.also_read(t.read_messages, p_shown::jsonb),
      given_messages = g.messages, given = g.besides,
      intended = p_intended::jsonb, forgets = t.forgets or v_cards = '[]', updated_at = now()
  from bot_private.given_parts(v_given) g
  where t.id = p_turn_id and t.user_id = p_user_id and t.conversation_id = p_conversation_id
    and t.state = 'open' and (t.attempts > 3 or not exists (
      select from public.recalled_messages r
      -- by the time first: that leaves next to none, and hundreds of ids are looked up in no index
      where r.created_at > t.updated_at - interval '1 minute'
        and case when starts_with(r.message_id, 'answer:')
          then r.created_at > t.updated_at and not t.forgets  -- else it took them back itself
            and (r.message_id = any (v_given) or substr(r.message_id, 8) = any (v_given))
          else r.message_id = any (v_given) end))
  returning t.* into v_turn;
  if found then
    insert into public.agent_messages (conversation_id, user_id, actor_id, turn_id, tenant_key,
                                       chat_id, role, chunk, content, status, tool_calls, file)
    select v_turn.conversation_id, v_turn.user_id, v_turn.actor_id, v_turn.id, v_turn.tenant_key,
           v_turn.chat_id, 'assistant', c.ordinality - 1, coalesce(c.value ->> 'content', c.value #>> '{}'),
           'pending', case when c.ordinality = 1 then p_tool_calls::jsonb else '[]' end, c.value -> 'file'
    from jsonb_array_elements(v_cards) with ordinality c order by c.ordinality;
    if strpos(p_tool_calls, '"shown"') > 0 then
      perform bot_private.keep_shown_notes(p_conversation_id, p_user_id, p_actor_id, p_tool_calls);
    end if;
    perform bot_private.keep_told_terms(p_turn_id);
    if strpos(p_given, '"doc:') > 0 then
      perform bot_private.keep_given_documents(p_turn_id);
    end if;
    return jsonb_build_object('state', v_turn.state, 'reply', (
      select coalesce(jsonb_agg(jsonb_build_object(
        'chunk', c.ordinality - 1, 'content', coalesce(c.value ->> 'content', c.value #>> '{}'),
        'status', 'pending', 'message_id', null, 'file', c.value -> 'file', 'buttons', '[]'::jsonb)
        order by c.ordinality), '[]')
      from jsonb_array_elements(v_cards) with ordinality c));
  end if;
  perform bot_private.tell_nothing(false);
  select * into v_turn from public.agent_turns t
  where t.id = p_turn_id and t.user_id = p_user_id and t.conversation_id = p_conversation_id;
  if v_turn.id is null then
    raise exception 'turn % is not open', p_turn_id using errcode = 'PT404';
  end if;
  return jsonb_build_object('state', v_turn.state, 'reply', bot_private.turn_reply(p_turn_id));
end
$$;

-- Puts p_note before the first card of a reply that nobody has seen, unless it stands there already.
create or replace function public.preface_reply(
  p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_note text
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_size('p_note', p_note, 4096);
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  update public.agent_messages
  set content = p_note || content, updated_at = now()
  where turn_id = p_turn_id and user_id = p_user_id and conversation_id = p_conversation_id
    and role = 'assistant' and chunk = 0 and status = 'pending'
    and not starts_with(content, p_note);
  return jsonb_build_object('reply', bot_private.turn_reply(p_turn_id));
end
$$;

-- For the service: replies that have been pending for p_older_s seconds or longer, at most p_limit,
-- with what is needed to send them (stored_ms 0: certainly not sent yet); a job for such a turn would hold its `job_key`. What one person alone is
-- shown answers no message: the card that they pressed may stand in a group. A card that is still
-- written on is not among them.
create or replace function public.pending_replies(p_older_s integer, p_limit integer) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(to_jsonb(p)), '[]')
  from (
    select t.id as turn_id, t.conversation_id, t.user_id, t.actor_id, t.tenant_key, t.chat_id,
           c.root_id, case when t.error is distinct from 'retried'
                      then (extract(epoch from t.updated_at) * 1000)::bigint else 0 end as stored_ms,
           q.content as question, (extract(epoch from t.created_at) * 1000)::bigint as asked_ms,
           coalesce(case when not bot_private.is_private(t) then a.message_id end, '') as reply_to,
           coalesce(case when t.origin in ('again', 'reaction') then bot_private.last_card(t.parent_id)
                         when t.origin in ('button', 'private_answer') then nullif(t.cause, '') end,
                    a.message_id, t.parent_id) as job_key,
           bot_private.turn_reply(t.id) as reply
    from public.agent_turns t
    join public.agent_chats c on c.id = t.conversation_id and c.user_id = t.user_id
      and c.tenant_key = t.tenant_key
    left join public.agent_messages q on q.turn_id = t.id and q.role = 'user' and q.chunk = 0
    cross join lateral (select bot_private.answered_message(t.id) as message_id) a
    where t.state = 'pending' and t.updated_at < now() - make_interval(secs => p_older_s)
      and not exists (select from public.agent_cards k where k.turn_id = t.id and k.streaming)
      -- its timer is due until it is sent, or given up
      and (t.origin not in ('reminder', 'digest') or starts_with(t.error, 'retried'))
    order by t.updated_at
    limit p_limit) p
$$;

-- Whether the turn was cancelled before its card was delivered, which is then to be withdrawn. Waits for
-- a taking back that is under way; of what is shown privately that leaves no turn.
create or replace function bot_private.card_is_too_late(p_turn_id text, p_message_id text) returns boolean
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_turn public.agent_turns;
  v_chat_id text;
begin
  select * into v_turn from public.agent_turns t where t.id = p_turn_id for update;
  if v_turn.state = 'cancelled' then
    v_chat_id := v_turn.chat_id;
  elsif v_turn.id is null then
    select r.chat_id into v_chat_id from public.recalled_messages r where r.message_id = p_turn_id;
  end if;
  if v_chat_id is null then
    return false;
  end if;
  perform bot_private.withdraw_own(
    array[p_message_id], v_chat_id, coalesce(v_turn.tenant_key, public.claim('tenant_key'), ''));
  return true;
end
$$;

-- A card was delivered: its final text and its Feishu message_id. The turn is sent with its last card. Its row comes
-- first, as for who takes a message back: that is waited for. Of a question that was taken back meanwhile nothing is
-- stored, and the card will be withdrawn. Then the chat's conversation is told of the answer: p_told, JSON with the
-- arguments of tell_conversation; null: it is not. p_plain: this is the whole answer, without buttons, so nothing else of
-- it is looked for but, if p_streamed, the card it was written in.
create or replace function public.mark_sent(
  p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text,
  p_chunk integer, p_content text, p_message_id text,
  p_chat_id text default null, p_tenant_key text default null, p_told text default null,
  p_plain boolean default false, p_streamed boolean default false
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_content', p_content, 1048576)
    and bot_private.require_size('p_told', p_told, 1048576);
  v_identity constant boolean :=
    bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_nothing constant boolean := bot_private.tell_nothing();  -- whoever joined since it was asked
  v_told constant jsonb := p_told;
  v_state text := 'sent';
begin
  if not p_plain then
    if exists (
      select from public.agent_messages m
      where m.turn_id = p_turn_id and m.role = 'assistant' and m.status = 'pending' and m.chunk <> p_chunk)
    then
      v_state := 'pending';
    end if;
  end if;
  update public.agent_turns t set updated_at = now(), error = null, state = v_state
  where t.id = p_turn_id and t.user_id = p_user_id and t.state <> 'cancelled';
  if not found and bot_private.card_is_too_late(p_turn_id, p_message_id) then
    return '{"state": "cancelled"}';
  end if;
  update public.agent_messages
  set status = 'sent', content = p_content, message_id = p_message_id, error = null,
      updated_at = now(), file = file - 'content'
  where turn_id = p_turn_id and user_id = p_user_id and conversation_id = p_conversation_id
    and role = 'assistant' and chunk = p_chunk;
  if not found then
    raise exception 'turn % has no card %', p_turn_id, p_chunk using errcode = 'PT404';
  end if;
  if not p_plain then
    update public.agent_buttons set message_id = p_message_id
    where turn_id = p_turn_id and chunk = p_chunk;
  end if;
  if v_state = 'sent' and (p_streamed or not p_plain) then
    update public.agent_cards set streaming = false, updated_at = now()
    where turn_id = p_turn_id and streaming;
  end if;
  if v_told is not null then
    perform bot_private.tell_conversation(
      p_chat_id, p_tenant_key, v_told ->> 'p_records', (v_told ->> 'p_now')::bigint,
      (v_told ->> 'p_active_since')::bigint, null, v_told ->> 'p_topics');
  end if;
  return jsonb_build_object('state', v_state);
end
$$;

-- What is still pending of a reply will never be delivered (p_error: code and reason, no text).
create or replace function public.mark_failed(
  p_turn_id text, p_conversation_id text, p_user_id text, p_actor_id text, p_error text
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_size('p_error', p_error, 16384);
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  perform bot_private.tell_nothing();
  update public.agent_turns set state = 'failed', error = p_error, updated_at = now()
  where id = p_turn_id and user_id = p_user_id and conversation_id = p_conversation_id
    and state in ('open', 'pending');
  update public.agent_messages set status = 'failed', error = p_error, updated_at = now()
  where turn_id = p_turn_id and user_id = p_user_id and conversation_id = p_conversation_id
    and role = 'assistant' and status = 'pending';
  perform bot_private.leave_card(p_turn_id);
  return jsonb_build_object('state', 'failed');
end
$$;

-- Writes a whole turn as it went while the memory was away, with the times it
-- went at. Can be repeated, also with an older state of the turn. A reply that the memory has itself
-- stays, unless other cards were delivered: what people saw is what is remembered.
-- p_cards: JSON array of {chunk, content, status, message_id}. p_given: as of record_reply; read:<message_id> is
-- what came with another message, which the answer was made from. If any of it was taken back meanwhile the answer
-- is not kept, and its cards will be withdrawn: the words are gone, so nothing could be compared.
create or replace function public.restore_turn(
  p_turn_id text, p_conversation_id text, p_chat_id text, p_root_id text,
  p_user_id text, p_actor_id text, p_actor_name text, p_tenant_key text,
  p_content text, p_cards text, p_tool_calls text, p_error text,
  p_asked_at timestamptz, p_answered_at timestamptz, p_given text default '[]',
  p_origin text default null, p_intended text default null, p_shown text default null,
  p_quotes text default null
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_origin jsonb;
  v_cards jsonb;
  v_turn public.agent_turns;
  v_pending boolean;
  v_read jsonb;
begin
  perform bot_private.require_size('p_content', p_content, 1048576);
  perform bot_private.require_size('p_given', p_given, 65536);
  perform bot_private.require_size('p_origin', p_origin, 4096);
  perform bot_private.require_size('p_intended', p_intended, 1024);
  perform bot_private.require_size('p_shown', p_shown, 16384);
  perform bot_private.require_size('p_cards', p_cards, 4194304);
  perform bot_private.require_size('p_tool_calls', p_tool_calls, 4194304);
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  perform bot_private.besides_taking_back();
  perform bot_private.tell_nothing();
  v_cards := p_cards;
  v_origin := p_origin;
  perform bot_private.require_card_count(v_cards);
  if exists (select from public.recalled_messages r
             where r.message_id in (p_turn_id, bot_private.goes_with(v_origin))) then
    perform bot_private.withdraw_own(array(
      select c ->> 'message_id' from jsonb_array_elements(v_cards) c
      where c ->> 'message_id' <> ''), p_chat_id, p_tenant_key);
    return jsonb_build_object('state', 'cancelled');
  end if;

  insert into public.agent_chats as c
    (id, user_id, tenant_key, chat_id, chat_type, root_id, title, created_at)
  values (p_conversation_id, p_user_id, p_tenant_key, p_chat_id, public.claim('chat_type'),
          p_root_id, left(p_content, 80), p_asked_at)
  on conflict (tenant_key, id, user_id) do update set updated_at = greatest(c.updated_at, p_asked_at);

  insert into public.agent_turns as t
    (id, conversation_id, user_id, actor_id, tenant_key, chat_id, created_at, origin, parent_id, cause,
     again_of)
  values (p_turn_id, p_conversation_id, p_user_id, p_actor_id, p_tenant_key, p_chat_id, p_asked_at,
          coalesce(v_origin ->> 'origin', 'message'), v_origin ->> 'parent_id',
          coalesce(v_origin ->> 'cause', ''), (
            select f.id from public.agent_turns f
            where v_origin ->> 'origin' = 'again' and f.id = v_origin ->> 'parent_id'
              and f.conversation_id = p_conversation_id and f.user_id = p_user_id))
  on conflict (id) do update set updated_at = now()
    where t.user_id = p_user_id and t.conversation_id = p_conversation_id
  returning * into v_turn;
  if v_turn.id is null then
    raise exception 'turn % belongs to another conversation', p_turn_id using errcode = 'PT403';
  end if;
  if p_given <> '[]' then
    select coalesce(jsonb_agg(substr(g, 6)), '[]') into v_read
    from jsonb_array_elements_text(p_given::jsonb) g where starts_with(g, 'read:');
    perform bot_private.keep_source_terms(p_turn_id, v_read, '{}');
    v_read := v_read - p_turn_id;
    update public.agent_turns t
    set given_messages = g.messages, given = g.besides,
        read_messages = case when t.read_messages = '{}' then (array(
          select jsonb_array_elements_text(v_read)
          union select unnest(bot_private.noted_sources(v_read, 50))))[:50] else t.read_messages end
    from bot_private.given_sources(p_given::jsonb) s (ids), bot_private.given_parts(s.ids) g
    where t.id = p_turn_id;
    if exists (
      select from public.agent_turns t
      cross join lateral bot_private.given_ids(t.given_messages, t.given) g (ids)
      join public.recalled_messages r
        on v_read ? r.message_id
        or r.message_id = any (g.ids || array(select 'answer:' || i from unnest(g.ids) i))
        and r.created_at > p_asked_at
      where t.id = p_turn_id) then
      perform bot_private.withdraw_own(array(
        select c ->> 'message_id' from jsonb_array_elements(v_cards) c
        where c ->> 'message_id' <> ''), p_chat_id, p_tenant_key);
      v_cards := '[]';
      p_error := 'taken back';
    end if;
  end if;

  insert into public.agent_messages
    (conversation_id, user_id, turn_id, tenant_key, chat_id, role, content, actor_id, actor_name,
     message_id, status, created_at, quotes)
  values (p_conversation_id, p_user_id, p_turn_id, p_tenant_key, p_chat_id, 'user', p_content,
          p_actor_id, p_actor_name, p_turn_id, 'received', p_asked_at, p_quotes)
  on conflict (turn_id, role, chunk) do nothing;
  if found and v_turn.state <> 'open' then
    perform bot_private.keep_terms(p_turn_id);
  end if;

  -- Over, or nothing to add to it, or only a reply of which nobody has seen anything.
  if v_turn.state not in ('open', 'pending') or (p_error is null and (
       v_cards = '[]' or (v_turn.state = 'pending' and not v_cards @> '[{"status": "sent"}]'))) then
    return jsonb_build_object('state', v_turn.state);
  end if;

  insert into public.agent_messages as m
    (conversation_id, user_id, actor_id, turn_id, tenant_key, chat_id, role, chunk, content,
     message_id, status, error, tool_calls, file, created_at)
  select p_conversation_id, p_user_id, p_actor_id, p_turn_id, p_tenant_key, p_chat_id, 'assistant', c.chunk,
         c.content, c.message_id, c.status, case when c.status = 'failed' then p_error end,
         case when c.chunk = 0 then p_tool_calls::jsonb else '[]' end,
         case when jsonb_typeof(c.file) = 'object' then
           case when c.status = 'sent' then c.file - 'content' else c.file end end,
         coalesce(p_answered_at, p_asked_at)
  from jsonb_to_recordset(v_cards) c(
    chunk smallint, content text, status text, message_id text, file jsonb)
  order by c.chunk
  on conflict (turn_id, role, chunk) do update
    set content = excluded.content, message_id = excluded.message_id, status = excluded.status,
        error = excluded.error, updated_at = now(), file = excluded.file,
        tool_calls = coalesce(nullif(excluded.tool_calls, '[]'), m.tool_calls)
    where m.status = 'pending';
  update public.agent_messages
  set status = 'failed', error = 'never sent', updated_at = now()
  where turn_id = p_turn_id and role = 'assistant' and status = 'pending'
    and chunk >= jsonb_array_length(v_cards);
  update public.agent_buttons b set message_id = m.message_id
  from public.agent_messages m
  where m.turn_id = p_turn_id and m.role = 'assistant' and m.status = 'sent'
    and b.turn_id = m.turn_id and b.chunk = m.chunk;

  perform bot_private.keep_told_terms(p_turn_id);

  select exists (select from public.agent_messages where turn_id = p_turn_id
                 and role = 'assistant' and status = 'pending') into v_pending;
  update public.agent_turns
  set updated_at = now(), error = p_error, intended = p_intended::jsonb,
      shown = coalesce(shown, bot_private.kept_foot(p_shown::jsonb)),
      read_messages = bot_private.also_read(read_messages, p_shown::jsonb),
      state = case when p_error is not null then 'failed' when v_pending then 'pending'
                   else 'sent' end
  where id = p_turn_id
  returning state into v_turn.state;
  return jsonb_build_object('state', v_turn.state);
end
$$;

-- A tool has changed something for the turn p_turn_id, which is not answered yet.
create or replace function public.note_done(
  p_conversation_id text, p_user_id text, p_actor_id text, p_turn_id text, p_tool text
) returns void
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_size('p_tool', p_tool, 200);
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  update public.agent_turns t set done = t.done || p_tool
  where t.id = p_turn_id and t.user_id = p_user_id and t.conversation_id = p_conversation_id
    and t.state = 'open' and cardinality(t.done) < 100 and t.done[cardinality(t.done)] is distinct from p_tool;
end
$$;

-- Words are not changed: a question never is, and an answer only until it is sent.
create or replace function public.keep_words() returns trigger
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'what was said is not changed' using errcode = 'PT403';
end
$$;

-- The turn p_turn_id, not answered yet, is to be given what came with these messages (JSON array of
-- message_ids, at most 50), which are not the question itself. p_texts: what was read of them and of what the
-- question brought, {message_id: text}, "" of a picture; it is not kept, but what tells it is. False: one of them was taken
-- back, and nothing of them may be told.
create or replace function public.note_read_messages(
  p_conversation_id text, p_user_id text, p_actor_id text, p_turn_id text, p_messages text,
  p_texts text default '{}'
) returns boolean
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_messages text[];
begin
  perform bot_private.require_size('p_messages', p_messages, 16384);
  perform bot_private.require_size('p_texts', p_texts, 131072);
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_messages := array(select jsonb_array_elements_text(p_messages::jsonb) limit 50);
  v_messages := (v_messages || array(
    select n from unnest(bot_private.noted_sources(p_messages::jsonb, 50)) n
    where n <> all (v_messages)))[:50];
  perform pg_advisory_xact_lock_shared(bot_private.sources_lock());
  update public.agent_turns t set read_messages = v_messages
  where t.id = p_turn_id and t.user_id = p_user_id and t.conversation_id = p_conversation_id
    and t.state = 'open';
  if found then
    perform bot_private.keep_source_terms(p_turn_id, p_messages::jsonb, p_texts::jsonb);
  end if;
  return not exists (
    select from public.recalled_messages r where r.message_id = any (v_messages));
end
$$;
