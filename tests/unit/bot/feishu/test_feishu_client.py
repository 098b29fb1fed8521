"""The client against stored answers of Feishu: shapes, tokens, retries, pacing, secrecy."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from structlog.testing import capture_logs

from bot.feishu.caller import RetryPolicy
from bot.feishu.cards import answer_card, card_content, closing_actions, streaming_card
from bot.feishu.client import FeishuClient
from bot.feishu.errors import Action, FeishuError, ResourceTooLarge, Unintelligible, Unreachable
from bot.feishu.models import BotInfo, ChatInfo, SentMessage
from bot.feishu.transport import Timeouts
from memory.scope import FeishuPerson
from tests.support.feishu_api import Asked, FeishuApi, feishu_api

DATA = Path(__file__).parents[3] / "data" / "feishu"
TOKEN = "/open-apis/auth/v3/tenant_access_token/internal"
MESSAGES = "/open-apis/im/v1/messages"
EPHEMERAL = "/open-apis/ephemeral/v1/"
CARDS = "/open-apis/cardkit/v1/cards"
NAMES = "/open-apis/contact/v3/users/basic_batch"
REPLY = f"{MESSAGES}/om_1/reply"
SECRET, TEXT = "s3cr3t-of-the-app", "text-of-a-person"


class Clock:
    """Seconds that pass only in `sleep`; `meanwhile` is what else happens then."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []
        self.meanwhile: Callable[[], object] = lambda: None

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        self.meanwhile()
        await asyncio.sleep(0)


class Feishu:
    """A client, the clock it lives by, and what Feishu is to answer."""

    def __init__(self, api: FeishuApi, timeouts: Timeouts | None = None) -> None:
        self.api = api
        self.clock = Clock()
        self.counted: list[str] = []
        self.client = FeishuClient(
            api.url,
            "cli_1",
            SECRET,
            clock=self.clock,
            sleep=self.clock.sleep,
            jitter=lambda: 0.0,
            policy=RetryPolicy(max_attempts=4, max_total_s=20, base_s=1, cap_s=8),
            timeouts=timeouts,
            count=self.counted.append,
        )

    def token(self, value: str = "t-1") -> None:
        answer = {"code": 0, "msg": "ok", "tenant_access_token": value, "expire": 7200}
        self.answers("POST", TOKEN, answer)

    def answers(self, method: str, path: str, body: Any = b"", **extra: Any) -> None:
        self.api.answers(method, path, body, **extra)

    def fails(self, method: str, path: str, name: str) -> None:
        stored = stored_answer(name)
        self.answers(
            method, path, stored["body"], status=stored["http_status"], headers=stored["headers"]
        )

    def run(self, call: Callable[[FeishuClient], Coroutine[Any, Any, Any]]) -> Any:
        async def closing() -> Any:
            try:
                return await call(self.client)
            finally:
                await self.client.close()

        return asyncio.run(closing())

    def reply(self, text: str = TEXT) -> SentMessage:
        return self.run(lambda client: reply(client, text))

    def sent(self, part: str = "/im/") -> list[Asked]:
        return [asked for asked in self.api.asked if part in asked.target]


def stored_answer(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text())


async def reply(client: FeishuClient, text: str = TEXT, chat_id: str = "oc_1") -> SentMessage:
    return await client.reply(
        "om_1",
        chat_id=chat_id,
        msg_type="interactive",
        content=card_content(answer_card(text)),
        uuid="u-1",
        reply_in_thread=True,
    )


@pytest.fixture
def feishu():
    with feishu_api() as api:
        world = Feishu(api)
        world.token()
        yield world


