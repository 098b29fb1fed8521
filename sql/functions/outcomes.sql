-- Purpose: how turns ended. Every figure of it, on a screen or in a script, is a query over
-- agent_turns.outcome, or of these functions.
--
-- answered: people have the answer ('command': by a command; 'elsewhere': shown to the person alone)
-- apologised: people have a word that there is none; the reason is the model's, or 'given_up'
-- refused: the bot was not to answer: a limit, or what it cannot read
-- stopped: somebody stopped the answer
-- silent: nothing was to be said
-- undelivered: Feishu does not take the answer; the reason is its code
-- taken_back: the question, or what the answer was made from, was taken back
-- offer: no turn of anybody's, but the bot's offer to look elsewhere

create or replace function public.end_turn() returns trigger
language plpgsql security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  new.outcome := case
    when new.state in ('open', 'pending') then null
    when new.origin = 'offer' then 'offer'
    when new.state = 'cancelled' or new.intended ->> 'outcome' = 'taken_back'
         or new.state = 'failed' and new.error = 'taken back' then 'taken_back'
    when new.state = 'failed' and new.error = 'nothing to say' then 'silent'
    when new.state = 'failed' then 'undelivered'
    else coalesce(new.intended ->> 'outcome', 'answered') end;
  new.outcome_reason := case
    when new.outcome = 'silent' and new.state = 'failed' then 'nothing_to_say'
    when new.outcome = 'undelivered' then coalesce(new.error, 'unknown')
    when new.outcome in ('taken_back', 'offer') then ''
    else coalesce(left(new.intended ->> 'reason', 100), '') end;
  return new;
end
$$;

-- Whether a person wrote the question, and did not press it, and the bot did not begin by itself.
create or replace function bot_private.is_question(p_origin text) returns boolean
language sql immutable security invoker
return p_origin = 'message';

-- Messages heard since p_since by what came of them: questions by the outcome of their turns
-- ('under_way' without one), and those that the bot was silent about.
create or replace function bot_private.outcomes(p_since timestamptz)
returns table (outcome text, reason text, times bigint, last_at timestamptz)
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(t.outcome, 'under_way'), t.outcome_reason, count(*), max(t.updated_at)
  from public.agent_turns t
  where t.created_at > p_since and bot_private.is_question(t.origin)
  group by 1, 2
  union all
  select 'silent', d.reason, count(distinct d.message_id), max(d.created_at)
  from public.agent_decisions d
  where d.created_at > p_since and not d.respond
    and not exists (select from public.agent_turns t where t.id = d.message_id and t.outcome <> 'silent')
  group by 2
$$;
