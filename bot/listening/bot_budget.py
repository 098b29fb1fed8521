"""How often the bot may still answer other bots, so that no two bots talk forever. Pure.

Only a person's message to a bot renews the budget; people's other talk does not. With the numbers
below, this bot and another one that answers everything send at most six messages together for one
message of a person to either.
"""

from dataclasses import dataclass

PER_REQUEST = 2
PER_SHARED_REQUEST = 1  # the person asked several bots, which all answer anyway
PER_PAIR_AND_HOUR = 12
HOUR_MS = 3_600_000


@dataclass(frozen=True)
class BotBudget:
    """What the budget is counted from. Times are ms since the epoch.

    `answers` are (open_id of the other bot, time of its message) for each message of a bot that got
    an answer here or is about to. `request_ms` is when a person last wrote to this bot or
    another, `shared` whether to both at once, and `unasked` how many messages to nobody this bot
    has answered since, a moment ago.
    """

    answers: tuple[tuple[str, int], ...] = ()
    request_ms: int | None = None
    shared: bool = False
    unasked: int = 0

    def left(self, bot_id: str, at: int, *, is_reply: bool) -> int:
        """How many more answers that bot gets, this one included, for its message at `at`.

        Without a request a bot gets answers every hour, since an alert may ask as well. A reply
        belongs to an exchange that is under way, however slow, and gets no new ones by waiting.
        """
        request_ms = self.request_ms or 0
        since = request_ms if is_reply else max(request_ms, at - HOUR_MS + 1)
        spent_answers = sum(time >= since for _, time in self.answers)
        limit = PER_SHARED_REQUEST if self.shared and since == request_ms else PER_REQUEST
        lately = sum(bot == bot_id and time > at - HOUR_MS for bot, time in self.answers)
        # Bots that talk to each other do not use up the answer to a third one.
        first = 1 if not lately and not is_reply else 0
        return min(max(limit - spent_answers, first) - self.unasked, PER_PAIR_AND_HOUR - lately)


NOTHING_SPENT = BotBudget()
