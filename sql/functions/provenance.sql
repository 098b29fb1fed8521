-- Purpose: which messages an answer was given, and which it was made from.
--
-- A source is a message: a person's words, a file, a forward, a card of ours. A turn was made from what it
-- answers, quotes or reads (read_messages, drawn_on, the sources of a digest, the turn whose button or
-- question it repeats), and was given what its prompt showed besides (given).

-- HMAC-SHA256 of each term, 64 bits of it, under the key of this database; of each source another.
create or replace function bot_private.keyed_hashes(p_source text, p_terms text[]) returns bigint[]
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select coalesce(array_agg(
    ('x' || encode(substring(sha256(k.outer_pad || sha256(
      k.inner_pad || convert_to(p_source || ' ' || t.term, 'UTF8'))) for 8), 'hex'))::bit(64)::bigint
    order by t.n), '{}')
  from bot_private.source_key k, unnest(p_terms) with ordinality t (term, n)
$$;

-- A turn has read p_messages (JSON array) and p_texts ({message_id: text}): what tells them is kept, not the
-- texts. Cards of ours are left out, for their words are stored. Of a picture there is nothing to keep yet.
create or replace function bot_private.keep_source_terms(
  p_turn_id text, p_messages jsonb, p_texts jsonb
) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$
  insert into bot_private.source_terms as s (source, turn_id, terms)
  select r.id, p_turn_id, bot_private.keyed_hashes(r.id, array(
    select distinct w
    from generate_series(1, length(p_texts ->> r.id), 30000) n,
      bot_private.telling_terms(substr(p_texts ->> r.id, n, 30000)) w))
  from (select jsonb_array_elements_text(p_messages) union select jsonb_object_keys(p_texts)) r (id)
  where not exists (
    select from public.agent_messages m where m.message_id = r.id and m.role = 'assistant')
  on conflict (source, turn_id) do update
    set terms = array(select unnest(s.terms) union select unnest(excluded.terms))
$$;

-- A turn as talk_terms names it.
create or replace function bot_private.reader_number(p_turn_id text) returns bigint
language sql immutable parallel safe security invoker
return hashtextextended(p_turn_id, 0);

-- What an answer was given, as agent_turns keeps it: the ids of messages that are om_ and 32 digits as numbers of 16 bytes, and
-- those that are none.
create or replace function bot_private.given_parts(p_ids text[]) returns table (messages uuid[], besides text[])
language sql immutable security invoker
begin atomic
  with ids as materialized (
    select i.id, i.place, i.id ~ '^om_[0-9a-f]{32}$' as is_number from unnest(p_ids) with ordinality i (id, place)
  )
  select coalesce(array_agg(substr(i.id, 4)::uuid order by i.place) filter (where i.is_number), '{}'),
         coalesce(array_agg(i.id order by i.place) filter (where not i.is_number), '{}')
  from ids i;
end;

-- All that an answer was given, by agent_turns.given_messages and agent_turns.given: records name the ids by their places
-- in this.
create or replace function bot_private.given_ids(p_messages uuid[], p_given text[]) returns text[]
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
  select array(select 'om_' || replace(g.id::text, '-', '') from unnest(p_messages) with ordinality g (id, place)
               order by g.place) || p_given
$$;

