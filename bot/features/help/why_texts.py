"""Why the bot spoke, or did not, in words and in both languages. Pure."""

from __future__ import annotations

from datetime import datetime

from bot.features.help.texts import say
from bot.feishu import markup
from bot.listening.bot_budget import PER_PAIR_AND_HOUR, PER_REQUEST
from bot.listening.conversation_store import PastDecision
from bot.listening.decisions import AddressedBy, Reason
from bot.text.dates import spoken
from bot.text.languages import LANGUAGES, Language, Sentence
from memory.text import one_line

_NO_HINT = frozenset(
    {
        Reason.OWN_MESSAGE,
        Reason.BOT_WITHOUT_MENTION,
        Reason.BOT_LOOP_LIMIT,
        Reason.RATE_LIMITED,
    }
)

_A_MINUTE_S = 90
_WORDS_CHARS = 60


def in_short(respond: bool, reason: str, cue: str = "") -> Sentence | None:
    """What was decided and why, where no more than the reason and the cue is known; None for a
    reason that is not known any more."""
    if reason not in set(Reason):
        return None
    if reason == Reason.LLM_JUDGE:
        why = "judged-yes" if respond else "judged-no"
    elif reason == Reason.EXPLICIT_TRIGGER and cue in set(AddressedBy):
        why = f"address-{cue}"
    else:
        why = "why-unknown" if reason == Reason.NO_TRIGGER else f"why-{reason}"
    key = "answered-in-short" if respond else "silent-in-short"
    en, zh = (say(key, one, why=_reason(why, None, 0, one)) for one in LANGUAGES)
    return Sentence(en, zh)


def explained(
    decision: PastDecision, name: str, at: datetime, window_s: int, language: Language
) -> str:
    """What was decided on which message, and why. `name` is "" when nobody knows whose it is."""
    why = _reason(_why(decision), decision.since_bot_ms, window_s, language)
    key = "answered" if decision.respond else "silent"
    explanation = say(key, language, what=_message(decision, name, at, language), why=why)
    silent = not decision.respond and decision.reason not in _NO_HINT
    return explanation + (say("hint", language) if silent else "")


def _message(decision: PastDecision, name: str, at: datetime, language: Language) -> str:
    """The message by its words, or by its time where they are gone."""
    who = one_line(name).replace("*", "＊").replace("`", "'")
    words = markup.verbatim(shortened(decision.words))
    if words:
        return say("their-words" if who else "words", language, name=who, words=words)
    when = spoken.moment(at, language, now=at)
    return say("their-message" if who else "message", language, name=who, at=when)


def shortened(words: str) -> str:
    """The beginning of a message on one line."""
    line = one_line(words)
    return line if len(line) <= _WORDS_CHARS else f"{line[: _WORDS_CHARS - 1]}…"


def _why(decision: PastDecision) -> str:
    """The key of the reason."""
    reason = Reason(decision.reason)
    if reason is Reason.LLM_JUDGE:
        return f"judged-{decision.verdict or 'error'}"
    if reason is Reason.NO_TRIGGER:
        return f"cue-{decision.cue or 'none'}"
    if reason is Reason.EXPLICIT_TRIGGER and decision.cue:
        return f"address-{decision.cue}"
    return f"why-{reason}"


def _reason(key: str, since_bot_ms: int | None, window_s: int, language: Language) -> str:
    return say(
        key,
        language,
        since=_since(since_bot_ms, language),
        window_s=window_s,
        in_a_row=PER_REQUEST,
        an_hour=PER_PAIR_AND_HOUR,
    )


def _since(since_bot_ms: int | None, language: Language) -> str:
    if since_bot_ms is None:
        return say("since-unknown", language)
    seconds = max(1, since_bot_ms // 1000)
    if seconds > _A_MINUTE_S:
        return say("since-minutes", language, n=seconds // 60)
    return say("since-seconds", language, n=seconds)
