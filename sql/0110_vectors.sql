-- Purpose: finds by meaning too, where an embedding model is configured; and finds faster.
--
-- An embedding is derived from a message: it goes with the message and when its text changes, is
-- reachable as the message is, and is never part of an answer. It counts only beside rows of the same
-- model. Embeddings travel as text, '[0.1,…]', and are kept in half precision, which ranks as well.
--
-- pgvector is used where the server has it and everything works without: enable_vectors() makes what
-- needs its type, here and again when an operator says so. Its type stands in schema extensions, or
-- in public where somebody has put it there before; hence the search path of what names the type.

-- As in 0010, in time that grows with the text and not with its square: a run of characters is cut
-- once, not read again from its start for every pair.
create or replace function public.recall_tokens(p_text text) returns text[]
language sql immutable parallel safe security invoker set search_path = ''
as $$
  with runs as materialized (
    select string_to_array(run[1], null) as signs, left(run[2], 60) as word, place
    from regexp_matches(
      regexp_replace(lower(normalize(left(p_text, 30000), nfkc)),
        '[为為]?什[么麼]|哪[些个個里裡家位]?|怎[么麼]|多少|[的了吗嗎呢吧啊么麼我你您他她它们們]', ' ', 'g'),
      '([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+)'
      '|([0-9a-z\u00c0-\u02af\u0370-\u0fff]+)', 'g') with ordinality r(run, place)
  ),
  tokens as (
    select place, n, one || coalesce(next, '') as token
    from runs, rows from (unnest(signs), unnest(signs[2:])) with ordinality p(one, next, n)
    where signs is not null and (n = 1 or next is not null)
    union all
    select place, 0, left(public.recall_stem(word), 40)
    from runs
    where word <> all ('{a,an,the,and,or,of,to,in,on,at,for,from,with,by,as,is,are,was,were,be,been,
      do,does,did,has,have,had,what,when,where,who,whose,which,why,how,that,this,it,its,s,t}')
  )
  select coalesce(array_agg(token order by place, n), '{}') from tokens
$$;

-- Makes the table of embeddings where pgvector can be had. Returns '' when there is one, else why not.
-- For the owner of the schema; safe to repeat.
create function public.enable_vectors() returns text
language plpgsql security invoker set search_path = ''
as $$
declare
  reachable constant text := $rule$
    user_id = (select public.claim('sub'))
    and tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or user_id = (select public.claim('actor')))
  $rule$;
  v_schema text;
