"""When Feishu's list of a chat is asked for, and when it is left alone for a while."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bot.answering.request_chat import chat_of, record_of_list
from bot.feishu.errors import Denials, FeishuError
from bot.feishu.models import raw_message
from bot.listening.turn_request import TurnRequest
from bot.mentions import Person
from bot.people.people_directory import Names, NameSources
from bot.services import Services
from bot.settings import Settings
from memory.models import MESSAGE_ORIGIN

pytestmark = pytest.mark.anyio

REQUEST = TurnRequest("om_1", MESSAGE_ORIGIN, "ou_ann", "t", "oc_1", "group", "hello", 1)


class Refusing:
    """A list that is refused with one code."""

    def __init__(self, code: int) -> None:
        self._code = code

    async def list_messages(self, *_: Any, **__: Any) -> None:
        raise FeishuError(self._code, scopes=("im:message.group_msg",))


@pytest.mark.parametrize(
    ("code", "stands"),
    [
        (99991672, True),  # no scope
        (230027, True),
        (99991400, False),  # too many requests
        (230002, False),  # out of this chat
        (231203, False),  # a confidential chat
        (230073, False),  # a thread that the bot does not see
    ],
)
async def test_the_list_is_left_alone_only_where_it_is_refused_for_all_chats(
    code: int, stands: bool
) -> None:
    denials = Denials()
    services = SimpleNamespace(
        feishu=Refusing(code), denials=denials, clock=lambda: 1000.0, settings=Settings(),
        rpc=None, transcripts=None,
    )  # fmt: skip
    chat = chat_of(cast(Services, services), REQUEST, Person("ou_bot", "Bot"))

    assert await chat.recent_messages() == ()
    assert denials.stands("list_messages", "group") is stands
    assert denials.stands("list_messages", "p2p") is (code == 99991672)


def test_another_app_is_not_called_by_its_app_id() -> None:
    names = Names("tenant", cast(NameSources, None))
    sender = {"id": "cli_pager", "id_type": "app_id", "sender_type": "app"}
    raw = raw_message({"message_id": "om_1", "sender": sender})
    assert record_of_list(names, "cli_us", raw, Person("ou_bot", "Bot")).author == ""
