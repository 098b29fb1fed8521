-- Purpose: which chats there are, and who is in which group, as it is learned in the background.
--
-- Every piece of news has a time: that of the event, or that at which a list was asked for. The later
-- one counts, in whatever order they arrive; where two are too near to tell, the person is out.
-- A chat is one to Feishu, so what is learned of it goes to its rows in all tenants.

-- A time in ms since epoch, never later than now.
create or replace function public.time_of_news(p_ms bigint) returns timestamptz
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select least(to_timestamp(p_ms / 1000.0), now())
$$;

-- How far apart two pieces of news must be before the order of their times is believed: Feishu's clock
-- and ours may differ, and its list may lag behind its events.
create or replace function public.doubtful_time() returns interval
language sql immutable security invoker set search_path = pg_catalog, pg_temp
as $$
  select interval '1 minute'
$$;

-- Stores where messages came from: a JSON array of {tenant_key, chat_id, chat_type, seen_ms}, with
-- chat_type group, p2p or null. A message later than the going of a chat means that it is back.
-- Returns how many chats are new.
create or replace function public.remember_chats(p_chats text) returns integer
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  with met as (
    -- in the order of the key, so that two workers never wait for each other in a circle
    select distinct on (s.tenant_key, s.chat_id)
      s.tenant_key, s.chat_id, s.chat_type, public.time_of_news(s.seen_ms) as active_at
    from jsonb_to_recordset(p_chats::jsonb)
      as s (tenant_key text, chat_id text, chat_type text, seen_ms bigint)
    order by s.tenant_key, s.chat_id, s.seen_ms desc
  ),
  stored as (
    insert into public.chats as c (tenant_key, chat_id, chat_type, active_at)
    select * from met
    on conflict (tenant_key, chat_id) do update set
      chat_type = coalesce(excluded.chat_type, c.chat_type),
      active_at = greatest(c.active_at, excluded.active_at),
      gone_at = case when c.gone_at >= excluded.active_at then c.gone_at end,
      due_at = case when c.gone_at < excluded.active_at then now() else c.due_at end,
      updated_at = now()
    returning xmax = 0 as is_new
  )
  select count(*)::integer from stored where is_new
$$;

-- Chats that the memory knows and this table does not, such as after a crash, become known without a type. A person's own place (public.p2p_chats) is none of Feishu's, nor is a thread of comments. Returns
-- how many.
create or replace function public.find_chats() returns integer
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  with used as (
    select c.tenant_key, c.chat_id, c.updated_at as at from public.agent_chats c
    where c.chat_id <> c.user_id
    union all
    select n.tenant_key, n.chat_id, n.created_at from public.agent_notes n
    where n.chat_id <> n.user_id
  ),
  stored as (
    insert into public.chats (tenant_key, chat_id, active_at)
    select u.tenant_key, u.chat_id, max(u.at)
    from used u
    where u.chat_id <> '' and not starts_with(u.chat_id, 'doc:') and not exists (
      select from public.chats c where c.tenant_key = u.tenant_key and c.chat_id = u.chat_id)
    group by u.tenant_key, u.chat_id
    order by u.tenant_key, u.chat_id
    on conflict do nothing
    returning 1
  )
  select count(*)::integer from stored
$$;

-- Takes chats that Feishu is to be asked about, so that no other worker does within ten minutes: those
-- without a type, if p_infos, and the members of groups in use, if p_members. All workers together get
-- at most p_a_minute chats. Returns an array of {chat_id, chat_type, named, asked_ms}; `named`: its name is
-- known, and whether it consists of topics.
create or replace function public.take_chats(
  p_a_minute integer, p_infos boolean, p_members boolean
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_left integer;
  v_taken jsonb;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('feishu_bot.take_chats', 0)) then
    return '[]';
  end if;
  select p_a_minute - count(distinct c.chat_id) into v_left
  from public.chats c where c.asked_at > now() - interval '1 minute';
  with due as (
    select c.chat_id
    from public.chats c
    where c.gone_at is null and c.due_at <= now() and c.chat_type is distinct from 'p2p'
      and case when c.chat_type is null then p_infos
          else p_members and (c.members_read_at is null or c.active_at > now() - interval '30 days')
          end
    group by c.chat_id order by min(c.due_at) limit greatest(v_left, 0)
  ),
  taken as (
    update public.chats c set asked_at = now(), due_at = now() + interval '10 minutes'
    where c.chat_id in (select d.chat_id from due d)
    returning c.chat_id, c.chat_type, c.name, c.topics
  ),
  one_each as (
    select t.chat_id, max(t.chat_type) as chat_type, bool_or(t.name <> '') and bool_or(t.topics is not null) as named
    from taken t group by t.chat_id
  )
  select coalesce(jsonb_agg(jsonb_build_object(
    'chat_id', o.chat_id, 'chat_type', o.chat_type, 'named', o.named,
    'asked_ms', floor(extract(epoch from now()) * 1000)::bigint)), '[]')
  into v_taken from one_each o;
  return v_taken;
