-- Purpose: people's own tokens at Feishu: asked for, kept, handed out, refreshed by one worker, and ended.
--
-- All but the last three functions act for the person of the token, who is named nowhere else, and only under a token
-- of their own place. Tokens are sealed by the application; here nobody can read them. p_holder names whoever
-- refreshes; p_ask what is asked for.

create or replace function bot_private.refuse_own_place() returns text
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'the token is not of the person''s own place' using errcode = 'PT403';
end
$$;

-- Whose own place the token is of. That of a chat, and that of operators, is of none.
create or replace function bot_private.require_own_place() returns text
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select case
    when c.claims ->> 'actor' <> '' and c.claims ->> 'chat_type' = 'p2p'
         and c.claims ->> 'actor' = c.claims ->> 'sub' and c.claims ->> 'actor' = c.claims ->> 'chat_id'
         and c.claims ->> 'tenant_key' is not null and c.claims ->> 'actor_tenant' is null
    then c.claims ->> 'actor'
    else bot_private.refuse_own_place() end
  from (select nullif(current_setting('request.jwt.claims', true), '')::jsonb as claims) c
$$;

create or replace function bot_private.keep_seal(p_kind text, p_sealed text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_open_id constant text := bot_private.require_own_place();
begin
  insert into bot_private.user_token_seals as s (tenant_key, open_id, kind, sealed)
  values (public.claim('tenant_key'), v_open_id, p_kind, p_sealed)
  on conflict (tenant_key, open_id, kind) do update set sealed = excluded.sealed;
end
$$;

create or replace function bot_private.seal_of(p_kind text) returns text
language plpgsql stable security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_open_id constant text := bot_private.require_own_place();
begin
  return (
    select s.sealed from bot_private.user_token_seals s
    where s.tenant_key = public.claim('tenant_key') and s.open_id = v_open_id and s.kind = p_kind);
end
$$;

create or replace function bot_private.drop_seals(p_kinds text[]) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
as $$
declare
  v_open_id constant text := bot_private.require_own_place();
begin
  delete from bot_private.user_token_seals s
  where s.tenant_key = public.claim('tenant_key') and s.open_id = v_open_id and s.kind = any (p_kinds);
end
$$;

-- The two tokens take the place of those before; p_refresh null: there is none.
create or replace function bot_private.keep_pair(p_access text, p_refresh text) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.drop_seals('{refresh}');
  perform bot_private.keep_seal('access', p_access);
  if p_refresh is not null then
    perform bot_private.keep_seal('refresh', p_refresh);
  end if;
end
$$;

create or replace function bot_private.user_tokens_json(t public.user_tokens) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'scopes', t.scopes, 'granted_ms', (extract(epoch from t.granted_at) * 1000)::bigint,
    'access_until_ms', (extract(epoch from t.access_until) * 1000)::bigint,
    'refresh_until_ms', (extract(epoch from t.refresh_until) * 1000)::bigint,
    'sealed_with', t.sealed_with, 'ended', t.ended, 'language', t.language,
    'ended_ms', (extract(epoch from t.ended_at) * 1000)::bigint,
    'ask', t.ask, 'ask_scopes', t.ask_scopes, 'ask_until_ms', (extract(epoch from t.ask_until) * 1000)::bigint,
    'ask_interval_s', t.ask_interval_s, 'ask_sealed_with', t.ask_sealed_with, 'ask_outcome', t.ask_outcome,
    'ask_card', t.ask_card, 'ask_aside', t.ask_aside, 'ask_place', t.ask_place)
$$;

-- What the person granted and is asked for; null: nothing.
create or replace function public.get_user_tokens() returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_open_id constant text := bot_private.require_own_place();
begin
  return (
    select bot_private.user_tokens_json(t) from public.user_tokens t
    where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id);
end
$$;

-- One of the seals, kind access, refresh or device; null: there is none.
create or replace function public.get_user_seal(p_kind text) returns text
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_size('p_kind', p_kind, 100);
  return bot_private.seal_of(p_kind);
end
$$;

