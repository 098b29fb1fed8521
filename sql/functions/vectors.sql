-- Purpose: finds by meaning too, where an embedding model is configured.
--
-- An embedding is derived from a message: it goes with the message and when its text changes, is
-- reachable as the message is, and is never part of an answer. It counts only beside rows of the same
-- model. Embeddings travel as text, '[0.1,…]', and are kept in half precision, which ranks as well.
--
-- pgvector is used where the server has it and everything works without: enable_vectors() makes what
-- needs its type, and every run of the migrations calls it. The type stands in schema extensions, or
-- in public where somebody has put it there before; hence the search path of what names the type.

-- Makes the table of embeddings where pgvector can be had. Returns '' when there is one, else why not.
-- For the owner of the schema; safe to repeat.
create or replace function public.enable_vectors() returns text
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  place constant text := $rule$
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and chat_id = (select public.claim('chat_id'))
    and (select public.claim('sub')) in (user_id, actor_id)
  $rule$;
  readable constant text := $rule$
    tenant_key = coalesce((select public.claim('tenant_key')), '')
    and (chat_id = (select public.claim('chat_id'))
         or said_at >= ((select public.readable_chats()) ->> chat_id)::timestamptz)
    and actor_id is not null
    and ((select public.claim('sharing')) is distinct from 'person'
         or (select public.claim('actor')) in (user_id, actor_id))
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
    id bigint not null references public.agent_messages (id) on delete cascade,
    turn_id text not null,
    conversation_id text not null,
    user_id text not null,
    tenant_key text not null,
    chat_id text not null,
    model text not null,
    embedding %I.halfvec not null,
    actor_id text,
    said_at timestamptz,
    primary key (id, model)
  )', v_schema);
  alter table public.agent_embeddings add constraint agent_embeddings_place
    check (starts_with(conversation_id || ':', 'feishu:' || chat_id || ':')) not valid;
  -- in the row itself, up to some 4,000 dimensions: looked up elsewhere it takes twice the time
  alter table public.agent_embeddings set (toast_tuple_target = 8160);
  alter table public.agent_embeddings alter column embedding set storage main;
  create index agent_embeddings_turn_idx on public.agent_embeddings (turn_id);
  create index agent_embeddings_conversation_idx
    on public.agent_embeddings (conversation_id, user_id);
  create index agent_embeddings_user_idx on public.agent_embeddings (user_id);

  alter table public.agent_embeddings enable row level security;
  execute 'create policy agent_embeddings_select on public.agent_embeddings
           for select to authenticated using (' || readable || ')';
  execute 'create policy agent_embeddings_insert on public.agent_embeddings
           for insert to authenticated with check (' || place || ')';
  execute 'create policy agent_embeddings_update on public.agent_embeddings
           for update to authenticated using (' || place || ')';
  execute 'create policy agent_embeddings_delete on public.agent_embeddings
           for delete to authenticated using (' || place || ')';
  create policy agent_embeddings_of_a_tenant on public.agent_embeddings as restrictive
  for all to authenticated using (tenant_key = (select public.claim('tenant_key'))
    and tenant_key = coalesce((select public.claim('tenant_key')), ''));
  create policy agent_embeddings_told on public.agent_embeddings as restrictive
  for select to authenticated
  using ((said_at >= (select bot_private.told_since())) is not false);
  revoke all on public.agent_embeddings from anon, authenticated;
  grant select, insert, delete on public.agent_embeddings to authenticated;
  grant update (model, embedding) on public.agent_embeddings to authenticated;
  grant select, insert, update, delete on public.agent_embeddings to service_role;

  create trigger agent_messages_drop_embedding
    after update of content, status on public.agent_messages for each row
    when (old.content <> new.content or (old.status = 'failed') <> (new.status = 'failed'))
    execute function public.drop_embedding();
  perform feishu_bot.let_verifier_read();
  return '';
end
$$;

create or replace function public.drop_embedding() returns trigger
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  delete from public.agent_embeddings where id = new.id;
  return null;
end
$$;

