-- Purpose: the rules that a chat gives the bot, and who may change them.
--
-- Whoever is in a chat may read its rules. They are changed by its owner and managers, as Feishu
-- named them a moment ago, and by who added the bot; in a p2p chat by the person themselves, who is
-- stored as its owner. The policies check that, whatever calls.

create table public.chat_rules (
  tenant_key text not null default '',
  chat_id text not null check (chat_id <> ''),
  mode text check (mode in ('mention', 'threads', 'follow', 'all')),  -- null: the environment's
  language text check (language in ('zh', 'en', 'auto')),             -- null: the environment's
  instructions text not null default '' check (length(instructions) <= 500),
  updated_at timestamptz not null default now(),
  primary key (tenant_key, chat_id)
);

create table public.chat_managers (
  tenant_key text not null default '',
  chat_id text not null check (chat_id <> ''),
  open_id text not null check (open_id <> ''),
  role text not null check (role in ('manager', 'adder')),  -- the owner is a manager
  seen_at timestamptz not null default now(),  -- when Feishu said so; a manager's expires
  primary key (tenant_key, chat_id, open_id, role)
);
create index chat_managers_person_idx on public.chat_managers (open_id);

alter table public.chat_rules enable row level security;
alter table public.chat_managers enable row level security;

create policy chat_managers_select on public.chat_managers for select to authenticated using (
  chat_id = (select public.claim('chat_id'))
  and tenant_key = coalesce((select public.claim('tenant_key')), '')
  and open_id = (select public.claim('actor')));

create policy chat_rules_select on public.chat_rules for select to authenticated using (
  chat_id = (select public.claim('chat_id'))
  and tenant_key = coalesce((select public.claim('tenant_key')), ''));

create policy chat_rules_insert on public.chat_rules for insert to authenticated with check (
  chat_id = (select public.claim('chat_id'))
  and tenant_key = coalesce((select public.claim('tenant_key')), '')
  and exists (
    select from public.chat_managers m
    where m.chat_id = chat_rules.chat_id and m.tenant_key = chat_rules.tenant_key
      and m.open_id = (select public.claim('actor'))
      and (m.role = 'adder' or m.seen_at > now() - interval '10 minutes')));

create policy chat_rules_update on public.chat_rules for update to authenticated using (
  chat_id = (select public.claim('chat_id'))
  and tenant_key = coalesce((select public.claim('tenant_key')), '')
  and exists (
    select from public.chat_managers m
    where m.chat_id = chat_rules.chat_id and m.tenant_key = chat_rules.tenant_key
      and m.open_id = (select public.claim('actor'))
      and (m.role = 'adder' or m.seen_at > now() - interval '10 minutes')));

revoke all on public.chat_rules, public.chat_managers from anon, authenticated;
grant select, insert on public.chat_rules to authenticated;
grant update (mode, language, instructions, updated_at) on public.chat_rules to authenticated;
grant select on public.chat_managers to authenticated;
grant select, insert, update, delete on public.chat_rules, public.chat_managers to service_role;
