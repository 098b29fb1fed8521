"""What Feishu refused for want of a scope: for how long, for which chats, and when it is over."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from bot.feishu.errors import Denials, FeishuError, Unreachable, is_still_refused, lacks_scope

pytestmark = pytest.mark.anyio

GROUP_MSG = "im:message.group_msg"
OF_GROUPS = FeishuError(230027, scopes=(GROUP_MSG,))
OF_ALL = FeishuError(99991672, scopes=("im:message", "im:message:readonly"))


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Listing:
    """Feishu's list of granted scopes; None: it does not answer."""

    def __init__(self, *granted: str | None) -> None:
        self.granted, self.asked = granted, 0

    async def granted_scopes(self) -> frozenset[str]:
        self.asked += 1
        if None in self.granted:
            raise Unreachable("cut")
        return frozenset(filter(None, self.granted))


def test_a_scope_of_groups_closes_one_api_for_groups_for_a_while() -> None:
    denials = Denials(clock := Clock(), stands_s=600)
    denials.note("list", "group", OF_GROUPS)

    assert denials.stands("list", "group")
    assert not denials.stands("list", "p2p")
    assert not denials.stands("get", "group")
    assert denials.lacks(GROUP_MSG)
    clock.now = 600
    assert not denials.stands("list", "group")
    assert not denials.lacks(GROUP_MSG)


def test_a_scope_of_the_api_closes_it_everywhere() -> None:
    denials = Denials(Clock())
    denials.note("get", "group", OF_ALL)

    assert denials.stands("get", "group")
    assert denials.stands("get", "p2p")
    assert not denials.lacks(GROUP_MSG)


@pytest.mark.parametrize(
    ("chat_type", "error"),
    [("p2p", OF_GROUPS), ("group", FeishuError(230027, "external group"))],
    ids=["p2p", "unnamed"],
)
def test_what_is_of_one_chat_is_not_remembered(chat_type: str, error: FeishuError) -> None:
    denials = Denials(Clock())
    denials.note("get", chat_type, error)

    assert not denials.stands("get", chat_type)


def test_a_missing_scope_is_logged_once_by_its_name_and_other_refusals_are_not() -> None:
    denials = Denials(Clock())
    with capture_logs() as lines:
        denials.note("list", "group", OF_GROUPS)
        denials.note("list", "group", OF_GROUPS)
        denials.note("get", "group", FeishuError(99991403))  # the monthly quota

    [line] = lines
    assert (line["event"], line["scopes"]) == ("feishu.scope_missing", (GROUP_MSG,))
    assert denials.stands("get", "p2p")


def test_a_success_of_what_was_refused_opens_all_that_lacked_the_scope() -> None:
    denials = Denials(clock := Clock(), stands_s=600)
    denials.note("list", "group", OF_GROUPS)
    clock.now = 500
    denials.note("get", "group", OF_GROUPS)
    denials.note("names", "", FeishuError(99991672, scopes=("contact:x",)))
    clock.now = 700
    denials.allow("list", "group")

    assert not denials.stands("get", "group")
    assert denials.stands("names")


def test_a_success_of_what_was_never_refused_proves_nothing() -> None:
    denials = Denials(Clock())
    denials.note("list", "group", OF_GROUPS)
    denials.allow("get", "group")

    assert denials.stands("list", "group")


async def test_a_refusal_is_forgotten_when_feishu_lists_the_scope() -> None:
    denials = Denials(Clock())
    denials.note("list", "group", OF_GROUPS)

    assert not await lacks_scope(Listing(GROUP_MSG), denials, GROUP_MSG)  # type: ignore[arg-type]
    assert not denials.stands("list", "group")


async def test_the_list_is_looked_up_once_a_minute_and_not_relied_on_where_it_is_away() -> None:
    denials = Denials(clock := Clock())
    away, listing = Listing(None), Listing("im:message")
    assert not await lacks_scope(away, denials, GROUP_MSG)  # type: ignore[arg-type]
    clock.now = 60
    for _ in range(3):
        assert await lacks_scope(listing, denials, GROUP_MSG)  # type: ignore[arg-type]
    clock.now = 120
    listing.granted = (GROUP_MSG,)
    assert not await lacks_scope(listing, denials, GROUP_MSG)  # type: ignore[arg-type]
    assert listing.asked == 2


async def test_whoever_waits_for_what_was_refused_gets_it_seconds_after_the_grant() -> None:
    denials, listing = Denials(clock := Clock()), Listing("im:message")
    denials.note("get", "group", OF_GROUPS)
    for clock.now in (0.0, 1.0, 4.0):
        assert await is_still_refused(listing, denials, "get", "group")  # type: ignore[arg-type]
    assert listing.asked == 1
    listing.granted = ("im:message", GROUP_MSG)
    clock.now = 5
    assert not await is_still_refused(listing, denials, "get", "group")  # type: ignore[arg-type]


async def test_what_was_never_refused_needs_no_list() -> None:
    denials, listing = Denials(Clock()), Listing()
    assert not await is_still_refused(listing, denials, "get", "group")  # type: ignore[arg-type]
    assert listing.asked == 0
