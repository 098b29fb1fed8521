-- Purpose: the tables whose triggers stand in these files, locked before anything else and in the
-- order in which a turn writes to them: no turn and this transaction can wait for each other.

lock table public.agent_chats, public.agent_turns, public.agent_messages, public.agent_working_memory,
  public.imported_messages
  in share row exclusive mode;
