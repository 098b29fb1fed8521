"""Our requests are the ones that Feishu's own SDK would send: method, address, query, body."""

import asyncio
import json
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from bot.feishu.client import FeishuClient
from tests.support.feishu_api import Answer, FeishuApi, feishu_api

ANSWER = {
    "code": 0,
    "msg": "ok",
    "tenant_access_token": "t-1",
    "expire": 7200,
    "data": {"message_id": "om_1", "card_id": "7", "reaction_id": "r_1", "items": [], "users": []},
}
CARD = {"schema": "2.0", "body": {"elements": []}}
CARD_JSON = json.dumps(CARD, separators=(",", ":"))


@pytest.fixture(scope="module")
def lark() -> Iterator[Any]:
    # The SDK warns on import; its 1.6 s and 170 MB are why only this test imports it.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import lark_oapi
        import lark_oapi.api.cardkit.v1
        import lark_oapi.api.contact.v3
        import lark_oapi.api.im.v1
    yield lark_oapi
    # Its long connection opens an event loop on import and never closes it.
    lark_oapi.ws.client.loop.close()


def sdk_requests(lark: Any, domain: str) -> dict[str, Any]:
    im, kit, contact = lark.api.im.v1, lark.api.cardkit.v1, lark.api.contact.v3
    client = lark.Client.builder().app_id("cli_1").app_secret("s").domain(domain).build()
    reply = im.ReplyMessageRequestBody.builder().content("{}").msg_type("interactive")
    reply = reply.reply_in_thread(True).uuid("u").build()
    create = im.CreateMessageRequestBody.builder().receive_id("oc_1").msg_type("text")
    create = create.content("{}").uuid("u").build()
    reaction = im.CreateMessageReactionRequestBody.builder().reaction_type(
        im.Emoji.builder().emoji_type("Typing").build()
    )
    card = kit.Card.builder().type("card_json").data(CARD_JSON).build()
    listing = im.ListMessageRequest.builder().container_id_type("chat").container_id("oc_1")
    listing = listing.start_time("1").end_time("2").sort_type("ByCreateTimeDesc").page_size(9)
    messages, elements = client.im.v1.message, client.cardkit.v1.card_element
    content = kit.ContentCardElementRequestBody.builder().content("x").sequence(1).uuid("u")
    settings = kit.SettingsCardRequestBody.builder().settings('{"config":{}}').sequence(2).uuid("u")
    update = kit.UpdateCardRequestBody.builder().card(card).sequence(3).uuid("u").build()
    created = kit.CreateCardRequestBody.builder().type("card_json").data(CARD_JSON).build()
    batch = contact.BasicBatchUserRequestBody.builder().user_ids(["ou_1"]).build()
    patch = im.PatchMessageRequestBody.builder().content("{}").build()
    resource = im.GetMessageResourceRequest.builder().message_id("om_1").file_key("f_1")
    return {
        "reply": lambda: messages.reply(
            im.ReplyMessageRequest.builder().message_id("om_1").request_body(reply).build()
        ),
        "send": lambda: messages.create(
            im.CreateMessageRequest.builder()
            .receive_id_type("chat_id")
            .request_body(create)
            .build()
        ),
        "patch_card": lambda: messages.patch(
            im.PatchMessageRequest.builder().message_id("om_1").request_body(patch).build()
        ),
        "get_message": lambda: messages.get(
            im.GetMessageRequest.builder().message_id("om_1").build()
        ),
        "list_messages": lambda: messages.list(listing.build()),
        "delete_message": lambda: messages.delete(
            im.DeleteMessageRequest.builder().message_id("om_1").build()
        ),
        "add_reaction": lambda: client.im.v1.message_reaction.create(
            im.CreateMessageReactionRequest.builder()
            .message_id("om_1")
            .request_body(reaction.build())
            .build()
        ),
        "delete_reaction": lambda: client.im.v1.message_reaction.delete(
            im.DeleteMessageReactionRequest.builder().message_id("om_1").reaction_id("r_1").build()
        ),
        "names": lambda: client.contact.v3.user.basic_batch(
            contact.BasicBatchUserRequest.builder()
            .user_id_type("open_id")
            .request_body(batch)
            .build()
        ),
        "chat_info": lambda: client.im.v1.chat.get(
            im.GetChatRequest.builder().chat_id("oc_1").build()
        ),
        "chat_members": lambda: client.im.v1.chat_members.get(
            im.GetChatMembersRequest.builder()
            .chat_id("oc_1")
            .member_id_type("open_id")
            .page_size(100)
            .build()
        ),
        "download_resource": lambda: client.im.v1.message_resource.get(
            resource.type("image").build()
        ),
        "create_card": lambda: client.cardkit.v1.card.create(
            kit.CreateCardRequest.builder().request_body(created).build()
        ),
        "stream_text": lambda: elements.content(
            kit.ContentCardElementRequest.builder()
            .card_id("7")
            .element_id("answer")
            .request_body(content.build())
            .build()
        ),
        "card_settings": lambda: client.cardkit.v1.card.settings(
            kit.SettingsCardRequest.builder().card_id("7").request_body(settings.build()).build()
        ),
        "update_card": lambda: client.cardkit.v1.card.update(
            kit.UpdateCardRequest.builder().card_id("7").request_body(update).build()
        ),
    }


OURS: dict[str, Any] = {
    "reply": lambda c: c.reply(
        "om_1",
        chat_id="oc_1",
        msg_type="interactive",
        content="{}",
        uuid="u",
        reply_in_thread=True,
    ),
    "send": lambda c: c.send("oc_1", "chat_id", msg_type="text", content="{}", uuid="u"),
    "patch_card": lambda c: c.patch_card("om_1", "{}"),
    "get_message": lambda c: c.get_message("om_1"),
    "list_messages": lambda c: c.list_messages(
        "chat", "oc_1", start_s=1, end_s=2, descending=True, page_size=9
    ),
    "delete_message": lambda c: c.delete_message("om_1"),
    "add_reaction": lambda c: c.add_reaction("om_1", "Typing"),
    "delete_reaction": lambda c: c.delete_reaction("om_1", "r_1"),
    "names": lambda c: c.names(["ou_1"]),
    "chat_info": lambda c: c.chat_info("oc_1"),
    "chat_members": lambda c: c.chat_members("oc_1"),
    "download_resource": lambda c: c.download_resource("om_1", "f_1", "image", 999),
    "create_card": lambda c: c.create_card(CARD),
    "stream_text": lambda c: c.stream_text("7", "answer", "x", 1, "u"),
    "card_settings": lambda c: c.card_settings("7", {"config": {}}, 2, "u"),
    "update_card": lambda c: c.update_card("7", CARD, 3, "u"),
}


def last_request(api: FeishuApi) -> tuple[Any, ...]:
    asked = api.asked[-1]
    return asked.method, asked.path, asked.query, asked.json


@pytest.mark.parametrize("name", OURS)
def test_our_request_is_the_sdks(lark, name):
    async def ours(domain: str) -> None:
        client = FeishuClient(domain, "cli_1", "s")
        await OURS[name](client)
        await client.close()

    with feishu_api() as api:
        api.otherwise = Answer(json.dumps(ANSWER).encode())
        asyncio.run(ours(api.url))
        sent = last_request(api)
        asked = len(api.asked)
        sdk_requests(lark, api.url)[name]()
        assert len(api.asked) > asked
        assert sent == last_request(api)