-- Of lines (JSON array of {message_id, content, timestamp}) that go from where their words stand, what tells them is
-- kept for the turns that were given them. They are the chat's since then, as many as the transcript has room for,
-- those that followed from them anywhere, and digests.
create or replace function bot_private.keep_line_terms(p_chat_id text, p_lines jsonb) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$
  with recursive gone as materialized (
    select g.message_id, g."timestamp", h.terms
    from jsonb_to_recordset(p_lines) as g (message_id text, content text, "timestamp" bigint)
    cross join lateral (
      select bot_private.keyed_hashes(g.message_id, array(select bot_private.telling_terms(g.content))) as terms
      offset 0) h
    where h.terms <> '{}'
  ), span as materialized (
    select l.ids, k.messages, l.since
    from (select array_agg(message_id) as ids, to_timestamp(min("timestamp") / 1000 - 60) as since from gone) l,
      bot_private.given_parts(l.ids) k
  ), turns as (
    select t.id, t.created_at, t.given_messages, t.given from span s join public.agent_turns t
      on hashtextextended(t.chat_id, 0) = hashtextextended(p_chat_id, 0) and t.created_at >= s.since
      and (t.given_messages && s.messages or t.given && s.ids)
    union
    select f.id, f.created_at, f.given_messages, f.given from turns t cross join lateral (
      select f.id, f.created_at, f.given_messages, f.given from public.agent_turns f where f.parent_id = t.id offset 0) f
  ), digests as (
    insert into bot_private.source_terms (source, turn_id, terms)
    select g.message_id, d.turn_id, g.terms
    from span s join public.agent_digest_sources d on d.message_id = any (s.ids)
      join gone g on g.message_id = d.message_id
    on conflict do nothing
  )
  insert into bot_private.talk_terms as k (source, first_given, readers, terms)
  select g.message_id, r.first_given, r.readers, g.terms
  from gone g join (
    select s.source, min(t.created_at) as first_given, array_agg(distinct bot_private.reader_number(t.id)) as readers
    from turns t cross join lateral unnest(bot_private.given_ids(t.given_messages, t.given)) s (source) group by 1) r on r.source = g.message_id
  on conflict (source) do update set
    first_given = least(k.first_given, excluded.first_given),
    readers = array(select unnest(k.readers) union select unnest(excluded.readers)),
    terms = array(select unnest(k.terms) union select unnest(excluded.terms))
$$;

-- Talk leaves the transcript of a chat (p_gone: JSON array of its rows). A question stands with its turn, too, and
-- is kept only when that goes.
create or replace function bot_private.keep_talk_terms(p_chat_id text, p_gone jsonb) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_lines jsonb;
begin
  select jsonb_agg(g.value) into v_lines
  from jsonb_array_elements(p_gone) g
  where not (g.value -> 'is_bot')::boolean and not exists (
    select from public.agent_messages m
    where m.turn_id = g.value ->> 'message_id' and m.role = 'user' and m.chunk = 0);
  if v_lines is not null then
    perform bot_private.keep_line_terms(p_chat_id, v_lines);
  end if;
end
$$;

-- These turns are about to be deleted. What tells their questions is kept with the turns of the same chat that were
-- given them while they stood in its transcript, which they have left.
create or replace function bot_private.keep_question_terms(p_turn_ids text[]) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$
  insert into bot_private.talk_terms as k (source, first_given, readers, terms)
  select q.id, r.first_given, r.readers, h.terms
  from public.agent_turns q
  join public.agent_messages m on m.turn_id = q.id and m.role = 'user' and m.chunk = 0
  cross join lateral (
    select min(n.created_at) as first_given, array_agg(bot_private.reader_number(n.id)) as readers
    from (
      select t.id, t.created_at, t.given_messages, t.given from public.agent_turns t
      where hashtextextended(t.chat_id, 0) = hashtextextended(q.chat_id, 0)
        and t.created_at >= q.created_at - interval '1 minute'
      order by t.created_at limit 250) n  -- a transcript has at most 225 lines
    where q.id = any (bot_private.given_ids(n.given_messages, n.given)) and n.id <> all (p_turn_ids)) r
  cross join lateral (
    select bot_private.keyed_hashes(q.id, array(select bot_private.telling_terms(m.content))) as terms
    offset 0) h
  where q.id = any (p_turn_ids) and r.readers is not null and h.terms <> '{}'
    and not exists (select from public.chat_transcript c where c.message_id = q.id and c.chat_id = q.chat_id)
  on conflict (source) do update set
    first_given = least(k.first_given, excluded.first_given),
    readers = array(select unnest(k.readers) union select unnest(excluded.readers)),
    terms = array(select unnest(k.terms) union select unnest(excluded.terms))
$$;

-- Turns are deleted: what tells the lines that they alone were given goes.
create or replace function bot_private.forget_readers() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
begin
  delete from bot_private.talk_terms k
  using (
    select g.source, array_agg(bot_private.reader_number(o.id)) as readers
    from gone o cross join lateral unnest(bot_private.given_ids(o.given_messages, o.given)) g (source) group by 1) s
  where k.source = s.source and k.readers <@ s.readers;
  update bot_private.talk_terms k
  set readers = array(select unnest(k.readers) except select unnest(s.readers))
  from (
    select g.source, array_agg(bot_private.reader_number(o.id)) as readers
    from gone o cross join lateral unnest(bot_private.given_ids(o.given_messages, o.given)) g (source) group by 1) s
  where k.source = s.source and k.readers && s.readers;
  return null;
end
$$;

