"""Buttons under an answer, and what a click is told at once. Pure.

A button's callback carries an opaque id and nothing else. Follow-up questions stand on buttons,
never in the card's text; an action that needs a confirmation is described in the text, because
people must read what they confirm.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from bot.feishu import cards, markup
from bot.feishu.events import CardAction
from bot.feishu.fields import as_text
from bot.feishu.user_scopes import NO_NEEDS, AccessNeeds
from bot.outbox.texts import CATALOGUE, say
from bot.text.follow_ups import questions_of, split_follow_ups
from bot.text.languages import Language
from memory.models import ANSWERED_OUTCOME, TurnOutcome
from memory.scope import ChatType
from memory.tables.cards import (
    BUTTON_ID_LENGTH,
    Click,
    Handle,
    HandleTouch,
    NewButton,
    PressVerdict,
    TouchVerdict,
    new_button_id,
)

if TYPE_CHECKING:  # the web process, which answers presses, needs none of them
    from bot.agents.prompts.prompt import AgentAnswer, PendingAction
    from bot.outbox.foot import AnswerFooter
    from bot.text.roster import AutoMention
    from memory.models import CardButton, StoredCard

# Feishu: a card of schema 2.0 can be interacted with for 14 days.
FOLLOW_UP_LIVES_S = 14 * 86400
CONFIRM_LIVES_S = 3600
_LABEL_CHARS = 40
_DELETING = frozenset({"forget_fact", "delete_note"})
_ID = re.compile(rf"[A-Za-z0-9_-]{{{BUTTON_ID_LENGTH}}}")

Decision = Literal["confirm", "cancel"]
Toast = PressVerdict | TouchVerdict | Literal["later", "away", "too_many", "stopping", "stopped"]

_LEVELS: Mapping[Toast, str] = {
    "accepted": "success",
    "later": "info",
    "used": "info",
    "expired": "warning",
    "not_yours": "warning",
    "unknown": "warning",
    "thanks": "success",
    "taken_back": "info",
    "over": "info",
    "stopping": "success",
    "stopped": "info",
    "too_many": "warning",
    "away": "error",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """What a turn says: text before it is composed, buttons, and the tool calls that led to it.
    `cards` are shown as they are, in place of the text. `unsaid`: the person alone was shown all,
    and nothing is said here. `forgets`: something was forgotten, or shown from what is kept; then
    the turn keeps no words once it is over. `files` (`bot.files.writing`) follow the cards.
    `given`: the messages that its prompt showed besides the question; not stored where one was
    taken back meanwhile. `means`: how the turn ends with it. `needs`: what its tools
    lacked.
    """

    text: str
    buttons: tuple[NewButton, ...] = ()
    tool_calls: tuple[Mapping[str, Any], ...] = ()
    auto_mention: AutoMention | None = None
    foot: AnswerFooter | None = None
    cards: tuple[str, ...] = ()
    unsaid: bool = False
    forgets: bool = False
    files: tuple[Mapping[str, str], ...] = ()
    given: tuple[str, ...] = ()
    means: TurnOutcome = ANSWERED_OUTCOME
    needs: AccessNeeds = NO_NEEDS


def reply_of(
    answer: AgentAnswer,
    source_ids: tuple[str, ...] = (),
    *,
    chat_type: ChatType,
    language: Language,
) -> Reply:
    """The model's answer with its follow-ups and the actions that wait for a confirmation."""
    actions = answer.pending_actions
    action_texts = [action.question or action.description for action in actions]
    ending = split_follow_ups(answer.text, answer.follow_ups)
    confirming = [
        button
        for number, action in enumerate(actions, 1)
        for button in confirmation(action, chat_type, language, number if actions[1:] else None)
    ]
    return Reply(
        text="\n\n".join(
            part for part in (ending.text, *action_texts, _action_list(answer)) if part
        ),
        buttons=(*confirming, *follow_ups(ending.questions, chat_type)),
        tool_calls=answer.tool_calls,
        auto_mention=answer.auto_mention,
        forgets=any(map(_deletes, answer.tool_calls)),
        files=answer.files,
        given=source_ids,
        means=answer.means,
        needs=answer.needs,
    )


def _action_list(answer: AgentAnswer) -> str:
    """The files that come after the answer, by name."""
    return "\n".join(f"📎 {markup.verbatim_words(file['name'])}" for file in answer.files)


def _deletes(call: Mapping[str, Any]) -> bool:
    patch = call["arguments"].get("patch")
    return bool(call["ok"]) and (
        call["name"] in _DELETING or (isinstance(patch, dict) and None in patch.values())
    )


def follow_ups(questions: Iterable[str], chat_type: ChatType) -> tuple[NewButton, ...]:
    """Up to three questions that a model wrote; each is asked as it stands on its button."""
    return offered_buttons(questions_of(as_text(text) for text in questions), chat_type)


def offered_buttons(texts: Iterable[str], chat_type: ChatType) -> tuple[NewButton, ...]:
    """Returns buttons that ask what stands on them: texts of ours, commands among them."""
    return tuple(
        NewButton(text, "follow_up", {"text": text}, chat_type, FOLLOW_UP_LIVES_S) for text in texts
    )


