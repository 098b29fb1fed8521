"""Reads facts, corrections and questions in messages, for the offline model. Pure."""

from __future__ import annotations

import re

from bot.agents.offline.agenda_requests import agenda_call
from bot.agents.offline.commands import command
from bot.agents.offline.reminder_wishes import reminder_wish
from bot.agents.offline.small_talk import forgets_last, lead_in, question_about_itself, small_talk
from bot.listening import requests
from memory.recall.sentences import stated_facts
from memory.recall.stated_facts import value_kinds

_POLITE = r"^\W*(?:(?:please|can you|could you|ok|okay|so|and|also|fyi|by the way)\b[\s,:]*)*"
_POLITE_ZH = r"^\W*(?:请|麻烦|帮我|你|一定|要|把)*"
_KEEP_ZH = r"(?:记住|记一下|记着|记得(?!吗)|记下来?)"
_REMEMBER = re.compile(
    rf"{_POLITE}(?:remember|note|keep in mind|(?:save|keep|store) (?:this|that)(?=:))(?:\s+that)?\b"
    r"[\s:,]*(.+)"
    rf"|{_POLITE_ZH}{_KEEP_ZH}[，,：:\s]*(.+)",
    re.IGNORECASE | re.DOTALL,
)

# “my name is Alice, remember that”; “我叫小明，记住”
_REMEMBERED_AT_END = re.compile(
    r"^\W*+(.+?)(?<![\s,.;:])[\s,.;:]++(?:please\s+|and\s+)*remember(?:\s+(?:that|this|it))?"
    r"(?:,?\s*please)?[\s.!]*$"
    rf"|^\W*+(.+?)(?<![\s，,。；;])[\s，,。；;]++(?:请|麻烦|帮我|你|一定|要)*{_KEEP_ZH}"
    r"(?:这个|这点|它|了|哦|啊|吧)*[\s。.!！]*$",
    re.IGNORECASE | re.DOTALL,
)
_NOT = re.compile(
    r"^\W*(?:please )?(?:do(?:n['’]?| no)t|no need to|never|stop)\W+(?:\w+ ){0,2}?(?:remember|keep)"
    r"|(?:别|不要|不用|不必)[^，,。]{0,4}(?:记|存)",
    re.IGNORECASE,
)
# “I forgot when it starts” tells nobody anything.
_NOT_KNOWN = re.compile(
    r"^\W*i(?:['’]ve| have)? (?:forg[eo]t(?:ten)?|do(?:n['’]?t| not) (?:know|remember|recall)"
    r"|can(?:['’]?t|not) (?:remember|recall)|have no idea)\b|^\W*(?:i['’]?m not sure|no idea)\b"
    r"|^\W*我(?:也|都|又|有点)?(?:忘了|不记得|记不[得清]|不知道|不清楚|不确定|想不起)",
    re.IGNORECASE,
)
_WRONG = (
    r"(?:no(?! (?:more|need|longer|one|idea|problem|worries)\b)|nope|wrong|actually|correction"
    r"|(?:please )?correct (?:that|this|it)"
    r"|sorry|oops"
    r"|(?:that|this)(?:'s|’s| is) (?:not right|wrong))\b"
    r"|不对|不是(?!吗)|[\u3400-\u9fff]{0,3}(?<![没不])错了|不(?=[，,。])|[更纠]正(?:一下)?|说错了|其实(?=应?该?是)"
    r"|实际上(?=是)"
    r"|(?=(?:it|that)(?:'s|’s| is) (?:actually|really|now)\b)"
)
_CORRECTION = re.compile(
    rf"^\W*(?:{_WRONG})[\s,.;:，。：；]*(?:i (?:meant|mean)\b[\s,:]*|我(?:是说|的意思是))?"
    r"(?:(?:it|that|this)(?:'s|’s| is| was)?(?: (?:now|actually"
    r"|really))?(?: back(?: to\b|(?= (?:in|on|at|by|with|from|until)\b)))?\b\s*)?"
    r"(?:应该|现在|已经|又)*(?:改[到回]了?|改成了?|是)?[，,：:\s]*(.+)",
    re.IGNORECASE | re.DOTALL,
)
_BUT = re.compile(r"^.{0,60}?[，,；;]\s*(?:而是|应该是|是|but\s|it(?:'s| is)\s)(.+)", re.DOTALL)
_NAME = re.compile(
    r"\bmy name(?:'s| is)\s+(.{1,40})|\b(?:i am called|call me)\s+(.{1,40})"
    r"|我的?名字(?:是|叫做?)?[:：]?\s*(.{1,20})|我叫做?(.{1,20})",
    re.IGNORECASE,
)
_ASKS_NAME = re.compile(
    r"\bwhat(?:'s| is| was) my name\b|\bwho am i\b|\b(?:know|remember) my name\b(?!\s*(?:is|'s|:))"
    r"|我叫(?:什么|啥)|我的?名字(?:是|叫)?(?:什么|啥)|我是谁|(?:记得|知道)我的?名字(?!是|叫)",
    re.IGNORECASE,
)
_NAME_END = re.compile(r"[,.;!?，。；！？\n]|(?<!\s)\s+(?:and|but)\s")
_ASKS_SO = re.compile(
    r"\W*(?:what|where|who|when|how)s\b|\W*谁(?!都)|.*(?:[什哪谁几多啥][^，。]{0,6}来着|啥)\W*$",
    re.IGNORECASE | re.DOTALL,
)
_ASKS_FOR = re.compile(
    r".{1,30}(?:发我|发给我|给我发|给我看)一?[下份个看]?\W*"
    r"|\W*(?:please )?(?:send|give) me the\b.*",
    re.IGNORECASE,
)
_REQUEST = re.compile(
    rf"{_POLITE}(?:find|search|show|list|tell|give|create|make|add|cancel|delete|remove"
    r"|forget|summari[sz]e|sum up|recap|digest|translate|draft|explain|book|schedule|set|update"
    r"|change|rename|open|read|look|help|stop|check|compare|calculate|share|move|put|send|ask"
    r"|let(?!['’]s)|remind|ping|say|try|answer|repeat|start|tag|speak|reply|write|respond|append|assign"
    r"|mute|unmute|disconnect|snooze|undo|arrange)\b(?!\s+(?:that|it),)"
    rf"|{_POLITE}(?:drop|erase|clear|post|invite|reschedule|postpone|delay|push|switch|turn|use"
    rf"|save|keep"
    r"|correct|fix|mark|complete|close|get rid of)\s+(?:the|my|our|all|both|every|that|this|it"
    r"|them|me|us|an?)\b"
    r"|^\W*i(?:['’]d| would)? (?:need|want|like)(?: some)? (?:help|a hand|you|to)\b"
    r"|^\W*(?:请|麻烦|帮我|帮忙|给我|把|能否|能不能)"
    r"|^\W*(?:找(?:一?下|找|出|到)|搜索?|查(?:一?下|查|找|询|看)|看看|看一下|列出|列一下|显示"
    r"|总结|概括"
    r"|翻译|写一|建一|创建|新建|再[建来]|取消(?!了)|关掉(?!了)|用[中英]文|说[中英]文|加个|定个"
    r"|设个|删除(?!了)|删掉(?!了)|提醒|告诉|说说|解释|生成|安排一|预订"
    r"|打开|分享给|对比|讲讲|算一?下|忘掉|忘记|记[个一][个条]?|叫上|纠正|更正)",
    re.IGNORECASE,
)
_STATES = re.compile(
    r"(?:\b(?:is|are|was|were|am|has|have|had|will|moved?|moves|changed|switched|takes?|costs?"
    r"|starts?|begins?|ends?|opens?|closes?|leaves?|lives?|works?|owns?|leads?|runs?|likes?"
    r"|loves?|hates?|prefers?|needs?|uses?|meets?|became|joined|left|postponed|delayed|cancelled"
    r"|canceled|decided|agreed|booked|renamed|reviews?|means|belongs?|speaks?|went|got)\b"
    r"|['’](?:s|re|m)\b)"
    r"|[是在有为叫姓住]|喜欢|改到|改成|改为|换成|换到|推迟|提前|挪到|延期|定于|取消了|负责|需要"
    r"|等于|属于|搬到|离职|请假|休假|出差|到期",
    re.IGNORECASE,
)
_CHANGES = re.compile(
    r"\b(?:moved|changed|switched|swapped|postponed|delayed|rescheduled|renamed?|raised|lowered"
    r"|rose"
    r"|shortened|extended|reduced|increased|cut to"
    r"|went (?:up|down)|cancelled|canceled|now|again|no longer|any ?more|instead|became|after all"
    r"|(?:from|since|as of) (?:this |next |last )?(?:today|yesterday|morning|week|month|\w+day)"
    r"|replaced|replaces|retired|left|lost|gone|t(?:akes|ook) over|these days|late|wrong)\b"
    r"|,\s*not\b"
    r"|改(?![进善革天日编良])|换(?:[成到为了给用]|\s?[a-z0-9])|推迟|提前|挪到|延期|取消了?|不再"
    r"|不(?:[用必能会]|需要?|可以)[^，,。]{0,8}了|缩短|延长"
    r"|[砍减增加提缩扩][少高大]?[到至为成]|现在|更新为|变成|搬到|[涨降升调]到"
    r"|[涨降]价|晚点|[写说发记弄搞]错|停用|[今明昨]天起|[周月].?起|下线|离职|退出|接替"
    r"|不[当用]了|没空|病了",
    re.IGNORECASE,
)
_LEAD_IN = re.compile(
    r"^\W*(?:hey|hi|hello)\s+\w{1,20}\s*[,:!]\s*"
    r"|^\W*(?:(?:heads[ -]up|by the way|btw|fyi|oh|ah|hey|hold on|wait"
    r"|(?:and |quick |small )*update|just so you know|one more thing)\b[\s,:!-]+)+"
    r"|^(?:跟|和|告诉)?大家说?一声[，,：:！]\s*"
    r"|^[^，,：:。]{0,5}(?:提醒|说|补充|通知|更新|改|同步|报告|注意"
    r"|等)(?:大家)?一下(?:大家)?[，,：:！]\s*"
    r"|^(?:提个醒|请?注意|等等|对了|顺便说?|补充|更新|通知)[，,：:！]\s*",
    re.IGNORECASE,
)
_TAIL = re.compile(r"[,\s]{1,3}(?:btw|by the way|fyi|just so you know)\W{0,9}$", re.IGNORECASE)
_VERB = re.compile(
    r"(?<!\s)\s+(?:is|are|was|were|will be|has been|has|have|had)(?:\s+now)?\s+"
    r"(?!(?:been )?(?:moved|changed|switched|postponed|delayed)\b)"
    r"|(?<!\s)\s+(?:(?:has|have|is|was)\s+)?(?:been\s+)?"
    r"(?:moved|changed|switched|postponed|delayed)\s+(?=to\b)"
    r"|(?<!\s)\s*(?:=|(?<!\d)[:：]|[:：](?!\d))\s*"  # the sign in “9:50” parts nothing
    r"|(?:已经?|现在|又)?(?:改到|改成|改为|换成|换到|推迟到|提前到|挪到|延期到|搬到|定在"
    r"|定于)了?|是|在|叫|为|有",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"\d[\d.,:]*")
