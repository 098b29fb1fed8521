"""Reads the text that a card shows, from every form in which Feishu hands cards over. Pure.

The forms: JSON 1.0 and 2.0 as they were sent, either of them as `user_dsl`, and rows of
simplified elements. Only what people see is read, not callback values. Sources: Feishu,
"Receive message content", "Card JSON 1.0 structure", "Card JSON 2.0 structure"; `user_dsl` is
seen in production only."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from bot.feishu.fields import as_dict, as_list, as_text

_PLACEHOLDER = re.compile(r"\s*请升级(?:至最新版本客户端|客户端至最新版本).{0,12}")

CARD_LOCALES = ("zh_cn", "en_us", "ja_jp", "zh_hk", "zh_tw")
_VARIABLE = re.compile(r"\]\(\$(\w{1,64})\)")
_NO_ID = re.compile(r"[^\w@.+-]")
_DEEPEST = 40  # levels of JSON; Feishu nests containers five deep, each takes up to four levels
_VISIBLE_FIELDS = (
    *("header", "title", "subtitle", "text_tag_list", "label", "text", "content", "fields"),
    *("elements", "items", "contents", "columns", "actions", "extra"),
)
_RUNS = ("text", "a", "at", "emotion")
_FILLED_FIELDS = ("default_value", "initial_date", "initial_time", "initial_datetime")


def original_card(content: dict[str, Any]) -> dict[str, Any]:
    """The card as it was sent, taken out of `user_dsl` where it is wrapped."""
    source = content.get("user_dsl")
    if isinstance(source, str):
        try:
            source = json.loads(source)
        except (ValueError, RecursionError):
            source = None
    return as_dict(source) or content


def card_text(content: dict[str, Any]) -> str:
    """The texts of a card as Markdown, with its at-tags; "" where nothing can be read.

    Of several languages it takes one.
    """
    return _card_text(original_card(content)) or _card_text(content)


def _card_text(card: dict[str, Any]) -> str:
    body = as_dict(card.get("body")) or card
    header = localised_value(card.get("i18n_header")) or card.get("header") or card.get("title")
    elements = localised_value(body.get("i18n_elements")) or localised_value(
        card.get("i18n_elements")
    )
    lines = list(shown_lines(elements or body.get("elements")))
    if any(map(_PLACEHOLDER.fullmatch, lines)):
        lines = []  # a picture stands beside it
    return "\n".join([*shown_lines(header), *lines])


def localised_value(by_locale: object) -> Any:
    """What `{locale: value}` holds for the first language that has something."""
    values = as_dict(by_locale)
    texts_in_order = [*map(values.get, CARD_LOCALES), *values.values()]
    return next((value for value in texts_in_order if value), None)


def shown_lines(node: Any, depth: int = 0) -> Iterator[str]:
    """What `node` shows, line by line."""
    if depth > _DEEPEST:
        return
    lines: Iterable[str] = ()
    if isinstance(node, str):
        lines = [as_text(node)]
    elif isinstance(node, list):
        lines = (line for child in node for line in _child(child, depth + 1))
    elif isinstance(node, dict):
        node = {**node, **as_dict(node.get("property"))}  # the form that clients store
        lines = _RENDERERS.get(as_text(node.get("tag")), _visible_lines)(node, depth)
    yield from filter(str.strip, lines)


def _child(child: Any, depth: int) -> Iterator[str]:
    """A list within a list is a row of the simplified form."""
    return iter([_row(child, depth)]) if isinstance(child, list) else shown_lines(child, depth)


def _visible_lines(element: dict[str, Any], depth: int) -> Iterator[str]:
    """Of any element, and of those not known here: the parts that people see."""
    if words := _translate_text(element):
        yield words
        return
    for name in _VISIBLE_FIELDS:
        yield from shown_lines(element.get(name), depth + 1)


def _markdown(element: dict[str, Any], depth: int) -> Iterator[str]:
    """Version 1.0 may keep the address of `[label]($name)` in `href`."""
    addresses = as_dict(element.get("href"))

    def address(match: re.Match[str]) -> str:
        url = as_text(as_dict(addresses.get(match[1])).get("url"))
        return f"]({url})" if url else match[0]

    for line in _visible_lines(element, depth):
        yield _VARIABLE.sub(address, line) if addresses else line


def _translate_text(text: dict[str, Any]) -> str:
    """The translation of a text object that has no `content` of its own."""
    if as_text(text.get("content")):
        return ""
    return as_text(localised_value(text.get("i18n_content")) or localised_value(text.get("i18n")))


def _row(nodes: list[Any], depth: int) -> str:
    """Elements side by side; runs of text stand directly next to each other."""
    row = ""
    for node in nodes:
        words = " ".join(shown_lines(node, depth + 1))
        is_run = as_dict(node).get("tag") in _RUNS
        row = row + words if is_run or not words else f"{row.rstrip()} {words} "
    return row.strip()


def _side_by_side(name: str) -> Callable[[dict[str, Any], int], Iterator[str]]:
    return lambda element, depth: iter([_row(as_list(element.get(name)), depth)])


def _label(value: object, depth: int) -> str:
    """A text, be it a string or a text object, in one line."""
    return " ".join(" ".join(shown_lines(value, depth + 1)).split())


def _image(element: dict[str, Any], depth: int) -> Iterator[str]:
    alt = _label(element.get("alt"), depth) or _label(element.get("title"), depth)
    yield f"(image: {alt})" if alt else "(image)"


def _images(element: dict[str, Any], _depth: int) -> Iterator[str]:
    yield f"({len(as_list(element.get('img_list')))} images)"


def _button(element: dict[str, Any], depth: int) -> Iterator[str]:
    address = _address(element)
    yield f"[{_label(element.get('text'), depth)}]" + (f"({address})" if address else "")


def _address(element: dict[str, Any]) -> str:
    behaviors = map(as_dict, as_list(element.get("behaviors")))
    candidates = [
        element.get("url"),
        as_dict(element.get("multi_url")).get("url"),
        *(one.get("default_url") for one in behaviors if one.get("type") == "open_url"),
    ]
    urls = (as_text(address) for address in candidates)
    return next((one for one in urls if one.startswith(("https://", "http://"))), "")


def _choice(element: dict[str, Any], depth: int) -> Iterator[str]:
    """Menus and fields: what asks for input, what is filled in, and what can be chosen."""
    prompts = [_label(element.get(name), depth) for name in ("label", "placeholder", "text")]
    values = [as_text(element.get(name)) for name in _FILLED_FIELDS]
    options = [_label(one, depth) for one in as_list(element.get("options"))]
    parts = [*prompts, *values, " / ".join(filter(None, options))]
    yield f"[{': '.join(filter(None, parts))}]"


def _checker(element: dict[str, Any], depth: int) -> Iterator[str]:
    mark = "x" if element.get("checked") is True else " "
    yield f"[{mark}] {_label(element.get('text'), depth)}"


def _link(element: dict[str, Any], _depth: int) -> Iterator[str]:
    yield f"[{as_text(element.get('text'))}]({as_text(element.get('href'))})"


def _at(element: dict[str, Any], _depth: int) -> Iterator[str]:
    name = as_text(element.get("user_name")).translate({ord(sign): None for sign in "<>"})
    yield at_tag_for_key(as_text(element.get("user_id")), name)


def at_tag_for_key(user_id: str, name: str = "") -> str:
    """An at-tag for an id, or for the key of a mention."""
    attribute = "mention_key" if user_id.startswith("@") else "id"
    return f'<at {attribute}="{_NO_ID.sub("", user_id)}">{name}</at>'


def _people(element: dict[str, Any], _depth: int) -> Iterator[str]:
    people = [as_dict(one).get("id") for one in as_list(element.get("persons"))]
    yield " ".join(at_tag_for_key(as_text(one)) for one in [element.get("user_id"), *people] if one)


def _chart(element: dict[str, Any], depth: int) -> Iterator[str]:
    title = as_dict(as_dict(element.get("chart_spec")).get("title"))
    label = _label(title.get("text"), depth)
    yield f"(chart: {label})" if label else "(chart)"


def _table(element: dict[str, Any], depth: int) -> Iterator[str]:
    columns = [as_dict(column) for column in as_list(element.get("columns"))]
    names = [_label(one.get("display_name"), depth) or as_text(one.get("name")) for one in columns]
    yield _table_row(names)
    yield _table_row("---" for _ in columns)
    for row in map(as_dict, as_list(element.get("rows"))):
        yield _table_row(_cells(row, column, depth) for column in columns)


def _table_row(cells: Iterable[str]) -> str:
    cell_texts = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(cell_texts)} |"


def _cells(row: dict[str, Any], column: dict[str, Any], depth: int) -> str:
    """What a row has for a column: one value, or several."""
    value = row.get(as_text(column.get("name")))
    values = value if isinstance(value, list) else [value]
    return " ".join(_cell(one, as_text(column.get("data_type")), depth) for one in values)


def _cell(value: Any, data_type: str, depth: int) -> str:
    """A value by the `data_type` of its column; dates are ms since epoch."""
    if data_type == "persons" and value:
        return at_tag_for_key(as_text(as_dict(value).get("id", value)))
    if data_type == "date" and isinstance(value, int | float) and 0 <= value < 1e14:
        return f"{datetime.fromtimestamp(value / 1000, UTC):%Y-%m-%d %H:%M} UTC"
    if isinstance(value, bool | int | float):
        return str(value)
    return _label(value, depth)


_RENDERERS: dict[str, Callable[[dict[str, Any], int], Iterator[str]]] = {
    "markdown": _markdown,
    "lark_md": _markdown,
    "hr": lambda element, depth: iter(["---"]),
    "note": _side_by_side("elements"),
    "action": _side_by_side("actions"),
    "img": _image,
    "img_combination": _images,
    "button": _button,
    "overflow": _choice,
    "input": _choice,
    "select_static": _choice,
    "multi_select_static": _choice,
    "select_person": _choice,
    "multi_select_person": _choice,
    "date_picker": _choice,
    "picker_time": _choice,
    "picker_datetime": _choice,
    "checker": _checker,
    "a": _link,
    "at": _at,
    "emotion": lambda element, depth: iter([f":{as_text(element.get('emoji_type'))}:"]),
    "person": _people,
    "person_list": _people,
    "chart": _chart,
    "table": _table,
}
