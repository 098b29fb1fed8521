-- Purpose: a chat's history from before the bot came: asked for, read page by page, found by recall, taken out again.
--
-- A page is stored with its place in one transaction, and only where the import stands at that place: a page that
-- comes twice, or of a worker that was thought dead, changes nothing. An imported message is no turn: nobody's
-- history, working memory or summary holds it, and recall finds it in a place of its own.

-- The place of a chat's imported messages in what recall searches.
create or replace function bot_private.import_place(p_tenant_key text, p_chat_id text) returns bigint
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$ select bot_private.recall_number(p_tenant_key, 'import ' || p_chat_id) $$;

-- The id of an imported message: below zero, in the order of time. Two of one millisecond differ by what follows
-- from message_id; p_again: they do not.
create or replace function bot_private.imported_id(p_sent_ms bigint, p_message_id text, p_again integer)
returns bigint
language sql immutable parallel safe security invoker
return -9223372036854775807 + (p_sent_ms << 20) + ((hashtextextended(p_message_id, 0) & 1048575) + p_again);

create or replace function bot_private.import_json(i public.chat_imports) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'id', i.id, 'tenant_key', i.tenant_key, 'chat_id', i.chat_id, 'chat_type', i.chat_type,
    'started_by', i.started_by, 'since_ms', floor(extract(epoch from i.since) * 1000)::bigint,
    'until_ms', floor(extract(epoch from i.until) * 1000)::bigint, 'state', i.state, 'phase', i.phase,
    'position', i.position, 'estimated', i.estimated, 'pages', i.pages, 'messages', i.messages,
    'report', i.report, 'error', i.error,
    'started_ms', floor(extract(epoch from i.created_at) * 1000)::bigint,
    'updated_ms', floor(extract(epoch from i.updated_at) * 1000)::bigint,
    'finished_ms', floor(extract(epoch from i.finished_at) * 1000)::bigint)
$$;

-- Under a token only who manages the chat may go on.
create or replace function bot_private.require_manager(p_chat_id text, p_tenant_key text) returns boolean
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  if current_user <> 'authenticated' then
    return true;
  end if;
  if not exists (
    select from public.chat_managers m
    where m.chat_id = p_chat_id and m.tenant_key = p_tenant_key and m.open_id = public.claim('actor')
      and (m.role = 'adder' or m.seen_at > now() - interval '10 minutes')) then
    raise exception 'only who manages the chat may import its history' using errcode = 'PT403';
  end if;
  return true;
end
$$;

