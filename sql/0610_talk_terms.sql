-- Purpose: what tells a line of talk after it has left its transcript, once and not for each turn that was given it.
-- Which those are, agent_turns.given says.
--
-- No token and no API reaches the table. A row goes with its source, and with the last turn that was given it.

create table bot_private.talk_terms (
  source text primary key,  -- message_id
  first_given timestamptz not null,  -- when the earliest of these turns began
  readers bigint[] not null,  -- the turns, as reader_number makes them
  terms bigint[] not null
);
alter table bot_private.talk_terms enable row level security;
revoke all on bot_private.talk_terms from public, anon, authenticated, service_role;
grant truncate on bot_private.talk_terms to service_role;
