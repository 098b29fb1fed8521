-- Purpose: turns that are to stop. It passes the conversation's lock by: a job would wait behind the
-- very turn that it stops.

-- Tells all workers, and whoever takes the turn up after a crash. False: it was asked for before.
create or replace function feishu_bot.stop_turn(p_turn_id text) returns boolean
language plpgsql volatile security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_new boolean;
begin
  insert into feishu_bot.stops (turn_id) values (p_turn_id) on conflict do nothing;
  v_new := found;
  perform pg_notify('feishu_bot_stops', p_turn_id);
  return v_new;
end
$$;

create or replace function feishu_bot.is_stopped(p_turn_id text) returns boolean
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$ select exists (select from feishu_bot.stops s where s.turn_id = p_turn_id) $$;

-- What was asked to stop lately: for workers that heard nothing of it.
create or replace function feishu_bot.recent_stops() returns jsonb
language sql stable security invoker set search_path = pg_catalog, pg_temp
as $$
  select coalesce(jsonb_agg(s.turn_id), '[]') from feishu_bot.stops s
  where s.asked_at > now() - interval '5 minutes'
$$;

-- The turns of the chat (p_in_thread: of this thread) that are being answered to the person, or about them.
create or replace function public.running_turns(
  p_conversation_id text, p_user_id text, p_actor_id text, p_tenant_key text, p_turn_id text,
  p_in_thread boolean default false
) returns jsonb
language plpgsql stable security invoker set search_path = pg_catalog, pg_temp
as $$
begin
  perform bot_private.require_identity(p_user_id, p_actor_id, p_conversation_id);
  return (
    select coalesce(jsonb_agg(t.id order by t.created_at), '[]') from public.agent_turns t
    where t.tenant_key = p_tenant_key and t.chat_id = bot_private.chat_of(p_conversation_id)
      and p_actor_id in (t.user_id, t.actor_id) and t.state = 'open' and t.id <> p_turn_id
      and (not p_in_thread or t.conversation_id = p_conversation_id)
      and t.updated_at > now() - interval '15 minutes');
end
$$;
