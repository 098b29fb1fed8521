-- Purpose: a group whose owner says that newcomers do not see earlier messages is told nothing from before
-- the newest of its members joined.
--
-- Feishu tells an app of that setting of a group only by refusing single threads, so the group states it.

alter table public.chat_rules add column history text check (history in ('hidden'));  -- null: everybody's
grant update (history) on public.chat_rules to authenticated;

-- Since when what was said in the token's chat may be told there. Who is in it is everybody's matter, which no
-- token reads; only the time leaves. Where nobody knows who is in it, now.
create function bot_private.told_since() returns timestamptz
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_chat_id constant text := public.claim('chat_id');
begin
  if current_setting('feishu_bot.tells', true) = 'nothing' or not exists (
    select from public.chat_rules r
    where r.chat_id = v_chat_id and r.tenant_key = coalesce(public.claim('tenant_key'), '')
      and r.history = 'hidden')
  then
    return '-infinity';
  elsif not exists (
    select from public.chats c
    where c.chat_id = v_chat_id and c.members_read_at > now() - public.membership_lasts())
  then
    return now();
  end if;
  return coalesce((
    select max(m.joined_at) from public.chat_members m
    where m.chat_id = v_chat_id and m.left_at is null), '-infinity');
end
$$;

-- The sender's turns that are not answered yet: somebody who joins meanwhile does not stop them.
create function bot_private.turns_under_way() returns text[]
language sql stable security invoker set search_path = ''
as $$
  select array(
    select t.id from public.agent_turns t
    where t.state in ('open', 'pending') and t.actor_id = public.claim('actor')
      and t.chat_id = public.claim('chat_id')
      and t.tenant_key = coalesce(public.claim('tenant_key'), ''))
$$;
revoke all on function bot_private.told_since(), bot_private.turns_under_way() from public, anon;
grant execute on function bot_private.told_since(), bot_private.turns_under_way()
  to authenticated, service_role;

-- Of a summary the time of the first words in it; unknown of those from before.
alter table public.agent_summaries add column first_said_at timestamptz not null default '-infinity';
grant update (first_said_at) on public.agent_summaries to authenticated;

-- "is not false": no plan goes by this condition, which mostly holds for every row.
create policy agent_messages_told on public.agent_messages as restrictive for select to authenticated
  using ((created_at >= (select bot_private.told_since())
          or turn_id = any ((select bot_private.turns_under_way())::text[])) is not false);
create policy chat_transcript_told on public.chat_transcript as restrictive for select to authenticated
  using (("timestamp" >= (select extract(epoch from bot_private.told_since()) * 1000)) is not false);
create policy agent_working_memory_told on public.agent_working_memory
  as restrictive for select to authenticated
  using ((updated_at >= (select bot_private.told_since())) is not false);
create policy agent_working_memory_history_told on public.agent_working_memory_history
  as restrictive for select to authenticated
  using ((select bot_private.told_since()) = '-infinity');
create policy agent_notes_told on public.agent_notes as restrictive for select to authenticated
  using ((created_at >= (select bot_private.told_since())) is not false);
create policy agent_summaries_told on public.agent_summaries as restrictive for select to authenticated
  using (first_said_at >= (select bot_private.told_since()));
