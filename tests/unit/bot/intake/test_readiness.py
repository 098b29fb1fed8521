"""What `/readyz` says of a memory that is away: the bot answers without it, so it stays ready."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from structlog.testing import capture_logs

from bot.intake.health import Checks
from bot.operations.doctor.result import Check, State, fail, warn
from bot.queue.inbox import QueueUnavailable, Unstored
from bot.settings import Settings
from bot.text.languages import Sentence
from memory.errors import NotMigrated

LIST = "/rest/v1/rpc/list_conversations"
ONE_PERSON = "/rest/v1/rpc/get_working_memory"
TOKEN = "/open-apis/auth/v3/tenant_access_token/internal"
SINCE = 1_772_366_400.0  # 2026-03-01T12:00:00Z


@dataclass
class Queue:
    """The queue's database as readiness asks it."""

    waits: Unstored = field(default_factory=lambda: Unstored(0, 0, None))
    away: bool = False

    def ping(self) -> None:
        self.unstored_counts()

    def unstored_counts(self) -> Unstored:
        if self.away:
            raise QueueUnavailable("gone")
        return self.waits


class Web(ThreadingHTTPServer):
    """Feishu, Supabase and the model. Of several answers for a path each is given once."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.asked: Counter[str] = Counter()
        self.answers = {TOKEN: [(200, '{"code": 0}')], ONE_PERSON: [(200, "{}")]}

    def post(self, path: str, *answers: object, status: int = 200) -> None:
        """What a POST is answered with from now on; nothing: the connection just ends."""
        self.answers[path] = []
        for answer in answers:
            self.add(path, answer, status=status)

    def add(self, path: str, answer: object, *, status: int = 200) -> None:
        """One more answer."""
        self.answers[path].append((status, json.dumps(answer)))


class Answering(BaseHTTPRequestHandler):
    server: Web

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.server.asked[self.path] += 1
        answers = self.server.answers.get(self.path)
        if answers:
            status, body = answers.pop(0) if len(answers) > 1 else answers[0]
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

    def date_time_string(self, timestamp: float | None = None) -> str:
        """The Date of every answer: the clock of these checks is right."""
        return super().date_time_string(SINCE + 60)  # type: ignore[arg-type]  # whole seconds

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def queue() -> Queue:
    return Queue()


@pytest.fixture
def web() -> Iterator[Web]:
    with Web() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def checks(queue: Queue, web: Web) -> Checks:
    settings = Settings(
        feishu_app_id="cli_a",
        feishu_domain=web.url,
        supabase_url=web.url,
        supabase_publishable_key="sb_publishable_1",
        supabase_secret_key="sb_secret_1",
        supabase_jwt_secret="a-signing-key-of-these-tests-only-0123456789",
    )
    return Checks(settings, queue, workers=None, now=lambda: SINCE + 60)  # type: ignore[arg-type]


def test_questions_without_an_answer_degrade_it_and_name_the_next_step(
    checks: Checks, web: Web
) -> None:
    web.post(LIST, [])
    red = fail(
        "answers", "No answers since 12:00.", "自 12:00 起没有回答。", command="scripts/doctor"
    )
    yellow = warn("queue", "1 job was given up.", "有 1 项任务已放弃。")
    found = replace(checks, look=lambda: [yellow, red]).run()

    assert (found.ready, found.degraded) == (True, ("answers",))
    assert found.checks["answers"] == "No answers since 12:00. Next: scripts/doctor"


def test_answers_that_some_did_not_get_degrade_it_too(checks: Checks, web: Web) -> None:
    """Feishu refuses one kind of answer while others arrive."""
    web.post(LIST, [])
    yellow = warn(
        "undelivered",
        "1 answer could not be delivered.",
        "有 1 条回答没有送达。",
        command="scripts/queue retry --all",
    )
    found = replace(checks, look=lambda: [yellow]).run()

    assert (found.ready, found.degraded) == (True, ("answers",))
    assert found.checks["answers"].endswith("not be delivered. Next: scripts/queue retry --all")


def test_a_database_that_goes_away_is_named_at_the_next_look_with_the_cause(
    checks: Checks, queue: Queue, web: Web
) -> None:
    web.post(LIST, [])
    cause = fail("database", "The disk is full.", "磁盘已满。", command="df -h")
    checks = replace(checks, look=lambda: [cause] if queue.away else [])
    assert checks.run().checks["database"] == "ok"
    queue.away = True
    found = checks.run()

    assert not found.ready
    assert found.checks["database"] == "The disk is full. Next: df -h"
    assert "answers" not in found.checks


@pytest.mark.parametrize(("off_s", "says"), [(-900, "900 s behind"), (45, "45 s ahead of")])
def test_a_wrong_clock_degrades_feishu_and_says_how_wrong_it_is(
    checks: Checks, web: Web, off_s: float, says: str
) -> None:
    web.post(LIST, [])
    found = replace(checks, now=lambda: SINCE + 60 + off_s).run()

    assert (found.ready, found.degraded) == (True, ("feishu",))
    assert f"This machine is {says} Feishu" in found.checks["feishu"]
    assert found.checks["feishu"].endswith("Next: timedatectl set-ntp true")


def test_what_people_miss_is_logged_when_it_begins_and_when_it_is_over(checks: Checks) -> None:
    red = fail("database", "Process 7 holds it.", "进程 7 占用。", command="kill 7")
    states: list[list[Check]] = [[], [red], [red], []]
    checks = replace(checks, look=lambda: states.pop(0))
    failing: frozenset[str] = frozenset()
    with capture_logs() as lines:
        while states:
            failing = checks.log_changes(failing)

    assert [(line["event"], line["check"]) for line in lines] == [
        ("health.fail", "database"),
        ("health.over", "database"),
    ]
    assert lines[0]["problem"] == "Process 7 holds it. Next: kill 7"


def test_with_everything_there_nothing_is_degraded(checks: Checks, web: Web) -> None:
    web.post(LIST, [])
    found = checks.run()

    assert (found.ready, found.degraded) == (True, ())
    assert set(found.checks.values()) == {"ok"}


NOTHING = Unstored(0, 0, None)


@pytest.mark.parametrize(
    ("path", "answers", "status", "waits", "ready", "degraded", "says"),
    [
        (LIST, (), 200, Unstored(12, 0, SINCE), True, ("memory",),
         ("memory", "away since 2026-03-01T12:00:00+00:00", "12 turns wait")),
        (LIST, ([],), 200, Unstored(3, 0, SINCE), True, ("memory",),
         ("memory", "back; 3 turns since 2026-03-01T12:00:00")),
        (LIST, ([],), 200, Unstored(0, 2, None), True, ("memory",),
         ("memory", "it refused 2 writes")),
        (LIST, ({"message": "Invalid API key"},), 401, NOTHING, True, ("memory",),
         ("memory", "check SUPABASE_SECRET_KEY (Project Settings, API keys)")),
        (ONE_PERSON, ({"code": "PGRST301", "message": "no"},), 401, NOTHING, True, ("memory",),
         ("memory", "check SUPABASE_JWT_SECRET")),
        (LIST, ({"code": 500, "message": "unexpected"},), 500, NOTHING, True, ("memory",),
         ("memory", "answers 500; look at Supabase's status page")),
        (TOKEN, ({"code": 10014},), 200, NOTHING, False, (), ("feishu", "10014")),
        (TOKEN, ({"code": 10015, "msg": "wrong secret"},), 400, NOTHING, False, (),
         ("feishu", "FEISHU_APP_SECRET is wrong (code 10015)")),
    ],
    ids=["away", "back, and behind", "back, and refused some", "the key is refused",
         "the JWT secret is wrong", "Supabase in trouble", "Feishu refuses",
         "Feishu refuses with 400"],
)  # fmt: skip
def test_trouble_of_the_memory_degrades_and_trouble_of_feishu_makes_unready(
    checks: Checks, queue: Queue, web: Web,
    path: str, answers: tuple[object, ...], status: int, waits: Unstored,
    ready: bool, degraded: tuple[str, ...], says: tuple[str, ...],
) -> None:  # fmt: skip
    web.post(LIST, [])
    web.post(path, *answers, status=status)
    queue.waits = waits
    found = checks.run()

    assert (found.ready, found.degraded) == (ready, degraded)
    name, *sentences = says
    for sentence in sentences:
        assert sentence in found.checks[name]
    assert status != 401 or "status page" not in found.checks[name]


def test_without_anything_waiting_it_is_away_since_it_was_first_found_so(
    checks: Checks, web: Web
) -> None:
    web.post(LIST, "", status=503)

    assert "away since 2026-03-01T12:01:00" in checks.run().checks["memory"]
    checks.now = lambda: SINCE + 120
    assert "away since 2026-03-01T12:01:00" in checks.run().checks["memory"]


def test_turns_that_wait_are_noticed_at_once_although_the_memory_was_fine_just_now(
    checks: Checks, queue: Queue, web: Web
) -> None:
    web.post(LIST, [])
    assert checks.run().degraded == ()
    web.post(LIST)
    assert checks.run().degraded == ()
    queue.waits = Unstored(1, 0, SINCE)

    assert checks.run().degraded == ("memory",)


def test_without_the_queue_nothing_can_be_taken(checks: Checks, queue: Queue, web: Web) -> None:
    web.post(LIST, [])
    queue.away = True

    assert not checks.run().ready


def test_missing_migrations_make_it_unready_and_are_named(checks: Checks, web: Web) -> None:
    def migrated() -> None:
        raise NotMigrated("the database lacks schema.sql: run scripts/migrate")

    web.post(LIST, [])
    checks.migrated = migrated
    found = checks.run()

    assert not found.ready
    assert found.checks["database"] == "the database lacks schema.sql: run scripts/migrate"


MODEL = "/v1/chat/completions"


def _with_model(checks: Checks, **more: str) -> None:
    base_url = f"{checks.settings.feishu_domain}/v1"
    checks.settings = replace(
        checks.settings, openai_api_key="key", openai_base_url=base_url, **more
    )


def test_a_wrong_model_key_makes_it_unready_and_is_not_asked_about_at_every_look(
    checks: Checks, web: Web
) -> None:
    web.post(LIST, [])
    web.post(MODEL, {"error": {"message": "Incorrect API key"}}, status=401)
    _with_model(checks)
    moments = iter([0.0, 29.0, 31.0])
    found = []
    for moment in moments:
        checks.clock = lambda moment=moment: moment  # type: ignore[misc]
        found.append(checks.run())

    assert [(one.ready, one.degraded) for one in found] == [(False, ())] * 3
    assert "OPENAI_API_KEY is wrong (401)" in found[0].checks["model"]
    assert web.asked[MODEL] == 2


def test_a_model_that_works_is_asked_every_ten_minutes(checks: Checks, web: Web) -> None:
    web.post(LIST, [])
    web.post(MODEL, {"choices": []})
    _with_model(checks)
    for moment in (0.0, 599.0, 601.0):
        checks.clock = lambda moment=moment: moment  # type: ignore[misc]
        assert checks.run().ready

    assert web.asked[MODEL] == 2


def test_a_model_that_worked_is_asked_again_while_people_get_no_answers(
    checks: Checks, web: Web
) -> None:
    web.post(LIST, [])
    web.post(MODEL, {"choices": []})
    _with_model(checks)
    checks.look = lambda: [fail("answers", "No answers.", "没有回答。")]
    checks.clock = lambda: 0.0
    assert checks.run().checks["model"] == "ok"

    web.post(MODEL)
    checks.clock = lambda: 31.0
    assert "The model's endpoint isn't answering" in checks.run().checks["model"]
    assert (checks.run().ready, checks.run().degraded) == (True, ("answers", "model"))


@pytest.mark.parametrize("state", ["warn", "fail"])
def test_a_model_that_worked_is_asked_at_once_when_a_question_gets_no_answer(
    checks: Checks, web: Web, state: State
) -> None:
    web.post(LIST, [])
    web.post(MODEL, {"choices": []})
    _with_model(checks)
    told: list[Check] = []
    checks.look = lambda: told
    checks.clock = lambda: 0.0
    assert checks.run().checks["model"] == "ok"

    web.post(MODEL)
    told.append(Check("answers", state, Sentence("1 got no answer.", "1 个没有回答。")))
    checks.clock = lambda: 1.0
    assert "The model's endpoint isn't answering" in checks.run().checks["model"]
    asked = web.asked[MODEL]
    checks.run()
    assert web.asked[MODEL] == asked, "once for each news"


def test_a_model_that_is_busy_degrades_and_so_does_one_with_another_behind_it(
    checks: Checks, web: Web
) -> None:
    web.post(LIST, [])
    web.post(MODEL, {}, status=429)
    _with_model(checks)
    assert (checks.run().ready, checks.run().degraded) == (True, ("model",))

    web.post(MODEL, {}, status=404)
    web.add(MODEL, {"choices": []})
    _with_model(checks, openai_fallback_model="second")
    checks.clock = lambda: 1e9
    assert (checks.run().ready, checks.run().degraded) == (True, ("model",))
