-- Purpose: the conversation of a group that the bot is part of, its transcript, and the decisions.

-- The conversation as it stands, messages oldest first, with p_topics each with its topic if that is
-- known; null when none is active.
create or replace function public.load_conversation(
  p_chat_id text, p_topics boolean default false
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'channel_id', c.chat_id, 'started_at', c.started_at, 'last_activity', c.last_activity,
    'quiet', c.quiet,
    'messages', coalesce((
      select jsonb_agg(jsonb_build_object(
               'message_id', t.message_id, 'root_id', t.root_id, 'author', t.author,
               'author_id', t.author_id, 'content', t.content, 'timestamp', t."timestamp",
               'is_bot', t.is_bot, 'ours', t.ours, 'quotes', coalesce(t.quotes, ''),
               'answered', coalesce(d.respond, false),
               'topic', s.topic) order by t."timestamp", t.message_id)
      from public.chat_transcript t
      left join public.chat_topics s on p_topics and s.tenant_key = t.tenant_key
        and s.chat_id = t.chat_id and s.message_id = t.message_id
      left join public.agent_decisions d on d.message_id = t.message_id
        and d.tenant_key = t.tenant_key and d.chat_id = t.chat_id
      where t.chat_id = c.chat_id and t.tenant_key = c.tenant_key), '[]'))
  from public.chat_conversations c
  where c.chat_id = p_chat_id and c.active
$$;

-- The same of a conversation that was just read, with all topics, for the two hundred messages of a busy
-- chat: each is a list of message_id, root_id, author, author_id, content, timestamp, is_bot, ours and
-- quotes; beside them stand `topics` (message_id -> topic) and the ids of those that were `answered`.
-- `mark` is what there is of the transcript: the last numbers of lines and of topics, how many and their sums. Neither
-- changes once it is there, so where all this is as it was, nothing has gone or was committed late. As far as the token
-- may read: it is another where somebody may read less.
-- p_held: what the caller has, `mark` of an earlier result; null: nothing. If that still stands and little has come
-- since, the result is what has come, and `goes_on`; of decisions those on the last hundred messages, which are more
-- than a worker decides on between two readings. p_lines: how many messages there are.
create or replace function bot_private.conversation_in_short(
  p_conversation public.chat_conversations, p_held jsonb, out p_told json, out p_lines bigint
)
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_chat_id constant text := p_conversation.chat_id;
  v_tenant_key constant text := p_conversation.tenant_key;
  few constant integer := 25;
  v_last bigint := (p_held ->> 'last')::bigint;
  v_last_topic bigint := (p_held ->> 'last_topic')::bigint;
  v_mark jsonb;
  v_goes_on boolean;
  v_said record;
