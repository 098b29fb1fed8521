-- Purpose: documents that answers tell of: noted before a model reads them, looked at again, forgotten.

-- The row of a document that the token's person reads in the token's chat; its id.
create or replace function bot_private.told_document(p_kind text, p_token text) returns bigint
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$
  insert into bot_private.told_documents as d
    (tenant_key, chat_id, chat_type, kind, token, actor_id, actor_tenant)
  values (
    coalesce(public.claim('tenant_key'), ''), public.claim('chat_id'), coalesce(public.claim('chat_type'), 'group'),
    p_kind, p_token, public.claim('actor'), coalesce(public.claim('actor_tenant'), ''))
  on conflict (tenant_key, chat_id, actor_id, kind, token) do update set told_at = now(), looked_at = now(), closed_at = null
  returning d.id
$$;

-- The turn p_turn_id, not answered yet, is to be given a document (p_kind and p_token as its link names them). p_text:
-- what was read of it; it is not kept, but what tells it is. Returns the id by which it is taken back, null where the
-- turn is not open any more.
create or replace function public.note_document(
  p_conversation_id text, p_user_id text, p_actor_id text, p_turn_id text, p_kind text, p_token text, p_text text
) returns text
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_size constant boolean := bot_private.require_size('p_kind', p_kind, 32)
    and bot_private.require_size('p_token', p_token, 256) and bot_private.require_size('p_text', p_text, 131072);
  v_identity constant boolean := bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_source text;
begin
  perform pg_advisory_xact_lock_shared(bot_private.sources_lock());
  perform from public.agent_turns t
  where t.id = p_turn_id and t.user_id = p_user_id and t.conversation_id = p_conversation_id and t.state = 'open';
  if not found then
    return null;
  end if;
  v_source := 'doc:' || bot_private.told_document(p_kind, p_token);
  update public.agent_turns t set read_messages = t.read_messages || v_source
  where t.id = p_turn_id and t.user_id = p_user_id and t.conversation_id = p_conversation_id
    and not v_source = any (t.read_messages);
  perform bot_private.keep_source_terms(p_turn_id, jsonb_build_array(v_source), jsonb_build_object(v_source, p_text));
  return v_source;
end
$$;

-- The documents that the answer p_turn_id of the token's person tells of in p_text: those that its turn read, and of
-- those that turns read from which it was made, however long ago, those of which it says a telling word.
create or replace function bot_private.documents_told(p_turn_id text, p_text text) returns jsonb
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_terms constant text[] := array(select bot_private.telling_terms(p_text));
  most constant integer := 2000;  -- turns that are followed
begin
  return (
    with recursive behind (id) as (
      select t.id from public.agent_turns t
      where t.id = p_turn_id and t.user_id = public.claim('actor') and t.actor_id = public.claim('actor')
        and t.tenant_key = coalesce(public.claim('tenant_key'), '')
      union
      select x.id from behind b join public.agent_turns t on t.id = b.id
      cross join lateral unnest(bot_private.sources_of(t)) s (id)
      cross join lateral (
        select case when starts_with(s.id, 'answer:') then substr(s.id, 8) else s.id end as id
        where not starts_with(s.id, 'thread:')
        union all
        select o.id from public.agent_turns o
        where starts_with(s.id, 'thread:') and o.conversation_id = regexp_replace(substr(s.id, 8), ':[^:]*$', '')
          and o.tenant_key = t.tenant_key and o.created_at <= t.created_at) x
    ), followed as materialized (
      select id from behind limit most
    )
    select coalesce(jsonb_agg(distinct jsonb_build_object('kind', d.kind, 'token', d.token)), '[]')
    from followed f join bot_private.told_documents d on f.id = 'doc:' || d.id
    where exists (
        select from public.agent_turns t where t.id = p_turn_id and f.id = any (t.read_messages))
      or exists (
        select from bot_private.source_terms s
        where s.source = f.id and s.terms && bot_private.keyed_hashes(f.id, v_terms)));
end
$$;

-- JSON array of {kind, token}, as documents_told says.
create or replace function public.documents_behind(
  p_conversation_id text, p_user_id text, p_actor_id text, p_turn_id text, p_text text
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_size constant boolean := bot_private.require_size('p_text', p_text, 131072);
  v_identity constant boolean := bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
begin
  return bot_private.documents_told(p_turn_id, p_text);
end
$$;

-- Documents that nobody has looked at for p_after_s, p_limit at most, the oldest first; the next look is due as long
-- after this. JSON array of {id, tenant_key, chat_id, chat_type, kind, token, actor_id, actor_tenant}.
create or replace function public.take_told_documents(p_after_s double precision, p_limit integer) returns jsonb
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  with due as (
    update bot_private.told_documents d set looked_at = now()
    where d.id in (
      select o.id from bot_private.told_documents o
      where o.looked_at < now() - p_after_s * interval '1 second' and o.closed_at is null
      order by o.looked_at limit p_limit for update skip locked)
    returning d.*
  )
  select coalesce(jsonb_agg(jsonb_build_object(
    'id', d.id, 'tenant_key', d.tenant_key, 'chat_id', d.chat_id, 'chat_type', d.chat_type, 'kind', d.kind,
    'token', d.token, 'actor_id', d.actor_id, 'actor_tenant', d.actor_tenant) order by d.id), '[]')
  from due d
$$;

-- It is closed, and what tells of it was taken back. It stays as long as a turn stands that was given it: what that
-- tells may come from elsewhere too, and be closed there as well.
create or replace function public.drop_told_document(p_id bigint) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  update bot_private.told_documents d set closed_at = now() where d.id = p_id;
  delete from bot_private.told_documents d
  where d.id = p_id and not exists (
    select from public.agent_turns t
    where t.tenant_key = d.tenant_key and t.created_at >= d.first_at - interval '1 day'
      and ('doc:' || p_id = any (t.given) or 'doc:' || p_id = any (t.read_messages))
      and exists (select from public.agent_messages m where m.turn_id = t.id and m.role = 'assistant'))
$$;

-- Whether answers told of documents where the token's place may read: in its group; for p2p, anywhere.
create or replace function bot_private.documents_were_told() returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from bot_private.told_documents d
    where d.tenant_key = coalesce(public.claim('tenant_key'), '')
      and (public.claim('chat_type') = 'p2p' or d.chat_id = public.claim('chat_id')))
