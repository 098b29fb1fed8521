-- Purpose: finds what was said earlier: BM25 over turns and their neighbours, scoped before it ranks.
--
-- A turn (question and answer) is one document. Its tokens stand in agent_turn_terms, written by a
-- trigger in the transaction that stores the message, and derived: they go when the turn goes.
-- recall_tokens is the only place that cuts text into tokens, for what is stored and what is asked.
--
-- However much was said, a question looks at a bounded number of turns: recall_likely takes them from
-- the index of tokens, recall weighs them with their neighbours.

-- Tokens of a text in order. Latin words and numbers: lower case, stemmed, without the few words
-- that every sentence has; one token for the forms of a word: hike, hikes, hiked and hiking are "hik"
-- (written out here: a function or a regular expression for each word costs as much as all the rest).
-- The ending goes (ing, ed or s, before it ie, e, y or i) as far as three letters stay, then one of two
-- same letters. Chinese, Japanese and Korean: pairs of neighbouring characters, with pronouns,
-- particles and question words as the gaps between.
-- Reads the first 30,000 characters; a token has at most 40. Takes time that grows with the text and
-- not with its square: a run of characters is cut once, not read again from its start for every pair.
-- A loop, not a query: a query takes longer to set up than a question to cut.
drop function if exists public.recall_stem(text);
create or replace function bot_private.recall_tokens(p_text text) returns text[]
language plpgsql immutable parallel safe security invoker set search_path = ''
as $$
declare
  cjk constant text := '\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af';
  unused constant text[] := '{a,an,the,and,or,of,to,in,on,at,for,from,with,by,as,is,are,was,were,be,
    been,do,does,did,has,have,had,what,when,where,who,whose,which,why,how,that,this,it,its,s,t}';
  v_text text := lower(left(coalesce(p_text, ''), 30000));
  v_word text;
  v_signs text[];
  v_tokens text[] := '{}';
begin
  if octet_length(v_text) > length(v_text) then
    v_text := regexp_replace(lower(normalize(left(p_text, 30000), nfkc)),
      '[为為]?什[么麼]|哪[些个個里裡家位]?|怎[么麼]|多少|[的了吗嗎呢吧啊么麼我你您他她它们們]', ' ', 'g');
    v_text := regexp_replace(v_text, '([' || cjk || ']+)', ' \1 ', 'g');
  end if;
  foreach v_word in array
    regexp_split_to_array(v_text, '[^0-9a-z\u00c0-\u02af\u0370-\u0fff' || cjk || ']+')
  loop
    if v_word ~ ('^[' || cjk || ']') then
      v_signs := string_to_array(v_word, null);
      for n in 1 .. greatest(cardinality(v_signs) - 1, 1) loop
        v_tokens := v_tokens || (v_signs[n] || coalesce(v_signs[n + 1], ''));
      end loop;
    elsif v_word <> '' then
      v_word := left(v_word, 60);
      continue when v_word = any (unused);
      if ltrim(v_word, 'abcdefghijklmnopqrstuvwxyz') = '' then
        v_word := case when v_word like '%ing' and length(v_word) > 5 then left(v_word, -3)
                       when v_word like '%ed' and length(v_word) > 4 then left(v_word, -2)
                       when v_word like '%s' and length(v_word) > 3 then left(v_word, -1)
                       else v_word end;
        v_word := case when v_word like '%ie' and length(v_word) > 4 then left(v_word, -2)
                       when right(v_word, 1) in ('e', 'y', 'i') and length(v_word) > 3
                       then left(v_word, -1) else v_word end;
      end if;
      if length(v_word) > 3 and right(v_word, 1) = left(right(v_word, 2), 1) then
        v_word := left(v_word, -1);
      end if;
      v_tokens := v_tokens || left(v_word, 40);
    end if;
  end loop;
  return v_tokens;
end
$$;

-- Tokens with their positions, hence their counts.
create or replace function bot_private.recall_terms(p_tokens text[]) returns tsvector
language sql immutable parallel safe security invoker set search_path = ''
as $$
  select coalesce(string_agg(token || ':' || n, ' '), '')::tsvector
  from unnest(p_tokens) with ordinality t(token, n)
$$;