def decision_button(
    text: str,
    payload: Mapping[str, Any],
    choice: Decision,
    *,
    group_id: str,
    chat_type: ChatType,
    language: Language,
    danger: bool = False,
) -> NewButton:
    """One of the buttons of a confirmation; pressing one uses up all with its `group_id`."""
    storable = {**_storable(payload), "decision": choice, "language": language}
    return NewButton(
        label(text), "confirm", storable, chat_type, CONFIRM_LIVES_S, group_id, danger=danger
    )


def _storable(value: Any) -> Any:
    """JSON without the characters that Postgres refuses (NUL, lone surrogates)."""
    if isinstance(value, Mapping):
        return {as_text(str(key)): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    return as_text(value) if isinstance(value, str) else value


def confirmation(
    action: PendingAction, chat_type: ChatType, language: Language, number: int | None = None
) -> tuple[NewButton, ...]:
    """The buttons that do it and that do not; `number` where there are several."""
    payload = {
        "id": action.id,
        "tool": action.tool,
        "arguments": dict(action.arguments),
        "description": action.description,
        "asked_ms": action.asked_ms,
    }
    group = new_button_id()
    which = f" {number}" if number else ""

    def button(text: str, choice: Decision) -> NewButton:
        return decision_button(
            text + which, payload, choice, group_id=group, chat_type=chat_type, language=language
        )

    return button(say("confirm", language), "confirm"), button(say("cancel", language), "cancel")


def label(text: str) -> str:
    """`text` as it fits on a button: one line, at most 40 characters."""
    line = one_line(text)
    return line if len(line) <= _LABEL_CHARS else line[: _LABEL_CHARS - 1] + "…"


def one_line(text: str) -> str:
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def card_buttons(stored_buttons: Sequence[CardButton]) -> list[cards.Button]:
    """Stored buttons as the card shows them."""
    return [
        cards.Button(
            one.label,
            {"b": one.id},
            danger=one.danger,
            fields=fields_of(one.form),
            entry=one.entry,
        )
        for one in stored_buttons
    ]


def fields_of(form: Sequence[Mapping[str, Any]]) -> tuple[cards.Field, ...]:
    """The fields that a button submits."""
    return tuple(map(_field, form))


def _field(one: Mapping[str, Any]) -> cards.Field:
    """A checkbox, a choice of options, or a line to write on."""
    name, label = one["name"], one["label"]
    if "checked" in one:
        return cards.CheckField(name, label, one["checked"], one["entry"])
    if "options" in one:
        return cards.SelectField(name, label, one["initial"], tuple(map(tuple, one["options"])))
    return cards.InputField(name, label)


def written_value(values: Mapping[str, Any], name: str) -> str:
    """What somebody wrote into that field of a form, as far as it can be stored."""
    return as_text(values.get(name))[: cards.INPUT_CHARS].strip()


def chosen_values(form: Sequence[Mapping[str, Any]], values: Mapping[str, Any]) -> dict[str, str]:
    """What was chosen in a submitted form, name → value, as far as it was offered."""
    options = {one["name"]: {value for value, _ in one["options"]} for one in form}
    return {
        name: values[name]
        for name, choices in options.items()
        if isinstance(values.get(name), str) and values[name] in choices
    }


def with_danger_marks(
    stored_cards: Sequence[StoredCard], new: Sequence[NewButton]
) -> tuple[StoredCard, ...]:
    """The cards, with those buttons looking dangerous that are."""
    dangerous = {button.id for button in new if button.danger}
    if not dangerous:
        return tuple(stored_cards)
    return tuple(
        replace(
            card, buttons=tuple(replace(one, danger=one.id in dangerous) for one in card.buttons)
        )
        for card in stored_cards
    )


def stop_button(button_id: str, language: Language) -> cards.Button:
    """Stands under an answer while it is written."""
    return cards.Button(say("stop", language), {"b": button_id})


def pressed_id(value: object) -> str | None:
    """The id in a callback's value; None for everything that is no button of ours."""
    button_id = value.get("b") if isinstance(value, dict) else None
    return button_id if isinstance(button_id, str) and _ID.fullmatch(button_id) else None


def click_of(action: CardAction) -> Click | None:
    """The press a card callback asks for; None when it comes from no button of ours."""
    button_id = pressed_id(action.value)
    if not button_id or not action.operator_open_id:
        return None
    return Click(
        button_id=button_id,
        chat_id=action.open_chat_id,
        message_id=action.open_message_id,
        operator_id=action.operator_open_id,
        tenant_key=action.tenant_key,
        event_id=action.event_id,
    )


def touch_of(action: CardAction) -> HandleTouch | None:
    """The press of a button below an answer; None for all others."""
    value = action.value
    handle = value.get("h") if isinstance(value, dict) and len(value) == 1 else None
    if handle not in get_args(Handle) or not action.operator_open_id:
        return None
    return HandleTouch(
        cast(Handle, handle),
        chat_id=action.open_chat_id,
        message_id=action.open_message_id,
        operator_id=action.operator_open_id,
        tenant_key=action.tenant_key,
    )


def toast(kind: Toast) -> dict[str, Any]:
    """The answer to a card callback. Source: Feishu, “Card callback communication”."""
    words = CATALOGUE.both(f"toast-{kind}")
    content = f"{words.zh} / {words.en}"
    i18n = {"zh_cn": words.zh, "en_us": words.en}
    return {"toast": {"type": _LEVELS[kind], "content": content, "i18n": i18n}}
