"""The edge: what is genuine is queued once and acknowledged; everything else changes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from flask import Flask
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from bot import webhook
from bot.intake.acceptance import Intake
from bot.queue.inbox import Inbox
from tests.support.deliveries import ENCRYPT_KEY, TOKEN, Delivery, encrypt, message_event
from tests.support.patience import limit_s

FIXTURES = Path(__file__).parents[3] / "data" / "feishu"
PUSHED = sorted(
    path.name
    for path in FIXTURES.glob("*.json")
    if path.name.startswith(("receive_", "event_", "callback_"))
)


@pytest.fixture
def inbox(database_url: str) -> Iterator[Inbox]:
    inbox = Inbox(database_url)
    yield inbox
    inbox.close()


@pytest.fixture
def client(inbox: Inbox) -> FlaskClient:
    app = Flask("edge")
    webhook.register(
        app, webhook.Edge(encrypt_key=ENCRYPT_KEY, verification_token=TOKEN, intake=Intake(inbox))
    )
    return app.test_client()


@pytest.fixture
def queued(database_url: str) -> Any:
    """The arguments of the jobs in the queue."""

    def jobs() -> list[dict[str, Any]]:
        with psycopg.connect(database_url) as connection:
            rows = connection.execute(
                "select args, lock from feishu_bot.jobs order by id"
            ).fetchall()
        return [{**args, "lock": lock} for args, lock in rows]

    return jobs


def post(client: FlaskClient, delivery: Delivery, path: str = "/webhook/event") -> TestResponse:
    return client.post(path, data=delivery.body, headers=delivery.headers)


def test_a_genuine_message_is_queued_and_acknowledged(client: FlaskClient, queued: Any) -> None:
    event = message_event("你好", chat_type="group", root_id="om_root", thread_id="omt_1")
    answer = post(client, Delivery(event))

    assert (answer.status_code, answer.json) == (200, {})
    (job,) = queued()
    assert job["lock"] == "feishu:oc_1:om_root"
    assert job["payload"]["event"] == event["event"]
    assert TOKEN not in json.dumps(job)


@pytest.mark.parametrize(
    "name",
    [name for name in PUSHED if name.startswith("event_im_chat_") and "p2p_entered" not in name],
)
def test_news_of_a_chat_is_queued_once_and_waits_for_no_conversation(
    client: FlaskClient, queued: Any, name: str
) -> None:
    event = json.loads((FIXTURES / name).read_text())
    event["header"]["token"] = TOKEN
    answers = [post(client, Delivery(event)).status_code for _ in range(2)]

    (job,) = queued()
    assert answers == [200, 200]
    assert job["lock"] is None
    assert job["payload"]["event"] == event["event"]


def test_deliveries_of_one_message_are_one_job_whatever_their_event_id(
    client: FlaskClient, queued: Any
) -> None:
    for _ in range(5):
        answer = post(client, Delivery(message_event(message_id="om_same")))
        assert answer.status_code == 200
    assert len(queued()) == 1


def test_a_comment_that_mentions_is_one_job_in_its_own_thread(
    client: FlaskClient, queued: Any
) -> None:
    name = "event_drive_notice_comment_add_v1.json"
    payload = json.loads((FIXTURES / name).read_text(encoding="utf-8"))
    payload["header"] |= {"app_id": "", "token": TOKEN}
    for event_id in ("one", "another"):
        payload["header"]["event_id"] = event_id
        assert post(client, Delivery(payload)).status_code == 200
    payload["event"] |= {"is_mentioned": False, "reply_id": "7618859513273112346"}
    assert post(client, Delivery(payload)).status_code == 200
    (job,) = queued()
    lock = "feishu:doc:TLLKdcpDro9ijQxA33ycNMabcef:7618859513273112345"
    assert job["lock"] == lock


def test_a_replay_within_the_window_is_a_duplicate_and_later_it_is_refused(
    client: FlaskClient, queued: Any
) -> None:
    genuine = Delivery(message_event())
    assert post(client, genuine).status_code == 200
    assert post(client, genuine).status_code == 200
    old = Delivery(message_event(), timestamp=str(int(time.time()) - 13 * 3600))
    assert post(client, old).status_code == 400
    assert len(queued()) == 1


def spoiled() -> dict[str, tuple[bytes, dict[str, str]]]:
    genuine = Delivery(message_event())
    other_key = Delivery(message_event(), key="another-key")
    plain = Delivery(message_event(), body=json.dumps(message_event()).encode())
    wrong_token = Delivery(message_event(token="wrong"))
    no_token = Delivery({**message_event(), "header": {"event_id": "1", "event_type": "x"}})
    future = Delivery(message_event(), timestamp=str(int(time.time()) + 7200))
    odd_time = Delivery(message_event(), timestamp="yesterday")
    list_inside = Delivery([message_event()])
    no_ids = Delivery({"schema": "2.0", "header": {"token": TOKEN}, "event": {}})
    garbage = Delivery(None, body=b'{"encrypt": "' + b"A" * 64 + b'"}')

    def without(name: str) -> tuple[bytes, dict[str, str]]:
        return genuine.body, {k: v for k, v in genuine.headers.items() if k != name}

    return {
        "signed with another key": (other_key.body, other_key.headers),
        "signature of another body": (genuine.body, other_key.headers),
        "signature not ascii": (genuine.body, {**genuine.headers, "X-Lark-Signature": "ü" * 64}),
        "no signature": without("X-Lark-Signature"),
        "no timestamp": without("X-Lark-Request-Timestamp"),
        "no nonce": without("X-Lark-Request-Nonce"),
        "truncated": (genuine.body[:-20], genuine.headers),
        "plaintext": (plain.body, plain.headers),
        "plaintext without signature": (plain.body, {"Content-Type": "application/json"}),
        "wrong token": (wrong_token.body, wrong_token.headers),
        "no token": (no_token.body, no_token.headers),
        "from the future": (future.body, future.headers),
        "timestamp is no number": (odd_time.body, odd_time.headers),
        "a list": (list_inside.body, list_inside.headers),
        "no ids": (no_ids.body, no_ids.headers),
        "cannot be decrypted": (garbage.body, garbage.headers),
        "not JSON": (b"hello", {"Content-Type": "application/json"}),
        "empty": (b"", {}),
        "deeply nested": (b"[" * 100_000, {"Content-Type": "application/json"}),
        "oversized": (b"x" * (webhook.MAX_BODY_BYTES + 1), {"Content-Type": "application/json"}),
    }


@pytest.mark.parametrize("what", sorted(spoiled()))
@pytest.mark.parametrize("path", ["/webhook/event", "/webhook/card"])
def test_whatever_is_not_genuine_gets_one_answer_and_changes_nothing(
    client: FlaskClient, queued: Any, what: str, path: str
) -> None:
    body, headers = spoiled()[what]
    answer = client.post(path, data=body, headers=headers)

    assert (answer.status_code, answer.json) == (400, {"code": 400, "msg": "bad request"})
    assert queued() == []


def test_url_verification_is_unsigned_and_answered_for_its_token(client: FlaskClient) -> None:
    check = {"type": "url_verification", "token": TOKEN, "challenge": 'a"b'}
    started = time.perf_counter()
    answer = client.post("/webhook/event", json={"encrypt": encrypt(check)})

    assert (answer.status_code, answer.json) == (200, {"challenge": 'a"b'})
    assert time.perf_counter() - started < limit_s(1)
    wrong = {**check, "token": "guess"}
    assert client.post("/webhook/event", json={"encrypt": encrypt(wrong)}).status_code == 400


@pytest.mark.parametrize("name", PUSHED)
def test_every_known_payload_is_taken_without_an_exception(client: FlaskClient, name: str) -> None:
    payload = json.loads((FIXTURES / name).read_text(encoding="utf-8"))
    if isinstance(payload.get("header"), dict):
        payload["header"]["token"] = TOKEN
    answer = post(client, Delivery(payload))

    assert answer.status_code in (200, 400)
    if "header" in payload and payload["header"].get("event_id"):
        assert answer.status_code == 200


def test_an_unknown_event_is_acknowledged_and_left(client: FlaskClient, queued: Any) -> None:
    event = message_event()
    event["header"]["event_type"] = "im.something.new_v9"
    assert post(client, Delivery(event)).status_code == 200
    assert queued() == []


def client_of_app(inbox: Inbox, app_id: str) -> FlaskClient:
    app = Flask("edge")
    intake = Intake(inbox, app_id=app_id)
    edge = webhook.Edge(encrypt_key=ENCRYPT_KEY, verification_token=TOKEN, intake=intake)
    webhook.register(app, edge)
    return app.test_client()


@pytest.mark.parametrize("kind", ["im.message.receive_v1", "card.action.trigger"])
def test_an_event_of_another_app_is_refused_and_the_log_says_why(
    inbox: Inbox, queued: Any, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    client = client_of_app(inbox, "cli_ours")
    event = message_event(app_id="cli_theirs")
    event["header"]["event_type"] = kind

    assert post(client, Delivery(event)).status_code == 400
    assert queued() == []
    said = capfd.readouterr().out
    assert "the event is for app 'cli_theirs' and FEISHU_APP_ID is 'cli_ours'" in said
    assert post(client, Delivery(message_event(app_id="cli_ours"))).status_code == 200


def test_events_of_several_tenants_are_taken_and_keep_their_tenant(
    inbox: Inbox, queued: Any
) -> None:
    client = client_of_app(inbox, "cli_1")
    for tenant in ("tenant_a", "tenant_b", ""):
        event = message_event()
        event["header"]["tenant_key"] = event["event"]["sender"]["tenant_key"] = tenant
        assert post(client, Delivery(event)).status_code == 200
    kept = [job["payload"]["header"]["tenant_key"] for job in queued()]
    assert kept == ["tenant_a", "tenant_b", ""]


def test_when_the_queue_is_away_feishu_is_asked_to_push_again(
    client: FlaskClient, inbox: Inbox
) -> None:
    inbox.close()
    answer = post(client, Delivery(message_event()))
    assert answer.status_code == 503
    assert "psycopg" not in answer.text


def test_the_edge_alone_does_not_load_what_answers() -> None:
    code = (
        "import sys, app\n"
        "heavy = {'lark_oapi', 'mcp', 'openai', 'supabase', 'aiohttp', 'rich', 'pydantic'}\n"
        "heavy = (heavy | {'requests'}) & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


@pytest.mark.parametrize(
    ("ids", "chat_type", "root"),
    [
        ({"root_id": "om_root"}, "group", "om_self"),
        ({"root_id": "om_root", "thread_id": "omt_1"}, "group", "om_root"),
        ({"root_id": "om_root"}, "p2p", "main"),
        ({"root_id": "om_root", "thread_id": "omt_1"}, "p2p", "om_root"),
    ],
)
def test_turns_of_a_conversation_wait_for_each_other_and_a_quotation_is_none(
    client: FlaskClient, queued: Any, ids: dict[str, str], chat_type: str, root: str
) -> None:
    event = message_event(message_id="om_self", chat_type=chat_type, parent_id="om_root", **ids)
    post(client, Delivery(event))

    assert queued()[0]["lock"] == f"feishu:oc_1:{root}"


def test_in_a_known_topic_group_a_root_alone_names_the_topic(
    client: FlaskClient, queued: Any, database_url: str
) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("insert into chats (chat_id, topics) values ('oc_1', true)")
    for chat in ("oc_1", "oc_other"):
        event = message_event(
            message_id=f"om_{chat}", chat_type="group", chat_id=chat, root_id="om_topic"
        )
        post(client, Delivery(event))

    locks = [job["lock"] for job in queued()]
    assert locks == ["feishu:oc_1:om_topic", "feishu:oc_other:om_oc_other"]
