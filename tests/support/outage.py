"""People who keep talking to the bot while its memory goes and comes back, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.rows import dict_row

from bot.feishu.cards import reply_uuid
from lab.doubles.processes import eventually
from lab.doubles.sentinel import tables_with
from sandbox.model.model_script import split_knowledge
from tests.acceptance.conftest import World, is_from_bot, markdown

_WAITING = """
    select count(*) as n from feishu_bot.jobs where task = 'feishu.store'
"""


@dataclass(frozen=True)
class Thread:
    """A thread of one person with the bot; `opening` is its first question, by its message_id."""

    world: World
    who: str
    opening: str

    @property
    def conversation_id(self) -> str:
        return f"feishu:{self.world.group}:{self.opening}"


@dataclass(frozen=True)
class Question:
    """A question as it was asked: `at` is monotonic seconds."""

    thread: Thread
    text: str
    message_id: str
    at: float


@dataclass
class Talk:
    """A bot with its memory behind Supabase Lite (in the database `memory_url`) and its queue
    elsewhere."""

    world: World
    memory_url: str
    queue_url: str
    asked: list[Question] = field(default_factory=list)

    def new_world(self) -> World:
        """A new group of the same bot; its rows are read from the memory's database."""
        world = self.world.in_a_new_group()
        world.database_url = self.memory_url
        return world

    def open_threads(self, people: tuple[str, ...], each: int) -> list[Thread]:
        """Threads with one answered question; every person has a group of their own."""
        begun: list[Thread] = []
        for who in people:
            world = self.new_world()
            for n in range(each):
                text = f"@{world.bot_name} the code word of {who} is apricot{n}"
                begun.append(Thread(world, who, world.say(who, text)))
        for thread in begun:
            thread.world.settled(thread.opening)
        return begun

    def ask(self, thread: Thread, text: str) -> Question:
        world = thread.world
        said = f"@{world.bot_name} {text}"
        message_id = world.say(thread.who, said, root_id=thread.opening)
        question = Question(thread, text, message_id, time.monotonic())
        self.asked.append(question)
        return question

    def ask_in_turn(
        self, threads: list[Thread], *, every_s: float, while_: Callable[[], bool]
    ) -> Iterator[Question]:
        """One question after the other, thread by thread, as long as `while_` holds."""
        due = time.monotonic()
        while while_():
            time.sleep(max(0.0, due - time.monotonic()))
            due += every_s
            number = len(self.asked)
            yield self.ask(threads[number % len(threads)], f"what about item {number:04d}?")

    def cards(self, questions: list[Question]) -> dict[str, list[dict[str, Any]]]:
        """The bot's messages by the message_id of the question they answer."""
        uuids = {reply_uuid(question.message_id, 0): question.message_id for question in questions}
        found: dict[str, list[dict[str, Any]]] = {q.message_id: [] for q in questions}
        for world in {id(q.thread.world): q.thread.world for q in questions}.values():
            for message in world.platform.messages(world.group):
                if question := uuids.get(message["uuid"]):
                    found[question].append(message)
        return found

    def answered(self, questions: list[Question], *, within_s: float) -> None:
        """Returns when every question has a card."""
        missing: list[str] = []

        def all_answered() -> bool:
            missing[:] = [one for one, cards in self.cards(questions).items() if not cards]
            return not missing

        eventually(all_answered, within_s=within_s, what=f"answers to {missing}")

    def seconds(self, questions: list[Question]) -> list[float]:
        """How long each took, from the question to its card, by the platform's clock."""
        cards = self.cards(questions)
        took = []
        for world in {id(q.thread.world): q.thread.world for q in questions}.values():
            times = {
                message["message_id"]: message["create_ms"] / 1000
                for message in world.platform.messages(world.group)
            }
            took += [
                times[cards[q.message_id][0]["message_id"]] - times[q.message_id]
                for q in questions
                if q.thread.world is world
            ]
        return took

    def queue_rows(self, query: str, *params: Any) -> list[dict[str, Any]]:
        with psycopg.connect(self.queue_url, autocommit=True, row_factory=dict_row) as db:
            return db.execute(query, params).fetchall()  # type: ignore[arg-type]

    def waiting(self) -> int:
        """What waits in the queue's database for the memory."""
        return int(self.queue_rows(_WAITING)[0]["n"])

    def drained(self, *, within_s: float = 30) -> None:
        """Returns when nothing waits for the memory any more."""
        eventually(lambda: self.waiting() == 0, within_s=within_s, what="nothing waits")

    def prompts(self) -> dict[str, str]:
        """What the model was sent first for each question, by its text; a summary comes later."""
        found: dict[str, str] = {}
        for request in self.world.model.requests():
            last = str(split_knowledge(request["body"]["messages"][-1])[-1]["content"])
            for question in self.asked:
                if question.text in last:
                    found.setdefault(question.text, str(request["body"]))
        return found