-- Begins an import, or lets the one that is there reach further back; one that was broken off is read again. Of a
-- history that is being removed nothing is begun. p_since_ms null: everything.
create or replace function public.start_import(
  p_chat_id text, p_tenant_key text, p_chat_type text, p_since_ms bigint, p_until_ms bigint,
  p_estimated integer default 0
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_size constant boolean := bot_private.require_size('p_chat_id', p_chat_id, 256)
    and bot_private.require_size('p_tenant_key', p_tenant_key, 256)
    and bot_private.require_size('p_chat_type', p_chat_type, 16);
  v_place constant boolean := bot_private.require_place(p_chat_id);
  v_manager constant boolean := bot_private.require_manager(p_chat_id, p_tenant_key);
  v_by constant text := case when current_user = 'authenticated' then public.claim('actor') else '' end;
  v_import public.chat_imports;
begin
  insert into public.chat_imports as i (tenant_key, chat_id, chat_type, started_by, since, until, estimated)
  values (p_tenant_key, p_chat_id, p_chat_type, v_by, to_timestamp(p_since_ms / 1000.0),
          to_timestamp(p_until_ms / 1000.0), greatest(p_estimated, 0))
  on conflict (tenant_key, chat_id) do update set
    started_by = v_by,
    since = case when i.since is null or p_since_ms is null then null
            else least(i.since, to_timestamp(p_since_ms / 1000.0)) end,
    until = greatest(i.until, to_timestamp(p_until_ms / 1000.0)),
    state = 'running', phase = 'chat', position = '', estimated = greatest(p_estimated, 0), pages = 0,
    report = '{}', error = '', updated_at = now(), finished_at = null
    where i.state <> 'removing'
  returning * into v_import;
  if v_import.id is null then
    select * into v_import from public.chat_imports i
    where i.tenant_key = p_tenant_key and i.chat_id = p_chat_id;
  end if;
  return bot_private.import_json(v_import);
end
$$;

-- The import of a chat, for everybody in it; null: there is none.
create or replace function public.get_import(p_chat_id text, p_tenant_key text) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select bot_private.import_json(i) from public.chat_imports i
  where i.chat_id = p_chat_id and i.tenant_key = p_tenant_key
    and bot_private.require_place(p_chat_id)
$$;

-- Pauses an import, lets it go on (also after a failure), or begins to remove it: p_state is paused, running or
-- removing. What is not in a state for that stays as it is. Returns the import; null: there is none.
create or replace function public.set_import_state(p_chat_id text, p_tenant_key text, p_state text)
returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_size constant boolean := bot_private.require_size('p_state', p_state, 16)
    and bot_private.require_size('p_chat_id', p_chat_id, 256);
  v_place constant boolean := bot_private.require_place(p_chat_id);
  v_manager constant boolean := bot_private.require_manager(p_chat_id, p_tenant_key);
  v_import public.chat_imports;
begin
  if p_state not in ('paused', 'running', 'removing') then
    raise exception 'an import is paused, running or removing, not %', p_state using errcode = 'PT400';
  end if;
  update public.chat_imports i set state = p_state, error = '', updated_at = now()
  where i.chat_id = p_chat_id and i.tenant_key = p_tenant_key
    and i.state = any (case p_state when 'paused' then '{running}'
                       when 'running' then '{paused,failed}'
                       else '{running,paused,done,failed}' end::text[])
  returning * into v_import;
  if v_import.id is null then
    select * into v_import from public.chat_imports i
    where i.chat_id = p_chat_id and i.tenant_key = p_tenant_key;
  end if;
  return case when v_import.id is not null then bot_private.import_json(v_import) end;
end
$$;

create or replace function public.import_by_id(p_import_id integer) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$ select bot_private.import_json(i) from public.chat_imports i where i.id = p_import_id $$;

-- All imports, the latest first; with p_at_work those that are being read or removed.
create or replace function public.list_imports(p_at_work boolean default false) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(bot_private.import_json(i) order by i.updated_at desc, i.id), '[]')
  from public.chat_imports i
  where not p_at_work or i.state in ('running', 'removing')
$$;

-- What recall searches gets the words of these messages.
-- What recall knows of an imported message beside its words: its month, and that it asks something. No word is
-- written like these.
create or replace function bot_private.import_marks(p_sent_at timestamptz, p_content text) returns text[]
language sql stable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
  select array[to_char(p_sent_at at time zone 'UTC', '@YYYY-MM')]
    || case when p_content ~ '[?？谁吗哪]|什么|多少|怎么样' then array['?'] end
$$;

create or replace function bot_private.index_imported(p_ids bigint[]) returns void
language sql volatile security definer set search_path = pg_catalog, pg_temp
as $$
  insert into bot_private.turn_words (first_id, place, thread, asked_at, length, words)
  select m.id, p.place,
         bot_private.recall_number(i.tenant_key, concat_ws(' ', 'import', i.chat_id, m.root_id)),
         m.sent_at, cardinality(t.tokens), bot_private.recall_words(p.place, t.tokens || bot_private.import_marks(m.sent_at, m.content))
  from public.imported_messages m
  join public.chat_imports i on i.id = m.import_id
  cross join lateral (select bot_private.import_place(i.tenant_key, i.chat_id) as place offset 0) p
  cross join lateral (
    select bot_private.recall_tokens(concat_ws(e'\n', nullif(m.author_name, ''), m.content)) as tokens offset 0) t
  where m.id = any (p_ids)
  on conflict (first_id) do nothing
$$;

-- How many messages the imports of places hold.
create or replace function bot_private.imports_size(p_places bigint[]) returns bigint
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(sum(i.messages), 0) from public.chat_imports i
  where i.tenant_key = coalesce(public.claim('tenant_key'), '')
    and bot_private.import_place(i.tenant_key, i.chat_id) = any (p_places)
$$;

-- Imported messages of p_places, read since p_joined, worth weighing for p_terms beside those that recall_likely finds,
-- p_enough at most: of the time
-- that is asked about those with any of the words, and else those with two of them that are common in the chat.
create or replace function bot_private.imports_likely(
  p_places bigint[], p_joined timestamptz[], p_terms text[], p_weights double precision[], p_since timestamptz, p_until timestamptz,
  p_enough integer
) returns bigint[]
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_months text[] := '{}';
  most_terms constant integer := 7;
  most_months constant integer := 14;
  each constant integer := 50;