_PREPOSITION = re.compile(r"(?:on|at|in|by|to|for|from|with|until)\b\s*", re.IGNORECASE)
WHEN = frozenset(("day", "weekday", "time", "month", "period", "year"))
_SAYS_NO_TOPIC = frozenset(
    "i we you he she it they this that there 我 我们 你 他 她 它 这 那".split()
)
# What is said to the bot, or says something only together with what was said before.
_OF_THE_TALK = re.compile(
    r"^\W*(?:(?:ok(?:ay)?|so|well|and|but)\W+)*(?:you|your|(?:(?:and|but|so) )?(?:that|this|it"
    r"|these|those|there|he|she|they)"
    r"(?=\s+(?:is|are|was|were|has|have|had|will|wo|did|does)\b|['’]))(?:\b|['’])"
    r"|^\W*(?:[你您]|还是|就[要按这在]?|只|别|不要|不用|先|再|在[那这它]|我(?:问|说|想说|是说"
    r"|要)的)"
    r"|^\W*(?:改[名成到为]|换[成到个]|[找列查发]个|[找念读查写发整回翻转](?:一下|出|给|顾|译|理"
    r"|告)|告诉|通知)(?!.*了(?:\W|$))"
    r"|[吧吗呢][\s。.!！~～]*$|来着",
    re.IGNORECASE,
)
_LONGEST_KEY = 40
_LONGEST_STATEMENT = 300