-- When a turn first read one of these.
create or replace function bot_private.first_read(p_sources text[]) returns timestamptz
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select least(
    (select min(t.created_at)
     from bot_private.source_terms s join public.agent_turns t on t.id = s.turn_id
     where s.source = any (p_sources)),
    (select min(k.first_given) from bot_private.talk_terms k where k.source = any (p_sources)))
$$;

-- The hashes of these sources, as turns have read them (p_turn_ids null: any).
create or replace function bot_private.hashes_read(p_sources text[], p_turn_ids text[])
returns table (source text, terms bigint[])
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select s.source, s.terms from bot_private.source_terms s
  where s.source = any (p_sources) and (p_turn_ids is null or s.turn_id = any (p_turn_ids))
  union all
  select k.source, k.terms from bot_private.talk_terms k
  where k.source = any (p_sources)
    and (p_turn_ids is null or k.readers && array(select bot_private.reader_number(t) from unnest(p_turn_ids) t))
$$;

-- Of these terms those that the sources have, as turns have read them (p_turn_ids null: any).
create or replace function bot_private.read_terms(
  p_sources text[], p_terms text[], p_turn_ids text[] default null
) returns setof text
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  with of_sources as materialized (
    select * from bot_private.hashes_read(p_sources, p_turn_ids)
  )
  select t.term
  from (select distinct s.source from of_sources s) o
  cross join lateral (
    select term, hash
    from unnest(p_terms, bot_private.keyed_hashes(o.source, p_terms)) as u (term, hash)) t
  where exists (select from of_sources s where s.source = o.source and t.hash = any (s.terms))
$$;

-- What these turns have read, with its hashes.
create or replace function bot_private.read_by(p_turn_ids text[])
returns table (turn_id text, source text, terms bigint[])
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select s.turn_id, s.source, s.terms from bot_private.source_terms s where s.turn_id = any (p_turn_ids)
  union all
  select t.id, k.source, k.terms
  from public.agent_turns t cross join lateral unnest(bot_private.given_ids(t.given_messages, t.given)) g (source)
    join bot_private.talk_terms k on k.source = g.source and bot_private.reader_number(t.id) = any (k.readers)
  where t.id = any (p_turn_ids)
$$;

-- What these turns have read.
create or replace function bot_private.sources_read(p_turn_ids text[]) returns text[]
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select array(select distinct r.source from bot_private.read_by(p_turn_ids) r)
$$;

create or replace function bot_private.forget_source_terms(p_sources text[]) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$
  delete from bot_private.source_terms s where s.source = any (p_sources);
  delete from bot_private.talk_terms k where k.source = any (p_sources)
$$;

-- The ids of a JSON array as sources are noted: a card as the answer of its turn, and beside a note the turns that
-- it comes from, for these are still known when card and note are gone. p_given: of what an answer was given; beside a
-- turn its answer need not stand, for whatever goes of a turn, known_as names both.
create or replace function bot_private.noted_sources(p_ids jsonb, p_most integer, p_given boolean default false)
returns text[]
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_noted text[];
begin
  with ids as materialized (
    select id from jsonb_array_elements_text(p_ids) g (id) limit p_most
  ), cards as materialized (
    select m.message_id, m.turn_id from public.agent_messages m
    where m.message_id = any (array(select id from ids)) and m.role = 'assistant'
  )
  select array_agg(distinct coalesce('answer:' || c.turn_id, i.id)) into v_noted
  from ids i left join cards c on c.message_id = i.id;
  if strpos(p_ids::text, '"note:') > 0 then
    v_noted := array(
      select unnest(v_noted)
      union
      select t.id
      from jsonb_array_elements_text(p_ids) i join public.agent_notes n on n.id = substr(i, 6)
      cross join lateral (
        select n.turn_id as id union select s.value ->> 'turn' from jsonb_each(n.sources) s) t
      where starts_with(i, 'note:') and t.id is not null);
  end if;
  if p_given then
    v_noted := array(
      select n from unnest(v_noted) n where not (starts_with(n, 'answer:') and substr(n, 8) = any (v_noted)));
  end if;
  return coalesce(v_noted[:p_most], '{}');
end
$$;

-- None is dropped: record_reply takes 64 KB of ids, which is fewer.
create or replace function bot_private.given_sources(p_ids jsonb) returns text[]
language sql stable security invoker
return bot_private.noted_sources(p_ids, 2000, true);