-- What has no embedding of p_model among the newest p_recent messages of a conversation (null: all),
-- newest first, at most p_limit: id, content and its digest. Null where there are no vectors.
create or replace function public.messages_to_embed(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text,
  p_model text, p_limit integer, p_recent integer default null
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if to_regclass('public.agent_embeddings') is null then
    return null;
  end if;
  return (
    with recent as (
      select m.id, m.content, m.status
      from public.agent_messages m
      where m.thread = bot_private.thread_number(p_tenant_key, p_conversation_id, p_user_id)
        and m.conversation_id = p_conversation_id and m.user_id = p_user_id
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
create or replace function public.save_embeddings(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text,
  p_model text, p_embeddings text
) returns jsonb
language plpgsql security invoker set search_path = extensions, public, pg_temp
as $$
declare
  v_count bigint;
begin
  perform bot_private.require_size('p_embeddings', p_embeddings, 4194304);
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  insert into public.agent_embeddings
    (id, turn_id, conversation_id, user_id, actor_id, tenant_key, chat_id, said_at, model,
     embedding)
  select m.id, m.turn_id, m.conversation_id, m.user_id, m.actor_id, m.tenant_key, m.chat_id,
         m.created_at, p_model, g.embedding::halfvec
  from jsonb_to_recordset(p_embeddings::jsonb) g (id bigint, digest text, embedding text)
  join public.agent_messages m using (id)
  where m.conversation_id = p_conversation_id and m.user_id = p_user_id
    and m.tenant_key = p_tenant_key and m.status in ('received', 'sent')
    and md5(m.content) = g.digest
  on conflict (id, model) do update set embedding = excluded.embedding;
  get diagnostics v_count = row_count;
  return to_jsonb(v_count);
end
$$;

-- For operators: conversations with messages that have no embedding of p_model, and how many.
-- Null where there are no vectors.
create or replace function public.conversations_to_embed(p_model text) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
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

-- For operators: how many messages have an embedding, by model. Null where there are no vectors.
create or replace function public.count_embeddings() returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  if to_regclass('public.agent_embeddings') is null then
    return null;
  end if;
  return (
    select coalesce(jsonb_object_agg(c.model, c.messages), '{}')
    from (select e.model, count(*) as messages from public.agent_embeddings e group by 1) c);
end
$$;

-- For operators: deletes up to 5,000 embeddings of other models than p_model, once that one has all.
-- Returns how many.
create or replace function public.drop_other_embeddings(p_model text) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_count bigint := 0;
begin
  if to_regclass('public.agent_embeddings') is not null then
    delete from public.agent_embeddings e using (
      select o.id, o.model from public.agent_embeddings o where o.model <> p_model limit 5000) other
    where e.id = other.id and e.model = other.model;
    get diagnostics v_count = row_count;
  end if;
  return to_jsonb(v_count);
end
$$;

-- How like the question the turns are by their most alike message: cosine, -1 to 1. Exact, over the
-- turns that are given: the caller has them from its scope. Rows of other models, and of another
-- length, do not count.
create or replace function bot_private.recall_alike(p_turn_ids text[], p_model text, p_embedding text)
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

-- The turns that are most like the question: p_first_ids are the first messages of the turns p_turn_ids.
-- 1 is the most alike, 0 the average of all of them. What all have in common counts little, for
-- in most models every two texts are alike: vectors are compared from near their middle. What was
-- said counts whole, the answer to it less: it repeats the question, or says what others say too.
create or replace function bot_private.recall_likeness(
  p_first_ids bigint[], p_turn_ids text[], p_model text, p_embedding text
) returns table (first_id bigint, likeness double precision)
language plpgsql stable security invoker set search_path = extensions, public, pg_temp
-- the planner expects a row where there are thousands
set enable_nestloop = off
as $$
declare
  -- how far the point lies to the middle from which vectors are compared
  centred constant double precision := 0.8;
  -- of so few vectors the middle says nothing
  few constant integer := 20;
  -- so many tell where the middle is
  sample constant integer := 100;
  of_answer constant double precision := 0.7;
  -- so many messages are told of, the nearest
  close_messages constant integer := 400;
begin
  if p_embedding is null or to_regclass('public.agent_embeddings') is null then
    return;
  end if;
  return query
    with question as materialized (
      select p_embedding::halfvec as embedding, vector_dims(p_embedding::halfvec) as length
    ),
    middle as materialized (
      select case when count(*) > few then avg(l2_normalize(k.embedding)) end as embedding
      from (
        select e.embedding from public.agent_embeddings e
        where e.turn_id = any (p_turn_ids[:sample]) and e.model = p_model
          and vector_dims(e.embedding) = (select length from question)
        limit sample) k
    ),
    -- (a - m)(b - m) from the cosines of a, b and m: cheaper than to subtract
    shift as materialized (
      select coalesce(centred * l2_norm(m.embedding), 0) as length,
             coalesce(1 - (q.embedding <=> m.embedding), 0) as near
      from middle m, question q
    ),
    alike as materialized (
      select c.turn_id, c.id, (c.near - s.length * (c.middling + s.near) + s.length * s.length)
          / sqrt(1 - 2 * s.length * c.middling + s.length * s.length) as similarity
      from shift s, lateral (
        select e.id, e.turn_id,
          1 - (e.embedding <=> (select q.embedding from question q)) as near,
          coalesce(1 - (e.embedding <=> (select m.embedding from middle m)), 0) as middling
        from public.agent_embeddings e
        where e.turn_id = any (p_turn_ids) and e.model = p_model
          and vector_dims(e.embedding) = (select length from question)
        offset 0) c
      where c.near <> 'NaN'
    ),
    usual as materialized (
      select avg(similarity) as average, max(similarity) as most from alike
    ),
    -- the nearest first: to join all by the ids of their turns would be most of the work
    nearest as materialized (
      select a.turn_id, a.id, (a.similarity - u.average) / (u.most - u.average) as likeness
      from alike a, usual u
      where a.similarity > u.average
      order by a.similarity desc limit close_messages
    )
    select t.first_id, max(n.likeness * case when n.id = t.first_id then 1 else of_answer end)
    from nearest n join unnest(p_first_ids, p_turn_ids) t (first_id, turn_id) using (turn_id)
    group by t.first_id;
end
$$;
