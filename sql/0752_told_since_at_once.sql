-- Purpose: since when a chat may be told is looked up once while a turn begins, not by each of its statements.

-- feishu_bot.tells: 'nothing' where a function tells nothing of what it reads; 'all' where bot_private.tell_all found,
-- earlier in the same call, that nothing is hidden from anybody in the chat.
create or replace function bot_private.told_since() returns timestamptz
language plpgsql stable security definer set search_path = ''
as $$
declare
  v_chat_id text;
begin
  if current_setting('feishu_bot.tells', true) in ('nothing', 'all') then
    return '-infinity';
  end if;
  v_chat_id := public.claim('chat_id');
  if not exists (
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
