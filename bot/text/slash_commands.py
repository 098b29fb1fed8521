"""Recognises commands in a text, with a slash or in plain words, in English and Chinese. Pure.

The plain word is enough only when it is the whole text and cannot be meant otherwise. “Forget
the gym code” is a request; “forget it” and “I forgot my keys” are not. A doubtful sentence is
left to the model."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from bot.text.languages import Language, language_of
from bot.text.spelling import simplified

_PLAIN_WORDS = frozenset({"help", "帮助", "quiet", "安静", "新对话"})
_RESUME_WORDS = frozenset({"resume", "继续"})
STOP_WORDS = (
    *("stop", "stop it", "stop please", "please stop", "stop answering"),
    *(
        "停",
        "停止",
        "停下",
        "停下来",
        "停一下",
        "停一停",
        "请停下",
        "别说了",
        "不用了",
        "不用说了",
        "不用回答了",
    ),
)
_EVERYTHING = frozenset(
    {"all", "everything", "me", "everything about me", "everything you know about me"}
    | {"全部", "所有", "一切", "我", "我的一切", "关于我的一切", "关于我的全部", "关于我的所有"}
)
OFF_WORDS = frozenset({"off", "stop", "none", "关闭", "关", "取消", "断开", "disconnect"})
_THREAD = frozenset(
    {"this", "thread", "this thread", "this conversation", "这个话题", "本话题", "话题", "这个对话"}
)
_SLASH_COMMAND = re.compile(r"[/／](\w{1,12})(?!\w)[\s,，:：]*(.*)", re.DOTALL)
_ADDRESS = re.compile(r"^(?:@\S+\s+)+")
_ARGUMENT_CHARS = 200
_LONGEST_PLAIN = 80  # with spaces and signs around the word
_ENDING = ".!?。！？ \t\r\n"

_LONGEST_REQUEST = 200
_SENTENCE_END = ".!?。！？ \t\r"
_ASKING = (
    r"(?:(?:please|pls|plz|kindly|just|hey|ok|okay|yes|now|also"
    r"|(?P<asks>(?:can|could|would|will) you)|you (?:can|may|should|must)|i (?:want|need) you to"
    r"|i(?: woul|['’])d like you to)[,\s]+)*"
)
_KNOWLEDGE = (
    r"(?:(?:that )?(?:you|we|i)(?:['’]ve| have)? (?:know|remember|said|told you|stored|kept) )?"
)
_ENGLISH = re.compile(
    rf"{_ASKING}(?:forget:?\s+(?:about\s+|that\s+)?(?P<words>.+)"
    r"|(?:delete|remove|erase|wipe|drop)\s+(?P<kept>.+?)\s+from (?:your |the )?memory"
    rf"|(?:delete|remove|erase|wipe|drop) (?:everything|all|what) {_KNOWLEDGE}about (?P<about>.+))",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"(?<![,\s])[,\s]{1,3}(?:please|pls|thanks|thx|thank you|ok|okay|now|for good|forever"
    r"|because .+)$",
    re.IGNORECASE,
)
_DETERMINER = r"(?:the|my|our|his|her|their|an?|all|that i|or)\b"
_VERB = (
    r"\b(?:is|are|was|were|am|has|have|had|will|would|can|could|should|do|does|did|let|please)\b"
)
_GOES_ON = re.compile(
    r"[;?？；…]|[!:。！：]\s|\s[-–—]+\s"  # another sentence
    r"|(?<!\b[DM]r)(?<!\bMrs)(?<!\bM[sx])(?<!\b(?:St|No))\.\s"
    # after a comma only more of the same: “the code, my PIN and our address”, “Porto, Portugal”
    rf"|[,，](?!\s*(?:and\s+|or\s+)?(?:{_DETERMINER}|(?-i:[A-Z](?!['’\s]))|\d|\S+@))"
    r"|[,，]\s*(?:what|who|when|where|how|why|which|let|tell|show|give)\b"
    rf"|[,，](?=[^,，]*{_VERB})"
    r"|\s(?:but|then|instead)\b"
    r"|\sand\s(?:please|just|tell|give|show|let|answer|use|focus|move|go|start|continue|remember"
    r"|remind|note|help|do|be|make|get|come|keep|write|send|book|try|look|think|say|explain|sum"
    r"|summari[sz]e|translate|draft|set|add|call|ask|check|take|find|pick|choose|switch|play|read"
    r"|put|open|order|buy|i|you|we|it|he|she|they|what|who|when|where|how|why|can|could|will)\b",
    re.IGNORECASE,
)
_NO_SUBJECT = re.compile(
    r"(?:to|not|why|if|whether|how to)\b.*|.*\bfor (?:now|today|a (?:moment|minute|second|while))"
    r"|(?:(?:about )?(?:it|this|that|these|those|him|her|them|us|things?|stuff|people|anything|idea"
    r"|one|thought|password)"
    r"|(?:the|this|that|my) (?:last )?(?:idea|one|thing|thought|question|rest)"
    r"|all (?:of )?(?:it|this|that)"
    r"|i (?:ever |just )?(?:said|asked|mentioned)(?: (?:anything|it|that))?"
    r"|(?:.*\b)?(?:instructions?|prompts?)\b.*)",
    re.IGNORECASE,
)
_ERASE = "删除|删掉|抹掉|清除|移除"
_MEMORY = "(?:你的?)?记忆(?:里面?|中)?"
_PLEASE = (
    "(?P<please>你?(?:请|麻烦|帮我|帮忙|拜托|能不能|可不可以|能否|可否|可以|能"
    "|我?(?:希望|想让|想要|要)你)+你?)"
)
_CHINESE = re.compile(
    rf"(?:(?:好的?|那|现在)[，,]?)*(?:{_PLEASE}|(?P<you>你))?(?:彻底|永远|马上|立刻)?"
    r"(?:忘掉(?P<off>[^了过].*)|(?P<open>忘记|忘了)(?:一下)?(?P<of>.+)"
    rf"|[把将](?P<taken>.+?)(?:忘掉|(?P<done>忘了|忘记)|从{_MEMORY}(?:{_ERASE}))了?"
    rf"|从{_MEMORY}(?:{_ERASE})掉?(?P<kept>.+)"
    rf"|(?:{_ERASE})(?:你?(?:所|还)?(?:记得|知道|记住)的?)?(?:关于|有关)(?P<about>.+?)的(?:一切|全部|所有)(?:内容|记忆|信息|事情?|消息|话)?"
    rf"|(?:{_ERASE})(?:所有|一切|全部)(?:关于|有关)(?P<all>.+?)的(?:内容|记忆|信息|事情?|消息|话))"
    r"|(?:请|你)*(?:不用|不要|别|无需)再记[得住着](?P<longer>.+?)了?"
)
_TAIL = re.compile(r"(?:(?<![，,\s])[，,\s]{1,3})?(?:谢谢你?|好吗|可以吗|行吗|好不好)$")
_SOFT = re.compile(r"[吧吗]$")
_OTHER_MATTER = re.compile(
    r"[;；。！!?？…]|[，,](?!和|以及|还有|包括|我的|我们的)|怎么|如何|怎样|咋|为什么|为何|吗|是不是"
)

# “忘记关灯” says what was not done, “忘记密码” is written on every login page
_NOT_DONE = re.compile(
    r"带(?!宽|队)|关(?!于)|锁|交(?!通|易)|提交|提醒|吃|喝|拿|买|还(?!款|有)|回复|告诉|通知|登录|登记|设置|保存|签"
    r"|打卡$|打电话|打开|发(?!布|票|言|货)|写|做|去|给|叫|问(?!题)|付|穿|洗|充电|拔|插|戴|填|报名|开(?:会|门|灯|机)?$"
    r"|上班|上传|下载|备份|预订|预约|请假|说|(?:.{0,2}密码)?了|密码$|.*(?:了|在哪里?.*)$"
)
_POINTS = re.compile(
    r"[它他她]们?|[这那](?:[件个条些句])?(?:事情?|想法|问题|主意|话)?|.+(?:别|不要|没|差点|都|又|也|已经)|.*了"
    "|.*(?:指令|提示词).*"
)


class CommandName(StrEnum):
    """The commands that code below the features names, by the word after the slash."""

    HELP = "help"
    NEW = "new"
    MEMORY = "memory"
    FORGET = "forget"
    DIGEST = "digest"
    QUIET = "quiet"
    RESUME = "resume"
    LANGUAGE = "language"
    SETTINGS = "settings"
    MODE = "mode"
    PROACTIVE = "proactive"
    CONNECT = "connect"
    STOP = "stop"
    WHY = "why"


@dataclass(frozen=True, slots=True)
class Command:
    """A command as it was written. `name` is its English word. `argument` is the rest of the text,
    without case; `words` are the rest as it stands there.

    `only_when_quiet`: the word means something else (“go on”) in a chat that is not quiet;
    `only_when_running`: also (“no need”) while no answer to the person is being written.
    """

    name: str
    argument: str = ""
    language: Language = "en"
    only_when_quiet: bool = False
    only_when_running: bool = False
    words: str = ""


# Each word after a slash, and the command's name. Generated from the features by
# `python -m tests.support.guide_rows`: processes that load no features read commands, too.
COMMAND_WORDS: Mapping[str, str] = {
    word: name
    for name, chinese_words in json.loads(
        Path(__file__).with_name("command_words.json").read_text(encoding="utf-8")
    ).items()
    for word in (name, *chinese_words)
}


def parse_command(text: str) -> Command | None:
    """The command that `text` (what stands after the mention) is; None for everything else."""
    return _known_command(text) if len(text) <= _LONGEST_REQUEST else _read_command(text)


def _read_command(text: str) -> Command | None:
    bare_text = text.strip()
    if match := _SLASH_COMMAND.match(bare_text):
        name = COMMAND_WORDS.get(simplified(unicodedata.normalize("NFKC", match[1])).lower())
        argument = " ".join(match[2][:_ARGUMENT_CHARS].lower().rstrip(_ENDING).split())
        if not name:
            return None
        return Command(name, argument, language_of([bare_text]), words=match[2].strip())
    if words := words_to_forget(bare_text):
        argument = " ".join(words.lower().split())
        return Command(CommandName.FORGET, argument, language_of([bare_text]), words=words)
    if len(bare_text) > _LONGEST_PLAIN:
        return None
    word = " ".join(bare_text.rstrip(_ENDING).lower().split())
    if word in _PLAIN_WORDS or word in _RESUME_WORDS:
        return Command(
            COMMAND_WORDS[word], "", language_of([word]), only_when_quiet=word in _RESUME_WORDS
        )
    if word in STOP_WORDS:
        return Command(CommandName.STOP, "", language_of([word]), only_when_running=True)
    return None


# Each step of a turn asks about the same question.
_known_command = lru_cache(maxsize=256)(_read_command)


def without_address(text: str) -> str:
    """`text` without the mentions in front of it."""
    return _ADDRESS.sub("", text)


def means_everything(command: Command) -> bool:
    """`/forget all`."""
    return command.argument in _EVERYTHING


def means_thread(command: Command) -> bool:
    """`/forget this thread`."""
    return command.argument in _THREAD


def may_be_stop_word(text: str) -> bool:
    """Whether the text is a plain word that ends an answer, if one is being written."""
    command = parse_command(text)
    return command is not None and command.only_when_running


def words_to_forget(text: str) -> str:
    """Returns what `text` asks to forget, or "" if it asks for no such thing. The words are those
    of `text`, in Chinese with simplified characters; “what you know about” becomes “everything
    about”."""
    words = text.strip()
    if len(words) > _LONGEST_REQUEST or "\n" in words:
        return ""
    asks = words.endswith(("?", "？")) and not words.lower().endswith(("ok?", "okay?"))
    words = words.rstrip(_SENTENCE_END)
    return _named_in_english(words, asks=asks) or _named_in_chinese(simplified(words), asks=asks)


def _named_in_english(words: str, *, asks: bool) -> str:
    match = _ENGLISH.fullmatch(_without(_THANKS, words))
    if not match or (asks and not match["asks"]):
        return ""
    words_named = (match["words"] or match["kept"] or match["about"]).strip()
    if _GOES_ON.search(words_named) or _NO_SUBJECT.fullmatch(words_named):
        return ""
    return f"everything about {words_named}" if match["about"] else words_named


def _named_in_chinese(words: str, *, asks: bool) -> str:
    polite = _without(_TAIL, words)
    soft = _SOFT.sub("", polite)
    match = _CHINESE.fullmatch(soft)
    if not match or (soft != polite and polite[-1] == "吗" and not match["please"]):
        return ""
    groups = ("off", "of", "taken", "kept", "about", "all", "longer")
    words_named = next(match[one] for one in groups if match[one]).strip()
    is_request = match["please"] or polite.endswith("吧")
    if not is_request and _tells_what_was_forgotten(match, words_named):
        return ""
    if asks and not match["please"]:
        return ""
    return (
        "" if _OTHER_MATTER.search(words_named) or _POINTS.fullmatch(words_named) else words_named
    )


def _tells_what_was_forgotten(match: re.Match[str], words_named: str) -> bool:
    """True if the sentence, without “please”, tells what somebody forgot: “忘记关灯”."""
    if match["done"]:
        return match["you"] is not None
    is_telling = match["you"] or match["open"] == "忘了" or _NOT_DONE.match(words_named)
    return bool(match["open"] and is_telling)


def _without(ending: re.Pattern[str], words: str) -> str:
    """`words` without such endings, however many."""
    while (shorter := ending.sub("", words)) != words:
        words = shorter
    return words
