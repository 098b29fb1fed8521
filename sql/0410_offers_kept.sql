-- Purpose: the card that offers a private answer goes with the question that it quotes.

-- Who showed an offer says which card it is, under the token of the person it was shown to.
grant update (kept_cards) on public.agent_turns to authenticated;