$$;

-- An answer that was given documents by what earlier ones told is noted with those that it tells of, or keeps: those
-- that were told where the token may read, for with others the words of an answer would show what they hold.
create or replace function bot_private.keep_given_documents(p_turn_id text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_terms constant text[] := array(
    select distinct w
    from (select bot_private.told_by(p_turn_id) union all select bot_private.kept_by(array[p_turn_id]) union all
          select bot_private.words_of_call(c.value)
          from public.agent_messages m cross join jsonb_array_elements(m.tool_calls) c
          where m.turn_id = p_turn_id) t (words),
      bot_private.telling_terms(t.words) w);
begin
  update public.agent_turns t
  set given = array(
    select g from unnest(t.given) g
    where not starts_with(g, 'doc:') or g = any (t.read_messages) or exists (
      select from bot_private.told_documents d join bot_private.source_terms s on s.source = g
      where 'doc:' || d.id = g and d.tenant_key = t.tenant_key
        and (d.chat_id = t.chat_id or public.readable_chats() ? d.chat_id)
        and s.terms && bot_private.keyed_hashes(g, v_terms)))
  where t.id = p_turn_id;
end
$$;

-- Documents that these told of which a prompt is made of (p_sources: JSON array, as in agent_turns.given): JSON array
-- of {source, age_s, closed, id, tenant_key, chat_id, chat_type, kind, token, actor_id, actor_tenant}. age_s: since
-- Feishu last said that everybody there can open it, null where it did not yet; closed: it said since that they cannot.
create or replace function public.documents_behind_sources(p_tenant_key text, p_sources text) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  with asked as materialized (
    select distinct id from jsonb_array_elements_text(p_sources::jsonb) a (id)
  ), named (source, turn_id) as (
    select a.id, case when starts_with(a.id, 'answer:') then substr(a.id, 8) else a.id end from asked a
    union
    select a.id, m.turn_id from asked a join public.agent_messages m on m.message_id = a.id and m.role = 'assistant'
    union
    select a.id, x.id
    from asked a join public.agent_notes n on n.id = substr(a.id, 6) and n.tenant_key = p_tenant_key
    cross join lateral (
      select n.turn_id as id union select s.value ->> 'turn' from jsonb_each(n.sources) s) x
    where starts_with(a.id, 'note:')
    union
    select a.id, t.id
    from asked a join public.agent_turns t
      on t.conversation_id = regexp_replace(substr(a.id, 8), ':[^:]*$', '') and t.tenant_key = p_tenant_key
    where starts_with(a.id, 'thread:')
  ), behind (source, turn_id) as (  -- a press, and a digest, tell what they came from
    select * from named
    union
    select n.source, t.parent_id from named n join public.agent_turns t on t.id = n.turn_id
    where t.origin = 'button'
    union
    select n.source, coalesce(m.turn_id, s.message_id)
    from named n join public.agent_digest_sources s on s.turn_id = n.turn_id
    left join public.agent_messages m on m.message_id = s.message_id and m.role = 'assistant'
  )
  select coalesce(jsonb_agg(distinct jsonb_build_object(
    'source', b.source, 'age_s', extract(epoch from now() - d.open_at), 'closed', d.closed_at is not null, 'id', d.id, 'tenant_key', d.tenant_key,
    'chat_id', d.chat_id, 'chat_type', d.chat_type, 'kind', d.kind, 'token', d.token, 'actor_id', d.actor_id,
    'actor_tenant', d.actor_tenant)), '[]')
  from behind b join public.agent_turns t on t.id = b.turn_id and t.tenant_key = p_tenant_key
  cross join lateral unnest(t.read_messages || t.given) g
  join bot_private.told_documents d on d.id = substr(g, 5)::bigint and d.tenant_key = p_tenant_key
  where g ~ '^doc:[0-9]{1,18}$'
$$;

-- Feishu said p_ago_s ago that everybody can open it.
create or replace function public.note_document_open(p_id bigint, p_ago_s double precision) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  update bot_private.told_documents set open_at = greatest(open_at, now() - p_ago_s * interval '1 second')
  where id = p_id
$$;