def is_question(text: str) -> bool:
    return requests.is_question(text) or bool(_ASKS_SO.match(text))


def asks_for(text: str) -> bool:
    """Whether `text` asks for what may have been told: “send me the link”, 链接发我一下."""
    return is_question(text) or bool(_ASKS_FOR.fullmatch(text))


def is_request(text: str) -> bool:
    """Whether `text` asks for something to be done: a command, a reminder, a meeting."""
    return bool(
        text.startswith(("/", "／"))
        or _REQUEST.search(text)
        or command(text)
        or reminder_wish(text)
        or agenda_call(text)
        or forgets_last(text)
        or question_about_itself(text)
    )


def is_errand(text: str) -> bool:
    """Whether `text`, said to the bot, only greets it or asks it to do something, so that nobody
    else learns anything from it."""
    return not fact_to_remember(text) and bool(small_talk(text) or is_request(text))


def statement_in(text: str) -> str:
    """The statement that `text` makes, also within “remember that …”; "" for questions, requests
    and greetings."""
    if fact := fact_to_remember(text):
        return fact
    text = _TAIL.sub("", _LEAD_IN.sub("", lead_in(text, "")[1]))
    if asks_for(text) or small_talk(text) or is_request(text) or _NOT_KNOWN.search(text):
        return ""
    return without_stop(text)