begin
  if p_until < p_since + interval '1 month' * most_months then
    v_months := array(
      select to_char(m, '@YYYY-MM') from generate_series(
        date_trunc('month', p_since at time zone 'UTC'), (p_until - interval '1 second') at time zone 'UTC',
        interval '1 month') m);
  end if;
  return array(
    with terms as materialized (
      select w.n, w.weight, t.term from unnest(p_weights) with ordinality w (weight, n)
      join unnest(p_terms) with ordinality t (term, n) using (n)
      where w.weight is not null order by w.weight desc, t.n limit most_terms
    ),
    keys as materialized (
      select p.place, p.joined, t.n, t.weight, bot_private.recall_word(p.place, t.term) as key
      from unnest(p_places, p_joined) p (place, joined) cross join terms t
    ),
    hits as (
      select k.n, r.first_id
      from keys k cross join unnest(v_months) m (month), lateral (
        select w.first_id from bot_private.turn_words w
        where w.words @> array[k.key, bot_private.recall_word(k.place, m.month)] and w.place + 0 = k.place
          and w.asked_at >= k.joined and w.asked_at >= p_since and w.asked_at < p_until limit each) r
      union
      select unnest(array[a.n, b.n]), r.first_id
      from keys a join keys b on b.place = a.place and a.n < b.n, lateral (
        select w.first_id from bot_private.turn_words w
        where w.words @> array[a.key, b.key] and w.place + 0 = a.place and w.asked_at >= a.joined limit each) r
      where v_months = '{}'
    )
    select h.first_id from hits h join terms t using (n)
    group by h.first_id order by sum(t.weight) desc, h.first_id desc limit p_enough);
end
$$;

-- Of p_ids the imported messages, as recall tells them: turns without an answer.
create or replace function bot_private.imported_told(p_ids bigint[]) returns table (
  id bigint, turn_id text, conversation_id text, chat_id text, actor_id text, actor_name text, created_at timestamptz,
  question text, answer text, feishu_id text, import_id integer, "position" integer)
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select m.id, 'import:' || m.message_id, '', i.chat_id, m.author_id, m.author_name, m.sent_at, m.content,
         null::text, m.message_id, i.id, m.position
  from public.imported_messages m join public.chat_imports i on i.id = m.import_id
  where m.id = any (p_ids)
$$;