-- The token that stands for a place among the tokens of its turns, so that the index finds a word in a
-- place without reading what others said elsewhere. No text has it: tokens are letters and digits.
create or replace function bot_private.recall_place(p_tenant_key text, p_chat_id text) returns text
language sql immutable parallel safe security invoker set search_path = ''
as $$
  select '@' || left(md5(p_tenant_key || ' ' || p_chat_id), 12)
$$;

-- Keeps the tokens of a turn's question and answer; of one without words nothing.
create or replace function bot_private.keep_terms(p_turn_id text) returns void
language plpgsql security invoker set search_path = ''
as $$
declare
  t record;
  v_tokens text[];
begin
  select min(m.id) as first_id, min(m.created_at) as asked_at, min(m.conversation_id) as conversation_id,
         min(m.user_id) as user_id, min(m.tenant_key) as tenant_key, min(m.chat_id) as chat_id,
         max(m.actor_id) as actor_id, max(m.actor_name) filter (where m.role = 'user') as actor_name,
         string_agg(m.content, e'\n' order by m.id) as content
  into t from public.agent_messages m
  where m.turn_id = p_turn_id and m.status <> 'failed';
  if t.first_id is null then
    delete from public.agent_turn_terms where turn_id = p_turn_id;
    return;
  end if;
  v_tokens := bot_private.recall_tokens(concat_ws(e'\n', t.actor_name, t.content));
  insert into public.agent_turn_terms
    (turn_id, conversation_id, user_id, actor_id, tenant_key, chat_id, first_id, asked_at, length,
     terms)
  values (p_turn_id, t.conversation_id, t.user_id, t.actor_id, t.tenant_key, t.chat_id, t.first_id,
          t.asked_at, cardinality(v_tokens), bot_private.recall_terms(v_tokens)
            || array_to_tsvector(array[bot_private.recall_place(t.tenant_key, t.chat_id)]))
  on conflict (turn_id) do update
    set first_id = excluded.first_id, asked_at = excluded.asked_at,
        length = excluded.length, terms = excluded.terms;
end
$$;

create or replace function public.index_turn() returns trigger
language plpgsql security invoker set search_path = ''
as $$
begin
  perform bot_private.keep_terms(coalesce(new.turn_id, old.turn_id));
  return null;
end
$$;
-- a question that was received is kept with its answer: once a turn, and never the one being asked
create or replace trigger agent_messages_index_insert after insert on public.agent_messages
  for each row when (new.role = 'assistant' or new.status <> 'received')
  execute function public.index_turn();
create or replace trigger agent_messages_index_update
  after update of content, status on public.agent_messages
  for each row
  when (old.content <> new.content or (old.status = 'failed') <> (new.status = 'failed'))
  execute function public.index_turn();
create or replace trigger agent_messages_index_delete after delete on public.agent_messages
  for each row execute function public.index_turn();

-- The turns worth weighing for p_terms, p_enough at most, and the weight of each term (null: it tells
-- nothing). Rare words are looked up, of common ones the turns that come first and the newest count.
-- Turns said in [p_since, p_until) come first. Chats of p_but are left out.
--
-- It runs as its owner because an operator that may tell of its arguments, as @@ may, is not looked
-- up in an index under row-level security. So it applies the rule of agent_turn_terms_select itself,
-- from the claims and before it counts or ranks; its caller reads the turns under that policy again.
drop function if exists bot_private.recall_likely(
  text, text, text[], bigint, bigint, timestamptz, timestamptz);
create or replace function bot_private.recall_likely(
  p_conversation_id text, p_scope text, p_terms text[], p_from bigint, p_before bigint,
  p_since timestamptz, p_until timestamptz, p_but text[] default '{}', p_enough integer default 30,
  out turn_ids text[], out weights double precision[]
)
language plpgsql stable security definer set search_path = ''
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_here constant text := public.claim('chat_id');
  v_tenant constant text := coalesce(public.claim('tenant_key'), '');
  v_since constant jsonb := public.readable_chats();
  v_actor constant text := public.claim('actor');
  v_by_person constant boolean := public.claim('sharing') is not distinct from 'person';
  v_chats text[] := array[v_here];
  v_places text;
  -- a word in more turns than this is common
  rare constant integer := 100;
  -- so many words of a question are looked up, the rarest first
  looked_up constant integer := 32;
  -- how many turns there are is counted so far
  many constant integer := 1000;
  -- how many of the newest tell how common a word is
  sample constant integer := 200;
