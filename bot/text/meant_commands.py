"""Recognises commands that a whole text asks for in plain words: a digest, silence, another
language. Pure, English and Chinese."""

from __future__ import annotations

import re

from bot.text.languages import language_of
from bot.text.slash_commands import Command, CommandName

_WHEN = r"today|yesterday|(?:this|the|last|past) week"
_TALK = r"discussions?|chats?|conversations?|talk|messages|thread"
_SUM_UP = r"(?:a |the )?(?:summari[sz]e|sum up|summary|recap|digest|tl;?dr|catch (?:me|us) up)"
_WHEN_ZH = "今[天日]|当天|昨[天日]|[这本上]个?(?:周|星期)"
_HERE_ZH = "这里|群里|大家|我们|你们|[本这]个?(?:群|话题)"
_SAID_ZH = r"(?:都)?(?:讨论|聊|说|谈|发生)+了?(?:些|点)?(?:什么|啥)(?:内容|事情?)?"
_POST = "send|post|schedule|give|write|make"
_OFTEN = (
    r"(?P<often>every ?day|daily|on weekdays|every weekday|(?:every|each) (?:mon|tue|wed|thu|fri"
    r"|sat|sun)"
    r"[a-z]*|weekly on [a-z]+)(?:,? at)? (?P<at>.{1,12})"
)
_OFTEN_ZH = (
    r"(?P<often_zh>每[天日]|(?:每个?)?工作日|每(?:周|星期)[一二三四五六日天])(?P<at_zh>.{1,8}?)"
)
_MEANT_WORDS = (
    (
        CommandName.DIGEST,
        r"(?:(?:please|can you|could you|give (?:me|us)) )*"
        rf"(?:(?:{_SUM_UP})(?: (?:(?:of|for|on|from) )?"
        r"(?:what (?:we|everyone|people) (?:discussed|said|talked about|have missed)"
        rf"|(?:the|our|this)(?: day['’]s)? (?:{_TALK})|(?:{_WHEN})(?:['’]s (?:{_TALK}))?"
        r"|the day|here|everything|so far)){0,3}"
        rf"|(?:{_WHEN})['’]s (?:summary|recap|digest)"
        r"|what (?:did (?:we|everyone|people) (?:discuss|say|talk about)|was (?:discussed|said)"
        rf"|happened) (?:here )?(?:{_WHEN})|what (?:did|have) i miss(?:ed)?(?: {_WHEN})?)"
        r"(?: here| today| for (?:me|us)| please)*"
        r"|(?:可以|能不能|可不可以|能)?(?:请|麻烦|帮我|帮忙|给我|来个|来份|生成|你)*"
        rf"(?:(?:总结|概括|汇总)(?:一下|下)?(?:{_WHEN_ZH}|{_HERE_ZH})*的?"
        r"(?:讨论|聊天|内容|对话|群聊|消息|记录|[聊说]的)*(?:[聊说讨论]{1,2}了(?:些|点)?(?:什么|啥))?"
        rf"|(?:(?:{_WHEN_ZH}|{_HERE_ZH})的?)*(?:摘要|总结|小结))"
        rf"|我(?:{_WHEN_ZH})?(?:都)?(?:错过|漏掉|漏看|落下)了?(?:些|点|哪些)?(?:什么|啥|内容|消息)?"
        rf"|(?:{_HERE_ZH})*(?:{_WHEN_ZH})(?:{_HERE_ZH})*{_SAID_ZH}",
    ),
    (
        CommandName.DIGEST,
        r"(?:please )?(?:(?:turn off|stop|cancel|disable|no more) (?:the |sending |posting )*"
        r"(?:daily |weekly |scheduled )*(?:digests?|summary|summaries)"
        rf"|(?:{_POST}) (?:me |us )?(?:an? |the )?(?:digest|summary|recap)(?: here)? {_OFTEN})"
        r"|(?:请|帮我|把)*(?:(?:关掉|关闭|停掉|停止|取消|不要再?发)(?:定时|每日|每天|每周)*的?(?:摘要|总结)"
        r"|(?:定时|每日|每天|每周)*(?:摘要|总结)(?:关掉|关闭|停掉|取消)了?"
        rf"|{_OFTEN_ZH}(?:给?(?:我们?|大家|群里))?(?:发送?|生成|来|写)(?:一?[份个篇])?(?:摘要|总结))",
    ),
    (
        CommandName.LANGUAGE,
        r"(?:please |can you |could you )*(?:speak|answer|reply|respond|write|talk"
        r"|switch)(?: to me)?"
        r"(?: in| to| only)? (?:english|chinese|mandarin)(?: from now on| please| only)*"
        r"|(?:请|以后|你)*(?:用|说|讲|改用|换成)(?:中文|英文|英语|汉语|普通话)(?:回答|回复|说|讲|跟我说)?",
    ),
    (
        CommandName.CONNECT,
        r"(?:please )?(?:disconnect|unlink) (?:my|the) account|(?:请|帮我)?断开我的(?:账号|账户"
        r"|授权|连接)",
    ),
    (
        CommandName.NEW,
        r"(?:please |let['’]?s )*(?:start over|start afresh|start (?:a )?new (?:conversation"
        r"|chat)|new chat)"
        r"(?: please)?|(?:我们)?(?:重新开始|从头开始|开始?新(?:的)?对话)",
    ),
    (
        CommandName.HELP,
        r"(?:what|which) commands (?:are there|do you (?:have|know)|can i use)|(?:show "
        r"|list )?(?:me )?"
        r"(?:all )?(?:the |your )?commands|你?(?:都)?(?:有|支持)(?:什么|哪些)命令|(?:所有"
        r"|全部)?命令(?:列表)?",
    ),
    (
        CommandName.WHY,
        r"why (?:did|didn['’]t|did not) you (?:answer|reply|respond|say)(?: to)?(?: me| us| that"
        r"| this)*"
        r"|你?(?:刚才)?(?:为什么|为何|怎么)你?(?:不|没有?|这么|这样)?(?:回答|回复|理|说话|说)(?:我们?|大家)?",
    ),
    (
        CommandName.QUIET,
        r"(?:(?:please|can you|could you|i['’]d like you to|i want you to|just) )*"
        r"(?:(?:be|stay|keep) (?:quiet|silent)|quiet|shut up|mute(?: yourself)?|stop talking)"
        r"(?:,? (?:please|now|here))*"
        r"|(?:请|麻烦|你|先){0,3}(?:安静|静音|别说话|不要说话|别插话|闭嘴)(?:一下|一?点)?了?",
    ),
    (
        CommandName.RESUME,
        r"(?:please )?(?:resume|unmute(?: yourself)?)(?: please)?"
        r"|you (?:can|may) (?:talk|speak)(?: again| now)*"
        r"|(?:请|现在)?(?:取消|解除)静音|(?:现在)?你?可以(?:继续)?(?:说话|发言)了",
    ),
    (
        CommandName.MEMORY,
        r"(?:so )?what (?:all )?do you (?:know|remember|have)(?: stored| saved)? (?:about|of|on) me"
        r"|what have you (?:remembered|stored|kept|saved) (?:about|of) me"
        r"|你?(?:都|还)?(?:知道|记住了?|记得|存了|了解)我?(?:的|些|都)*(?:哪些|什么|啥)(?:事情?|内容|信息)?"
        r"|你?(?:都|还)?(?:知道|记住了?|记得|存了|了解)(?:我|关于我的?)(?:的|些|都)*(?:哪些|什么|啥)(?:事情?|内容|信息)?",
    ),
)
_MEANT = tuple(
    (name, re.compile(rf"\A(?:{words})[吧吗呢]?\Z", re.IGNORECASE)) for name, words in _MEANT_WORDS
)
_SPANS = {"th": "thread", "话题": "thread", "ye": "yesterday", "昨": "yesterday"} | {
    "la": "last week", "上周": "last week", "上星": "last week", "上个": "last week",
    "we": "week", "周": "week", "星期": "week",
}  # fmt: skip
_LONGEST_MEANT = 80
_SIGNS = " .,!?;:。，！？；：~～…"


