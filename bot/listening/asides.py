"""What in a message is not for the bot: courtesies, farewells, small talk, talk to the group. Pure.

English and Chinese.
"""

from functools import lru_cache

from bot.listening.exchange import LastExchange
from bot.listening.patterns import KEPT, pattern
from bot.listening.questions import is_question
from bot.listening.requests import requests


@lru_cache(maxsize=KEPT)
def without_courtesies(text: str) -> str:
    """What is left after “ok, thanks,” and the like."""
    position = 0
    while courtesy := _COURTESY.match(text, position):
        position = courtesy.end()
    return text[position:].strip()


# Courtesies stand alone (“thanks!”) or before what matters (“ok, and how …?”).
_COURTESY = pattern(
    r"(?:thank(?:s| you)(?: so much| a lot)?|thx|ty|np|cool|nice|great|perfect|awesome|good)\b",
    r"(?:ok(?:ay)?|got it|yes|yep|sure|will do|done|lol|(?:ha){2,}|hm+|ah+|oh+)(?![\w'’])",
    "谢谢[你您]?|多谢|感谢|谢[啦了]|收到|明白了?|了解|知道了|辛苦[了啦]?|不错|没问题",
    "好[的滴嘞]|哈{2,}|嗯+",
    r"(?:可以|[好行哦可赞啊])(?=[\s,，。.!！~～…]|$)",
    r"[^\w\s@`\"'“”‘’(（<《/?？]+|\s+",
)
THANKS = pattern(r"\b(?:thanks|thank you|thx)\b|谢谢|多谢|感谢|谢[啦了]")
YOU = pattern(r"\byou(?:['’]\w+|rs?)?\b", "[你您]")
POINTS_BACK = pattern(
    r"\b(?:it|that|this|these|those|(?<!is )(?<!are )(?<!was )there|also|too|instead|else)\b",
    r"\bof the\b",
    "[这那][个样些几三两]|它|也|有没有.{1,6}的",
)

# A farewell, a leave, or several people: never an answer to the bot.
LEAVES = pattern(
    r"\b(?:see|catch|talk to) (?:you|ya|u)\b(?! (?:have|need|want|are|can|did|said|mention))",
    r"\b(?:good ?night|bye(?: bye|-bye)?|so long|take care|ttyl|cya|have a (?:good|nice|great))\b",
    r"\b(?:you (?:all|guys|two|both|three|lot|folks|people)|y['’]?all|(?:all|both) of you)\b",
    "(?:[天头会儿早晚点下月年]|周[一二三四五六日末]|再)见[啦了哦~～。!！]*$",
    r"\b(?:brb|gtg|heading (?:out|home)|off (?:for|to))\b",
    r"\b(?:gotta|have to|need to|must) (?:go|run|leave)\b",
    "先走|先撤|先下了|[\u4e00-\u9fff]去[了啦][。!！]*$|回头[聊说见]",
    "拜拜|晚安|早安|你们|[你您]俩|诸位",
)
SMALL_TALK = pattern(
    r"\b(?:lunch|dinner|breakfast|coffee|beers?|weekend|vacation|birthday|team building)\b",
    "吃饭|午饭|晚饭|早饭|奶茶|咖啡|夜宵|周末|下班|团建",
)
SIDE_TALK = pattern(
    # To the group
    LEAVES.pattern,
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


def is_aside(text: str, exchange: LastExchange) -> bool:
    """Whether it speaks to the group, of the bot, or of nothing that wants an answer."""
    return bool(SIDE_TALK.search(text)) or is_small_talk(text, exchange)


def is_small_talk(text: str, exchange: LastExchange) -> bool:
    """Whether it is about lunch or the weekend, and neither asks on about what the bot said of it
    nor wants work done."""
    both_texts = f"{exchange.said}\n{exchange.asked}".lower()
    words = {match.group().lower() for match in SMALL_TALK.finditer(text)}
    asks_on = is_question(text) and all(word in both_texts for word in words)
    return bool(words) and not asks_on and not requests(text)