begin
  select jsonb_build_object('last', l.last, 'lines', l.lines, 'sum', l.sum,
                            'last_topic', s.last, 'topics', s.topics, 'topic_sum', s.sum),
         p_held = jsonb_build_object(
           'last', v_last, 'lines', l.lines_before, 'sum', l.sum_before,
           'last_topic', v_last_topic, 'topics', s.topics_before, 'topic_sum', s.sum_before)
           and l.lines <= few + (p_held ->> 'lines')::bigint,
         l.lines
  into v_mark, v_goes_on, p_lines
  from (
    select count(*) as lines, coalesce(max(t.number), 0) as last, coalesce(sum(t.number), 0) as sum,
           count(*) filter (where t.number <= v_last) as lines_before,
           coalesce(sum(t.number) filter (where t.number <= v_last), 0) as sum_before
    from public.chat_transcript t
    where t.chat_id = v_chat_id and t.tenant_key = v_tenant_key) l, (
    select count(*) as topics, coalesce(max(s.number), 0) as last, coalesce(sum(s.number), 0) as sum,
           count(*) filter (where s.number <= v_last_topic) as topics_before,
           coalesce(sum(s.number) filter (where s.number <= v_last_topic), 0) as sum_before
    from public.chat_topics s
    where s.chat_id = v_chat_id and s.tenant_key = v_tenant_key) s;
  if v_goes_on is not true then
    v_goes_on := false;
    v_last := 0;
    v_last_topic := 0;
  end if;
  select coalesce(json_agg(json_build_array(
           t.message_id, t.root_id, t.author, t.author_id, t.content, t."timestamp",
           t.is_bot, t.ours, coalesce(t.quotes, '')) order by t."timestamp", t.message_id), '[]') as messages,
         array_agg(t.message_id) filter (where not t.ours) as by_others
  into v_said
  from public.chat_transcript t
  where t.chat_id = v_chat_id and t.tenant_key = v_tenant_key and t.number > v_last;
  p_told := json_build_object(
    'channel_id', v_chat_id, 'started_at', p_conversation.started_at,
    'last_activity', p_conversation.last_activity, 'quiet', p_conversation.quiet,
    'messages', v_said.messages, 'mark', v_mark, 'goes_on', v_goes_on,
    'topics', (
      select coalesce(json_object_agg(s.message_id, s.topic), '{}')
      from public.chat_topics s
      where s.tenant_key = v_tenant_key and s.chat_id = v_chat_id and s.number > v_last_topic),
    'answered', case when v_goes_on
      then array(
        select d.message_id from (
          select d.message_id, d.respond from public.agent_decisions d
          where d.tenant_key = v_tenant_key and d.chat_id = v_chat_id
          order by d.id desc limit 100) d
        where d.respond)
      else array(
        select d.message_id from public.agent_decisions d
        where d.tenant_key = v_tenant_key and d.chat_id = v_chat_id and d.respond
          and d.message_id = any (v_said.by_others)) end);
end
$$;

-- The quietness of a chat, with or without a conversation.
create or replace function public.chat_is_quiet(p_chat_id text) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select to_jsonb(coalesce((select c.quiet from public.chat_conversations c
                            where c.chat_id = p_chat_id), false))
$$;

-- Keeps the topics of messages (JSON: message_id -> topic) that are in the transcript and have none.
-- One that leaves the transcript at this moment needs none.
create or replace function bot_private.keep_topics(
  p_chat_id text, p_tenant_key text, p_topics text
) returns void
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_size('p_topics', p_topics, 65536);
  insert into public.chat_topics (tenant_key, chat_id, message_id, topic)
  select p_tenant_key, p_chat_id, f.key, f.value::bigint
  from jsonb_each_text(p_topics::jsonb) f
  where exists (select from public.chat_transcript t where t.tenant_key = p_tenant_key
                  and t.chat_id = p_chat_id and t.message_id = f.key)
  on conflict do nothing;
exception when foreign_key_violation then
  null;
end
$$;