def test_calls_are_counted_by_api_as_feishu_counts_them(feishu):
    feishu.answers("POST", REPLY, b"oops", status=502)
    feishu.answers("POST", REPLY, stored_answer("api_im_message_reply__resp"))
    feishu.answers("POST", f"{MESSAGES}/om_1/reactions", {"code": 0, "data": {"reaction_id": "r"}})

    async def both(client: FeishuClient) -> None:
        await reply(client)
        await client.add_reaction("om_1", "OK")

    feishu.run(both)
    assert feishu.counted == ["reply", "add reaction"]  # neither the error nor the token


def test_a_reply_sends_the_documented_request_and_gives_the_sent_message(feishu):
    feishu.answers("POST", REPLY, stored_answer("api_im_message_reply__resp"))
    sent = feishu.reply()
    assert sent == SentMessage("om_dc13264520392913993dd051dba21dcf")
    (request,) = feishu.sent()
    assert request.headers["Authorization"] == "Bearer t-1"
    assert request.headers["Content-Type"] == "application/json; charset=utf-8"
    assert request.json == {
        "content": card_content(answer_card(TEXT)),
        "msg_type": "interactive",
        "reply_in_thread": True,
        "uuid": "u-1",
    }


def test_chinese_text_travels_as_utf8(feishu):
    feishu.answers("POST", REPLY, stored_answer("api_im_message_reply__resp"))
    feishu.reply("你好")
    assert "你好".encode() in feishu.sent()[0].body


def test_a_message_is_sent_to_a_chat(feishu):
    feishu.answers("POST", MESSAGES, stored_answer("api_im_message_create__resp"))
    sent = feishu.run(
        lambda client: client.send("oc_1", "chat_id", msg_type="text", content="{}", uuid="u")
    )
    assert sent.message_id == "om_dc13264520392913993dd051dba21dcf"
    assert feishu.sent()[0].target.endswith("?receive_id_type=chat_id")


def test_a_card_for_one_person_is_sent_as_an_object_and_once(feishu):
    feishu.answers("POST", EPHEMERAL + "send", {"code": 0, "data": {"message_id": "om_9"}})
    card = answer_card(TEXT)
    sent = feishu.run(lambda client: client.send_ephemeral("oc_1", "ou_1", card))
    assert sent == "om_9"
    (request,) = feishu.sent(EPHEMERAL)
    where = {"chat_id": "oc_1", "open_id": "ou_1"}
    assert request.json == {**where, "msg_type": "interactive", "card": card}


def test_a_card_for_one_person_is_not_repeated_when_the_outcome_is_unknown(feishu):
    feishu.answers("POST", EPHEMERAL + "send", b"bad gateway", status=502)
    with pytest.raises(Unreachable):
        feishu.run(lambda client: client.send_ephemeral("oc_1", "ou_1", {}))
    assert len(feishu.sent(EPHEMERAL)) == 1


def test_taking_away_a_card_that_is_gone_is_fine(feishu):
    feishu.answers("POST", EPHEMERAL + "delete", {"code": 18051, "msg": "deleted"}, status=400)
    feishu.run(lambda client: client.delete_ephemeral("om_9"))
    assert feishu.sent(EPHEMERAL)[0].json == {"message_id": "om_9"}


def test_the_bot_knows_itself(feishu):
    url = "/open-apis/bot/v3/info"
    feishu.answers("GET", url, stored_answer("api_bot_v3_info__resp"))
    info = feishu.run(lambda client: client.bot_info())
    assert info == BotInfo("ou_e6e14f667cfe239d7b129b521dce0569", "name")


def test_a_card_is_patched(feishu):
    feishu.answers("PATCH", f"{MESSAGES}/om_1", {"code": 0, "data": {}})
    feishu.run(lambda client: client.patch_card("om_1", "{}"))
    assert feishu.sent()[0].json == {"content": "{}"}


def test_a_merged_forward_comes_with_its_children(feishu):
    stored = stored_answer("api_im_message_get_merge_forward__resp")
    feishu.answers("GET", f"{MESSAGES}/om_forward", stored)
    found = feishu.run(lambda client: client.get_message("om_forward"))
    assert len(found) == len(stored["data"]["items"]) > 2
    assert found[0].content == "Merged and Forwarded Message"


