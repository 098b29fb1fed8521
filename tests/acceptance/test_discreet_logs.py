"""Whatever fails, no log of any process holds what people said, or a secret."""

from __future__ import annotations

import http.client
import json
import secrets
from collections.abc import Callable, Iterator
from typing import Any, LiteralString

import psutil
import psycopg
import pytest
import requests

from lab.doubles.processes import APP, eventually
from memory.backends.embedded import Server
from tests.acceptance.test_one_command import OneCommand, one_command
from tests.support.deliveries import Delivery, message_event

pytestmark = pytest.mark.slow

WORD = "sentinel-confided"
KEY = "sk-sentinel-of-the-model"


@pytest.fixture(scope="module")
def bot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneCommand]:
    folder = tmp_path_factory.mktemp("discreet")
    with one_command(folder, LOG_LEVEL="DEBUG", OPENAI_API_KEY=KEY) as bot:
        yield bot


def echoes_its_prompt(bot: OneCommand) -> None:
    error = {"error": {"message": f"cannot answer {WORD} with key {KEY}", "type": WORD}}
    rule = {"reply": {"status": 400, "body": error}}
    bot.model.control("script", {"rules": [rule]})
    bot.model.control("mode", {"mode": "rules"})


def sends_broken_json(bot: OneCommand) -> None:
    bot.model.control("script", {"rules": [{"reply": {"text": WORD, "fault": "malformed"}}]})
    bot.model.control("mode", {"mode": "rules"})


def feishu_refuses_the_card(bot: OneCommand) -> None:
    body = {"code": 230099, "msg": f"Failed to create card content: {WORD}"}
    bot.platform.post("/faults", path_prefix="/open-apis/im", status=400, body=body, times=0)


def feishu_answers_nonsense(bot: OneCommand) -> None:
    bot.platform.post("/faults", path_prefix="/open-apis/im", body=f"<p>{WORD}</p>", times=0)


def change(bot: OneCommand, statements: LiteralString) -> None:
    with psycopg.connect(Server(bot.folder).url, autocommit=True) as database:
        database.execute(statements)


def the_database_refuses_what_is_said(bot: OneCommand) -> None:
    change(
        bot,
        "create or replace function refuse() returns trigger language plpgsql as $$"
        " begin raise exception 'refused: %', new.content using detail = new.content; end $$;"
        " create trigger refuse before insert on public.agent_messages"
        " for each row execute function refuse();",
    )


def the_database_refuses_the_row(bot: OneCommand) -> None:
    change(
        bot,
        "alter table public.agent_messages add constraint refuse"
        " check (content !~ 'sentinel') not valid;",
    )


FAULTS: dict[str, Callable[[OneCommand], None]] = {
    fault.__name__: fault
    for fault in (
        echoes_its_prompt,
        sends_broken_json,
        feishu_refuses_the_card,
        feishu_answers_nonsense,
        the_database_refuses_what_is_said,
        the_database_refuses_the_row,
    )
}


def healed(bot: OneCommand) -> None:
    bot.model.control("mode", {"mode": "echo"})
    bot.platform.forget_faults()
    change(
        bot,
        "drop trigger if exists refuse on public.agent_messages;"
        " alter table public.agent_messages drop constraint if exists refuse;",
    )


def logs(bot: OneCommand) -> str:
    database = bot.folder / "postgres.log"
    return bot.process.output() + database.read_text(encoding="utf-8", errors="replace")


def revealing(bot: OneCommand) -> list[str]:
    """The lines that hold a word or a secret."""
    words = [WORD, KEY, *(value for name, value in APP.items() if name != "FEISHU_APP_ID")]
    return [line for line in logs(bot).splitlines() if any(word in line for word in words)]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_turn_that_fails_leaves_no_words_in_a_log(bot: OneCommand, fault: str) -> None:
    before = len(bot.process.output())
    FAULTS[fault](bot)
    try:
        bot.ask(f"remember {WORD}")
        trouble = ('"level": "error"', '"level": "warning"')
        eventually(
            lambda: any(level in bot.process.output()[before:] for level in trouble),
            what=f"a line about it\n{bot.process.output()[-3000:]}",
        )
    finally:
        healed(bot)
    assert revealing(bot) == []


def odd_events() -> list[dict[str, Any]]:
    """Genuine deliveries with fields of the wrong kind."""
    deep: Any = WORD
    for _ in range(200):
        deep = [deep]
    events = [message_event(WORD, content=content) for content in (WORD, 7, None, {WORD: 1}, deep)]
    events += [message_event(WORD, mentions=odd) for odd in (WORD, [WORD], [{"key": {WORD: 1}}])]
    events += [message_event(WORD, message_type=odd) for odd in (WORD, [WORD], {"a": WORD})]
    events.append(message_event(WORD, create_time=WORD))
    for sender in (WORD, {"sender_id": WORD}, {"sender_id": {"open_id": [WORD]}}, None):
        events.append(message_event(WORD))
        events[-1]["event"]["sender"] = sender
    for event in events:
        event["header"] |= {"token": APP["FEISHU_VERIFICATION_TOKEN"]}
        event["header"] |= {"app_id": APP["FEISHU_APP_ID"], "event_id": secrets.token_hex(8)}
    return events


def untried(bot: OneCommand) -> int:
    """Events that no worker has been through yet."""
    jobs = "select count(*) from feishu_bot.jobs"
    return int(bot.rows(f"{jobs} where attempts = 0 and status in ('waiting', 'running')")[0][0])


def test_no_process_has_a_secret_among_its_arguments(bot: OneCommand) -> None:
    first = psutil.Process(bot.process.popen.pid)
    arguments = [" ".join(one.cmdline()) for one in (first, *first.children(recursive=True))]

    assert sum("bot.worker" in one for one in arguments) > 0
    secrets_of_ours = [KEY, *(APP[name] for name in APP if name != "FEISHU_APP_ID")]
    assert not [one for one in arguments if any(secret in one for secret in secrets_of_ours)]


def test_odd_events_and_strangers_leave_no_words_in_a_log(bot: OneCommand) -> None:
    for event in odd_events():
        delivery = Delivery(event, key=APP["FEISHU_ENCRYPT_KEY"])
        requests.post(
            f"{bot.url}/webhook/event", delivery.body, headers=delivery.headers, timeout=10
        )
    requests.post(f"{bot.url}/webhook/event", json={"text": WORD}, timeout=10)
    stranger = http.client.HTTPConnection("127.0.0.1", bot.port, timeout=5)
    stranger.request("POST", "/webhook/event", json.dumps({WORD: 1}), {"X-Lark-Signature": WORD})
    stranger.getresponse().read()
    stranger.close()
    bot.until_answered(bot.ask("hello"))
    eventually(lambda: untried(bot) == 0, what="every event was tried")
    assert revealing(bot) == []
