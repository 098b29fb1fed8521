"""Decides whether the asker's own words authorise a tool call. Pure, English and Chinese.

Quotations, files, documents, names, recalled talk, tool results and the model's own answers reach
the model beside the question, and a model may follow what they say. None of that has authority. A
tool that writes runs at once only if the asker's own exchange names the action and its object.
Otherwise it waits for the asker's button. A yes, typed or as a reaction, presses that button
(`bot.card_actions.confirmation`); it never lends its authority to the text around it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any

from bot.agents.authority.request_words import (
    CHANGE,
    CORRECTS,
    DELETE,
    EVERYBODY,
    FORGETS_FACT,
    REMEMBER,
    REMIND,
    REPEATS,
    SETS_TIME,
    SHARING,
    WRITE,
    content_words,
    forbids,
    is_said,
    names_no_object,
    orders,
    own_text,
    picks_by_number,
    points_at_item,
    same_date,
    same_script,
    tells_at_a_time,
    unsaid_numbers,
    wants,
    without_names,
)
from bot.text.roster import means_asker, means_everybody
from memory.models import StoredMessage

_KEEPING = frozenset({"create_note", "update_working_memory"})
_LEAST_SHARE = 1 / 3
_STATED_SHARE = 1 / 2
_LAST_WORDS = 400  # of an answer, where a question may stand, with choices after it

GUARDED = frozenset(
    {
        "create_note",
        "update_note",
        "delete_note",
        "share_note",
        "update_working_memory",
        "forget_fact",
        "set_reminder",
        "change_reminder",
        "cancel_reminder",
    }
)


@dataclass(frozen=True)
class AskerExchange:
    """What the asker wrote: the `question`, and `before`, their earlier message if `question`
    answers what the bot asked about it.

    `bot_question` is the bot's question in between, `last_answer` what it said to them last.
    `names` is open_id → name of the people whom a text can mention. `material`: text of others came
    with the question.
    """

    question: str
    before: str = ""
    bot_question: str = ""
    last_answer: str = ""
    names: Mapping[str, str] = field(default_factory=dict)
    material: bool = False

    @cached_property
    def own(self) -> str:
        """The asker's own words in both: no quotations, names, titles, links or code."""
        return own_text(self._own_lines)

    @cached_property
    def own_with_quotations(self) -> str:
        """The same with short quotations, which name things and give values."""
        return own_text(self._own_lines, short_quotations=True)

    @cached_property
    def _own_lines(self) -> str:
        text = "\n".join(part for part in (self.before, self.question) if part)
        return without_names(text, self.names.values())


def exchange_of(
    question: str,
    earlier: Sequence[StoredMessage],
    asker: str,
    *,
    names: Mapping[str, str] | None = None,
    material: bool = False,
) -> AskerExchange:
    """The asker's own exchange that ends with `question`. `earlier` is what was said before, oldest
    first, by anyone.

    The asker's earlier message belongs to it if the bot answered it with a question and the asker
    has said nothing since: then `question` fills in what was missing.
    """
    before = question_before = last_answer = ""
    for message, reply in pairwise(earlier):
        if message.role != "user" or message.actor_id != asker:
            continue
        last_answer = reply.content if reply.role == "assistant" else ""
        before, question_before = (message.content, reply.content) if _asks(reply) else ("", "")
    if earlier and earlier[-1].role == "user" and earlier[-1].actor_id == asker:
        before = question_before = ""
    return AskerExchange(question, before, question_before, last_answer, names or {}, material)