def test_a_fetched_message_has_its_mentions_and_a_recalled_one_says_so(feishu):
    feishu.answers("GET", f"{MESSAGES}/om_1", stored_answer("api_im_message_get__resp"))
    feishu.answers("GET", f"{MESSAGES}/om_2", stored_answer("api_im_message_get_recalled__resp"))

    async def both(client: FeishuClient) -> list[Any]:
        return [*await client.get_message("om_1", True), *await client.get_message("om_2")]

    first, recalled = feishu.run(both)
    assert first.mentions[0].open_id == "ou_155184d1e73cbfb8973e5a9e698e74f2"
    assert (first.sender_type, first.deleted, recalled.deleted) == ("app", False, True)
    assert "card_msg_content_type=user_card_content" in feishu.sent()[0].target


def test_history_is_read_page_by_page_up_to_the_limit(feishu):
    stored = stored_answer("api_im_message_list__resp")
    for _ in range(3):
        feishu.answers("GET", MESSAGES, stored)
    found = feishu.run(
        lambda client: client.list_messages(
            "chat", "oc_1", start_s=1, end_s=9, descending=True, page_size=1, max_items=3
        )
    )
    assert len(found) == 3
    urls = [request.target for request in feishu.sent()]
    assert "page_token" not in urls[0]
    assert all("page_token=" in url for url in urls[1:])
    assert all("start_time=1&end_time=9" in url for url in urls)
    assert all("sort_type=ByCreateTimeDesc" in url for url in urls)


def test_a_page_of_history_says_where_the_next_one_begins(feishu):
    stored = stored_answer("api_im_message_list__resp")
    last = {"code": 0, "data": {"items": [], "has_more": False, "page_token": "left over"}}
    feishu.answers("GET", MESSAGES, stored)
    feishu.answers("GET", MESSAGES, last)

    async def two_pages(client: FeishuClient) -> list[Any]:
        first = await client.history_page("chat", "oc_1", start_s=5, end_s=9)
        return [first, await client.history_page("chat", "oc_1", page_token=first.next_token)]

    first, second = feishu.run(two_pages)
    assert [len(first.messages), first.next_token] == [
        len(stored["data"]["items"]),
        stored["data"]["page_token"],
    ]
    assert second.next_token == ""
    asked, again = [one.query for one in feishu.sent()]
    assert asked["start_time"] == "5"
    assert asked["end_time"] == "9"
    assert asked["sort_type"] == "ByCreateTimeAsc"
    assert asked["card_msg_content_type"] == "user_card_content"
    assert again["page_token"] == stored["data"]["page_token"]


@pytest.mark.parametrize(
    "data", [{"has_more": True, "items": []}, {"items": "none"}, {"has_more": True}]
)
def test_what_is_no_page_of_history_is_said_to_be_none(feishu, data):
    feishu.answers("GET", MESSAGES, {"code": 0, "data": data})
    with pytest.raises(Unintelligible):
        feishu.run(lambda client: client.history_page("chat", "oc_1"))


def test_history_is_read_at_a_fifth_of_the_pace_and_nothing_else_waits_for_it(feishu):
    feishu.answers("GET", MESSAGES, {"code": 0, "data": {"items": [], "has_more": False}})
    feishu.answers("GET", f"{MESSAGES}/om_1", {"code": 0, "data": {"items": []}})

    async def much(client: FeishuClient) -> tuple[float, float]:
        for _ in range(50):
            await client.history_page("chat", "oc_1")
        took = feishu.clock.now
        await client.get_message("om_1")
        await client.list_messages("chat", "oc_1")
        return took, feishu.clock.now - took

    took, waited = feishu.run(much)
    assert took == pytest.approx(4 * 1.05)
    assert waited < 0.3