begin
  if p_scope = 'everywhere' or cardinality(p_but) > 0 then
    v_chats := array(
      select c from unnest(v_chats || array(
        select jsonb_object_keys(v_since) where p_scope = 'everywhere')) c
      where c <> all (p_but));
  end if;
  -- a place where nothing was said before is not searched
  if v_here is null or not exists (
    select from unnest(v_chats) c, lateral (
      select from public.agent_turn_terms t
      where t.chat_id = c and t.tenant_key = v_tenant
        and case when t.conversation_id = p_conversation_id
            then t.first_id < p_before and t.first_id > p_from else p_scope <> 'thread' end
      limit 1) t)
  then
    return;
  end if;
  v_places := (
    select '(' || string_agg(quote_literal(bot_private.recall_place(v_tenant, c)), '|') || ')'
    from unnest(v_chats) c);
  with readable as not materialized (
    select t.turn_id, t.chat_id, t.conversation_id, t.asked_at, t.length, t.terms
    from public.agent_turn_terms t
    where t.tenant_key = v_tenant
      and (t.chat_id = v_here or t.asked_at >= (v_since ->> t.chat_id)::timestamptz)
      and t.actor_id is not null and (not v_by_person or v_actor in (t.user_id, t.actor_id))
      and case when t.conversation_id = p_conversation_id
          then t.first_id < p_before and t.first_id > p_from else p_scope <> 'thread' end
  ),
  newest as materialized (
    select r.* from unnest(v_chats) c, lateral (
      select r.turn_id, r.asked_at, r.length, r.terms from readable r where r.chat_id = c
      order by r.asked_at desc limit sample / cardinality(v_chats) + 10) r
    order by r.asked_at desc limit sample
  ),
  whole as materialized (
    select least(many, sum(r.n))::double precision as n
    -- in this order, or a bitmap of all turns of the chat is made first
    from unnest(v_chats) c, lateral (
      select count(*) as n from (
        select from readable r where r.chat_id = c order by r.asked_at desc limit many) r) r
  ),
  seen as materialized (
    select array_position(p_terms, h.lexeme) as term, e.turn_id, e.length, e.asked_at
    from newest e, unnest(ts_filter(setweight(e.terms, 'A', p_terms), '{a}')) h
  ),
  sampled as materialized (
    select w.n as term, w.term as word,
      (select n from whole) / greatest((select count(*) from newest), 1)
        * (select count(*) from seen s where s.term = w.n) as turns
    from unnest(p_terms) with ordinality w(term, n)
  ),
  indexed as materialized (
    select w.term, r.turn_id, r.length, r.asked_at
    from (select * from sampled where turns <= rare
          order by turns, length(word) desc limit looked_up) w, lateral (
      select r.turn_id, r.length, r.asked_at from readable r
      where r.terms @@ (v_places || '&' || quote_literal(w.word))::tsquery
        and (r.chat_id || '') = any (v_chats)
      limit rare + 1) r
  ),
  counted as materialized (
    select w.term, case when w.turns > rare or i.turns > rare
        then greatest(rare + 1, w.turns) else coalesce(i.turns, nullif(w.turns, 0))
        end::double precision as turns
    from sampled w left join (
      select term, count(*) as turns from indexed group by term) i using (term)
  ),
  -- what stands in every third turn tells nothing, and would be most of the work
  telling as materialized (
    select term, (1 + 1.2) * ln(1 + ((select n from whole) - turns + 0.5) / (turns + 0.5)) as weight
    from counted where turns <= greatest(10, (select n / 3 from whole))
  ),
  ranked as (
    select h.turn_id, coalesce(h.asked_at >= p_since and h.asked_at < p_until, false) as in_time,
           sum(weight) / (1 + 0.01 * h.length) as score, h.asked_at
    from (
      select term, turn_id, length, asked_at from indexed
      union select term, turn_id, length, asked_at from seen
    ) h join telling using (term)
    group by h.turn_id, h.length, h.asked_at
  )
  select array(select turn_id from ranked order by in_time desc, score desc, asked_at desc
               limit p_enough),
         array(select weight from generate_subscripts(p_terms, 1) n left join telling t on t.term = n
               order by n)
  into turn_ids, weights;
end
$$;