def authorises(
    exchange: AskerExchange,
    tool: str,
    arguments: Mapping[str, Any],
    target: str = "",
    content: str = "",
    *,
    by_moment: bool = False,
) -> bool:
    """True if the asker's own words request this call of one of our tools, or state what it keeps.

    `target` is what the note, fact or reminder is called that the arguments name by id or key, and
    `content` the whole of it; "" if there is none. `by_moment`: the asker names the day or the time
    of that reminder.
    """
    own = exchange.own
    if tool in _KEEPING and forbids(own) and _keeps(arguments):
        return False
    match tool:
        case "set_reminder":
            return _authorises_reminder(exchange, arguments)
        case "change_reminder":
            return _authorises_changed_reminder(exchange, arguments, "" if by_moment else target)
        case "cancel_reminder" | "delete_note":
            return wants(own, DELETE, CHANGE) and (by_moment or _names_item(exchange, target))
        case "forget_fact":
            key = str(arguments.get("key", ""))
            names_item = _names_item(exchange, f"{key} {target}")
            return wants(own, DELETE, CHANGE) and (names_item or _names_foreign_key(exchange, key))
        case "share_note" if arguments.get("shared", True):
            return True  # the tool itself asks the owner
        case "share_note":
            return wants(own, DELETE, SHARING) and _names_item(exchange, target)
        case "update_note":
            is_request = wants(own, CHANGE, WRITE, REMEMBER, DELETE, REMIND)
            return is_request and _names_note_change(exchange, arguments, target, content)
        case "create_note":
            return _authorises_note(exchange, arguments)
        case "update_working_memory":
            return all(_authorises_fact(exchange, *fact) for fact in _facts(arguments))
    return True


def _asks(reply: StoredMessage) -> bool:
    end = reply.content[-_LAST_WORDS:]
    return reply.role == "assistant" and ("?" in end or "？" in end)


def _authorises_reminder(exchange: AskerExchange, arguments: Mapping[str, Any]) -> bool:
    clauses = [one for one in orders(exchange.own) if wants(one, REMIND) or tells_at_a_time(one)]
    return (
        bool(clauses)
        and _names_recipients(exchange, arguments, clauses)
        and _says_how_often(exchange, arguments)
        and _names(exchange, str(arguments.get("text", "")))
    )


def _authorises_changed_reminder(
    exchange: AskerExchange, arguments: Mapping[str, Any], target: str
) -> bool:
    clauses = [one for one in orders(exchange.own) if wants(one, CHANGE, REMIND, DELETE, SETS_TIME)]
    new_text = str(arguments.get("text") or "")
    return (
        bool(clauses)
        and _names_recipients(exchange, arguments, clauses)
        and _says_how_often(exchange, arguments)
        and (_names_item(exchange, target) or bool(new_text) or _was_told_last(exchange, target))
        and _names(exchange, new_text)
    )


def _authorises_note(exchange: AskerExchange, arguments: Mapping[str, Any]) -> bool:
    title, body = str(arguments.get("title", "")), str(arguments.get("body", ""))
    if wants(exchange.own, REMEMBER, WRITE):
        return _names(exchange, title) or _names(exchange, f"{title} {body}")
    return _states(exchange, " ".join(_texts(arguments)))


def _names_note_change(
    exchange: AskerExchange, arguments: Mapping[str, Any], title: str, content: str
) -> bool:
    """True if the asker names the note, and what is new in it."""
    change = {key: value for key, value in arguments.items() if key != "note_id"}
    added_words = content_words(" ".join(_texts(change))) - content_words(content)
    all_said = all(is_said(text, exchange.own_with_quotations) for text in _texts(change))
    return _names_item(exchange, title) and (all_said or _names_words(exchange, added_words))


def _authorises_fact(exchange: AskerExchange, key: str, value: Any) -> bool:
    if _corrects(exchange, " ".join(_texts(value))):
        return True
    text = " ".join((key.replace("_", " "), *_texts(value)))
    if wants(exchange.own, REMEMBER, CHANGE, DELETE):
        values = list(_texts(value))
        return (
            _names(exchange, text)
            or _states(exchange, text)
            or (bool(values) and all(_gives(exchange, one) for one in values))
        )
    return value is not None and _states(exchange, " ".join(_texts({key: value})))


def _corrects(exchange: AskerExchange, fact: str) -> bool:
    """True for “no, it is room C7” after an answer: `fact` gives what is new in the asker's words,
    and the rest of it stands in that answer."""
    correction = CORRECTS.match(exchange.question)
    if not correction or not exchange.last_answer or exchange.material:
        return False
    known_words = content_words(exchange.last_answer) | content_words(exchange.own_with_quotations)
    new_value = exchange.question[correction.end() :].strip(" .。!！,，:：")
    return content_words(fact) <= known_words and is_said(new_value, fact)


