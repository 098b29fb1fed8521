-- Purpose: what somebody reacted to.

-- The bot's card, if it ends an answer to whoever reacted and they have written nothing there since;
-- else null.
create or replace function public.card_asked(
  p_message_id text, p_tenant_key text, p_operator_id text
) returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object(
    'chat_id', m.chat_id, 'root_id', c.root_id, 'chat_type', coalesce(c.chat_type, 'group'),
    'content', m.content, 'turn_id', m.turn_id)
  from public.agent_messages m
  join public.agent_chats c on c.id = m.conversation_id and c.user_id = m.user_id
    and c.tenant_key = m.tenant_key
  where m.message_id = p_message_id and m.role = 'assistant' and m.status = 'sent'
    and m.tenant_key = p_tenant_key and m.actor_id = p_operator_id
    and not exists (
      select from public.agent_messages l
      where l.turn_id = m.turn_id and l.role = 'assistant' and l.chunk > m.chunk)
    and not exists (
      select from public.agent_messages l
      where l.conversation_id = m.conversation_id and l.tenant_key = m.tenant_key
        and l.role = 'user' and l.actor_id = p_operator_id and l.id > m.id
        and l.turn_id is distinct from bot_private.led_to('reaction', m.turn_id, ''))
$$;
