-- Purpose: the console shows what people said of answers: who, of which turn, whether it helped. No words.

grant select on public.agent_feedback to bot_console;
create policy agent_feedback_console on public.agent_feedback
  for select to bot_console using (true);