def test_deleting_a_message_that_is_gone_is_fine(feishu):
    feishu.fails("DELETE", f"{MESSAGES}/om_1", "error_230011")
    feishu.run(lambda client: client.delete_message("om_1"))


def test_reactions_are_added_and_taken_back(feishu):
    feishu.answers(
        "POST", f"{MESSAGES}/om_1/reactions", stored_answer("api_im_reaction_create__resp")
    )
    feishu.answers("DELETE", f"{MESSAGES}/om_1/reactions/r%2F1", {"code": 0})

    async def both(client: FeishuClient) -> str:
        reaction_id = await client.add_reaction("om_1", "Typing")
        await client.delete_reaction("om_1", "r/1")
        return reaction_id

    assert feishu.run(both) == "ZCaCIjUBVVWSrm5L-3ZTw****"
    assert feishu.sent()[0].json == {"reaction_type": {"emoji_type": "Typing"}}


def test_a_chat_says_what_kind_it_is(feishu):
    url = "/open-apis/im/v1/chats/oc_1"
    feishu.answers("GET", url, stored_answer("api_im_chat_get__resp"))
    info = feishu.run(lambda client: client.chat_info("oc_1"))
    assert info == ChatInfo("测试群名称", "group", "chat", ("ou_9204a37300b3700d61effaa439f34295",))


MEMBERS = "/open-apis/im/v1/chats/oc_1/members"


def test_members_are_read_to_the_last_page_a_hundred_at_a_time(feishu):
    first = stored_answer("api_im_chat_members__resp")
    bob = {"member_id": "ou_bob", "tenant_key": "another"}
    last = {"code": 0, "data": {"items": [*first["data"]["items"], bob], "has_more": False}}
    feishu.answers("GET", MEMBERS, first)
    feishu.answers("GET", MEMBERS, last)

    found = feishu.run(lambda client: client.chat_members("oc_1"))

    zhang = FeishuPerson("736588c9260f175d", "ou_9204a37300b3700d61effaa439f34295")
    assert found == [zhang, FeishuPerson("another", "ou_bob")]
    urls = [request.target for request in feishu.sent()]
    assert all("page_size=100" in url and "member_id_type=open_id" in url for url in urls)
    assert ["page_token=" in url for url in urls] == [False, True]


@pytest.mark.parametrize(
    "broken",
    [{"items": [], "has_more": True}, {"has_more": False}, {"items": None, "has_more": False}],
)
def test_half_a_list_of_members_is_none(feishu, broken):
    feishu.answers("GET", MEMBERS, {"code": 0, "data": broken})
    with pytest.raises(Unreachable):
        feishu.run(lambda client: client.chat_members("oc_1"))


def test_names_are_asked_for_in_tens_without_repeats(feishu):
    for _ in range(2):
        feishu.answers("POST", NAMES, stored_answer("api_contact_users_basic_batch__resp"))
    asked = [f"ou_{number}" for number in range(12)] + ["ou_1", ""]
    names = feishu.run(lambda client: client.names(asked))
    assert names == {"ou_b3b46653c99f1f6177a478974bdabb72": "张三"}
    assert [len(r.json["user_ids"]) for r in feishu.sent("basic_batch")] == [10, 2]


def test_without_the_scope_names_are_not_asked_for_again_for_a_while(feishu):
    feishu.fails("POST", NAMES, "error_99991672_scope_missing")

    async def thrice(client: FeishuClient) -> list[dict[str, str]]:
        found = [await client.names(["ou_1"]), await client.names(["ou_2"])]
        await feishu.clock.sleep(601)
        return [*found, await client.names(["ou_3"])]

    assert feishu.run(thrice) == [{}, {}, {}]
    assert len(feishu.sent("basic_batch")) == 2


