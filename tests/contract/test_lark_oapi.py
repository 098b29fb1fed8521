"""lark-oapi as Feishu's own description of the platform: our requests are the ones that it sends,
what our parsers read is in its models, and it can drive the stand-in platform.

What it does not know is named here with its source.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.feishu.events import (
    CARD_ACTION,
    MESSAGE_RECALLED,
    MESSAGE_RECEIVED,
    parse_card_action,
    parse_delivery,
    parse_envelope,
    parse_message,
    parse_retraction,
)
from bot.feishu.models import chat_info, members_of_page, raw_message, sent_message
from bot.feishu.other_events import (
    CHAT_EVENTS,
    REACTION_ADDED,
    REACTION_REMOVED,
    parse_chat_news,
    parse_reaction,
)
from tests.support.client_calls import CALLS, CARD, METHODS, answering_api, sent_by
from tests.support.feishu_api import feishu_api
from tests.support.lark_sdk import event_types, is_known, lark_oapi, noting

DATA = Path(__file__).parents[1] / "data" / "feishu"
CARD_JSON = json.dumps(CARD, separators=(",", ":"))

# Client methods whose endpoints lark-oapi 1.7.5 has no builder for.
WITHOUT_BUILDER = {
    "bot_info": "GET /open-apis/bot/v3/info: open.feishu.cn, bot-v3/bot/get",
    "send_ephemeral": "POST /open-apis/ephemeral/v1/send: im-v1/message-card, ephemeral cards",
    "delete_ephemeral": "POST /open-apis/ephemeral/v1/delete: the same page",
}
# Sent as forms, whose boundaries differ; the acceptance run compares their fields.
FORMS = {"upload_file", "upload_image"}


@pytest.fixture(scope="module")
def lark() -> Iterator[Any]:
    with lark_oapi() as lark:
        yield lark


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
    history = im.ListMessageRequest.builder().container_id_type("chat").container_id("oc_1")
    history = history.start_time("1").end_time("2").sort_type("ByCreateTimeAsc").page_size(9)
    history = history.page_token("p").card_msg_content_type("user_card_content")
    history = history.with_sender_name("true")
    messages, elements = client.im.v1.message, client.cardkit.v1.card_element
    content = kit.ContentCardElementRequestBody.builder().content("x").sequence(1).uuid("u")
    settings = kit.SettingsCardRequestBody.builder().settings('{"config":{}}').sequence(2).uuid("u")
    update = kit.UpdateCardRequestBody.builder().card(card).sequence(3).uuid("u").build()
    actions = kit.BatchUpdateCardRequestBody.builder().actions('[{"action":"a"}]')
    actions = actions.sequence(4).uuid("u").build()
    created = kit.CreateCardRequestBody.builder().type("card_json").data(CARD_JSON).build()
    batch = contact.BasicBatchUserRequestBody.builder().user_ids(["ou_1"]).build()
    patch = im.PatchMessageRequestBody.builder().content("{}").build()
    resource = im.GetMessageResourceRequest.builder().message_id("om_1").file_key("f_1")
    scopes = lark.api.application.v6.ListScopeRequest.builder().build()
    everybody = im.GetChatMembersRequest.builder().chat_id("oc_1").member_id_type("open_id")

    def members() -> Any:
        return client.im.v1.chat_members.get(everybody.page_size(100).build())

    return {
        "granted_scopes": lambda: client.application.v6.scope.list(scopes),
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
        "history_page": lambda: messages.list(history.build()),
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
        "chat_members": members,
        "member_names": members,
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
        "batch_update_card": lambda: client.cardkit.v1.card.batch_update(
            kit.BatchUpdateCardRequest.builder().card_id("7").request_body(actions).build()
        ),
        "update_card": lambda: client.cardkit.v1.card.update(
            kit.UpdateCardRequest.builder().card_id("7").request_body(update).build()
        ),
    }


def test_every_method_of_the_client_is_compared_or_named():
    assert set(CALLS) == METHODS
    assert set(sdk_names()) | set(WITHOUT_BUILDER) | FORMS == METHODS


def sdk_names() -> set[str]:
    return METHODS - set(WITHOUT_BUILDER) - FORMS


@pytest.mark.parametrize("name", sorted(sdk_names()))
def test_our_request_is_the_sdks(lark: Any, name: str):
    with feishu_api(answering_api()) as api:
        ours = sent_by(name, api)
        asked = len(api.asked)
        sdk_requests(lark, api.url)[name]()
        assert len(api.asked) > asked
        sdks = api.asked[-1]
    assert (ours.method, ours.path, ours.query, ours.json) == (
        sdks.method,
        sdks.path,
        sdks.query,
        sdks.json,
    )


# Events


def chat_news(envelope: Any) -> object:
    return parse_chat_news(envelope, received_ms=0)


PARSERS: dict[str, Callable[[Any], object]] = {
    MESSAGE_RECEIVED: parse_message,
    MESSAGE_RECALLED: parse_retraction,
    CARD_ACTION: parse_card_action,
    REACTION_ADDED: parse_reaction,
    REACTION_REMOVED: parse_reaction,
    **dict.fromkeys(CHAT_EVENTS, chat_news),
}
# Read of messages that are fetched, although the SDK's models do not have it.
NOT_IN_THE_MODELS = {
    "items[].mentions[].mentioned_type": "im-v1/message/events/receive; one parser reads both",
}


def pushed() -> dict[str, list[Any]]:
    """The stored events by type."""
    found: dict[str, list[Any]] = {}
    for file in sorted(DATA.glob("*.json")):
        event = json.loads(file.read_text(encoding="utf-8"))
        kind = event.get("header", {}).get("event_type") if isinstance(event, dict) else None
        if kind and "event" in event:
            found.setdefault(kind, []).append(event)
    return found


class Top:
    """A model whose fields are given."""

    def __init__(self, types: dict[str, Any]) -> None:
        self._types = types


@pytest.mark.parametrize("kind", PARSERS)
def test_what_a_parser_reads_of_an_event_is_in_the_sdks_model(lark: Any, kind: str):
    """A parser of several kinds may look for what only one of them has."""
    read: set[str] = set()
    for event in pushed()[kind]:
        noted = noting(event, "", read)
        parse_delivery(noted)
        PARSERS[kind](parse_envelope(noted))
    alike = [other for other in PARSERS if PARSERS[other] is PARSERS[kind]]
    models = [Top(event_types(lark, other)) for other in alike]
    assert {way for way in read if not any(is_known(way, model) for model in models)} == set()
    assert any(is_known(way, Top(event_types(lark, kind))) for way in read if way[:6] == "event.")
    assert len(read) > 8


def test_a_field_that_feishu_does_not_have_would_be_found(lark: Any):
    model = Top(event_types(lark, MESSAGE_RECEIVED))
    assert is_known("event.message.mentions[].id.open_id", model)
    for way in ("event.message.thread", "event.messages", "event.message.mentions[].open_id"):
        assert not is_known(way, model)


# Answers

ANSWERS: dict[str, tuple[str, str, Callable[[Any], object]]] = {
    "api_im_message_reply__resp": ("im.v1", "ReplyMessageResponseBody", sent_message),
    "api_im_message_create__resp": ("im.v1", "CreateMessageResponseBody", sent_message),
    "api_im_message_get__resp": ("im.v1", "GetMessageResponseBody", lambda data: raw_items(data)),
    "api_im_message_get_merge_forward__resp": (
        "im.v1", "GetMessageResponseBody", lambda data: raw_items(data)
    ),
    "api_im_message_list__resp": ("im.v1", "ListMessageResponseBody", lambda data: raw_items(data)),
    "api_im_chat_get__resp": ("im.v1", "GetChatResponseBody", chat_info),
    "api_im_chat_members__resp": ("im.v1", "GetChatMembersResponseBody", members_of_page),
}  # fmt: skip


def raw_items(data: Any) -> object:
    return [raw_message(item) for item in data["items"]]


@pytest.mark.parametrize("name", ANSWERS)
def test_what_is_read_of_an_answer_is_in_the_sdks_model(lark: Any, name: str):
    service, model, parse = ANSWERS[name]
    read: set[str] = set()
    answer = json.loads((DATA / f"{name}.json").read_text(encoding="utf-8"))
    parse(noting(answer["data"], "", read))
    assert read
    body = getattr(getattr(lark.api, service.split(".")[0]).v1, model)
    assert {way for way in read if not is_known(way, body)} <= set(NOT_IN_THE_MODELS)