-- The p_k best turns for p_query, best first.
-- p_scope: 'thread' is this conversation, 'chat' every conversation of this chat, 'everywhere' all that
-- may be read here: in a group that chat, in p2p also the groups the person is in. Whoever asked it of
-- the bot, whoever it was about. Of this conversation only what came before p_before_id.
-- p_spans: JSON array of [from, to) pairs of times in order of preference; the first that holds a
-- turn is meant. p_boost: what being said in it is worth, in units of the best text score
-- (1: turns of that time come first; 0: times are ignored).
-- With p_embedding, the question's by p_model, p_weight (0 to 1) is the share of the score that
-- likeness has, the words have the rest.
drop function if exists public.recall(
  text, text, text, text, text, text, text, integer, text, double precision, bigint);
create or replace function public.recall(
  p_conversation_id text, p_user_id text, p_actor_id text, p_chat_id text, p_tenant_key text,
  p_query text, p_scope text, p_k integer,
  p_spans text default '[]', p_boost double precision default 1, p_before_id bigint default null,
  p_model text default null, p_embedding text default null, p_weight double precision default 0
) returns jsonb
language plpgsql stable security invoker set search_path = ''
-- the planner guesses one row where there are thousands, and would join them row by row; up to
-- Postgres 17 avoiding that counts as cost, which would start the just-in-time compiler
set enable_nestloop = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_query', p_query, 1048576)
    and bot_private.require_size('p_spans', p_spans, 16384)
    and bot_private.require_size('p_embedding', p_embedding, 262144);
  v_identity constant boolean :=
    bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_terms constant text[] := array(
    select distinct unnest(bot_private.recall_tokens(left(p_query, 500))));
  v_before constant bigint := coalesce(p_before_id, 9223372036854775807);
  -- a fresh start ends what came before it in this conversation
  v_from constant bigint := coalesce((
    select c.history_from from public.agent_chats c
    where c.id = p_conversation_id and c.user_id = p_user_id and c.tenant_key = p_tenant_key), 0);
  -- the chats to search; which rows of them may be read is for the policies
  v_chats text[] := array[p_chat_id];
  v_weight constant double precision :=
    case when p_embedding is null then 0 else least(greatest(p_weight, 0), 1) end;
  -- BM25's constants; b is small because neighbours already even the lengths out
  k1 constant double precision := 1.2;
  b constant double precision := 0.3;
  v_since timestamptz;
  v_until timestamptz;
  v_likely text[];
  v_idf double precision[];
  -- so many turns are looked at closely, with their neighbours
  close_turns constant integer := 60;
  -- what is worth less than this share of the best is not shown
  floor constant double precision := 0.2;
  -- the length up to which a neighbour counts whole, in tokens
  around_tokens constant double precision := 25;
  -- so many of the newest turns are compared by their meaning
  alike_turns constant integer := 5000;
