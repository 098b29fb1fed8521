-- Purpose: what a token without claims asks is answered at once: nothing, and no table is read.
--
-- Each policy says twice of which tenant a row is. From two values of one column the planner infers that they
-- are equal, and checks that before it reads a row: without the claim one of them is null. Under row-level
-- security a condition that names no column is checked row by row. Other tables have an index that begins
-- with what their policy asks for.

-- in the order in which a turn writes
lock table public.agent_chats, public.agent_turns, public.agent_messages, public.agent_working_memory in access exclusive mode;

create policy agent_chats_of_a_tenant on public.agent_chats as restrictive for all to authenticated
  using (tenant_key = (select public.claim('tenant_key'))
         and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_turns_of_a_tenant on public.agent_turns as restrictive for all to authenticated
  using (tenant_key = (select public.claim('tenant_key'))
         and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_messages_of_a_tenant on public.agent_messages as restrictive for all to authenticated
  using (tenant_key = (select public.claim('tenant_key'))
         and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_working_memory_of_a_tenant on public.agent_working_memory as restrictive for all to authenticated
  using (tenant_key = (select public.claim('tenant_key'))
         and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_working_memory_history_of_a_tenant on public.agent_working_memory_history as restrictive for all to authenticated
  using (tenant_key = (select public.claim('tenant_key'))
         and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_notes_of_a_tenant on public.agent_notes as restrictive for all to authenticated
  using (tenant_key = (select public.claim('tenant_key'))
         and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_summaries_of_a_tenant on public.agent_summaries as restrictive for all to authenticated
  using (tenant_key = (select public.claim('tenant_key'))
         and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_buttons_of_a_tenant on public.agent_buttons as restrictive for all to authenticated
  using (tenant_key = (select public.claim('tenant_key'))
         and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_presses_of_a_tenant on public.agent_presses as restrictive for all to authenticated
  using (tenant_key = (select public.claim('tenant_key'))
         and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_timers_of_a_tenant on public.agent_timers as restrictive for all to authenticated
  using (tenant_key = (select public.claim('tenant_key'))
         and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_digest_sources_of_a_tenant on public.agent_digest_sources as restrictive for all to authenticated
  using (tenant_key = (select public.claim('tenant_key'))
         and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy agent_withdrawals_of_a_tenant on public.agent_withdrawals as restrictive for all to authenticated
  using (tenant_key = (select public.claim('tenant_key'))
         and tenant_key = coalesce((select public.claim('tenant_key')), ''));
create policy chats_of_a_tenant on public.chats as restrictive for all to authenticated
  using (tenant_key = (select public.claim('tenant_key'))
         and tenant_key = coalesce((select public.claim('tenant_key')), ''));
