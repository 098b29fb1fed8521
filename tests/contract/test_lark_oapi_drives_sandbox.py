"""Feishu's own client drives the stand-in platform through every call that both have, and finds in
its answers the fields and types that the SDK's models say.
"""

from __future__ import annotations

import base64
import importlib
import io
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests

from lab.doubles.processes import APP, PlatformDouble, running_platform
from sandbox.api import ENDPOINTS
from sandbox.world.user_scopes import USER_SCOPES
from tests.support.client_calls import PIXEL
from tests.support.lark_sdk import Findings, lark_oapi

# What the platform offers and lark-oapi 1.7.5 has no method for.
WITHOUT_METHOD = {
    "GET /bot/v3/info": "open.feishu.cn, bot-v3/bot/get",
    "GET /sheets/v2/spreadsheets/<spreadsheet_token>/metainfo": "open.feishu.cn, sheets-v2",
    "GET /sheets/v2/spreadsheets/<spreadsheet_token>/values/<cells>": "the same section",
    "POST /ephemeral/v1/send": "open.feishu.cn, im-v1/message-card, ephemeral cards",
    "POST /ephemeral/v1/delete": "the same page",
}
# In the answers of the platform, but not in the SDK's models.
NOT_IN_THE_MODELS: dict[str, str] = {}
CARD = {
    "schema": "2.0",
    "config": {"streaming_mode": True},
    "body": {"elements": [{"tag": "markdown", "element_id": "answer", "content": "…"}]},
}


@pytest.fixture(scope="module")
def lark() -> Iterator[Any]:
    with lark_oapi() as lark:
        yield lark


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlatformDouble]:
    folder = tmp_path_factory.mktemp("platform")
    with running_platform(folder, "http://127.0.0.1:9/nobody-listens") as running:
        yield running


class Driver:
    """The SDK's client, with short builders and a record of what the answers hold."""

    def __init__(self, lark: Any, platform: PlatformDouble) -> None:
        builder = lark.Client.builder().app_id(APP["FEISHU_APP_ID"])
        builder = builder.app_secret(APP["FEISHU_APP_SECRET"]).domain(platform.url)
        self.client = builder.enable_set_token(True).build()
        self.findings = Findings(digits=True)
        self.as_user: Any = None

    def speak_as(self, user_access_token: str) -> None:
        """The calls from now on are those of this person."""
        option = importlib.import_module("lark_oapi.core.model").RequestOption.builder()
        self.as_user = option.user_access_token(user_access_token).build()

    def call(self, service: str, name: str, method: Callable[..., Any], **fields: Any) -> Any:
        """Makes the request `name` of these fields; `body` are those of its body, or the body."""
        model = importlib.import_module(f"lark_oapi.api.{service}.model")
        body = fields.pop("body", None)
        request = getattr(model, f"{name}Request").builder()
        for key, value in fields.items():
            request = getattr(request, key)(value)
        if isinstance(body, dict):
            made = getattr(model, f"{name}RequestBody").builder()
            for key, value in body.items():
                made = getattr(made, key)(value)
            body = made.build()
        if body is not None:
            request = request.request_body(body)
        answer = method(request.build(), *([self.as_user] if self.as_user else []))
        assert answer.success(), f"{name}: {answer.code} {answer.msg}"
        self._look(name, answer)
        return answer.data if hasattr(answer, "data") else None

    def _look(self, name: str, answer: Any) -> None:
        shape = getattr(type(answer), "_types", {})
        raw = answer.raw.content
        if "data" in shape and raw[:1] == b"{":
            self.findings.look(name, shape["data"], json.loads(raw).get("data", {}))


def spoken(platform: PlatformDouble, **more: Any) -> tuple[str, str]:
    """A group of the platform, and a message that Alice wrote there."""
    state = platform.state()
    chat = next(c["chat_id"] for c in state["chats"] if c["name"] == "Launch team")
    alice = next(p["open_id"] for p in state["people"] if p["name"] == "Alice")
    return chat, platform.say(alice, chat, "hello", **more)


