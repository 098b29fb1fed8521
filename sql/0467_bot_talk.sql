-- Purpose: how often the bot has answered other bots, so that bots do not talk to each other forever.

-- When a person wrote it to this bot or another (ms since epoch, as Feishu's), and whether to both at once.
alter table public.agent_decisions add column request_ms bigint;
alter table public.agent_decisions add column shared boolean not null default false;

-- Messages of other bots to this one, oldest first: {message_id, bot_id, at}. note_bot_message keeps them.
alter table public.chat_conversations add column bot_talk jsonb not null default '[]';
grant update (bot_talk) on public.chat_conversations to authenticated;
