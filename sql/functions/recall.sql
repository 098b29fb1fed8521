-- Purpose: finds what was said earlier: BM25 over turns and their neighbours, scoped before it ranks.
--
-- A turn (question and answer) is one document. Its tokens stand as numbers in turn_words, written by a
-- trigger in the transaction that stores the message, and derived: they go when the turn goes.
-- recall_tokens is the only place that cuts text into tokens, for what is stored and what is asked.
--
-- However much was said, a question looks at a bounded number of turns: recall_likely takes them from
-- the index of words, recall_best weighs them with their neighbours, recall reads what they say. The places are looked
-- up once for all of these.
--
-- What looks into turn_words runs as its owner: an operator that may tell of its arguments, as && may,
-- is not looked up in an index under row-level security. So it applies the rule of
-- agent_messages_select itself, from the claims and before it counts or ranks: places_to_recall says which
-- places and since when, v_by_person that only what is of the sender counts. It gives ids only, and its
-- callers read those messages under the policy again. What takes places as an argument no token may call.

-- Tokens of a text in order. Latin words and numbers: lower case, stemmed, without the few words
-- that every sentence has; one token for the forms of a word: hike, hikes, hiked and hiking are "hik"
-- (written out here: a function or a regular expression for each word costs as much as all the rest).
-- The ending goes (ing, ed or s, before it ie, e, y or i) as far as three letters stay, then one of two
-- same letters. Chinese, Japanese and Korean: pairs of neighbouring characters, with pronouns,
-- particles and question words as the gaps between.
-- Reads the first 30,000 characters; a token has at most 40. Takes time that grows with the text and
-- not with its square: a run of characters is cut once, not read again from its start for every pair.
-- A loop, not a query: a query takes longer to set up than a question to cut.
create or replace function bot_private.recall_tokens(p_text text) returns text[]
language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  cjk constant text := '\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af';
  v_text text := lower(left(coalesce(p_text, ''), 30000));
  v_plain constant boolean := octet_length(v_text) = length(v_text);
  v_word text;
  v_signs text[];
  v_tokens text[] := '{}';
begin
  if not v_plain then
    v_text := regexp_replace(lower(normalize(left(p_text, 30000), nfkc)),
      '[为為]?什[么麼]|哪[些个個里裡家位]?|怎[么麼]|多少|[的了吗嗎呢吧啊么麼我你您他她它们們]', ' ', 'g');
    v_text := regexp_replace(v_text, '([' || cjk || ']+)', ' \1 ', 'g');
  end if;
  foreach v_word in array
    regexp_split_to_array(v_text, '[^0-9a-z\u00c0-\u02af\u0370-\u0fff' || cjk || ']+')
  loop
    if not v_plain and v_word ~ ('^[' || cjk || ']') then
      v_signs := string_to_array(v_word, null);
      for n in 1 .. greatest(cardinality(v_signs) - 1, 1) loop
        v_tokens := v_tokens || (v_signs[n] || coalesce(v_signs[n + 1], ''));
      end loop;
    -- the list stands here, not in a variable: so it is hashed
    elsif v_word <> '' and not v_word = any (
      '{a,an,the,and,or,of,to,in,on,at,for,from,with,by,as,is,are,was,were,be,been,do,does,did,has,have,
        had,what,when,where,who,whose,which,why,how,that,this,it,its,s,t}')
    then
      v_word := left(v_word, 60);
      if v_word ~ '^[a-z]+$' then
        v_word := case when v_word like '%ing' and length(v_word) > 5 then left(v_word, -3)
                       when v_word like '%ed' and length(v_word) > 4 then left(v_word, -2)
                       when v_word like '%s' and length(v_word) > 3 then left(v_word, -1)
                       else v_word end;
        v_word := case when v_word like '%ie' and length(v_word) > 4 then left(v_word, -2)
                       when right(v_word, 1) in ('e', 'y', 'i') and length(v_word) > 3
                       then left(v_word, -1) else v_word end;
      end if;
      v_tokens := v_tokens || left(
        case when length(v_word) > 3 and right(v_word, 1) = left(right(v_word, 2), 1)
             then left(v_word, -1) else v_word end, 40);
    end if;
  end loop;
  -- numbers with points are words of their own, too: versions, amounts
  if v_text ~ '\d\.\d' then
    v_tokens := v_tokens || array(
      select left(m[1], 40) from regexp_matches(v_text, '\d+(?:\.\d+)+', 'g') m);
  end if;
  return v_tokens;
end
$$;

-- Tokens with their positions, hence their counts.
create or replace function bot_private.recall_terms(p_tokens text[]) returns tsvector
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(string_agg(token || ':' || n, ' '), '')::tsvector
  from unnest(p_tokens) with ordinality t(token, n)
$$;

-- A chat or a conversation of a tenant as a number.
create or replace function bot_private.recall_number(p_tenant_key text, p_id text) returns bigint
language sql immutable parallel safe security invoker
return hashtextextended(p_tenant_key || ' ' || p_id, 0);

-- A token as a number, another one in every place: so the index finds a word in a place without reading
-- what others said elsewhere. Two words that share a number by chance are found for each other.
create or replace function bot_private.recall_word(p_place bigint, p_token text) returns integer
language sql immutable parallel safe security invoker
return ((hashtextextended(p_token, p_place) & 4294967295) - 2147483648)::integer;

