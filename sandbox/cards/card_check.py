"""Would Feishu take this card? Pure checks of card JSON 2.0.

Limits: 30 KB, 200 elements and components, 5 tables (4 in one rich text), containers nested 5 deep,
unique element ids that start with a letter and have at most 20 characters (open.feishu.cn,
card-json-v2-structure; table component; codes from im-v1/message/reply "230099 sub-codes").
An at-tag counts wherever it stands, also in code: whether clients notify from code is not
documented, so the stand-in assumes the worse.
"""

import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from sandbox.cards import card_schema as schema
from sandbox.cards import forms
from sandbox.cards.card_schema import Shape
from sandbox.cards.forms import tagged

MAX_CARD_BYTES = 30 * 1024
MAX_ELEMENTS = 200
MAX_TABLES = 5
MAX_TABLES_IN_MARKDOWN = 4
MAX_DEPTH = 5

_ELEMENT_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,19}\Z")
_AT = re.compile(r"<at\s+(?:ids?|user_id|open_id|email)\s*=\s*[\"']?([^\"'>]*)[\"']?\s*/?>", re.I)
_IMAGE = re.compile(r"!\[[^\]\n]*\]\(\s*([^)\s]*)[^)\n]*\)")
_FENCE = r"^ {0,3}(`{3,}|~{3,})[^\n]*\n.*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)"
_CODE = re.compile(_FENCE + r"|`[^`\n]*`", re.M | re.S)
_RULE = re.compile(r"[ \t]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\Z")


class CardInvalid(Exception):
    """The card is refused: Feishu's sub-code, its words, and the value at fault."""

    def __init__(self, code: int, reason: str, value: str = "", path: str = "") -> None:
        self.code, self.reason, self.value, self.path = code, reason, value, path
        super().__init__(f"{code} {reason} {value}")


@dataclass
class CardFacts:
    """What the walk over a card found. `at_ids` in order, with repeats."""

    elements: int = 0
    tables: int = 0
    element_ids: set[str] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    at_ids: list[str] = field(default_factory=list)
    image_keys: list[str] = field(default_factory=list)


def parse_card(raw: str) -> dict[str, Any]:
    """The card object in `raw`. Raises CardInvalid (200621) when it is no JSON object."""
    try:
        card = json.loads(raw)
    except ValueError:
        card = None
    if not isinstance(card, dict):
        raise _unreadable("the card is not a JSON object")
    return card


def check_card(
    card: dict[str, Any],
    *,
    knows_person: Callable[[str], bool],
    knows_image: Callable[[str], bool],
) -> CardFacts:
    """Check a whole card. Raises CardInvalid with the first fault that is found."""
    if card.get("schema") != "2.0":
        raise CardInvalid(300303, "Only schema 2.0 is supported", str(card.get("schema")))
    config = card.get("config")
    if isinstance(config, dict) and config.get("update_multi") is False:
        raise CardInvalid(300302, "update_multi property is false")
    facts = CardFacts()
    _walk(card, schema.CARD, "ROOT", facts, depth=0)
    check_facts(facts, knows_person=knows_person, knows_image=knows_image)
    return facts


def check_version_1(
    card: dict[str, Any],
    *,
    knows_person: Callable[[str], bool],
    knows_image: Callable[[str], bool],
) -> None:
    """Checks a card without a schema, of version 1, as far as its elements are drawn and its people
    and pictures are known. Raises CardInvalid."""
    by_locale = card.get("i18n_elements")
    shown = by_locale.values() if isinstance(by_locale, dict) else [card.get("elements")]
    for elements in shown:
        for index, one in enumerate(_list(elements, "ROOT")):
            if not isinstance(_object(one, f"ROOT -> [{index}]").get("tag"), str):
                raise _unreadable("an element has a tag", f"ROOT -> [{index}]")
    tagged = [one for one in _objects(card) if "tag" in one]
    pictures = [str(one.get("img_key", "")) for one in tagged if one["tag"] == "img"]
    facts = CardFacts(len(tagged), at_ids=notified_by(card), image_keys=pictures)
    check_facts(facts, knows_person=knows_person, knows_image=knows_image)