def messages(drive: Driver, platform: PlatformDouble) -> None:
    im, chat, said = drive.client.im.v1, *spoken(platform)
    text = json.dumps({"text": "hi"})
    made = drive.call(
        "im.v1", "CreateMessage", im.message.create, receive_id_type="chat_id",
        body={"receive_id": chat, "msg_type": "text", "content": text, "uuid": "1"},
    )  # fmt: skip
    card = {**CARD, "config": {"update_multi": True}}
    reply = drive.call(
        "im.v1", "ReplyMessage", im.message.reply, message_id=said,
        body={"msg_type": "interactive", "content": json.dumps(card), "reply_in_thread": True},
    )  # fmt: skip
    drive.call("im.v1", "PatchMessage", im.message.patch, message_id=reply.message_id,
               body={"content": json.dumps(card)})  # fmt: skip
    for found in (reply.message_id, said):
        drive.call("im.v1", "GetMessage", im.message.get, message_id=found)
    drive.call("im.v1", "ListMessage", im.message.list, container_id_type="chat",
               container_id=chat, page_size=5, sort_type="ByCreateTimeDesc")  # fmt: skip
    emoji = importlib.import_module("lark_oapi.api.im.v1").Emoji.builder().emoji_type("OK").build()
    reacted = drive.call("im.v1", "CreateMessageReaction", im.message_reaction.create,
                         message_id=said, body={"reaction_type": emoji})  # fmt: skip
    drive.call("im.v1", "DeleteMessageReaction", im.message_reaction.delete, message_id=said,
               reaction_id=reacted.reaction_id)  # fmt: skip
    drive.call("im.v1", "DeleteMessage", im.message.delete, message_id=made.message_id)


def files(drive: Driver, platform: PlatformDouble) -> None:
    im = drive.client.im.v1
    drive.call("im.v1", "CreateImage", im.image.create,
               body={"image_type": "message", "image": io.BytesIO(PIXEL)})  # fmt: skip
    text = io.BytesIO(b"words")
    drive.call("im.v1", "CreateFile", im.file.create,
               body={"file_type": "stream", "file_name": "a.txt", "file": text})  # fmt: skip
    chat, picture = spoken(platform, message_type="image")
    found = next(m for m in platform.messages(chat) if m["message_id"] == picture)
    drive.call("im.v1", "GetMessageResource", im.message_resource.get, message_id=picture,
               file_key=json.loads(found["content"])["image_key"], type="image")  # fmt: skip


def directory(drive: Driver, platform: PlatformDouble) -> None:
    im, (chat, _) = drive.client.im.v1, spoken(platform)
    drive.call("im.v1", "GetChat", im.chat.get, chat_id=chat)
    members = drive.call("im.v1", "GetChatMembers", im.chat_members.get, chat_id=chat,
                         member_id_type="open_id", page_size=10)  # fmt: skip
    drive.call("im.v1", "ListChat", im.chat.list, page_size=10)
    drive.call("contact.v3", "GetUser", drive.client.contact.v3.user.get,
               user_id_type="open_id", user_id=members.items[0].member_id)  # fmt: skip
    drive.call("contact.v3", "BasicBatchUser", drive.client.contact.v3.user.basic_batch,
               user_id_type="open_id", body={"user_ids": [members.items[0].member_id]})  # fmt: skip
    application, event = drive.client.application.v6, drive.client.event.v1
    drive.call("application.v6", "ListScope", application.scope.list)
    drive.call("event.v1", "GetConnection", event.connection.get)
    known = {"app_id": APP["FEISHU_APP_ID"], "app_secret": APP["FEISHU_APP_SECRET"]}
    auth = drive.client.auth.v3
    drive.call("auth.v3", "InternalTenantAccessToken", auth.tenant_access_token.internal,
               body=known)  # fmt: skip
    drive.call("auth.v3", "InternalAppAccessToken", auth.app_access_token.internal, body=known)