end
$$;

-- What Feishu says of a chat: its type and whether it consists of topics, unless null, and its name as of
-- p_at_ms. Of two names the later one counts.
create or replace function public.describe_chat(
  p_chat_id text, p_chat_type text, p_name text, p_at_ms bigint, p_topics boolean default null
) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  update public.chats c
  set chat_type = coalesce(p_chat_type, c.chat_type),
      topics = coalesce(p_topics, c.topics),
      name = case when later.than_known then p_name else c.name end,
      name_seen_at = case when later.than_known then public.time_of_news(p_at_ms)
                     else c.name_seen_at end,
      updated_at = now()
  from (select k.tenant_key, k.chat_id,
          p_name <> '' and coalesce(k.name_seen_at < public.time_of_news(p_at_ms), true) as than_known
        from public.chats k where k.chat_id = p_chat_id order by k.tenant_key for update) later
  where c.tenant_key = later.tenant_key and c.chat_id = later.chat_id
$$;

-- A chat in each tenant that it is known in, for operators: tenant, type and name; of which there was word last
-- comes first.
create or replace function public.known_chats(p_chat_id text) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(jsonb_build_object(
    'tenant_key', c.tenant_key, 'chat_type', c.chat_type, 'name', c.name)
    order by c.gone_at nulls first, c.active_at desc nulls last, c.tenant_key), '[]')
  from public.chats c where c.chat_id = p_chat_id
$$;

-- Whether a group is known to consist of topics.
create or replace function public.is_topic_group(p_chat_id text) returns boolean
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select exists (select from public.chats c where c.chat_id = p_chat_id and c.topics)
$$;

-- Feishu did not say what was asked of it about a chat: asked again after p_wait_s seconds or, when
-- null, after a pause that grows from two minutes to six hours.
create or replace function public.postpone_chat(p_chat_id text, p_wait_s integer) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  update public.chats c
  set failures = case when p_wait_s is null then least(c.failures + 1, 20) else c.failures end,
      due_at = now() + coalesce(
        make_interval(secs => p_wait_s),
        least(interval '6 hours', interval '1 minute' * power(2, least(c.failures + 1, 20)))),
      updated_at = now()
  where c.chat_id = p_chat_id
$$;

-- Makes a group known, if it is not, and locks its rows: its members are written by one at a time.
create or replace function public.hold_group(p_tenant_key text, p_chat_id text) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  insert into public.chats (tenant_key, chat_id, chat_type)
  select p_tenant_key, p_chat_id, 'group'
  where not exists (select from public.chats c where c.chat_id = p_chat_id)
  on conflict do nothing;
  perform from public.chats c where c.chat_id = p_chat_id order by c.tenant_key for update;
end
$$;

