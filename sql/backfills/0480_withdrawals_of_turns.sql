-- Purpose: a token adds no withdrawal by itself any more: the functions look whose card it is.

drop policy agent_withdrawals_insert on public.agent_withdrawals;
revoke insert on public.agent_withdrawals from authenticated;
