"""Does a message that addresses nobody go on with what the bot said? Pure, English and Chinese.

The bot prefers silence. What counts, in this order: who is called; talk among people; whether
those who spoke since the bot's last word spoke with the bot; whether it had asked something; then
the form of the message (`bot.group.questions`, `bot.group.requests`, `bot.group.replies`). The
person it answered may go on freely; somebody else must also take up what was said. What is clear
neither way is `UNCLEAR`, for the judge model if there is one.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bot.group.questions import asks_for_a_name, is_question, last_question
from bot.group.replies import (
    corrects,
    could_answer,
    does_something,
    points_at_a_part,
    postpones,
    reports_failure,
    states_a_fact,
)
from bot.group.requests import (
    POLITE_REQUEST,
    continues,
    is_ellipsis,
    names_one_more,
    points_at_an_item,
    requests,
    restyles,
)
from bot.group.wording import pattern, topics


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


def looks_like_followup(text: str, author: str = "", exchange: Exchange = NO_EXCHANGE) -> bool:
    """True when `author` most likely speaks to the bot with `text`."""
    return cue_of(text, author, exchange) is Cue.FOLLOW_UP


def cue_of(text: str, author: str, exchange: Exchange) -> Cue:
    """How `text` reads after `exchange`: a follow-up must not fall into talk of other people."""
    cue = _wording(text, author, exchange)
    if cue is Cue.FOLLOW_UP and _falls_into_talk(text, author, exchange):
        return Cue.UNCLEAR
    return cue


def _falls_into_talk(text: str, author: str, exchange: Exchange) -> bool:
    """Whether others have spoken among themselves since, and the text may be for them."""
    last = exchange.since[-1] if exchange.since else None
    asks = is_question(text)
    works = asks or requests(text) or restyles(text)
    if last and last[0] != author and is_question(last[1]) and not works:
        return True  # it may be the answer to the question of somebody else
    talk = [
        said
        for who, said in exchange.since
        if who != author and _wording(said, who, exchange) not in (Cue.FOLLOW_UP, Cue.CLOSING)
    ]
    if not talk or _calls(text, exchange.bot_name):
        return False
    about = topics(text)
    only_ours = about & topics(exchange.said) and not about & topics("\n".join(talk))
    return not ((restyles(text) and not asks) or (only_ours and (asks or requests(text))))


def _wording(text: str, author: str, exchange: Exchange) -> Cue:
    whole = _URL.sub(" ", text).strip()
    rest = _without_courtesies(whole)
    if _calls(rest, exchange.bot_name):
        return Cue.FOLLOW_UP
    was_answered = exchange.asker in (None, author)
    answers = was_answered and _answers(whole, rest, author, exchange)
    named = _names_a_person(rest, exchange.names)
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
    return corrects(text) or bool(on_it and states_a_fact(whole))


def _joins_in(text: str, exchange: Exchange) -> bool:
    """Whether somebody else does, which takes a link to what was said. “You” may be anybody."""
    asked_to_work = bool(POLITE_REQUEST.match(text))
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
    """The words of weight that the text shares with the question or the answer."""
    return topics(text) & topics(f"{exchange.asked}\n{exchange.said}")


def _without_courtesies(text: str) -> str:
    position = 0
    while courtesy := _COURTESY.match(text, position):
        position = courtesy.end()
    return text[position:].strip()


def _calls(text: str, name: str) -> bool:
    """“Memo, …”, “hey Memo: …” or “…, Memo?”"""
    if not name:
        return False
    start = _FILLER.sub("", text, count=1)
    end = text.rstrip(" ?？!！.。~")
    called = start.startswith(name) and start[len(name) :].lstrip()[:1] in (",", "，", ":", "：")
    return called or end.endswith((f", {name}", f"，{name}", f",{name}"))


def _names_a_person(text: str, names: Sequence[str]) -> bool:
    """Whether the text begins with a colleague's name or calls one."""
    start = _FILLER.sub("", text, count=1)
    called = [name for full in names for name in _called(full)]
    return bool(_CALL.match(start)) or any(
        _calls(text, name) or (start.startswith(name) and not _LATIN.match(start, len(name)))
        for name in called
    )


def _called(name: str) -> Iterable[str]:
    """The name, and of a Chinese name of three the given name."""
    if len(name) > 1:
        yield name
    if len(name) == 3 and _HAN.fullmatch(name[0]):
        yield name[1:]


