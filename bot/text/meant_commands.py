"""Recognises commands that a whole text asks for in plain words: a digest, silence, another
language. Pure, English and Chinese."""

from __future__ import annotations

import re

from bot.text.languages import language_of
from bot.text.slash_commands import Command, CommandName, parse_command

_PLEASE = r"(?:(?:please|can you|could you|would you|just|i['’]d like you to|i want you to) )*"
_WHEN = (
    r"today|yesterday|(?:this|the|last|past) week|(?:this|the) (?:morning|afternoon)"
    r"|(?:the )?(?:last|past) (?:hour|(?:few|couple of|\w+) hours)"
)
_TALK = r"discussions?|chats?|conversations?|talk|messages|thread"
_SUM_UP = r"(?:a |the )?(?:summari[sz]e|sum up|summary|recap|digest|tl;?dr|catch (?:me|us) up)"
_WHEN_ZH = (
    "今[天日]|当天|昨[天日]|[这本上]个?(?:周|星期)|刚[才刚]|最近(?:[一两三几]个?)?小时|[上下]午"
)
_HERE_ZH = "这里|群里|大家|我们|你们|[本这]个?(?:群|话题)"
_SAID_ZH = r"(?:都)?(?:讨论|聊|说|谈|发生)+了?(?:些|点)?(?:什么|啥)(?:内容|事情?)?"
_POST = "send|post|schedule|give|write|make"
_LANGUAGES = "english|chinese|mandarin|german|french|spanish|japanese|korean|russian|italian"
_OFTEN = (
    r"(?P<often>every ?day|daily|on weekdays|every weekday(?: morning| evening)?"
    r"|every (?:morning|evening)|(?:every|each) (?:mon|tue|wed|thu|fri"
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
        rf"|happened) (?:here )?(?:{_WHEN})|what (?:did|have) i miss(?:ed)?(?: {_WHEN})?"
        r"|what(?: has|['’]s)? happened (?:here )?while i was (?:away|gone|out|off)"
        r"|what(?: (?:has|have)(?: been| we)?| did we| was) decided?(?: so far)?"
        r"|what are the (?:open )?(?:action items|next steps|decisions)"
        r"|who (?:has to|needs to|should|must) do what|(?:the )?(?:meeting )?minutes)"
        r"(?: here| today| for (?:me|us)| please)*"
        r"|(?:可以|能不能|可不可以|能)?(?:请|麻烦|帮我|帮忙|给我|[来出写][个份]|来份|生成|你)*"
        rf"(?:(?:总结|概括|汇总|梳理|回顾|捋)(?:一[下捋]|下)?(?:{_WHEN_ZH}|{_HERE_ZH})*的?"
        r"(?:讨论|聊天|内容|对话|群聊|消息|记录|重点|要点|[聊说]的)*(?:[聊说讨论]{1,2}了(?:些"
        r"|点)?(?:什么|啥))?"
        rf"|(?:(?:{_WHEN_ZH}|{_HERE_ZH})的?)*(?:摘要|总结|小结|(?:会议)?纪要))"
        r"|(?:目前|到现在)?(?:大家|我们)?(?:都)?(?:决?定|商量)了(?:哪些|什么)(?:事情?)?"
        r"|谁(?:要做|负责)什么"
        r"|我不在的时候(?:大家)?(?:都)?(?:发生|聊|说|讨论)了(?:些)?什么"
        rf"|我(?:{_WHEN_ZH})?(?:都)?(?:错过|漏掉|漏看|落下)了?(?:些|点|哪些)?(?:什么|啥|内容|消息)?"
        rf"|(?:{_HERE_ZH})*(?:{_WHEN_ZH})(?:{_HERE_ZH})*{_SAID_ZH}了?",
    ),
    (
        CommandName.DIGEST,
        r"(?:please )?(?:(?:turn off|stop|cancel|disable|no more) (?:the |sending |posting )*"
        r"(?:daily |weekly |scheduled )*(?:digests?|summary|summaries)(?: here| please| any ?more)*"
        rf"|(?:{_POST}) (?:me |us )?(?:an? |the )?(?:digest|summary|recap)(?: here)? {_OFTEN})"
        r"|(?:请|帮我|把|以后|今后)*(?:(?:关掉|关闭|停掉|停止|取消|(?:不[要用必]"
        r"|别)再?发)(?:定时|每日|每天|每周)*的?(?:摘要|总结)了?"
        r"|(?:定时|每日|每天|每周)*(?:摘要|总结)(?:关掉|关闭|停掉|取消)了?"
        rf"|{_OFTEN_ZH}(?:给?(?:我们?|大家|群里))?(?:发送?|生成|来|写)(?:一?[份个篇次])?(?:摘要"
        rf"|总结))",
    ),
    (
        CommandName.LANGUAGE,
        rf"{_PLEASE}(?:speak|answer|reply|respond|write|talk|switch)(?: to (?:me|us)(?= in))?"
        rf"(?: in| to| only)? (?P<language>{_LANGUAGES})(?: here| from now on| please| only"
        rf"| again| instead)*"
        r"|(?:please )?(?:change|set|switch) (?:your |the )?(?:reply )?language to (?P<to>\w{2,15})"
        r"|(?:请|以后|你|麻烦)*(?:用|说|讲|改用|换成)(?P<zh>[中英德法日韩俄]文"
        r"|[英汉德法日韩俄]语|普通话)"
        r"(?:回答|回复|跟我(?:说|聊)|和我(?:说|聊)|说|讲)?(?:我们?|大家|问题)?",
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
        r"why (?:did|didn['’]t|did not|don['’]?t|do not|won['’]?t) you (?:answer|reply|respond|say)"
        r"(?: to)?(?: me| us| that| this| bob)*"
        r"|why (?:are you not|aren['’]?t you) (?:answering|replying|responding|talking)(?: me| us)?"
        r"|why no (?:answer|reply|response)"
        r"|你?(?:刚才)?(?:为什么|为何|怎么)你?(?:不|没有?|这么|这样)?(?:回答|回复|理|说话|说"
        r"|反应)(?:我们?|大家)?",
    ),
    (
        CommandName.QUIET,
        rf"{_PLEASE}(?:(?:be|stay|keep) (?:quiet|silent)|quiet|shut up|mute(?: yourself)?"
        r"|stop (?:talking|posting|writing)|do(?:n['’]?t| not) (?:talk|speak|post)|hush|silence)"
        r"(?:,? (?:please|now|here|in here|in this (?:group|chat)"
        r"|for (?:now|a while|a bit|(?:an?|\w+) (?:minutes?|hours?|days?))))*"
        r"|(?:请|麻烦|你|先|在?(?:这个|本)?群里){0,4}(?:保持)?(?:安静|静音|(?:别"
        r"|不要)(?:在这[里儿]|再)?(?:说话|插话"
        r"|发言|出声)|别吵|闭嘴)"
        r"(?:一下|一?会儿?|一?点儿?|[一两三半几\d]{1,2}个?(?:小时|钟头|分钟|天))?了?",
    ),
    (
        CommandName.RESUME,
        r"(?:please )?(?:resume|unmute(?: yourself)?)(?: please| now| here)*"
        r"|you (?:can|may) (?:talk|speak)(?: again| now)*|(?:please )?(?:start"
        r"|begin) talking(?: again)?|(?:please )?(?:talk|speak) again"
        r"|(?:请|现在)?(?:取消|解除|关闭)静音|(?:别|不要|不用)静音了|(?:恢复|继续)说话吧?"
        r"|(?:现在)?你?可以(?:继续)?(?:说话|发言|出声)了",
    ),
    (
        CommandName.SETTINGS,
        rf"{_PLEASE}(?:(?:show|list|see|view|open|check|give)(?: me| us)? )?(?:all )?"
        r"(?:your|the|our|this group['’]s|this chat['’]s) settings(?: here| please)*"
        r"|(?:show|open) settings"
        r"|what (?:are (?:your|the) settings|settings (?:do you have|are there"
        r"|can (?:i|we) change))(?: here)?"
        r"|(?:请|帮我)?(?:看看|看一下|查看|打开|显示|列出)(?:一下)?(?:你|这里|本?群|这个群)?的?设置"
        r"|(?:你|这里|本群)?(?:有|能改|可以改)(?:什么|哪些)设置|(?:你|这里"
        r"|本群)(?:现在)?的设置(?:是什么)?",
    ),
    (
        CommandName.MODE,
        rf"{_PLEASE}(?P<mention>only (?:answer|reply|respond|speak|talk)(?: here)? (?:when|if)"
        r" (?:you(?:['’]re| are) |(?:i|we|someone|somebody|people) )?"
        r"(?:@|mention|tag|address)(?:ed)?(?: you)?)(?: please)?"
        r"|(?:请|以后|你)*(?P<mention_zh>[只仅]有?在?(?:有人|我们?|大家)?(?:@|艾特|提到|提及"
        r"|点名)了?你的?"
        r"(?:时候?)?(?:才|再)?(?:回答|回复|说话|发言|出声))",
    ),
    (
        CommandName.PROACTIVE,
        r"(?:please )?(?:stop|do(?:n['’]?t| not)) (?:(?:chim|butt|jump)(?:e|ing)? in"
        r"|(?:answer|reply)(?:ing)?(?: (?:to )?questions)?(?= (?:nobody|no one|unasked|unprompted"
        r"|without|that)))(?: (?:(?:that )?(?:nobody|no one) (?:has )?ask(?:ed|s) you|unasked"
        r"|uninvited|unprompted|without being asked))?"
        r"|(?:请|你|以后)*(?:别|不要|不用)再?主动(?:插[话嘴]|回答|发言|说话|回复)(?:问题|别人"
        r"|大家)?了?",
    ),
    (
        CommandName.MEMORY,
        r"(?:so )?what (?:all )?do you (?:know|remember|have)(?: stored| saved)? (?:about|of|on) me"
        r"|what have you (?:remembered|stored|kept|saved) (?:about|of) me"
        r"|你?(?:都|还)?(?:知道|记住了?|记得|存了|了解)我?(?:的|些|都)*(?:哪些|什么|啥)(?:事情?"
        r"|内容|信息)?"
        r"|你?(?:都|还)?(?:知道|记住了?|记得|存了|了解)(?:我|关于我的?)(?:的|些|都)*(?:哪些|什么"
        r"|啥)(?:事情?|内容|信息)?",
    ),
)
_MEANT = tuple(
    (name, re.compile(rf"\A(?:{words})[吧吗呢]?\Z", re.IGNORECASE)) for name, words in _MEANT_WORDS
)
_SPANS = {"th": "thread", "话题": "thread", "ye": "yesterday", "昨": "yesterday"} | {
    "la": "last week", "上周": "last week", "上星": "last week", "上个": "last week",
    "we": "week", "周": "week", "星期": "week",
}  # fmt: skip
_SPANS_ASKED = frozenset({"", "today", *_SPANS.values()})
_LANGUAGE_WORDS = {
    **dict.fromkeys(("english", "英文", "英语"), "en"),
    **dict.fromkeys(("chinese", "mandarin", "中文", "汉语", "普通话"), "zh"),
}
_ARGUMENTS = {
    CommandName.CONNECT: "off",
    CommandName.MODE: "mention",
    CommandName.PROACTIVE: "off",
}
# What only the bot itself can change or tell; a language model has no tool for it.
_OF_ITS_STATE = frozenset(
    {CommandName.QUIET, CommandName.RESUME, CommandName.SETTINGS, CommandName.MODE}
    | {CommandName.PROACTIVE, CommandName.WHY, CommandName.CONNECT}
)
_LEAD = re.compile(
    r"\A(?:(?:ok(?:ay)?|all ?right|right|so|well|hey|hi|actually|now)\b[ ,.!]{0,3}"
    r"|(?:好[了的]?|行了?|那)[，,。！! ]{1,3}){0,3}",
    re.IGNORECASE,
)
_TAIL = re.compile(r"[ ,，]{1,3}(?:pls|plz|thanks|thank you|thx|谢谢)\Z", re.IGNORECASE)
_LONGEST_MEANT = 80
_SIGNS = " .,!?;:。，！？；：~～…"


