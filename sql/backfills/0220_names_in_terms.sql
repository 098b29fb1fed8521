-- Purpose: the names of those who spoke, in the tokens of turns that were stored before they counted.

update public.agent_turn_terms i
set length = cardinality(k.tokens), terms = bot_private.recall_terms(k.tokens)
from public.agent_turn_texts t,
  bot_private.recall_tokens(concat_ws(e'\n', t.actor_name, t.content)) k(tokens)
where t.turn_id = i.turn_id and t.actor_name <> '';
