-- Purpose: the rules of a chat: read, changed by who may, and who that is.

-- The rules that the chat set, name → value; a rule without a column is a key of `choices`. told_since_ms: what
-- was said before is not told here.
create or replace function bot_private.rules_of(p_chat_id text, p_tenant_key text) returns table (rules jsonb)
language sql stable security invoker
begin atomic
  select coalesce((
    select r.choices || jsonb_build_object(
      'mode', r.mode, 'language', r.language, 'instructions', r.instructions,
      'proactive', case when r.proactive then 'on' end, 'history', r.history, 'told_since_ms',
      (extract(epoch from nullif(bot_private.told_since(), '-infinity')) * 1000)::bigint)
    from public.chat_rules r
    where r.chat_id = p_chat_id and r.tenant_key = p_tenant_key), '{}');
end;

create or replace function public.get_chat_rules(p_chat_id text, p_tenant_key text) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$ select r.rules from bot_private.rules_of(p_chat_id, p_tenant_key) r $$;

-- From here on this transaction's functions see what they store, change or delete, and tell nothing of it
-- (p_nothing false: they tell again).
create or replace function bot_private.tell_nothing(p_nothing boolean default true) returns boolean
language sql volatile security invoker
return set_config(
  'feishu_bot.tells', case when p_nothing then 'nothing' else '' end, true) is not null;

-- Where the token's chat hides nothing from anybody in it, this transaction's functions do not look again until
-- tell_nothing(false): whoever joins meanwhile joins after them.
create or replace function bot_private.tell_all() returns boolean
language sql volatile security invoker
return set_config(
  'feishu_bot.tells', case when bot_private.told_since() = '-infinity' then 'all' else '' end, true) is not null;

-- Of facts (content and sources of a working memory) those that were told since p_since.
create or replace function bot_private.facts_since(
  p_content jsonb, p_sources jsonb, p_since timestamptz
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select case when p_since = '-infinity' then p_content else coalesce((
    select jsonb_object_agg(e.key, e.value) from jsonb_each(p_content) e
    where (p_sources #>> array[e.key, 'at'])::timestamptz >= p_since), '{}') end
$$;

-- Whether whom the token is of manages the chat: its owner and admins as Feishu said lately, and who added the bot.
create or replace function public.manages_chat(p_chat_id text, p_tenant_key text) returns boolean
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select bot_private.require_size('p_chat_id', p_chat_id, 256)
    and bot_private.require_size('p_tenant_key', p_tenant_key, 256)
    and exists (
      select from public.chat_managers m
      where m.chat_id = p_chat_id and m.tenant_key = p_tenant_key
        and m.open_id = public.claim('actor')
        and (m.role = 'adder' or m.seen_at > now() - interval '10 minutes'))
$$;

-- Changes one rule; an empty value takes it back. Returns the rules. Row-level security says who may. The bot
-- checks which rules and choices there are; those that SQL acts on have columns.
create or replace function public.set_chat_rule(
  p_chat_id text, p_tenant_key text, p_name text, p_value text
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_size('p_name', p_name, 64);
  perform bot_private.require_size('p_value', p_value, 65536);
  if coalesce(p_name !~ '^[a-z][a-z_]*$', true) then
    raise exception 'there is no rule %', p_name using errcode = 'PT400';
  end if;
  if not public.manages_chat(p_chat_id, p_tenant_key) then
    raise exception 'only who manages the chat may change its rules' using errcode = 'PT403';
  end if;
  insert into public.chat_rules as r (tenant_key, chat_id) values (p_tenant_key, p_chat_id)
  on conflict do nothing;
  update public.chat_rules r set
    mode = case when p_name = 'mode' then nullif(p_value, '') else r.mode end,
    language = case when p_name = 'language' then nullif(p_value, '') else r.language end,
    instructions = case when p_name = 'instructions' then p_value else r.instructions end,
    proactive = case when p_name = 'proactive' then p_value = 'on' else r.proactive end,
    history = case when p_name = 'history' then nullif(p_value, '') else r.history end,
    choices = case
      when p_name in ('mode', 'language', 'instructions', 'proactive', 'history') then r.choices
      when p_value <> '' then r.choices || jsonb_build_object(p_name, p_value)
      else r.choices - p_name
    end,
    updated_at = now()
  where r.chat_id = p_chat_id and r.tenant_key = p_tenant_key;
  return public.get_chat_rules(p_chat_id, p_tenant_key);
end
$$;

-- Who manages a chat, owner included, as Feishu says now: a JSON array of open ids. Whoever is not
-- in it is a manager no more.
create or replace function public.save_chat_managers(
  p_chat_id text, p_tenant_key text, p_managers text
) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  insert into public.chat_managers as m (tenant_key, chat_id, open_id, role)
  select distinct p_tenant_key, p_chat_id, e.open_id, 'manager'
  from jsonb_array_elements_text(p_managers::jsonb) as e (open_id)
  where e.open_id <> ''
  order by 3
  on conflict (tenant_key, chat_id, open_id, role) do update set seen_at = now();
  delete from public.chat_managers m
  where m.chat_id = p_chat_id and m.tenant_key = p_tenant_key and m.role = 'manager'
    and not p_managers::jsonb ? m.open_id;
end
$$;

-- Who added the bot to a chat, in place of who did before.
create or replace function public.save_chat_adder(
  p_chat_id text, p_tenant_key text, p_open_id text
) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  delete from public.chat_managers m
  where m.chat_id = p_chat_id and m.tenant_key = p_tenant_key and m.role = 'adder'
    and m.open_id <> p_open_id;
  insert into public.chat_managers (tenant_key, chat_id, open_id, role)
  values (p_tenant_key, p_chat_id, p_open_id, 'adder')
  on conflict do nothing;
end
$$;

-- Whether the bot has answered in a thread of a group, whoever asked.
create or replace function public.has_answered_in(p_chat_id text, p_root_id text) returns boolean
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from public.agent_turns t
    where t.conversation_id = 'feishu:' || p_chat_id || ':' || p_root_id
      and t.chat_id = p_chat_id and t.state = 'sent')
$$;