def cards(drive: Driver, platform: PlatformDouble) -> None:
    kit, (chat, _) = drive.client.cardkit.v1, spoken(platform)
    made = drive.call("cardkit.v1", "CreateCard", kit.card.create,
                      body={"type": "card_json", "data": json.dumps(CARD)})  # fmt: skip
    shown = json.dumps({"type": "card", "data": {"card_id": made.card_id}})
    drive.call("im.v1", "CreateMessage", drive.client.im.v1.message.create,
               receive_id_type="chat_id",
               body={"receive_id": chat, "msg_type": "interactive", "content": shown})  # fmt: skip
    drive.call("cardkit.v1", "ContentCardElement", kit.card_element.content, card_id=made.card_id,
               element_id="answer", body={"content": "words", "sequence": 1})  # fmt: skip
    off = json.dumps({"config": {"streaming_mode": False}})
    drive.call("cardkit.v1", "SettingsCard", kit.card.settings, card_id=made.card_id,
               body={"settings": off, "sequence": 2})  # fmt: skip
    actions = [{"action": "delete_elements", "params": {"element_ids": ["answer"]}}]
    drive.call("cardkit.v1", "BatchUpdateCard", kit.card.batch_update, card_id=made.card_id,
               body={"actions": json.dumps(actions), "sequence": 3})  # fmt: skip
    whole = importlib.import_module("lark_oapi.api.cardkit.v1").Card.builder()
    whole = whole.type("card_json").data(json.dumps({**CARD, "config": {}})).build()
    drive.call("cardkit.v1", "UpdateCard", kit.card.update, card_id=made.card_id,
               body={"card": whole, "sequence": 4})  # fmt: skip


def people(drive: Driver, platform: PlatformDouble) -> None:
    alice = next(p["open_id"] for p in platform.state()["people"] if p["name"] == "Alice")
    drive.speak_as(connected(platform, alice, " ".join(USER_SCOPES)))
    drive.call("authen.v1", "GetUserInfo", drive.client.authen.v1.user_info.get)


def documents(drive: Driver, platform: PlatformDouble) -> None:
    alice = next(p["open_id"] for p in platform.state()["people"] if p["name"] == "Alice")

    def written(kind: str, **contents: Any) -> Any:
        about = {
            "as": alice,
            "title": "Plan",
            "kind": kind,
            "wiki": True,
            "link": "tenant_readable",
        }
        return platform.post("/documents", **about, **contents)

    docx = written("docx", markdown="# Plan")
    comment = {"as": alice, "token": docx["token"], "text": "Good", "quote": "Plan"}
    thread = platform.post("/documents/comment", **comment)["comment_id"]
    client = drive.client
    drive.call("docs.v1", "GetContent", client.docs.v1.content.get, doc_token=docx["token"],
               doc_type="docx", content_type="markdown")  # fmt: skip
    of_docx = {"document_id": docx["token"]}
    drive.call("docx.v1", "GetDocument", client.docx.v1.document.get, **of_docx)
    drive.call("docx.v1", "ListDocumentBlock", client.docx.v1.document_block.list, **of_docx)
    drive.call("wiki.v2", "GetNodeSpace", client.wiki.v2.space.get_node, token=docx["node_token"])
    drive.call("drive.v1", "ListFileComment", client.drive.v1.file_comment.list,
               file_token=docx["token"], file_type="docx")  # fmt: skip
    comments(drive, {"file_token": docx["token"], "file_type": "docx"}, thread)
    shared = {"token": docx["token"], "type": "docx"}
    drive.call("drive.v2", "GetPermissionPublic", client.drive.v2.permission_public.get, **shared)
    members = client.drive.v1.permission_member
    drive.call("drive.v1", "ListPermissionMember", members.list, **shared)
    drive.call("drive.v1", "AuthPermissionMember", members.auth, action="view", **shared)
    filters = importlib.import_module("lark_oapi.api.search.v2.model").DocFilter.builder().build()
    drive.call("search.v2", "SearchDocWiki", client.search.v2.doc_wiki.search,
               body={"query": "plan", "doc_filter": filters, "wiki_filter": filters})  # fmt: skip
    tables(drive, written)


