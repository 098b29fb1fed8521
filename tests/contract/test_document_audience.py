"""A group is told of a document only when everybody there can open it, whatever happens before.

A random walk shares and unshares, lets people join and leave, and asks. DOCUMENT_AUDIENCE=10000
walks further. Who can really open a document, the stand-in platform knows.
"""

from __future__ import annotations

import math
import random
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import replace
from typing import Any

import pytest

from bot.documents.audience import GroupListener, Sharing, everybody_can_open, sharing_of
from bot.feishu.client import FeishuClient
from sandbox.config import SandboxConfig
from sandbox.world.entities import Chat, SandboxDocument, SandboxPerson
from sandbox.world.library import LINKS, MANAGERS, Library
from sandbox.world.state import World
from tests.contract.test_reading_documents import Town
from tests.support import depth
from tests.support.rows import every_row
from tests.support.tenant import APP_ID, APP_SECRET, running_tenant

STEPS = depth.count("DOCUMENT_AUDIENCE", short=200, deep=2000)
HERE, ELSEWHERE = "oc_here", "oc_elsewhere"
PEOPLE = ("ou_ann", "ou_bea", "ou_cem", "ou_eve")  # Eve is of another tenant
Rule = Callable[[Sharing, str, Collection[GroupListener], Collection[str]], bool]


