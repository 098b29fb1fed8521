"""The whole bot for acceptance tests: gunicorn, worker, platform and model as real processes."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.rows import dict_row

from bot.feishu.cards import is_of_entry, join_entries, reply_uuid
from lab.doubles.processes import (
    BotUnderTest,
    ModelDouble,
    PlatformDouble,
    eventually,
    free_port,
    running_bot,
    running_model,
    running_platform,
    stop,
)
from memory.models import Origin, OriginKind
from sandbox.cards.forms import tagged
from sandbox.model.model_script import split_knowledge
from tests.support import postgres, profiles

# Settings of the bot, options of the platform, and the module if it shares with no other.
Profile = tuple[tuple[tuple[str, str], ...], tuple[str, ...], str]


@dataclass
class World:
    """A running bot and the people around it."""

    bot: BotUnderTest
    platform: PlatformDouble
    model: ModelDouble
    database_url: str
    connections: dict[str, psycopg.Connection[dict[str, Any]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        state = self.platform.state()
        self.people: dict[str, str] = {one["name"]: one["open_id"] for one in state["people"]}
        listed = self.platform.get("/switches")
        self.switches = {one["name"]: one["on"] for kind in listed.values() for one in kind}
        self.bot_id = state["bot"]["open_id"]
        self.bot_name = state["bot"]["name"]
        self.group = next(c["chat_id"] for c in state["chats"] if c["name"] == "Launch team")
        self.kitchen = next(c["chat_id"] for c in state["chats"] if c["name"] == "Kitchen")

    def as_begun(self) -> World:
        """Ends what other modules left: switches of the platform, and more than one worker."""
        self.platform.post("/switches", **self.switches)
        for extra in [one for one in self.bot.workers if one.popen.poll() is None][:-1]:
            stop(extra)
        return self

    def replace_worker(self) -> None:
        """A new worker, which remembers no refusal and holds nothing of any chat."""
        self.bot.workers[-1].terminate()
        self.bot.start_worker()

    @contextlib.contextmanager
    def without_scopes(self, *scopes: str) -> Iterator[None]:
        """The app lacks `scopes` meanwhile; afterwards the bot does not remember that it did."""
        self.platform.post("/switches", **dict.fromkeys(scopes, False))
        try:
            yield
        finally:
            self.platform.post("/switches", **dict.fromkeys(scopes, True))
            self.replace_worker()

    def in_a_new_group(self, *, name: str = "Test", told: bool = False) -> World:
        """The same bot, seen from a new group of everybody; `told`: it hears that it was added, and
        says its first words."""
        fresh = copy.copy(self)
        fresh.people = dict(self.people)
        members = list(self.people.values())
        chat = self.platform.post("/chats", name=name, members=members, silently=not told)
        fresh.group = chat["chat_id"]
        return fresh

    def say(self, who: str, text: str, *, chat: str | None = None, **more: Any) -> str:
        """Speaks as the person of that name; returns the message_id."""
        return self.platform.say(self.people[who], chat or self.group, text, **more)

    def ask(self, who: str, text: str, **more: Any) -> tuple[str, str]:
        """Mentions the bot and waits for the card; returns question's id and card markdown."""
        question = self.say(who, f"@{self.bot_name} {text}", **more)
        return question, self.answer(question, chat=more.get("chat"))

    def ask_alone(
        self, who: str, text: str, *, chat: str | None = None, **more: Any
    ) -> dict[str, Any]:
        """Mentions the bot and waits for the card that nobody else sees."""
        place = chat or self.group
        before = {one["message_id"] for one in self.platform.messages(place)}
        self.say(who, f"@{self.bot_name} {text}", chat=place, **more)

        def shown() -> list[dict[str, Any]]:
            messages = self.platform.messages(place)
            mine = (m for m in messages if m["visible_to"] == self.people[who])
            return [m for m in mine if m["message_id"] not in before and not m["deleted"]]

        (card,) = eventually(shown, what="a card beside the group")
        return dict(card)

    def answers(self, question: str, *, chat: str | None = None) -> list[dict[str, Any]]:
        """The bot's messages that reply to `question`; in a thread their parent is its root."""
        uuids = {reply_uuid(question, chunk) for chunk in range(3)}
        return [
            message
            for message in self.platform.messages(chat or self.group)
            if is_from_bot(message)
            and (message["parent_id"] == question or message["uuid"] in uuids)
        ]

    def under(self, question: str) -> list[dict[str, Any]]:
        """Everything the bot said in the thread of `question`."""
        found = self.platform.messages(self.group)
        return [m for m in found if is_from_bot(m) and m["root_id"] == question]

    def answer(self, question: str, *, chat: str | None = None, within_s: float = 60) -> str:
        found = eventually(
            lambda: self.answers(question, chat=chat), within_s=within_s, what="an answer"
        )
        return markdown(found[0])

    def rows(self, query: str, *params: Any) -> list[dict[str, Any]]:
        """What a statement gives; over a connection that stays, for whoever waits asks again."""
        url = self.database_url
        if url not in self.connections:
            self.connections[url] = psycopg.connect(url, autocommit=True, row_factory=dict_row)
        return self.connections[url].execute(query, params).fetchall()  # type: ignore[arg-type]

    def close(self) -> None:
        for connection in self.connections.values():
            connection.close()

    def turn_of(self, button_id: str) -> str:
        """The id of the turn that a button leads to; of one that shares, once it was pressed."""
        query = "select turn_id, kind from agent_buttons where id = %s"
        (button,) = self.rows(query, button_id)
        kind: OriginKind = "private_answer" if button["kind"] == "show" else "button"
        cause = self._press_of(button_id) if button["kind"] == "share" else button_id
        return Origin(kind, button["turn_id"], cause).turn_id

    def _press_of(self, button_id: str) -> str:
        query = "select event_id from agent_presses where button_id = %s"
        (press,) = eventually(lambda: self.rows(query, button_id), what="it was pressed")
        return str(press["event_id"])

    def stored(self, question: str) -> list[dict[str, Any]]:
        """The assistant rows of a question."""
        return self.rows(
            "select * from agent_messages where turn_id = %s and role = 'assistant' order by chunk",
            question,
        )

    def settled(self, question: str, *, within_s: float = 90) -> list[dict[str, Any]]:
        """The assistant rows once their turn is sent."""

        def done() -> bool:
            found = self.rows("select state from agent_turns where id = %s", question)
            return bool(found) and found[0]["state"] == "sent"

        eventually(done, within_s=within_s, what=f"turn {question} is sent")
        return self.stored(question)


