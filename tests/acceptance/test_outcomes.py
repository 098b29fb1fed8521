"""How turns end, one of each kind: console, scripts and numbers count the same of each."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections import Counter
from dataclasses import dataclass

import pytest
import requests
from flask.testing import FlaskClient

from bot.operations.console.application import create_console
from bot.operations.console.context import Sessions
from bot.settings import Settings
from lab.doubles.processes import clean_environment, eventually
from tests.acceptance.conftest import World
from tests.acceptance.test_private_answers import ASKED, offered, press, shown_after, tell
from tests.support.forking import run_module

pytestmark = pytest.mark.slow

# How many messages of people ended so. Answered: what was told in p2p, a question, two commands.
EXPECTED = {
    "answered": 4,
    "apologised": 3,
    "refused": 1,
    "stopped": 1,
    "undelivered": 1,
    "taken_back": 1,
    "silent": 1,
}
_MESSAGES = "/open-apis/im/v1/messages"


@dataclass
class Ended:
    """A world in which one of each has ended, and the questions by kind."""

    world: World
    questions: dict[str, str]
    console: FlaskClient

    def page(self, path: str) -> str:
        environ = {"REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "127.0.0.1:8080"}
        answer = self.console.get(path, base_url="http://127.0.0.1:8080", environ_overrides=environ)
        assert answer.status_code in (200, 303), answer.text
        return answer.text


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return {"WORKER_CONCURRENCY": "4", "TIMEZONE": "UTC"}


@pytest.fixture(scope="module")
def ended(processes: World) -> Ended:
    world = processes.in_a_new_group()
    world.model.control("mode", {"mode": "echo"})
    return Ended(world, one_of_each(world), signed_in(world))


def one_of_each(world: World) -> dict[str, str]:
    questions = {}
    p2p = tell(world, "Alice")
    questions["answered"], _ = world.ask("Alice", ASKED)
    world.settled(questions["answered"])
    shown_after(world, "Alice", pressed(world, questions["answered"]))
    questions["command"], _ = world.ask("Bob", "/help")
    questions["taken_back"], _ = world.ask("Bob", "forget what I asked here")
    world.settled(questions["taken_back"])
    world.platform.post(
        "/recall", **{"message_id": questions["taken_back"], "as": world.people["Bob"]}
    )
    questions["refused"] = world.say(
        "Alice", "", chat=p2p, message_type="file", file_base64="AAECAw==", file_name="a.bin"
    )
    questions["silent"] = world.say("Bob", "@陈晨 shall we have lunch?")
    questions["stopped"], questions["stop"] = stopped(world)
    for reason, reply in (
        ("wrong_key", {"status": 401, "body": {"error": {"message": "bad key"}}}),
        ("empty", {"text": ""}),
        ("quota_used_up", {"status": 402, "body": {"error": {"message": "Insufficient Balance"}}}),
    ):
        world.model.control("script", {"rules": [{"reply": reply}]})
        world.model.control("mode", {"mode": "rules"})
        questions[reason], _ = world.ask("Bob", f"what is the plan, {reason}?")
    world.model.control("mode", {"mode": "echo"})
    world.platform.disturb_replies(code=230001, msg="invalid", times=0)
    questions["undelivered"] = world.say("Bob", f"@{world.bot_name} is the door open?")
    eventually(lambda: outcome(world, questions["undelivered"]), what="it is given up")
    world.platform.forget_faults()
    eventually(lambda: over(world), what="all turns have ended")
    return questions


def pressed(world: World, question: str) -> dict[str, object]:
    """The offer after a question, whose button is pressed."""
    offer = offered(world, "Alice", question)
    press(world, "Alice", offer)
    return offer


def stopped(world: World) -> tuple[str, str]:
    slow = {"when": [{"contains": "slowly"}], "reply": {"text": "slow", "delay_s": 30}}
    world.model.control("script", {"rules": [slow, {"reply": {"text": "quick"}}]})
    world.model.control("mode", {"mode": "rules"})
    world.model.forget()
    question = world.say("Bob", f"@{world.bot_name} slowly")
    eventually(world.model.requests, what="the model is asked")
    stop, _ = world.ask("Bob", "/stop", root_id=question)
    return question, stop


def outcome(world: World, turn: str) -> tuple[str, str] | None:
    query = "select outcome, outcome_reason from agent_turns where id = %s and outcome is not null"
    found = world.rows(query, turn)
    return (found[0]["outcome"], found[0]["outcome_reason"]) if found else None


def over(world: World) -> bool:
    waiting = "select from feishu_bot.jobs where status in ('waiting', 'running')"
    return not world.rows("select from agent_turns where outcome is null") and not world.rows(
        waiting
    )


def signed_in(world: World) -> FlaskClient:
    settings = Settings(database_url=world.database_url, console_admins="ada", timezone="UTC")
    client = create_console(settings, world.database_url).test_client()
    key = Sessions(world.database_url).invite("ada")
    environ = {"REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "127.0.0.1:8080"}
    client.get(
        f"/console/enter?key={key}", base_url="http://127.0.0.1:8080", environ_overrides=environ
    )
    return client


def script(world: World, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {
        **clean_environment(),
        "PATH": os.environ["PATH"],
        "DATABASE_URL": world.database_url,
        "FEISHU_APP_ID": "cli_a1",
        "FEISHU_APP_SECRET": "s",
        "FEISHU_ENCRYPT_KEY": "k",
        "FEISHU_VERIFICATION_TOKEN": "v",
        "TIMEZONE": "UTC",
    }
    return run_module(*arguments, env=environment)


def figure(page: str, name: str) -> int:
    found = re.search(rf"<dt>{name}</dt><dd>(\d+)", page)
    assert found, f"the page has no figure {name}"
    return int(found[1])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("answered", ("answered", "")),
        ("command", ("answered", "command")),
        ("taken_back", ("taken_back", "")),
        ("refused", ("refused", "unreadable")),
        ("stopped", ("stopped", "")),
        ("wrong_key", ("apologised", "wrong_key")),
        ("empty", ("apologised", "empty")),
        ("quota_used_up", ("apologised", "quota_used_up")),
        ("undelivered", ("undelivered", "feishu 230001")),
    ],
)
def test_the_stored_value_says_how_it_ended(
    ended: Ended, kind: str, expected: tuple[str, str]
) -> None:
    assert outcome(ended.world, ended.questions[kind]) == expected


def test_every_place_counts_the_same(ended: Ended) -> None:
    """The table of kinds and places."""
    world = ended.world
    stored = Counter(EXPECTED)
    now = ended.page("/console/")
    monitor = json.loads(script(world, "scripts.monitor", "--db", "--once", "--json").stdout)
    listed = {
        kind: ended.page(f"/console/turns?outcome={kind}").count('<div class="what">')
        for kind in EXPECTED
    }
    presses = world.rows(
        "select count(*) as n from agent_turns where origin = 'private_answer'"
        " and outcome = 'answered'"
    )[0]["n"]
    assert presses == 2, "the offer that was pressed, and the answer that reached Bob in p2p"

    assert monitor["recent"]["turns"] == EXPECTED
    assert {**listed, "answered": listed["answered"] - presses} == EXPECTED
    assert figure(now, "Answers") == stored["answered"]
    assert figure(now, "Unanswered") == stored["apologised"] + stored["undelivered"]
    assert figure(now, "Stayed silent") == stored["silent"]
    asked = sum(count for kind, count in EXPECTED.items() if kind != "silent")
    people = re.findall(
        r'<td class="number"[^>]*>(?:<a [^>]*>)?(\d+)', ended.page("/console/people")
    )
    assert sum(map(int, people[::4])) == asked
    usage = ended.page("/console/usage?days=1")
    table = usage[usage.index("By person") : usage.index("By chat")]
    told = re.findall(r'<td class="number">([\d,]+)</td>', table)  # answers, tokens in and out
    assert sum(map(int, told[::3])) == stored["answered"]


def test_offers_are_nobodys_turns(ended: Ended) -> None:
    offers = "select count(*) as n from agent_turns where outcome = 'offer' and origin = 'offer'"
    assert ended.world.rows(offers)[0]["n"] >= 1
    assert "outcome=offer" not in ended.page("/console/turns")
    assert 'class="state unknown">private offer' not in ended.page("/console/turns")
    assert 'class="state unknown">private offer' in ended.page("/console/turns?outcome=offer")


def test_the_numbers_of_the_workers_are_the_same(ended: Ended) -> None:
    written = [
        json.loads(line)
        for worker in ended.world.bot.workers
        for line in worker.output().splitlines()
        if '"event": "turn"' in line and '"private": true' not in line
    ]
    counted = Counter(line["outcome"] for line in written)
    kept = Counter({k: n for k, n in EXPECTED.items() if k not in ("silent", "taken_back")})
    kept["answered"] += EXPECTED["taken_back"]  # it was answered first
    assert counted == kept


def test_health_says_that_people_get_no_answers(ended: Ended) -> None:
    said = "The last 4 questions got no answer"
    now = ended.page("/console/")
    assert 'class="card alarmed"' in now
    assert said in now
    assert "server rejects the API key × 1" in now
    assert "the model account is out of credit × 1" in now
    assert "1 answer could not be delivered" in now
    monitor = script(ended.world, "scripts.monitor", "--db", "--once")
    assert monitor.returncode == 1
    assert said in monitor.stderr
    assert "all within limits" not in monitor.stdout
    doctor = script(ended.world, "scripts.doctor", "--no-probe", "--lang", "en")
    assert said in " ".join(doctor.stdout.split())
    ready = requests.get(f"{ended.world.bot.url}/readyz", timeout=30)
    assert ready.status_code == 200
    assert "answers" in ready.json()["degraded"]
    assert said in ready.json()["checks"]["answers"]


def test_a_turns_page_names_why_there_is_no_answer(ended: Ended) -> None:
    page = ended.page(f"/console/turns/{ended.questions['wrong_key']}")
    assert 'class="state fail">no answer' in page
    assert "server rejects the API key" in page
    page = ended.page(f"/console/turns/{ended.questions['undelivered']}")
    assert 'class="state fail">not delivered' in page
    assert "feishu 230001" in page
    assert f"/console/queue/{ended.questions['undelivered']}/retry" in page


def test_what_feishu_refused_reached_who_asked_and_can_be_sent_again(ended: Ended) -> None:
    world, question = ended.world, ended.questions["undelivered"]
    chats = world.platform.state()["chats"]
    bob = world.people["Bob"]
    alone = next(c["chat_id"] for c in chats if c["mode"] == "p2p" and bob in c["members"])
    [card] = [m for m in world.platform.messages(alone) if "is the door open" in m["content"]]
    assert "Feishu didn't let me post the answer there" in card["content"]
    assert question in ended.page("/console/queue")
    assert "was told" in ended.page("/console/queue")
    listing = json.loads(script(world, "scripts.queue", "list", "--json").stdout)["failed"]
    assert [(one["reference"], one["reason"], one["excused"]) for one in listing] == [
        (question, "feishu 230001", True)
    ]

    retried = script(world, "scripts.queue", "retry", question)

    assert (retried.returncode, retried.stdout.strip()) == (0, f"retried: {question}")
    assert "is the door open?" in world.answer(question, within_s=150)
    eventually(lambda: outcome(world, question) == ("answered", ""), what="it is answered")
    assert "Nothing was given up" in ended.page("/console/queue")


def test_who_left_the_group_meanwhile_is_not_shown_its_answer(ended: Ended) -> None:
    world = ended.world.in_a_new_group()
    bob = world.people["Bob"]
    slow = {"when": [{"contains": "window"}], "reply": {"text": "It is shut.", "delay_s": 8}}
    world.model.control("script", {"rules": [slow]})
    world.model.control("mode", {"mode": "rules"})
    world.model.forget()
    question = world.say("Bob", f"@{world.bot_name} is the window shut?")
    eventually(world.model.requests, what="the model is asked")
    world.platform.post("/leave", chat_id=world.group, open_id=bob)
    gone = "select from chat_members where chat_id = %s and open_id = %s and left_at is not null"
    eventually(lambda: world.rows(gone, world.group, bob), what="it is known that he left")
    world.platform.disturb_replies(code=230001, msg="invalid", times=0)

    eventually(lambda: outcome(world, question), what="it is given up", within_s=60)
    eventually(lambda: over(world), what="the job is over")
    world.platform.forget_faults()

    assert outcome(world, question) == ("undelivered", "feishu 230001")
    chats = world.platform.state()["chats"]
    alone = next(c["chat_id"] for c in chats if c["mode"] == "p2p" and bob in c["members"])
    assert not [m for m in world.platform.messages(alone) if "window" in m["content"]]
