"""Comments in documents: threads of replies, and what the app hears of them.

Sources: open.feishu.cn, drive-v1 file-comment and file-comment-reply, and the event
drive.notice.comment_add_v1. A person who mentions the bot in a document that it cannot open lets it
view the document, as Feishu's box for comments offers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sandbox.errors import ApiError
from sandbox.world import events
from sandbox.world.entities import SandboxDocument
from sandbox.world.library import DOCX, SHEET, Library
from sandbox.world.push import Pusher
from sandbox.world.state import World

COMMENTED = frozenset({DOCX, SHEET, "doc", "file"})
MOST_ELEMENTS = 100
LONGEST_TEXT = 10_000
_FIRST_ID = 7_000_000_000_000_000_000

Comment = dict[str, Any]
Element = dict[str, Any]


class Comments:
    """What people and the app write. Call under the world's lock."""

    def __init__(self, world: World, library: Library, pusher: Pusher) -> None:
        self._world = world
        self._library = library
        self._pusher = pusher

    def add(
        self,
        document: SandboxDocument,
        author: str,
        elements: Sequence[Element],
        *,
        quote: str = "",
        solved: bool = False,
    ) -> Comment:
        """Begins a thread on the passage `quote`, or on all of the document."""
        said = self._reply(author, elements)
        comment = {
            "comment_id": said["reply_id"],
            "user_id": author,
            "create_time": said["create_time"],
            "is_solved": solved,
            "quote": quote,
            "is_whole": not quote,
            "replies": [said],
        }
        kept = self._library.put(document, comments=(*document.comments, comment))
        self._tell(kept, comment, said, "add_comment")
        return comment

    def reply(
        self, document: SandboxDocument, comment: Comment, author: str, elements: Sequence[Element]
    ) -> dict[str, Any]:
        """Says something more in a thread."""
        said = self._reply(author, elements)
        changed = {**comment, "replies": [*comment["replies"], said]}
        self._library.put(document, comments=_with(document, changed))
        self._tell(document, changed, said, "add_reply")
        return said

    def solve(self, document: SandboxDocument, comment: Comment, *, solved: bool) -> None:
        """Nobody can reply to what is solved."""
        changed = {**comment, "is_solved": solved}
        self._library.put(document, comments=_with(document, changed))

    def remove(self, document: SandboxDocument, comment: Comment, reply_id: str) -> None:
        """Deletes a reply; a thread without replies is gone."""
        left = [one for one in comment["replies"] if one["reply_id"] != reply_id]
        others = tuple(
            one for one in document.comments if one["comment_id"] != comment["comment_id"]
        )
        changed = _with(document, {**comment, "replies": left}) if left else others
        self._library.put(document, comments=changed)

    def checked(self, elements: object) -> list[Element]:
        """The elements of a reply as Feishu takes them. Raises ApiError."""
        if not isinstance(elements, list) or not 1 <= len(elements) <= MOST_ELEMENTS:
            raise ApiError(1069302)
        return [self._checked(one) for one in elements]

    def _checked(self, element: object) -> Element:
        kind = element.get("type") if isinstance(element, dict) else None
        names = {"text_run": "text", "docs_link": "url", "person": "user_id"}
        if not isinstance(element, dict) or kind not in names:
            raise ApiError(1069302)
        value = element.get(kind)
        text = value.get(names[kind]) if isinstance(value, dict) else None
        if not isinstance(text, str) or not text or len(text) > LONGEST_TEXT:
            raise ApiError(1069302)
        if kind == "person" and text not in self._world.people:
            raise ApiError(1069307, status=404)
        return {"type": kind, kind: {names[kind]: text}}

    def _reply(self, author: str, elements: Sequence[Element]) -> dict[str, Any]:
        every = self._world.documents.values()
        said = sum(len(one["replies"]) for document in every for one in document.comments)
        return {
            "reply_id": str(_FIRST_ID + self._world.now_ms() * 1000 + said),
            "user_id": author,
            "create_time": self._world.now_ms() // 1000,
            "elements": list(elements),
        }

    def _tell(
        self, document: SandboxDocument, comment: Comment, said: dict[str, Any], kind: str
    ) -> None:
        """Pushes what the app is notified of: a mention, and what follows its own words."""
        bot, author = self._world.bot.open_id, said["user_id"]
        people = [one["person"]["user_id"] for one in said["elements"] if "person" in one]
        mentioned = bot in people
        takes_part = any(one["user_id"] == bot for one in comment["replies"])
        if author == bot or not (mentioned or takes_part):
            return
        if mentioned and not self._library.may(document, None):
            member = {"member_type": "appid", "member_id": self._world.config.app_id}
            current = self._world.documents[document.token]
            self._library.put(current, members=(*current.members, {**member, "perm": "view"}))
        person = self._world.people[author]
        told = events.commented(
            self._world,
            person,
            file=(document.token, document.kind),
            comment=(comment["comment_id"], said["reply_id"]),
            notice_type=kind,
            is_mentioned=bool(people),
        )
        self._pusher.push(told, message_id=said["reply_id"])


def elements_of(text: str, people: Sequence[tuple[str, str]]) -> list[Element]:
    """The elements of what somebody types: `@Name` of `people` (name, open id) mentions them."""
    found = sorted((text.find(f"@{name}"), name, open_id) for name, open_id in people)
    first = next(((at, name, open_id) for at, name, open_id in found if at >= 0), None)
    if first is None:
        return [{"type": "text_run", "text_run": {"text": text}}] if text else []
    at, name, open_id = first
    before, after = text[:at], text[at + len(name) + 1 :]
    said = [{"type": "text_run", "text_run": {"text": before}}] if before else []
    person = {"type": "person", "person": {"user_id": open_id}}
    return [*said, person, *elements_of(after, people)]


def comment_shape(comment: Comment) -> dict[str, Any]:
    """A comment as the platform lists it, with all its replies."""
    names = ("comment_id", "user_id", "create_time", "is_solved", "is_whole", "quote")
    return {
        **{name: comment[name] for name in names},
        "update_time": comment["replies"][-1]["create_time"],
        "has_more": False,
        "reply_list": {"replies": [reply_shape(one) for one in comment["replies"]]},
    }


def reply_shape(reply: dict[str, Any]) -> dict[str, Any]:
    """A reply as the platform lists it."""
    return {
        "content": {"elements": reply["elements"]},
        "reply_id": reply["reply_id"],
        "user_id": reply["user_id"],
        "create_time": reply["create_time"],
        "update_time": reply["create_time"],
    }


def _with(document: SandboxDocument, changed: Comment) -> tuple[Comment, ...]:
    return tuple(
        changed if one["comment_id"] == changed["comment_id"] else one for one in document.comments
    )
