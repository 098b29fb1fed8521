"""Whether the person who asks wanted a change, by their own words. Pure, English and Chinese.

Quoted messages, files, recalled talk and tool results reach the model beside the question, and a
model may do what they say. So a change that lasts, or that reaches others, is made at once only if
the asker's words ask for it or say it; everything else waits for their button.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bot.text.addressee_words import means_asker, means_everybody
from memory.dates.words import WEEKDAY
from memory.models import StoredMessage

_CLAUSE = re.compile(r"\n+|(?<![.!?。！？;；])[.!?。！？;；]++(?=\s|$|[\u3400-\u9fff])")
_ONLY_ASKS = re.compile(
    r"^\W*(?:what|when|where|who|whom|whose|which|how|why|is|are|was|were|does|did|has|have"
    r"|do (?:you|we|i|they))\b"
    r"|\bremember (?:what|who|when|where|why|how|anything|something)\b"
    r"|还记得|[你您]记得|记得.{0,30}[吗么]|(?:记住|记下|记录|保存)了?(?:什么|哪些|吗|没有)"
    r"|什么|几时|哪|谁|多少|怎么|为何|何时|[吗呢么]\W*$",
    re.IGNORECASE,
)
_POLITE = re.compile(
    r"^\W*(?:(?:can|could|would|will) you|please|能不能|能否|能|可以|可不可以|请|麻烦|帮)"
    r"|(?:好吗|行吗|可以吗|好不好|行不行)\W*$",
    re.IGNORECASE,
)
_REMEMBER = re.compile(
    r"\b(?:remember(?! (?:what|who|when|where|why|how|if|whether|any|some))|memori[sz]e"
    r"|keep (?:in mind|that|this|it|my|our|a|track)|not(?:e|ing) (?:that|this|down|it|my|our)"
    r"|(?:make|take|add|write|create|save|keep) (?:me )?an? (?:\w+ )?note"
    r"|write (?:it|this|that|these|them|down)|jot|record|save|store|log (?:it|this|that)"
    r"|call me|from now on|in future|always|never|do(?:n['’]?| no)t forget)\b|\bnote:"
    r"|记住|记下|记一|记着|记到|记得|记好|牢记|帮我记|给我记|备忘|别忘|不要忘|存[一下起到]|保存"
    r"|写下|以后|今后|叫我",
    re.IGNORECASE,
)
_FORBIDS = re.compile(
    r"(?<!\bI )\b(?:do(?:n['’]?| no)t|never|no need to|without)(?! (?:\w+ )?forget)(?: \w+){0,2}"
    r" (?:remember|memori[sz]|keep|not(?:e|ing)\b|record|sav|stor|writ|log|jot)"
    r"|(?:别|不要|不用|不必|不需要|无需|请勿|不许)(?!.{0,3}忘)[^，,。]{0,3}(?:记(?!得|错)|存|写下)",
    re.IGNORECASE,
)
# Several words in quotation marks: a single one is a name or a value.
_QUOTED = re.compile(
    r'“[^“”\s]*[\s\u3400-\u9fff][^“”]*”|"[^"\s]*[\s\u3400-\u9fff][^"\n]*"|「[^「」]*」|『[^『』]*』'
)
_WRITE = re.compile(
    r"\b(?:note|notes|write|draft|put|add|create|make|start|set up|turn)\b"
    r"|笔记|便签|记录一?下|写|整理成|加|新建|创建|建[一个条]|做[一成个]",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:change|update|edit|modify|correct|fix|rename|retitle|tag|label|replace|append|extend"
    r"|mark|move|postpone|reschedule|shift|delay|bring forward|remove|drop|take off|no longer"
    r"|instead|now)\b"
    r"|改|换|更新|更正|修改|标签|补充|加上|去掉|移除|推迟|提前|延后|挪|现在是|不再",
    re.IGNORECASE,
)
_DELETE = re.compile(
    r"\b(?:delete|remove|forget|erase|drop|clear|discard|throw|get rid|cancel|stop|end|undo"
    r"|no longer|not any ?more|isn't|don't (?:need|want|keep))\b"
    r"|删|忘|去掉|移除|清除|清空|取消|撤|不要|不用|不再|停",
    re.IGNORECASE,
)
_REMIND = re.compile(
    r"\b(?:remind\w*|ping|nudge|poke|alert|do(?:n['’]?| no)t (?:let\b.{1,40}\b)?forget)\b"
    r"|提醒|闹钟|别忘|别让.{1,20}忘|记得",
    re.IGNORECASE,
)
_TELL = re.compile(
    r"\b(?:notify|tell|wake|text|message|let\b.{1,40}\bknow)\b|通知|叫|喊|告诉|告知", re.IGNORECASE
)
_TOLD_AT_ONCE = re.compile(
    r"\b(?:what|when|where|who|which|how|why|whether|if)\b|什么|几|哪|谁|多少|怎么|是否|有没有",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"\d|\b(?:tomorrow|tonight|today|every|daily|weekly|monthly|noon|morning|evening"
    rf"|{WEEKDAY})\b|[明后今每]天|今晚|周|星期|点|月|号",
    re.IGNORECASE,
)
_EVERYBODY = re.compile(
    r"\b(?:us|we|our|everyone|everybody|all|team|group|channel|chat|here|folks|guys|people|both)\b"
    r"|我们|咱|大家|所有人|全体|全员|全组|群|各位|团队|同事|你们|每个人|小组|@all",
    re.IGNORECASE,
)
_CONSENT = re.compile(
    r"\W*(?:yes|yep|yeah|sure|ok|okay|do it|go ahead|please do|yes,? please|correct|right"
    r"|是的?|好的?|行|可以|嗯+|对的?|要|没问题|同意|确认)\W*",
    re.IGNORECASE,
)
_WORD = re.compile(r"[a-z0-9][a-z0-9'’-]*", re.IGNORECASE)
_HAN = re.compile(r"[\u3400-\u9fff]+")
_LONGEST = 4000
_CREATING = ("set_reminder", "create_note", "update_working_memory")
_KEEPING = ("create_note", "update_working_memory")
_CORRECTING = ("update_note", "change_reminder")
_DELETING = ("delete_note", "forget_fact", "cancel_reminder")
GUARDED = frozenset({*_CREATING, *_CORRECTING, *_DELETING})


def own_words(question: str, before: Sequence[StoredMessage], asker: str, *, alone: bool) -> str:
    """What the asker says. Where nothing came with the question (`alone`) and it answers a question
    of the bot, what they had asked for before belongs to it, and a mere “yes” says what the bot had
    asked."""
    last = before[-1] if before else None
    if not alone or last is None or last.role != "assistant" or not _asks(last.content):
        return question
    if _CONSENT.fullmatch(question):
        return last.content
    earlier = [one.content for one in before[-2:-1] if one.actor_id == asker]
    return "\n".join([*earlier, question])


def asked_for(
    tool: str, arguments: Mapping[str, Any], words: str, names: Mapping[str, str]
) -> bool:
    """Whether `words` ask for this call of one of our tools, or say what it keeps. `names` is
    open_id → name. What they only quote they neither ask for nor say."""
    unquoted = _QUOTED.sub(" ", words[:_LONGEST])
    if tool == "set_reminder":
        return _is_for_asker(arguments) or (
            _reminds(words) and _names_all(arguments["for_whom"], words, names)
        )
    if tool == "change_reminder" and not _is_for_asker(arguments):
        return _wants(words, _CHANGE, _REMIND) and _names_all(arguments["for_whom"], words, names)
    if tool in _CORRECTING:
        return _wants(unquoted, _CHANGE, _WRITE, _REMEMBER, _DELETE, _REMIND)
    if tool in _DELETING:
        return _wants(unquoted, _DELETE, _CHANGE)
    if tool in _KEEPING and _keeps(arguments) and _forbids(unquoted):
        return False
    if tool == "create_note":
        return _wants(unquoted, _REMEMBER, _WRITE) or _says(arguments, unquoted)
    if tool == "update_working_memory" and arguments.get("scope") == "person":
        return _wants(unquoted, _REMEMBER, _CHANGE, _DELETE) or _says(
            arguments.get("patch"), unquoted
        )
    return True


def _asks(text: str) -> bool:
    return text.rstrip("*_ )）").endswith(("?", "？"))


def _keeps(arguments: Mapping[str, Any]) -> bool:
    """Whether a call keeps something, and does not only drop facts."""
    patch = arguments.get("patch")
    return not isinstance(patch, Mapping) or any(value is not None for value in patch.values())


def _forbids(words: str) -> bool:
    """Whether a clause says not to keep something, unless that is what it asks to remember."""
    for clause in _CLAUSE.split(words):
        forbidding, asking = _FORBIDS.search(clause), _REMEMBER.search(clause)
        if forbidding and not (asking and asking.start() < forbidding.start()):
            return True
    return False


def _wants(words: str, *cues: re.Pattern[str]) -> bool:
    return any(cue.search(clause) for clause in _orders(words) for cue in cues)


def _reminds(words: str) -> bool:
    """“tell us at five to leave” sets a reminder; “tell us what it says” asks for an answer."""
    return _wants(words, _REMIND) or any(
        _TELL.search(clause) and _TIME.search(clause) and not _TOLD_AT_ONCE.search(clause)
        for clause in _orders(words)
    )


def _orders(words: str) -> list[str]:
    """The clauses that may ask for something to be done, and not only to be told."""
    clauses = _CLAUSE.split(words[:_LONGEST])
    return [one for one in clauses if _POLITE.search(one) or not _ONLY_ASKS.search(one)]


def _is_for_asker(arguments: Mapping[str, Any]) -> bool:
    return all(means_asker(name) for name in arguments.get("for_whom") or ())


def _names_all(wanted: Sequence[str], words: str, names: Mapping[str, str]) -> bool:
    said = words.casefold()
    return all(
        bool(_EVERYBODY.search(words))
        if means_everybody(name)
        else means_asker(name) or names.get(name, name).strip("@ ").casefold() in said
        for name in wanted
    )


def _says(kept: Any, words: str) -> bool:
    """Whether what is kept is what the person said: half of its words, and every number."""
    told, said = _tokens(" ".join(_texts(kept))), _tokens(words)
    numbers = {one for one in told if any(c.isdigit() for c in one)}
    return len(told & said) >= max(1, len(told) / 2) and numbers <= said


def _texts(value: Any) -> Iterator[str]:
    match value:
        case Mapping():
            for key, item in value.items():
                yield from (str(key),) if isinstance(item, bool) else _texts(item)
        case str() | int() | float():
            yield str(value)
        case list() | tuple():
            for item in value:
                yield from _texts(item)


def _tokens(text: str) -> set[str]:
    """Words of letters and digits, and pairs of neighbouring Chinese characters."""
    runs = _HAN.findall(text)
    pairs = {run[at : at + 2] for run in runs for at in range(max(1, len(run) - 1))}
    return {word.casefold() for word in _WORD.findall(text)} | pairs
