"""How the offline model remembers and finds facts in what it was told. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from bot.agents.offline.small_talk import small_talk
from bot.agents.prompts.prompt import PERSON_MEMORY, THREAD_MEMORY

_LATIN = re.compile(r"[a-z0-9]+")
_HAN = re.compile(r"[\u3400-\u9fff]+")
_REMEMBER = re.compile(
    r"^\W*(?:please\s+|can you\s+|could you\s+)*"
    r"(?:remember|note|keep in mind)(?:\s+that)?\b[\s:,]*(.+)"
    r"|^\W*(?:请|麻烦|帮我|你|一定|要)*(?:记住|记一下|记着|记下来?)[，,：:\s]*(.+)",
    re.IGNORECASE | re.DOTALL,
)
_FORGET = re.compile(
    r"^\W*(?:please\s+|can you\s+|could you\s+)*forget(?:\s+(?:that|about))?\b[\s:,]*(.+)"
    r"|^\W*(?:请|麻烦|帮我|你|把)*(?:忘掉|忘了|忘记|别记|不要记住)[，,：:\s]*(.+)",
    re.IGNORECASE | re.DOTALL,
)
_CORRECTION = re.compile(
    r"^\W*no\b[\s,.:;]*(?:it|that)(?:'s| is)(?: now)?\s+(.+)"
    r"|^\W*(?:不对|不是|不)[\s，,。：:]*(?:现在|应该)?是[，,：:\s]*(.+)",
    re.IGNORECASE | re.DOTALL,
)
# “my name is Alice, remember that”; “我叫小明，记住”
_REMEMBERED_AT_END = re.compile(
    r"^\W*+(.+?)(?<![\s,.;:])[\s,.;:]++(?:please\s+|and\s+)*remember(?:\s+(?:that|this|it))?"
    r"(?:,?\s*please)?[\s.!]*$"
    r"|^\W*+(.+?)(?<![\s，,。；;])[\s，,。；;]++(?:请|麻烦|帮我|你|一定|要)*(?:记住|记一下|记着|记下来?)"
    r"(?:这个|这点|它|了|哦|啊|吧)*[\s。.!！]*$",
    re.IGNORECASE | re.DOTALL,
)
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
_AUTHOR = re.compile(r"^(?!\[)([^\s:：]{1,40})[:：]\s")
_QUESTION = re.compile(
    r"[?？吗呢么]\s*$"
    r"|^\W*(?:what|when|where|who|which|how|why|do|does|did|is|are|can|could)\b"
    r"|什么|几时|哪|谁|多少|怎么|何时",
    re.IGNORECASE,
)
_STOP = frozenset(
    "a an and are at be can did do does for have how i in is it its me my of on or our s t that the"
    " this to was we were what when where which who why will with you your remember please".split()
)
_TOPIC_END = re.compile(
    r"(?<!\s)\s+(?:is|are|was|were|will|has|have)\s+|(?<!\s)\s*[=:：]\s*|是|在|叫|为|有"
)
_SAYS_NO_TOPIC = frozenset(
    "i we you he she it they this that there 我 我们 你 他 她 它 这 那".split()
)
_LONGEST_KEY = 40
_RECALLED = re.compile(r"^\[(?P<when>[^\]]+)\] (?P<who>.{1,80}?): (?P<said>.+)$")
_TOLD = 3
_LINES = 5
_BEGINNING = 5  # words of which so many letters agree are forms of one
_OWN_NAME = re.compile(r"You are (.{1,80}?), a colleague in ")


def is_question(text: str) -> bool:
    return bool(_QUESTION.search(text))


def tells(text: str) -> bool:
    """Whether it may state something: it is no question, no greeting, and has a text."""
    return not is_question(text) and not small_talk(text)


def to_remember(text: str) -> str:
    """The fact in “remember that …” or “…, remember that”, or nothing."""
    match = _REMEMBER.match(text) or _REMEMBERED_AT_END.match(text)
    if not match or is_question(_stated(match)) or _ASKS_NAME.search(text):
        return ""
    return _stated(match)


def key(fact: str) -> str:
    """What a fact is about, as a key of the working memory: a later word on it replaces it."""
    if name_in(fact):
        return "name"
    topic = _TOPIC_END.split(fact.lower(), maxsplit=1)[0]
    if topic.strip() in _SAYS_NO_TOPIC:
        topic = fact.lower()  # “I have a cat” says nothing about “I like tea”
    words = re.findall(r"[a-z0-9]+|[\u3400-\u9fff]+", topic)
    return "_".join(words)[:_LONGEST_KEY] or "fact"


def to_forget(text: str) -> str:
    """What is meant by “forget that I …”, or nothing."""
    match = _FORGET.match(text)
    return _stated(match) if match and not is_question(text) else ""


def corrected(text: str) -> str:
    """The new value in “no, it is now …”, or nothing."""
    match = _CORRECTION.match(text)
    return _stated(match) if match else ""


def replaced(statement: str, value: str) -> str:
    """“the launch is on 3 March” with another value after its verb."""
    parts = _TOPIC_END.split(statement, maxsplit=1)
    verb = statement[len(parts[0]) : len(statement) - len(parts[1])] if len(parts) > 1 else ""
    return f"{parts[0]}{verb}{value}" if verb else value


def key_of(about: str, instructions: str) -> str:
    """The key of the working memory whose name and value share most words with `about`."""
    wanted, best, best_score = _words(about), "", 0
    for name, value in held(instructions).items():
        score = len(wanted & _words(f"{name.replace('_', ' ')} {' '.join(_texts(value))}"))
        if score and score >= best_score:
            best, best_score = name, score
    return best


def is_named(about: str, instructions: str) -> bool:
    """Whether the fact that `key_of` finds has every word of `about`."""
    name = key_of(about, instructions)
    said = f"{name.replace('_', ' ')} {' '.join(_texts(held(instructions).get(name)))}"
    return bool(name) and _words(about) <= _words(said)


def held(instructions: str) -> dict[str, Any]:
    """The working memory in the instructions, what is of the thread last."""
    found: dict[str, Any] = {}
    for heading in (PERSON_MEMORY, THREAD_MEMORY):
        _, there, after = instructions.partition(f"{heading}\n")
        if there:
            found |= json.loads(after.partition("\n")[0])
    return found


def asks_name(text: str) -> bool:
    return bool(_ASKS_NAME.search(text))


def name_in(text: str) -> str:
    """The name that somebody gives as theirs, if they do."""
    if asks_name(text):
        return ""
    match = _NAME.search(text)
    kept = re.match(r"(?:name|名字): (.{1,40})", text)  # as `kept` tells a short value
    found = match or kept
    given = next((group for group in found.groups() if group), "") if found else ""
    return _NAME_END.split(given, maxsplit=1)[0].strip(" 　'\"“”")


def author(line: str) -> str:
    """The name in front of what was said, where there is one."""
    match = _AUTHOR.match(line.strip())
    return match[1] if match else ""


def kept(instructions: str) -> list[str]:
    """The texts of the working memory that stands in the instructions."""
    texts: list[str] = []
    for heading in (THREAD_MEMORY, PERSON_MEMORY):
        _, found, after = instructions.partition(f"{heading}\n")
        if found:
            texts += _texts(json.loads(after.partition("\n")[0]))
    return texts


def closest(question: str, statements: Iterable[str]) -> str:
    """The statement that shares most words with the question; the latest of equals."""
    wanted = _words(question)
    best, best_score = "", 0
    for statement in statements:
        score = len(wanted & _words(statement))
        if score and score >= best_score and tells(statement):
            best, best_score = statement, score
    match = _REMEMBER.match(best)
    return _stated(match) if match else _without_stop(best)


def bot_name(instructions: str) -> str:
    """The bot's own name, as its instructions give it."""
    match = _OWN_NAME.match(instructions)
    return match[1] if match else ""


