-- Purpose: a kept card is found by its Feishu message, so that no other turn withdraws it.

create index agent_turns_kept_card_idx on public.agent_turns using gin (kept_cards)
  where kept_cards <> '{}';