begin
  if to_regclass('public.agent_embeddings') is not null then
    return '';
  end if;
  if not exists (select from pg_catalog.pg_available_extensions where name = 'vector') then
    return 'the server has no pgvector: install it, or choose a server that has it';
  end if;
  if not exists (select from pg_catalog.pg_extension where extname = 'vector') then
    begin
      create schema if not exists extensions;
      create extension vector schema extensions;
    exception when insufficient_privilege then
      return 'only a superuser may run: create schema if not exists extensions; '
             'create extension vector schema extensions';
    end;
  end if;
  select e.extnamespace::regnamespace::text into v_schema
  from pg_catalog.pg_extension e where e.extname = 'vector';
  if v_schema not in ('extensions', 'public') then
    return 'pgvector is in schema ' || v_schema
           || ': run alter extension vector set schema extensions';
  end if;
  if to_regtype(v_schema || '.halfvec') is null then
    return 'pgvector is older than 0.7: run alter extension vector update';
  end if;
  if v_schema = 'extensions' then
    grant usage on schema extensions to authenticated, service_role;
  end if;

  execute format('create table public.agent_embeddings (
    id bigint primary key references public.agent_messages (id) on delete cascade,
    turn_id text not null,
    conversation_id text not null,
    user_id text not null,
    tenant_key text not null,
    chat_id text not null,
    model text not null,
    embedding %I.halfvec not null
  )', v_schema);
  -- in the row itself, up to some 4,000 dimensions: looked up elsewhere it takes twice the time
  alter table public.agent_embeddings set (toast_tuple_target = 8160);
  alter table public.agent_embeddings alter column embedding set storage main;
  create index agent_embeddings_turn_idx on public.agent_embeddings (turn_id);
  create index agent_embeddings_conversation_idx
    on public.agent_embeddings (conversation_id, user_id);
  create index agent_embeddings_user_idx on public.agent_embeddings (user_id);

  alter table public.agent_embeddings enable row level security;
  execute format('create policy agent_embeddings_select on public.agent_embeddings
                  for select to authenticated using (%s)', reachable);
  execute format('create policy agent_embeddings_insert on public.agent_embeddings
                  for insert to authenticated with check (%s)', reachable);
  execute format('create policy agent_embeddings_update on public.agent_embeddings
                  for update to authenticated using (%s) with check (%s)', reachable, reachable);
  execute format('create policy agent_embeddings_delete on public.agent_embeddings
                  for delete to authenticated using (%s)', reachable);
  revoke all on public.agent_embeddings from anon;
  grant select, insert, update, delete on public.agent_embeddings to authenticated, service_role;

  create trigger agent_messages_drop_embedding
    after update of content, status on public.agent_messages for each row
    when (old.content <> new.content or (old.status = 'failed') <> (new.status = 'failed'))
    execute function public.drop_embedding();
  return '';
end
$$;

create function public.drop_embedding() returns trigger
language plpgsql security invoker set search_path = ''
as $$
begin
  delete from public.agent_embeddings where id = new.id;
  return null;
end
$$;

-- What has no embedding of p_model among the newest p_recent messages of a conversation (null: all),
-- newest first, at most p_limit: id, content and its digest. Null where there are no vectors.
create function public.messages_to_embed(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text,
  p_model text, p_limit integer, p_recent integer default null
) returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if to_regclass('public.agent_embeddings') is null then
    return null;
  end if;
  return (
    with recent as (
      select m.id, m.content, m.status
      from public.agent_messages m
      where m.conversation_id = p_conversation_id and m.user_id = p_user_id
        and m.tenant_key = p_tenant_key
      order by m.id desc limit p_recent
    ),
    missing as (
      select r.id, r.content from recent r
      where r.status in ('received', 'sent') and btrim(r.content, e' \t\r\n') <> ''
        and not exists (select from public.agent_embeddings e
                        where e.id = r.id and e.model = p_model)
      order by r.id desc limit p_limit
    )
    select coalesce(jsonb_agg(jsonb_build_object(
      'id', id, 'content', content, 'digest', md5(content)) order by id desc), '[]')
    from missing
  );
end
$$;

-- Keeps embeddings, a JSON array of {id, digest, embedding}, of messages of this conversation that
-- are still what was embedded. Returns how many.
create function public.save_embeddings(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text,
  p_model text, p_embeddings text
) returns jsonb
language plpgsql security invoker set search_path = extensions, public, pg_temp
as $$
declare
  v_count bigint;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  insert into public.agent_embeddings
    (id, turn_id, conversation_id, user_id, tenant_key, chat_id, model, embedding)
  select m.id, m.turn_id, m.conversation_id, m.user_id, m.tenant_key, m.chat_id, p_model,
         g.embedding::halfvec
  from jsonb_to_recordset(p_embeddings::jsonb) g (id bigint, digest text, embedding text)
  join public.agent_messages m using (id)
  where m.conversation_id = p_conversation_id and m.user_id = p_user_id
    and m.tenant_key = p_tenant_key and m.status in ('received', 'sent')
    and md5(m.content) = g.digest
  on conflict (id) do update set model = excluded.model, embedding = excluded.embedding;
  get diagnostics v_count = row_count;
  return to_jsonb(v_count);
end
$$;

-- For operators: conversations with messages that have no embedding of p_model, and how many.
-- Null where there are no vectors.
create function public.conversations_to_embed(p_model text) returns jsonb
language plpgsql stable security invoker set search_path = ''
as $$
begin
  if to_regclass('public.agent_embeddings') is null then
    return null;
  end if;
  return (
    select coalesce(jsonb_agg(to_jsonb(c) order by c.conversation_id, c.user_id), '[]')
    from (
      select m.conversation_id, m.user_id, m.tenant_key, count(*) as messages
      from public.agent_messages m
      where m.status in ('received', 'sent') and btrim(m.content, e' \t\r\n') <> ''
        and not exists (select from public.agent_embeddings e
                        where e.id = m.id and e.model = p_model)
      group by 1, 2, 3
    ) c
  );
end
$$;

-- How like the question the turns are by their most alike message: cosine, -1 to 1. Exact, over the
-- turns that are given: the caller has them from its scope. Rows of other models, and of another
-- length, do not count.
create function public.recall_alike(p_turn_ids text[], p_model text, p_embedding text)
returns table (turn_id text, similarity double precision)
language plpgsql stable security invoker set search_path = extensions, public, pg_temp
as $$
begin
  if p_embedding is null or to_regclass('public.agent_embeddings') is null then
    return;
  end if;
  return query
    with question as materialized (select p_embedding::halfvec as embedding)
    select e.turn_id, max(1 - (e.embedding <=> (select q.embedding from question q)))
    from public.agent_embeddings e
    where e.turn_id = any (p_turn_ids) and e.model = p_model
      and vector_dims(e.embedding) = (select vector_dims(q.embedding) from question q)
    group by e.turn_id
    having max(1 - (e.embedding <=> (select q.embedding from question q))) <> 'NaN';
end
$$;

-- The p_k best turns for p_query, best first, as in 0010. With p_embedding, the question's by
-- p_model, p_weight (0 to 1) is the share of the score that likeness has, the words have the rest.
drop function public.recall(
  text, text, text, text, text, text, text, integer, text, double precision, bigint);
create function public.recall(
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
as $$
declare
  v_terms constant text[] := array(
    select distinct unnest(public.recall_tokens(left(p_query, 500))));
  v_before constant bigint := coalesce(p_before_id, 9223372036854775807);
  v_weight constant double precision :=
    case when p_embedding is null then 0 else least(greatest(p_weight, 0), 1) end;
  -- BM25's constants; b is small because neighbours already even the lengths out
  k1 constant double precision := 1.2;
  b constant double precision := 0.3;
  half constant double precision := 0.5;
begin
  perform public.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if p_scope not in ('thread', 'chat', 'everywhere') then
    raise exception 'scope is thread, chat or everywhere, not %', p_scope using errcode = '22023';
  end if;
  if p_scope = 'everywhere' and p_user_id <> p_actor_id then
    raise exception 'only the person can search what they said everywhere' using errcode = '42501';
  end if;

  return (
    with scoped as materialized (
      -- setweight marks the query's lexemes, ts_filter drops the others
      select t.turn_id, t.conversation_id, t.first_id, t.asked_at, t.length,
             ts_filter(setweight(t.terms, 'A', v_terms), '{a}') as hits
      from public.agent_turn_terms t
      where p_scope = 'thread' and t.conversation_id = p_conversation_id
        and t.user_id = p_user_id and t.tenant_key = p_tenant_key and t.first_id < v_before
      union all
      select t.turn_id, t.conversation_id, t.first_id, t.asked_at, t.length,
             ts_filter(setweight(t.terms, 'A', v_terms), '{a}')
      from public.agent_turn_terms t
      where p_scope <> 'thread' and t.user_id = p_user_id and t.tenant_key = p_tenant_key
        and (p_scope = 'everywhere' or t.chat_id = p_chat_id)
        and (t.conversation_id <> p_conversation_id or t.first_id < v_before)
    ),
    -- A turn is searched with its neighbours: a half of the next on each side, a quarter of the one
    -- after. A gap in place keeps the neighbours of different conversations apart.
    turns as materialized (
      select first_id, turn_id, asked_at, hits,
        1000000 * dense_rank() over (order by conversation_id) + row_number() over around as place,
        (sum(length) over around)::double precision as length
      from scoped
      window around as (partition by conversation_id order by first_id
                        rows between 2 preceding and 2 following)
    ),
    whole as materialized (
      select count(*)::double precision as n, avg(length) as length from turns
    ),
    found as materialized (
      select place, array_position(v_terms, (hit).lexeme) as term,
             cardinality((hit).positions)::double precision as tf
      from (select place, unnest(hits) as hit from turns where hits <> '') h
    ),
    -- what stands in every third turn tells nothing, and would be most of the work
    telling as (
      select term from found group by term
      having count(*) <= greatest(10, (select n / 3 from whole))
    ),
    spread as (
      select f.term, f.place + n.distance as place, sum(f.tf * n.weight) as tf
      from found f
      join telling using (term)
      cross join (values (-2, 0.25::double precision), (-1, 0.5), (0, 1), (1, 0.5), (2, 0.25))
        n (distance, weight)
      group by 1, 2
    ),
    weighed as materialized (
      select t.place, t.first_id, t.length, s.term, s.tf from spread s join turns t using (place)
    ),
    worth as (
      select term, (k1 + 1)
        * ln(1 + ((select n from whole) - count(*) + half) / (count(*) + half)) as idf
      from weighed group by term
    ),
    scores as materialized (
      select place, first_id, sum(
        idf * tf / (tf + k1 * (1 - b + b * length / (select length from whole)))) as score
      from weighed join worth using (term) group by 1, 2
    ),
    top as materialized (select coalesce(max(score), 1) as score from scores),
    -- likeness counts from the average up, 1 is the most alike: the scale of a model is its own
    alike as materialized (
      select t.place, (a.similarity - avg(a.similarity) over ())
        / nullif(max(a.similarity) over () - avg(a.similarity) over (), 0) as likeness
      from public.recall_alike(array(select turn_id from turns), p_model, p_embedding) a
      join turns t using (turn_id)
      where v_weight > 0
    ),
    span as materialized (
      select since, until
      from jsonb_array_elements(p_spans::jsonb) with ordinality p(pair, preference),
        lateral (select (pair ->> 0)::timestamptz, (pair ->> 1)::timestamptz) s(since, until)
      where exists (select from turns t where t.asked_at >= since and t.asked_at < until)
      order by preference limit 1
    ),
    best as materialized (
      select place, sum(score) as score
      from (
        select place, first_id, (1 - v_weight) * score as score from scores
        union all
        select t.place, t.first_id, v_weight * (select score from top) * max(a.likeness * n.weight)
        from alike a
        cross join (values (-1, 0.5::double precision), (0, 1), (1, 0.5)) n (distance, weight)
        join turns t on t.place = a.place + n.distance
        where a.likeness > 0 and v_weight > 0
        group by 1, 2
        union all
        select t.place, t.first_id, p_boost * (select score from top)
        from turns t join span d on t.asked_at >= d.since and t.asked_at < d.until
        where p_boost > 0
      ) s
      group by place, first_id order by score desc, first_id desc limit p_k
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

do $$
declare
  f regprocedure;
begin
  for f in
    select p.oid::regprocedure from pg_proc p
    where p.pronamespace = 'public'::regnamespace and p.proname in (
      'recall', 'recall_alike', 'messages_to_embed', 'save_embeddings', 'drop_embedding',
      'conversations_to_embed', 'enable_vectors')
  loop
    execute format('revoke execute on function %s from public, anon, authenticated', f);
    execute format('grant execute on function %s to service_role', f);
  end loop;
  grant execute on function public.recall, public.recall_alike, public.messages_to_embed,
    public.save_embeddings, public.drop_embedding to authenticated;
end
$$;
revoke execute on function public.enable_vectors() from service_role;

do $$
declare
  v_reason constant text := public.enable_vectors();
begin
  if v_reason <> '' then
    raise notice 'recall goes without vectors: %', v_reason;
  end if;
end
$$;
