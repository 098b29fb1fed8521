"""The bot's last word in a chat and what surrounds it. Pure."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LastExchange:
    """The bot's last word and what surrounds it.

    `asker` is the id of the person it answered, None if unknown; `since` what people wrote after
    it, as author id and text; `names` those of the other people around; `answered` the ids of those
    whom the bot answered before; `across` that it spoke in a thread and others outside of it since.
    """

    said: str = ""
    asked: str = ""
    asker: str | None = None
    since: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()
    bot_name: str = ""
    answered: frozenset[str] = frozenset()
    across: bool = False


NO_EXCHANGE = LastExchange()