-- Starts a conversation with these messages in place of any other. What is kept already of one that
-- the bot sent stays as it was sent: the platform lists a card in other words. What was heard since the
-- bot was asked stays, too, if that was not before p_asked_since.
create or replace function public.begin_conversation(
  p_chat_id text, p_tenant_key text, p_now bigint, p_records text, p_asked_since bigint default null
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_size constant boolean := bot_private.require_size('p_records', p_records, 1048576);
  v_place constant boolean := bot_private.require_place(p_chat_id);
  v_besides constant boolean := bot_private.besides_taking_back();
  v_records constant jsonb := p_records;
  v_asked constant bigint := (
    select c.asked_ms from public.chat_conversations c
    where c.chat_id = p_chat_id and c.tenant_key = p_tenant_key and c.asked_ms >= p_asked_since);
  v_nothing constant boolean := bot_private.tell_nothing();
  v_gone jsonb;
begin
  insert into public.chat_conversations as c
    (chat_id, tenant_key, active, started_at, last_activity)
  values (p_chat_id, p_tenant_key, true, p_now, p_now)
  on conflict (tenant_key, chat_id) do update
    set active = true, started_at = p_now, last_activity = p_now, asked_ms = null,
        updated_at = now();
  with gone as (
    delete from public.chat_transcript t
    where t.chat_id = p_chat_id and t.tenant_key = p_tenant_key
      and (v_asked is null or t."timestamp" < v_asked)
      and not (t.ours and t.message_id = any (array(
        select r.value ->> 'message_id' from jsonb_array_elements(v_records) r)))
    returning t.message_id, t.content, t."timestamp", t.is_bot)
  select jsonb_agg(to_jsonb(g)) into v_gone from gone g where not g.is_bot;
  if v_gone is not null then
    perform bot_private.keep_talk_terms(p_chat_id, v_gone);
  end if;
  perform bot_private.add_to_transcript(p_chat_id, p_tenant_key, p_records);
  perform bot_private.tell_nothing(false);
  return 'null'::jsonb;
end
$$;

-- Adds transcript rows (JSON array) that are not there yet, but for messages that must not be told. With p_at only to a
-- conversation that is active since p_active_since, which is returned as it is then; its transcript is trimmed to p_keep.
create or replace function bot_private.add_to_transcript(
  p_chat_id text, p_tenant_key text, p_records text, p_at bigint default null,
  p_active_since bigint default null, p_keep integer default null
) returns public.chat_conversations
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_size constant boolean := bot_private.require_size('p_records', p_records, 1048576);
  v_conversation public.chat_conversations;
begin
  if p_at is not null then
    update public.chat_conversations
    set last_activity = greatest(last_activity, p_at), updated_at = now()
    where chat_id = p_chat_id and tenant_key = p_tenant_key
      and active and last_activity >= p_active_since
    returning * into v_conversation;
    if not found then
      return null;
    end if;
  end if;
  insert into public.chat_transcript
    (chat_id, tenant_key, message_id, root_id, author, author_id, content, "timestamp", is_bot, ours, quotes)
  select p_chat_id, p_tenant_key, r.message_id, r.root_id, r.author, r.author_id, r.content,
         r."timestamp", r.is_bot, r.ours, nullif(r.quotes, '')
  from jsonb_to_recordset(p_records::jsonb) as r(
    message_id text, root_id text, author text, author_id text, content text,
    "timestamp" bigint, is_bot boolean, ours boolean, quotes text)
  where not bot_private.is_gone(r.message_id, r.author_id, r."timestamp")
  on conflict do nothing;
  if p_keep is not null then
    perform bot_private.trim_transcript(p_chat_id, p_tenant_key, p_keep);
  end if;
  return v_conversation;
end
$$;

-- More messages than these, and the oldest go together: all but p_keep.
create or replace function bot_private.most_messages(p_keep integer) returns bigint
language sql immutable parallel safe security invoker
return p_keep + p_keep / 8;

-- The newest p_keep messages of a chat stay, and up to an eighth more.
create or replace function bot_private.trim_transcript(
  p_chat_id text, p_tenant_key text, p_keep integer
) returns void
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_spare constant bigint := bot_private.most_messages(p_keep) - p_keep;
  v_last bigint[];  -- when the last that stays was said, and those before it
  v_gone jsonb;
begin
  v_last := array(
    select k."timestamp" from public.chat_transcript k
    where k.chat_id = p_chat_id and k.tenant_key = p_tenant_key
    order by k."timestamp" desc offset greatest(p_keep - 1, 0) limit v_spare + 2);
  if v_last[v_spare + 2] is null then
    return;
  end if;
  with gone as (
    delete from public.chat_transcript t
    where t.chat_id = p_chat_id and t.tenant_key = p_tenant_key and t."timestamp" < v_last[1]
    returning t.message_id, t.content, t."timestamp", t.is_bot)
  select jsonb_agg(to_jsonb(g)) into v_gone from gone g where not g.is_bot;
  if v_gone is not null then
    perform bot_private.keep_talk_terms(p_chat_id, v_gone);
  end if;
end
$$;

-- The same (p_keep null: all messages stay, until the next one is heard), and the conversation as it then is, or
-- null when none is active; with p_short as conversation_in_short gives it, of p_held. When none is, but the bot was asked
-- since, the messages are kept for the one that begins with its answer.
create or replace function public.append_to_conversation(
  p_chat_id text, p_tenant_key text, p_records text, p_at bigint, p_active_since bigint,
  p_keep integer, p_topics boolean default false, p_short boolean default false,
  p_held text default null
) returns json
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_size constant boolean := bot_private.require_size('p_held', p_held, 1024);
  v_place constant boolean := bot_private.require_place(p_chat_id);
  v_besides constant boolean := bot_private.besides_taking_back();
  v_conversation constant public.chat_conversations := bot_private.add_to_transcript(
    p_chat_id, p_tenant_key, p_records, p_at, p_active_since,
    case when not p_short then p_keep end);  -- in short they are counted as they are read
  v_short record;
begin
  if v_conversation.chat_id is null then
    if exists (select from public.chat_conversations c
               where c.chat_id = p_chat_id and c.tenant_key = p_tenant_key
                 and c.asked_ms >= p_active_since)
    then
      perform bot_private.add_to_transcript(p_chat_id, p_tenant_key, p_records);
    end if;
    return null;
  end if;
  if not p_short then
    return public.load_conversation(p_chat_id, p_topics);
  end if;
  v_short := bot_private.conversation_in_short(v_conversation, p_held::jsonb);
  if v_short.p_lines > bot_private.most_messages(p_keep) then
    perform bot_private.trim_transcript(p_chat_id, p_tenant_key, p_keep);
    v_short := bot_private.conversation_in_short(v_conversation, null);
  end if;
  return v_short.p_told;
end
$$;

-- Notes that the bot was asked at p_at, unless it was since p_active_since and has not answered yet.
create or replace function bot_private.note_asked(
  p_chat_id text, p_tenant_key text, p_at bigint, p_active_since bigint
) returns void
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  insert into public.chat_conversations as c (chat_id, tenant_key, asked_ms)
  values (p_chat_id, p_tenant_key, p_at)
  on conflict (tenant_key, chat_id) do update set asked_ms = p_at
    where c.asked_ms is null or c.asked_ms < p_active_since;
end
$$;

-- Goes on with the conversation that is active since p_active_since, or begins one with these
-- messages; one that is newer is left as it is. Can be repeated, also much later. p_topics: those that
-- were found meanwhile, as keep_topics takes them.
create or replace function bot_private.tell_conversation(
  p_chat_id text, p_tenant_key text, p_records text, p_now bigint, p_active_since bigint,
  p_keep integer, p_topics text default null
) returns boolean
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_goes_on constant boolean := (bot_private.add_to_transcript(
    p_chat_id, p_tenant_key, p_records, p_now, p_active_since, p_keep)).chat_id is not null;
begin
  if not v_goes_on then
    if not exists (select from public.chat_conversations c
                   where c.chat_id = p_chat_id and c.tenant_key = p_tenant_key
                     and c.last_activity > p_now)
    then
      perform public.begin_conversation(
        p_chat_id, p_tenant_key, p_now, p_records, p_active_since);
    end if;
  end if;
  if p_topics is not null then
    perform bot_private.keep_topics(p_chat_id, p_tenant_key, p_topics);
  end if;
  return v_goes_on;
end
$$;

-- The same, and the conversation as it then is.
create or replace function public.continue_conversation(
  p_chat_id text, p_tenant_key text, p_records text, p_now bigint, p_active_since bigint,
  p_keep integer, p_topics text default null
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_place constant boolean := bot_private.require_place(p_chat_id);
  v_besides constant boolean := bot_private.besides_taking_back();
begin
  perform bot_private.tell_conversation(
    p_chat_id, p_tenant_key, p_records, p_now, p_active_since, p_keep, p_topics);
  return (select public.load_conversation(c.chat_id) from public.chat_conversations c
          where c.chat_id = p_chat_id and c.tenant_key = p_tenant_key
            and c.last_activity >= p_active_since);
end
$$;

create or replace function public.remove_from_conversation(p_chat_id text, p_message_id text)
returns jsonb
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  select bot_private.tell_nothing();
  delete from public.chat_transcript where chat_id = p_chat_id and message_id = p_message_id;
  select 'null'::jsonb
$$;

create or replace function public.finish_conversation(p_chat_id text) returns jsonb
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  select bot_private.tell_nothing();
  update public.chat_conversations set active = false, asked_ms = null, updated_at = now()
  where chat_id = p_chat_id;
  delete from public.chat_transcript where chat_id = p_chat_id;
  select 'null'::jsonb
$$;

create or replace function public.set_chat_quiet(p_chat_id text, p_tenant_key text, p_quiet boolean)
returns jsonb
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  insert into public.chat_conversations (chat_id, tenant_key, quiet)
  values (p_chat_id, p_tenant_key, p_quiet)
  on conflict (tenant_key, chat_id) do update set quiet = p_quiet, updated_at = now();
  select 'null'::jsonb
$$;

-- One row per message that was decided on; a message decided again keeps its first row, which is
-- what this returns, so that a turn taken up again is not dropped half way. p_topics: what the message
-- and those before it are about, as keep_topics takes it. p_request_ms: when the message was written, if a
-- person wrote it to a bot; p_shared: whether to this bot and another at once.
create or replace function public.log_decision(
  p_chat_id text, p_tenant_key text, p_actor_id text, p_message_id text, p_respond boolean,
  p_reason text, p_tier text, p_cue text, p_since_bot_ms bigint, p_verdict text, p_judge_ms integer,
  p_root_id text default null, p_topics text default null, p_request_ms bigint default null,
  p_shared boolean default false
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_message_id', p_message_id, 1024)
    and bot_private.require_size('p_reason', p_reason, 4096)
    and bot_private.require_size('p_tier', p_tier, 4096)
    and bot_private.require_size('p_cue', p_cue, 4096)
    and bot_private.require_size('p_verdict', p_verdict, 4096)
    and bot_private.require_size('p_root_id', p_root_id, 1024)
    and bot_private.require_size('p_topics', p_topics, 65536);
  v_place constant boolean := bot_private.require_place(p_chat_id);
  v_besides constant boolean := p_cue is null or bot_private.besides_taking_back();
  v_cue text := p_cue;  -- a word of the message
  v_new boolean;
  v_stored jsonb;
begin
  if p_cue is not null then
    if exists (select from public.recalled_messages r where r.message_id = p_message_id) then
      v_cue := null;
    end if;
  end if;
  insert into public.agent_decisions
    (chat_id, tenant_key, actor_id, message_id, respond, reason, tier, cue, since_bot_ms, verdict,
     judge_ms, root_id, request_ms, shared)
  values (p_chat_id, p_tenant_key, p_actor_id, p_message_id, p_respond, p_reason, p_tier, v_cue,
          p_since_bot_ms, p_verdict, p_judge_ms, p_root_id, p_request_ms,
          coalesce(p_shared, false))
  on conflict do nothing;
  v_new := found;
  if p_topics is not null then
    perform bot_private.keep_topics(p_chat_id, p_tenant_key, p_topics);
  end if;
  v_stored := jsonb_build_object('respond', p_respond, 'reason', p_reason);
  if not v_new then
    v_stored := (
      select jsonb_build_object('respond', d.respond, 'reason', d.reason)
      from public.agent_decisions d
      where d.message_id = p_message_id and d.tenant_key = p_tenant_key and d.chat_id = p_chat_id);
  end if;
  -- read by `feishu_bot.end_if_silent` in the same transaction
  perform set_config(
    'feishu_bot.silent', case when v_stored ->> 'respond' = 'false' then p_message_id else '' end,
    true);
  return v_stored;
end
$$;

-- What hearing a message takes before anything is decided, in one: it is recorded in the conversation of its
-- chat (p_records and what follows: the arguments of append_to_conversation; null: nothing is), and returned
-- are {"rules": as get_chat_rules, "conversation": in short, or null}. p_decision (JSON with the arguments of
-- log_decision) is the decision that holds where no conversation is on, the chat's mode is p_mode, it wants no
-- unasked answers, and the bot has not answered in the thread of p_root_id. There it is stored, and what is
-- stored returned as "decided".
create or replace function public.hear_message(
  p_chat_id text, p_tenant_key text, p_actor_id text, p_records text default null,
  p_at bigint default null, p_active_since bigint default null, p_keep integer default null,
  p_decision text default null, p_mode text default '', p_held text default null
) returns json
language plpgsql security invoker set search_path = pg_catalog, pg_temp
set plan_cache_mode = force_generic_plan
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_records', p_records, 1048576)
    and bot_private.require_size('p_decision', p_decision, 16384);
  v_place constant boolean := bot_private.require_place(p_chat_id);
  -- what a crash of the server takes is heard again, for the end of its job comes later or goes with it
  v_promises constant text := set_config('synchronous_commit', 'off', true);
  v_likely constant jsonb := p_decision;
  v_rules jsonb;
  v_conversation json;
  v_decided jsonb;
begin
  if p_records is not null then
    v_conversation := public.append_to_conversation(
      p_chat_id, p_tenant_key, p_records, p_at, p_active_since, p_keep, false, true, p_held);
  end if;
  select r.rules into v_rules from bot_private.rules_of(p_chat_id, p_tenant_key) r;
  if v_conversation is null and v_likely is not null
     and coalesce(v_rules ->> 'mode', p_mode) = p_mode and v_rules ->> 'proactive' is null
     and (p_records is null or v_likely ->> 'p_root_id' is null
          or not public.has_answered_in(p_chat_id, v_likely ->> 'p_root_id'))
  then
    v_decided := public.log_decision(
      p_chat_id, p_tenant_key, p_actor_id, v_likely ->> 'p_message_id',
      (v_likely ->> 'p_respond')::boolean, v_likely ->> 'p_reason', v_likely ->> 'p_tier',
      v_likely ->> 'p_cue', (v_likely ->> 'p_since_bot_ms')::bigint,
      v_likely ->> 'p_verdict', (v_likely ->> 'p_judge_ms')::integer,
      v_likely ->> 'p_root_id', null, (v_likely ->> 'p_request_ms')::bigint,
      (v_likely ->> 'p_shared')::boolean);
  end if;
  return json_build_object(
    'rules', v_rules, 'conversation', v_conversation, 'decided', v_decided);
end
$$;

-- Notes another bot's message to this one, and returns what bots are answered from: the messages of bots
-- before it, of a day, that got an answer or wait for one, when a person wrote to a bot last, and how many
-- messages to nobody were answered since, in the last minutes. Callers
-- take turns, so that no two messages count on the same answer; the same message gets the same result
-- again. p_at: when it was written, ms since epoch.
create or replace function public.note_bot_message(
  p_chat_id text, p_tenant_key text, p_message_id text, p_bot_id text, p_at bigint
) returns jsonb
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_size constant boolean := bot_private.require_size(
    'a message of a bot', concat(p_message_id, p_bot_id), 1024);
  v_talk jsonb;
  v_place integer;
begin
  insert into public.chat_conversations as c (chat_id, tenant_key)
  values (p_chat_id, p_tenant_key)
  on conflict (tenant_key, chat_id) do update set updated_at = now()
  returning c.bot_talk into v_talk;
  select coalesce(jsonb_agg(t.said order by t.n), '[]') into v_talk
  from jsonb_array_elements(v_talk) with ordinality as t(said, n)
  where (t.said ->> 'at')::bigint > p_at - 86400000
    and not exists (
      select from public.agent_decisions d
      where d.tenant_key = p_tenant_key and d.chat_id = p_chat_id
        and d.message_id = t.said ->> 'message_id' and not d.respond);
  v_place := (select t.n from jsonb_array_elements(v_talk) with ordinality as t(said, n)
              where t.said ->> 'message_id' = p_message_id);
  if v_place is null then
    v_place := jsonb_array_length(v_talk) + 1;
    v_talk := v_talk || jsonb_build_object(
      'message_id', p_message_id, 'bot_id', p_bot_id, 'at', p_at);
  end if;
  update public.chat_conversations set bot_talk = v_talk
  where chat_id = p_chat_id and tenant_key = p_tenant_key;
  return jsonb_build_object(
    'answers', (select coalesce(jsonb_agg(t.said), '[]')
                from jsonb_array_elements(v_talk) with ordinality as t(said, n) where t.n < v_place),
    'request_ms', null, 'shared', false, 'unasked', 0) || coalesce((
      select jsonb_build_object('request_ms', d.request_ms, 'shared', d.shared, 'unasked', (
        select count(*) from public.agent_decisions u
        where u.tenant_key = p_tenant_key and u.chat_id = p_chat_id and u.id > d.id and u.respond
          and u.created_at > now() - interval '5 minutes'
          and u.reason = any ('{recent_followup,llm_judge,mode_all}')))
      from public.agent_decisions d
      where d.tenant_key = p_tenant_key and d.chat_id = p_chat_id and d.request_ms <= p_at
        and d.created_at > now() - interval '1 day'
      order by d.request_ms desc limit 1), '{}');
end
$$;

-- How a message of the chat begins, "" where its words are not kept.
create or replace function bot_private.words_of(p_message_id text, p_chat_id text) returns text
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(
    (select left(m.content, 200) from public.agent_messages m
     where m.turn_id = p_message_id and m.chat_id = p_chat_id and m.role = 'user' and m.chunk = 0 limit 1),
    (select left(x.content, 200) from public.chat_transcript x
     where x.message_id = p_message_id and x.chat_id = p_chat_id limit 1), '')
$$;

-- The last decision in the chat, in a thread of it (p_root_id), or on one message (p_message_id), but
-- for what only asked about decisions; null when there is none. Where everybody is kept to their own
-- words, only those on messages of the asker.
create or replace function public.last_decision(
  p_chat_id text, p_tenant_key text, p_root_id text, p_message_id text
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'message_id', d.message_id, 'actor_id', d.actor_id, 'respond', d.respond, 'reason', d.reason,
    'cue', d.cue, 'since_bot_ms', d.since_bot_ms, 'verdict', d.verdict,
    'at_ms', floor(extract(epoch from d.created_at) * 1000)::bigint,
    'words', bot_private.words_of(d.message_id, d.chat_id),
    'outcome', coalesce(t.outcome, ''), 'outcome_reason', coalesce(t.outcome_reason, ''))
  from public.agent_decisions d left join public.agent_turns t on t.id = d.message_id
  where d.chat_id = p_chat_id and d.tenant_key = p_tenant_key
    and (p_root_id is null or p_root_id in (d.root_id, d.message_id))
    and (p_message_id is null or d.message_id = p_message_id)
    and (public.claim('sharing') is distinct from 'person' or d.actor_id = public.claim('actor'))
    and not exists (
      select from public.agent_messages m
      where m.turn_id = d.message_id and m.role = 'user' and m.content ~* (
        '^([/／](why|为什么|为何)|why (did|didn.t|did not|don.t|do not|won.t) you (answer|reply|respond|say)( to)?( me| us| that| this)*\W*$'
        '|why (are you not|aren.t you) (answer|reply|respond|talk)ing( me| us)?\W*$|why no (answer|reply|response)\W*$'
        '|你?(刚才)?(为什么|为何|怎么)你?(不|没有?|这么|这样)?(回答|回复|理|说话|说|反应)(我们?|大家)?\W*$)'))
  order by d.id desc limit 1
$$;
