"""The command that plain words ask for, without a model that would understand them. Pure."""

from __future__ import annotations

import re

from bot.text.languages import language_of
from bot.text.slash_commands import Command, CommandName

_SUM_UP = r"summari[sz]e|sum up|recap|digest|a summary of|a recap of|a digest of"
_MEANT = (
    (
        CommandName.DIGEST,
        r"(?:(?:please|can you|could you|give (?:me|us)) )*"
        rf"(?:(?:{_SUM_UP})(?: (?:what (?:we|everyone|people) (?:discussed|said|talked about)"
        r"|(?:the|our|this)(?: day['’]s)? (?:discussion|chat|conversation|talk)"
        r"|today['’]s (?:discussion|chat|conversation|talk)|the day|here|today|everything|so far"
        r"|(?:this|the|our) thread)"
        r"){0,2}"
        r"|what (?:did (?:we|everyone|people) (?:discuss|say|talk about)|was (?:discussed|said))"
        r" today|what (?:did|have) i miss(?:ed)?)"
        r"(?: here| today| for (?:me|us)| please)*"
        r"|(?:可以|能不能|可不可以|能)?(?:请|麻烦|帮我|帮忙|给我|来个|你)*(?:总结|概括|汇总)(?:一下|下)?(?:一下)?(?:今天|今日|当天|这里|群里|大家|[本这]个?话题)*"
        r"(?:的)?(?:都)?(?:讨论|聊天|内容|对话|群聊|消息|记录|聊的)?(?:内容|记录)?(?:[聊说讨论]{1,2}了(?:些|点)?(?:什么|啥))?"
        r"|(?:给我|来个|生成)?(?:(?:今天|今日|这里|群里)的?)*摘要"
        r"|我(?:今天)?(?:都)?(?:错过|漏掉|漏看|落下)了?(?:些|点|哪些)?(?:什么|啥|内容|消息)?"
        r"|今天(?:大家|我们|群里)*都?(?:讨论|聊|说)了?(?:些|点)?(?:什么|啥)",
    ),
    (
        CommandName.MEMORY,
        r"(?:so )?what (?:all )?do you (?:know|remember|have)(?: stored| saved)? (?:about|of|on) me"
        r"|what have you (?:remembered|stored|kept|saved) (?:about|of) me"
        r"|你?(?:都|还)?(?:知道|记住了?|记得|存了|了解)我?(?:的|些|都)*(?:哪些|什么|啥)(?:事情?|内容|信息)?"
        r"|你?(?:都|还)?(?:知道|记住了?|记得|存了|了解)(?:我|关于我的?)(?:的|些|都)*(?:哪些|什么|啥)(?:事情?|内容|信息)?",
    ),
)
_PATTERNS = tuple(
    (name, re.compile(rf"\A(?:{words})[吧吗呢]?\Z", re.IGNORECASE)) for name, words in _MEANT
)
_LONGEST = 80
_SIGNS = " .,!?;:。，！？；：~～…"


def command_meant(text: str) -> Command | None:
    """The command that `text` asks for as a whole: a digest of today, or one's own memory."""
    if len(text) > _LONGEST:
        return None
    words = " ".join(text.split()).strip(_SIGNS)
    for name, pattern in _PATTERNS:
        if pattern.match(words):
            argument = _span(words) if name is CommandName.DIGEST else ""
            return Command(name, argument, language_of([text]), words=argument)
    return None


def _span(words: str) -> str:
    return "thread" if re.search("thread|话题", words, re.IGNORECASE) else "today"