create or replace function bot_private.recall_words(p_place bigint, p_tokens text[]) returns integer[]
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(array_agg(bot_private.recall_word(p_place, t)), '{}') from unnest(p_tokens) t
$$;

-- Keeps the words of a turn's question and answer; of one without words, or without an author, nothing.
-- p_changed: something of the turn is other than it was, so what was kept of it may stand in the way.
create or replace function bot_private.keep_terms(p_turn_id text, p_changed boolean default true)
returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp
as $$
begin
  perform from public.agent_messages m where m.turn_id = p_turn_id for key share;
  if p_changed then
    delete from bot_private.turn_words w using (
      select array_agg(m.id) as ids, min(m.id) filter (where m.status <> 'failed') as first_id,
             max(m.actor_id) filter (where m.status <> 'failed') as actor_id
      from public.agent_messages m where m.turn_id = p_turn_id) t
    where w.first_id = any (t.ids)
      and (w.first_id is distinct from t.first_id or t.actor_id is null);
  end if;
  insert into bot_private.turn_words as w (first_id, place, thread, asked_at, length, words)
  select t.first_id, t.place, t.thread, t.asked_at, cardinality(t.tokens),
         array(select bot_private.recall_word(t.place, k) from unnest(t.tokens) k)
  from (
    select min(m.id) as first_id, min(m.created_at) as asked_at, max(m.actor_id) as actor_id,
           bot_private.recall_number(min(m.tenant_key), min(m.chat_id)) as place,
           bot_private.recall_number(min(m.tenant_key), min(m.conversation_id)) as thread,
           bot_private.recall_tokens(concat_ws(
             e'\n', max(m.actor_name) filter (where m.role = 'user'),
             string_agg(m.content, e'\n' order by m.id))) as tokens
    from public.agent_messages m where m.turn_id = p_turn_id and m.status <> 'failed') t
  where t.first_id is not null and t.actor_id is not null
  on conflict (first_id) do update
    set asked_at = excluded.asked_at, length = excluded.length, words = excluded.words;
  return true;
end
$$;

create or replace function public.index_turn() returns trigger
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_kept constant boolean :=
    bot_private.keep_terms(coalesce(new.turn_id, old.turn_id), tg_op <> 'INSERT');
begin
  return null;
end
$$;

-- Of these messages, of turns or of imported history, those that are gone are found no more.
create or replace function bot_private.drop_words_of(p_ids bigint[]) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$
  delete from bot_private.turn_words w
  where w.first_id = any (p_ids)
    and not exists (select from public.agent_messages m where m.id = w.first_id)
    and not exists (select from public.imported_messages m where m.id = w.first_id)
$$;

create or replace function public.drop_turn_words() returns trigger
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.drop_words_of(array(select id from gone));
  return null;
end
$$;

-- The places that the token of this turn may read, and since when; with p_imports, too, those of imported history,
-- which `imports` has alone. Chats of p_but are left out. Where there are none, all three are null.
-- The usual place, of one chat, takes no query: setting one up takes longer than all that it finds.
create or replace function bot_private.places_to_recall(
  p_scope text, p_but text[] default '{}', p_imports boolean default true,
  out places bigint[], out since timestamptz[], out imports bigint[]
)
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_chat_id constant text := public.claim('chat_id');
  v_tenant_key constant text := coalesce(public.claim('tenant_key'), '');
  v_imports jsonb := '{}';
  v_since timestamptz[];
begin
  if v_chat_id <> all (p_but) then
    places := array[bot_private.recall_number(v_tenant_key, v_chat_id)];
    since := array[bot_private.told_since()];
  end if;
  if p_scope = 'everywhere' then
    select places || array_agg(bot_private.recall_number(v_tenant_key, e.key)),
           since || array_agg(e.value::timestamptz)
    into places, since
    from jsonb_each_text(public.readable_chats()) e
    where e.key <> v_chat_id and e.key <> all (p_but);
  end if;
  if p_imports and p_scope <> 'thread'
     and exists (select from public.chat_imports i where i.tenant_key = v_tenant_key) then
    v_imports := bot_private.readable_imports();
  end if;
  if v_imports <> '{}' then
    select array_agg(bot_private.import_place(i.tenant_key, i.chat_id)), array_agg(e.value::timestamptz)
    into imports, v_since
    from jsonb_each_text(v_imports) e join public.chat_imports i on i.id = e.key::integer
    where i.chat_id <> all (p_but) and (p_scope = 'everywhere' or i.chat_id = v_chat_id);
    places := places || imports;
    since := since || v_since;
  end if;
end
$$;

-- Of p_places, read since p_joined, of which p_imports are of imported history, the turns worth weighing for p_terms,
-- p_enough at most, the weight of each term (null: it stands nowhere) and whether it tells turns apart: one in every
-- third turn does not, and finds none by itself, unless all of the question's are so. `size` is how many turns there are,
-- as far as they are counted.
-- Rare words are looked up, of common ones the turns that come first and the newest count; where the newest are all,
-- nothing is looked up. Turns said in [p_since, p_until) come first.
create or replace function bot_private.recall_likely(
  p_places bigint[], p_joined timestamptz[], p_imports bigint[], p_thread bigint, p_scope text, p_terms text[],
  p_from bigint, p_before bigint, p_since timestamptz, p_until timestamptz, p_enough integer,
  out ids bigint[], out weights double precision[], out telling boolean[], out size integer
)
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_actor constant text := public.claim('actor');
  v_by_person constant boolean := public.claim('sharing') is not distinct from 'person';
  -- terms that were found, each with the turn that has it
  v_term integer[];
  v_turn bigint[];
  v_length integer[];
  v_time timestamptz[];
  v_size bigint;
  v_whole double precision;
  v_turns double precision[];
  v_n integer;
  v_rare boolean := false;
  -- a word in more turns than this is common
  rare constant integer := 100;
  -- so many words of a question are looked up, the rarest first
  looked_up constant integer := 32;
  -- how many turns there are is counted so far
  many constant integer := 1000;
  -- how many of the newest tell how common a word is, and of each place
  sample constant integer := 200;
  of_each constant integer := sample / cardinality(p_places) + 10;
