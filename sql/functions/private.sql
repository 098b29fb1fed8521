-- Purpose: private knowledge in public places: whether there is any, and the offer to show it.
--
-- These run under a token of a place where only the person reads (public.p2p_chats), after the group was answered.

-- The p2p chat of a person, for what they alone are shown: the one that was used last; null where none is known.
-- A chat in which anybody else was ever heard is none. p_parent_id: what they were shown of that turn already stays
-- where it is.
create or replace function public.p2p_chat(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text,
  p_parent_id text default null
) returns text
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_identity constant boolean :=
    bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_own constant text := public.own_tenant();
begin
  return coalesce((
    select t.chat_id from public.agent_turns t
    where t.parent_id = p_parent_id and t.origin = 'private_answer' and t.cause = ''
      and t.user_id = p_actor_id and t.actor_id = p_user_id and t.tenant_key = p_tenant_key), (
    select p.chat_id
    from public.p2p_chats p
    where p.open_id = p_actor_id and p.open_id = p_user_id and p.tenant_key = p_tenant_key
      and p.chat_id <> p_actor_id and coalesce(p.person_tenant, v_own) = v_own
      and not exists (
        select from public.agent_chats c
        where c.chat_id = p.chat_id and (c.user_id <> p_actor_id or c.chat_type = 'group'))
    order by (
      select max(c.updated_at) from public.agent_chats c
      where c.chat_id = p.chat_id and c.user_id = p_actor_id) desc nulls last, p.chat_id
    limit 1));
end
$$;

-- How many of p_asked stand in a text: a term is the beginning of all forms of a word.
create or replace function bot_private.terms_in(p_asked text[], p_text text) returns bigint
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
  select count(*) from unnest(p_asked) t where strpos(lower(p_text), t) > 0
$$;

