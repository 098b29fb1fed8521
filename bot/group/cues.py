"""Does a message that addresses nobody go on with what the bot said? Pure, English and Chinese.

The bot prefers silence. What counts, in this order: who is called; talk among people; whether
those who spoke since the bot's last word spoke with the bot; whether it had asked something; then
the form of the message (`bot.group.questions`, `bot.group.requests`, `bot.group.replies`). The
person it answered may go on freely; somebody else must also take up what was said. What is clear
neither way is `UNCLEAR`, for the judge model if there is one.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from bot.group.calling import calls, names_a_person
from bot.group.questions import asks_for_a_name, is_question, last_question
from bot.group.replies import (
    corrects,
    could_answer,
    does_something,
    points_at_a_part,
    postpones,
    replaces_a_value,
    reports_failure,
    states_a_fact,
    takes_part,
)
from bot.group.requests import (
    POLITE_REQUEST,
    continues,
    is_ellipsis,
    names_one_more,
    points_at_an_item,
    requests,
    restyles,
    sentences,
)
from bot.group.wording import numbers, pattern, topics


class Cue(StrEnum):
    """How a message reads."""

    FOLLOW_UP = "follow_up"
    CLOSING = "closing"
    SIDE_TALK = "side_talk"
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Exchange:
    """The bot's last word and what surrounds it.

    `asker` is the id of the person it answered, None if unknown; `since` what people wrote after
    it, as author id and text; `names` those of the other people around.
    """

    said: str = ""
    asked: str = ""
    asker: str | None = None
    since: tuple[tuple[str, str], ...] = ()
    names: tuple[str, ...] = ()
    bot_name: str = ""


NO_EXCHANGE = Exchange()
_READ_CHARACTERS = 1000


def looks_like_followup(text: str, author: str = "", exchange: Exchange = NO_EXCHANGE) -> bool:
    """True when `author` most likely speaks to the bot with `text`."""
    return cue_of(text, author, exchange) is Cue.FOLLOW_UP


def cue_of(text: str, author: str, exchange: Exchange) -> Cue:
    """How `text`, of a long one its beginning, reads after `exchange`: a follow-up must not fall
    into talk of other people."""
    text = text[:_READ_CHARACTERS]
    cue = _wording(text, author, exchange)
    if cue is Cue.FOLLOW_UP and _falls_into_talk(text, author, exchange):
        return Cue.UNCLEAR
    return cue


def _falls_into_talk(text: str, author: str, exchange: Exchange) -> bool:
    """Whether others have spoken among themselves since, and the text may be for them."""
    last = exchange.since[-1] if exchange.since else None
    asks = is_question(text)
    if last and last[0] != author and is_question(last[1]) and not _wants_work(text):
        return True  # it may be the answer to the question of somebody else
    question = last_question(exchange.said)
    answers = bool(question) and could_answer(text, question) and not (asks or _THANKS.search(text))
    talk = [
        said
        for who, said in exchange.since
        if who != author
        and _wording(said, who, exchange) not in (Cue.FOLLOW_UP, Cue.CLOSING)
        and not (answers and not is_question(said) and takes_part(said, question))
    ]
    if not talk or calls(text, exchange.bot_name):
        return False
    about = topics(text)
    only_ours = about & topics(exchange.said) and not about & topics("\n".join(talk))
    return not ((restyles(text) and not asks) or (only_ours and (asks or requests(text))))


def _wants_work(text: str) -> bool:
    """Whether it begins with a question or a request: who answers first asks whom is answered."""
    begin = next(iter(sentences(text)), "")
    return is_question(begin) or requests(begin) or restyles(text)


def _wording(text: str, author: str, exchange: Exchange) -> Cue:
    whole = _URL.sub(" ", text).strip()
    rest = _without_courtesies(whole)
    if calls(rest, exchange.bot_name):
        return Cue.FOLLOW_UP
    was_answered = exchange.asker in (None, author)
    answers = was_answered and _answers(whole, rest, author, exchange)
    named = names_a_person(rest, exchange.names)
    if answers and named and not _YOU.search(rest):
        return Cue.FOLLOW_UP if asks_for_a_name(last_question(exchange.said)) else Cue.SIDE_TALK
    briefly = answers and is_ellipsis(rest) and not is_question(rest) and not _LEAVES.search(rest)
    chats = _SIDE_TALK.search(rest) or _small_talk(rest, exchange)
    if named or (chats and not briefly):
        return Cue.SIDE_TALK
    if answers:
        return Cue.FOLLOW_UP
    if not rest or postpones(rest) or (_THANKS.search(rest) and not is_question(rest)):
        return Cue.CLOSING
    clear = _goes_on(rest, whole, exchange) if was_answered else _joins_in(rest, exchange)
    return Cue.FOLLOW_UP if clear else Cue.UNCLEAR


def _small_talk(text: str, exchange: Exchange) -> bool:
    """Whether it is about lunch or the weekend, and neither asks on about what the bot said of it
    nor wants work done."""
    spoken = f"{exchange.said}\n{exchange.asked}".lower()
    words = {match.group().lower() for match in _SMALL_TALK.finditer(text)}
    asks_on = is_question(text) and all(word in spoken for word in words)
    return bool(words) and not asks_on and not requests(text)


def _answers(whole: str, rest: str, author: str, exchange: Exchange) -> bool:
    """Whether the bot's last word was a question, and this is the answer to it: with courtesies
    an answer may be one itself (yes), without them it must not say that something is being done."""
    question = last_question(exchange.said)
    answered = sum(who == author for who, _ in exchange.since) > 1
    return (
        bool(question)
        and not answered
        and could_answer(whole, question)
        and not does_something(rest)
    )


def _goes_on(text: str, whole: str, exchange: Exchange) -> bool:
    """Whether the person who was answered asks again, goes on, sets right, or wants more done."""
    if any(
        form(text)
        for form in (is_question, continues, restyles, requests, reports_failure, names_one_more)
    ):
        return True
    on_it = points_at_a_part(text) or _shared(text, exchange)
    return _sets_right(text, exchange) or bool(on_it and states_a_fact(whole))


def _sets_right(text: str, exchange: Exchange) -> bool:
    """Whether it calls wrong what the bot said last, or puts another value in the place of one."""
    return corrects(text) or replaces_a_value(text, exchange.said)


def _joins_in(text: str, exchange: Exchange) -> bool:
    """Whether somebody else does, which takes a link to what was said. “You” may be anybody; who
    sets right what was said last, or asks where it is from, means who said it."""
    asked_to_work = bool(POLITE_REQUEST.match(text))
    right_after = not exchange.since
    if right_after and (_sets_right(text, exchange) or _ASKS_HOW_IT_KNOWS.match(text)):
        return True
    if _YOU.search(text) and not asked_to_work:
        return False
    if asked_to_work and not _YOU.search(text):
        return True
    if continues(text) or restyles(text):
        return True
    if is_question(text):
        return bool(_shared(text, exchange) or _POINTS_BACK.search(text))
    about = topics(text)
    offered = last_question(exchange.said) and is_ellipsis(text) and about <= topics(exchange.said)
    if offered and about:
        return True
    return requests(text) and bool(_shared(text, exchange) or points_at_an_item(text))


def _shared(text: str, exchange: Exchange) -> frozenset[str]:
    """The words of weight, and the numbers, that the text shares with question and answer."""
    told = f"{exchange.asked}\n{exchange.said}"
    return (topics(text) & topics(told)) | (numbers(text) & numbers(told))


def _without_courtesies(text: str) -> str:
    position = 0
    while courtesy := _COURTESY.match(text, position):
        position = courtesy.end()
    return text[position:].strip()


_URL = re.compile(r"https?://\S+")
# Courtesies stand alone (“thanks!”) or before what matters (“ok, and how …?”).
_COURTESY = pattern(
    r"(?:thank(?:s| you)(?: so much| a lot)?|thx|ty|np|cool|nice|great|perfect|awesome|good)\b",
    r"(?:ok(?:ay)?|got it|yes|yep|sure|will do|done|lol|(?:ha){2,}|hm+|ah+|oh+)(?![\w'’])",
    "谢谢[你您]?|多谢|感谢|谢[啦了]|收到|明白了?|了解|知道了|辛苦[了啦]?|不错|没问题",
    "好[的滴嘞]|哈{2,}|嗯+",
    r"(?:可以|[好行哦可赞啊])(?=[\s,，。.!！~～…]|$)",
    r"[^\w\s@`\"'“”‘’(（<《/?？]+|\s+",
)
_THANKS = pattern(r"\b(?:thanks|thank you|thx)\b|谢谢|多谢|感谢|谢[啦了]")
_YOU = pattern(r"\byou(?:['’]\w+|rs?)?\b", "[你您]")
_ASKS_HOW_IT_KNOWS = pattern(
    r"(?:where|how|why) (?:do|did) you (?:know|find|get|read|think|come|see|say)\b",
    "[你您](?:是)?(?:怎么|从哪[里儿]?|在哪[里儿]?)(?:知道|看到|找到|查到|得[出来到]|算)",
)
_POINTS_BACK = pattern(
    r"\b(?:it|that|this|these|those|(?<!is )(?<!are )(?<!was )there|also|too|instead|else)\b",
    r"\bof the\b",
    "[这那][个样些几三两]|它|也|有没有.{1,6}的",
)

# A farewell, a leave, or several people: never an answer to the bot.
_LEAVES = pattern(
    r"\b(?:see|catch|talk to) (?:you|ya|u)\b(?! (?:have|need|want|are|can|did|said|mention))",
    r"\b(?:good ?night|bye(?: bye|-bye)?|so long|take care|ttyl|cya|have a (?:good|nice|great))\b",
    r"\b(?:you (?:all|guys|two|both|three|lot|folks|people)|y['’]?all|(?:all|both) of you)\b",
    "(?:[天头会儿早晚点下月年]|周[一二三四五六日末]|再)见[啦了哦~～。!！]*$",
    r"\b(?:brb|gtg|heading (?:out|home)|off (?:for|to))\b",
    r"\b(?:gotta|have to|need to|must) (?:go|run|leave)\b",
    "先走|先撤|先下了|[\u4e00-\u9fff]去[了啦][。!！]*$|回头[聊说见]",
    "拜拜|晚安|早安|你们|[你您]俩|诸位",
)
_SMALL_TALK = pattern(
    r"\b(?:lunch|dinner|breakfast|coffee|beers?|weekend|vacation|birthday|team building)\b",
    "吃饭|午饭|晚饭|早饭|奶茶|咖啡|夜宵|周末|下班|团建",
)
_SIDE_TALK = pattern(
    # To the group
    _LEAVES.pattern,
    r"\b(?:anyone|anybody|everyone|everybody|guys|folks)\b",
    r"\b(?:can|could|will|would|does|did|is|has) some(?:one|body)\b",
    r"\bwho(?: wants|['’]s (?:in|up)(?: for\b|[?!.\s]*$))",
    "大家|各位|咱们|有人|有谁|谁[要来去想有]",
    # To one colleague
    r"(?<!\bhow )(?<!\bwhere )(?<!\bwhy )\b(?:did|have|were|will|are) you\b(?! sure| certain)",
    r"\byour (?:side|end|turn|weekend|day|team|place)\b",
    "[你您](?:吃|今天|明天|昨天|周末|那[边里]|在哪|下班|[去来][吗不]|到了|看了|[做写弄]完)",
    r"\bmy bad\b|怪我",
    # Of the bot, not to it
    r"^(?:see|look|told you)[,!]|^(?:it|he|she) (?:(?:even|actually) (?:got|said)\b"
    r"|(?:even |really |actually )?(?:knows|knew|remember(?:s|ed)|underst(?:ands|ood))\b)",
    "^(?:看吧|瞧)|^它(?:居然|竟然|还|连|都|真)(?:知道|记得|懂)",
    # No answer is wanted
    r"\bwho (?:knows|cares|would have)\b|\bwhy (?:me|bother|oh why)\b|\banyways?\?*$",
    r"\bwhy (?:do|did|am|would) i (?:even|ever|still|always)\b",
    r"^(?:really|seriously|no way|right|you kidding)\s*[?!？！]+",
    r"\b(?:isn|wasn|aren)['’]t (?:that|this|it) (?:just|so|great|lovely|funny|wonderful)\b",
    "谁(?:知道|能想|料到)|怎么[又老总]|怎么可能|真的假的|不会吧|难道|何必|搞什么|什么鬼|^这不",
)