-- The id by which an answer is given a whole thread, in its summary: everything that was said there before. p_person:
-- whose summary it is, as summary_of gives it.
create or replace function bot_private.thread_source(p_conversation_id text, p_person text) returns text
language sql immutable parallel safe security invoker
return 'thread:' || p_conversation_id || ':' || p_person;

-- The ids of the summaries that a message of these people in a thread may be in.
create or replace function bot_private.thread_sources(p_conversation_id text, p_people text[]) returns text[]
language sql immutable parallel safe security invoker
return array(select bot_private.thread_source(p_conversation_id, p) from unnest(p_people || '{""}'::text[]) p);

-- The ids under which other turns may have been given what these turns said, kept, or reminded of.
create or replace function bot_private.known_as(p_turn_ids text[]) returns text[]
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  with turns as (
    select unnest(p_turn_ids) as id
    union
    select f.id
    from public.agent_timers r join public.agent_turns f
      on f.parent_id = r.id and f.origin in ('reminder', 'digest')
    where r.turn_id = any (p_turn_ids) or r.changed_by && p_turn_ids
  )
  select array(
    select id from turns
    union all select 'answer:' || id from turns
    union all
    select m.message_id from turns join public.agent_messages m on m.turn_id = turns.id
    where m.message_id is not null
    union all
    select unnest(bot_private.thread_sources(t.conversation_id, array[t.user_id, t.actor_id]))
    from turns join public.agent_turns t using (id))
$$;

-- The turns that were made from these messages, or asked with a button of these turns. Of those that are
-- `whole` question and answer go with the source; of the others, whose question is a person's own, the answer.
create or replace function bot_private.made_from(p_messages text[], p_turns text[])
returns table (turn_id text, whole boolean)
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select t.id, false from public.agent_turns t
  where t.read_messages && p_messages and t.read_messages <> '{}'
  union all
  select t.id, true from public.agent_turns t where t.drawn_on && p_messages and t.drawn_on <> '{}'
  union all
  select s.turn_id, true from public.agent_digest_sources s where s.message_id = any (p_messages)
  union all
  select t.id, true from public.agent_turns t where t.parent_id = any (p_turns) and t.origin = 'button'
  union all
  select t.id, true from public.agent_turns t
  where t.parent_id = any (p_messages) and t.origin in ('again', 'retry', 'private_answer', 'offer')
  union all
  select t.id, true
  from public.agent_timers r join public.agent_turns t
    on t.parent_id = r.id and t.origin in ('reminder', 'digest')
  where r.turn_id = any (p_messages) or r.changed_by && p_messages
$$;

-- The ids of their answers.
create or replace function bot_private.cards_of(p_turn_ids text[]) returns text[]
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select array(
    select 'answer:' || t from unnest(p_turn_ids) t
    union all
    select m.message_id from public.agent_messages m
    where m.turn_id = any (p_turn_ids) and m.role = 'assistant' and m.message_id is not null)
$$;

