"""Builds card JSON 2.0, and what stands in for a card when Feishu refuses it. Pure.

The Markdown given is the Markdown sent: make it safe first (`card_markdown`), then add at-tags,
then split. Entries of a list are counted from the last, since the beginning may get a mention.
Source: Feishu, "Card JSON 2.0 structure"; unknown attributes are errors there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bot.feishu.markup import AT_TAG, plain_text
from memory.text import as_json, one_line

_ANSWER_ID = "answer"
STAGE_ID = "stage"
_STAGE_ROW_ID = "stage_row"
_STOP_ID = "stop"
MAX_CARD_BYTES = 30_000
INPUT_CHARS = 1000  # Feishu's most
_SUMMARY_CHARS = 60
_ROW_OF_DASHES = re.compile(
    r"^[ \t]*+(?:\|[ \t]*+)?(?::?-{1,64}:?[ \t]*+\|[ \t]*+)+[ \t:-]*$", re.MULTILINE
)
_MARKS = re.compile(r"[*_`~#>|\[\]]+|\([^()\s]{0,2000}\)")
_STREAMING = {
    "print_frequency_ms": {"default": 70},
    "print_step": {"default": 1},
    "print_strategy": "fast",
}

CardElement = dict[str, Any]
_PARAGRAPH, _LINE = "\n\n", "\n"
_PART = re.compile(r"(entry|below)_[0-9]{1,3}")


@dataclass(frozen=True, slots=True)
class SelectField:
    """One of `options` (value, text) is chosen, under a plain `label`; `initial` is a value."""

    name: str
    label: str
    initial: str
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class CheckField:
    """A checkbox with a plain `label`, beside the paragraph `entry`, counted from the last. A card
    that has any has one for each of its last paragraphs."""

    name: str
    label: str
    checked: bool
    entry: int


@dataclass(frozen=True, slots=True)
class InputField:
    """A line to write on, empty at first, under a plain `label`."""

    name: str
    label: str


Field = SelectField | CheckField | InputField


@dataclass(frozen=True, slots=True)
class Button:
    """A button below the answer; a click brings `value` back (an object: Feishu takes no text).
    With `fields` it submits a form of them: their values come back by name. With `entry` it
    stands beside that paragraph, counted from the last."""

    text: str
    value: dict[str, Any]
    danger: bool = False
    disabled: bool = False
    fields: tuple[Field, ...] = ()
    entry: int = 0

    @property
    def checks(self) -> tuple[CheckField, ...]:
        return tuple(one for one in self.fields if isinstance(one, CheckField))


@dataclass(frozen=True, slots=True)
class CardFoot:
    """Below an answer, each where there is any: a `notice` about the answer itself, one `line` that
    unfolds to `details`, all plain, and to `sources`, lines of Markdown that is sent as it is; and
    small buttons."""

    line: str
    details: Sequence[str]
    handles: Sequence[Button]
    notice: str = ""
    sources: Sequence[str] = ()


def reply_uuid(message_id: str, chunk: int, version: int = 0) -> str:
    """The same uuid for the same piece of the same reply, 40 characters (Feishu allows 50).

    `version` changes when the content does: Feishu sends at most one message per uuid and hour.
    """
    return hashlib.sha256(f"{message_id}\n{chunk}\n{version}".encode()).hexdigest()[:40]


def answer_id(turn_id: str, chunk: int) -> str:
    """The id of the answer's element in this piece of this reply: what tells the card apart from
    others in a list of messages. At most 20 characters, the first a letter."""
    return f"a{hashlib.sha256(f'{turn_id} {chunk}'.encode()).hexdigest()[:19]}"


def is_answer_id(element_id: str) -> bool:
    """Whether the element of that id holds an answer."""
    return element_id == _ANSWER_ID or re.fullmatch("a[0-9a-f]{19}", element_id) is not None


def holds_answer(element_id: str) -> bool:
    """Whether the element of that id holds an answer, or an entry of the list at its end."""
    return is_answer_id(element_id) or is_of_entry(element_id)


def answer_card(
    markdown: str,
    *,
    element_id: str = _ANSWER_ID,
    summary: str | None = None,
    buttons: Sequence[Button] = (),
    note: str | None = None,
    asked_text: str | None = None,
    foot: CardFoot | None = None,
) -> dict[str, Any]:
    """A card with `markdown`, as it is, in the Markdown element `element_id`; the paragraphs that
    have `buttons` beside them stand below in elements of their own.

    `summary` is what the chat list shows (default: the beginning of the text); `note` is small
    plain text below the answer.
    `asked_text`, above the answer, is the question that somebody pressed. Only `markdown` is the
    answer.
    """
    elements: list[dict[str, Any]] = []
    if asked_text:
        elements.append({"tag": "div", "element_id": "asked", "text": _small(f"↪ {asked_text}")})
    checks = [check for button in buttons for check in button.checks]
    most = max([0, *(one.entry for one in buttons), *(one.entry for one in checks)])
    words, entries = part_entries(markdown, most)
    below, inline_buttons = _placed_buttons(buttons, entries)
    elements.append({"tag": "markdown", "element_id": element_id, "content": words})
    elements += () if checks else entry_elements(entries, inline_buttons)
    if note:
        elements.append(_note(note))
    elements += below
    elements += _foot_elements(foot) if foot else []
    config: dict[str, Any] = {"update_multi": True, "width_mode": "fill"}
    summary_text = _summary(markdown) if summary is None else summary
    if summary_text:
        config["summary"] = {"content": summary_text}
    return {"schema": "2.0", "config": config, "body": {"elements": elements}}


def streaming_card(
    markdown: str, *, element_id: str, stage: str = "", stop: Button | None = None
) -> dict[str, Any]:
    """The card of an answer that is being written: below the text so far `stage`, small plain text
    that changes meanwhile, and a button to stop it."""
    card = answer_card(markdown, element_id=element_id)
    card["config"] |= {
        "summary": {"content": _summary(markdown)},
        "streaming_mode": True,
        "streaming_config": _STREAMING,
    }
    elements = card["body"]["elements"]
    if stage:
        text = {**_small(stage), "element_id": STAGE_ID}
        elements.append({"tag": "div", "element_id": _STAGE_ROW_ID, "text": text})
    if stop:
        elements.append(_button(_STOP_ID, stop))
    return card


def closing_actions(
    streamed_card: Mapping[str, Any], final: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """What makes an `answer_card` of a `streaming_card` and ends its streaming, in one call. Both
    have the answer under the same id.

    Source: Feishu, “Batch update a card entity” (cardkit-v1): actions are done in order.
    """
    (answer, *below), now = streamed_card["body"]["elements"], final["body"]["elements"]
    id = answer["element_id"]
    place = next(number for number, one in enumerate(now) if one.get("element_id") == id)
    summary = final["config"].get("summary", {"content": ""})
    settings = {"config": {"streaming_mode": False, "summary": summary}}
    actions = [_action("partial_update_setting", settings=settings)]
    if below:
        ids = [one["element_id"] for one in below]
        actions.append(_action("delete_elements", element_ids=ids))
    actions.append(_action("update_element", element_id=id, element=now[place]))
    for where, elements in (("insert_before", now[:place]), ("insert_after", now[place + 1 :])):
        if elements:
            params = {"type": where, "target_element_id": id, "elements": elements}
            actions.append(_action("add_elements", **params))
    return actions


def _action(name: str, **params: Any) -> dict[str, Any]:
    return {"action": name, "params": params}


def _note(text: str) -> dict[str, Any]:
    # A div of plain text, so that nothing in it is read as Markdown or as a tag.
    return {"tag": "div", "element_id": "note", "text": _small(text)}


def _small(text: str) -> dict[str, Any]:
    return {"tag": "plain_text", "content": text, "text_size": "notation", "text_color": "grey"}


def _placed_buttons(
    buttons: Sequence[Button], entries: Sequence[str]
) -> tuple[list[dict[str, Any]], Mapping[int, list[dict[str, Any]]]]:
    """The buttons below all, and those beside each entry."""
    places: dict[int, list[dict[str, Any]]] = {}
    for number, button in enumerate(buttons, 1):
        plain = _button(f"button_{number}", button)
        element = _form(number, button, entries) if button.fields else plain
        places.setdefault(button.entry if entries else 0, []).append(element)
    return places.pop(0, []), places


def _button(element_id: str, button: Button) -> dict[str, Any]:
    element = {
        "tag": "button",
        "element_id": element_id,
        "type": "danger" if button.danger else "default",
        "text": {"tag": "plain_text", "content": button.text},
        "behaviors": [{"type": "callback", "value": button.value}],
    }
    return {**element, "disabled": True} if button.disabled else element


def _form(number: int, button: Button, entries: Sequence[str]) -> dict[str, Any]:
    """Names are unique in the card; the option that is chosen at first must be one of them.
    Source: Feishu, “Form container”, “Dropdown select”, “Checker” and “Input”, card JSON 2.0."""
    submit = _button(f"button_{number}", button) | {
        "type": "primary_filled",
        "name": f"submit_{number}",
        "form_action_type": "submit",
    }
    fields = [element for one in button.fields for element in _field(one, entries)]
    return {
        "tag": "form",
        "element_id": f"form_{number}",
        "name": f"form_{number}",
        "elements": [*fields, submit],
    }


def _field(field: Field, entries: Sequence[str]) -> Iterable[CardElement]:
    if isinstance(field, CheckField):
        yield _checked_entry(field, entries[-field.entry] if entries else "")
        return
    yield {"tag": "div", "text": {"tag": "plain_text", "content": field.label}}
    yield _select(field) if isinstance(field, SelectField) else _input(field)


def _checked_entry(check: CheckField, entry: str) -> CardElement:
    """A checkbox and, to the right of it, the paragraph that it is about."""
    checker = {
        "tag": "checker",
        "name": check.name,
        "checked": check.checked,
        "text": {"tag": "plain_text", "content": check.label},
    }
    words = {"tag": "column", "width": "weighted", "weight": 1}
    return {
        "tag": "column_set",
        "horizontal_spacing": "12px",
        "columns": [
            {"tag": "column", "width": "auto", "elements": [checker]},
            {**words, "elements": list(_entry_words(check.entry, entry))},
        ],
    }


def _select(select: SelectField) -> dict[str, Any]:
    options = [
        {"text": {"tag": "plain_text", "content": text}, "value": value}
        for value, text in select.options
    ]
    return {
        "tag": "select_static",
        "name": select.name,
        "width": "fill",
        "initial_option": select.initial,
        "options": options,
    }


def _input(one: InputField) -> dict[str, Any]:
    return {"tag": "input", "name": one.name, "width": "fill", "max_length": INPUT_CHARS}


def _foot_elements(foot: CardFoot) -> list[dict[str, Any]]:
    elements: list[dict[str, Any]] = []
    if foot.notice:
        elements.append({"tag": "div", "element_id": "notice", "text": _small(foot.notice)})
    if foot.line:
        elements.append(_panel(foot))
    if foot.handles:
        elements.append(_handles(foot.handles))
    return elements


def _panel(foot: CardFoot) -> dict[str, Any]:
    return {
        "tag": "collapsible_panel",
        "element_id": "foot",
        "expanded": False,
        "header": {
            "title": _small(foot.line),
            "vertical_align": "center",
            "icon": {
                "tag": "standard_icon",
                "token": "down-small-ccm_outlined",
                "size": "16px 16px",
            },
            "icon_position": "follow_text",
            "icon_expanded_angle": -180,
        },
        "elements": [
            *({"tag": "div", "text": _small(detail)} for detail in foot.details),
            *([_sources(foot.sources)] if foot.sources else ()),
        ],
    }


def _sources(lines: Sequence[str]) -> dict[str, Any]:
    return {
        "tag": "markdown",
        "element_id": "sources",
        "content": "\n".join(lines),
        "text_size": "notation",
    }


def _handles(handles: Sequence[Button]) -> dict[str, Any]:
    # In columns: JSON 2.0 puts buttons below each other otherwise.
    elements = (_button(f"handle_{number}", one) for number, one in enumerate(handles, 1))
    small = ({**button, "type": "text", "size": "small"} for button in elements)
    columns = [{"tag": "column", "width": "auto", "elements": [one]} for one in small]
    return {"tag": "column_set", "element_id": "handles", "columns": columns}


def _summary(markdown: str) -> str:
    """The first words without markup."""
    head = plain_text(AT_TAG.sub("", markdown[: 20 * _SUMMARY_CHARS]), {})
    return one_line(_MARKS.sub("", _ROW_OF_DASHES.sub("", head)))[:_SUMMARY_CHARS]


def card_content(card: dict[str, Any]) -> str:
    """`content` of an interactive message: compact JSON."""
    return as_json(card)


def entity_content(card_id: str) -> str:
    """`content` of an interactive message that shows a CardKit card."""
    return as_json({"type": "card", "data": {"card_id": card_id}})


def text_content(text: str) -> str:
    """`content` of a text message; give it `plain_text(…)`."""
    return as_json({"text": text})


def part_entries(markdown: str, most: int) -> tuple[str, Sequence[str]]:
    """The text before the last `most` paragraphs, and those; none of them where nothing would stand
    before."""
    paragraphs = markdown.split(_PARAGRAPH)
    if not 0 < most < len(paragraphs):
        return markdown, ()
    return _PARAGRAPH.join(paragraphs[:-most]), paragraphs[-most:]


def entry_elements(
    entries: Sequence[str], buttons: Mapping[int, Sequence[CardElement]]
) -> Iterable[CardElement]:
    """The elements of the paragraphs, with those buttons; both are counted from the last."""
    for number, entry in zip(range(len(entries), 0, -1), entries, strict=True):
        words = list(_entry_words(number, entry))
        yield from [_entry_with_buttons(words, buttons[number])] if buttons.get(number) else words


def is_of_entry(element_id: str) -> bool:
    """Whether the element of that id holds words of an entry."""
    return _PART.fullmatch(element_id) is not None


def join_entries(parts: Iterable[tuple[str, str]]) -> str:
    """The text of these elements (id, content), as it was before it was parted."""
    text = ""
    for element_id, content in parts:
        text += (_LINE if element_id.startswith("below") else _PARAGRAPH) + content
    return text.removeprefix(_PARAGRAPH)


def _entry_words(number: int, entry: str) -> Iterable[CardElement]:
    """The first line, and what is said about it, small."""
    first, *rest = entry.split(_LINE, 1)
    yield {"tag": "markdown", "element_id": f"entry_{number}", "content": first}
    for below in rest:
        small = {"tag": "markdown", "element_id": f"below_{number}", "text_size": "notation"}
        yield {**small, "content": below}


def _entry_with_buttons(
    words: Sequence[CardElement], buttons: Sequence[CardElement]
) -> CardElement:
    text = {"tag": "column", "width": "weighted", "weight": 1, "vertical_spacing": "2px"}
    column = {"tag": "column", "width": "auto", "direction": "horizontal"}
    small = [{**button, "size": "small"} for button in buttons]
    return {
        "tag": "column_set",
        "flex_mode": "stretch",
        "horizontal_spacing": "12px",
        "columns": [
            {**text, "elements": list(words)},
            {**column, "horizontal_spacing": "4px", "elements": small},
        ],
    }
