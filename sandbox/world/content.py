"""What an app may put into a message. Pure checks, ApiError when refused.

Source: open.feishu.cn, im-v1/message/create_json, and the limits of im-v1/message/create:
150 KB for a text request, 30 KB for a card request. Posts of apps are not played.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from sandbox.cards.card_check import (
    CardInvalid,
    check_card,
    check_version_1,
    parse_card,
)
from sandbox.errors import ApiError, card_refused, invalid, not_played
from sandbox.world.entities import SandboxMention
from sandbox.world.received import at_people

MAX_TEXT_BYTES = 150 * 1024
MAX_RICH_BYTES = 30 * 1024

_T = TypeVar("_T")

_TEXT_AT = re.compile(r'<at\s+user_id\s*=\s*"?([^">]*)"?\s*>(.*?)</at>', re.S | re.I)
_NOT_PLAYED = ("post", "audio", "media", "sticker", "share_chat", "share_user", "system")


@dataclass(frozen=True)
class CheckedContent:
    """Checked content: as it is stored, with its mentions, and what it refers to: a card entity, or
    the ids of forwarded messages."""

    content: str
    mentions: tuple[SandboxMention, ...] = ()
    card_id: str = ""
    forwarded: tuple[str, ...] = ()


@dataclass(frozen=True)
class Known:
    """What the tenant knows: people that may be @-ed here, uploaded images, and names of files."""

    person: Callable[[str], bool]
    image: Callable[[str], bool]
    file: Callable[[str], str | None] = lambda key: None


def check_outgoing(
    msg_type: object, content: object, request_bytes: int, known: Known
) -> CheckedContent:
    """The content ready to be stored. Raises ApiError 230001, 230025 or 230099."""
    if not isinstance(msg_type, str) or not isinstance(content, str):
        raise invalid("msg_type and content must be strings")
    if request_bytes > (MAX_TEXT_BYTES if msg_type == "text" else MAX_RICH_BYTES):
        raise ApiError(230025)
    if msg_type == "interactive":
        return _interactive(content, known)
    try:
        value = json.loads(content)
    except ValueError:
        raise invalid("content is not a string in json format") from None
    if not isinstance(value, dict):
        raise invalid("content is not a json object")
    if msg_type == "text":
        return _text(value, known)
    if msg_type == "image":
        return _image(value, known)
    if msg_type == "file":
        return _file(value, known)
    if msg_type in _NOT_PLAYED:
        raise not_played(f"msg_type={msg_type}")
    raise invalid(f"invalid msg_type {msg_type!r}")


def _text(value: dict[str, Any], known: Known) -> CheckedContent:
    text = value.get("text")
    if not isinstance(text, str) or not text:
        raise invalid("text is empty")
    mentions: list[SandboxMention] = []

    def to_key(found: re.Match[str]) -> str:
        if found[1] == "all":
            return "@_all"
        if not known.person(found[1]):
            raise invalid("invalid user_id in at tag")
        mentions.append(SandboxMention(f"@_user_{len(mentions) + 1}", found[1]))
        return mentions[-1].key

    stored = _TEXT_AT.sub(to_key, text)
    return CheckedContent(json.dumps({"text": stored}, ensure_ascii=False), tuple(mentions))


def _image(value: dict[str, Any], known: Known) -> CheckedContent:
    key = value.get("image_key")
    if not isinstance(key, str) or not known.image(key):
        raise invalid("image_key is invalid")
    return CheckedContent(json.dumps({"image_key": key}))


def _file(value: dict[str, Any], known: Known) -> CheckedContent:
    """History shows the name under which the file was uploaded."""
    key = value.get("file_key")
    name = known.file(key) if isinstance(key, str) else None
    if name is None:
        raise invalid("file_key is invalid")
    return CheckedContent(json.dumps({"file_key": key, "file_name": name}, ensure_ascii=False))


def _interactive(content: str, known: Known) -> CheckedContent:
    card = card_or_refusal(lambda: parse_card(content))
    if card.get("type") == "card":
        return CheckedContent(content, card_id=_card_id(card.get("data")))
    if card.get("type") == "template":
        card = _of_template(card.get("data"))
        content = json.dumps(card, ensure_ascii=False)
    check = check_card if card.get("schema") == "2.0" else check_version_1
    card_or_refusal(lambda: check(card, knows_person=known.person, knows_image=known.image))
    return CheckedContent(content)


def _of_template(template: Any) -> dict[str, Any]:
    """A card of version 1 that shows a template's id and variables: the card builder, where it was
    made, is not played."""
    given = template if isinstance(template, dict) else {}
    template_id, variables = given.get("template_id"), given.get("template_variable", {})
    if not isinstance(template_id, str) or not template_id or not isinstance(variables, dict):
        raise card_refused(200621, "a template has a template_id, and an object of variables")
    lines = [f"[{template_id}]"]
    for name, value in variables.items():
        plain = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"{name}: {plain}")
    return {"elements": [{"tag": "div", "text": _plain(line)} for line in lines]}


def _plain(text: str) -> dict[str, str]:
    return {"tag": "plain_text", "content": text}


def card_of_others(content: str, is_member: Callable[[str], bool]) -> CheckedContent:
    """A card of any version that another app posts, with the members that its at-tags mention.

    Raises CardInvalid when it is no JSON object.
    """
    people = [one for one in at_people(parse_card(content)) if is_member(one)]
    mentions = tuple(SandboxMention(f"@_user_{n}", one) for n, one in enumerate(people, start=1))
    return CheckedContent(content, mentions)


def _card_id(reference: Any) -> str:
    card_id = reference.get("card_id") if isinstance(reference, dict) else None
    if not isinstance(card_id, str) or not card_id:
        raise card_refused(200740, "The card entity does not exist")
    return card_id


def card_or_refusal(check: Callable[[], _T]) -> _T:
    """`check()`, its CardInvalid turned into 230099."""
    try:
        return check()
    except CardInvalid as exc:
        code = 11310 if exc.code == 300305 else exc.code
        raise card_refused(code, exc.reason, exc.value, exc.path) from None
