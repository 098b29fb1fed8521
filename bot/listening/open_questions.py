"""Whether a question that nobody put to the bot may be answered by it. Pure.

The bot prefers silence: whatever may be an answer to the question counts as one.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime

from bot.listening.cues import Cue, is_closing, is_side_talk
from bot.listening.decisions import Decision, IncomingMessage, Reason
from bot.listening.exchange import LastExchange
from bot.listening.questions import is_question
from bot.listening.topics import link
from bot.listening.transcript import MessageRecord
from bot.text.slash_commands import parse

_EVERYBODY = re.compile(
    r"^\W*(?:(?:hi|hey|hello|guys|folks|all|everyone|everybody|team|please)\b[\s,]*)*"
    r"(?:(?:do|does|did|can|could|would)\s+)?(?:anyone|anybody|someone|somebody|who)"
    r"(?: here| else)?\s+(?:happens? to )?(?:knows?|remembers?|recalls?|tell (?:me|us)|say)\s+"
    r"(?=(?:when|what|where|who|whose|which|why|how|if|whether)\b)"
    r"|^\W*(?:(?:请问|问一下|想问下?|求助)[\s,，]*)?(?:(?:有没有|有)[人谁]|谁|大家|各位|你们)(?:还|都)?"
    r"(?:知道|记得|清楚|了解|晓得)",
    re.IGNORECASE,
)
_SILENT = frozenset(
    {Reason.NO_TRIGGER, Reason.OTHER_TOPIC, Reason.MODE_MENTION, Reason.MODE_THREADS}
)


def may_wait(message: IncomingMessage, decision: Decision) -> bool:
    """Whether an unanswered message is a question to everybody, in the main chat or a thread."""
    silent = not decision.respond and decision.reason in _SILENT
    aside = decision.cue in (Cue.SIDE_TALK, Cue.CLOSING) and not _EVERYBODY.match(message.text)
    is_addressed = message.mentions_others or message.quotes
    if not silent or aside or is_addressed or message.is_bot:
        return False
    return is_open_question(message.text, ())


def is_open_question(text: str, names: Iterable[str]) -> bool:
    """A question to nobody of those `names`, and neither side talk nor a command."""
    words = itself(text)
    if words[:1] in ("/", "／") or "@" in words or parse(words) or not is_question(words):
        return False
    around = LastExchange(names=tuple(sorted(name for name in names if name)))
    return not is_side_talk(words, around) and not is_closing(words)


def itself(text: str) -> str:
    """The question without asking whether anybody knows: “does anybody know when …?”"""
    return _EVERYBODY.sub("", text.strip())


def is_taken_up(messages: Sequence[MessageRecord], message_id: str) -> bool:
    """Whether somebody took the question up in the chat's messages, oldest first; also where it is
    not among them. Its own author may ask once more."""
    at = next((i for i, one in enumerate(messages) if one.message_id == message_id), None)
    if at is None:
        return True
    answers = link(messages)
    topics: list[int] = []
    for index, answer in enumerate(answers):
        topics.append(topics[answer] if answer < index else index)
    question = messages[at]
    return any(
        (topics[index] == topics[at] or one.root_id == message_id or one.quotes == message_id)
        and (one.author_id != question.author_id or not is_question(one.content))
        for index, one in enumerate(messages)
        if index > at
    )


def is_gone_on(thread: Sequence[MessageRecord], message_id: str) -> bool:
    """Whether anything was said in a thread after the question but the question again; also where
    it is not in the thread's messages, oldest first."""
    at = next((i for i, one in enumerate(thread) if one.message_id == message_id), None)
    if at is None:
        return True
    asker = thread[at].author_id
    return any(one.author_id != asker or not is_question(one.content) for one in thread[at + 1 :])


def is_told(lines: Iterable[str]) -> bool:
    """Whether one of these was stated, not merely asked or commanded."""
    return any(not parse(one) and not is_question(one.strip()) for one in lines)


def speaks_at(moment: datetime, hours: tuple[int, int]) -> bool:
    """Whether a local time lies in these hours, which may go over midnight."""
    begin, end = hours
    if begin <= end:
        return begin <= moment.hour < end
    return moment.hour >= begin or moment.hour < end
