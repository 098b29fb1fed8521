"""Holds actions until the person who asked presses a button, and words the question on the card.

A yes is consent to this question. So it names all that will be done, and no model writes a word of
it but the arguments themselves, which stand in it as plain words."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from bot.agents.prompts.prompt import PendingAction, Prompt
from bot.agents.tool_types import ToolFailed, ToolOutcome
from bot.agents.tools.deps import ToolDeps
from bot.feishu.markup import verbatim_words
from bot.text import times
from bot.text.languages import Catalogue, Language, join_list
from bot.text.moments import read_moment
from bot.text.roster import means_asker, means_everybody
from memory.scope import AgentMemoryContext
from memory.tables.timers import Repeats
from memory.text import one_line

SHARE_NOTE = "share_note"

# People read all of what they confirm, on one card.
MOST_PENDING = 5
LONGEST_SHOWN = 4000

_CATALOGUE = Catalogue(__file__)
say = _CATALOGUE.say
_OUR_ITEMS = ("note", "reminder", "fact")


def wait_for_confirmation(
    tool: str,
    arguments: Mapping[str, Any],
    deps: ToolDeps,
    about: Mapping[str, str] | None = None,
) -> ToolOutcome:
    """Notes that `tool` is to be called with `arguments` (JSON) once confirmed, each action once.
    `about` is what people call what ids in the arguments stand for.

    Returns what the model is told in place of a result. Raises `ToolFailed` for what a card cannot
    show in full.
    """
    action = new_action(
        tool,
        arguments,
        deps.context,
        text=confirmation_question(tool, arguments, about or {}, deps.prompt),
        summary=f"{tool}: {json.dumps(arguments, ensure_ascii=False, default=str)}",
        asked_ms=int(deps.prompt.asked_at.timestamp() * 1000),
    )
    _wait(action, deps)
    return _waiting(tool)


def propose_action(
    tool: str, arguments: Mapping[str, Any], deps: ToolDeps, *, text: str, summary: str
) -> ToolOutcome:
    """Offers what a feature's button of the name `tool` does with `arguments` (JSON). `text` is the
    card's text, which says all that will be written; `summary` is one line of it. Returns and
    raises as `wait_for_confirmation`, also where the answer only shows what is known."""
    if deps.reads_only:
        raise read_only_failure()
    _wait(new_action(tool, arguments, deps.context, text=text, summary=summary), deps)
    return _waiting(tool)


def new_action(
    tool: str,
    arguments: Mapping[str, Any],
    context: AgentMemoryContext,
    *,
    text: str,
    summary: str,
    asked_ms: int = 0,
) -> PendingAction:
    """Returns an action that waits for a press of the sender of `context`. `text` and `summary` are
    as in `propose_action`; words about time count from `asked_ms` (ms since epoch)."""
    return PendingAction(
        id=secrets.token_urlsafe(16),
        tool=tool,
        arguments=arguments,
        description=summary,
        actor_id=context.actor_id,
        conversation_id=context.conversation_id,
        question=text,
        asked_ms=asked_ms,
    )


def read_only_failure() -> ToolFailed:
    """What a call that would change something comes to in an answer that may change nothing."""
    return ToolFailed(
        "Nothing can be changed in this answer, and nothing was: it only shows what is known. "
        "Do not try again.",
        "reads-only",
    )


def _wait(action: PendingAction, deps: ToolDeps) -> None:
    tool, arguments = action.tool, action.arguments
    if (tool, arguments) not in [(one.tool, one.arguments) for one in deps.pending]:
        deps.pending.append(_showable(action, deps))


def _waiting(tool: str) -> ToolOutcome:
    return ToolOutcome(
        f"Not done yet: {tool} waits until the person who asked presses the button that is shown "
        "under your answer. Say in one sentence what would be done, and do not claim it is done.",
        "waits-for-press",
    )


def _showable(action: PendingAction, deps: ToolDeps) -> PendingAction:
    if len(deps.pending) >= MOST_PENDING:
        raise ToolFailed(
            f"Not done: {MOST_PENDING} actions already wait for a confirmation under this answer. "
            "Say that the rest was not done and can be asked for afterwards.",
            "too-many-to-confirm",
        )
    shown_chars = sum(len(one.question) for one in (*deps.pending, action))
    if shown_chars > LONGEST_SHOWN:
        raise ToolFailed(
            f"Not done: {action.tool} needs a confirmation, and its arguments are too long to be "
            "shown in full on a card. Say that it was not done; the person can ask for it in "
            "shorter parts, or type the request themselves.",
            "too-long-to-confirm",
        )
    return action


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A tool call that waits. `about`: what ids in the arguments stand for, by kind. Words about
    time count from `asked_at`."""

    tool: str
    arguments: Mapping[str, Any]
    about: Mapping[str, str]
    now: datetime
    asked_at: datetime
    language: Language

    def say(self, key: str, **fields: object) -> str:
        return say(key, self.language, **fields)

    def item_name(self, argument: str) -> str:
        """What the item is called that `argument` names; the id itself if that is not known."""
        name = next((self.about[kind] for kind in _OUR_ITEMS if kind in self.about), "")
        return _words(name or self.arguments.get(argument, ""))