def comments(drive: Driver, of_file: dict[str, str], thread: str) -> None:
    v1, models = drive.client.drive.v1, importlib.import_module("lark_oapi.api.drive.v1.model")
    run = models.TextRun.builder().text("Thanks").build()
    element = models.ReplyElement.builder().type("text_run").text_run(run).build()
    content = models.ReplyContent.builder().elements([element]).build()
    reply = models.FileCommentReply.builder().content(content).build()
    replies = models.ReplyList.builder().replies([reply]).build()
    drive.call("drive.v1", "CreateFileComment", v1.file_comment.create,
               body=models.FileComment.builder().reply_list(replies).build(),
               **of_file)  # fmt: skip
    drive.call("drive.v1", "BatchQueryFileComment", v1.file_comment.batch_query,
               body={"comment_ids": [thread]}, **of_file)  # fmt: skip
    of_thread = {**of_file, "comment_id": thread}
    drive.call("drive.v1", "ListFileCommentReply", v1.file_comment_reply.list, **of_thread)
    made = drive.call("drive.v1", "CreateFileCommentReply", v1.file_comment_reply.create,
                      body={"content": content}, **of_thread)  # fmt: skip
    drive.call("drive.v1", "DeleteFileCommentReply", v1.file_comment_reply.delete,
               reply_id=made.reply_id, **of_thread)  # fmt: skip


def tables(drive: Driver, written: Callable[..., Any]) -> None:
    sheet = written("sheet", sheets=[{"title": "Stock", "rows": [["Cups", 3]]}])
    v3, of_sheet = drive.client.sheets.v3, {"spreadsheet_token": sheet["token"]}
    drive.call("sheets.v3", "GetSpreadsheet", v3.spreadsheet.get, **of_sheet)
    drive.call("sheets.v3", "QuerySpreadsheetSheet", v3.spreadsheet_sheet.query, **of_sheet)
    fields, records = [{"name": "Task", "type": 1}], [{"Task": "Slides"}]
    base = written("bitable", tables=[{"name": "T", "fields": fields, "records": records}])
    v1, of_base = drive.client.bitable.v1, {"app_token": base["token"]}
    drive.call("bitable.v1", "GetApp", v1.app.get, **of_base)
    (table,) = drive.call("bitable.v1", "ListAppTable", v1.app_table.list, **of_base).items
    of_table = {**of_base, "table_id": table.table_id}
    drive.call("bitable.v1", "ListAppTableField", v1.app_table_field.list, **of_table)
    found = drive.call("bitable.v1", "SearchAppTableRecord", v1.app_table_record.search,
                       body={"field_names": ["Task"]}, **of_table)  # fmt: skip
    assert found.total == 1


def agendas(drive: Driver, platform: PlatformDouble) -> None:
    """Events and tasks, as Alice, who has connected."""
    people = {one["name"]: one["open_id"] for one in platform.state()["people"]}
    v4 = drive.client.calendar.v4
    build = importlib.import_module("lark_oapi.api.calendar.v4.model")
    primary = drive.call("calendar.v4", "PrimaryCalendar", v4.calendar.primary)
    mine = {"calendar_id": primary.calendars[0].calendar.calendar_id}
    drive.call("calendar.v4", "PrimarysCalendar", v4.calendar.primarys, user_id_type="open_id",
               body={"user_ids": [people["Bob"]]})  # fmt: skip
    drive.call("calendar.v4", "ListFreebusy", v4.freebusy.list,
               body={"time_min": "2026-12-03T00:00:00Z", "time_max": "2026-12-04T00:00:00Z",
                     "user_id": people["Bob"]})  # fmt: skip

    def time_of(seconds: str) -> Any:
        return build.TimeInfo.builder().timestamp(seconds).timezone("Europe/Berlin").build()

    event = build.CalendarEvent.builder().summary("launch")
    event = event.start_time(time_of("1796306400")).end_time(time_of("1796310000")).build()
    made = drive.call("calendar.v4", "CreateCalendarEvent", v4.calendar_event.create,
                      idempotency_key="25fdf41b-8c80-2ce1-e94c-de8b5e7aa7e6", body=event,
                      **mine)  # fmt: skip
    bob = build.CalendarEventAttendee.builder().type("user").user_id(people["Bob"]).build()
    one = {**mine, "event_id": made.event.event_id}
    drive.call("calendar.v4", "CreateCalendarEventAttendee", v4.calendar_event_attendee.create,
               body={"attendees": [bob]}, **one)  # fmt: skip
    drive.call("calendar.v4", "InstanceViewCalendarEvent", v4.calendar_event.instance_view,
               start_time="1796300000", end_time="1796400000", **mine)  # fmt: skip
    day = build.TimeInfo.builder().date("2026-12-04").build()
    whole = build.CalendarEvent.builder().summary("fair").start_time(day).end_time(day).build()
    made = drive.call("calendar.v4", "CreateCalendarEvent", v4.calendar_event.create, body=whole,
                      **mine)  # fmt: skip
    assert made.event.end_time.date == "2026-12-04"
    drive.call("calendar.v4", "DeleteCalendarEvent", v4.calendar_event.delete, **one)

    v2, build = drive.client.task.v2, importlib.import_module("lark_oapi.api.task.v2.model")
    due = build.Due.builder().timestamp("1796306400000").is_all_day(True).build()
    member = build.Member.builder().id(people["Alice"]).type("user").role("assignee").build()
    task = build.InputTask.builder().summary("slides").due(due).members([member]).build()
    kept = drive.call("task.v2", "CreateTask", v2.task.create, body=task).task
    drive.call("task.v2", "ListTask", v2.task.list, page_size=50)
    drive.call("task.v2", "DeleteTask", v2.task.delete, task_guid=kept.guid)


