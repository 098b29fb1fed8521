"""Cards as the platform hands them to an app that did not make them. Pure.

With `card_msg_content_type=user_card_content` a card comes as it was sent; a 2.0 card of another
app comes as `user_dsl` beside a placeholder, in events too. Otherwise a card is rows of simplified
elements, a 2.0 card the placeholder alone. At-tags bear ids of the card's own app and the key of
the mention.
Sources: open.feishu.cn, im-v1/message/get and events/message_content; `user_dsl`, `mention_key` and
the placeholder are reported by bots in production.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from sandbox.world.entities import SandboxMention

PLACEHOLDER = "请升级至最新版本客户端，以查看内容"

Card = dict[str, Any]

_AT = re.compile(r"<at\s+(?:user_|open_)?id\s*=\s*[\"']?([\w.-]+)[\"']?[^>]*>(?:[^<]*</at>)?")
_RUN = re.compile(rf"(?P<at>{_AT.pattern})|\[(?P<label>[^\]\n]+)\]\((?P<href>[^)\s]+)\)")


def is_version_2(card: Card) -> bool:
    return card.get("schema") == "2.0"


def at_people(card: Card) -> list[str]:
    """The ids in the card's at-tags, each once, in order."""
    return list(dict.fromkeys(one for text in _texts(card) for one in _AT.findall(text)))


def foreign(
    card: Card, mentions: Sequence[SandboxMention], foreign_id: Callable[[str], str]
) -> Card:
    """The card with at-tags of another app: a key where `mentions` has one, an id of theirs."""
    keys = {one.open_id: one.key for one in mentions}

    def tag(match: re.Match[str]) -> str:
        if match[1] == "all":
            return match[0]
        key = f" mention_key={keys[match[1]]}" if match[1] in keys else ""
        return f"<at id={foreign_id(match[1])}{key}></at>"

    return dict(_mapped(card, lambda text: _AT.sub(tag, text)))


def wrapped(card: Card) -> Card:
    """A 2.0 card beside what old clients show."""
    return {**_placeholder(), "user_dsl": json.dumps(card, ensure_ascii=False)}


def simplified(card: Card, mentions: Sequence[SandboxMention]) -> Card:
    """The form without `card_msg_content_type`."""
    if is_version_2(card):
        return _placeholder()
    keys = {one.open_id: one.key for one in mentions}
    by_locale = card.get("i18n_elements") or {}
    elements = next(iter(by_locale.values()), None) or card.get("elements", [])
    title = card.get("header", {}).get("title", {}).get("content")
    return {"title": title, "elements": [row for one in elements for row in _rows(one, keys)]}


def _placeholder() -> Card:
    picture = {"tag": "img", "image_key": "img_v3_upgrade_notice"}
    return {"title": None, "elements": [[picture], [{"tag": "text", "text": PLACEHOLDER}]]}


def _rows(element: Card, keys: dict[str, str]) -> Iterator[list[Card]]:
    match element.get("tag"):
        case "div":
            extra = [_small(element["extra"])] if "extra" in element else []
            texts = [element.get("text"), *(one.get("text") for one in element.get("fields", []))]
            rows = [_runs(str(text.get("content", "")), keys) for text in texts if text]
            yield from [*rows[:-1], [*(rows[-1] if rows else []), *extra]]
        case "markdown":
            yield _runs(str(element.get("content", "")), keys)
        case "action":
            yield [_small(one) for one in element.get("actions", [])]
        case "note":
            yield [{"tag": "note", "elements": [_small(one) for one in element["elements"]]}]
        case "column_set":
            columns = element.get("columns", [])
            inner = [one for column in columns for one in column.get("elements", [])]
            yield from (row for one in inner for row in _rows(one, keys))
        case "img":
            title = element.get("title", {}).get("content")
            yield [*([{"tag": "text", "text": title}] if title else []), _small(element)]
        case _:
            yield [_small(element)]


def _small(element: Card) -> Card:
    """An element as the simplified form has it: plain strings for text objects."""
    tag = element.get("tag")
    if tag in ("plain_text", "lark_md", "text"):
        return {"tag": "text", "text": element.get("content", "")}
    if tag in ("img", "custom_icon"):
        return {"tag": "img", "image_key": element.get("img_key", "")}
    shown: Card = {"tag": tag}
    if "options" in element:
        shown["options"] = [one.get("text", {}).get("content", "") for one in element["options"]]
    for name in ("text", "placeholder"):
        if name in element:
            shown[name] = element[name].get("content", "")
    return shown | {name: element[name] for name in ("type", "initial_date") if name in element}


def _runs(markdown: str, keys: dict[str, str]) -> list[Card]:
    runs: list[Card] = []
    end = 0
    for match in _RUN.finditer(markdown):
        runs.append({"tag": "text", "text": markdown[end : match.start()]})
        if match["href"]:
            runs.append({"tag": "a", "href": match["href"], "text": match["label"]})
        else:
            person = match[2]
            user_id = "@_all" if person == "all" else keys.get(person, person)
            runs.append({"tag": "at", "user_id": user_id, "user_name": ""})
        end = match.end()
    return [run for run in [*runs, {"tag": "text", "text": markdown[end:]}] if run.get("text", "x")]


def _texts(node: Any) -> Iterator[str]:
    if isinstance(node, str):
        yield node
    for child in (
        node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    ):
        yield from _texts(child)


def _mapped(node: Any, change: Callable[[str], str]) -> Any:
    if isinstance(node, dict):
        return {name: _mapped(child, change) for name, child in node.items()}
    if isinstance(node, list):
        return [_mapped(child, change) for child in node]
    return change(node) if isinstance(node, str) else node
