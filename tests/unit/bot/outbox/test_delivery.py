"""Delivery to one person: beside the group, else in p2p, else not at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from bot.feishu.cards import Button, reply_uuid
from bot.feishu.client import FeishuClient
from bot.feishu.errors import FeishuError, Unreachable
from bot.feishu.models import SentMessage
from bot.outbox.delivery import Aside, Delivered, Target, Undeliverable, deliver

pytestmark = pytest.mark.anyio

PRESS = Button("Show me", {"b": "x"})


@dataclass
class Sent:
    """Takes what is sent, or answers with `refusals`, one for each call."""

    refusals: list[Exception | None] = field(default_factory=list)
    calls: list[tuple[str, Any]] = field(default_factory=list)

    def _answer(self, way: str, what: Any) -> str:
        self.calls.append((way, what))
        refusal = self.refusals.pop(0) if self.refusals else None
        if refusal:
            raise refusal
        return f"om_{way}"

    async def send_ephemeral(self, chat_id: str, open_id: str, card: Any) -> str:
        return self._answer("beside", (chat_id, open_id, card))

    async def send(self, to: str, kind: str, *, msg_type: str, content: str, uuid: str) -> Any:
        id = self._answer("p2p", (to, kind, msg_type, uuid))
        return SentMessage(id)

    async def patch_card(self, message_id: str, card: str) -> None:
        self._answer("in place", message_id)

    async def reply(self, message_id: str, *, msg_type: str, **_: Any) -> Any:
        return SentMessage(self._answer("reply", msg_type))

    async def upload_file(self, name: str, data: bytes) -> str:
        return self._answer("upload", name)


async def shown(sent: Sent, target: Aside, content: str = "psst") -> Delivered:
    return await deliver(
        cast(FeishuClient, sent),
        target,
        turn_id="om_q",
        chunk=0,
        content=content,
        names={"ou_a": "Ann"},
        buttons=[PRESS],
    )


async def test_a_card_stands_beside_what_is_said_in_the_group() -> None:
    sent = Sent()
    assert await shown(sent, Aside("ou_a", "oc_1")) == Delivered("psst", "om_beside", aside=True)

    [(way, (chat, person, card))] = sent.calls
    assert (way, chat, person) == ("beside", "oc_1", "ou_a")
    assert [one["tag"] for one in card["body"]["elements"]] == ["markdown", "button"]


@pytest.mark.parametrize("code", [18053, 230002, 99991400, 11246])
async def test_whatever_is_refused_there_goes_the_way_of_p2p(code: int) -> None:
    sent = Sent([FeishuError(code)])
    assert await shown(sent, Aside("ou_a", "oc_1")) == Delivered("psst", "om_p2p")
    assert sent.calls[1] == ("p2p", ("ou_a", "open_id", "interactive", reply_uuid("om_q", 0)))


async def test_without_a_group_it_is_p2p_at_once() -> None:
    sent = Sent()
    await shown(sent, Aside("ou_a"))
    assert [way for way, _ in sent.calls] == ["p2p"]


async def test_who_cannot_be_reached_either_way_gets_nothing() -> None:
    sent = Sent([FeishuError(18053), FeishuError(230013)])
    with pytest.raises(Undeliverable):
        await shown(sent, Aside("ou_a", "oc_1"))


async def test_an_unknown_outcome_is_not_repeated_in_p2p() -> None:
    sent = Sent([Unreachable("timeout")])
    with pytest.raises(Unreachable):
        await shown(sent, Aside("ou_a", "oc_1"))
    assert [way for way, _ in sent.calls] == ["beside"]


async def test_a_card_that_is_refused_goes_simpler_and_in_the_end_as_plain_text() -> None:
    for refusals, content, kind in ((1, "@Ann hi", "interactive"), (2, "@Ann hi", "text")):
        sent = Sent([FeishuError(230099)] * refusals)
        delivered = await shown(sent, Aside("ou_a"), "<at id=ou_a></at> hi")
        uuids = [uuid for _, (*_, uuid) in sent.calls]
        assert (delivered.content, sent.calls[-1][1][2]) == (content, kind)
        assert uuids == [reply_uuid("om_q", 0, version) for version in range(refusals + 1)]


async def answered(sent: Sent, chunk: int = 0, **more: Any) -> list[str]:
    """The ways that an answer goes which is to stand in place of a card."""
    target = Target("om_card", "oc_1", in_thread=False, in_place=True)
    client = cast(FeishuClient, sent)
    await deliver(client, target, turn_id="t", chunk=chunk, content="Now.", names={}, **more)
    return [way for way, _ in sent.calls]


async def test_the_first_card_takes_the_place_of_another_while_that_can_be_changed() -> None:
    assert await answered(Sent()) == ["in place"]
    assert await answered(Sent([FeishuError(230031)])) == ["in place", "reply"]
    assert await answered(Sent(), chunk=1) == ["reply"]


async def test_a_file_that_feishu_does_not_take_is_named_and_an_outage_is_waited_for() -> None:
    file = {"name": "plan.txt", "kind": "txt", "content": "by foot"}
    taken, refused, busy = Sent(), Sent([FeishuError(234006)]), Sent([FeishuError(99991400)])
    assert await answered(taken, chunk=1, file=file) == ["upload", "reply"]
    assert await answered(refused, chunk=1, file=file) == ["upload", "reply"]
    assert (taken.calls[-1], refused.calls[-1]) == (("reply", "file"), ("reply", "text"))
    with pytest.raises(FeishuError):
        await answered(busy, chunk=1, file=file)
