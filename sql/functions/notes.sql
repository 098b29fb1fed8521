-- Purpose: notes, and the registry of the notes each conversation has worked with.
--
-- A note belongs to its author: the sender of the message that asked for it, whomever it mentions. It
-- is read where it was written, and in a chat it was shared with; only the author changes it.
--
-- Errors: PT410 no such note, PT422 a value that cannot be stored.

-- A title without line breaks, 1 to 200 characters.
create or replace function bot_private.note_title(p_title text) returns text
language plpgsql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  -- what is far too long is not looked at
  v_title constant text := case when octet_length(p_title) > 16384 then p_title
    else btrim(regexp_replace(coalesce(p_title, ''), '\s+', ' ', 'g')) end;
begin
  if v_title = '' then
    raise exception 'the title is empty: give a title of 1 to 200 characters'
      using errcode = 'PT422';
  elsif length(v_title) > 200 then
    raise exception 'the title has % characters, at most 200 are kept: shorten it', length(v_title)
      using errcode = 'PT422';
  end if;
  return v_title;
end
$$;

create or replace function bot_private.note_body(p_body text) returns text
language plpgsql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  if length(p_body) > 20000 then
    raise exception 'the body has % characters, at most 20000 are kept: shorten or split it',
      length(p_body) using errcode = 'PT422';
  end if;
  return coalesce(p_body, '');
end
$$;

-- Tags as they are kept: trimmed, without #, each once whatever its case, the first spelling wins.
-- p_tags: JSON array of strings.
create or replace function bot_private.note_tags(p_tags text) returns text[]
language plpgsql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_tags text[];
begin
  if octet_length(p_tags) > 16384 then
    raise exception 'the tags have % bytes, the limit is 16384: use fewer and shorter tags',
      octet_length(p_tags) using errcode = 'PT422';
  end if;
  select coalesce(array_agg(tag order by place), '{}') into v_tags
  from (
    select distinct on (lower(tag)) tag, place
    from (
      select btrim(regexp_replace(t.value, '\s+', ' ', 'g'), ' #') as tag, t.ordinality as place
      from jsonb_array_elements_text(coalesce(p_tags, '[]')::jsonb) with ordinality t
    ) cleaned
    where tag <> ''
    order by lower(tag), place
  ) once;
  if exists (select from unnest(v_tags) t where length(t) > 40) then
    raise exception 'a tag has more than 40 characters: use shorter tags' using errcode = 'PT422';
  end if;
  return v_tags;
end
$$;

create or replace function bot_private.require_tag_count(p_tags text[]) returns text[]
language plpgsql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  if cardinality(p_tags) > 20 then
    raise exception 'the note would have % tags, at most 20 are kept: remove some first',
      cardinality(p_tags) using errcode = 'PT422';
  end if;
  return p_tags;
end
$$;

create or replace function bot_private.note_json(n public.agent_notes) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'id', n.id, 'user_id', n.user_id, 'title', n.title, 'body', n.body, 'tags', to_jsonb(n.tags),
    'shared_chat_id', n.shared_chat_id, 'created_at', n.created_at, 'updated_at', n.updated_at)
$$;

-- Enters notes into the registry that the sender has of the conversation. Being listed is no use of a
-- note. p_notes: the notes in order.
create or replace function bot_private.touch_notes(
  p_conversation_id text, p_actor_id text, p_tenant_key text, p_notes public.agent_notes[],
  p_action text
) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  insert into public.agent_chats (id, user_id, tenant_key, chat_id, chat_type, root_id)
  select p_conversation_id, p_actor_id, p_tenant_key, bot_private.chat_of(p_conversation_id),
         public.claim('chat_type'), bot_private.root_of(p_conversation_id)
  where cardinality(p_notes) > 0
  on conflict (tenant_key, id, user_id) do nothing;
  insert into public.agent_note_uses as u
    (conversation_id, user_id, tenant_key, note_id, owner_id, last_action, last_used_at)
  select p_conversation_id, p_actor_id, p_tenant_key, t.id, t.user_id, p_action,
         case when p_action <> 'listed' then clock_timestamp() end
  from unnest(p_notes) with ordinality t
  order by t.ordinality
  on conflict (conversation_id, user_id, note_id, owner_id) do update
    set last_action = excluded.last_action, last_used_at = excluded.last_used_at
    where excluded.last_used_at is not null
$$;

