-- Purpose: the service empties the tables of turns, and what hangs on them with them.

grant truncate on bot_private.source_terms to service_role;
