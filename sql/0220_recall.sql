-- Purpose: a turn is found by who spoke in it.

create or replace view public.agent_turn_texts with (security_invoker = true) as
select turn_id, conversation_id, user_id, tenant_key, chat_id, min(id) as first_id,
       min(created_at) as asked_at, string_agg(content, e'\n' order by id) as content,
       max(actor_id) as actor_id, max(actor_name) filter (where role = 'user') as actor_name
from public.agent_messages
where status <> 'failed'
group by turn_id, conversation_id, user_id, tenant_key, chat_id;