def _gives(exchange: AskerExchange, value: str) -> bool:
    """True if the asker wrote this value to the letter, or mentioned a person of this name."""
    is_mentioned = value in exchange.names.values() and f"@{value}" in exchange.question
    return is_mentioned or is_said(value, exchange.own_with_quotations)


def _facts(arguments: Mapping[str, Any]) -> list[tuple[str, Any]]:
    patch = arguments.get("patch")
    return [(str(key), value) for key, value in patch.items()] if isinstance(patch, Mapping) else []


def _keeps(arguments: Mapping[str, Any]) -> bool:
    """True if the call stores something, False if it only deletes facts."""
    facts = _facts(arguments)
    return not facts or any(value is not None for _, value in facts)


def _names_recipients(
    exchange: AskerExchange, arguments: Mapping[str, Any], clauses: Sequence[str]
) -> bool:
    """True if the asker names everyone whom the reminder is for. Everybody has to be named in the
    request itself, or in the answer to the bot's question."""
    addressed_words = "\n".join([*clauses, exchange.question if exchange.before else ""])
    asker_words = f"{exchange.before}\n{exchange.question}".casefold()
    return all(
        means_asker(name)
        or (
            bool(EVERYBODY.search(addressed_words))
            if means_everybody(name)
            else exchange.names.get(name, name).strip("@ ").casefold() in asker_words
        )
        for name in arguments.get("for_whom") or ()
    )


def _says_how_often(exchange: AskerExchange, arguments: Mapping[str, Any]) -> bool:
    repeats = arguments.get("repeats") or "once"
    return repeats == "once" or bool(REPEATS.search(exchange.own))


def _names(exchange: AskerExchange, thing: str) -> bool:
    """True if the asker's words name `thing`, or name nothing and so mean what was said or shown
    before (“remember this”, “delete that note”)."""
    if names_no_object(exchange.own):
        return True
    if unsaid_numbers(thing, exchange.own_with_quotations):
        return False
    return _names_words(exchange, content_words(thing)) or same_date(
        thing, exchange.own_with_quotations
    )


def _names_item(exchange: AskerExchange, item: str) -> bool:
    """True if the asker names the stored item by a word of it, or points at one: “that note”, or
    the number of one that the bot listed. An item without words cannot be named."""
    words, own = content_words(item), exchange.own
    named_words = words & content_words(exchange.own_with_quotations)
    if picks_by_number(exchange.question) and words & content_words(exchange.bot_question):
        return True
    return not words or bool(named_words) or points_at_item(own) or names_no_object(own)


def _was_told_last(exchange: AskerExchange, item: str) -> bool:
    """True if the bot's last answer was about this item and no other: “改成三点吧” after “OK, I'll
    remind you on Thursday at 14:00: ‘dentist’”."""
    answer = exchange.last_answer
    is_alone = answer.count("“") == 1 and not exchange.material
    return is_alone and content_words(item) <= content_words(answer)


def _names_foreign_key(exchange: AskerExchange, key: str) -> bool:
    """True if a request to forget cannot be compared with the key of the fact, because models keep
    English keys for people who write Chinese."""
    asker_words = content_words(exchange.own_with_quotations)
    asks = bool(FORGETS_FACT.search(exchange.own)) and not exchange.material
    return asks and not same_script(content_words(key), asker_words)


def _names_words(exchange: AskerExchange, words: frozenset[str]) -> bool:
    shared_words = words & content_words(exchange.own_with_quotations)
    return len(shared_words) >= len(words) * _LEAST_SHARE or names_no_object(exchange.own)


def _states(exchange: AskerExchange, fact_text: str) -> bool:
    """True if the asker said what is kept: half of its words, and every number."""
    words, asker_words = content_words(fact_text), content_words(exchange.own)
    numbers = {word for word in words if any(c.isdigit() for c in word)}
    return len(words & asker_words) >= max(1, len(words) * _STATED_SHARE) and numbers <= asker_words


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