def is_from_bot(message: dict[str, Any]) -> bool:
    return bool(message["sender"]["name"] == "Memo")


def markdown(message: dict[str, Any]) -> str:
    """The answer's markdown, with the entries of a list at its end."""
    card = message["card"] or json.loads(message["content"])
    texts = [one for one in tagged(card["body"]["elements"]) if one["tag"] == "markdown"]
    entries = [one for one in texts[1:] if is_of_entry(one.get("element_id", ""))]
    return join_entries((one.get("element_id", ""), one["content"]) for one in (texts[0], *entries))


def prompt_of(request: dict[str, Any]) -> list[tuple[str, str]]:
    """(role, text) of a recorded model request; a message that only calls tools has no text.

    What is known for a question is the system's, wherever it stands.
    """
    pieces = [piece for one in request["body"]["messages"] for piece in split_knowledge(one)]
    return [(m["role"], m["content"] or "") for m in pieces]


@contextlib.contextmanager
def running_world(
    folder: Path,
    database_url: str,
    bot_options: Mapping[str, str],
    platform_options: Sequence[str] = (),
) -> Iterator[World]:
    """A bot with a platform and a model of its own."""
    port = free_port()
    hook = f"http://127.0.0.1:{port}/webhook/event"
    with (
        running_model(folder) as model,
        running_platform(folder, hook, "--retry-scale", "0.02", *platform_options) as platform,
    ):
        environment = {
            "DATABASE_URL": database_url,
            "FEISHU_DOMAIN": platform.url,
            "OPENAI_API_KEY": "test-key",
            "OPENAI_BASE_URL": model.base_url,
            "STREAM_REPLIES": "false",
            "REQUESTS_PER_MINUTE": "0",  # tests ask without a pause
            **bot_options,
        }
        with running_bot(folder, port, environment) as bot:
            world = World(bot, platform, model, database_url)
            yield world
            world.close()


