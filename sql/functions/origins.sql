-- Purpose: what turns came from. Every question about it is answered here, from `origin`, `parent_id` and `cause`.

-- A turn, the one that it came from, and so on: the nearest first.
create or replace function bot_private.turn_chain(p_turn_id text) returns setof public.agent_turns
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  with recursive chain as (
    select t as turn, 1 as step from public.agent_turns t where t.id = p_turn_id
    union all
    select p, c.step + 1
    from chain c join public.agent_turns p on p.id = (c.turn).parent_id
    where c.step < 100
  )
  select (c.turn).* from chain c order by c.step
$$;

-- The turn that first answered the question of this one: itself, unless it answers that again.
create or replace function bot_private.first_asked(p_turn_id text) returns public.agent_turns
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select c.* from bot_private.turn_chain(p_turn_id) c
  where c.origin not in ('again', 'retry')
  limit 1
$$;

-- When the question of a turn was written. Asked again, that is when it was first asked, as long as there was
-- nothing but apologies for it; after an answer it is asked anew.
create or replace function bot_private.written_at(p_turn_id text) returns timestamptz
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  with chain as materialized (
    select c.id, c.origin, c.outcome, c.ordinality as step
    from bot_private.turn_chain(p_turn_id) with ordinality c
  )
  select m.created_at
  from chain c join public.agent_messages m on m.turn_id = c.id and m.role = 'user' and m.chunk = 0
  where not exists (
    select from chain p
    where p.step < c.step and p.origin <> 'again'
       or p.step between 2 and c.step and p.outcome is distinct from 'apologised')
  order by c.step desc limit 1
$$;

-- Whether the question of a turn is none that a person wrote there: it stood on a button, or was copied.
create or replace function bot_private.is_pressed(p_turn public.agent_turns) returns boolean
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(case when p_turn.origin in ('again', 'retry')
    then (bot_private.first_asked(p_turn.id)).origin else p_turn.origin end
    in ('button', 'private_answer'), false)
$$;

-- Whether only the person it is of was shown it, beside a group or in p2p. What they shared in a group is not.
create or replace function bot_private.is_private(p_turn public.agent_turns) returns boolean
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select exists (
    select from bot_private.turn_chain(p_turn.id) c
    where c.origin in ('private_answer', 'offer') and c.chat_id = p_turn.chat_id)
$$;

-- The turn of this origin, whatever its id; null: there is none yet.
create or replace function bot_private.led_to(p_origin text, p_parent_id text, p_cause text)
returns text
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select t.id from public.agent_turns t
  where t.parent_id = p_parent_id and t.origin = p_origin and t.cause = p_cause
$$;

-- The turn without which one of this origin does not stand: its question was copied from there, or stood there.
-- A reaction is a person's own word.
create or replace function bot_private.goes_with(p_origin jsonb) returns text
language sql immutable parallel safe security invoker
return case when p_origin ->> 'origin' <> 'reaction' then p_origin ->> 'parent_id' end;

-- The last card of a turn.
create or replace function bot_private.last_card(p_turn_id text) returns text
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select m.message_id from public.agent_messages m
  where m.turn_id = p_turn_id and m.role = 'assistant' and m.status = 'sent'
  order by m.chunk desc limit 1
$$;

-- The Feishu message that a turn answers: one that somebody wrote, or the card that was pressed or reacted to;
-- null where there is none.
create or replace function bot_private.answered_message(p_turn_id text) returns text
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select case
    when f.origin in ('message', 'unasked') then f.id
    when f.origin in ('button', 'private_answer') then (
      select b.message_id from public.agent_buttons b where b.turn_id = f.parent_id and b.id = f.cause)
    when f.origin = 'reaction' then bot_private.last_card(f.parent_id) end
  from bot_private.first_asked(p_turn_id) f
$$;

-- The message that the turn p_turn_id answers, if a person wrote it; of a turn that is not there any more its id.
create or replace function bot_private.asked_in(p_turn_id text) returns text
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select case
    when not exists (select from public.agent_turns t where t.id = p_turn_id) then p_turn_id
    when f.origin in ('message', 'unasked') then f.id end
  from bot_private.first_asked(p_turn_id) f
$$;
