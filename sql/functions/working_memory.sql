-- Purpose: what is kept of a conversation and of a person beside the messages, and who changed it.

-- Working memory as the turn may use it. `chat`: what the subject had kept in this thread. `user`: their
-- lasting facts, in a group those told there; in p2p also those of the groups they are in, what was
-- told in p2p before what was told in a group, later before earlier. `said`: what others had kept in
-- this thread about the subject, and the subject about others, each by its author: their statements.
-- `group`: what anybody had kept in this group, as far as it has words of p_question (group_facts).
-- `turns`: the messages that they come from. What a later fact of this place replaced is in none of them.
create or replace function public.get_working_memory(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_question text default null
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_size constant boolean := bot_private.require_size('p_question', p_question, 1048576);
  v_identity constant boolean :=
    bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
begin
  return bot_private.facts_told(p_conversation_id, p_user_id, p_tenant_key, p_question);
end
$$;

-- The same, for a caller whose identity is known to be right.
create or replace function bot_private.facts_told(
  p_conversation_id text, p_user_id text, p_tenant_key text, p_question text default null
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_since constant timestamptz := bot_private.told_since();
  v_chat_id constant text := bot_private.chat_of(p_conversation_id);
  v_replaced text[] := '{}';
  v_group jsonb := '[]';
begin
  if exists (select from public.agent_working_memory w where w.chat_id = v_chat_id and w.tenant_key = p_tenant_key) then
    v_replaced := bot_private.replaced_facts(v_chat_id, p_tenant_key);
    v_group := bot_private.group_facts(p_conversation_id, p_user_id, p_tenant_key, p_question, v_since);
  end if;
  return (
    select jsonb_build_object(
      'chat', coalesce(jsonb_agg(h.told) filter (
        where h.scope = 'chat' and h.user_id = p_user_id and h.actor_id = p_user_id) -> 0, '{}'),
      'user', coalesce(bot_private.merged_facts(array_agg(h.told order by
          h.chat_id = v_chat_id, h.updated_at, h.id)
        filter (where h.scope = 'user')), '{}'),
      'said', coalesce(jsonb_agg(jsonb_build_object(
          'actor_id', h.actor_id, 'user_id', h.user_id, 'content', h.told) order by h.id)
        filter (where h.scope = 'chat' and h.actor_id <> h.user_id and h.told <> '{}'), '[]'),
      'group', v_group,
      'turns', coalesce(jsonb_agg(jsonb_path_query_array(h.sources, '$.*.turn'))
        filter (where h.sources <> '{}'), '[]') || jsonb_build_array(jsonb_path_query_array(v_group, '$[*].turn_id')))
    from (
      select w.*, bot_private.facts_held(
        w.id, bot_private.facts_since(w.content, w.sources, v_since), v_replaced) as told
      from public.agent_working_memory w
      where w.tenant_key = p_tenant_key and w.user_id = p_user_id
        and (w.scope = 'user' or w.conversation_id = p_conversation_id)
      union all
      select w.*, bot_private.facts_held(
        w.id, bot_private.facts_since(w.content, w.sources, v_since), v_replaced)
      from public.agent_working_memory w
      where w.tenant_key = p_tenant_key and w.conversation_id = p_conversation_id
        and w.actor_id = p_user_id and w.actor_id <> w.user_id
    ) h);
end
$$;

-- The id of one fact. It tells nothing of its key.
create or replace function bot_private.fact_id(p_memory_id bigint, p_key text) returns text
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select p_memory_id || '-' || left(md5(p_key), 8)
$$;

-- The facts that were told in a chat, newest first, as far as they may be read: of the 100 working memories changed last.
create or replace function bot_private.facts_of_chat(p_chat_id text, p_tenant_key text)
returns table (id text, memory_id bigint, key text, value jsonb, at timestamptz, source jsonb)
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select bot_private.fact_id(w.id, e.key), w.id, e.key, e.value,
         coalesce((w.sources #>> array[e.key, 'at'])::timestamptz, w.updated_at), w.sources -> e.key
  from (
    select m.* from public.agent_working_memory m
    where m.chat_id = p_chat_id and m.tenant_key = p_tenant_key and m.content <> '{}'
    order by m.updated_at desc limit 100) w, jsonb_each(w.content) e
$$;

-- The ids of the facts of a chat that a later one there replaces. A fact that was stated again since then holds.
create or replace function bot_private.replaced_facts(p_chat_id text, p_tenant_key text) returns text[]
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
begin
  if not exists (
    select from public.agent_working_memory w
    where w.chat_id = p_chat_id and w.tenant_key = p_tenant_key and w.sources @? '$.*.replaces')
  then
    return '{}';
  end if;
  return (
    with facts as materialized (select * from bot_private.facts_of_chat(p_chat_id, p_tenant_key))
    select coalesce(array_agg(distinct f.id), '{}')
    from (
      select n.id as by, n.at, r.id as old
      from facts n, jsonb_array_elements_text(n.source -> 'replaces') r (id)) l
    join facts f on f.id = l.old and l.at >= f.at and l.by <> f.id);
end
$$;

-- Facts without those of p_replaced.
create or replace function bot_private.facts_held(p_memory_id bigint, p_facts jsonb, p_replaced text[])
returns jsonb
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select case when p_replaced = '{}' then p_facts else coalesce((
    select jsonb_object_agg(e.key, e.value) from jsonb_each(p_facts) e
    where bot_private.fact_id(p_memory_id, e.key) <> all (p_replaced)), '{}') end
$$;

-- What anybody had kept in this group that has words of p_question, best first, and what it replaced or was replaced by:
-- [{id, key, value, scope, actor_id, user_id, at, turn_id, until, by}]. `until` and `by` (a fact's id) are of one that was replaced. The
-- subject's own facts and remarks, which get_working_memory tells, are among them only if they replaced or were replaced.
create or replace function bot_private.group_facts(
  p_conversation_id text, p_user_id text, p_tenant_key text, p_question text, p_since timestamptz
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_chat_id constant text := bot_private.chat_of(p_conversation_id);
  v_words text[];
  most constant integer := 8;
  most_characters constant integer := 2400;
begin
  if p_question is null or public.claim('chat_type') is not distinct from 'p2p'
     or public.claim('sharing') is not distinct from 'person' then
    return '[]';
  end if;
  v_words := array(
    select distinct t from unnest(bot_private.recall_tokens(left(p_question, 500))) t where length(t) > 1);
  return (
    with facts as materialized (
      select f.*, w.scope, w.actor_id, w.user_id,
             p_user_id in (w.user_id, w.actor_id)
               and (w.scope = 'user' or w.conversation_id = p_conversation_id) as is_own,
             lower(concat_ws(' ', f.key, f.value)) as words
      from bot_private.facts_of_chat(v_chat_id, p_tenant_key) f
      join public.agent_working_memory w on w.id = f.memory_id
      where p_since = '-infinity' or (f.source ->> 'at')::timestamptz >= p_since
    ),
    links as materialized (
      select n.id as by, n.at, r.id as old
      from facts n, jsonb_array_elements_text(n.source -> 'replaces') r (id)
    ),
    ended as materialized (
      select f.id, (array_agg(l.by order by l.at))[1] as by, min(l.at) as until
      from facts f join links l on l.old = f.id and l.at >= f.at and l.by <> f.id
      group by f.id
    ),
    linked as materialized (
      select f.*, e.by, e.until, f.id in (select l.by from links l) as replaces,
             (select count(*) from unnest(v_words) t where strpos(f.words, t) > 0) as hits
      from facts f left join ended e using (id)
    ),
    chosen as materialized (
      select l.* from linked l
      where l.hits > 0 and l.by is null and (not l.is_own or l.replaces)
        or l.id in (select o.by from linked o where o.hits > 0)
      order by l.hits desc, l.at desc limit most
    ),
    told as (
      select c.*, 0 as rank from chosen c
      union all (
        select l.*, 1 from linked l
        where l.by is not null
          and l.id in (select n.old from links n where n.by in (select c.id from chosen c))
        order by l.at desc limit most)
    ),
    fitting as (
      select t.*, sum(length(t.words)) over (order by t.rank, t.hits desc, t.at desc, t.id) as characters from told t
    )
    select coalesce(jsonb_agg(jsonb_build_object(
      'id', f.id, 'key', f.key, 'value', f.value, 'scope', f.scope, 'actor_id', f.actor_id, 'user_id', f.user_id, 'at', f.at,
      'turn_id', f.source ->> 'turn', 'until', f.until, 'by', f.by)
      order by f.rank, f.hits desc, f.at desc, f.id), '[]')
    from fitting f where f.characters <= most_characters);
end
$$;

-- Of the facts that a working memory holds the values they had before, the last first: from when until
-- when, and the message each came from (null: not known). What was removed in between is no value of
-- before: whoever tells a fact anew begins anew.
create or replace function bot_private.former_values(p_memory_id bigint)
returns table (key text, value jsonb, since timestamptz, until timestamptz, turn_id text)
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select e.key, e.value, (h.was_sources #>> array[e.key, 'at'])::timestamptz, h.at,
         h.was_sources #>> array[e.key, 'turn']
  from public.agent_working_memory w
  join public.agent_working_memory_history h on h.working_memory_id = w.id,
    jsonb_each(h.was) e
  where w.id = p_memory_id and w.content ? e.key and h.became -> e.key <> e.value
    and not exists (
      select from public.agent_working_memory_history r
      where r.working_memory_id = w.id and r.id > h.id and r.was ? e.key and not r.became ? e.key)
  order by h.id desc
$$;

-- The former values of what get_working_memory tells of the subject in `chat` and `user`, as far as the
-- sender may read them here; the last 20.
create or replace function public.former_facts(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  return (
    select coalesce(jsonb_agg(to_jsonb(l) order by l.until desc), '[]')
    from (
      select w.scope, f.key, f.value, f.since, f.until, f.turn_id
      from public.agent_working_memory w, bot_private.former_values(w.id) f
      where w.tenant_key = p_tenant_key and w.user_id = p_user_id and w.actor_id = p_user_id
        and (w.scope = 'user' or w.conversation_id = p_conversation_id)
      order by f.until desc limit 20) l);
end
$$;

-- Objects laid over each other, the last on top; null of none.
create or replace function bot_private.merged_facts(p_facts jsonb[]) returns jsonb
language sql immutable strict security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(e.key, e.value order by f.ordinality), '{}')
  from unnest(p_facts) with ordinality f (facts, ordinality), jsonb_each(f.facts) e
$$;

-- RFC 7396: objects merge, null removes a key, anything else replaces. At most 32 levels deep.
create or replace function bot_private.merge_patch(p_target jsonb, p_patch jsonb) returns jsonb
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select case when jsonb_typeof(p_patch) <> 'object' then p_patch else (
    with patch as materialized (select key, value from jsonb_each(p_patch))
    select coalesce(jsonb_object_agg(m.key, m.value), '{}')
    from (
      select t.key, t.value
      from jsonb_each(case when jsonb_typeof(p_target) = 'object' then p_target else '{}' end) t
      where t.key not in (select key from patch)
      union all
      select p.key, case when jsonb_typeof(p.value) <> 'object' then p.value
                    else bot_private.merge_patch(p_target -> p.key, p.value) end
      from patch p
      where jsonb_typeof(p.value) <> 'null'
    ) m
  ) end
$$;

-- Merges p_patch (a JSON object) into what the sender keeps in one scope at this place, and returns the
-- whole of it. p_turn_id is the message it comes from (null: an operator). p_replaces (JSON array) are ids of facts of this
-- chat, of matters or the sender's own, that what is set replaces. At most 16 KB. In p2p, a key that is removed from a person's lasting facts is removed
-- from those they told in groups, too.
create or replace function public.merge_working_memory(
  p_conversation_id text, p_chat_id text, p_user_id text, p_actor_id text, p_tenant_key text,
  p_scope text, p_patch text, p_turn_id text default null, p_replaces text default '[]'
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_patch jsonb;
  v_content jsonb;
  v_place text := p_chat_id;
  v_sources jsonb;
  v_stated text[];
  v_replaces text[];
begin
  if octet_length(p_patch) > 32768 then
    raise exception 'a working memory patch of % bytes, the limit is 32768', octet_length(p_patch)
      using errcode = 'PT413';
  end if;
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if p_scope = 'user' and p_chat_id = '' and current_user <> 'authenticated' then
    -- an operator's: as if told alone with the bot, else where facts were told last
    v_place := coalesce((
      select c.chat_id from public.agent_chats c
      where c.user_id = p_user_id and c.tenant_key = p_tenant_key and c.chat_type = 'p2p'
      order by c.updated_at desc limit 1), (
      select w.chat_id from public.agent_working_memory w
      where w.user_id = p_user_id and w.tenant_key = p_tenant_key and w.scope = 'user'
        and w.actor_id = p_user_id
      order by w.updated_at desc limit 1));
    if v_place is null then
      raise exception 'nothing is known of a place where this person told facts: name a conversation'
        using errcode = 'PT400';
    end if;
  end if;
  begin
    v_patch := p_patch::jsonb;
  exception when invalid_text_representation or untranslatable_character
                 or statement_too_complex then
    raise exception 'a working memory patch holds only what JSON and Postgres can keep'
      using errcode = 'PT415';
  end;
  if jsonb_typeof(v_patch) <> 'object' then
    raise exception 'a working memory patch is a JSON object, not %', jsonb_typeof(v_patch)
      using errcode = 'PT415';
  elsif jsonb_path_exists(v_patch, 'strict $.**{33 to last}') then
    raise exception 'a working memory patch is at most 32 levels deep' using errcode = 'PT415';
  end if;
  if p_scope = 'user' and p_user_id <> p_actor_id then
    raise exception 'only the person can change what is kept about them everywhere'
      using errcode = 'PT403';
  end if;
  perform bot_private.require_turn_stands(p_turn_id);
  perform bot_private.tell_nothing();

  v_content := bot_private.merge_patch('{}', v_patch);
  v_stated := array(select jsonb_object_keys(v_content));
  v_replaces := bot_private.replaceable_facts(p_chat_id, p_tenant_key, p_actor_id, p_replaces);
  insert into public.agent_working_memory as w
    (conversation_id, user_id, actor_id, tenant_key, chat_id, scope, content, sources)
  values (case when p_scope = 'chat' then p_conversation_id else '' end, p_user_id, p_actor_id,
          p_tenant_key, v_place, p_scope, v_content,
          bot_private.next_sources('{}', '{}', v_content, p_turn_id, v_stated, v_replaces))
  on conflict (tenant_key, user_id, actor_id, scope, chat_id, conversation_id) do update
    set content = bot_private.merge_patch(w.content, v_patch), updated_at = now(),
        sources = bot_private.next_sources(
          w.sources, w.content, bot_private.merge_patch(w.content, v_patch), p_turn_id, v_stated, v_replaces)
  returning content, sources into v_content, v_sources;

  if octet_length(v_content::text) > 16384 then
    raise exception 'working memory would hold % bytes, the limit is 16384: remove keys first',
      octet_length(v_content::text) using errcode = 'PT413';
  end if;
  if p_scope = 'user' then
    update public.agent_working_memory w
    set content = w.content - removed.keys, sources = w.sources - removed.keys, updated_at = now()
    from (select array_agg(e.key) as keys from jsonb_each(v_patch) e
          where jsonb_typeof(e.value) = 'null') removed
    where w.tenant_key = p_tenant_key and w.user_id = p_user_id and w.actor_id = p_actor_id
      and w.scope = 'user' and w.chat_id <> v_place and w.content ?| removed.keys;
  end if;
  perform bot_private.tell_nothing(false);
  if p_scope = 'user' then
    return public.get_working_memory(p_conversation_id, p_user_id, p_actor_id, p_tenant_key)
           -> 'user';
  end if;
  return bot_private.facts_since(v_content, v_sources, bot_private.told_since());
end
$$;

-- Of p_ids (JSON array) the facts that somebody may replace, with those that these replaced: of a chat's matters
-- anybody's, of what people had kept about themselves one's own.
create or replace function bot_private.replaceable_facts(
  p_chat_id text, p_tenant_key text, p_actor_id text, p_ids text
) returns text[]
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  if p_ids = '[]' then
    return '{}';
  end if;
  return array(
    select f.id from bot_private.facts_of_chat(p_chat_id, p_tenant_key) f
    join public.agent_working_memory w on w.id = f.memory_id
    where p_ids::jsonb ? f.id and (w.scope = 'chat' or w.actor_id = p_actor_id)
    union
    select jsonb_array_elements_text(f.source -> 'replaces')
    from bot_private.facts_of_chat(p_chat_id, p_tenant_key) f
    where p_ids::jsonb ? f.id);
end
$$;

-- Empties one scope of working memory as far as it can be seen from here: of a thread also what others
-- had kept there about the person. The history stays.
create or replace function public.clear_working_memory(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_scope text
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  if p_scope = 'user' and p_user_id <> p_actor_id then
    raise exception 'only the person can clear what is kept about them everywhere'
      using errcode = 'PT403';
  end if;
  perform bot_private.tell_nothing();
  update public.agent_working_memory set content = '{}', sources = '{}', updated_at = now()
  where user_id = p_user_id and tenant_key = p_tenant_key and scope = p_scope
    and (p_user_id = p_actor_id or actor_id = p_actor_id)
    and conversation_id = case when p_scope = 'chat' then p_conversation_id else '' end;
  return '{}'::jsonb;
end
$$;

-- Working memory goes with its conversation, which it may precede.
create or replace function public.drop_working_memory_of_chat() returns trigger
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  delete from public.agent_working_memory
  where conversation_id = old.id and user_id = old.user_id and tenant_key = old.tenant_key
    and scope = 'chat';
  return old;
end
$$;

create or replace function public.record_working_memory_change() returns trigger
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_before constant jsonb := case when tg_op = 'UPDATE' then old.content else '{}' end;
  v_was jsonb;
  v_became jsonb;
  v_sources jsonb;
  v_old_sources constant jsonb := case when tg_op = 'UPDATE' then old.sources else '{}' end;
begin
  -- a value that another message states again is a change of where it comes from
  select coalesce(jsonb_object_agg(o.key, o.value) filter (where o.key is not null), '{}'),
         coalesce(jsonb_object_agg(n.key, n.value) filter (where n.key is not null), '{}')
  into v_was, v_became
  from jsonb_each(v_before) o full join jsonb_each(new.content) n on o.key = n.key
  where o.value is distinct from n.value
    or v_old_sources #>> array[o.key, 'turn'] <> new.sources #>> array[o.key, 'turn'];
  if v_was <> '{}' or v_became <> '{}' then
    if tg_op = 'UPDATE' then
      select jsonb_object_agg(s.key, s.value) into v_sources
      from jsonb_each(old.sources) s where v_was ? s.key;
    end if;
    insert into public.agent_working_memory_history
      (working_memory_id, user_id, tenant_key, actor_id, scope, conversation_id, chat_id, was, became,
       was_sources, turn_id)
    values (new.id, new.user_id, new.tenant_key, coalesce(public.claim('actor'), 'service'),
            new.scope, new.conversation_id, new.chat_id, v_was, v_became, coalesce(v_sources, '{}'),
            (select s.value ->> 'turn' from jsonb_each(new.sources) s where v_became ? s.key limit 1));
    delete from public.agent_working_memory_history
    where working_memory_id = new.id and id <= (
      select h.id from public.agent_working_memory_history h
      where h.working_memory_id = new.id order by h.id desc offset 50 limit 1);
  end if;
  return null;
end
$$;