def spoken(line: str, bot: str = "") -> str:
    """What was said, without the author's name in front and the bot's own, `bot`: another name
    tells whom it is about."""
    said = re.sub(r"^(?!\[)[^\s:：]{1,40}[:：]\s+", "", line.strip())
    return re.sub(rf"^(?:@{re.escape(bot)}\s+)+", "", said) if bot else said


def told_before(question: str, recalled: str, bot: str = "") -> list[str]:
    """What people told that shares a word with `question`, of the lines that recall gives; at most
    `_TOLD`."""
    asked = _words(question)
    told = _told(recalled, bot)
    return [_cited(one, bot) for one in told if _shares_a_word(asked, one["said"])][-_TOLD:]


def told(recalled: str, bot: str = "") -> list[str]:
    """What people told, of the lines that recall gives."""
    return [_cited(one, bot) for one in _told(recalled, bot)]


def _told(recalled: str, bot: str) -> list[re.Match[str]]:
    """No questions, and nothing that the bot said."""
    lines = [match for match in map(_RECALLED.match, recalled.splitlines()) if match]
    return [one for one in lines if one["who"] != "[you]" and tells(spoken(one["said"], bot))]


def lines_about(question: str, name: str, text: str) -> list[str]:
    """The lines of a file that share a word with `question`, or its first ones where the question
    names the file; at most `_LINES`."""
    asked, named = _words(question), _words(name)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    fitting = [line for line in lines if _shares_a_word(asked - named, line)]
    return (fitting or (lines if asked & named else []))[:_LINES]


def _shares_a_word(asked: set[str], text: str) -> bool:
    """Whether a word of `asked` is in the text, or one that begins alike (moved, moving)."""
    words = _words(text)
    begun = {word[:_BEGINNING] for word in words if len(word) >= _BEGINNING}
    return bool(asked & words) or any(
        word[:_BEGINNING] in begun for word in asked if len(word) >= _BEGINNING
    )


def _cited(line: re.Match[str], bot: str) -> str:
    said = spoken(line["said"], bot)
    return f"{line['who']} ({line['when']}): {to_remember(said) or said}"


def _stated(match: re.Match[str]) -> str:
    return _without_stop(match[1] or match[2])


def _without_stop(text: str) -> str:
    return text.strip().rstrip(".。!！")


def _words(text: str) -> set[str]:
    """Latin words without stop words, and pairs of neighbouring CJK characters."""
    latin = {word for word in _LATIN.findall(text.lower()) if word not in _STOP}
    return latin | {run[i : i + 2] for run in _HAN.findall(text) for i in range(len(run) - 1)}


def _texts(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for name, item in value.items():
                # a bare value says little without the key it stands under
                yield from (f"{name}: {item}",) if _is_short(item) else _texts(item)
        case list():
            for item in value:
                yield from _texts(item)
        case str() | int() | float():
            yield str(value)


def _is_short(item: Any) -> bool:
    return isinstance(item, int | float) or (isinstance(item, str) and len(item.split()) <= 2)
