"""Where a group lets only its owner mention everybody, a card goes without that and says so."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

import pytest

from bot.features.timers import reminder_card
from bot.feishu.client import FeishuClient
from bot.feishu.errors import FeishuError, FeishuFailure, classify
from bot.feishu.models import SentMessage
from bot.outbox.delivery import AT_ALL, Target, Undeliverable, deliver
from memory.scope import memory_context
from memory.tables.timers import Timer, TimerPlan

pytestmark = pytest.mark.anyio

IN_CHAT = Target("", "oc_1", in_thread=False)
FORBIDDEN = [
    FeishuError(11235),
    FeishuError(230099, sub_code=11235),
    FeishuError(230018),
    FeishuError(230099, "This group is set to only admin can mention @All"),
]
SAYS_SO = "lets only its owner and admins mention everyone"


class Group:
    """Takes what is sent, after `refusals`, one for each call."""

    def __init__(self, *refusals: FeishuFailure) -> None:
        self.refusals, self.shown, self.uuids = list(refusals), [], []  # type: ignore[var-annotated]

    async def send(self, to: str, kind: str, *, msg_type: str, content: str, uuid: str) -> Any:
        self.uuids.append(uuid)
        if self.refusals:
            raise self.refusals.pop(0)
        self.shown.append(json.dumps(json.loads(content), ensure_ascii=False))
        return SentMessage("om_1")


async def sent(group: Group, content: str) -> str:
    delivered = await deliver(
        cast(FeishuClient, group), IN_CHAT, turn_id="t", chunk=0, content=content, names={}
    )
    return delivered.content


@pytest.mark.parametrize("refusal", FORBIDDEN)
async def test_the_card_goes_without_the_mention_and_says_so(refusal: FeishuError) -> None:
    group = Group(refusal)

    said = await sent(group, f"{AT_ALL} ⏰ **Reminder:** “stretch”")

    assert said.startswith("⏰ **Reminder:** “stretch”\n\n> This group ")
    assert SAYS_SO in said
    assert "<at" not in group.shown[0]
    assert len(set(group.uuids)) == 2, "another card, so another uuid"


async def test_in_chinese_it_is_said_in_chinese() -> None:
    said = await sent(Group(FORBIDDEN[0]), f"{AT_ALL} ⏰ **提醒：** 开会")

    assert said.endswith("> 本群只允许群主和管理员 @所有人，因此没有提醒任何人。")


async def test_a_card_that_mentions_nobody_is_not_taken_for_one_that_does() -> None:
    with pytest.raises(Undeliverable):
        await sent(Group(FeishuError(230018)), "stretch")


async def test_a_group_where_nobody_may_write_refuses_it_without_the_mention_too() -> None:
    with pytest.raises(Undeliverable):
        await sent(Group(FeishuError(230018), FeishuError(230018)), f"{AT_ALL} stretch")


async def test_feishus_own_words_are_understood() -> None:
    body = {"code": 11235, "msg": "This group is set to only admin can mention @All."}
    refusal = classify(400, {}, json.dumps(body).encode())
    assert refusal is not None

    assert SAYS_SO in await sent(Group(refusal), f"{AT_ALL} stretch")


@pytest.mark.parametrize(
    ("for_all", "chat_type", "mentions_all", "calls"),
    [(True, "group", True, True), (True, "group", False, False), (True, "p2p", True, False),
     (False, "group", True, False)],
)  # fmt: skip
async def test_a_reminder_for_everybody_calls_everybody_where_that_is_wanted(
    for_all: bool, chat_type: Any, mentions_all: bool, calls: bool
) -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    plan = TimerPlan("stretch", now.replace(tzinfo=None), "UTC", int(now.timestamp() * 1000))
    context = memory_context(
        chat_id="oc_1", root="main", subject="ou_a", actor="ou_a", chat_type=chat_type
    )
    timer = Timer("tm_1", context, "om_1", replace(plan, for_all=for_all))

    text = reminder_card(timer, [], author="Ann", now=now, mentions_all=mentions_all)

    assert text.startswith(AT_ALL) is calls
