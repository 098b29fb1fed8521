-- Purpose: the tokens of turns that were stored before there was recall. A question that is being
-- answered is indexed with its answer.

insert into public.agent_turn_terms
select t.turn_id, t.conversation_id, t.user_id, t.tenant_key, t.chat_id, t.first_id, t.asked_at,
       cardinality(k.tokens), bot_private.recall_terms(k.tokens)
from public.agent_turn_texts t, bot_private.recall_tokens(t.content) k(tokens)
where not exists (select from public.agent_turn_terms i where i.turn_id = t.turn_id)
  and not exists (select from public.agent_turns o where o.id = t.turn_id and o.state = 'open')
on conflict (turn_id) do nothing;
