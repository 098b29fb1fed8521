-- Purpose: what people let the bot do at Feishu as themselves, and their tokens, sealed by the application.

-- One row a person: what they granted and until when, and what they are asked for now (ask_…). It holds no token.
-- Only a token of the person's own place reads it, where chat_id is their open_id: no chat's token does.
create table public.user_tokens (
  tenant_key text not null,
  open_id text not null check (open_id <> ''),
  scopes text not null default '',  -- as Feishu granted them, with spaces between
  granted_at timestamptz,  -- null: nothing is granted
  access_until timestamptz,
  refresh_until timestamptz,  -- null: it cannot be refreshed
  sealed_with text not null default '',  -- the name of the key
  refreshed_by text not null default '',  -- who sends the refresh token now, which works once
  refresh_began_at timestamptz,
  ended text not null default '' check (ended = any ('{"",lost,refused,expired}')),  -- why; until they are told
  ended_at timestamptz,
  language text not null default '',  -- in which they last asked
  ask text not null default '',  -- the id of what is asked; '': nothing is
  ask_scopes text not null default '',
  ask_until timestamptz,
  ask_interval_s integer not null default 5,
  ask_sealed_with text not null default '',
  ask_outcome text not null default ''  -- what came of it, until they are told
    check (ask_outcome = any ('{"",connected,denied,expired,somebody_else,failed}')),
  ask_card text not null default '',  -- the card with the link
  ask_aside boolean not null default false,  -- whether it stands beside a group
  ask_place jsonb not null default '{}',  -- where and in which language it was asked for
  updated_at timestamptz not null default now(),
  primary key (tenant_key, open_id)
);
alter table public.user_tokens enable row level security;
create policy user_tokens_select on public.user_tokens for select to authenticated using (
  tenant_key = (select public.claim('tenant_key'))
  and open_id = (select public.claim('actor'))
  and open_id = (select public.claim('sub'))
  and open_id = (select public.claim('chat_id'))
  and (select public.claim('chat_type')) = 'p2p'
  and (select public.claim('actor_tenant')) is null);
create policy user_tokens_insert on public.user_tokens for insert to authenticated with check (
  tenant_key = (select public.claim('tenant_key'))
  and open_id = (select public.claim('actor'))
  and open_id = (select public.claim('sub'))
  and open_id = (select public.claim('chat_id'))
  and (select public.claim('chat_type')) = 'p2p'
  and (select public.claim('actor_tenant')) is null);
create policy user_tokens_update on public.user_tokens for update to authenticated using (
  tenant_key = (select public.claim('tenant_key'))
  and open_id = (select public.claim('actor'))
  and open_id = (select public.claim('sub'))
  and open_id = (select public.claim('chat_id'))
  and (select public.claim('chat_type')) = 'p2p'
  and (select public.claim('actor_tenant')) is null);
create policy user_tokens_delete on public.user_tokens for delete to authenticated using (
  tenant_key = (select public.claim('tenant_key'))
  and open_id = (select public.claim('actor'))
  and open_id = (select public.claim('sub'))
  and open_id = (select public.claim('chat_id'))
  and (select public.claim('chat_type')) = 'p2p'
  and (select public.claim('actor_tenant')) is null);
revoke all on public.user_tokens from anon, authenticated;
grant select, insert, delete, update (scopes, granted_at, access_until, refresh_until, sealed_with, refreshed_by,
    refresh_began_at, ended, ended_at, language, ask, ask_scopes, ask_until, ask_interval_s, ask_sealed_with, ask_outcome, ask_card,
    ask_aside, ask_place, updated_at) on public.user_tokens to authenticated;
grant select, insert, update, delete, truncate on public.user_tokens to service_role;

-- The tokens themselves, and the code of a device grant. No role reads or writes it, operators' neither, and no backup
-- has it: functions read and write what is of the person of the token. Operators can only empty it.
create table bot_private.user_token_seals (
  tenant_key text not null,
  open_id text not null,
  kind text not null check (kind = any ('{access,refresh,device}')),
  sealed text not null check (length(sealed) between 1 and 16384),
  primary key (tenant_key, open_id, kind),
  foreign key (tenant_key, open_id) references public.user_tokens (tenant_key, open_id) on delete cascade
);
alter table bot_private.user_token_seals enable row level security;
revoke all on bot_private.user_token_seals from public, anon, authenticated, service_role;
grant truncate on bot_private.user_token_seals to service_role;