def speech(drive: Driver, _: PlatformDouble) -> None:
    """A second of silence. The calls so far were a person's; this one is the app's."""
    drive.as_user = None
    build = importlib.import_module("lark_oapi.api.speech_to_text.v1.model")
    config = build.FileConfig.builder().file_id("q1w2e3r4t5y6u7i8").format("pcm")
    pcm = build.Speech.builder().speech(base64.b64encode(bytes(32_000)).decode()).build()
    drive.call("speech_to_text.v1", "FileRecognizeSpeech",
               drive.client.speech_to_text.v1.speech.file_recognize,
               body={"config": config.engine_type("16k_auto").build(), "speech": pcm})  # fmt: skip


def connected(platform: PlatformDouble, open_id: str, scope: str) -> str:
    """The access token of somebody who has approved these scopes."""
    app_id, secret = APP["FEISHU_APP_ID"], APP["FEISHU_APP_SECRET"]
    begun = requests.post(
        f"{platform.url}/oauth/v1/device_authorization",
        data={"client_id": app_id, "scope": scope},
        auth=(app_id, secret),
        timeout=30,
    ).json()
    platform.post("/grants", **{"as": open_id, "user_code": begun["user_code"]})
    body = {
        "grant_type": "urn:ietf:params:oauth:grant-type:device_code",
        "device_code": begun["device_code"],
        "client_id": app_id,
        "client_secret": secret,
    }
    url = f"{platform.url}/open-apis/authen/v2/oauth/token"
    return str(requests.post(url, json=body, timeout=30).json()["access_token"])


def test_the_official_client_uses_every_call_of_the_platform(
    lark: Any, platform: PlatformDouble
) -> None:
    drive = Driver(lark, platform)
    for part in (messages, files, directory, cards, people, documents, agendas, speech):
        part(drive, platform)

    rules = {f"{one.method} {one.rule}" for one in ENDPOINTS}
    calls = platform.get("/requests")["items"]
    used = {rule for rule in rules for call in calls if _fits(rule, call)}
    print(f"{len(calls)} calls, {len(drive.findings.fields)} fields of answers")
    assert rules - used == set(WITHOUT_METHOD)
    assert drive.findings.unknown == set(NOT_IN_THE_MODELS)
    assert drive.findings.wrong == set()
    assert len(drive.findings.fields) > 60


def _fits(rule: str, call: dict[str, Any]) -> bool:
    method, path = rule.split(" ")
    pattern = "/open-apis" + re.sub("<[a-z_]+>", "[^/]+", path)
    return bool(call["method"] == method and re.fullmatch(pattern, call["path"]))