-- The whole list of a group's members, a JSON array of {tenant_key, open_id}, as it was asked for at
-- p_asked_ms. Whoever is not in it is out; whoever comes new in a list that is not the first joins now.
-- A list older than what is known changes nothing. A list that still has somebody who has just left may lag behind
-- Feishu's events: they stay out, and the list is asked for again soon. Returns {members, joined, left}; null: too old.
create or replace function public.save_chat_members(
  p_chat_id text, p_members text, p_asked_ms bigint
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_asked constant timestamptz := public.time_of_news(p_asked_ms);
  v_due timestamptz := now() + interval '6 hours' * (0.75 + 0.25 * random());
  v_first boolean;
  v_members integer;
  v_joined integer;
  v_left integer;
  v_gone text[];
begin
  perform from public.chats c where c.chat_id = p_chat_id order by c.tenant_key for update;
  if not found or exists (select from public.chats c where c.chat_id = p_chat_id
             and (c.gone_at >= v_asked or c.members_read_at > v_asked)) then
    return null;
  end if;
  v_first := not exists (
    select from public.chats c where c.chat_id = p_chat_id and c.members_read_at is not null);

  with listed as (
    select distinct l.tenant_key, l.open_id
    from jsonb_to_recordset(p_members::jsonb) as l (tenant_key text, open_id text)
  ),
  gone as (
    delete from public.chat_members m
    where m.chat_id = p_chat_id and m.seen_at <= v_asked
      and (m.left_at is null or m.left_at <= v_asked)
      and not exists (select from listed l
                      where l.tenant_key = m.tenant_key and l.open_id = m.open_id)
    returning m.open_id, m.left_at
  ),
  stored as (
    insert into public.chat_members as m (tenant_key, chat_id, open_id, joined_at, seen_at)
    select l.tenant_key, p_chat_id, l.open_id, case when not v_first then now() end, v_asked
    from listed l
    on conflict (tenant_key, chat_id, open_id) do update set
      joined_at = case when m.left_at is null or m.left_at + public.doubtful_time() >= v_asked
                  then m.joined_at else now() end,
      seen_at = greatest(m.seen_at, excluded.seen_at),
      left_at = case when m.left_at + public.doubtful_time() >= v_asked then m.left_at end
    returning m.joined_at is not distinct from now() as is_new, m.left_at is not null as in_doubt
  )
  select count(*) filter (where not s.in_doubt), count(*) filter (where s.is_new),
         (select count(*) from gone g where g.left_at is null),
         (select coalesce(array_agg(g.open_id), '{}') from gone g),
         case when bool_or(s.in_doubt) then now() + public.doubtful_time() else v_due end
  into v_members, v_joined, v_left, v_gone, v_due from stored s;
  perform public.stop_timers_for(p_chat_id, v_gone);
  perform public.drop_tokens_of_leavers(v_gone);

  update public.chats c
  set members_read_at = v_asked, gone_at = null, failures = 0, due_at = v_due, updated_at = now()
  where c.chat_id = p_chat_id;
  return jsonb_build_object('members', v_members, 'joined', v_joined, 'left', v_left);
end
$$;

-- People were added to a group at p_at_ms: a JSON array of {tenant_key, open_id}; p_tenant_key is the
-- bot's. A leaving as late or later wins, the going of the whole chat too, and so does a later list
-- without them (a list confirms whom it holds: seen_at is then its time); then the list is asked for again soon.
-- Returns how many are in by this.
create or replace function public.add_chat_members(
  p_tenant_key text, p_chat_id text, p_members text, p_at_ms bigint
) returns integer
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_at constant timestamptz := public.time_of_news(p_at_ms);
  v_count integer;
begin
  perform public.hold_group(p_tenant_key, p_chat_id);
  if v_at < now() - public.membership_lasts()
     or exists (select from public.chats c where c.chat_id = p_chat_id and c.gone_at >= v_at) then
    return 0;
  end if;
  insert into public.chat_members as m (tenant_key, chat_id, open_id, joined_at, seen_at)
  select distinct l.tenant_key, p_chat_id, l.open_id, v_at, v_at
  from jsonb_to_recordset(p_members::jsonb) as l (tenant_key text, open_id text)
  where exists (select from public.chat_members k where k.tenant_key = l.tenant_key
                and k.chat_id = p_chat_id and k.open_id = l.open_id)
     or not exists (select from public.chats c where c.chat_id = p_chat_id
                    and c.members_read_at >= v_at)
  on conflict (tenant_key, chat_id, open_id) do update set
    joined_at = greatest(m.joined_at, excluded.joined_at),
    seen_at = greatest(m.seen_at, excluded.seen_at),
    left_at = null
  where m.left_at is null
     or (m.left_at < v_at and not exists (
           select from public.chats c where c.chat_id = p_chat_id
             and c.members_read_at >= v_at and c.members_read_at > m.seen_at));
  get diagnostics v_count = row_count;
  if v_count < jsonb_array_length(p_members::jsonb) then
    update public.chats c set due_at = least(c.due_at, now() + public.doubtful_time())
    where c.chat_id = p_chat_id;
  end if;
  return v_count;
end
$$;

-- People left a group, or were removed, at p_at_ms; the arguments are as above. Whoever is known to
-- have joined later stays, and whoever a list asked for later still has.
create or replace function public.remove_chat_members(
  p_tenant_key text, p_chat_id text, p_members text, p_at_ms bigint
) returns integer
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_at constant timestamptz := public.time_of_news(p_at_ms);
  v_count integer;
begin
  perform public.hold_group(p_tenant_key, p_chat_id);
  insert into public.chat_members as m (tenant_key, chat_id, open_id, seen_at, left_at)
  select distinct l.tenant_key, p_chat_id, l.open_id, v_at, v_at
  from jsonb_to_recordset(p_members::jsonb) as l (tenant_key text, open_id text)
  on conflict (tenant_key, chat_id, open_id) do update set
    left_at = greatest(m.left_at, v_at)
  -- joined_at of who came new in a list is later than the list
  where not coalesce(m.joined_at > v_at and m.joined_at <= m.seen_at, false)
    and (m.left_at is not null or m.seen_at <= v_at + public.doubtful_time());
  get diagnostics v_count = row_count;
  perform public.stop_timers_for(p_chat_id, array(
    select l.open_id from jsonb_to_recordset(p_members::jsonb) as l (tenant_key text, open_id text)
    join public.chat_members m on m.tenant_key = l.tenant_key and m.chat_id = p_chat_id
      and m.open_id = l.open_id and m.left_at is not null));
  perform public.drop_tokens_of_leavers(
    array(select l.open_id from jsonb_to_recordset(p_members::jsonb) as l (open_id text)));
  return v_count;
end
$$;

-- The bot was added to a group at p_at_ms: its members are asked for soon.
create or replace function public.enter_chat(
  p_tenant_key text, p_chat_id text, p_name text, p_at_ms bigint
) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform public.hold_group(p_tenant_key, p_chat_id);
  update public.chats c
  set active_at = greatest(c.active_at, public.time_of_news(p_at_ms)),
      gone_at = case when c.gone_at >= public.time_of_news(p_at_ms) then c.gone_at end,
      due_at = now(), failures = 0, updated_at = now()
  where c.chat_id = p_chat_id;
  perform public.describe_chat(p_chat_id, 'group', p_name, p_at_ms);
end
$$;

-- The bot is in a chat no longer, or the chat is no more, as of p_at_ms: nobody is known to be in it.
-- If it has come back since, only what was known before that time ends. Returns whether it is gone.
create or replace function public.leave_chat(
  p_tenant_key text, p_chat_id text, p_at_ms bigint
) returns boolean
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_at constant timestamptz := public.time_of_news(p_at_ms);
begin
  perform public.hold_group(p_tenant_key, p_chat_id);
  update public.chats c set welcome_for_ms = null, welcomed_at = null
  where c.chat_id = p_chat_id and c.welcome_for_ms < p_at_ms;
  if exists (select from public.chats c where c.chat_id = p_chat_id
             and (c.active_at > v_at
                  or c.members_read_at > v_at + public.doubtful_time())) then
    delete from public.chat_members m
    where m.chat_id = p_chat_id and m.seen_at <= v_at
      and (m.left_at is null or m.left_at <= v_at);
    update public.chats c
    set members_read_at = greatest(c.members_read_at, v_at), due_at = least(c.due_at, now())
    where c.chat_id = p_chat_id;
    return false;
  end if;
  update public.chats c
  set gone_at = greatest(c.gone_at, v_at),
      members_read_at = greatest(c.members_read_at, v_at), updated_at = now()
  where c.chat_id = p_chat_id;
  delete from public.chat_members m
  where m.chat_id = p_chat_id and (m.left_at is null or m.left_at <= v_at);
  perform public.stop_timers_of_chat(p_chat_id);
  return true;
end
$$;

-- The first words that a chat is owed after the event at p_at_ms: the time of the event that they are
-- for, the same for every event until the bot has left; null when they were said, the bot is gone, or
-- the person has talked with it before they opened the chat.
create or replace function public.begin_welcome(
  p_tenant_key text, p_chat_id text, p_chat_type text, p_at_ms bigint
) returns bigint
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_at constant timestamptz := public.time_of_news(p_at_ms);
  v_for bigint;
begin
  insert into public.chats (tenant_key, chat_id, chat_type)
  select p_tenant_key, p_chat_id, p_chat_type
  where not exists (select from public.chats c where c.chat_id = p_chat_id)
  on conflict do nothing;
  perform from public.chats c where c.chat_id = p_chat_id order by c.tenant_key for update;
  if exists (select from public.chats c where c.chat_id = p_chat_id
             and (c.welcomed_at is not null or c.gone_at >= v_at)) then
    return null;
  end if;
  select min(c.welcome_for_ms) into v_for from public.chats c where c.chat_id = p_chat_id;
  if v_for is null and p_chat_type = 'p2p'
     and exists (select from public.agent_turns t
                 where t.conversation_id = 'feishu:' || p_chat_id || ':main'
                   and t.tenant_key = p_tenant_key and t.created_at < v_at) then
    update public.chats c set welcome_for_ms = p_at_ms, welcomed_at = now()
    where c.chat_id = p_chat_id;
    return null;
  end if;
  v_for := coalesce(v_for, p_at_ms);
  update public.chats c set welcome_for_ms = v_for where c.chat_id = p_chat_id;
  return v_for;
end
$$;

-- The first words for that event were said, or cannot be.
create or replace function public.end_welcome(p_chat_id text, p_for_ms bigint) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  update public.chats c set welcomed_at = now()
  where c.chat_id = p_chat_id and c.welcome_for_ms = p_for_ms and c.welcomed_at is null
$$;