def test_a_resource_is_downloaded_within_its_limit(feishu):
    url = f"{MESSAGES}/om_1/resources/img_1"
    png = {"Content-Type": "image/png"}
    feishu.answers("GET", url, b"\x89PNG" + b"x" * 96, headers=png)

    async def download(client: FeishuClient) -> bytes:
        content = await client.download_resource("om_1", "img_1", "image", 100)
        with pytest.raises(ResourceTooLarge):
            await client.download_resource("om_1", "img_1", "image", 99)
        return content

    assert len(feishu.run(download)) == 100


def test_a_json_file_is_a_file_and_a_json_error_is_an_error(feishu):
    url = f"{MESSAGES}/om_1/resources/f_1"
    kept = {"Content-Disposition": "attachment"}
    feishu.answers("GET", url, {"code": 5, "msg": "mine"}, headers=kept)
    feishu.answers("GET", url, {"code": 0, "msg": "mine"})
    feishu.fails("GET", url, "error_234043_resource_unsupported_message")

    async def download(client: FeishuClient) -> list[bytes]:
        files = [await client.download_resource("om_1", "f_1", "file", 999) for _ in range(2)]
        with pytest.raises(FeishuError, match="234043"):
            await client.download_resource("om_1", "f_1", "file", 999)
        return files

    assert [json.loads(file)["code"] for file in feishu.run(download)] == [5, 0]


def test_a_streamed_card_is_created_filled_closed_and_replaced(feishu):
    feishu.answers("POST", CARDS, stored_answer("api_cardkit_card_create__resp"))
    feishu.answers("PUT", f"{CARDS}/7355372766134157313/elements/answer/content", {"code": 0})
    feishu.answers("PATCH", f"{CARDS}/7355372766134157313/settings", {"code": 0})
    feishu.answers("PUT", f"{CARDS}/7355372766134157313", {"code": 0})
    feishu.answers("POST", f"{CARDS}/7355372766134157313/batch_update", {"code": 0})
    card = streaming_card("…", element_id="answer")
    actions = closing_actions(card, answer_card("Hello.", element_id="answer"))

    async def stream(client: FeishuClient) -> None:
        card_id = await client.create_card(card)
        await client.stream_text(card_id, "answer", "Hel", 1, "a")
        await client.card_settings(card_id, {"config": {"streaming_mode": False}}, 2, "b")
        await client.update_card(card_id, card, 3, "c")
        await client.batch_update_card(card_id, actions, 4, "d")

    feishu.run(stream)
    create, text, settings, update, batch = (r.json for r in feishu.sent("/cardkit/"))
    assert create == {"type": "card_json", "data": card_content(card)}
    assert text == {"content": "Hel", "sequence": 1, "uuid": "a"}
    assert json.loads(settings["settings"]) == {"config": {"streaming_mode": False}}
    assert update == {"card": create, "sequence": 3, "uuid": "c"}
    assert json.loads(batch.pop("actions")) == actions
    assert batch == {"sequence": 4, "uuid": "d"}


def test_a_stream_frame_is_dropped_rather_than_repeated(feishu):
    url = f"{CARDS}/7/elements/answer/content"
    feishu.fails("PUT", url, "error_230020")
    with pytest.raises(FeishuError) as caught:
        feishu.run(lambda client: client.stream_text("7", "answer", "x", 1, "a"))
    assert caught.value.action is Action.RETRY
    assert len(feishu.sent("/cardkit/")) == 1


def test_a_card_operation_that_has_already_been_done_is_fine(feishu):
    feishu.answers("PUT", f"{CARDS}/7", status=504)
    feishu.fails("PUT", f"{CARDS}/7", "error_cardkit_200770")
    feishu.run(lambda client: client.update_card("7", {}, 1, "a"))
    assert [r.json["uuid"] for r in feishu.sent("/cardkit/")] == ["a", "a"]


