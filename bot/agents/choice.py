"""Chooses the tools that a question can need, from cues in its words. Pure.

Tools for memory, follow-ups and MCP servers are always sent; the others come in groups, when
something in the prompt calls for them. A group that is sent for nothing costs some hundred tokens;
one that is missing costs the answer, so cues are wide. A tool that was not sent still works."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache, lru_cache

from bot.agents.offline.agenda_requests import agenda_call
from bot.agents.offline.commands import command
from bot.agents.offline.prompt_reading import label_and_words
from bot.agents.offline.reminder_wishes import reminder_wish
from bot.agents.prompts.prompt import Prompt, without_material
from bot.agents.tool_types import TOOL_GROUPS, Group, Toolbox

_RIVALS: tuple[Group, ...] = ("notes", "reminders")
_POINTS = re.compile(
    r"\b(that|this|it|them|these|those|above|same|so|yes|ok|okay|sure|please|go ahead)\b"
    r"|这|那|它|上面|刚才|照|好的?|可以|行|办|弄|搞|帮",
    re.IGNORECASE,
)


def choose_tools(tools: Toolbox, prompt: Prompt, specialists: Collection[str] = ()) -> Toolbox:
    """The tools to send: the constant ones first, then the groups in the order of `tools`.

    `specialists` are the names of those who can be asked.
    """
    groups = groups_for(prompt, specialists)
    always = [name for name in tools if TOOL_GROUPS.get(name) is None]
    return tools.part((*always, *(name for name in tools if TOOL_GROUPS.get(name) in groups)))


def groups_for(prompt: Prompt, specialists: Collection[str] = ()) -> frozenset[Group]:
    """What the question and the conversation before it can need.

    A longer conversation never needs less, so that tools are only added while one goes on.
    """
    groups = _called_for(prompt.question, specialists) | _understood_offline(prompt)
    of_others = [one.content for one in prompt.history if not one.stays]
    if not groups and _POINTS.search(prompt.question):
        groups = _called_for("\n".join((*of_others, prompt.transcript)), specialists)
    earlier: set[Group] = {"notes"} if prompt.registry else set()
    for one in (one for one in prompt.history if one.stays):
        words_of_people = one.role == "user"
        earlier |= _called_for(one.content, specialists, hints=words_of_people)
        earlier |= _used_groups(one.content, [exchange.name for exchange in one.exchanges])
    if any(name not in SPECIALISTS for name in specialists):
        earlier.add("specialists")
    return frozenset(groups | earlier)


def _called_for(text: str, specialists: Iterable[str], *, hints: bool = True) -> frozenset[Group]:
    return _groups_called_for(text.lower(), tuple(specialists), hints)


@lru_cache(maxsize=512)  # the same messages come again with each question of a conversation
def _groups_called_for(text: str, specialists: tuple[str, ...], hints: bool) -> frozenset[Group]:
    cues = (*CUES.items(), *_of_specialists(specialists))
    groups = {group for group, cue in cues if cue.names.is_in(text)}
    if hints and not groups.intersection(_RIVALS):
        groups |= {group for group, cue in cues if group not in groups and cue.hints.is_in(text)}
    return frozenset(groups)


@cache
def _of_specialists(names: tuple[str, ...]) -> list[tuple[Group, Cues]]:
    return [("specialists", SPECIALISTS[name]) for name in names if name in SPECIALISTS]


def _understood_offline(prompt: Prompt) -> set[Group]:
    """What the rules of the offline model would do."""
    _, question = label_and_words(without_material(prompt.question), prompt.bot_name)
    groups: set[Group] = set()
    if command(question):
        groups.add("notes")
    if reminder_wish(question):
        groups.add("reminders")
    if agenda_call(question):
        groups.add("calendar")
    return groups


def _used_groups(text: str, called_names: Collection[str]) -> set[Group]:
    """The groups of tools that were called for an answer, or that its tool context names."""
    return {
        group
        for name, group in TOOL_GROUPS.items()
        if group and (name in called_names or name in text)
    }


@dataclass(frozen=True, slots=True)
class ToolCue:
    """Words that call for a group, looked for in a text in lower case.

    A text in ASCII holds none of the Chinese ones, so no alternative is for both.
    """

    anywhere: re.Pattern[str]
    in_ascii: re.Pattern[str]

    def is_in(self, text: str) -> bool:
        return bool((self.in_ascii if text.isascii() else self.anywhere).search(text))


def _cue(*alternatives: str) -> ToolCue:
    branches = [branch for one in alternatives for branch in _branches(one)]
    return ToolCue(_pattern(branches), _pattern(filter(str.isascii, branches)))


def _branches(pattern: str) -> list[str]:
    """The alternatives of a pattern that stand in no group and no set."""
    branches, depth = [""], 0
    for part in re.findall(r"\\.|\[[^\]]*\]|.", pattern):
        depth += {"(": 1, ")": -1}.get(part, 0)
        if part == "|" and not depth:
            branches.append("")
        else:
            branches[-1] += part
    return branches


def _pattern(branches: Iterable[str]) -> re.Pattern[str]:
    """Any of the branches. That a word begins is asked once for all that say so: most places of a
    text are ruled out by it."""
    all_branches = list(branches)
    words = [branch[2:] for branch in all_branches if branch.startswith(r"\b")]
    others = [branch for branch in all_branches if not branch.startswith(r"\b")]
    word_starts = [rf"\b(?:{'|'.join(words)})"] if words else []
    return re.compile("|".join([*word_starts, *others]) or r"(?!)")


_NEVER = _cue()


@dataclass(frozen=True, slots=True)
class Cues:
    """`names` mean the group and nothing else. `hints` may mean it, and count only in a message
    that names neither notes nor reminders."""

    names: ToolCue = _NEVER
    hints: ToolCue = _NEVER


# The specialists that come with the bot; one that has no cues here is always offered.
SPECIALISTS: dict[str, Cues] = {
    "okr_coach": Cues(
        _cue(r"\bokrs?\b|\bkpis?\b|key results?|关键结果|绩效|考核"),
        _cue(r"\b(objective|goal|target|quarter|metric|ambition)|目标|季度|指标"),
    ),
    "summariser": Cues(
        _cue(
            r"\bsummar|\brecap|\bminutes of|\bmeeting (notes|minutes)|\btl;?dr\b|\bdigest|\bgist\b",
            r"总结|摘要|纪要|概括|概述|小结|汇总|梳理|归纳|要点|会议记录",
        ),
        _cue(
            r"\b(overview|wrap.?up|catch (me|us) up|missed|discuss|decided|decisions?)\b",
            r"\b(transcript|debrief|happened|conclusions?|in short|action items|open questions)\b",
            r"\bmeeting|回顾|讨论|会议|决定|结论|错过|说了(什么|些)|聊了|整理",
        ),
    ),
    "writer": Cues(
        _cue(
            r"\btranslat|\b(re)?phras|\brewrit|\bpolish|\bproofread|\bwording\b|\bgrammar\b",
            r"\bspelling\b|\be-?mails?\b|翻译|译成|译为|译一|润色|改写|校对|措辞|文案|邮件|语病",
        ),
        _cue(
            r"\b(writ(e|ing)|draft|compose|edit|shorten|reply to|tone|letter|announce|article)",
            r"\b(post|speech|blog|english|chinese|formal|polite|sound)",
            r"写|起草|草拟|拟|公告|通告|文章|英文|英语|中文|语气|回复|通顺|正式",
        ),
    ),
}
CUES: dict[Group, Cues] = {
    "clock": Cues(
        hints=_cue(
            r"\b(time|clock|date|day|today|now|hours?|timezone|utc|gmt|\w+day)\b|o'clock",
            r"几点|时间|日期|几号|星期几|周几|时区|现在|今天|今日",
        )
    ),
    "files": Cues(
        _cue(
            r"\bfiles?\b|\b(csv|xlsx?|docx?|pdf|txt|zip|png|qr)\b|\.md\b|\bexcel\b|\bspreadsheet",
            r"\bsheet\b|\bword\b|\btables?\b|\battach|\bdownload|\bexport|\bdocuments?\b|barcode",
            r"\bprint\b|\breports?\b|\bmarkdown\b",
            r"\bsend ((it|that|this|them) to )?(me|us)\b|\b(hand|print)out",
            r"\bqr-?code|文件|表格|导出|输出|下载|附件|文档|二维码|扫码|扫一扫",
            r"报表|报告|打包|打印(?!机)|发(给)?我|发(一)?份|给(我|我们)(一)?份|一份|做成|生成",
        )
    ),
    "documents": Cues(
        _cue(
            r"https://[^\s/]{1,300}/(?:docx|docs|wiki|sheets|base)/",
            r"\bdoc(?:ument|x|s)?s?\b|\bwikis?\b|\bsheets?\b|\bspreadsheet|\bknowledge base",
            r"文档|知识库|云文档|表格|多维",
        )
    ),
    "calendar": Cues(
        _cue(
            r"\bcalendars?\b|\bappointments?\b|\bavailab|\bbusy\b|\btasks?\b|\bfree time\b",
            r"\bfree (at|on|to|for|this|next|today|tomorrow|\w+day)|\b(is|are|am) .{1,40}\bfree\b",
            r"\b(book|schedule|set up|arrange|plan) (\w+ ){0,3}(meeting|call|hour|session)s?\b",
            r"\b(book|schedule|arrange) (\w+ ){0,3}(minutes|time|sync|chat|slot)s?\b",
            r"\bdue (today|tomorrow|this|next|on|by|\w+day)\b|\bwhat('s| is)( \w+)? due\b",
            r"日历|忙闲|有空|空闲|没空|任务|预约|开.{1,8}(小时|分钟)的?会|订(个|一)?.{0,6}会",
            r"约(一|个|上|下|他|她|.{1,20}(会|小时|分钟|时间))",
        ),
        _cue(
            r"\bmeet\b|\bbook\b|\bfree\b|\bdue\b|\bdeadlines?\b|\binvite|\bassign",
            r"会面|邀请|截止|到期|待办|日程|忙",
        ),
    ),
    "reminders": Cues(
        _cue(
            r"\bremind|\bping\b|\bnudge|\balarm|\balerts?\b|\bnotif|\bwake\b|\btimers?\b|\bsnooze",
            r"\bpostpone|\breschedul|\bschedul|\brecurring|\bupcoming|\bcoming up\b|\bcancel",
            r"\b(do not|don'?t|never|not) (let \w+ )?forget\b",
            r"\b(let|tell|message|call|warn|poke|buzz|text) \w+ (know |again )?"
            r"(at|on|in|before|when|tomorrow|tonight|later|every|next)\b",
            r"\bevery (other )?(day|morning|evening|night|week|weekday|month|year|hour|\w+day)",
            r"\b(daily|weekly|monthly|hourly|yearly)\b",
            r"\bin (\d+|an?|half an|\w+) (min|hour|day|week)",
            r"\bfrom now\b|\bpush .{0,30}\b(back|to)\b",
            r"提醒|闹钟|定时|到点|到时|别忘|不要忘|别让|通知|催|倒计时|日程|推迟|延后|延期|改到|挪到",
            r"叫(上|一下|醒)?(我|我们|大家|他|她|@)|喊(一下)?(我|我们|大家|他|她|@)|取消|稍后|过一会",
            r"每(一|个|隔)?(天|日|周|月|年|晚|早|星期|礼拜|小时)|每个?工作日|(分钟|小时|天|周)(之|以)?后",
            r"(过|等).{0,4}(分钟|小时|天)|跟(我|我们|大家)(说|讲)|记得(要)?(叫|喊|让|告诉|跟|和|给|在|明|后|今|下|周|早|晚|\d)|(说|吱|知会)一?声",
        ),
        _cue(
            r"\b(tomorrow|tonight|later|noon|midnight|morning|afternoon|evening)\b",
            r"\b(mon|tues|wednes|thurs|fri|satur|sun)days?\b|\bnext (week|month|year)\b",
            r"\b\d{1,2} ?(am|pm)\b|\b\d{1,2}:\d\d\b|\bat \d|o'clock\b|\b(due|deadline|plans?)\b",
            r"\b(delete|remove|drop|change|move|edit|update|stop|pending|repeat|remember to)\b",
            r"明天|后天|大后天|今晚|明早|明晚|下周|下个?月|周[一二三四五六日天末]|星期|礼拜",
            r"[\d一二三四五六七八九十两半]点|点钟|早上|上午|中午|下午|晚上|一会儿?|待会|等会|等下",
            r"安排|截止|到期|计划|删|去掉|改|停|不用再|重复|记得|:\d\d|：\d\d",
        ),
    ),
    "notes": Cues(
        _cue(
            r"\bnot(e|es|ed|ing)\b|\bnotebook|\bjot|\b(write|take|put|get|set) (\w+ )?down\b",
            r"\bwrite-?up\b|\b(check|shopping|packing|grocery)-?\s?lists?\b|\bto-?dos?\b|\bsticky\b",
            r"笔记|备忘|便签|便条|便利贴|记录|记下|记一|记个|记条|记在|写下|抄下|清单|待办|随手记|小记",
        ),
        _cue(
            r"\b(list|lists|listed|tag|tags|tagged|untag|label|labels|pin|title|rename|body|entry)\b",
            r"\b(delete|remove|drop|erase|change|edit|update|append|add|put|insert|replace)\b",
            r"\b(search|find|look(ing)? (up|for)|show|read|open|display|save|store|record|keep)\b",
            r"\b(share|publish|unshare|visible|everybody|everyone|private|public|log|archive|draft|create)\b",
            r"\b(start|collect|memo|memos|file under|first|second|third|last|previous)\b",
            r"列|标签|标记|打标|标题|改名|重命名|存|归档|收藏|条目|条|共享|分享|公开|大家都?能?看",
            r"搜|查|找|看看我|看一下我|显示|打开|读|删|去掉|移除|改|更新|修改|加|添|补充|追加|建|新增|新的|记",
            r"第[一二三四五六七八九十\d]|最后|上一|清掉|撤销",
        ),
    ),
}  # fmt: skip