class Worlds:
    """Whole bots by their settings. Modules with the same settings share one; few run at a time.

    A module with `OWN_PROCESSES = True` has its own bot, because it needs private chats in which
    nothing was said before.
    """

    AT_ONCE = 2

    def __init__(self, start: Callable[[Profile], AbstractContextManager[World]]) -> None:
        self._start = start
        self._running: dict[Profile, tuple[World, contextlib.ExitStack]] = {}

    def of(self, profile: Profile) -> World:
        """Returns the bot with these settings, as recently used as any."""
        if profile not in self._running:
            while len(self._running) >= self.AT_ONCE:
                self._stop(next(iter(self._running)))
            stack = contextlib.ExitStack()
            self._running[profile] = stack.enter_context(self._start(profile)), stack
        self._running[profile] = self._running.pop(profile)
        return self._running[profile][0].as_begun()

    def done_with(self, profile: Profile) -> None:
        """Stops a bot that no other module shares."""
        options, platform_options, own = profile
        if own or platform_options or dict(options) not in profiles.SHARED:
            self._stop(profile)

    def _stop(self, profile: Profile) -> None:
        self._running.pop(profile)[1].close()

    def stop_all(self) -> None:
        for profile in list(self._running):
            self._stop(profile)


@pytest.fixture(scope="session")
def worlds(
    tmp_path_factory: pytest.TempPathFactory,
    postgres_server: postgres.Server,
    migrated_template: str,
) -> Iterator[Worlds]:
    """The bots that modules share."""

    @contextlib.contextmanager
    def start(profile: Profile) -> Iterator[World]:
        options, platform_options, _ = profile
        folder = tmp_path_factory.mktemp("bot")
        with (
            postgres_server.fresh_database(template=migrated_template) as database_url,
            running_world(folder, database_url, dict(options), platform_options) as world,
        ):
            yield world

    worlds = Worlds(start)
    yield worlds
    worlds.stop_all()


@pytest.fixture(scope="module")
def bot_options() -> Mapping[str, str]:
    """Environment of the bot besides the usual; a module overrides it, with one of
    `tests.support.profiles` where that fits."""
    return {}


@pytest.fixture(scope="module")
def platform_options() -> tuple[str, ...]:
    """Options of the platform besides the usual; a module's tests override it."""
    return ()


@pytest.fixture(scope="module")
def processes(
    request: pytest.FixtureRequest,
    worlds: Worlds,
    bot_options: Mapping[str, str],
    platform_options: tuple[str, ...],
) -> Iterator[World]:
    """The processes with the module's settings."""
    own = request.module.__name__ if getattr(request.module, "OWN_PROCESSES", False) else ""
    profile = (tuple(sorted(bot_options.items())), platform_options, own)
    yield worlds.of(profile)
    worlds.done_with(profile)


@pytest.fixture
def world(processes: World) -> World:
    """The running bot in a group of the test's own; the model echoes, nothing is disturbed."""
    processes.model.control("mode", {"mode": "echo"})
    processes.model.forget()
    processes.platform.forget_faults()
    if processes.bot.workers[-1].popen.poll() is not None:
        processes.bot.start_worker()
    return processes.in_a_new_group()