def confirmation_question(
    tool: str, arguments: Mapping[str, Any], about: Mapping[str, str], prompt: Prompt
) -> str:
    """Returns the question in the asker's language, and below it the arguments that it leaves
    out."""
    call = PendingCall(tool, arguments, about, prompt.now, prompt.asked_at, prompt.reply_language)
    return _QUESTIONS.get(tool, _run)(call)


def _create_note(call: PendingCall) -> str:
    question = call.say("create-note", name=_words(call.arguments.get("title", "")))
    values = {key: value for key, value in call.arguments.items() if key != "title" and value}
    return _with_list(call, question, values)


def _update_note(call: PendingCall) -> str:
    values = {key: value for key, value in call.arguments.items() if key != "note_id"}
    return _with_list(call, call.say("update-note", name=call.item_name("note_id")), values)


def _delete_note(call: PendingCall) -> str:
    return call.say("delete-note", name=call.item_name("note_id"))


def _share_note(call: PendingCall) -> str:
    key = "share-note" if call.arguments.get("shared", True) else "unshare-note"
    title = call.arguments.get("title")
    return call.say(key, name=_words(title) if title else call.item_name("note_id"))


def _update_memory(call: PendingCall) -> str:
    patch = call.arguments.get("patch")
    if not isinstance(patch, Mapping):
        return _run(call)
    ours = call.arguments.get("scope") == "person"
    lines = [call.say("remember-person" if ours else "remember-thread")]
    for key, value in patch.items():
        name = _words(str(key).replace("_", " "))
        if isinstance(value, str) and name.split(" ")[0] in value:  # a sentence that names it
            lines.append(f"- {_words(value)}")
            continue
        lines += _item(name, call.say("forgotten") if value is None else value, call)
    return "\n".join(lines)


def _forget_fact(call: PendingCall) -> str:
    return call.say("forget-fact", name=call.item_name("key").replace("_", " "))


def _set_reminder(call: PendingCall) -> str:
    return call.say(
        "set-reminder",
        whom=_whom(call),
        when=_when(call),
        text=_words(call.arguments.get("text", "")),
    )


def _change_reminder(call: PendingCall) -> str:
    lines = [call.say("change-reminder", name=call.item_name("reminder_id"))]
    values = call.arguments
    if values.get("text") is not None:
        lines += _item(call.say("new-text"), values["text"], call)
    if values.get("at") is not None or values.get("repeats") is not None:
        lines.append(f"- {call.say('new-time')}{call.say('colon')}{_when(call)}")
    if values.get("for_whom") is not None:
        lines.append(f"- {call.say('new-people')}{call.say('colon')}{_whom(call)}")
    return "\n".join(lines)


def _cancel_reminder(call: PendingCall) -> str:
    return call.say("cancel-reminder", name=call.item_name("reminder_id"))


