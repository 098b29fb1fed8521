-- Purpose: the console shows the messages a summary was made from, which are those after a fresh start.

grant select (history_from) on public.agent_chats to bot_console;