begin
  with newest as materialized (
    -- || '{}': words that stand outside of their row are read once, not for every term
    select r.* from unnest(p_places, p_joined) p (place, since), lateral (
      select w.first_id, w.place, w.asked_at, w.length, w.words || '{}' as words
      from bot_private.turn_words w
      where p_scope <> 'thread' and w.place = p.place and w.asked_at >= p.since
        and (w.thread <> p_thread or w.first_id < p_before and w.first_id > p_from)
        and (not v_by_person or exists (
          select from public.agent_messages m
          where m.id = w.first_id and v_actor in (m.user_id, m.actor_id)))
      order by w.asked_at desc limit of_each) r
    union all (
      select w.first_id, w.place, w.asked_at, w.length, w.words || '{}' as words
      from bot_private.turn_words w
      where p_scope = 'thread' and w.thread = p_thread and w.place = any (p_places)
        and w.asked_at >= p_joined[1]
        and w.first_id < p_before and w.first_id > p_from
        and (not v_by_person or exists (
          select from public.agent_messages m
          where m.id = w.first_id and v_actor in (m.user_id, m.actor_id)))
      order by w.first_id desc limit sample)
    order by asked_at desc limit sample
  )
  select (select count(*) from newest), array_agg(k.term), array_agg(e.first_id), array_agg(e.length),
         array_agg(e.asked_at)
  into v_size, v_term, v_turn, v_length, v_time
  from newest e join (
    select w.n::integer as term, p.place, bot_private.recall_word(p.place, w.term) as key
    from unnest(p_places) p (place), unnest(p_terms) with ordinality w (term, n)
  ) k on k.place = e.place and k.key = any (e.words);

  if v_size < sample - 10 then
    v_whole := v_size;
  elsif v_by_person then
    v_whole := many;
  elsif p_scope = 'thread' then
    v_whole := (
      select count(*) from (
        select from bot_private.turn_words w where w.thread = p_thread limit many) c);
  else
    v_whole := (
      select least(many, sum(c.n)) from unnest(p_places, p_joined) p (place, since), lateral (
        select count(*) as n from (
          select from bot_private.turn_words w where w.place = p.place and w.asked_at >= p.since
          order by w.asked_at desc limit many) c) c);
  end if;
  if p_imports is not null then
    v_whole := v_whole + bot_private.imports_size(p_imports);
  end if;

  size := v_whole;
  v_turns := array_fill(0::double precision, array[cardinality(p_terms)]);
  foreach v_n in array coalesce(v_term, '{}') loop
    v_turns[v_n] := v_turns[v_n] + 1;
  end loop;
  if v_size > 0 and (v_size >= least(of_each, sample - 10) or p_imports is not null) then
    declare
      v_terms integer[];
      v_ids bigint[];
      v_lengths integer[];
      v_times timestamptz[];
    begin
      with sampled as materialized (
        select n::integer as term, w.term as word, v_whole / v_size * w.turns as turns
        from unnest(p_terms, v_turns) with ordinality w (term, turns, n)
      ),
      looked as materialized (
        select s.term, array(
          select bot_private.recall_word(p.place, s.word) from unnest(p_places) p (place)) as keys
        from sampled s
        where s.turns <= rare
        order by s.turns, length(s.word) desc limit looked_up
      ),
      indexed as materialized (
        select l.term, r.first_id, r.length, r.asked_at
        from looked l, lateral (
          select w.first_id, w.length, w.asked_at from bot_private.turn_words w
          where w.words && l.keys
            -- not by the index of places, which has all turns of one
            and w.place + 0 = any (p_places)
            and w.asked_at >= p_joined[array_position(p_places, w.place)]
            and case when w.thread = p_thread
                then w.first_id < p_before and w.first_id > p_from else p_scope <> 'thread' end
            and (not v_by_person or exists (
              select from public.agent_messages m
              where m.id = w.first_id and v_actor in (m.user_id, m.actor_id)))
          limit rare + 1) r
      )
      select array(
          select case when w.turns > rare or i.turns > rare
            then greatest(rare + 1, w.turns) else coalesce(i.turns, w.turns) end
          from sampled w left join (
            select term, count(*) as turns from indexed group by term) i using (term)
          order by w.term),
        array(select term from indexed), array(select first_id from indexed),
        array(select length from indexed), array(select asked_at from indexed)
      into v_turns, v_terms, v_ids, v_lengths, v_times;
      v_term := v_term || v_terms;
      v_turn := v_turn || v_ids;
      v_length := v_length || v_lengths;
      v_time := v_time || v_times;
    end;
  end if;

  for n in 1 .. cardinality(p_terms) loop
    v_turns[n] := nullif(v_turns[n], 0);
    weights[n] := (1 + 1.2) * ln(1 + (greatest(v_whole - v_turns[n], 0) + 0.5) / (v_turns[n] + 0.5));
    telling[n] := coalesce(v_turns[n] <= greatest(10, v_whole / 3), false);
    v_rare := v_rare or telling[n];
  end loop;
  if not v_rare then  -- the common ones would be most of the work; where there are no others, they are all there is
    for n in 1 .. cardinality(p_terms) loop
      telling[n] := v_turns[n] is not null;
    end loop;
  end if;
  ids := array(
    select first_id
    from (
      select distinct s.term, s.first_id, s.length, s.asked_at
      from unnest(v_term, v_turn, v_length, v_time) s (term, first_id, length, asked_at)
      where telling[s.term]) h
    group by first_id, length, asked_at
    order by coalesce(asked_at >= p_since and asked_at < p_until, false) desc,
             sum(weights[term]) / (1 + 0.01 * length) desc, asked_at desc
    limit p_enough);