def _run(call: PendingCall) -> str:
    """The question about a tool that is not ours, with all of its arguments."""
    values = {**call.arguments, **call.about}
    tool = one_line(call.tool.replace("`", "'"))
    question = call.say("run" if values else "run-alone", tool=f"`{tool}`")
    return "\n".join(
        [question, *(line for key in values for line in _item(key, values[key], call))]
    )


_QUESTIONS: Mapping[str, Callable[[PendingCall], str]] = {
    "create_note": _create_note,
    "update_note": _update_note,
    "delete_note": _delete_note,
    "share_note": _share_note,
    "update_working_memory": _update_memory,
    "forget_fact": _forget_fact,
    "set_reminder": _set_reminder,
    "change_reminder": _change_reminder,
    "cancel_reminder": _cancel_reminder,
}


def _whom(call: PendingCall) -> str:
    names = call.arguments.get("for_whom") or ["me"]
    name_list = names if isinstance(names, list | tuple) else [names]
    return join_list((_person(str(name), call) for name in name_list), call.language)


def _person(name: str, call: PendingCall) -> str:
    if means_asker(name):
        return call.say("you")
    return call.say("everybody") if means_everybody(name) else _words(name)


def _when(call: PendingCall) -> str:
    """“tomorrow, Sat 28 Nov at 09:00”, “every Monday at 09:00 (first: 30 Nov)”; the words as they
    are where they name no moment yet."""
    at_text = str(call.arguments.get("at") or "")
    repeats: Repeats = call.arguments.get("repeats") or "once"
    at = _moment(at_text)
    if at is None and (at := _moment((read := read_moment(at_text, call.asked_at)).at)):
        repeats = repeats if read.repeats == "once" else read.repeats
    if at is None:
        often = "" if repeats == "once" else f" ({call.say(f'repeats-{repeats}')})"
        return f"{_words(at_text)}{often}".strip()
    if at.tzinfo:
        at = at.astimezone(call.now.tzinfo)
    if repeats == "once":
        return _soon(at, call) + times.coming_text(at, call.language, now=call.now)
    often = times.repetition_text(repeats, at, call.language)
    first = _first(at.replace(tzinfo=None), repeats, call.now)
    return call.say(
        "often-from", often=often, day=times.day_text(first, call.language, now=call.now)
    )


def _first(at: datetime, repeats: Repeats, now: datetime) -> datetime:
    """When what repeats comes first: what it is counted from may be over."""
    if not isinstance(now.tzinfo, ZoneInfo):
        return at
    first = times.next_occurrence(at, repeats, now.tzinfo, now)
    return first.astimezone(now.tzinfo) if first else at


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


def _soon(at: datetime, call: PendingCall) -> str:
    today = call.now.date()
    if at.date() == today:
        return call.say("today")
    return call.say("tomorrow") if at.date() == today + timedelta(days=1) else ""


def _with_list(call: PendingCall, question: str, values: Mapping[str, Any]) -> str:
    lines = (
        line
        for key, value in values.items()
        for line in _item(_label(key, call), value or call.say("nothing"), call)
    )
    return "\n".join([question, *lines])


def _label(key: str, call: PendingCall) -> str:
    return call.say(f"argument-{key}") if _CATALOGUE.has(f"argument-{key}") else key


def _item(name: str, value: object, call: PendingCall, depth: int = 0) -> Iterator[str]:
    """An argument as lines of a list; what it holds is listed below it."""
    head = f"{'  ' * depth}- {_words(name)}{call.say('colon')}"
    if isinstance(value, Mapping) and value:
        yield head.rstrip()
        for key, one in value.items():
            yield from _item(str(key), one, call, depth + 1)
    elif isinstance(value, list | tuple) and any(isinstance(one, Mapping | list) for one in value):
        yield head.rstrip()
        for number, one in enumerate(value, 1):
            yield from _item(str(number), one, call, depth + 1)
    elif isinstance(value, list | tuple):
        yield head + join_list(map(_words, value), call.language)
    else:
        yield head + _words(value)


def _words(value: object) -> str:
    """A value as one line of plain words in which nothing is invisible."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    characters = (c if c.isprintable() or c.isspace() else json.dumps(c)[1:-1] for c in text)
    return verbatim_words("".join(characters))
