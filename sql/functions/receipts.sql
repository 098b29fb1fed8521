-- Purpose: receipts of deletions. The deletion drafts one in its own transaction; a process that holds the key signs it
-- (memory/receipts.py). A draft holds ids, counts and hashes, never words.

-- Rows that this session has deleted and changed so far in each table, {table: [deleted, changed]}. Only the
-- difference of two calls in one transaction means anything.
create or replace function bot_private.rows_written() returns jsonb
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(t.name, jsonb_build_array(t.deleted, t.changed)), '{}')
  from (
    select n.nspname || '.' || c.relname as name, pg_stat_get_xact_tuples_deleted(c.oid) as deleted,
           pg_stat_get_xact_tuples_updated(c.oid) as changed
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('public', 'bot_private', 'feishu_bot') and c.relkind = 'r'
      and c.relname not in ('agent_receipts', 'recalled_messages', 'agent_withdrawals', 'forgotten_people')) t
  where t.deleted + t.changed > 0
$$;

-- What was written since p_before, {table: {deleted, changed}}.
create or replace function bot_private.rows_since(p_before jsonb) returns jsonb
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_object_agg(d.name, jsonb_build_object('deleted', d.deleted, 'changed', d.changed)), '{}')
  from (
    select a.key as name, (a.value ->> 0)::bigint - coalesce((p_before #>> array[a.key, '0'])::bigint, 0) as deleted,
           (a.value ->> 1)::bigint - coalesce((p_before #>> array[a.key, '1'])::bigint, 0) as changed
    from jsonb_each(bot_private.rows_written()) a) d
  where d.deleted + d.changed > 0
$$;

-- The receipt of a deletion that began at p_before (`rows_written`) and ends now; none if nothing went and p_reader is
-- null. p_about: ids, p_texts: the words that went; at most
-- 200 ids and 100 texts are named. Without p_salt one is made, which waits for p_reader to take it.
create or replace function bot_private.draft_receipt(
  p_kind text, p_about text[], p_texts text[], p_before jsonb, p_reader text, p_tenant_key text, p_salt text
) returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_salt constant text := coalesce(p_salt, encode(sha256(
    uuid_send(gen_random_uuid()) || uuid_send(gen_random_uuid())), 'hex'));
  v_counts constant jsonb := bot_private.rows_since(p_before);
begin
  if v_counts = '{}' and p_salt is null then
    return;
  end if;
  insert into public.agent_receipts (reader_id, tenant_key, salt, mark, draft)
  values (
    p_reader, coalesce(p_tenant_key, ''), case when p_salt is null and p_reader is not null then v_salt end,
    encode(sha256(convert_to(v_salt, 'UTF8')), 'hex'),
    jsonb_build_object(
      'kind', p_kind, 'at', to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'),
      'about', to_jsonb(p_about[1:200]), 'counts', v_counts,
      'unreachable', '["backups", "cards that Feishu no longer lets the bot recall", "the model provider"]'::jsonb,
      'commitments', (
        select coalesce(jsonb_agg(h.hash order by h.hash), '[]') from (
          select distinct encode(sha256(convert_to(v_salt || t, 'UTF8')), 'hex') as hash
          from unnest(p_texts) t where t <> '' limit 100) h)));
end
$$;

-- Drafts that wait for a signature, and the end of the chain: {number, hash, drafts: [{id, draft}]}.
create or replace function public.receipts_to_sign(p_limit integer) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'number', coalesce((select max(r.number) from public.agent_receipts r), 0),
    'hash', (select r.hash from public.agent_receipts r where r.number is not null order by r.number desc limit 1),
    'drafts', coalesce((
      select jsonb_agg(jsonb_build_object('id', d.id, 'draft', d.draft) order by d.id)
      from (select r.id, r.draft from public.agent_receipts r where r.number is null order by r.id limit p_limit) d),
      '[]'))
$$;

-- Puts a signed draft at the end of the chain. Returns false when another process was first.
create or replace function public.keep_receipt(
  p_id bigint, p_number bigint, p_previous text, p_line text
) returns jsonb
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_last record;
begin
  perform pg_advisory_xact_lock(hashtextextended('public.agent_receipts', 0));
  select r.number, r.hash into v_last from public.agent_receipts r
  where r.number is not null order by r.number desc limit 1;
  if (coalesce(v_last.number, 0) + 1, coalesce(v_last.hash, repeat('0', 64))) <> (p_number, p_previous) then
    return to_jsonb(false);
  end if;
  update public.agent_receipts
  set number = p_number, line = p_line, hash = encode(sha256(convert_to(p_line, 'UTF8')), 'hex')
  where id = p_id and number is null;
  return to_jsonb(found);
end
$$;

-- The signed line of the receipt that was drafted with a salt whose SHA-256 is p_mark; null: there is none.
create or replace function public.receipt_of(p_mark text) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select to_jsonb(r.line) from public.agent_receipts r where r.mark = p_mark
$$;

-- Receipts of a person with their salts, [{line, salt}]: first those whose salt was not given out, the newest first. A
-- salt is given once. The turn p_by_turn that shows them keeps no words once it is over.
create or replace function public.take_receipts(
  p_person text, p_tenant_key text, p_limit integer, p_by_turn text default null
) returns jsonb
language sql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
  with own as (
    select r.id, r.number, r.line, r.salt from public.agent_receipts r
    where r.reader_id = p_person and r.tenant_key = p_tenant_key and r.number is not null
    order by r.salt is null, r.number desc limit p_limit for update),
  shown as (
    update public.agent_turns t set forgets = true where t.id = p_by_turn),
  taken as (
    update public.agent_receipts r set salt = null from own where r.id = own.id and r.salt is not null)
  select coalesce(jsonb_agg(jsonb_build_object('line', own.line, 'salt', own.salt)
                            order by own.salt is null, own.number desc), '[]')
  from own
$$;

-- The signed lines of a person's receipts after number p_after, first to last, [line].
create or replace function public.own_receipts(
  p_person text, p_tenant_key text, p_after bigint, p_limit integer
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(o.line order by o.number), '[]')
  from (select r.number, r.line from public.agent_receipts r
        where r.reader_id = p_person and r.tenant_key = p_tenant_key and r.number > p_after
        order by r.number desc limit p_limit) o
$$;

-- The chain after number p_after, [line].
create or replace function public.list_receipts(p_after bigint, p_limit integer) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(r.line order by r.number), '[]')
  from (select c.number, c.line from public.agent_receipts c where c.number > p_after
        order by c.number limit p_limit) r
$$;

-- Lets bot_verifier read every table of ours, whoever's rows they are, but for keys and seals. It calls nothing and
-- changes nothing. Run again whenever there may be new tables.
create or replace function feishu_bot.let_verifier_read() returns void
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_table record;
begin
  for v_table in
    select c.oid::regclass as name, c.relname || '_verifier' as policy, case c.relname
      when 'source_terms' then '(source, turn_id)'
      when 'talk_terms' then '(source)'
      when 'agent_receipts' then '(id, number, line, hash)' else '' end as columns
    from pg_class c
    where c.relnamespace::regnamespace::text in ('public', 'bot_private', 'feishu_bot') and c.relkind = 'r'
      and c.relname not in ('source_key', 'user_token_seals', 'console_links', 'console_sessions')
      and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')
      and not exists (select from pg_policy p where p.polrelid = c.oid and p.polname = c.relname || '_verifier')
    order by 1
  loop
    execute format('create policy %I on %s for select to bot_verifier using (true)', v_table.policy, v_table.name);
    execute format('grant select %s on %s to bot_verifier', v_table.columns, v_table.name);
  end loop;
end
$$;