def check_facts(
    facts: CardFacts,
    *,
    knows_person: Callable[[str], bool],
    knows_image: Callable[[str], bool],
) -> None:
    """The checks that need the whole card or the tenant. Raises CardInvalid."""
    if facts.elements > MAX_ELEMENTS:
        raise CardInvalid(300305, "element exceeds the limit")
    if facts.tables > MAX_TABLES:
        raise CardInvalid(11310, "card table number over limit", "table")
    for at_id in facts.at_ids:
        if at_id != "all" and not knows_person(at_id):
            raise CardInvalid(
                100290, "There is an invalid user resource(at/person) in your card", at_id
            )
    for key in facts.image_keys:
        if not knows_image(key):
            raise CardInvalid(200570, "card contains invalid image keys", f"image key {key}")


def find_element(node: Any, element_id: str) -> dict[str, Any] | None:
    """The element (or text element) with that id anywhere in the card, or None."""
    for found in _objects(node):
        if found.get("element_id") == element_id:
            return found
    return None


def at_ids(markdown: str) -> list[str]:
    """The ids of all at-tags in `markdown`, in order."""
    found = (ids.split(",") for ids in _AT.findall(markdown))
    return [one.strip() for ids in found for one in ids]


def notified_by(card: dict[str, Any]) -> list[str]:
    """Open ids (or `all`) that the card's texts notify, in order."""
    texts = (node.get("content") for node in _objects(card) if node.get("tag") != "plain_text")
    return [at_id for text in texts if isinstance(text, str) for at_id in at_ids(text)]


def table_count(markdown: str) -> int:
    """Number of Markdown tables outside code."""
    lines = _CODE.sub("", markdown).split("\n")
    return sum(
        "|" in head and "|" in rule and "-" in rule and bool(_RULE.match(rule))
        for head, rule in itertools.pairwise(lines)
    )


def _objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _objects(child)


def _walk(node: Any, shape: Shape, path: str, facts: CardFacts, depth: int) -> None:
    if shape == schema.ANY:
        return
    if shape in (schema.ELEMENTS, schema.COLUMNS, schema.BEHAVIORS):
        for index, child in enumerate(_list(node, path)):
            _walk_child(child, str(shape), f"{path} -> [{index}]", facts, depth)
    elif shape in (schema.TEXT, schema.ICON):
        _walk_child(node, str(shape), path, facts, depth)
    elif isinstance(shape, dict):
        _attributes(_object(node, path), shape, path, facts, depth)


def _walk_child(node: Any, kind: str, path: str, facts: CardFacts, depth: int) -> None:
    child = _object(node, path)
    if kind == schema.BEHAVIORS:
        known = schema.BEHAVIOR_TYPES.get(str(child.get("type")))
        if known is None:
            raise _unreadable(f"unknown behavior type {child.get('type')!r}", path)
        _attributes(child, known, path, facts, depth)
        return
    tag = str(child.get("tag", "column" if kind == schema.COLUMNS else ""))
    inner = depth + (tag in schema.CONTAINERS)
    _attributes(child, _shape_of(kind, tag, path), f"{path}(tag: {tag})", facts, inner)
    facts.elements += 1
    if kind == schema.ELEMENTS:
        _component(child, tag, path, facts, depth)
    if tag in ("markdown", "lark_md"):
        _markdown(child, path, facts)
    _element_id(child, facts)


def _shape_of(kind: str, tag: str, path: str) -> dict[str, Shape]:
    if tag in schema.RETIRED_TAGS:
        raise CardInvalid(
            200861,
            "cards of schema V2 no longer support this capability",
            f"unsupported tag {tag}",
            path,
        )
    known = {
        schema.ELEMENTS: schema.COMPONENTS,
        schema.TEXT: schema.TEXTS,
        schema.ICON: schema.ICONS,
        schema.COLUMNS: {"column": schema.COLUMN},
    }[kind].get(tag)
    if known is None:
        raise _unreadable(f"unknown tag {tag!r}", path)
    return known


def _attributes(
    node: dict[str, Any], shape: dict[str, Shape], path: str, facts: CardFacts, depth: int
) -> None:
    for name, value in node.items():
        if name not in shape:
            raise _unreadable(f"unknown property, property: {name}", path)
        _walk(value, shape[name], f"{path} -> {name}", facts, depth)


