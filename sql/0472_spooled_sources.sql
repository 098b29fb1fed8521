-- Purpose: an answer that was given while the memory was away goes with its sources, too. Ids only.

alter table feishu_bot.spool add column given jsonb not null default '[]';