_URL = re.compile(r"https?://\S+")
_HAN = re.compile("[\u4e00-\u9fff]")
_LATIN = re.compile("[A-Za-z0-9_]")

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
# “@…”, “Mei, …” or “小美，你…”: somebody is called, known or not.
_CALL = re.compile(
    "@|(?!(?:Also|And|But|So|Then|Well|Actually|Wait|No|Yes|Right|Sorry|Please|First|Otherwise"
    "|However|Still|Anyway|Instead|Again|Alternatively|Maybe|Now|If|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|Today|Tomorrow|Only|Both|Not)\\b)[A-Z][a-z]+,\\s"
    "|[A-Z][a-z]+ (?:can|could|will|would|did|do|are|were|have) you\\b"
    "|[\u4e00-\u9fff]{2,3}[,，]\\s*[你您]"
    "|(?!周[一二三四五六日天末几]|方[案便面法式]|马上|高[兴级]|万一|任[何务]|金额|白天|文[件档案字本])"
    "[王李张刘陈杨赵黄周吴徐孙胡朱高林何郭罗梁宋郑谢韩唐冯于董萧程曹袁邓许傅沈曾彭吕苏卢蒋蔡贾丁魏薛叶"
    "阎余潘杜戴夏钟汪田任姜范石姚谭廖邹熊金陆郝孔白崔康毛邱秦江史顾侯邵孟龙万段雷钱汤尹黎武贺赖龚文]"
    "[\u4e00-\u9fff]{1,2}(?:[,，]|.{0,2}[你您])"
    "|(?:小|老|阿)[\u4e00-\u9fff][,，\\s]*[你您]|[\u4e00-\u9fff](?:哥|姐|总|老师|经理)[,，\\s]"
)
_FILLER = re.compile(r"^(?:(?:hey|hi|hello|and|but|so)\b|[那哎嗨])[\s,，]*", re.IGNORECASE)

_YOU = pattern(r"\byou(?:['’]\w+|rs?)?\b", "[你您]")
_POINTS_BACK = pattern(
    r"\b(?:it|that|this|these|those|(?<!is )(?<!are )(?<!was )there|also|too|instead|else)\b",
    r"\bof the\b",
    "[这那][个样些几三两]|它|也|有没有.{1,6}的",
)

# A farewell, or several people: never an answer to the bot.
_LEAVES = pattern(
    r"\b(?:see|catch|talk to) (?:you|ya|u)\b(?! (?:have|need|want|are|can|did|said|mention))",
    r"\b(?:good ?night|bye(?: bye|-bye)?|so long|take care|ttyl|cya|have a (?:good|nice|great))\b",
    r"\b(?:you (?:all|guys|two|both|three|lot|folks|people)|y['’]?all|(?:all|both) of you)\b",
    "(?:[天头会儿早晚点下月年]|周[一二三四五六日末]|再)见[啦了哦~～。!！]*$",
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
    r"\b(?:did|have|were|will|are) you\b(?! sure| certain)",
    r"\byour (?:side|end|turn|weekend|day|team|place)\b",
    "[你您](?:吃|今天|明天|昨天|周末|那[边里]|在哪|下班|[去来][吗不]|到了|看了|[做写弄]完)",
    r"\bmy bad\b|怪我",
    # Comings, goings and small talk
    r"\b(?:brb|gtg|heading (?:out|home)|off (?:for|to))\b",
    r"\b(?:gotta|have to|need to|must) (?:go|run|leave)\b",
    "先走|[\u4e00-\u9fff]去[了啦][。!！]*$|先撤|先下了",
    # No answer is wanted
    r"\bwho (?:knows|cares|would have)\b|\bwhy (?:me|bother|oh why)\b|\banyways?\?*$",
    r"\bwhy (?:do|did|am|would) i (?:even|ever|still|always)\b",
    r"^(?:really|seriously|no way|right|you kidding)\s*[?!？！]+",
    r"\b(?:isn|wasn|aren)['’]t (?:that|this|it) (?:just|so|great|lovely|funny|wonderful)\b",
    "谁(?:知道|能想|料到)|怎么[又老总]|怎么可能|真的假的|不会吧|难道|何必|搞什么|什么鬼|^这不",
)
