"""What Feishu's pages say of card JSON 2.0, as data, and what a card does that they do not say.

Independent of the stand-in platform, which has a schema of its own. Source: `card_json_2.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[1] / "data" / "card_json_2.json"
DOCUMENTED: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
COMPONENTS: dict[str, dict[str, Any]] = DOCUMENTED["components"]
_LIMITS, _NESTING = DOCUMENTED["limits"], DOCUMENTED["nesting"]
_ID = re.compile(_LIMITS["element_id"])


def faults(card: dict[str, Any]) -> set[str]:
    """What the pages do not know or allow."""
    ids = [node["element_id"] for node in _objects(card) if "element_id" in node]
    tags = [node["tag"] for node in _objects(card) if "tag" in node]
    found = set(_structure(card))
    for element in card["body"]["elements"]:
        found |= set(_component(element, ()))
    if len(json.dumps(card, ensure_ascii=False).encode()) > _LIMITS["bytes"]:
        found.add("the card is too large")
    if len(tags) > _LIMITS["elements"]:
        found.add("the card has too many elements")
    found |= {f"element_id {one!r}" for one in ids if not _ID.fullmatch(one) or ids.count(one) > 1}
    return found


def _structure(card: dict[str, Any]) -> Iterator[str]:
    yield from _strange("card", card, DOCUMENTED["card"]["properties"])
    for way, known in DOCUMENTED["card"]["parts"].items():
        part: Any = card
        for name in way.split("."):
            part = part.get(name, {})
        yield from _strange(f"card.{way}", part, known)


def _component(node: dict[str, Any], above: tuple[str, ...]) -> Iterator[str]:
    tag = node.get("tag", "")
    known = COMPONENTS.get(tag)
    if known is None:
        yield f"unknown tag {tag!r}"
        return
    yield from _strange(tag, node, known["properties"])
    yield from _place(tag, above)
    for name, properties in known.get("parts", {}).items():
        yield from _strange(f"{tag}.{name}", node.get(name, {}), properties)
    for behavior in node.get("behaviors", []):
        kind = behavior.get("type")
        yield from _strange(f"behavior {kind}", behavior, DOCUMENTED["behaviors"].get(kind, []))
    for child in [*node.get("elements", []), *node.get("columns", [])]:
        yield from _component(child, (*above, tag))
    yield from _texts_and_icons(node)


def _place(tag: str, above: tuple[str, ...]) -> Iterator[str]:
    if above and tag in _NESTING["only_at_the_root"]:
        yield f"{tag} stands below {above[-1]}"
    if any(tag in _NESTING["not_within"].get(one, ()) for one in above):
        yield f"{tag} stands within {above}"
    if sum(one in _NESTING["containers"] for one in (*above, tag)) > _LIMITS["depth"]:
        yield "containers are nested too deep"


def _texts_and_icons(node: dict[str, Any]) -> Iterator[str]:
    """Of the component itself, not of what it contains."""
    inner = {k: v for k, v in node.items() if k not in ("elements", "columns", "behaviors")}
    for one in _objects(inner):
        tag = one.get("tag", "")
        if one is inner or not tag:
            continue
        if tag in DOCUMENTED["texts"]["tags"]:
            yield from _strange(tag, one, DOCUMENTED["texts"]["properties"])
        else:
            yield from _strange(tag, one, DOCUMENTED["icons"].get(tag, []))


def _strange(place: str, node: dict[str, Any], known: list[str]) -> Iterator[str]:
    yield from (f"{place}: {name}" for name in node if name not in known)


def _objects(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    for child in node if isinstance(node, list) else ():
        yield from _objects(child)