-- Asks the person; what was asked before is asked no more. p_place: JSON, at most 4 KB.
create or replace function public.ask_user(
  p_ask text, p_scopes text, p_life_s integer, p_interval_s integer, p_place text, p_key text, p_sealed text
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_ask', p_ask, 200)
    and bot_private.require_size('p_scopes', p_scopes, 4096) and bot_private.require_size('p_place', p_place, 4096)
    and bot_private.require_size('p_key', p_key, 100) and bot_private.require_size('p_sealed', p_sealed, 16384);
  v_open_id constant text := bot_private.require_own_place();
begin
  insert into public.user_tokens as t
    (tenant_key, open_id, ask, ask_scopes, ask_until, ask_interval_s, ask_sealed_with, ask_place, language)
  values (public.claim('tenant_key'), v_open_id, p_ask, p_scopes, now() + make_interval(secs => p_life_s),
          greatest(p_interval_s, 1), p_key, p_place::jsonb, coalesce(p_place::jsonb ->> 'language', ''))
  on conflict (tenant_key, open_id) do update set
    ask = excluded.ask, ask_scopes = excluded.ask_scopes, ask_until = excluded.ask_until,
    ask_interval_s = excluded.ask_interval_s, ask_sealed_with = excluded.ask_sealed_with,
    ask_outcome = '', ask_card = '', ask_aside = false, ask_place = excluded.ask_place,
    language = excluded.language, updated_at = now();
  perform bot_private.keep_seal('device', p_sealed);
  return public.get_user_tokens();
end
$$;

-- Notes the card with the link, how often may be looked, and one more answer that waits for it (p_waiting: JSON
-- {chat_id, message_id}), of which the last five are kept; null: as before.
create or replace function public.note_user_ask(
  p_ask text, p_card text default null, p_aside boolean default null, p_interval_s integer default null,
  p_waiting text default null
) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_ask', p_ask, 200)
    and bot_private.require_size('p_card', p_card, 200) and bot_private.require_size('p_waiting', p_waiting, 512);
  v_open_id constant text := bot_private.require_own_place();
begin
  update public.user_tokens t
  set ask_card = coalesce(p_card, t.ask_card), ask_aside = coalesce(p_aside, t.ask_aside),
      ask_interval_s = coalesce(p_interval_s, t.ask_interval_s),
      ask_place = case when p_waiting is null then t.ask_place else t.ask_place || jsonb_build_object('waiting', (
        select jsonb_agg(last.value order by last.n) from (
          select w.value, w.n
          from jsonb_array_elements(coalesce(t.ask_place -> 'waiting', '[]') || p_waiting::jsonb) with ordinality w (value, n)
          order by w.n desc limit 5) last)) end,
      updated_at = now()
  where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id and t.ask = p_ask;
end
$$;

-- The person said no, or nothing, or another person said yes. The link is of no use from now on.
create or replace function public.answer_user_ask(p_ask text, p_outcome text) returns boolean
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_ask', p_ask, 200)
    and bot_private.require_size('p_outcome', p_outcome, 100);
  v_open_id constant text := bot_private.require_own_place();
begin
  update public.user_tokens t set ask_outcome = p_outcome, updated_at = now()
  where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id and t.ask = p_ask
    and t.ask_outcome = '' and p_outcome <> 'connected';
  if not found then
    return false;
  end if;
  perform bot_private.drop_seals('{device}');
  return true;
end
$$;

-- Keeps what the person granted. False, and nothing is kept, where it is not asked for any more.
create or replace function public.connect_user(
  p_ask text, p_scopes text, p_key text, p_access text, p_access_s integer,
  p_refresh text default null, p_refresh_s integer default null
) returns boolean
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_ask', p_ask, 200)
    and bot_private.require_size('p_scopes', p_scopes, 4096) and bot_private.require_size('p_key', p_key, 100)
    and bot_private.require_size('p_access', p_access, 16384)
    and bot_private.require_size('p_refresh', p_refresh, 16384);
  v_open_id constant text := bot_private.require_own_place();
begin
  update public.user_tokens t
  set scopes = p_scopes, granted_at = now(), access_until = now() + make_interval(secs => p_access_s),
      refresh_until = case when p_refresh is not null then now() + make_interval(secs => p_refresh_s) end,
      sealed_with = p_key, refreshed_by = '', refresh_began_at = null, ended = '', ended_at = null,
      ask_outcome = 'connected', updated_at = now()
  where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id and t.ask = p_ask
    and t.ask_outcome = '';
  if not found then
    return false;
  end if;
  perform bot_private.drop_seals('{device}');
  perform bot_private.keep_pair(p_access, p_refresh);
  return true;
end
$$;

-- They know what came of it.
create or replace function public.close_user_ask(p_ask text) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_size constant boolean := bot_private.require_size('p_ask', p_ask, 200);
  v_open_id constant text := bot_private.require_own_place();
begin
  update public.user_tokens t
  set ask = '', ask_scopes = '', ask_until = null, ask_sealed_with = '', ask_outcome = '', ask_card = '',
      ask_aside = false, ask_place = '{}', updated_at = now()
  where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id and t.ask = p_ask
    and t.ask_outcome <> '';
  if found then
    perform bot_private.drop_seals('{device}');
  end if;
  delete from public.user_tokens t
  where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id and t.ask = ''
    and t.granted_at is null and t.ended = '';
end
$$;

-- Ends what was granted: its tokens go, and why stays until they are told. '': they need not be.
create or replace function bot_private.end_grant(p_ended text) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_open_id constant text := bot_private.require_own_place();
begin
  update public.user_tokens t
  set scopes = '', granted_at = null, access_until = null, refresh_until = null, sealed_with = '',
      refreshed_by = '', refresh_began_at = null, ended = p_ended,
      ended_at = case when p_ended <> '' then now() end, updated_at = now()
  where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id;
  perform bot_private.drop_seals('{access,refresh}');
  delete from public.user_tokens t
  where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id and t.ask = '' and t.ended = '';
end
$$;

-- The access token, or the right to refresh it. {state, sealed, key}: `none`; `ended` with `why`; `fresh` with the
-- seal of an access token that lasts for p_least_s more; `yours` with the seal of the refresh token, for p_holder
-- alone; `wait` while another one refreshes. Who has refreshed for p_stale_s is gone. Whether the refresh token was
-- used then is not known, so it is never used again: the grant has ended.
create or replace function public.use_user_token(
  p_holder text, p_least_s integer default 60, p_stale_s integer default 40
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_size constant boolean := bot_private.require_size('p_holder', p_holder, 200);
  v_open_id constant text := bot_private.require_own_place();
  v_tenant_key constant text := public.claim('tenant_key');
  v_sealed text;
  v_why text := '';
  t public.user_tokens;
begin
  if coalesce(p_holder, '') = '' then
    raise exception 'p_holder is required: who refreshes has a name' using errcode = 'PT400';
  end if;
  select * into t from public.user_tokens u where u.tenant_key = v_tenant_key and u.open_id = v_open_id;
  if t.granted_at is not null and t.access_until <= now() + make_interval(secs => p_least_s) then
    select * into t from public.user_tokens u
    where u.tenant_key = v_tenant_key and u.open_id = v_open_id for update;
  end if;
  if t.open_id is null or t.granted_at is null then
    return jsonb_build_object('state', case when t.ended <> '' then 'ended' else 'none' end, 'why', t.ended);
  end if;
  if t.access_until > now() + make_interval(secs => p_least_s) then
    v_sealed := bot_private.seal_of('access');
    if v_sealed is not null then
      return jsonb_build_object('state', 'fresh', 'sealed', v_sealed, 'key', t.sealed_with, 'scopes', t.scopes,
                                'until_ms', (extract(epoch from t.access_until) * 1000)::bigint);
    end if;
    v_why := 'lost';
  elsif t.refresh_began_at > clock_timestamp() - make_interval(secs => p_stale_s) then
    return jsonb_build_object('state', 'wait');
  elsif t.refresh_began_at is not null then
    v_why := 'lost';
  elsif t.refresh_until is null or t.refresh_until <= now() then
    v_why := 'expired';
  else
    v_sealed := bot_private.seal_of('refresh');
    v_why := case when v_sealed is null then 'lost' else '' end;
  end if;
  if v_why <> '' then
    perform bot_private.end_grant(v_why);
    return jsonb_build_object('state', 'ended', 'why', v_why);
  end if;
  update public.user_tokens u
  set refreshed_by = p_holder, refresh_began_at = clock_timestamp(), updated_at = now()
  where u.tenant_key = v_tenant_key and u.open_id = v_open_id;
  return jsonb_build_object('state', 'yours', 'sealed', v_sealed, 'key', t.sealed_with);
end
$$;

-- Keeps what p_holder got for the refresh token. False, and nothing is kept, where it is not theirs any more.
create or replace function public.keep_refreshed(
  p_holder text, p_scopes text, p_key text, p_access text, p_access_s integer,
  p_refresh text default null, p_refresh_s integer default null
) returns boolean
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_holder', p_holder, 200)
    and bot_private.require_size('p_scopes', p_scopes, 4096) and bot_private.require_size('p_key', p_key, 100)
    and bot_private.require_size('p_access', p_access, 16384)
    and bot_private.require_size('p_refresh', p_refresh, 16384);
  v_open_id constant text := bot_private.require_own_place();
begin
  update public.user_tokens t
  set scopes = p_scopes, access_until = now() + make_interval(secs => p_access_s),
      refresh_until = case when p_refresh is not null then now() + make_interval(secs => p_refresh_s) end,
      sealed_with = p_key, refreshed_by = '', refresh_began_at = null, updated_at = now()
  where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id and t.refreshed_by = p_holder
    and p_holder <> '';
  if not found then
    return false;
  end if;
  perform bot_private.keep_pair(p_access, p_refresh);
  return true;
end
$$;

-- p_holder got nothing. p_ended '': the refresh token was not used, and another one may use it.
create or replace function public.end_refresh(p_holder text, p_ended text) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_holder', p_holder, 200)
    and bot_private.require_size('p_ended', p_ended, 100);
  v_open_id constant text := bot_private.require_own_place();
begin
  update public.user_tokens t set refreshed_by = '', refresh_began_at = null, updated_at = now()
  where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id and t.refreshed_by = p_holder
    and p_holder <> '';
  if found and p_ended <> '' then
    perform bot_private.end_grant(p_ended);
  end if;
end
$$;

-- Feishu does not take the access token that would have lasted until p_until_ms: the next use refreshes it.
create or replace function public.spend_user_token(p_until_ms bigint) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_open_id constant text := bot_private.require_own_place();
begin
  update public.user_tokens t set access_until = now(), updated_at = now()
  where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id
    and (extract(epoch from t.access_until) * 1000)::bigint = p_until_ms;
end
$$;

-- What was granted is over: the person ends it, with what they are asked for. With p_before_ms Feishu says so, of what
-- was granted until then. Returns whether anything was granted.
create or replace function public.disconnect_user(p_before_ms bigint default null) returns boolean
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_open_id constant text := bot_private.require_own_place();
  v_granted boolean;
begin
  select t.granted_at is not null
    and (p_before_ms is null or t.granted_at <= to_timestamp(p_before_ms / 1000.0))
  into v_granted from public.user_tokens t
  where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id for update;
  if p_before_ms is null then
    delete from public.user_tokens t where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id;
  elsif v_granted then
    perform bot_private.end_grant('');
  end if;
  return coalesce(v_granted, false);
end
$$;

-- They know that it has ended.
create or replace function public.note_ending_told() returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_open_id constant text := bot_private.require_own_place();
begin
  update public.user_tokens t set ended = '', ended_at = null, updated_at = now()
  where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id and t.granted_at is null;
  delete from public.user_tokens t
  where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id and t.granted_at is null
    and t.ask = '' and t.ended = '';
end
$$;

-- The same tokens under another key, where they still are those of p_access and p_refresh.
create or replace function public.reseal_user_tokens(
  p_key text, p_access text, p_new_access text, p_refresh text default null, p_new_refresh text default null
) returns boolean
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_sizes constant boolean := bot_private.require_size('p_key', p_key, 100)
    and bot_private.require_size('p_access', p_access, 16384)
    and bot_private.require_size('p_new_access', p_new_access, 16384)
    and bot_private.require_size('p_refresh', p_refresh, 16384)
    and bot_private.require_size('p_new_refresh', p_new_refresh, 16384);
  v_open_id constant text := bot_private.require_own_place();
begin
  perform from public.user_tokens t
  where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id for update;
  if bot_private.seal_of('access') is distinct from p_access
     or bot_private.seal_of('refresh') is distinct from p_refresh then
    return false;
  end if;
  update public.user_tokens t set sealed_with = p_key
  where t.tenant_key = public.claim('tenant_key') and t.open_id = v_open_id;
  perform bot_private.keep_seal('access', p_new_access);
  if p_new_refresh is not null then
    perform bot_private.keep_seal('refresh', p_new_refresh);
  end if;
  return true;
end
$$;

-- Of whom something is to be done: JSON array of {tenant_key, open_id, why}. `ask`: they are asked, or not told yet;
-- `ended`: they are not told; `stale`: who refreshed is gone; `key`: sealed with another key than p_key.
create or replace function public.user_tokens_to_tend(p_key text, p_stale_s integer default 40) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(jsonb_build_object('tenant_key', t.tenant_key, 'open_id', t.open_id, 'why', w.why)), '[]')
  from public.user_tokens t,
    lateral (select case
      when t.ask <> '' then 'ask'
      when t.ended <> '' then 'ended'
      when t.refresh_began_at <= clock_timestamp() - make_interval(secs => p_stale_s) then 'stale'
      when t.granted_at is not null and t.sealed_with <> p_key then 'key' end as why) w
  where w.why is not null
$$;

-- How many people are connected, and how many of them with another key than p_key: {connected, other_key}.
create or replace function public.count_user_tokens(p_key text) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'connected', count(*), 'other_key', count(*) filter (where t.sealed_with <> p_key))
  from public.user_tokens t where t.granted_at is not null
$$;

-- Whoever left the last group in which the bot knows them has no tokens here any more.
create or replace function public.drop_tokens_of_leavers(p_people text[]) returns void
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  delete from public.user_tokens t
  where t.open_id = any (p_people)
    and not exists (select from public.chat_members m where m.open_id = t.open_id and m.left_at is null)
$$;