def command_meant(text: str) -> Command | None:
    """The command that `text` asks for as a whole: a digest of today, one's own memory, silence."""
    if len(text) > _LONGEST_MEANT:
        return None
    words = " ".join(text.split()).strip(_SIGNS)
    for name, pattern in _MEANT:
        if match := pattern.match(words):
            argument = _argument_meant(name, match)
            return Command(name, argument, language_of([text]), words=argument)
    return None


def _argument_meant(name: CommandName, match: re.Match[str]) -> str:
    """What would stand after the command: `daily 18:00`, `off`, `en`."""
    words, groups = match[0], match.groupdict()
    if name is CommandName.LANGUAGE:
        return "en" if re.search("english|英", words, re.IGNORECASE) else "zh"
    if name is not CommandName.DIGEST:
        return "off" if name is CommandName.CONNECT else ""
    if often := groups.get("often") or groups.get("often_zh"):
        often = re.sub(r"^on |^weekly on ", lambda one: "" if one[0] == "on " else "every ", often)
        return f"{often} {groups.get('at') or groups['at_zh']}".lower()
    if re.search(
        r"\b(?:turn off|stop|cancel|disable|no more)\b|关|停|取消|不要", words, re.IGNORECASE
    ):
        return "off"
    return _span(words)


def _span(words: str) -> str:
    """What the digest is of, as the command's argument; "" where it is asked for."""
    match = re.search(
        r"thread|话题|yesterday|昨|last week|上个?[周星]|week|周|星期|today|今|当天|day",
        words,
        re.I,
    )
    return _SPANS.get(match[0][:2].lower(), "today") if match else ""