-- Creates a note, for message p_turn_id. The same p_note_id again returns the note as it is: a repeated
-- turn makes no copy.
create or replace function public.create_note(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text,
  p_note_id text, p_title text, p_body text, p_tags text, p_turn_id text default null
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_note public.agent_notes;
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  perform bot_private.require_turn_stands(p_turn_id);
  insert into public.agent_notes
    (id, user_id, tenant_key, chat_id, conversation_id, title, body, tags, turn_id, sources)
  values (p_note_id, p_actor_id, p_tenant_key, p_chat_id, p_conversation_id,
          bot_private.note_title(p_title), bot_private.note_body(p_body),
          bot_private.require_tag_count(bot_private.note_tags(p_tags)), p_turn_id,
          bot_private.next_sources('{}', '{}', '{"title": "", "body": "", "tags": []}', p_turn_id))
  on conflict (id, tenant_key, user_id) do nothing;
  select * into v_note from public.agent_notes n
  where n.id = p_note_id and n.user_id = p_actor_id and n.tenant_key = p_tenant_key;
  if v_note.id is null then  -- made by an earlier attempt, where the token does not reach
    raise exception 'no note has this id' using errcode = 'PT410';
  end if;
  perform bot_private.touch_notes(p_conversation_id, p_actor_id, p_tenant_key, array[v_note], 'created');
  return bot_private.note_json(v_note);
end
$$;

create or replace function public.get_note(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text,
  p_note_id text
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_note public.agent_notes;
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  select * into v_note from public.agent_notes n
  where n.id = p_note_id and n.tenant_key = p_tenant_key
  order by n.user_id <> p_actor_id, n.user_id limit 1;
  if v_note.id is null then
    raise exception 'no note has this id' using errcode = 'PT410';
  end if;
  perform bot_private.touch_notes(p_conversation_id, p_actor_id, p_tenant_key, array[v_note], 'read');
  return bot_private.note_json(v_note);
end
$$;

-- The newest p_limit notes of the sender's and those shared with the chat (all of p_tags when given),
-- oldest of them first.
create or replace function public.list_notes(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text,
  p_tags text, p_limit integer
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_identity constant boolean :=
    bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_tags text[] := bot_private.note_tags(p_tags);
  v_listed jsonb;
  v_notes public.agent_notes[];
begin
  select coalesce(jsonb_agg(bot_private.note_json(l.note) order by (l.note).created_at, (l.note).id), '[]'),
         array_agg(l.note order by (l.note).created_at, (l.note).id)
  into v_listed, v_notes
  from (
    select n as note from public.agent_notes n
    where n.tenant_key = p_tenant_key
      and (n.user_id = p_actor_id or n.shared_chat_id = p_chat_id)
      and not exists (select from unnest(v_tags) w
                      where lower(w) not in (select lower(t) from unnest(n.tags) t))
    order by n.created_at desc, n.id desc
    limit least(greatest(p_limit, 1), 200)
  ) l;
  perform bot_private.touch_notes(p_conversation_id, p_actor_id, p_tenant_key, v_notes, 'listed');
  return v_listed;
end
$$;

-- How much of a note stands in p_terms (lower case): a term in the title or among the tags counts three
-- times as much as one in the body, and in another form (hikes, hiking) as much as in this one.
create or replace function bot_private.note_score(n public.agent_notes, p_terms text[])
returns bigint
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(sum(f.worth), 0)
  from unnest(p_terms) term
  cross join lateral (select (bot_private.recall_tokens(term))[1] as stem) s
  cross join (values (3, lower(n.title)), (3, lower(array_to_string(n.tags, ' '))), (1, lower(n.body)))
    f (worth, said)
  -- a stem is the beginning of all forms: where it does not stand, none does
  where strpos(f.said, term) > 0
     or strpos(f.said, s.stem) > 0 and s.stem = any (bot_private.recall_tokens(f.said))
$$;

-- Of the notes that may be read here, the sender's and others', those that contain any of p_terms (JSON
-- array of lower-case strings), best first. With p_embedding, the query's by p_model, and no title or
-- tag that fits, then the three that are most alike by the messages they were made from (by_meaning).
create or replace function public.search_notes(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text,
  p_terms text, p_limit integer, p_model text default null, p_embedding text default null
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_terms text[];
  v_most constant integer := least(greatest(p_limit, 1), 50);
  v_notes public.agent_notes[];
  v_alike public.agent_notes[] := '{}';
begin
  perform bot_private.require_size('p_terms', p_terms, 32768);
  perform bot_private.require_size('p_embedding', p_embedding, 262144);
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_terms := array(select jsonb_array_elements_text(p_terms::jsonb));
  select coalesce(array_agg(f.note order by f.score desc, (f.note).updated_at desc), '{}')
  into v_notes
  from (
    select n as note, bot_private.note_score(n, v_terms) as score from public.agent_notes n
    where n.tenant_key = p_tenant_key
    order by score desc, n.updated_at desc limit v_most
  ) f
  where f.score > 0;
  if p_embedding is not null
     and not exists (select from unnest(v_notes) n where bot_private.note_score(n, v_terms) >= 3) then
    v_alike := bot_private.notes_alike(p_tenant_key, array(select n.id from unnest(v_notes) n),
                                       p_model, p_embedding);
  end if;
  -- the one note that was found is the one people go on to speak of
  perform bot_private.touch_notes(
    p_conversation_id, p_actor_id, p_tenant_key, v_notes || v_alike,
    case when cardinality(v_notes || v_alike) = 1 then 'found' else 'listed' end);
  return (
    select coalesce(jsonb_agg(bot_private.note_json(n.note) || n.found order by n.place), '[]')
    from (
      select v_notes[i] as note, '{}'::jsonb as found, i as place
      from generate_subscripts(v_notes, 1) i
      union all
      select v_alike[i], '{"by_meaning": true}', v_most + i from generate_subscripts(v_alike, 1) i
    ) n);
end
$$;

-- The notes that may be read here, but p_but, whose making (the messages their title and text come
-- from) is most alike p_embedding: three at most, none less than the average.
create or replace function bot_private.notes_alike(
  p_tenant_key text, p_but text[], p_model text, p_embedding text
) returns public.agent_notes[]
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  with made as materialized (
    select n.id, n.user_id, t.turn_id
    from (select * from public.agent_notes n
          where n.tenant_key = p_tenant_key and n.id <> all (p_but)
          order by n.updated_at desc limit 1000) n
    cross join lateral (
      select n.turn_id union select n.sources #>> '{title,turn}'
      union select n.sources #>> '{body,turn}') t
    where t.turn_id is not null
  ),
  alike as materialized (
    select m.id, m.user_id, max(a.similarity) as similarity
    from bot_private.recall_alike(array(select turn_id from made), p_model, p_embedding) a
    join made m using (turn_id)
    group by m.id, m.user_id
  )
  select coalesce(array_agg(n order by b.similarity desc), '{}')
  from (select * from alike
        where similarity > 0 and similarity >= (select avg(similarity) from alike)
        order by similarity desc limit 3) b
  join public.agent_notes n
    on n.id = b.id and n.user_id = b.user_id and n.tenant_key = p_tenant_key
$$;

-- Changes what is given (null: unchanged), for message p_turn_id, and says what has changed. Tags compare
-- without case.
create or replace function public.update_note(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text,
  p_note_id text, p_title text, p_body text, p_add_tags text, p_remove_tags text,
  p_turn_id text default null
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_identity constant boolean :=
    bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_old public.agent_notes;
  v_new public.agent_notes;
  v_add text[] := bot_private.note_tags(p_add_tags);
  v_remove text[] := bot_private.note_tags(p_remove_tags);
  v_kept text[];
  v_added text[];
begin
  perform bot_private.require_turn_stands(p_turn_id);
  select * into v_old from public.agent_notes n
  where n.id = p_note_id and n.user_id = p_actor_id and n.tenant_key = p_tenant_key
  for no key update;
  if v_old.id is null then
    raise exception 'no note of this person has this id' using errcode = 'PT410';
  end if;

  select coalesce(array_agg(t.tag order by t.place), '{}') into v_kept
  from unnest(v_old.tags) with ordinality t (tag, place)
  where lower(t.tag) not in (select lower(r) from unnest(v_remove) r);
  select coalesce(array_agg(t.tag order by t.place), '{}') into v_added
  from unnest(v_add) with ordinality t (tag, place)
  where lower(t.tag) not in (select lower(k) from unnest(v_kept) k);

  update public.agent_notes n set
    title = case when p_title is null then n.title else bot_private.note_title(p_title) end,
    body = case when p_body is null then n.body else bot_private.note_body(p_body) end,
    tags = bot_private.require_tag_count(v_kept || v_added),
    updated_at = now()
  where n.id = v_old.id and n.user_id = v_old.user_id and n.tenant_key = v_old.tenant_key
  returning * into v_new;
  perform bot_private.keep_note_change(v_old, v_new, p_turn_id);

  perform bot_private.touch_notes(p_conversation_id, p_actor_id, p_tenant_key, array[v_new], 'updated');
  return jsonb_build_object(
    'note', bot_private.note_json(v_new),
    'old_title', v_old.title,
    'body_changed', v_new.body <> v_old.body,
    'added', (select coalesce(jsonb_agg(a), '[]') from unnest(v_added) a
              where lower(a) not in (select lower(o) from unnest(v_old.tags) o)),
    'removed', (select coalesce(jsonb_agg(o), '[]') from unnest(v_old.tags) o
                where lower(o) not in (select lower(t) from unnest(v_new.tags) t)));
end
$$;

-- Remembers what message p_turn_id changed in a note, so that it can be taken back.
create or replace function bot_private.keep_note_change(
  p_old public.agent_notes, p_new public.agent_notes, p_turn_id text
) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_old constant jsonb := bot_private.note_fields(p_old);
  v_new constant jsonb := bot_private.note_fields(p_new);
  v_was jsonb;
begin
  if p_turn_id is null or v_old = v_new then
    return;
  end if;
  select jsonb_object_agg(o.key, o.value) into v_was
  from jsonb_each(v_old) o where o.value <> v_new -> o.key;
  insert into public.agent_note_changes (note_id, user_id, tenant_key, turn_id, was, was_sources)
  values (p_old.id, p_old.user_id, p_old.tenant_key, p_turn_id, v_was, coalesce(
    (select jsonb_object_agg(s.key, s.value) from jsonb_each(p_old.sources) s where v_was ? s.key),
    '{}'));
  delete from public.agent_note_changes c
  where (c.note_id, c.tenant_key, c.user_id) = (p_old.id, p_old.tenant_key, p_old.user_id)
    and c.id <= (select k.id from public.agent_note_changes k
                 where (k.note_id, k.tenant_key, k.user_id)
                       = (p_old.id, p_old.tenant_key, p_old.user_id)
                 order by k.id desc offset 20 limit 1);
  update public.agent_notes n
  set sources = bot_private.next_sources(p_old.sources, v_old, v_new, p_turn_id)
  where n.id = p_old.id and n.tenant_key = p_old.tenant_key and n.user_id = p_old.user_id;
end
$$;

-- Lets everyone in the conversation's chat read the note, or nobody but its owner again.
create or replace function public.share_note(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text,
  p_note_id text, p_share boolean
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_note public.agent_notes;
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  update public.agent_notes n
  set shared_chat_id = case when p_share then p_chat_id end, updated_at = now()
  where n.id = p_note_id and n.user_id = p_actor_id and n.tenant_key = p_tenant_key
  returning * into v_note;
  if v_note.id is null then
    raise exception 'no note of this person has this id' using errcode = 'PT410';
  end if;
  perform bot_private.touch_notes(p_conversation_id, p_actor_id, p_tenant_key, array[v_note],
                             case when p_share then 'shared' else 'unshared' end);
  return bot_private.note_json(v_note);
end
$$;

-- Keeps the order in which a card shows notes as a list, in place of the one before: of p_tool_calls
-- (JSON array) the last one whose `shown`, an array of note ids in the order of the card, says so.
create or replace function bot_private.keep_shown_notes(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tool_calls text
) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_shown jsonb;
begin
  if strpos(p_tool_calls, '"shown"') = 0 then
    return;
  end if;
  select c.value -> 'shown' into v_shown
  from jsonb_array_elements(p_tool_calls::jsonb) with ordinality c
  where jsonb_typeof(c.value -> 'shown') = 'array'
  order by c.ordinality desc limit 1;
  v_shown := jsonb_path_query_array(v_shown, '$[0 to 199]');
  if v_shown is null then
    return;
  end if;
  update public.agent_note_uses u set (shown_place, shown_at) = (
    select min(s.ordinality), case when count(*) > 0 then now() end
    from jsonb_array_elements_text(v_shown) with ordinality s where s.value = u.note_id)
  where u.conversation_id = p_conversation_id and u.user_id = p_actor_id
    and (u.shown_place is not null or v_shown ? u.note_id);
end
$$;

-- What a conversation that has no notes is told of: of the sender's own notes that may be read here the
-- five used most, among them the one used last (recency 1), and what of a list of the last day, their
-- last one here, stood in its first five places (`shown`). As note_registry, with `elsewhere`.
create or replace function bot_private.notes_elsewhere(p_actor_id text, p_tenant_key text)
returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  return (
    with listed as materialized (
      select u.note_id, u.owner_id, u.shown_place
      from (select u.conversation_id, u.shown_at from public.agent_note_uses u
            where u.user_id = p_actor_id and u.tenant_key = p_tenant_key
              and u.shown_at > now() - interval '1 day'
            order by u.shown_at desc limit 1) l
      join public.agent_note_uses u using (conversation_id, shown_at)
      where u.user_id = p_actor_id and u.tenant_key = p_tenant_key and u.shown_place <= 5
    ),
    candidates as materialized (
      (select n.id, n.user_id from public.agent_notes n
       where n.user_id = p_actor_id and n.tenant_key = p_tenant_key
       order by n.created_at desc limit 200)
      union select l.note_id, l.owner_id from listed l
    ),
    used as materialized (
      select n.id, n.title, to_jsonb(n.tags) as tags, l.shown_place as shown, u.uses,
             coalesce(u.last_used_at, case when n.user_id = p_actor_id then n.updated_at end)
               as last_used_at
      from candidates c
      join public.agent_notes n using (id, user_id)
      left join listed l on l.note_id = n.id and l.owner_id = n.user_id
      cross join lateral (
        select count(u.last_used_at) as uses, max(u.last_used_at) as last_used_at
        from public.agent_note_uses u
        where u.note_id = n.id and u.owner_id = n.user_id and u.user_id = p_actor_id) u
      where n.tenant_key = p_tenant_key
    ),
    ranked as materialized (
      select *, case when last_used_at is not null then
        row_number() over (order by last_used_at desc nulls last, id) end as recency from used
    ),
    placed as (
      select id, title, tags, 'read' as last_action, last_used_at, false as here, shown, recency,
             true as elsewhere, row_number() over (
               order by (recency = 1) is true desc, shown, uses desc, last_used_at desc, id) as ordinal
      from ranked
    )
    select coalesce(jsonb_agg(to_jsonb(p) order by p.ordinal), '[]')
    from placed p where p.ordinal <= 5 or p.shown is not null);
end
$$;

-- The notes this conversation has to do with: those created in it (`here`) in order of creation, then
-- those of other conversations that were seen in it, likewise. `shown` is the place in the list that a
-- card showed last, null for others; recency 1 is the note used last, null one that was only listed.
-- Of many, the first ten, the first ten of that list, and the last forty used. Where there are none, what
-- notes_elsewhere tells.
create or replace function public.note_registry(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_identity constant boolean :=
    bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_here jsonb;
begin
  if exists (
    select from public.agent_note_uses u
    where u.conversation_id = p_conversation_id and u.user_id = p_actor_id
      and u.tenant_key = p_tenant_key)
  then
    select jsonb_agg(to_jsonb(r) order by r.ordinal) into v_here
    from (
      select u.note_id as id, n.title, to_jsonb(n.tags) as tags, u.last_action, u.last_used_at,
             n.conversation_id = p_conversation_id as here, u.shown_place as shown,
             row_number() over (
               order by n.conversation_id <> p_conversation_id, n.created_at, u.ordinal) as ordinal,
             case when u.last_used_at is not null then
               row_number() over (order by u.last_used_at desc nulls last, u.ordinal desc)
             end as recency,
             row_number() over (order by u.last_used_at desc nulls last, u.ordinal desc) as rank
      from public.agent_note_uses u
      join public.agent_notes n
        on n.id = u.note_id and n.tenant_key = u.tenant_key and n.user_id = u.owner_id
      where u.conversation_id = p_conversation_id and u.user_id = p_actor_id
        and u.tenant_key = p_tenant_key
    ) r
    where r.ordinal <= 10 or r.shown <= 10 or r.rank <= 40;
  end if;
  if v_here is null and (
    exists (select from public.agent_notes n
            where n.user_id = p_actor_id and n.tenant_key = p_tenant_key)
    or exists (select from public.agent_note_uses u
               where u.user_id = p_actor_id and u.tenant_key = p_tenant_key
                 and u.shown_at > now() - interval '1 day'))
  then
    v_here := bot_private.notes_elsewhere(p_actor_id, p_tenant_key);
  end if;
  return coalesce(v_here, '[]');
end
$$;
