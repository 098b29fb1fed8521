-- Purpose: what recall searched before is dropped, now that nothing reads it.

drop policy agent_turn_terms_select on public.agent_turn_terms;
drop policy agent_turn_terms_insert on public.agent_turn_terms;
drop policy agent_turn_terms_update on public.agent_turn_terms;
drop policy agent_turn_terms_delete on public.agent_turn_terms;
drop table public.agent_turn_terms;
