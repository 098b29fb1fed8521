-- Purpose: a schema for the functions that other functions are made of. It is none of those that
-- Supabase's API serves, so nobody with a token can call them by themselves, past the limits and the
-- identity that the functions in front of them check. Those run with the caller's rights, so the
-- caller needs the right to these too.

create schema if not exists bot_private;
revoke all on schema bot_private from public;
grant usage on schema bot_private to authenticated, service_role;