@pytest.mark.parametrize("status", [200, 400])
def test_a_refused_token_is_purged_and_the_call_made_once_more(feishu, status):
    feishu.token("t-2")
    refusal = stored_answer("error_99991663_token_invalid")["body"]
    feishu.answers("POST", REPLY, refusal, status=status)
    feishu.answers("POST", REPLY, stored_answer("api_im_message_reply__resp"))
    feishu.reply()
    used = [request.headers["Authorization"] for request in feishu.sent()]
    assert used == ["Bearer t-1", "Bearer t-2"]
    assert feishu.clock.slept == []


def test_a_token_refused_twice_is_an_error(feishu):
    feishu.token("t-2")
    feishu.fails("POST", REPLY, "error_99991663_token_invalid")
    with pytest.raises(FeishuError, match="99991663"):
        feishu.reply()
    assert len(feishu.sent()) == 2


def test_twenty_calls_at_once_fetch_one_token(feishu):
    feishu.answers("POST", REPLY, stored_answer("api_im_message_reply__resp"))

    async def many(client: FeishuClient) -> None:
        await asyncio.gather(*(reply(client, chat_id=f"oc_{number}") for number in range(20)))

    feishu.run(many)
    assert len(feishu.sent("tenant_access_token")) == 1
    assert len(feishu.sent()) == 20


@pytest.mark.parametrize(
    "trouble",
    [
        {"trouble": "cut"},
        {"trouble": "reset"},
        {"body": {"code": 0}, "trouble": "half"},
        {"body": b"<html>502</html>", "status": 502},
        {"status": 429},
        {"body": {"code": 230049, "msg": "being sent"}, "status": 400},
        {"body": {"code": 230020, "msg": "frequency"}, "status": 400},
    ],
)
def test_what_may_pass_is_repeated_with_the_same_uuid(feishu, trouble):
    feishu.answers("POST", REPLY, **trouble)
    feishu.answers("POST", REPLY, **trouble)
    feishu.answers("POST", REPLY, stored_answer("api_im_message_reply__resp"))
    feishu.reply()
    assert [request.json["uuid"] for request in feishu.sent()] == ["u-1"] * 3
    assert feishu.clock.slept == [1, 2]


def test_what_was_sent_and_is_not_answered_in_time_is_repeated_with_the_same_uuid():
    with feishu_api() as api:
        world = Feishu(api, Timeouts(2, 0.6))
        world.token()
        world.answers("POST", REPLY, trouble="hang")
        world.answers("POST", REPLY, stored_answer("api_im_message_reply__resp"))
        world.reply()
    assert [request.json["uuid"] for request in world.sent()] == ["u-1"] * 2
    assert world.clock.slept == [1]


def test_a_server_that_is_back_before_the_attempts_end_gets_the_message():
    with feishu_api() as api:
        port = urlsplit(api.url).port  # nobody listens there any more
    world = Feishu(api)
    world.token()
    world.answers("POST", REPLY, stored_answer("api_im_message_reply__resp"))

    with ExitStack() as stack:

        def restart() -> None:
            if len(world.clock.slept) == 2:
                stack.enter_context(feishu_api(api, port=port))

        world.clock.meanwhile = restart
        world.reply()
    assert [request.json["uuid"] for request in world.sent()] == ["u-1"]
    assert world.clock.slept == [1, 2]


@pytest.mark.parametrize("trouble", ["cut", "reset", "half"])
def test_nothing_below_repeats_a_frame_whose_fate_is_unknown(feishu, trouble):
    url = f"{CARDS}/7/elements/answer/content"
    feishu.answers("PUT", url, {"code": 0})
    feishu.answers("PUT", url, {"code": 0}, trouble=trouble)

    async def two(client: FeishuClient) -> None:
        await client.stream_text("7", "answer", "x", 1, "a")
        with pytest.raises(Unreachable):
            await client.stream_text("7", "answer", "xy", 2, "b")

    feishu.run(two)
    assert [request.json["sequence"] for request in feishu.sent("/cardkit/")] == [1, 2]


