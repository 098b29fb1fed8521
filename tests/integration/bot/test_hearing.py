"""What is heard is decided on as by its steps one by one; no line is lost or decided on twice."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace

import psycopg
import pytest
import structlog

from bot.answering.hearing import HearingResult, listen
from bot.answering.request_chat import RequestChat, chat_of
from bot.conversation import ResponseDecider
from bot.listening.conversation_store import NO_TOPICS, ChatConversations
from bot.listening.decisions import Decision, IncomingMessage
from bot.listening.topics import split_by_topic
from bot.listening.transcript import MessageRecord
from bot.listening.turn_request import TurnRequest, WrittenQuestion
from bot.queue.consumer import Lease
from bot.queue.jobs import EVENT_TASK, Job
from bot.services import Services
from bot.text.roster import Person
from lab.bench.speech import CHATS, Group, written_discussions
from memory.errors import StoreUnavailable
from memory.models import MESSAGE_ORIGIN
from tests.support.whole_turns import stage

pytestmark = pytest.mark.anyio

BOT = Person("ou_bot", "Memo")
_FIRST_MS = 1_800_000_000_000
_LINES = 12  # of each discussion


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    before = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    yield
    structlog.configure(**before)


@pytest.fixture
async def services(database_url: str) -> AsyncIterator[Services]:
    async with stage(database_url) as on:
        yield on.services


@dataclass(frozen=True, slots=True)
class Said:
    """A line of the recorded talk; `by_bot` is an answer to the line before it."""

    person: str
    text: str
    at_ms: int
    message_id: str
    root_id: str = ""
    by_bot: bool = False
    is_bot: bool = False


def talk(number: int) -> list[Said]:
    """Two discussions of one group before, while and after the bot takes part in them."""
    group = Group("hearing", number, written_discussions())
    said: list[Said] = []

    def add(person: str, text: str, pause_ms: int = 4000, **more: object) -> Said:
        at = (said[-1].at_ms if said else _FIRST_MS) + pause_ms
        line = Said(person, text, at, f"om_{number}_{len(said)}", **more)  # type: ignore[arg-type]
        said.append(line)
        return line

    def overhear(most: int) -> None:
        for _ in range(most):
            line = group.line()
            add(line.person, line.text)

    for part in range(2):
        overhear(3)
        question = group.question()
        asked = add(question.person, question.text.replace("@_user_1 ", ""))
        add(BOT.open_id, f"@{question.person} {asked.text}: that is known", 800, by_bot=True)
        overhear(_LINES)
        add(question.person, "and by when?", root_id=asked.message_id)
        add("ou_robo", "deployed", is_bot=True)
        overhear(2)
        if part == 0:
            add(question.person, "good morning", 10 * 60_000)  # the conversation is over by then
    return said


def request(said: Said, chat: str) -> TurnRequest:
    root = f"{said.root_id}{chat}" if said.root_id else ""
    written = WrittenQuestion(f"{said.message_id}{chat}", "text", root, template=said.text)
    return TurnRequest(
        id=written.message_id,
        origin=MESSAGE_ORIGIN,
        sender_open_id=said.person,
        tenant_key="tenant",
        chat_id=chat,
        chat_type="group",
        text=said.text,
        create_time_ms=said.at_ms,
        sender_type="bot" if said.is_bot else "user",
        root_id=root,
        thread_id=root and "omt_1",
        written=written,
    )


def heard_in(services: Services, said: Said, chat: str) -> RequestChat:
    return chat_of(services, request(said, chat), BOT)


async def answered(store: ChatConversations, said: Said, chat: str) -> None:
    """The conversation of the chat is told of an answer, as when it is delivered."""
    record = MessageRecord(
        BOT.name, BOT.open_id, said.text, said.at_ms, True, f"{said.message_id}{chat}", ours=True
    )
    await store.go_on(chat, [record], now=said.at_ms, active_since=said.at_ms - 120_000, keep=200)


async def in_steps(services: Services, asked: TurnRequest, message: IncomingMessage) -> Decision:
    """As each step is meant: record, read the rules, find the topics, decide, store."""
    chat = chat_of(services, asked, BOT)
    store = chat.conversations
    since = message.timestamp - chat.timeout_ms
    known = await store.append(asked.chat_id, message.record(), active_since=since, keep=200)
    rules = await store.rules(services.settings)
    topics = NO_TOPICS
    if known and message.root_id is None:
        found = split_by_topic(known.messages, message.record())
        known, topics = replace(known, messages=found.messages), found.new_topics
    decider = ResponseDecider(BOT.open_id, services.settings.followup_window_seconds)
    decision = await decider.decide(message, known, mode=rules.mode)
    return await store.log_decision(message, decision, topics)


def kept(database: psycopg.Connection, chat: str) -> dict[str, list[tuple[object, ...]]]:
    """What is stored of a chat, without its name."""
    tables = {
        "chat_transcript": "message_id, root_id, author_id, content, timestamp, ours",
        "chat_topics": "message_id, topic",
        "agent_decisions": "message_id, root_id, respond, reason, tier, cue, since_bot_ms",
        "chat_conversations": "active, started_at, last_activity",
    }
    found = {}
    for table, columns in tables.items():
        query = f"select {columns} from {table} where chat_id = %s order by 1".encode()
        rows = database.execute(query, [chat]).fetchall()
        found[table] = [tuple(str(one).replace(chat, "") for one in row) for row in rows]
    return found


@pytest.mark.parametrize(("mode", "proactive"), [("", False), ("mention", False), ("", True)])
async def test_what_is_heard_is_decided_upon_and_kept_as_step_by_step(
    services: Services, connection: psycopg.Connection, mode: str, proactive: bool
) -> None:
    decided: dict[str, int] = {}
    for number in range(0, CHATS, 5):
        there, here = f"oc_steps{number}", f"oc_heard{number}"
        for chat in (there, here) if mode or proactive else ():
            connection.execute(
                "insert into chat_rules (tenant_key, chat_id, mode, proactive)"
                " values ('tenant', %s, nullif(%s, ''), %s)",
                [chat, mode, proactive],
            )
        for said in talk(number):
            if said.by_bot:
                await answered(heard_in(services, said, there).conversations, said, there)
                await answered(heard_in(services, said, here).conversations, said, here)
                continue
            heard = await listen(heard_in(services, said, here))
            message = replace(heard.message, message_id=f"{said.message_id}{there}")
            root = heard.message.root_id
            message = replace(message, root_id=root and root.replace(here, there))
            decision = await in_steps(services, request(said, there), message)
            assert heard.decision == decision, said
            decided[decision.reason] = decided.get(decision.reason, 0) + 1
        assert kept(connection, here) == kept(connection, there)
    if not mode:
        assert decided["no_trigger"] > 20
        assert len(decided) > 2, decided


def job_of(database: psycopg.Connection, asked: TurnRequest) -> Lease:
    """A lease of a job that worker 1 runs."""
    row = database.execute(
        "insert into feishu_bot.jobs (task, lock, args, status, worker_id)"
        " values (%s, %s, '{}', 'running', 1) returning id",
        [EVENT_TASK, f"feishu:{asked.chat_id}:{asked.id}"],
    ).fetchone()
    assert row
    return Lease(Job(row[0], EVENT_TASK, {}, f"feishu:{asked.chat_id}:{asked.id}", 1), 1, _taken)


def _taken(_: Job) -> None:
    raise AssertionError("nothing else waits")


def jobs(database: psycopg.Connection) -> int:
    row = database.execute("select count(*) from feishu_bot.jobs").fetchone()
    return int(row[0]) if row else -1


async def overheard(
    services: Services, database: psycopg.Connection, said: Sequence[Said], chat: str
) -> list[tuple[HearingResult, Lease]]:
    """Those lines, each in a job of its own."""
    found = []
    for one in said:
        lease = job_of(database, request(one, chat))
        found.append((await listen(heard_in(services, one, chat), lease=lease), lease))
    return found


async def test_a_silent_decision_and_the_end_of_its_job_are_one_transaction(
    services: Services, connection: psycopg.Connection
) -> None:
    before, _, answer, *after = talk(3)[2:10]
    for heard, lease in await overheard(services, connection, [before], "oc_one"):
        assert not heard.decision.respond
        assert lease.is_over
    await answered(heard_in(services, answer, "oc_one").conversations, answer, "oc_one")
    found = await overheard(services, connection, after, "oc_one")

    assert [lease.is_over for _, lease in found] == [not h.decision.respond for h, _ in found]
    assert jobs(connection) == sum(heard.decision.respond for heard, _ in found)


async def test_a_chat_that_wants_unasked_answers_ends_its_jobs_when_all_is_noted(
    services: Services, connection: psycopg.Connection
) -> None:
    connection.execute(
        "insert into chat_rules (tenant_key, chat_id, proactive) values ('tenant', 'oc_un', true)"
    )
    [(heard, lease)] = await overheard(services, connection, talk(5)[:1], "oc_un")

    assert not heard.decision.respond
    assert not lease.is_over
    assert jobs(connection) == 1


async def test_a_job_stays_whose_message_an_earlier_attempt_decided_to_answer(
    services: Services, connection: psycopg.Connection
) -> None:
    said = talk(5)[0]
    connection.execute(
        "insert into agent_decisions (message_id, chat_id, tenant_key, actor_id, respond, reason,"
        " tier) values (%s, 'oc_ea', 'tenant', %s, true, 'recent_followup', 'heuristic')",
        [f"{said.message_id}oc_ea", said.person],
    )
    [(heard, lease)] = await overheard(services, connection, [said], "oc_ea")

    assert heard.decision.respond
    assert not lease.is_over
    assert jobs(connection) == 1


async def test_the_next_job_of_the_lock_is_taken_with_the_end_of_a_line(
    services: Services, connection: psycopg.Connection
) -> None:
    said, taken = talk(7)[0], []
    lease = replace(job_of(connection, request(said, "oc_nx")), take=taken.append)
    connection.execute(
        "insert into feishu_bot.jobs (task, lock, args) select task, lock, %s from feishu_bot.jobs",
        [json.dumps({"n": 2})],
    )
    await listen(heard_in(services, said, "oc_nx"), lease=lease)

    assert [job.args for job in taken] == [{"n": 2}]


async def test_a_line_is_heard_again_when_its_transaction_was_lost(
    services: Services, connection: psycopg.Connection
) -> None:
    """The memory goes away with the decision: the job stays, and the next attempt decides once."""
    said = talk(7)[0]
    lease = job_of(connection, request(said, "oc_lo"))

    class Losing:
        """Says nothing of what it was asked."""

        def __getattr__(self, name: str) -> object:
            return getattr(services.rpc, name)

        async def call(self, *_: object) -> object:
            raise StoreUnavailable("gone")

        call_and = call

    lost = replace(services, rpc=Losing())  # type: ignore[arg-type]
    heard = await listen(heard_in(lost, said, "oc_lo"), lease=lease)
    assert not heard.decision.respond
    assert not lease.is_over
    assert not kept(connection, "oc_lo")["agent_decisions"]
    await listen(heard_in(services, said, "oc_lo"), lease=lease)
    await listen(heard_in(services, said, "oc_lo"), lease=lease)

    assert len(kept(connection, "oc_lo")["agent_decisions"]) == 1
    assert jobs(connection) == 0