def command_meant(text: str) -> Command | None:
    """The command that `text` asks for as a whole: a digest of today, one's own memory, silence."""
    if len(text) > _LONGEST_MEANT:
        return None
    words = _LEAD.sub("", " ".join(text.split())).strip(_SIGNS)
    words = _TAIL.sub("", words).strip(_SIGNS)
    for name, pattern in _MEANT:
        if match := pattern.match(words):
            argument = _argument_meant(name, match)
            return Command(name, argument, language_of([text]), words=argument)
    return None


def is_of_its_state(command: Command) -> bool:
    """True for what a language model cannot do: mute the bot, show or change its settings."""
    return command.name in _OF_ITS_STATE or (
        command.name == CommandName.DIGEST and command.argument not in _SPANS_ASKED
    )


def asks_for_quiet(text: str) -> bool:
    """Whether the text asks the bot to be quiet: the answer to it starts no conversation."""
    command = parse_command(text) or command_meant(text)
    return command is not None and command.name == CommandName.QUIET


def _argument_meant(name: CommandName, match: re.Match[str]) -> str:
    """What would stand after the command: `daily 18:00`, `off`, `en`."""
    words, groups = match[0], match.groupdict()
    if name is CommandName.LANGUAGE:
        language = (groups["language"] or groups["to"] or groups["zh"]).lower()
        return _LANGUAGE_WORDS.get(language, language)
    if name in _ARGUMENTS:
        return _ARGUMENTS[name]
    if name is not CommandName.DIGEST:
        return ""
    if often := groups.get("often") or groups.get("often_zh"):
        often, at = _without_half(often, groups.get("at") or groups["at_zh"])
        often = re.sub(r"^on |^weekly on ", lambda one: "" if one[0] == "on " else "every ", often)
        return f"{often} {at}".lower()
    if re.search(
        r"\b(?:turn off|stop|cancel|disable|no more)\b|关|停|取消|不[要用必]|别",
        words,
        re.IGNORECASE,
    ):
        return "off"
    return _span(words)


def _without_half(often: str, at: str) -> tuple[str, str]:
    """“every weekday morning” at “9” as “weekdays” at “9am”."""
    half = re.search(r" (?:morning|evening)$", often)
    often = often[: half.start()] if half else often
    often = {"every": "daily", "every weekday": "weekdays"}.get(often, often)
    if not half or not re.fullmatch(r"\d{1,2}", at.strip()):
        return often, at
    return often, f"{at.strip()}{'am' if 'morning' in half[0] else 'pm'}"


def _span(words: str) -> str:
    """What the digest is of, as the command's argument; "" where it is asked for."""
    match = re.search(
        r"thread|话题|yesterday|昨|last week|上个?[周星]|week|周|星期|today|今|当天|day|hour"
        r"|morning|afternoon|小时|刚|[上下]午",
        words,
        re.I,
    )
    return _SPANS.get(match[0][:2].lower(), "today") if match else ""