-- What a card tells: its words, its buttons, and of a file what it was made of.
create or replace function bot_private.told_by(p_turn_id text) returns text
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select concat_ws(e'\n', (
    select string_agg(concat_ws(e'\n', m.content, m.file ->> 'content', (
      select string_agg(c.value #>> '{arguments,content}', e'\n')
      from public.agent_messages f cross join jsonb_array_elements(f.tool_calls) c
      where m.file is not null and f.turn_id = m.turn_id and f.role = 'assistant'
        and c.value ->> 'name' = 'send_file')), e'\n')
    from public.agent_messages m
    where m.turn_id = p_turn_id
      and (m.role = 'assistant' or exists (
        select from public.agent_turns t where t.id = p_turn_id and bot_private.is_pressed(t)))), (
    select string_agg(concat_ws(e'\n', b.payload ->> 'text', b.payload ->> 'description',
                                bot_private.words_of_call(b.payload)), e'\n')
    from public.agent_buttons b where b.turn_id = p_turn_id))
$$;

-- What the tools of these turns kept: facts with their names, the fields of notes, reminders.
create or replace function bot_private.kept_by(p_turn_ids text[]) returns setof text
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select concat_ws(' ', e.key, w.content ->> e.key)
  from public.agent_working_memory w cross join jsonb_each(w.sources) e
  where w.chat_id in (select t.chat_id from public.agent_turns t where t.id = any (p_turn_ids))
    and e.value ->> 'turn' = any (p_turn_ids)
  union all
  select concat_ws(' ', e.key, e.value #>> '{}')
  from public.agent_working_memory_history h cross join jsonb_each(h.became) e
  where h.turn_id = any (p_turn_ids)
  union all
  select bot_private.note_fields(n) ->> e.key
  from public.agent_notes n cross join jsonb_each(n.sources) e
  where n.chat_id in (select t.chat_id from public.agent_turns t where t.id = any (p_turn_ids))
    and e.value ->> 'turn' = any (p_turn_ids)
  union all
  select e.value #>> '{}'
  from public.agent_note_changes c cross join jsonb_each(c.was) e
  where (c.note_id, c.tenant_key, c.user_id) in (
      select n.id, n.tenant_key, n.user_id from public.agent_notes n where n.turn_id = any (p_turn_ids))
    and c.was_sources #>> array[e.key, 'turn'] = any (p_turn_ids)
  union all
  select t.content from public.agent_timers t
  where t.turn_id = any (p_turn_ids) or t.changed_by && p_turn_ids
$$;

-- What the model of a turn gave to its tools.
create or replace function bot_private.asked_of_tools(p_turn_id text) returns text
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select string_agg(bot_private.words_of_call(c.value - 'result'), e'\n')
  from public.agent_messages m cross join jsonb_array_elements(m.tool_calls) c
  where m.turn_id = p_turn_id
$$;

-- Of these terms those that a turn had from elsewhere: from its question, or from anything it was given that
-- stands. p_gone: the ids of what is taken back and of the turns that tell it; of those only the questions stand.
create or replace function bot_private.from_elsewhere(
  p_turn public.agent_turns, p_terms text[], p_sources text[], p_gone text[]
) returns text[]
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  with given as (
    select g.id, regexp_replace(g.id, '^answer:', '') as turn_id, g.id = any (p_gone) as gone
    from (
      select unnest(bot_private.given_ids(p_turn.given_messages, p_turn.given)
        || p_turn.read_messages || p_turn.drawn_on) as id
      union
      select s.id from public.agent_turns s
      where s.conversation_id = p_turn.conversation_id and s.created_at < p_turn.created_at
        and bot_private.thread_sources(s.conversation_id, array[s.user_id]) && p_turn.given) g
    where g.id <> all (p_sources)
  ), stands as (
    select concat_ws(' ', m.actor_name, m.content) as words from public.agent_messages m
    where m.turn_id = p_turn.id and m.role = 'user' and not bot_private.is_pressed(p_turn)
    union all
    select m.content
    from given g join public.agent_messages m on m.turn_id = g.turn_id or m.message_id = g.id
    where m.role = 'user' or not g.gone
    union all
    select c.content from given g join public.chat_transcript c on c.message_id = g.id
    where not c.is_bot or not g.gone
    union all
    select bot_private.kept_by(array(select g.turn_id from given g where not g.gone))
  )
  select array(
    select w from stands s, bot_private.telling_terms(s.words) w where w = any (p_terms)
    union
    select bot_private.read_terms(array(
      select r from unnest(bot_private.sources_read(p_turn.id || array(select g.turn_id from given g))) r
      where r <> all (p_sources || p_gone)), p_terms, p_turn.id || array(select g.turn_id from given g)))
$$;

-- Of these terms those that were said time and again in the chat of a turn before p_since.
create or replace function bot_private.common_terms(
  p_turn public.agent_turns, p_terms text[], p_since timestamptz
) returns text[]
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select array(
    select w
    from unnest(p_terms) w, lateral (
      select bot_private.recall_number(p_turn.tenant_key, p_turn.chat_id) as place offset 0) p
    where 4 = (select count(*) from (
      select from bot_private.turn_words x
      where x.place + 0 = p.place and x.words && bot_private.recall_words(p.place, array[w])
        and x.asked_at < p_since limit 4) c))
$$;

-- What tells p_texts: a JSON array with the terms of each text as an array, and as strings the phrases that a copy of it,
-- or of p_kept, has word for word.
create or replace function bot_private.told_units(p_texts text[], p_kept text[]) returns jsonb
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(to_jsonb(u.terms)) filter (where u.terms <> '{}'), '[]')
    || to_jsonb(bot_private.telling_phrases(p_texts || p_kept))
  from unnest(p_texts) t, lateral (select array(select bot_private.telling_terms(t)) as terms) u
$$;

-- The phrases among p_units.
create or replace function bot_private.phrases_of(p_units jsonb) returns text[]
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select array(select u #>> '{}' from jsonb_array_elements(p_units) u where jsonb_typeof(u) = 'string')
$$;

-- p_units without the phrases that a turn repeats from elsewhere, or does not repeat in p_words: somebody says them in its
-- chat in a message that stands. p_sources and p_gone do not.
create or replace function bot_private.units_without_others(
  p_turn public.agent_turns, p_units jsonb, p_words text, p_sources text[], p_gone text[]
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  with copied as materialized (
    select unnest(bot_private.phrases_in(p_words, bot_private.phrases_of(p_units))) as phrase
  ), stands as materialized (
    select bot_private.plain_words(s.content) as words
    from (
      (select m.content from public.agent_messages m
       where m.chat_id = p_turn.chat_id and m.role = 'user' and m.turn_id <> all (p_sources || p_gone)
         and not exists (select from public.agent_turns t where t.id = m.turn_id and bot_private.is_pressed(t))
       order by m.id desc limit 500)
      union all
      select c.content from public.chat_transcript c
      where c.tenant_key = p_turn.tenant_key and c.chat_id = p_turn.chat_id and not c.is_bot
        and c.message_id <> all (p_sources || p_gone)) s
    where exists (select from copied)
  )
  select coalesce(jsonb_agg(u) filter (where jsonb_typeof(u) = 'array'), '[]') || coalesce((
    select jsonb_agg(c.phrase) from copied c
    where not exists (select from stands s where strpos(s.words, c.phrase) > 0)), '[]')
  from jsonb_array_elements(p_units) u
$$;

-- An answer is stored. The distinctive terms that it, or its tools, had from nothing else tell the messages it
-- read, too: of a picture nobody has the words, and a sum stands in no file. This is decided now, while all that
-- the answer was given stands.
create or replace function bot_private.keep_told_terms(p_turn_id text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_turn public.agent_turns;
  v_terms text[];
begin
  if not exists (select from bot_private.source_terms s where s.turn_id = p_turn_id) then
    return;
  end if;
  select * into v_turn from public.agent_turns t where t.id = p_turn_id;
  v_terms := array(
    select distinct w
    from (select bot_private.told_by(p_turn_id) union all select bot_private.kept_by(array[p_turn_id])
          union all select bot_private.asked_of_tools(p_turn_id)) t (words),
      bot_private.telling_terms(t.words) w
    where bot_private.is_distinctive(w));
  v_terms := array(
    select unnest(v_terms) except select unnest(bot_private.common_terms(v_turn, v_terms, v_turn.created_at)));
  update bot_private.source_terms s
  set terms = array(select unnest(s.terms) union select unnest(bot_private.keyed_hashes(s.source, array(
    select unnest(v_terms) except select unnest(bot_private.from_elsewhere(
      v_turn, v_terms, s.source || bot_private.known_as(array[s.source]), '{}'))))))
  where s.turn_id = p_turn_id;
end
$$;

-- The terms of p_units, and of p_terms those that a file or a quotation among p_ids has.
create or replace function bot_private.source_terms_among(p_units jsonb, p_ids text[], p_terms text[])
returns text[]
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select array(
    select jsonb_array_elements_text(u) from jsonb_array_elements(p_units) u where jsonb_typeof(u) = 'array'
    union select bot_private.read_terms(p_ids, p_terms))
$$;

-- Whether a text tells what is taken back, but for what stands elsewhere: word for word, or with its terms.
create or replace function bot_private.tells_any(
  p_text text, p_units jsonb, p_elsewhere text[], p_ids text[]
) returns boolean
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select bot_private.phrases_in(p_text, bot_private.phrases_of(p_units)) <> '{}'
    or exists (
      select from (select array(select bot_private.telling_terms(p_text)) as terms) o
      where exists (
          select from jsonb_array_elements(p_units) u cross join lateral (
            select array(select jsonb_array_elements_text(u.value) except select unnest(p_elsewhere)) as own) w
          where jsonb_typeof(u.value) = 'array'
            and bot_private.tells(array(select unnest(w.own) intersect select unnest(o.terms)), w.own))
        or exists (
          select from bot_private.read_terms(p_ids, array(
            select unnest(o.terms) except select unnest(p_elsewhere))) t
          where bot_private.is_distinctive(t)))
$$;

-- No turn before this was given these messages, or what these turns said.
create or replace function bot_private.said_since(p_messages text[], p_turns text[]) returns timestamptz
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select least(
    (select min(t.created_at) from public.agent_turns t where t.id = any (p_messages || p_turns)),
    (select to_timestamp(min(c."timestamp") / 1000 - 60) from public.chat_transcript c
     where c.message_id = any (p_messages)),
    (select min(i.created_at) from public.imported_messages m join public.chat_imports i on i.id = m.import_id
     where hashtext(m.message_id) in (select hashtext(s) from unnest(p_messages) s)
       and m.message_id = any (p_messages)),
    bot_private.first_read(p_messages))
$$;

-- All that a turn was given, or made from.
create or replace function bot_private.sources_of(p_turn public.agent_turns) returns text[]
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select bot_private.given_ids(p_turn.given_messages, p_turn.given) || p_turn.read_messages || p_turn.drawn_on
    || case when p_turn.origin = 'button' then array['answer:' || p_turn.parent_id] else '{}' end || array(
    select s.message_id from public.agent_digest_sources s where s.turn_id = p_turn.id)
$$;

-- The turns, earliest first, that were given or made from any of p_sources, of which p_since is the earliest. One that
-- is made again after a while is given what was said since it began.
create or replace function bot_private.turns_given(p_sources text[], p_since timestamptz)
returns setof public.agent_turns
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select t.* from public.agent_turns t
  where t.created_at >= p_since - interval '1 day' and t.updated_at >= p_since
    and (t.given_messages && (select k.messages from bot_private.given_parts(p_sources) k) or t.given && p_sources or t.read_messages && p_sources or t.drawn_on && p_sources
      or t.origin = 'button' and 'answer:' || t.parent_id = any (p_sources)
      or t.id in (select s.turn_id from public.agent_digest_sources s where s.message_id = any (p_sources)))
  order by t.created_at, t.id
$$;

-- These turns are about to be deleted, rows and all. Who was given what they said gets their sources for its own.
create or replace function bot_private.pass_on_sources(p_turn_ids text[]) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.keep_question_terms(p_turn_ids);
  with recursive known as (
    select t.id as turn_id, t.created_at, unnest(bot_private.known_as(array[t.id])) as id
    from public.agent_turns t where t.id = any (p_turn_ids)
  ), told as (
    select distinct t.id as turn_id, k.turn_id as by_turn
    from (select array_agg(g.id) as ids, min(g.created_at) as since from known g) g
      cross join lateral bot_private.turns_given(g.ids, g.since) t
      cross join lateral unnest(bot_private.sources_of(t)) s (id)
      join known k on k.id = s.id and k.created_at < t.created_at  -- a thread goes on
  ), knows as (
    select t.turn_id, t.by_turn from told t where t.turn_id <> all (p_turn_ids)
    union
    select k.turn_id, t.by_turn from knows k join told t on t.turn_id = k.by_turn
  ), read as materialized (
    select * from bot_private.read_by(array(select distinct k.by_turn from knows k))
  ), terms as (
    insert into bot_private.source_terms as s (source, turn_id, terms)
    select r.source, k.turn_id, coalesce(array_agg(distinct h) filter (where h is not null), '{}')
    from knows k join read r on r.turn_id = k.by_turn left join lateral unnest(r.terms) h on true
    group by 1, 2
    on conflict (source, turn_id) do update set terms = s.terms || excluded.terms
  ), talk as (  -- what leaves a transcript later looks for turns of its own chat
    insert into bot_private.source_terms as s (source, turn_id, terms)
    select distinct c.message_id, k.turn_id,
           bot_private.keyed_hashes(c.message_id, array(select bot_private.telling_terms(c.content)))
    from knows k join public.agent_turns g on g.id = k.by_turn
      join public.chat_transcript c
        on c.tenant_key = g.tenant_key and c.chat_id = g.chat_id and c.message_id = any (bot_private.given_ids(g.given_messages, g.given))
    where not c.is_bot
      and not exists (select from read r where r.turn_id = k.by_turn and r.source = c.message_id)
    on conflict do nothing
  )
  update public.agent_turns t set given = (t.given || n.sources)[:2000]  -- at the end: places stay
  from (
    select k.turn_id, array_agg(distinct s.id) as sources
    from knows k join public.agent_turns g on g.id = k.by_turn
      cross join lateral unnest(bot_private.sources_of(g)) s (id)
    group by 1) n
  where t.id = n.turn_id;
end
$$;
