-- Purpose: a record of a turn is a line without the names of its fields: two fifths of what it was. Those of before
-- are read as they are, until TRACE_DAYS has passed.

alter table public.agent_turn_records
  alter column record drop not null,
  add column short text,  -- as bot_private.short_record makes it
  add constraint agent_turn_records_one_form check ((record is null) <> (short is null)) not valid,
  add constraint agent_turn_records_short_size check (length(short) <= 65536) not valid;