def _assert_in_time(rows: Sequence[Mapping[str, Any]]) -> None:
    """A question has the time when it was written, which may be before the answer to the last."""
    asked, answered = ([row["created_at"] for row in rows if row["role"] == role]
                       for role in ("user", "assistant"))  # fmt: skip
    assert asked == sorted(asked)
    assert answered == sorted(answered)
    assert all(one <= other for one, other in zip(asked, answered, strict=True))


def assert_stored_in_order(talk: Talk, thread: Thread) -> None:
    """The thread as the memory has it: every question and its answer, once, in order, as sent."""
    questions = [one for one in talk.asked if one.thread is thread]
    rows = thread.world.rows(
        "select * from agent_messages where conversation_id = %s order by id",
        thread.conversation_id,
    )
    expected = [thread.opening, *(question.message_id for question in questions)]
    assert [(row["role"], row["turn_id"]) for row in rows] == [
        (role, turn) for turn in expected for role in ("user", "assistant")
    ]
    _assert_in_time(rows)
    cards = talk.cards(questions)
    for question, row in zip(questions, rows[3::2], strict=True):
        (card,) = cards[question.message_id]
        assert (row["status"], row["content"], row["message_id"]) == (
            "sent",
            markdown(card),
            card["message_id"],
        )
    turns = thread.world.rows(
        "select state from agent_turns where conversation_id = %s", thread.conversation_id
    )
    assert [turn["state"] for turn in turns] == ["sent"] * len(expected)


@dataclass
class Retractions:
    """Questions that are taken back, each with a word that nothing may tell afterwards."""

    talk: Talk
    words: dict[str, Question] = field(default_factory=dict)

    def ask(self, thread: Thread, *, at_once: bool) -> None:
        """Asks and takes it back: at once, or when its answer is read."""
        word = f"zarf{len(self.words):02d}"
        question = self.words[word] = self.talk.ask(thread, f"the code is {word}")
        if not at_once:
            self.talk.answered([question], within_s=60)
        person = thread.world.people[thread.who]
        thread.world.platform.post("/recall", **{"message_id": question.message_id, "as": person})

    def others(self) -> list[Question]:
        """The questions that stay."""
        return [one for one in self.talk.asked if one not in self.words.values()]

    def remains(self) -> list[str]:
        """Tables, and cards that people see, which still hold one of the words."""
        found: list[str] = []
        for url in (self.talk.memory_url, self.talk.queue_url):
            with psycopg.connect(url, autocommit=True) as database:
                found += [f"{w} in {t}" for w in self.words for t in tables_with(database, w)]
        for word, question in self.words.items():
            world = question.thread.world
            found += [
                f"{word} in {message['message_id']}"
                for message in world.platform.messages(world.group)
                if is_from_bot(message) and not message["deleted"] and word in str(message)
            ]
        return found


def assert_stored_once(talk: Talk, thread: Thread, stay: list[Question]) -> None:
    """Every question of the thread that stays has one card, and stands in the memory once with what
    the card says, in the order of their times."""
    questions = [one for one in stay if one.thread is thread]
    rows = thread.world.rows(
        "select * from agent_messages where conversation_id = %s order by id",
        thread.conversation_id,
    )
    _assert_in_time(rows)
    turns = [thread.opening, *(question.message_id for question in questions)]
    assert sorted((row["turn_id"], row["role"]) for row in rows) == sorted(
        (turn, role) for turn in turns for role in ("user", "assistant")
    )
    answers = {row["turn_id"]: row for row in rows if row["role"] == "assistant"}
    for question, cards in talk.cards(questions).items():
        (card,) = cards
        row = answers[question]
        assert (row["status"], row["content"]) == ("sent", markdown(card))
        assert row["message_id"] == card["message_id"]