def test_repeating_ends_with_the_attempts(feishu):
    feishu.answers("POST", REPLY, status=503)
    with pytest.raises(Unreachable, match="HTTP 503"):
        feishu.reply()
    assert len(feishu.sent()) == 4


def test_feishus_own_wait_is_honoured(feishu):
    limited = {"code": 99991400, "msg": "limit"}
    feishu.answers("POST", REPLY, limited, status=429, headers={"x-ogw-ratelimit-reset": "7"})
    feishu.answers("POST", REPLY, stored_answer("api_im_message_reply__resp"))
    feishu.reply()
    assert feishu.clock.slept == [7]


def test_a_wait_beyond_the_limit_is_left_to_the_caller(feishu):
    feishu.fails("POST", REPLY, "error_99991400_rate_limited")
    with pytest.raises(FeishuError) as caught:
        feishu.reply()
    assert caught.value.retry_after_s == 52
    assert feishu.clock.slept == []


@pytest.mark.parametrize(
    "name", ["error_230011", "error_230002", "error_230071", "error_230099_11310_tables"]
)
def test_what_will_not_pass_is_not_repeated(feishu, name):
    feishu.fails("POST", REPLY, name)
    with pytest.raises(FeishuError):
        feishu.reply()
    assert len(feishu.sent()) == 1


def test_wrong_credentials_are_an_alert_and_not_repeated():
    with feishu_api() as api:
        world = Feishu(api)
        world.answers("POST", TOKEN, {"code": 10014, "msg": "app secret invalid"}, status=400)
        with pytest.raises(FeishuError) as caught:
            world.reply()
    assert [request.path for request in api.asked] == [TOKEN]
    assert caught.value.action is Action.ALERT


def test_an_answer_without_its_id_leaves_the_outcome_unknown(feishu):
    feishu.answers("POST", REPLY, {"code": 0, "data": {}})
    with pytest.raises(Unreachable, match="message_id"):
        feishu.reply()


def test_the_sixth_reply_to_a_chat_waits_for_its_turn(feishu):
    feishu.answers("POST", REPLY, stored_answer("api_im_message_reply__resp"))

    async def seven(client: FeishuClient) -> None:
        for number in range(6):
            await reply(client, chat_id="oc_1")
            assert (number < 5) == (feishu.clock.slept == [])
        await reply(client, chat_id="oc_2")

    feishu.run(seven)
    assert feishu.clock.slept == [pytest.approx(1.05)]


def test_redirects_are_not_followed(feishu):
    elsewhere = {"Location": f"{feishu.api.url}/evil"}
    feishu.answers("POST", REPLY, status=302, headers=elsewhere)
    with pytest.raises(Unreachable):
        feishu.reply()
    assert not feishu.sent("/evil")


def test_neither_logs_nor_errors_hold_secrets_or_text(feishu):
    feishu.fails("POST", REPLY, "error_230020")
    with capture_logs() as logs, pytest.raises(FeishuError) as caught:
        feishu.reply()
    seen = repr(logs) + str(caught.value) + repr(caught.value)
    assert {entry["event"] for entry in logs} == {"feishu.call", "feishu.retry"}
    assert [entry["attempt"] for entry in logs if entry["event"] == "feishu.retry"] == [1, 2, 3]
    assert all(word not in seen for word in (SECRET, TEXT, "t-1"))
    assert "202409131613579778D691D6E05516DE2D" in seen


def test_speech_is_recognised_twenty_times_a_second_at_most(feishu):
    path = "/open-apis/speech_to_text/v1/speech/file_recognize"
    for _ in range(45):
        feishu.answers("POST", path, {"code": 0, "data": {"recognition_text": "yes"}})

    async def many(client: FeishuClient) -> None:
        for _ in range(45):
            assert await client.speech.recognise("AAAA") == "yes"

    feishu.run(many)
    assert feishu.clock.now > 2