end
$$;

-- The newest turns of a scope, by their first message.
create or replace function bot_private.recall_newest(
  p_conversation_id text, p_scope text, p_from bigint, p_before bigint, p_limit integer
) returns bigint[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_thread constant bigint := bot_private.recall_number(
    coalesce(public.claim('tenant_key'), ''), p_conversation_id);
  v_actor constant text := public.claim('actor');
  v_by_person constant boolean := public.claim('sharing') is not distinct from 'person';
  v_in constant record := bot_private.places_to_recall(p_scope, p_imports => false);
begin
  return array(
    select r.first_id from unnest(v_in.places, v_in.since) p (place, since), lateral (
      select w.first_id, w.asked_at from bot_private.turn_words w
      where w.place = p.place and w.asked_at >= p.since
        and case when w.thread = v_thread
            then w.first_id < p_before and w.first_id > p_from else p_scope <> 'thread' end
        and (not v_by_person or exists (
          select from public.agent_messages m
          where m.id = w.first_id and v_actor in (m.user_id, m.actor_id)))
      order by w.asked_at desc limit p_limit) r
    order by r.asked_at desc limit p_limit);
end
$$;

-- The first of p_spans, pairs [from, to), in which anything was said in places.
create or replace function bot_private.recall_span(
  p_places bigint[], p_joined timestamptz[], p_thread bigint, p_scope text, p_from bigint, p_before bigint,
  p_spans jsonb, out since timestamptz, out until timestamptz
)
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
-- each place is looked up in the index of times: the first of its many turns settles it
set enable_seqscan = off
set enable_hashjoin = off
set enable_mergejoin = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_actor constant text := public.claim('actor');
  v_by_person constant boolean := public.claim('sharing') is not distinct from 'person';
begin
  select s.since, s.until into since, until
  from jsonb_array_elements(p_spans) with ordinality p (pair, preference),
    lateral (select (pair ->> 0)::timestamptz, (pair ->> 1)::timestamptz) s (since, until)
  where exists (
    select from unnest(p_places, p_joined) r (place, joined), lateral (
      select from bot_private.turn_words w
      where w.place = r.place and w.asked_at >= greatest(r.joined, s.since) and w.asked_at < s.until
        and case when w.thread = p_thread
            then w.first_id < p_before and w.first_id > p_from else p_scope <> 'thread' end
        and (not v_by_person or exists (
          select from public.agent_messages m
          where m.id = w.first_id and v_actor in (m.user_id, m.actor_id)))
      order by w.asked_at limit 1) w)
  order by preference limit 1;
end
$$;

-- So many turns are few: where a place has no more, all of them may be told.
create or replace function bot_private.recall_few() returns integer
language sql immutable parallel safe security invoker
return 20;

-- The p_k best turns for p_query, best first, by their first message and those of the turns around them, and all of
-- these turns; `size` is that of recall_likely. p_spans, p_boost: as recall takes them. p_alike: turns that are like the question, p_likeness how much
-- (0 to 1); of two places, the one by words and the one by likeness, the latter has the weight p_weight. A score is on
-- the scale of the words' best.
create or replace function bot_private.recall_best(
  p_conversation_id text, p_scope text, p_query text, p_from bigint, p_before bigint, p_spans text,
  p_boost double precision, p_k integer, p_alike bigint[], p_likeness double precision[], p_weight double precision,
  out ids bigint[], out times timestamptz[], out scores double precision[], out before_ids bigint[],
  out after_ids bigint[], out turn_ids text[], out size integer
)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
-- the planner guesses one row where there are thousands, and would join them row by row
set enable_nestloop = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
  v_thread constant bigint := bot_private.recall_number(
    coalesce(public.claim('tenant_key'), ''), p_conversation_id);
  v_actor constant text := public.claim('actor');
  v_by_person constant boolean := public.claim('sharing') is not distinct from 'person';
  v_in constant record := bot_private.places_to_recall(p_scope);
  v_places constant bigint[] := v_in.places;
  v_joined constant timestamptz[] := v_in.since;
  v_imports constant bigint[] := v_in.imports;
  v_terms text[];
  v_since timestamptz;
  v_until timestamptz;
  v_likely bigint[];
  v_imported bigint[] := '{}';
  v_idf double precision[];
  v_telling boolean[];
  v_spots bigint[];
  v_top double precision;
  -- so many of the likely turns are looked at closely, so many of a time or of a meaning
  close_likely constant integer := 30;
  close_turns constant integer := 60;
  -- and so many imported messages
  close_imported constant integer := 30;
  few constant integer := bot_private.recall_few();
begin
  -- where the newest few are all of a place and stand in the prompt anyway, as in a young chat, there is none to find
  if not exists (
    select from unnest(v_places, v_joined) p (place, since), lateral (
      select w.thread, w.first_id, row_number() over () as n
      from bot_private.turn_words w
      where w.place = p.place and w.asked_at >= p.since
      order by w.asked_at desc limit few) w
    where w.n = few or case when w.thread = v_thread
      then w.first_id < p_before else p_scope <> 'thread' end) then
    return;
  end if;
  v_terms := array(select distinct unnest(bot_private.recall_tokens(left(p_query, 500))));
  if p_spans <> '[]' and p_boost > 0 then
    select s.since, s.until into v_since, v_until
    from bot_private.recall_span(
      v_places, v_joined, v_thread, p_scope, p_from, p_before, p_spans::jsonb) s;
  end if;
  select l.ids, l.weights, l.telling, l.size into v_likely, v_idf, v_telling, size
  from bot_private.recall_likely(
    v_places, v_joined, v_imports, v_thread, p_scope, v_terms, p_from, p_before, v_since, v_until,
    close_likely) l;
  if v_imports is not null then
    v_imported := bot_private.imports_likely(
      v_imports, v_joined[cardinality(v_joined) - cardinality(v_imports) + 1:], v_terms, v_idf, v_since,
      v_until, close_imported);
  end if;
  v_likely := v_likely[1:greatest(close_likely - cardinality(v_imported), 10)] || v_imported;
  if v_since is not null then
    v_likely := v_likely || array(
      select r.first_id
      from unnest(v_places) p (place), lateral (
        select w.first_id, w.asked_at
        from bot_private.turn_words w
        where w.place = p.place and w.asked_at >= v_since and w.asked_at < v_until
          and case when w.thread = v_thread
              then w.first_id < p_before and w.first_id > p_from else p_scope <> 'thread' end
        order by w.asked_at desc limit close_turns) r
      order by r.asked_at desc limit greatest(close_turns - 3 * cardinality(v_imported), 5));
  end if;
  if p_weight > 0 then
    v_likely := v_likely || array(
      select a.id from unnest(p_alike, p_likeness) a (id, likeness)
      where a.likeness > 0 order by a.likeness desc limit close_turns);
  end if;
  if cardinality(v_likely) = 0 then
    return;  -- nothing to weigh
  end if;

  declare
    -- what a common word, the speaker's name say, is worth: for its own turn only, not for those beside it
    common constant double precision := 1.5;
    -- words that may be rare in a chat and still say little, as tokens, and what they are worth
    light constant text[] := '{go,get,mak,tak,com,know,think,want,see,look,find,giv,use,need,try,put,keep,
      happen,usual,currentl,recentl,real,alwa,often,ever,stil,mor,most,man,much,ver,wel,lot,other,another,
      different,tim,thing,way,peopl,person,one}';
    of_light constant double precision := 0.5;
    -- BM25's constants; b is small because neighbours already even the lengths out
    k1 constant double precision := 1.2;
    b constant double precision := 0.3;
    -- what is worth less than this share of the best is not shown, unless there is little to show
    floor constant double precision := 0.2;
    -- how little the first places differ where ranks are fused
    rank_constant constant double precision := 10;
    -- the share of the question's words, by weight, in one turn from which on likeness counts
    -- p_weight only
    said_enough constant double precision := 0.3;
    -- the length up to which a neighbour counts whole, in tokens
    around_tokens constant double precision := 25;
    -- turns so far apart are no neighbours
    apart constant interval := '6 hours';
    -- what a turn is worth that was said by somebody the question names (the words of a turn begin with
    -- its speaker's name), that speaks of the speaker, that speaks of who listens and so rather asks
    by_named constant double precision := 1.4;
    of_speaker constant double precision := 1.2;
    of_listener constant double precision := 0.9;
    -- an imported message that asks, and how much more what it asks counts for those after it
    of_asking constant double precision := 0.8;
    of_asked constant double precision := 2.0;
    -- so many words of a turn tell of whom it speaks
    first_words constant integer := 100;
  begin
    with
      likely as materialized (
        select w.thread, w.first_id from bot_private.turn_words w where w.first_id = any (v_likely)
      ),
      around as materialized (
        select n.first_id
        from likely l,
          lateral (
            (select w.first_id from bot_private.turn_words w
             where w.thread = l.thread and w.first_id <= l.first_id
               and (w.thread <> v_thread or w.first_id > p_from)
             order by w.first_id desc limit 3)
            union all
            (select w.first_id from bot_private.turn_words w
             where w.thread = l.thread and w.first_id > l.first_id
               and (w.thread <> v_thread or w.first_id < p_before)
             order by w.first_id limit 2)) n
      ),
      scoped as (
        select w.first_id, w.place, w.thread, w.asked_at, w.length, w.words || '{}' as words
        from bot_private.turn_words w
        where w.first_id = any (array(select first_id from around)) and w.place = any (v_places)
          and w.asked_at >= v_joined[array_position(v_places, w.place)]
          and (not v_by_person or w.first_id = any (array(
            select m.id from public.agent_messages m
            where m.id = any (array(select first_id from around))
              and v_actor in (m.user_id, m.actor_id))))
      ),
      conversed as (
        select s.*, coalesce(s.asked_at - lag(s.asked_at) over around >= apart, true) as starts
        from scoped s window around as (partition by s.thread order by s.first_id)
      ),
      -- a gap in spots keeps the neighbours of different conversations apart
      placed as (
        select c.*, c.words[:first_words] as opening,
          row_number() over around + 2 * count(*) filter (where c.starts) over around as spot
        from conversed c window around as (order by c.thread, c.first_id)
      ),
      asked as materialized (
        select p.place, array(select bot_private.recall_word(p.place, t) from unnest(v_terms) t) as keys,
               bot_private.recall_word(p.place, '?') as asks,
               array[bot_private.recall_word(p.place, 'i'),
                     bot_private.recall_word(p.place, 'my')] as speaker,
               array[bot_private.recall_word(p.place, 'you'),
                     bot_private.recall_word(p.place, 'your')] as listener
        from unnest(v_places) p (place)
      ),
      -- A turn is searched with its neighbours: a half of the next on each side, a quarter of the one
      -- after, and less of a long one, which has enough words of its own to be found by.
      turns as materialized (
        select p.first_id, p.asked_at, p.place, p.words, p.spot,
          least(1, around_tokens / greatest(p.length, 1)) as share,
          a.asks = any (p.words) as asks,
          case when lag(p.spot) over beside = p.spot - 1 then lag(p.first_id) over beside end as before_id,
          case when lead(p.spot) over beside = p.spot + 1 then lead(p.first_id) over beside end as after_id,
          (sum(p.length) over beside)::double precision as length,
          case when p.words[1] = any (a.keys) then by_named else 1 end
            * case when a.asks = any (p.words) then of_asking else 1 end
            * case when p.opening && a.speaker then of_speaker else 1 end
            * case when p.opening && a.listener then of_listener else 1 end as worth
        from placed p join asked a using (place)
        window beside as (order by p.spot range between 2 preceding and 2 following)
      ),
      usual as materialized (select avg(length) as length from turns),
      keys as materialized (
        select a.place, k.key, k.term, v_telling[k.term] as telling,
               v_idf[k.term] * case when v_telling[k.term] then 1 else common end
                 * case when v_terms[k.term] = any (light) then of_light else 1 end as idf
        from asked a, unnest(a.keys) with ordinality k (key, term)
        where v_idf[k.term] is not null
      ),
      spread as (
        select f.term, f.idf, f.spot + n.distance as spot,
               sum(f.tf * case n.distance when 0 then 1 else n.weight * f.share end
                   * case when f.asks and n.distance > 0 then of_asked else 1 end) as tf
        from (
          select t.spot, k.term, k.idf, k.telling, t.share, t.asks,
                 cardinality(array_positions(t.words, k.key))::double precision as tf
          from turns t join keys k on k.place = t.place and k.key = any (t.words)
        ) f
        cross join (values (-2, 0.25::double precision), (-1, 0.5), (0, 1), (1, 0.5), (2, 0.25))
          n (distance, weight)
        where n.distance = 0 or f.telling
        group by 1, 2, 3
      ),
      -- of a turn without any of the words: null
      weighed as materialized (
        select t.spot, t.first_id, t.asked_at, t.before_id, t.after_id, t.worth * sum(
            s.idf * s.tf / (s.tf + k1 * (1 - b + b * t.length / (select length from usual)))) as by_words,
          coalesce(t.asked_at >= v_since and t.asked_at < v_until, false) as in_time
        from turns t left join spread s using (spot)
        group by t.spot, t.first_id, t.asked_at, t.before_id, t.after_id, t.worth
      ),
      top as materialized (
        select coalesce(max(by_words), 1) as score,
               case when count(by_words) > few then floor else 0 end as share
        from weighed
      ),
      scored as (
        select w.*, case when w.in_time then coalesce(w.by_words, 0) + p_boost * t.score else w.by_words end as score,
               t.score * case when w.by_words is null then floor else t.share end as enough
        from weighed w, top t
      )
    select array_agg(s.first_id), array_agg(s.asked_at), array_agg(s.score), array_agg(s.before_id),
           array_agg(s.after_id), array_agg(s.spot), (select score from top)
    into ids, times, scores, before_ids, after_ids, v_spots, v_top
    from (
      select spot, first_id, asked_at, before_id, after_id,
             case when score >= enough then score end as score
      from scored
      where p_weight > 0 or score >= enough
      order by 6 desc nulls last, first_id desc
      limit case when p_weight = 0 then p_k end) s;

    if p_weight > 0 then
      with
      turns as materialized (
        select t.*, case when t.score is not null then t.n end as place
        from unnest(v_spots, ids, times, scores, before_ids, after_ids) with ordinality
          t (spot, first_id, asked_at, score, before_id, after_id, n)
      ),
      by_meaning as materialized (
        select t.spot, row_number() over (
          order by max(a.likeness * n.weight) desc, t.first_id desc) as place
        from (
          select t.spot, l.likeness from unnest(p_alike, p_likeness) l (first_id, likeness)
          join turns t using (first_id)) a
        cross join (values (-1, 0.5::double precision), (0, 1), (1, 0.5)) n (distance, weight)
        join turns t on t.spot = a.spot + n.distance
        where a.likeness > 0
        group by t.spot, t.first_id
      ),
      -- where even the best turn has little of the question, words say little, but for its place
      trusted as materialized (
        select coalesce(p_weight + (1 - p_weight) * greatest(0, 1 - v_top / nullif(
          said_enough * (select sum(coalesce(n.idf, most.idf)) from unnest(v_idf) n (idf)), 0)), p_weight)
          as weight
        from (select max(n.idf) as idf from unnest(v_idf) n (idf)) most
      ),
      -- reciprocal ranks: the scores of words and of meaning have nothing in common
      fused as (
        select t.*, coalesce((1 - case t.place when 1 then p_weight else w.weight end)
                 / (rank_constant + t.place), 0)
                 + coalesce(w.weight / (rank_constant + m.place), 0) as rank
        from turns t left join by_meaning m using (spot) cross join trusted w
        where t.place is not null or m.place is not null
      )
      select array_agg(first_id), array_agg(asked_at), array_agg(score), array_agg(before_id), array_agg(after_id)
      into ids, times, scores, before_ids, after_ids
      from (
        select first_id, asked_at, before_id, after_id,
               coalesce(rank / nullif(max(rank) over (), 0), 0) * v_top as score
        from fused order by 5 desc, first_id desc limit p_k) f;
    end if;
  end;
  turn_ids := array(
    select m.turn_id from public.agent_messages m
    where m.id = any (ids || before_ids || after_ids));
end
$$;

-- Turns of the token's chat in which any of p_tokens was said. A question has 500 characters
-- (asked_terms); of more terms than that the first count, for anybody may call this.
create or replace function bot_private.turns_saying(p_tokens text[]) returns bigint[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_place constant bigint := bot_private.recall_number(
    coalesce(public.claim('tenant_key'), ''), public.claim('chat_id'));
begin
  return array(
    select w.first_id from bot_private.turn_words w
    where w.words && bot_private.recall_words(v_place, (
        select array_agg(t) from (select unnest(p_tokens) limit 256) f (t)))
      and w.place + 0 = v_place);
end
$$;

-- Of turns, the one before and the one after in their conversation.
create or replace function bot_private.turns_beside(p_ids bigint[]) returns bigint[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
begin
  return array(
    select n.first_id
    from bot_private.turn_words s cross join lateral (
      (select w.first_id from bot_private.turn_words w
       where w.thread = s.thread and w.first_id < s.first_id order by w.first_id desc limit 1)
      union all
      (select w.first_id from bot_private.turn_words w
       where w.thread = s.thread and w.first_id > s.first_id order by w.first_id limit 1)) n
    where s.first_id = any (p_ids));
end
$$;

-- The turns with most of p_asked, of the places the token may read but not of the chats p_but: of
-- those that the index of words gives and of the newest.
create or replace function bot_private.turns_that_help(
  p_conversation_id text, p_asked text[], p_but text[]
) returns bigint[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
-- the planner does not know how short the lists are: it would rather read the table
set enable_seqscan = off
set max_parallel_workers_per_gather = 0
set plan_cache_mode = force_generic_plan
as $$
declare
  v_in constant record := bot_private.places_to_recall('everywhere', p_but);
  v_places constant bigint[] := v_in.places[:cardinality(v_in.places) - coalesce(cardinality(v_in.imports), 0)];
  v_likely bigint[];
begin
  if v_in.places is null then
    return '{}';
  end if;
  v_likely := (
    select l.ids from bot_private.recall_likely(
      v_in.places, v_in.since, v_in.imports, bot_private.recall_number(
        coalesce(public.claim('tenant_key'), ''), p_conversation_id),
      'everywhere', p_asked, 0, 9223372036854775807, null, null, 300) l);
  return array(
    with places as materialized (
      select p.place, p.since, bot_private.recall_words(p.place, p_asked) as keys
      from unnest(v_places, v_in.since[:cardinality(v_places)]) p (place, since)
    ),
    newest as materialized (
      select r.first_id from places p, lateral (
        select w.first_id from bot_private.turn_words w
        where w.place = p.place and w.asked_at >= p.since
        order by w.asked_at desc limit 200 / (select count(*) from places) + 10) r
    )
    select w.first_id
    from bot_private.turn_words w join places p on p.place = w.place and w.asked_at >= p.since,
      lateral (select count(*)::integer as n from unnest(p.keys) k where k = any (w.words)) hits
    where w.first_id = any (v_likely || array(select first_id from newest)) and hits.n > 0
    order by hits.n desc, w.asked_at desc limit 60);
end
$$;

-- The p_k best turns for p_query, best first. `among` is how many turns there are, as far as they are counted.
-- p_scope: 'thread' is this conversation, 'chat' every conversation of this chat, 'everywhere' all that
-- may be read here: in a group that chat, in p2p also the groups the person is in. Whoever asked it of
-- the bot, whoever it was about. Of this conversation only what came before p_before_id.
-- p_spans: JSON array of [from, to) pairs of times in order of preference; the first that holds a
-- turn is meant. p_boost: what being said in it is worth, in units of the best text score
-- (1: turns of that time come first; 0: times are ignored).
-- A message of imported history is a turn without an answer: `source` is import, `feishu_id` its message_id.
-- With p_embedding, the question's by p_model, the ranks by likeness count p_weight (0 to 1), those by
-- words the rest. p_newest_too: where the turns are few, those that do not match
-- come last, newest first, with the score 0.
create or replace function public.recall(
  p_conversation_id text, p_user_id text, p_actor_id text, p_chat_id text, p_tenant_key text,
  p_query text, p_scope text, p_k integer,
  p_spans text default '[]', p_boost double precision default 1, p_before_id bigint default null,
  p_model text default null, p_embedding text default null, p_weight double precision default 0,
  p_newest_too boolean default false
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_query', p_query, 1048576)
    and bot_private.require_size('p_spans', p_spans, 16384)
    and bot_private.require_size('p_embedding', p_embedding, 262144);
  v_identity constant boolean :=
    bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_before constant bigint := coalesce(p_before_id, 9223372036854775807);
  v_from bigint;
  v_weight constant double precision :=
    case when p_embedding is null then 0 else least(greatest(p_weight, 0), 1) end;
  v_alike bigint[];
  v_likeness double precision[];
  v_best record;
  v_newest bigint[] := '{}';
  v_newest_turns text[];
  v_ids bigint[];
  -- so many of the newest turns are compared by their meaning
  alike_turns constant integer := 5000;
begin
  if p_scope not in ('thread', 'chat', 'everywhere') then
    raise exception 'scope is thread, chat or everywhere, not %', p_scope using errcode = 'PT400';
  end if;
  -- a fresh start ends what came before it in this conversation
  v_from := coalesce((
    select c.history_from from public.agent_chats c
    where c.id = p_conversation_id and c.user_id = p_user_id and c.tenant_key = p_tenant_key), 0);
  if v_weight > 0 then
    with turns as materialized (
      select m.id, m.turn_id from public.agent_messages m where m.id = any (
        bot_private.recall_newest(p_conversation_id, p_scope, v_from, v_before, alike_turns))
    )
    select array_agg(a.first_id), array_agg(a.likeness) into v_alike, v_likeness
    from bot_private.recall_likeness(
      array(select id from turns order by id), array(select turn_id from turns order by id),
      p_model, p_embedding) a;
  end if;

  v_best := bot_private.recall_best(
    p_conversation_id, p_scope, p_query, v_from, v_before, p_spans, p_boost, p_k, v_alike, v_likeness, v_weight);
  if p_newest_too and coalesce(cardinality(v_best.ids), 0) < p_k then
    v_newest := bot_private.recall_newest(
      p_conversation_id, case p_scope when 'thread' then 'thread' else 'chat' end, v_from, v_before, bot_private.recall_few() + 1);
    if cardinality(v_newest) > bot_private.recall_few() then
      v_newest := '{}';
    end if;
    select array_agg(m.id), array_agg(m.turn_id) into v_newest, v_newest_turns
    from public.agent_messages m
    where m.id = any (v_newest) and m.id <> all (coalesce(v_best.ids, '{}'));
  end if;
  v_ids := v_best.ids || v_best.before_ids || v_best.after_ids || v_newest;
  if coalesce(cardinality(v_ids), 0) = 0 then
    return '[]';
  end if;

  return (
    with best as materialized (
      select * from unnest(v_best.ids, v_best.times, v_best.scores, v_best.before_ids, v_best.after_ids)
        b (id, asked_at, score, before_id, after_id)
      union all (
        select n.id, null, 0, null, null from unnest(v_newest) n (id)
        order by n.id desc limit p_k - coalesce(cardinality(v_best.ids), 0))
    ),
    told as materialized (
      select max(m.id) filter (where m.is_first) as id, m.turn_id,
        max(m.conversation_id) as conversation_id, max(m.chat_id) as chat_id,
        max(m.actor_id) filter (where m.is_first) as actor_id,
        max(m.actor_name) filter (where m.is_first) as actor_name,
        max(m.created_at) filter (where m.is_first) as created_at,
        string_agg(m.content, e'\n\n' order by m.chunk) filter (where m.role = 'user') as question,
        string_agg(m.content, e'\n\n' order by m.chunk) filter (where m.role = 'assistant') as answer,
        null::text as feishu_id, null::integer as import_id, 0 as position
      from (
        select m.*, m.id = any (v_ids) as is_first from public.agent_messages m
        where m.turn_id = any (v_best.turn_ids || v_newest_turns) and m.status <> 'failed') m
      group by m.turn_id
      union all
      select i.* from (select where 0 > any (v_ids)) any_imported, bot_private.imported_told(v_ids) i
    )
    select coalesce(jsonb_agg(jsonb_build_object(
      'turn_id', t.turn_id, 'asked_at', coalesce(r.asked_at, t.created_at),
      'score', round(r.score::numeric, 4), 'among', coalesce(v_best.size, 0), 'question', t.question, 'answer', t.answer,
      'before', concat_ws(e'\n', p.question, p.answer),
      'after', concat_ws(e'\n', f.question, f.answer),
      'message_id', t.id, 'conversation_id', t.conversation_id, 'chat_id', t.chat_id,
      'actor_id', t.actor_id, 'actor_name', t.actor_name)
      || case when t.import_id is null then '{}' else jsonb_build_object(
        'source', 'import', 'import_id', t.import_id, 'feishu_id', t.feishu_id, 'position', t.position) end
    order by r.score desc, r.id desc), '[]')
    from best r
    join told t on t.id = r.id
    left join told p on p.id = r.before_id
    left join told f on f.id = r.after_id
  );
end
$$;