class Walk:
    """A document, two groups, and what happens to them."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.world = World(SandboxConfig())
        self.library = Library(self.world)
        for open_id in PEOPLE:
            tenant_key = "another" if open_id == "ou_eve" else ""
            self.world.put(SandboxPerson(open_id, open_id, tenant_key=tenant_key))
        for chat_id in (HERE, ELSEWHERE):
            self.world.put(Chat(chat_id, chat_id, members=PEOPLE[:2]))
        self.document = SandboxDocument("d", "docx", "Plan", PEOPLE[0], {"blocks": []})
        self.world.put(self.document)

    def step(self) -> None:
        """Something happens."""
        what = self.dice.choice([self._link, self._share, self._unshare, self._join, self._leave])
        what()
        self.world.put(self.document)

    def sharing(self, asker: str) -> Sharing:
        """What Feishu tells the asker."""
        if not self.library.may(self.document, asker):
            return Sharing()
        if not self.library.may_look_at_permissions(self.document, asker):
            return Sharing(True)
        shown = {(one["member_type"], one["member_id"]) for one in self.document.members}
        return Sharing(
            True, self.document.link, frozenset({*shown, ("openid", self.document.owner)})
        )

    def listeners(self) -> list[GroupListener]:
        members = self.world.chats[HERE].members
        return [GroupListener(one, one != "ou_eve") for one in members]

    def is_open_to_all(self) -> bool:
        """The truth."""
        return all(self.library.may(self.document, one.open_id) for one in self.listeners())

    def _link(self) -> None:
        manage = self.dice.choice(sorted(MANAGERS))
        self.document = replace(self.document, link=self.dice.choice(LINKS), manage=manage)

    def _share(self) -> None:
        kind, member_id = self.dice.choice(
            [
                ("openchat", HERE),
                ("openchat", ELSEWHERE),
                ("opendepartmentid", "od_1"),
                *(("openid", one) for one in PEOPLE),
            ]
        )
        member = {"member_type": kind, "member_id": member_id, "perm": "view"}
        if kind == "opendepartmentid":
            member["people"] = self.dice.sample(PEOPLE, 2)  # type: ignore[assignment]
        self.document = replace(self.document, members=(*self.document.members, member)[-2:])

    def _unshare(self) -> None:
        self.document = replace(self.document, members=self.document.members[1:])

    def _join(self) -> None:
        chat = self.world.chats[self.dice.choice([HERE, ELSEWHERE])]
        members = tuple(dict.fromkeys([*chat.members, self.dice.choice(PEOPLE)]))
        self.world.put(replace(chat, members=members))

    def _leave(self) -> None:
        chat = self.world.chats[self.dice.choice([HERE, ELSEWHERE])]
        gone = self.dice.choice(PEOPLE)
        self.world.put(replace(chat, members=tuple(one for one in chat.members if one != gone)))


def disclosures(rule: Rule, steps: int, *, most_wrong: float = math.inf) -> tuple[int, int, int]:
    """Of a walk: how often the group was told, wrongly told, and could have been told where the
    asker may look at the sharing."""
    walk, told, wrongly, could = Walk(1), 0, 0, 0
    for _ in range(steps):
        if wrongly > most_wrong:
            break
        walk.step()
        asker = walk.dice.choice(PEOPLE)
        sharing = walk.sharing(asker)
        answer = rule(sharing, HERE, walk.listeners(), {asker})
        truth = sharing.is_open_to_asker and bool(walk.listeners()) and walk.is_open_to_all()
        told += answer
        wrongly += answer and not truth
        could += truth and sharing.link != ""
    return told, wrongly, could


def test_nobody_is_told_of_what_they_cannot_open() -> None:
    told, wrongly, could = disclosures(everybody_can_open, STEPS * 20)
    print(f"{STEPS * 20} steps: told {told} times of {could}, wrongly {wrongly}")
    assert wrongly == 0
    assert told > could * 0.5


def _anybody(sharing: Sharing, chat_id: str, there: Any, proven: Any) -> bool:
    return any(everybody_can_open(sharing, chat_id, [one], proven) for one in there)


def _of_one_tenant(sharing: Sharing, chat_id: str, there: Any, proven: Any) -> bool:
    return everybody_can_open(
        sharing, chat_id, [replace(o, is_of_tenant=True) for o in there], proven
    )


def _any_group(sharing: Sharing, chat_id: str, there: Any, proven: Any) -> bool:
    groups = {("openchat", chat_id) for kind, _ in sharing.collaborators if kind == "openchat"}
    return everybody_can_open(
        replace(sharing, collaborators=sharing.collaborators | groups), chat_id, there, proven
    )


def _departments(sharing: Sharing, chat_id: str, there: Any, proven: Any) -> bool:
    prove = any(kind == "opendepartmentid" for kind, _ in sharing.collaborators)
    return sharing.is_open_to_asker and (
        prove or everybody_can_open(sharing, chat_id, there, proven)
    )


def _not_asked_afresh() -> Rule:
    kept: list[Sharing] = []

    def rule(sharing: Sharing, chat_id: str, there: Any, proven: Any) -> bool:
        if sharing.is_open_to_asker and not kept:
            kept.append(sharing)
        return everybody_can_open(kept[0] if kept else sharing, chat_id, there, proven)

    return rule


def _members_of_before() -> Rule:
    kept: list[list[GroupListener]] = []

    def rule(sharing: Sharing, chat_id: str, there: Any, proven: Any) -> bool:
        kept.append(kept[0] if kept else there)
        return everybody_can_open(sharing, chat_id, kept[0], proven)

    return rule


def _refusal_is_consent(sharing: Sharing, chat_id: str, there: Any, proven: Any) -> bool:
    untold = sharing.is_open_to_asker and not sharing.link
    return untold or everybody_can_open(sharing, chat_id, there, proven)


def _the_asker_counts_anyhow(sharing: Sharing, chat_id: str, there: Any, proven: Any) -> bool:
    return everybody_can_open(replace(sharing, is_open_to_asker=True), chat_id, there, proven)


@every_row(
    "broken",
    [
        _anybody, _of_one_tenant, _any_group, _departments, _not_asked_afresh(),
        _members_of_before(), _refusal_is_consent, _the_asker_counts_anyhow,
    ],
)  # fmt: skip
def test_each_rule_that_is_broken_on_purpose_is_caught(broken: Rule) -> None:
    assert disclosures(broken, 10_000, most_wrong=0)[1] > 0


def test_a_group_whose_members_are_not_known_is_told_nothing() -> None:
    assert not everybody_can_open(Sharing(True, "anyone_readable"), HERE, [], {"ou_ann"})


# Over HTTP, as the asker


@pytest.fixture
async def calls() -> AsyncIterator[tuple[Town, Any]]:
    async def at_once(_seconds: float) -> None:
        return None

    with running_tenant() as tenant:
        tenant.control("POST", "/switches", {"rate_limits": False, "minute_limits": False})
        client = FeishuClient(tenant.url, APP_ID, APP_SECRET, sleep=at_once)
        yield Town(tenant), client.documents
        await client.close()


@pytest.mark.anyio
async def test_what_feishu_does_not_say_counts_as_no(calls: tuple[Town, Any]) -> None:
    town, documents = calls
    plan = town.add("Alice", link="tenant_readable", manage="collaborator_full_access")
    few, bob = town.token("Bob", ("docx:document:readonly",)), town.token("Bob")
    assert await sharing_of(documents, plan["token"], "docx", bob) == Sharing(True)
    assert await sharing_of(documents, plan["token"], "docx", few) == Sharing()
    town.change(plan, link="closed")
    assert await sharing_of(documents, plan["token"], "docx", bob) == Sharing()
    town.tenant.trouble("/open-apis/drive/v2/permissions", {"code": 1, "msg": "no"}, status=500)
    alice = town.token("Alice")
    told = await sharing_of(documents, plan["token"], "docx", alice)
    assert (told.is_open_to_asker, told.link) == (True, "")
    assert ("openid", town.people["Alice"]) in told.collaborators
