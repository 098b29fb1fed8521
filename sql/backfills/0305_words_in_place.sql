-- Purpose: the place among the tokens of turns that were stored while its migration ran.

update public.agent_turn_terms t
set terms = terms || array_to_tsvector(array[bot_private.recall_place(tenant_key, chat_id)])
where not terms @@ quote_literal(bot_private.recall_place(tenant_key, chat_id))::tsquery;