begin
  if p_scope not in ('thread', 'chat', 'everywhere') then
    raise exception 'scope is thread, chat or everywhere, not %', p_scope using errcode = 'PT400';
  end if;
  if p_scope = 'everywhere' then
    v_chats := v_chats || array(select jsonb_object_keys(public.readable_chats()));
  end if;

  if p_spans <> '[]' and p_boost > 0 then
    select s.since, s.until into v_since, v_until
    from jsonb_array_elements(p_spans::jsonb) with ordinality p(pair, preference),
      lateral (select (pair ->> 0)::timestamptz, (pair ->> 1)::timestamptz) s(since, until)
    where exists (
      select from public.agent_turn_terms t
      where t.tenant_key = p_tenant_key and t.chat_id = any (v_chats)
        and t.asked_at >= s.since and t.asked_at < s.until
        and case when t.conversation_id = p_conversation_id
            then t.first_id < v_before and t.first_id > v_from else p_scope <> 'thread' end)
    order by preference limit 1;
  end if;
  select l.turn_ids, l.weights into v_likely, v_idf
  from bot_private.recall_likely(
    p_conversation_id, p_scope, v_terms, v_from, v_before, v_since, v_until) l;
  if coalesce(cardinality(v_likely), 0) = 0 and v_since is null and v_weight = 0 then
    return '[]';  -- nothing to weigh
  end if;

  return (
    with
    -- likeness counts from the average up, 1 is the most alike: the scale of a model is its own
    alike as materialized (
      select a.turn_id, (a.similarity - avg(a.similarity) over ())
        / nullif(max(a.similarity) over () - avg(a.similarity) over (), 0) as likeness
      from bot_private.recall_alike(
        case when v_weight > 0 then array(
          select t.turn_id from public.agent_turn_terms t
          where t.tenant_key = p_tenant_key and t.chat_id = any (v_chats)
            and case when t.conversation_id = p_conversation_id
                then t.first_id < v_before and t.first_id > v_from else p_scope <> 'thread' end
          order by t.asked_at desc limit alike_turns) end,
        p_model, p_embedding) a
      where v_weight > 0
    ),
    said_then as materialized (
      select t.turn_id, t.conversation_id, t.first_id
      from public.agent_turn_terms t
      where t.tenant_key = p_tenant_key and t.chat_id = any (v_chats)
        and t.asked_at >= v_since and t.asked_at < v_until
        and case when t.conversation_id = p_conversation_id
            then t.first_id < v_before and t.first_id > v_from else p_scope <> 'thread' end
      order by t.asked_at desc limit close_turns
    ),
    likely as materialized (
      select t.conversation_id, t.first_id from public.agent_turn_terms t
      where t.turn_id = any (v_likely)
      union
      select t.conversation_id, t.first_id from public.agent_turn_terms t
      where t.turn_id = any (array(
        select turn_id from alike where likeness > 0 order by likeness desc limit close_turns))
      union
      select conversation_id, first_id from said_then
    ),
    around as materialized (
      select n.turn_id
      from likely l,
        lateral (
          (select t.turn_id from public.agent_turn_terms t
           where t.conversation_id = l.conversation_id and t.tenant_key = p_tenant_key
             and t.first_id <= l.first_id
             and (t.conversation_id <> p_conversation_id or t.first_id > v_from)
           order by t.first_id desc limit 3)
          union all
          (select t.turn_id from public.agent_turn_terms t
           where t.conversation_id = l.conversation_id and t.tenant_key = p_tenant_key
             and t.first_id > l.first_id
             and (t.conversation_id <> p_conversation_id or t.first_id < v_before)
           order by t.first_id limit 2)) n
    ),
    scoped as materialized (
      select t.turn_id, t.conversation_id, t.first_id, t.asked_at, t.length,
             ts_filter(setweight(t.terms, 'A', v_terms), '{a}') as hits
      from public.agent_turn_terms t where t.turn_id = any (array(select turn_id from around))
    ),
    -- A turn is searched with its neighbours: a half of the next on each side, a quarter of the one
    -- after, and less of a long one, which has enough words of its own to be found by. A gap in place
    -- keeps the neighbours of different conversations apart.
    turns as materialized (
      select first_id, turn_id, asked_at, hits,
        least(1, around_tokens / greatest(length, 1)) as share,
        1000000 * dense_rank() over (order by conversation_id) + row_number() over around as place,
        (sum(length) over around)::double precision as length
      from scoped
      window around as (partition by conversation_id order by first_id
                        rows between 2 preceding and 2 following)
    ),
    usual as materialized (select avg(length) as length from turns),
    found as materialized (
      select place, array_position(v_terms, (hit).lexeme) as term,
             cardinality((hit).positions)::double precision as tf, share
      from (select place, share, unnest(hits) as hit from turns where hits is not null) h
    ),
    telling as materialized (
      select term, v_idf[term] as idf from generate_subscripts(v_idf, 1) term
      where v_idf[term] is not null
    ),
    spread as (
      select f.term, f.place + n.distance as place,
             sum(f.tf * case n.distance when 0 then 1 else n.weight * f.share end) as tf
      from found f
      join telling using (term)
      cross join (values (-2, 0.25::double precision), (-1, 0.5), (0, 1), (1, 0.5), (2, 0.25))
        n (distance, weight)
      group by 1, 2
    ),
    weighed as materialized (
      select t.place, t.first_id, t.length, s.term, s.tf from spread s join turns t using (place)
    ),
    scores as materialized (
      select place, first_id, sum(
        idf * tf / (tf + k1 * (1 - b + b * length / (select length from usual)))) as score
      from weighed join telling using (term) group by 1, 2
    ),
    top as materialized (select coalesce(max(score), 1) as score from scores),
    best as materialized (
      select place, sum(score) as score
      from (
        select place, first_id, (1 - v_weight) * score as score from scores
        union all
        select t.place, t.first_id, v_weight * (select score from top) * max(a.likeness * n.weight)
        from (select place, likeness from alike join turns using (turn_id)) a
        cross join (values (-1, 0.5::double precision), (0, 1), (1, 0.5)) n (distance, weight)
        join turns t on t.place = a.place + n.distance
        where a.likeness > 0 and v_weight > 0
        group by 1, 2
        union all
        select t.place, t.first_id, p_boost * (select score from top)
        from turns t where t.asked_at >= v_since and t.asked_at < v_until
      ) s
      group by place, first_id
      having sum(score) >= floor * (select score from top) or v_weight > 0
      order by score desc, first_id desc limit p_k
    ),
    near as materialized (
      select place, turn_id, first_id, asked_at from turns
      where place = any (array(select place + d from best, unnest('{-1,0,1}'::integer[]) d))
    ),
    ranked as materialized (
      select t.turn_id, t.first_id, t.asked_at, best.score,
             p.turn_id as before, f.turn_id as after
      from best join near t using (place)
      left join near p on p.place = t.place - 1
      left join near f on f.place = t.place + 1
    ),
    said as (
      select m.turn_id,
        string_agg(m.content, e'\n\n' order by m.chunk) filter (where m.role = 'user') as question,
        string_agg(m.content, e'\n\n' order by m.chunk) filter (where m.role = 'assistant') as answer
      from public.agent_messages m
      where m.status <> 'failed' and m.turn_id = any (array(select turn_id from near))
      group by m.turn_id
    )
    select coalesce(jsonb_agg(jsonb_build_object(
      'turn_id', r.turn_id, 'asked_at', r.asked_at, 'score', round(r.score::numeric, 4),
      'question', s.question, 'answer', s.answer,
      'before', concat_ws(e'\n', before.question, before.answer),
      'after', concat_ws(e'\n', after.question, after.answer)
    ) || (
      select jsonb_build_object(
        'message_id', q.id, 'conversation_id', q.conversation_id, 'chat_id', q.chat_id,
        'actor_id', q.actor_id, 'actor_name', q.actor_name)
      from public.agent_messages q where q.id = r.first_id
    ) order by r.score desc, r.first_id desc), '[]')
    from ranked r
    join said s using (turn_id)
    left join said before on before.turn_id = r.before
    left join said after on after.turn_id = r.after
  );
