"""Whether everybody in a group can open a document: asked afresh, and closed where nobody says."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from bot.documents.audience import FRESH_S, AskedGroup, GroupAudience
from bot.documents.document import (
    DocumentLink,
    ReadDocument,
    Section,
    UnreadDocument,
)
from bot.documents.reading import NOT_THERE, TurnDocuments
from bot.feishu.documents import FoundDocument, WikiNode
from bot.feishu.errors import FeishuError, Unreachable
from bot.feishu.user_scopes import AccessNeeds
from memory.scope import FeishuPerson

pytestmark = pytest.mark.anyio

ANN, BEN = FeishuPerson("t", "ou_ann"), FeishuPerson("t", "ou_ben")
CLOSED, OTHER = "c" * 27, "d" * 27
LINK = DocumentLink("docx", "a" * 27, "acme.feishu.cn")


@dataclass
class Feishu:
    """What Feishu says of one document; an exception is raised."""

    link: Any = "tenant_readable"
    view: Any = True
    people: Any = (ANN, BEN)
    shared: Any = ()
    others: Any = ()
    token: str | None = "u-ann"
    wiki: Any = "docx"
    advanced: Any = False
    protected: Any = False
    blocks: Any = ()
    shortcut: bool = False
    now: float = 0.0
    asked: list[str] = field(default_factory=list)

    async def may_view(self, *asked: str) -> bool:
        self.asked.append(asked[-1])
        return asked[0] != CLOSED and bool(_said(self.view))

    async def link_sharing(self, *_: str) -> str:
        return str(_said(self.link))

    async def collaborators(self, *_: str) -> list[tuple[str, str]]:
        return [("openid", "ou_ann"), *self.shared]

    async def wiki_node(self, token: str, as_user: str) -> WikiNode:
        return WikiNode("b" * 27, str(_said(self.wiki)), "Plan", not self.shortcut)

    async def docx_blocks(self, token: str, as_user: str) -> AsyncIterator[dict[str, Any]]:
        of_each = _said(self.blocks)
        for block in of_each.get(token, ()) if isinstance(of_each, dict) else of_each:
            yield {"block_type": block} if isinstance(block, int) else block

    async def has_protection(self, token: str, as_user: str) -> bool:
        return bool(_said(self.protected))

    async def has_advanced_permissions(self, token: str, as_user: str) -> bool:
        return bool(_said(self.advanced))

    async def members_of(self, group: str) -> list[FeishuPerson]:
        assert group == "oc_2"
        return list(_said(self.others))

    async def members(self) -> list[FeishuPerson]:
        return list(_said(self.people))

    async def access_token(self) -> str | None:
        return self.token

    def audience(self) -> GroupAudience:
        group = AskedGroup("oc_1", "t", ANN, self.members, self.members_of)
        calls: Any = self
        return GroupAudience(group, calls, self.access_token, clock=lambda: self.now)


def _said(value: Any) -> Any:
    if isinstance(value, Exception):
        raise value
    return value


def refused(code: int) -> FeishuError:
    return FeishuError(code, "no", http_status=403)


async def test_it_is_asked_as_who_asks_and_holds_for_a_minute() -> None:
    feishu = Feishu()
    audience = feishu.audience()
    assert await audience.is_open(LINK)
    feishu.now, feishu.link = FRESH_S - 1, "closed"
    assert await audience.is_open(LINK)
    assert await audience.all_open()
    feishu.now = FRESH_S
    assert not await audience.all_open()
    assert feishu.asked == ["u-ann", "u-ann"]


@pytest.mark.parametrize(
    ("seen", "others"),
    [
        ("open", (ANN, BEN, FeishuPerson("t", "ou_cem"))),
        ("open", (BEN,)),
        ("closed", (ANN,)),
        ("closed", (FeishuPerson("guests", "ou_ben"),)),
        ("closed", FeishuError(232011, "the bot is not in it", http_status=400)),
        ("unknown", Unreachable("away")),
    ],
)
async def test_another_group_that_it_is_shared_with_stands_for_its_members(
    seen: str, others: Any
) -> None:
    feishu = Feishu(link="closed", shared=[("openchat", "oc_2")], others=others)
    assert await feishu.audience().look(LINK) == seen


@pytest.mark.parametrize(
    ("kind", "seen", "said"),
    [
        ("bitable", "open", {}),
        ("bitable", "closed", {"advanced": True}),
        ("bitable", "unknown", {"advanced": Unreachable("away")}),
        ("bitable", "unknown", {"advanced": refused(91403)}),
        ("wiki", "open", {"advanced": True}),
        ("wiki", "closed", {"advanced": True, "wiki": "bitable"}),
        ("wiki", "open", {"wiki": "bitable"}),
        ("wiki", "unknown", {"wiki": Unreachable("away")}),
        ("docx", "open", {"advanced": True}),
    ],
)
async def test_a_base_that_shows_each_person_something_else_is_closed_to_a_group(
    kind: Any, seen: str, said: dict[str, Any]
) -> None:
    link = DocumentLink(kind, "a" * 27, "acme.feishu.cn")
    assert await Feishu(**said).audience().look(link) == seen


def part(kind: int, token: str) -> dict[str, Any]:
    """A block that shows another document."""
    name, field_of = {
        18: ("bitable", "token"),
        30: ("sheet", "token"),
        50: ("reference_synced", "source_document_id"),
    }[kind]
    return {"block_type": kind, name: {field_of: token}}


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        ("open", {"blocks": [1, 2, 11, 15, 17, 31, 32, 43, 49]}),
        ("open", {"blocks": [part(50, LINK.token)]}),
        ("open", {"blocks": {LINK.token: [part(50, OTHER)]}}),
        ("open", {"blocks": {LINK.token: [part(50, OTHER)], OTHER: [part(50, LINK.token)]}}),
        ("closed", {"blocks": [part(50, CLOSED)]}),
        ("closed", {"blocks": {LINK.token: [part(50, OTHER)], OTHER: [part(50, CLOSED)]}}),
        ("closed", {"blocks": {LINK.token: [part(50, "")]}}),
        ("closed", {"blocks": [{"block_type": 50}]}),
        ("open", {"blocks": [part(18, OTHER + "_tbl1")]}),
        ("closed", {"blocks": [part(18, OTHER + "_tbl1")], "advanced": True}),
        ("unknown", {"blocks": [part(18, OTHER + "_tbl1")], "advanced": Unreachable("away")}),
        ("closed", {"blocks": [part(18, CLOSED + "_tbl1")]}),
        ("open", {"blocks": [part(30, OTHER + "_a1")]}),
        ("closed", {"blocks": [part(30, OTHER + "_a1")], "protected": True}),
        ("closed", {"blocks": [2, 35]}),
        ("closed", {"blocks": [2, 999]}),
        ("closed", {"blocks": [{}]}),
        ("closed", {"blocks": [part(50, f"{number:027}") for number in range(20)]}),
        ("closed", {"blocks": [2] * 20_001}),
        ("unknown", {"blocks": Unreachable("away")}),
        ("unknown", {"blocks": refused(1770032)}),
    ],
)
async def test_parts_of_other_documents_are_open_where_these_are(
    seen: str, said: dict[str, Any]
) -> None:
    assert await Feishu(**said).audience().look(LINK) == seen


@pytest.mark.parametrize(
    ("seen", "protected"),
    [("open", False), ("closed", True), ("unknown", Unreachable("away"))],
)
async def test_a_sheet_with_protected_cells_is_closed_to_a_group(seen: str, protected: Any) -> None:
    sheet = DocumentLink("sheet", "a" * 27, "acme.feishu.cn")
    assert await Feishu(protected=protected).audience().look(sheet) == seen


async def test_a_shortcut_of_the_wiki_is_open_where_its_document_is() -> None:
    page = DocumentLink("wiki", "a" * 27, "acme.feishu.cn")
    feishu = Feishu(shortcut=True)
    assert await feishu.audience().look(page) == "open"
    assert len(feishu.asked) == 2, "the page and the document"


async def test_what_was_closed_is_asked_each_time() -> None:
    feishu = Feishu(link="closed")
    audience = feishu.audience()
    assert not await audience.is_open(LINK)
    feishu.link = "tenant_readable"
    assert await audience.is_open(LINK)


@pytest.mark.parametrize(
    ("seen", "changed"),
    [
        ("open", {}),
        ("open", {"link": "closed", "people": (ANN,)}),
        ("closed", {"link": "closed"}),
        ("closed", {"view": False}),
        ("closed", {"people": ()}),
        ("closed", {"link": refused(1063004)}),
        ("closed", {"view": refused(1063005)}),
        ("unknown", {"token": None}),
        ("unknown", {"view": Unreachable("away")}),
        ("unknown", {"link": Unreachable("away")}),
        ("unknown", {"people": Unreachable("away")}),
        ("unknown", {"view": refused(99991679)}),
    ],
)
async def test_what_is_seen_of_it(seen: str, changed: dict[str, Any]) -> None:
    feishu = Feishu(**changed)
    assert await feishu.audience().look(LINK) == seen
    assert await feishu.audience().is_open(LINK) is (seen == "open")


@dataclass
class Own:
    """What the person can open."""

    document: ReadDocument | UnreadDocument
    found: tuple[FoundDocument, ...] = ()

    async def read(self, url: str) -> ReadDocument | UnreadDocument:
        return self.document

    async def search(self, query: str) -> list[FoundDocument]:
        return list(self.found)


PLAN = ReadDocument(LINK.url, LINK.token, "docx", "Plan", (Section("Launch", 1, "On Friday"),))


def turn(own: Own, feishu: Feishu | None, noted: list[str]) -> TurnDocuments:
    async def note(link: DocumentLink, text: str, open_ago_s: float | None) -> bool:
        assert (open_ago_s is None) == (feishu is None), "when everybody could open it is known"
        noted.append(text)
        return "Friday" not in text or not isinstance(own.document, UnreadDocument)

    person: Any = own
    return TurnDocuments(person, note, feishu.audience() if feishu else None)


async def test_in_a_group_what_is_closed_is_not_there_and_is_not_noted() -> None:
    noted: list[str] = []
    documents = turn(Own(PLAN), Feishu(link="closed"), noted)
    assert await documents.read(LINK.url) == NOT_THERE
    assert (documents.needs, noted) == (AccessNeeds(withheld=True), [])
    opened = turn(Own(PLAN), Feishu(), noted)
    assert await opened.read(LINK.url) == PLAN
    assert (opened.needs, noted) == (AccessNeeds(), [])
    assert await opened.give(PLAN, "On Friday")
    assert noted == ["On Friday"]


@pytest.mark.parametrize("reason", ["forbidden", "deleted", "empty", "size", "kind"])
async def test_what_is_with_a_document_is_for_who_can_open_it(reason: Any) -> None:
    own = Own(UnreadDocument(reason))
    assert await turn(own, Feishu(), []).read(LINK.url) == NOT_THERE
    assert await turn(own, None, []).read(LINK.url) == UnreadDocument(reason)


async def test_that_somebody_is_not_connected_is_known_after_the_turn() -> None:
    documents = turn(Own(UnreadDocument("not_connected")), Feishu(), [])
    assert await documents.read(LINK.url) == UnreadDocument("not_connected")
    assert documents.needs == AccessNeeds(unconnected=True)


async def test_of_what_is_found_a_group_is_told_what_everybody_can_open() -> None:
    own = Own(PLAN, (FoundDocument(LINK.url, "Plan", "on Friday", "Ann"),))
    closed = turn(own, Feishu(link="closed"), [])
    assert await closed.search("plan") == []
    assert closed.needs.withheld
    noted: list[str] = []
    opened = turn(own, Feishu(), noted)
    assert [one.title for one in await opened.search("plan")] == ["Plan"]  # type: ignore[union-attr]
    assert (opened.needs.withheld, noted) == (False, ["Plan\non Friday"])
    alone = turn(own, None, noted)
    assert len(await alone.search("plan")) == 1  # type: ignore[arg-type]
    assert await alone.may_still_be_told()