def fact_to_keep(text: str) -> str:
    """The statement in `text` if it is plain enough to be kept unasked: one that gives something a
    value."""
    fact = statement_in(text)
    is_plain = len(fact) <= _LONGEST_STATEMENT and len(_words_of(fact)) > 2
    is_told = bool(_STATES.search(fact)) and not _OF_THE_TALK.search(fact)
    return fact if is_plain and is_told and not _NOT.search(text) else ""


def fact_to_remember(text: str) -> str:
    """The fact in “remember that …” or “…, remember that”, or nothing."""
    match = _REMEMBER.match(text) or _REMEMBERED_AT_END.match(text)
    if not match or is_question(_given_name(match)) or _ASKS_NAME.search(text) or _NOT.search(text):
        return ""
    return _given_name(match)


def corrected_value(text: str) -> str:
    """The new value in “no, it is now …”, “不是3号，是5号”, or nothing."""
    match = _CORRECTION.match(text)
    if not match or is_question(text) or small_talk(text):
        return ""
    statement = _LEAD_IN.sub("", match[1])
    rest = _BUT.match(statement)
    return without_stop(re.sub(r"了$", "", without_stop(rest[1] if rest else statement)))


def is_whole(value: str) -> bool:
    """Whether a corrected value names its matter itself: “no, our launch is on 4 March”."""
    subject, verb, _ = _parts(value)
    return bool(verb) and subject.strip().lower() not in _SAYS_NO_TOPIC


def begins_with_verb(statement: str) -> bool:
    return bool(_VERB.match(statement))


def statement_with_value(statement: str, value: str) -> str:
    """`statement` with another value after its verb; `value` alone where it has no verb."""
    about, verb, old = _parts(statement)
    if not verb:
        figures = _FIGURE.findall(statement)
        is_figure = len(figures) == 1 and _FIGURE.fullmatch(value)
        return _FIGURE.sub(value, statement) if is_figure else value
    preposition = _PREPOSITION.match(old)
    keeps = preposition and not _PREPOSITION.match(value)
    gap = " " if old.startswith(" ") else ""
    return f"{about}{verb}{preposition[0] if preposition and keeps else gap}{value}"


def says_change(statement: str) -> bool:
    """Whether a word in it says that something is new."""
    return bool(_CHANGES.search(statement)) or any(one.changes for one in stated_facts(statement))


def fact_key(statement: str) -> str:
    """The key under which a statement is kept: what it is about, and in what respect. A time never
    replaces a place."""
    if name_in(statement):
        return "name"
    about, verb, value = _parts(statement)
    if about.strip().lower() in _SAYS_NO_TOPIC or not verb:
        about, respect = statement, ""
    else:
        preposition = _PREPOSITION.match(value)
        rest = value[preposition.end() :] if preposition else value
        has = re.search(r"\b(?:has|have|had)\b|有|在", verb, re.IGNORECASE)
        respect = (
            "time"
            if value_kinds(rest)[0] in WHEN
            else next((m[0] for m in (preposition, has) if m), "")
        )
    words = re.findall(r"[a-z0-9]+|[\u3400-\u9fff]+", f"{about} {respect}".lower())
    return "_".join(words)[:_LONGEST_KEY].strip("_") or "fact"


def asks_name(text: str) -> bool:
    return bool(_ASKS_NAME.search(text))


def name_in(text: str) -> str:
    """The name that somebody gives as theirs, if they do."""
    if asks_name(text):
        return ""
    match = _NAME.search(text) or re.match(r"(?:name|名字): (.{1,40})", text)
    name = next((group for group in match.groups() if group), "") if match else ""
    return _NAME_END.split(name, maxsplit=1)[0].strip(" 　'\"“”")


def without_stop(text: str) -> str:
    return text.strip().rstrip(".。!！")


def _parts(statement: str) -> tuple[str, str, str]:
    """What a statement is about, its verb, and the value; no verb: all of it is the first."""
    verb = _VERB.search(statement)
    if not verb or not verb.start():
        return statement, "", ""
    return statement[: verb.start()], verb[0], statement[verb.end() :]


def _given_name(match: re.Match[str]) -> str:
    return without_stop(match[1] or match[2])


def _words_of(text: str) -> list[str]:
    return re.findall(r"[a-zA-Z0-9]+|[\u3400-\u9fff]", text)