end
$$;

-- What recall finds for a turn that is being opened (p_opened, as begin_turn returns it), before the
-- oldest message of its history. p_recall: arguments of recall, and `words`, of which at least half have
-- to stand nowhere in what the turn is told; without them it is searched in any case. `p_k` are wanted
-- beside those that the turn is told already, in the chat's conversation too. Null: nothing was
-- searched, or it failed: then recall, called by itself, says why.
create or replace function bot_private.recalled_at_once(
  p_conversation_id text, p_user_id text, p_actor_id text, p_chat_id text, p_tenant_key text,
  p_recall jsonb, p_opened jsonb
) returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
declare
  v_told constant jsonb :=
    coalesce(p_opened -> 'recent', '[]') || ((p_opened -> 'history') - -1);
  v_known constant integer := jsonb_array_length(v_told) + 1 + jsonb_array_length(
    jsonb_path_query_array(p_opened, '$.conversation.messages[*] ? (@.answered == true)'));
begin
  if jsonb_typeof(p_recall -> 'words') = 'array' and v_told <> '[]' and (
    select 2 * count(*) filter (where strpos(t.told, w.word) = 0) < count(*)
    from jsonb_array_elements_text(p_recall -> 'words') w (word), (
      select lower(string_agg(m ->> 'content', e'\n')) as told
      from jsonb_array_elements(v_told) m) t)
  then
    return null;
  end if;
  return public.recall(
    p_conversation_id, p_user_id, p_actor_id, p_chat_id, p_tenant_key, p_recall ->> 'p_query',
    p_recall ->> 'p_scope', (p_recall ->> 'p_k')::integer + v_known, p_recall ->> 'p_spans',
    (p_recall ->> 'p_boost')::double precision, (p_opened #>> '{history,0,id}')::bigint);
exception when others then
  return null;
end
$$;