def _component(node: dict[str, Any], tag: str, path: str, facts: CardFacts, depth: int) -> None:
    if tag in schema.CONTAINERS and depth >= MAX_DEPTH:
        raise _unreadable("containers are nested too deep", path)
    if tag == "table":
        facts.tables += 1
        if depth > 0:
            raise _unreadable("a table stands only at the root of the card", path)
    if tag == "img":
        facts.image_keys.append(str(node.get("img_key", "")))
    if tag == "person":
        facts.at_ids.append(str(node.get("user_id", "")))
    if tag == "button":
        _button(node, path)
    if tag == "form" and (fault := forms.fault(node, depth, facts.names)):
        raise _unreadable(fault, path)
    if tag == "column_set" and (fault := _columns_fault(node)):
        raise _unreadable(fault, path)


def _button(node: dict[str, Any], path: str) -> None:
    for behavior in node.get("behaviors", []):
        value = behavior.get("value")
        if behavior.get("type") == "callback" and not isinstance(value, dict | str):
            raise _unreadable("a callback value is an object or a string", path)


def _markdown(node: dict[str, Any], path: str, facts: CardFacts) -> None:
    content = node.get("content", "")
    if not isinstance(content, str):
        raise _unreadable("content is not a string", path)
    tables = table_count(content)
    if tables > MAX_TABLES_IN_MARKDOWN:
        raise CardInvalid(11310, "card table number over limit", "table")
    facts.tables += tables
    facts.at_ids += at_ids(content)
    facts.image_keys += _IMAGE.findall(_CODE.sub("", content)) if "![" in content else []


def _element_id(node: dict[str, Any], facts: CardFacts) -> None:
    element_id = node.get("element_id")
    if element_id is None:
        return
    if not isinstance(element_id, str) or not _ELEMENT_ID.match(element_id):
        raise _unreadable(f"element_id is invalid: {element_id!r}")
    if element_id in facts.element_ids:
        raise CardInvalid(300301, "Duplicate element_id in card component.", element_id)
    facts.element_ids.add(element_id)


def _object(node: Any, path: str) -> dict[str, Any]:
    if not isinstance(node, dict):
        raise _unreadable("expected an object", path)
    return node


def _list(node: Any, path: str) -> list[Any]:
    if not isinstance(node, list):
        raise _unreadable("expected a list", path)
    return node


def _unreadable(what: str, path: str = "") -> CardInvalid:
    reason = "parse card json err, please check whether the card json is correct"
    return CardInvalid(200621, reason, what, path)


_FLEX_MODES = frozenset({"none", "stretch", "flow", "bisect", "trisect"})
_DIRECTIONS = frozenset({"horizontal", "vertical"})
_ALIGNS = frozenset({"top", "center", "bottom"})
_PIXELS = re.compile(r"([0-9]{1,3})px")
_WIDTHS = range(16, 601)
_WEIGHTS = range(1, 6)


def _columns_fault(column_set: dict[str, Any]) -> str:
    """Why the columns are refused, or "" (open.feishu.cn, card-json-v2-components, column set)."""
    if column_set.get("flex_mode", "none") not in _FLEX_MODES:
        return f"flex_mode {column_set['flex_mode']!r} is not known"
    return next(
        (found for one in column_set.get("columns", []) if (found := _column_fault(one))), ""
    )


def _column_fault(column: dict[str, Any]) -> str:
    if any(one["tag"] in ("form", "table") for one in tagged(column.get("elements"))):
        return "a column holds no form and no table"
    if column.get("direction", "vertical") not in _DIRECTIONS:
        return f"direction {column['direction']!r} is not known"
    if column.get("vertical_align", "top") not in _ALIGNS:
        return f"vertical_align {column['vertical_align']!r} is not known"
    return _column_width(column)


def _column_width(column: dict[str, Any]) -> str:
    width = column.get("width", "auto")
    pixels = _PIXELS.fullmatch(str(width))
    if width not in ("auto", "weighted") and not (pixels and int(pixels[1]) in _WIDTHS):
        return f"a column cannot be {width!r} wide"
    if "weight" in column and (width != "weighted" or column["weight"] not in _WEIGHTS):
        return "weight is 1 to 5, of a column whose width is weighted"
    return ""