-- Stores what one page of an import held, where it still is `running`, in p_phase and at p_at; p_thread_id: the
-- thread that the page is of. p_page: {messages: [{message_id, root_id, author_id, author_name, sent_ms, content,
-- position}],
-- threads: [thread_id], memberships: [{name, at_ms, joined}], counts: {kind: n}, next_position}. Left out are
-- messages from outside of the asked time, that were taken back, that the bot was sent itself, and those from
-- before somebody had the bot forget them. Returns the import as it is then.
create or replace function public.store_import_page(
  p_import_id integer, p_phase text, p_at text, p_page text, p_thread_id text default ''
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_size constant boolean := bot_private.require_size('p_page', p_page, 16777216);
  v_page constant jsonb := p_page;
  v_next constant text := coalesce(v_page ->> 'next_position', '');
  -- who takes a message back comes before this, and is known of, or after it, and finds the message
  v_besides constant boolean := bot_private.besides_taking_back();
  v_import public.chat_imports;
  v_ids bigint[] := '{}';
  v_added bigint[];
  v_all boolean;
begin
  select * into v_import from public.chat_imports i where i.id = p_import_id for update;
  if v_import.id is null then
    return null;
  end if;
  if v_import.state <> 'running' or v_import.phase <> p_phase or p_at is distinct from (
    case when p_phase = 'threads' then (
      select t.position from bot_private.import_threads t
      where t.import_id = p_import_id and t.thread_id = p_thread_id and not t.is_read)
    else v_import.position end) then
    return bot_private.import_json(v_import);
  end if;

  for n in 0 .. 9 loop  -- two of one millisecond that have one id are told apart in the second round
    with kept as materialized (
      select r.* from jsonb_to_recordset(v_page -> 'messages') as r (
        message_id text, root_id text, author_id text, author_name text, sent_ms bigint, content text,
        position integer)
      where r.sent_ms < extract(epoch from v_import.until) * 1000
        and (v_import.since is null or r.sent_ms >= extract(epoch from v_import.since) * 1000)
        and not exists (select from public.imported_messages m
                        where hashtext(m.message_id) = hashtext(r.message_id) and m.message_id = r.message_id)
        and not exists (select from public.recalled_messages t where t.message_id = r.message_id)
        and not exists (select from public.agent_turns t where t.id = r.message_id)
        and not exists (select from public.forgotten_people f
                        where f.mark = public.person_mark(r.author_id)
                          and f.at > to_timestamp(r.sent_ms / 1000.0))
    ), added as (
      insert into public.imported_messages
        (id, sent_at, import_id, position, tenant_key, message_id, root_id, author_id, author_name, content)
      select distinct on (k.message_id) bot_private.imported_id(k.sent_ms, k.message_id, n),
             to_timestamp(k.sent_ms / 1000.0), p_import_id, coalesce(k.position, 0), v_import.tenant_key,
             k.message_id, nullif(k.root_id, ''), k.author_id,
             k.author_name, k.content
      from kept k
      on conflict do nothing
      returning id
    )
    select array(select id from added), (select count(distinct message_id) from kept)
      = (select count(*) from added) as is_all
    into v_added, v_all;
    v_ids := v_ids || v_added;
    exit when v_all;
  end loop;
  perform bot_private.index_imported(v_ids);

  insert into bot_private.import_threads (import_id, thread_id)
  select distinct p_import_id, t from jsonb_array_elements_text(v_page -> 'threads') t
  on conflict do nothing;
  insert into bot_private.import_joins (import_id, name, at, joined)
  select distinct p_import_id, m.name, to_timestamp(m.at_ms / 1000.0), m.joined
  from jsonb_to_recordset(v_page -> 'memberships') as m (name text, at_ms bigint, joined boolean)
  where m.name <> ''
  on conflict do nothing;
  if p_phase = 'threads' then
    update bot_private.import_threads t set position = v_next, is_read = v_next = ''
    where t.import_id = p_import_id and t.thread_id = p_thread_id;
  end if;
  update public.chat_imports i set
    phase = case when p_phase = 'chat' and v_next = '' then 'threads' else i.phase end,
    position = case when p_phase = 'chat' then v_next else i.position end,
    pages = i.pages + 1, messages = i.messages + cardinality(v_ids),
    report = (
      select i.report || coalesce(jsonb_object_agg(
        c.key, coalesce((i.report ->> c.key)::integer, 0) + c.value::integer), '{}')
      from jsonb_each_text(v_page -> 'counts') c),
    updated_at = now()
  where i.id = p_import_id
  returning * into v_import;
  return bot_private.import_json(v_import);
end
$$;

-- A thread that is still to be read, {thread_id, position}; null: there is none, and the members come next.
create or replace function public.next_import_thread(p_import_id integer) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_thread jsonb;
begin
  perform from public.chat_imports i where i.id = p_import_id and i.state = 'running' for update;
  if not found then
    return null;
  end if;
  select jsonb_build_object('thread_id', t.thread_id, 'position', t.position) into v_thread
  from bot_private.import_threads t
  where t.import_id = p_import_id and not t.is_read order by t.thread_id limit 1;
  if v_thread is null then
    update public.chat_imports i set phase = 'finishing' where i.id = p_import_id and i.phase = 'threads';
  end if;
  return v_thread;
end
$$;

-- Since when each of p_members (JSON object: open_id -> array of the names known of them) may read an import, by
-- what the messages of the system said. They hold names only, and people rename themselves and share names. So what
-- is not proven hides more, and never less:
--   The latest date on which a name joined counts for everyone who is known by it.
--   A name that left last and is there all the same came back unseen: it reads nothing.
--   Whoever has no date may have joined under any name, unless they wrote before and nobody has left in between.
--   A name that joined last and that no member is known by counts for all of them, and for those, too, who may have
--   left under such a name since their date. That somebody else wrote under a name proves nothing.
--   If nobody joined in what was read, everyone was there before it.
create or replace function bot_private.import_dates(p_import_id integer, p_members jsonb)
returns table (open_id text, since timestamptz)
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  with names as materialized (
    select m.key as open_id, n.name
    from jsonb_each(p_members) m, jsonb_array_elements_text(m.value) n (name)
  ), moves as materialized (  -- epoch: how often somebody had left
    select j.name, j.at, j.joined, exists (select from names n where n.name = j.name) as is_known,
           count(*) filter (where not j.joined) over (order by j.at) as epoch
    from bot_private.import_joins j where j.import_id = p_import_id
  ), events as materialized (
    select m.name, bool_and(m.is_known) as is_known, max(m.at) filter (where m.joined) as joined_at,
           max(m.at) filter (where not m.joined) as left_at
    from moves m group by m.name
  ), unknown as (
    select max(e.joined_at) as at from events e
    where not e.is_known and e.joined_at is not null and coalesce(e.left_at < e.joined_at, true)
  ), own as materialized (
    select m.open_id, max(
        case when coalesce(e.left_at <= e.joined_at, e.left_at is null) then e.joined_at else 'infinity' end) as since
    from (select jsonb_object_keys(p_members) as open_id) m
    left join (names n join events e using (name)) using (open_id)
    group by m.open_id
  ), timeline as (
    select t.author_id, t.at, sum(t.leaves) over (order by t.at) as epoch
    from (
      select null as author_id, m.at, 1 as leaves from moves m where not m.joined
      union all
      select i.author_id, i.sent_at, 0 from public.imported_messages i where i.import_id = p_import_id) t
  ), written as materialized (
    select t.author_id as open_id, t.epoch, min(t.at) as first_at
    from timeline t join own o on o.open_id = t.author_id and o.since is null
    group by t.author_id, t.epoch
  ), others as (
    select o.open_id, max(m.at) as at
    from own o cross join moves m left join written w on w.open_id = o.open_id and w.epoch = m.epoch
    where o.since is null and m.joined and (w.first_at is null or m.at <= w.first_at)
    group by o.open_id
  )
  select o.open_id, case
    when o.since is null then greatest('-infinity', u.at, (select p.at from others p where p.open_id = o.open_id))
    when exists (
      select from moves l where not l.joined and not l.is_known and l.at > o.since and l.at <= u.at) then u.at
    else o.since end
  from own o cross join unknown u
$$;

-- The import has been read, and who is in the chat is known (p_members as above), or '{}': nobody tells, and the
-- report says so. Returns it; null: it is gone.
create or replace function public.finish_import(p_import_id integer, p_members text) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_size constant boolean := bot_private.require_size('p_members', p_members, 4194304);
  v_import public.chat_imports;
begin
  select * into v_import from public.chat_imports i where i.id = p_import_id for update;
  if v_import.state = 'running' and v_import.phase = 'finishing' then
    delete from bot_private.import_members where import_id = p_import_id;
    insert into bot_private.import_members (import_id, open_id, since)
    select p_import_id, d.open_id, d.since from bot_private.import_dates(p_import_id, p_members::jsonb) d;
    delete from bot_private.import_joins where import_id = p_import_id;
    delete from bot_private.import_threads where import_id = p_import_id;
    update public.chat_imports i
    set state = 'done', position = '', finished_at = now(), updated_at = now(),
        report = i.report - 'members_unknown' || case
          when i.chat_type = 'group' and p_members::jsonb = '{}' then '{"members_unknown": 1}' else '{}' end::jsonb
    where i.id = p_import_id returning * into v_import;
  end if;
  return case when v_import.id is not null then bot_private.import_json(v_import) end;
end
$$;

-- The import cannot go on; p_error is a kind, nobody's words. Returns it.
create or replace function public.fail_import(p_import_id integer, p_error text) returns jsonb
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  update public.chat_imports i set state = 'failed', error = left(p_error, 200), updated_at = now()
  where i.id = p_import_id and i.state = 'running'
  returning bot_private.import_json(i)
$$;

-- One step of removing: first the messages that answers were given, with what was made from them, then the others,
-- p_most at a time, and at last the import itself. Returns {removed, import}; import null: it is gone.
create or replace function public.remove_import_messages(p_import_id integer, p_most integer default 5000)
returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_import public.chat_imports;
  v_ids text[];
  v_texts text[];
  v_removed integer := 0;
  given_at_once constant integer := 50;
begin
  perform pg_advisory_xact_lock(bot_private.sources_lock());
  select * into v_import from public.chat_imports i where i.id = p_import_id for update;
  if v_import.id is null or v_import.state <> 'removing' then
    return jsonb_build_object('removed', 0, 'import',
      case when v_import.id is not null then bot_private.import_json(v_import) end);
  end if;
  -- an answer that is being made of it is made again
  if exists (select from public.agent_turns t
             where t.updated_at > v_import.created_at and t.given && array['import:' || p_import_id]
                or t.state in ('open', 'pending') and t.tenant_key = v_import.tenant_key) then
    perform public.note_gone(array['import:' || p_import_id], v_import.chat_id);
  end if;
  select array_agg(g.message_id), array_agg(g.content) into v_ids, v_texts
  from (
    select m.message_id, m.content
    from (
      select distinct unnest(bot_private.given_ids(t.given_messages, t.given)) as source from public.agent_turns t
      where t.created_at >= v_import.created_at and t.given && array['import:' || p_import_id]) s
    join public.imported_messages m
      on hashtext(m.message_id) = hashtext(s.source) and m.message_id = s.source and m.import_id = p_import_id
    limit given_at_once) g;
  if v_ids is not null then
    perform public.take_back_sources(v_ids, v_texts, '{}');
    delete from public.imported_messages m
    where hashtext(m.message_id) in (select hashtext(i) from unnest(v_ids) i) and m.message_id = any (v_ids)
      and m.import_id = p_import_id;
    get diagnostics v_removed = row_count;
  else
    delete from public.imported_messages m where m.id = any (array(
      select d.id from public.imported_messages d where d.import_id = p_import_id limit p_most));
    get diagnostics v_removed = row_count;
    if v_removed < p_most then
      delete from public.chat_imports where id = p_import_id;
      return jsonb_build_object('removed', v_removed, 'import', null);
    end if;
  end if;
  return jsonb_build_object('removed', v_removed, 'import', (
    select bot_private.import_json(i) from public.chat_imports i where i.id = p_import_id));
end
$$;

-- How many imported messages of the token's chat are the person's own, for that person.
create or replace function public.count_imported(p_chat_id text, p_tenant_key text) returns bigint
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select case when bot_private.require_size('p_tenant_key', p_tenant_key, 256)
    and bot_private.require_place(p_chat_id) then bot_private.own_imported() end
$$;

-- Imported messages of the group p_chat_id with most of p_asked that its sender may read and not all of its members.
create or replace function bot_private.imports_that_help(p_chat_id text, p_asked text[]) returns bigint[]
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off
set plan_cache_mode = force_generic_plan
as $$
declare
  v_import public.chat_imports;
  v_since timestamptz;
  v_place bigint;
  looked_at constant integer := 300;
begin
  select i.* into v_import from public.chat_imports i
  where i.chat_id = p_chat_id and i.tenant_key = coalesce(public.claim('tenant_key'), '');
  v_since := (bot_private.readable_imports() ->> v_import.id::text)::timestamptz;
  if v_since is null then
    return '{}';
  end if;
  v_place := bot_private.import_place(v_import.tenant_key, v_import.chat_id);
  return array(
    select r.first_id
    from (
      select w.first_id, w.asked_at, w.words from bot_private.turn_words w
      where w.words && bot_private.recall_words(v_place, p_asked) and w.place + 0 = v_place
        and w.asked_at >= v_since and w.asked_at < bot_private.import_since(v_import.id, null)
      limit looked_at) r,
      lateral (select count(*) as n from unnest(bot_private.recall_words(v_place, p_asked)) k
               where k = any (r.words)) hits
    order by hits.n desc, r.asked_at desc limit 30);
end
$$;

-- Messages that go are counted no more.
create or replace function public.count_import_messages() returns trigger
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  update public.chat_imports i set messages = greatest(i.messages - g.n, 0)
  from (select import_id, count(*)::integer as n from gone group by import_id) g
  where i.id = g.import_id;
  return null;
end
$$;

-- How many imported messages of the chat the person of the token wrote. They may know of all, whoever may read them.
create or replace function bot_private.own_imported() returns bigint
language sql stable security definer set search_path = pg_catalog, pg_temp
as $$
  select count(*)
  from public.chat_imports i join public.imported_messages m on m.import_id = i.id
  where i.chat_id = (select public.claim('chat_id'))
    and i.tenant_key = coalesce((select public.claim('tenant_key')), '')
    and i.state <> 'removing' and m.author_id = (select public.claim('actor'))
$$;