-- Everyday words, above all those of asking, as recall cuts them.
create or replace function bot_private.asking_words() returns text[]
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
  select bot_private.recall_tokens(
    'i me my mine we us our you your he him his she her they them their can could would should will
     may might must please tell say said told know remember remind again give show find need want
     about there here any some so if or not no yes just also more much many now then today one ones
     hi hello hey thanks thank ok anybody anyone somebody someone
     请问 请告 告诉 知道 记得 可以 帮忙 一下 谢谢 现在 今天 是谁 谁知 如何')
$$;

-- What a question is about: its terms as recall cuts them, without the words of asking.
create or replace function bot_private.asked_terms(p_query text) returns text[]
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(array_agg(distinct t), '{}')
  from unnest(bot_private.recall_tokens(left(p_query, 500))) t
  where t <> all (bot_private.asking_words())
$$;

-- Whether somebody who speaks for themselves in the group p_chat_id can read in other places, as far as is
-- known: what they are told privately comes from there. Null: their token does not say.
create or replace function bot_private.reads_elsewhere(
  p_user_id text, p_actor_id text, p_tenant_key text, p_chat_id text
) returns table (elsewhere boolean)
language sql stable security invoker
begin atomic
  select case when p_user_id = p_actor_id then
    exists (
      select from public.chat_members m
      where m.open_id = p_actor_id and m.tenant_key = o.tenant_key and m.chat_id <> p_chat_id
        and m.left_at is null and m.seen_at > now() - public.membership_lasts())
    or exists (
      select from public.p2p_chats p
      where p.open_id = p_actor_id and p.tenant_key = p_tenant_key and p.chat_id <> p_actor_id
        and coalesce(p.person_tenant, o.tenant_key) = o.tenant_key)
    or exists (
      select from public.chat_imports i
      where i.chat_id = p_chat_id and i.tenant_key = p_tenant_key and i.chat_type = 'group'
        and i.state <> 'removing'
        and bot_private.import_since(i.id, p_actor_id) < bot_private.import_since(i.id, null)) end
  from (select public.own_tenant() as tenant_key) o;
end;

-- What the person told the bot where the group p_but_chat_id cannot read it, in p2p or in other groups, and what they may
-- read of that group's imported history while not all of it may, that shares a word with p_query: JSON array of
-- {told, kind}, kind being said, fact or note, best first. Questions take no place of others.
-- A command tells nothing, and neither does what was pressed or shown to them of a question. Of an answer that
-- read a file, or another message, that answer is told too. However much was said this looks at a bounded number
-- of turns: those that the index of words gives, as for recall, and the newest, for words that are too common.
create or replace function public.private_sources(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text,
  p_query text, p_but_chat_id text
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
-- the planner does not know how short the lists are: it would rather read the table
set enable_seqscan = off
set max_parallel_workers_per_gather = 0
set plan_cache_mode = force_generic_plan
as $$
declare
  v_size constant boolean := bot_private.require_size('p_query', p_query, 1048576);
  v_identity constant boolean :=
    bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  v_asked constant text[] := bot_private.asked_terms(p_query);
  v_chats constant text[] := array(
    select c from jsonb_object_keys(public.readable_chats()) c
    where c not in (p_but_chat_id, p_actor_id));
  most constant integer := 12;
  characters constant integer := 4000;
begin
  if cardinality(v_asked) = 0
     or cardinality(v_chats) = 0 and bot_private.imports_that_help(p_but_chat_id, v_asked) = '{}' then
    return '[]';
  end if;
  return (
    with turns as materialized (
      select distinct m.turn_id from public.agent_messages m
      where m.id = any (bot_private.turns_that_help(
              p_conversation_id, v_asked, array[p_but_chat_id, p_actor_id]))
        and m.chat_id = any (v_chats) and m.tenant_key = p_tenant_key and m.actor_id = p_actor_id
    ),
    said as (
      select string_agg(left(m.content, characters), e'\n' order by m.id) as told
      from turns join public.agent_turns t on t.id = turns.turn_id
        join public.agent_messages m on m.turn_id = t.id
      where t.origin = 'message' and t.intended ->> 'reason' is distinct from 'command'
        and m.status <> 'failed' and (m.role = 'user' or not t.read_messages <@ bot_private.cited_ids(t.shown))
      group by t.id
    ),
    imported as (
      select left(m.content, characters) as told from public.imported_messages m
      where m.id = any (bot_private.imports_that_help(p_but_chat_id, v_asked))
    ),
    facts as (
      select e.key || ': ' || left(e.value, characters) as told
      from public.agent_working_memory w, jsonb_each_text(w.content) e
      where w.chat_id = any (v_chats) and w.tenant_key = p_tenant_key and w.scope = 'user'
        and w.user_id = p_actor_id and w.actor_id = p_actor_id
    ),
    notes as (
      select concat_ws(': ', n.title, array_to_string(n.tags, ' '), left(n.body, characters)) as told
      from public.agent_notes n
      where n.chat_id = any (v_chats) and n.tenant_key = p_tenant_key and n.user_id = p_actor_id
        and n.shared_chat_id is distinct from p_but_chat_id
      order by n.updated_at desc limit 200
    )
    select coalesce(jsonb_agg(jsonb_build_object('told', b.told, 'kind', b.kind) order by b.terms desc), '[]')
    from (
      select k.told, k.kind, bot_private.terms_in(v_asked, k.told) as terms
      from (
        select told, 'said' as kind from said
        union all select told, 'said' from imported
        union all select told, 'fact' from facts
        union all select told, 'note' from notes) k
      where bot_private.terms_in(v_asked, k.told) > 0
      order by k.told ~ '[?？吗呢]\s*$', terms desc limit most) b);
end
$$;

-- Words of everyday talk that a text has, as recall cuts them, without those of asking; Chinese ones as they are,
-- with pairs that may be names for all that a word of grammar has one of their characters (成都). Of a text
-- without any word that tells, where there are none of these: all of its words.
create or replace function bot_private.everyday_terms(p_text text, p_telling text[]) returns text[]
language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_tokens constant text[] := bot_private.recall_tokens(p_text);
  v_asking constant text[] := bot_private.asking_words();
  v_terms text[] := array(
    select distinct w from unnest(v_tokens) w
    where w = any (bot_private.everyday_words()) and w <> all (v_asking));
begin
  if octet_length(p_text) > length(p_text) then
    v_terms := v_terms || array(
      select w from unnest(bot_private.everyday_chinese()) w
      where strpos(p_text, w) > 0 and w ~ '..'
        and w !~ '什么|怎|哪|多[少久大长]|几|一|[我你他她它各]|请|谢|告诉|知道|提醒|时候|没|不|[这那]|[之以]|[是的有]'
      union
      select w from unnest(bot_private.recall_tokens(bot_private.without_everyday_chinese(p_text))) w
      where w ~ '^[一-鿿]{2}$' and w ~ '[都会去来定想作为进出]'
        and w !~ '[一在是有被把跟和与及或但很也就还又再才只更最吗呢谁给让向从对那这哪几没不请帮吧呀要说用问看找带改换到]');
  end if;
  return case when cardinality(v_terms) + cardinality(p_telling) > 0 then v_terms
    else array(select distinct w from unnest(v_tokens) w where w <> all (v_asking)) end;
end
$$;

-- By which words texts are compared. p_texts: JSON array of at most 40 strings, of which 1,000 characters are read;
-- returns for each {telling, everyday}: the words by which one text is seen to tell another, and those of everyday talk.
create or replace function public.compared_terms(
  p_conversation_id text, p_user_id text, p_actor_id text, p_texts text
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_size constant boolean := bot_private.require_size('p_texts', p_texts, 262144);
  v_identity constant boolean :=
    bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
begin
  return (
    select coalesce(jsonb_agg(jsonb_build_object(
      'telling', w.telling, 'everyday', bot_private.everyday_terms(t.text, w.telling)) order by t.place), '[]')
    from (
      select left(e.value, 1000) as text, e.ordinality as place
      from jsonb_array_elements_text(p_texts::jsonb) with ordinality e limit 40) t,
      lateral (select array(select bot_private.telling_terms(t.text)) as telling) w);
end
$$;

-- Stores the button that offers a private answer to the question p_turn_id, once: as a turn of its own where
-- only the person reads, so that it goes with that. p_offer_id: the id of the offer's turn. p_button: JSON as of
-- record_reply_with_buttons. p_thread: the thread of the question, or the group in whose main chat it stands.
-- Returns false where it was offered before, or anything else in that thread in the last hour.
create or replace function public.offer_private(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text,
  p_turn_id text, p_button text, p_offer_id text, p_thread text default null
) returns boolean
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_size constant boolean := bot_private.require_size('p_button', p_button, 16384);
  v_identity constant boolean :=
    bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  b constant jsonb := p_button;
  v_chat_id constant text := bot_private.chat_of(p_conversation_id);
begin
  perform pg_advisory_xact_lock(hashtextextended('offers ' || p_tenant_key || ' ' || p_actor_id, 0));
  if exists (
    select from public.agent_turns t
    where t.user_id = p_actor_id and t.tenant_key = p_tenant_key and t.offered_in = p_thread
      and t.created_at > now() - interval '1 hour')
  then
    return false;
  end if;
  insert into public.agent_chats (id, user_id, tenant_key, chat_id, chat_type, root_id)
  values (p_conversation_id, p_actor_id, p_tenant_key, v_chat_id, 'p2p',
          bot_private.root_of(p_conversation_id))
  on conflict (tenant_key, id, user_id) do nothing;
  insert into public.agent_turns  -- which answers nothing
    (id, conversation_id, user_id, actor_id, tenant_key, chat_id, state, origin, parent_id, offered_in)
  values (p_offer_id, p_conversation_id, p_actor_id, p_actor_id, p_tenant_key, v_chat_id,
          'cancelled', 'offer', p_turn_id, p_thread)
  on conflict do nothing;
  if not found then
    return false;
  end if;
  insert into public.agent_buttons
    (id, group_id, turn_id, chunk, ordinal, conversation_id, user_id, actor_id, tenant_key, chat_id,
     chat_type, kind, label, payload, expires_at)
  values (b ->> 'id', b ->> 'group_id', p_offer_id, 0, 1, p_conversation_id, p_actor_id,
          p_actor_id, p_tenant_key, v_chat_id, b ->> 'chat_type', 'show', b ->> 'label',
          b -> 'payload', now() + make_interval(secs => (b ->> 'lives_s')::integer));
  return true;
end
$$;

-- The offer to the question p_turn_id is shown by the card p_message_id, and goes with it. Returns whether
-- the question still stands: else the card is to be withdrawn. Waits for a taking back that is under way.
create or replace function public.keep_offer(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text,
  p_turn_id text, p_message_id text
) returns boolean
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  update public.agent_turns t set kept_cards = array[p_message_id]
  where t.parent_id = p_turn_id and t.origin = 'offer' and t.conversation_id = p_conversation_id
    and t.user_id = p_user_id;
  if found then
    return true;
  end if;
  perform bot_private.withdraw_own(
    array[p_message_id], bot_private.chat_of(p_conversation_id), p_tenant_key);
  return false;
end
$$;

-- The private answer of p_turn_id, not stored yet, was given the turns p_sources (JSON array of ids) with
-- the turns around them, the person's lasting facts and, p_with_notes, their notes. If one of those
-- messages was taken back meanwhile the turn is cancelled.
create or replace function public.draw_on(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text,
  p_turn_id text, p_sources text, p_with_notes boolean
) returns boolean
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_sources text[];
  v_gone boolean;
begin
  perform bot_private.require_size('p_sources', p_sources, 65536);
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  perform pg_advisory_xact_lock_shared(bot_private.sources_lock());
  v_sources := array(select jsonb_array_elements_text(p_sources::jsonb));
  v_sources := array(
    select unnest(v_sources)
    union select n.turn_id from public.agent_messages n
    where n.id = any (bot_private.turns_beside(array(
      select m.id from public.agent_messages m where m.turn_id = any (v_sources))))
    union select e.value ->> 'turn'
    from public.agent_working_memory w, jsonb_each(w.sources) e
    where w.user_id = p_actor_id and w.tenant_key = p_tenant_key
    union select e.value ->> 'turn'
    from public.agent_working_memory_history h, jsonb_each(h.was_sources) e
    where h.user_id = p_actor_id and h.tenant_key = p_tenant_key
    union select n.turn_id from public.agent_notes n
    where p_with_notes and n.user_id = p_actor_id and n.tenant_key = p_tenant_key
      and n.turn_id is not null);
  v_gone := exists (
    select from public.recalled_messages r where r.message_id = any (v_sources));
  update public.agent_turns t
  set drawn_on = v_sources, state = case when v_gone then 'cancelled' else t.state end
  where t.id = p_turn_id and t.user_id = p_user_id and t.conversation_id = p_conversation_id
    and t.state = 'open';
  return not v_gone;
end
$$;

-- The cards of a private answer as they were shown, for whom they were shown to.
create or replace function public.private_reply(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_turn_id text
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  return (
    select coalesce(jsonb_agg(m.content order by m.chunk), '[]')
    from public.agent_messages m
    where m.turn_id = p_turn_id and m.conversation_id = p_conversation_id
      and m.user_id = p_user_id and m.tenant_key = p_tenant_key
      and m.role = 'assistant' and m.status <> 'failed');
end
$$;

-- A person's chats with the bot alone are known by the turns that were begun there.
create or replace function public.keep_p2p_chat() returns trigger
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  insert into public.p2p_chats (tenant_key, open_id, chat_id, person_tenant)
  values (new.tenant_key, new.user_id, new.chat_id,
          case when public.claim('actor') is not null
          then coalesce(nullif(public.claim('actor_tenant'), ''), new.tenant_key) end)
  on conflict do nothing;
  return null;
end
$$;

-- What came of the offer to a question goes with it wherever it stands, and so do the cards; what was
-- shared in the group is the group's. What came of the question itself (`/memory`) keeps its words. A token of the
-- group reaches nothing in p2p, and passes no sources on.
create or replace function public.drop_private_answers() returns trigger
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_turns text[];
begin
  if exists (  -- what was said there is offered nothing, and what came of it stays
      select from public.p2p_chats p
      where p.open_id = old.actor_id and p.chat_id = old.chat_id and p.tenant_key = old.tenant_key) then
    return null;
  end if;
  v_turns := array(
    with recursive shown as (
      select t.id from public.agent_turns t
      where t.parent_id = old.turn_id and t.origin = 'offer'
        and t.user_id = old.actor_id and t.tenant_key = old.tenant_key
      union
      select t.id from shown s join public.agent_turns t on t.parent_id = s.id
      where t.chat_id <> old.chat_id and t.user_id = old.actor_id and t.tenant_key = old.tenant_key
    ) select id from shown);
  perform bot_private.withdraw_kept(t) from unnest(v_turns) t;
  perform bot_private.withdraw_own(array_agg(m.message_id), m.chat_id, m.tenant_key)
  from public.agent_messages m
  where m.turn_id = any (v_turns || array(
      select t.id from public.agent_turns t
      where t.parent_id = old.turn_id and t.origin = 'private_answer'))
    and m.role = 'assistant' and m.message_id is not null
  group by m.chat_id, m.tenant_key;
  if v_turns <> '{}' and current_user <> 'authenticated' then
    perform bot_private.pass_on_sources(v_turns);
  end if;
  delete from public.agent_turns where id = any (v_turns);
  delete from public.agent_chats  -- answers of earlier versions, too, whose offer nobody knows
  where id = 'feishu:' || old.actor_id || ':' || old.turn_id
    and chat_id = old.actor_id and user_id = old.actor_id and tenant_key = old.tenant_key;
  return null;
end
$$;
