"""Random histories as whole turns: people write, quote, press and take back on the simulated
platform, the worker's own handlers answer over a real database, and the model prints its prompt.

What may be shown is stated here once more, by appearances: something may be shown again to readers
who could read it before, in that place. Each thing that is said carries a tag; prompts, cards and,
after a taking back, all tables are searched for tags.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from bot.agents.llm.model import OnText, Request, Response
from bot.agents.manager import Manager, Stores
from bot.answering.between_turns import handle_tending
from bot.features.private_answers.offering import OfferJob, handle_look_up
from bot.features.registry import TOOLS
from bot.feishu.transport import SharedPace
from bot.queue.consumer import Lease
from bot.queue.jobs import EVENT_TASK, PRIVATE_TASK, Job, Later
from bot.queue.table import JobTable
from bot.services import Services
from bot.settings import Settings
from bot.wiring import open_services
from bot.worker import handle_event
from memory.backends.postgres import connection_pool
from memory.scope import own_context
from sandbox.app import create_sandbox
from sandbox.config import SandboxConfig
from sandbox.model.model import ModelServer
from sandbox.server import SandboxServer
from sandbox.world.actors import Speech
from sandbox.world.clicks import buttons
from sandbox.world.entities import SandboxMessage
from sandbox.world.push import Attempt
from sandbox.world.wire import card_of
from tests.support.models import calling

STEPS = 12
_SCOPES = ("thread", "person")
NAMES = ("Ann", "Bob", "Cid", "Eve")

_TAG = re.compile(r"banana zq(\d+)zq")
_WHOLE_TABLES = (
    "agent_chats", "agent_turns", "agent_messages", "agent_working_memory", "agent_notes",
    "agent_working_memory_history", "agent_note_changes", "agent_summaries", "agent_buttons",
    "chat_transcript", "agent_decisions", "agent_timers",
)  # fmt: skip

# What was seen where: a test that reads nothing proves nothing.
SEEN: Counter[str] = Counter()


Acts = list[tuple[str, dict[str, Any]]]


class Leak(AssertionError):
    """Somebody was shown what they could not read."""


class NoWaiting:
    """The stand-in platform sets no limits here."""

    def take(
        self, key: str, now: float, limit: int, window_s: float, *, later: bool = True
    ) -> float:
        return 0.0


class Printing:
    """A model that does `acts` first (tool calls, or what makes them of the prompt), then prints
    its prompt, line by line, as far as people's words stand in it. `look` sees every request."""

    def __init__(self) -> None:
        self.acts: Acts | Callable[[str], Acts] = []
        self.look: Callable[[str], None] = lambda _: None

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        prompt = json.dumps(list(request.messages), ensure_ascii=False)
        self.look(prompt)
        if self.acts and request.tools:
            acts, self.acts = self.acts, []
            if calls := acts(prompt) if callable(acts) else acts:
                return calling(*calls)
        words = [str(one.get("content") or "") for one in request.messages]
        lines = dict.fromkeys(
            line.strip() for text in words for line in text.split("\n") if _TAG.search(line)
        )
        return Response("\n\n".join(lines)[:8000] or "Nothing.")


@dataclass
class Town:
    """The simulated tenant over HTTP; its events are kept here until the worker gets them."""

    def __post_init__(self) -> None:
        config = SandboxConfig(webhook_url="http://app/event", rate_limits=False)
        app = create_sandbox(config, inspector=None, post=lambda *_: (200, b"{}"))
        self.platform = app.extensions["sandbox"]
        self.config = config
        self.server = SandboxServer(app, 0, None)
        self._thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        self.events: list[dict[str, Any]] = []
        self.platform.pusher.push = lambda event, **_: self.events.append(event)
        self.platform.pusher.ask = self._ask

    def _ask(self, event: dict[str, Any]) -> tuple[Attempt, bytes]:
        self.events.append(event)
        return Attempt(0, 200, 0.0), b"{}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def close(self) -> None:
        self.platform.close()
        self.server.shutdown()
        self.server.server_close()
        self._thread.join()


async def handle_pushed(services: Services, event: dict[str, Any], *, attempt: int = 1) -> None:
    """What a worker does with an event that was queued just now."""
    args = {"payload": event, "received_ms": int(services.clock() * 1000)}
    await handle_event(services, Lease(Job(0, EVENT_TASK, args, None, attempt), 0, void))


@dataclass
class Stage:
    """Where histories are played: the platform, a worker's services over a database, the model."""

    town: Town
    services: Services
    model: Printing
    database: psycopg.Connection

    async def handle_all(self) -> None:
        """Handles what the platform has pushed, until nothing is left."""
        while events := self.town.events:
            await handle_pushed(self.services, events.pop(0))

    async def mention(self, person: str, group: str, question: str, reply_to: str = "") -> str:
        """Somebody asks the bot in a group, and it answers. Returns the question's message_id."""
        platform = self.town.platform
        text = f"@{platform.world.bot.name} {question}"
        said = platform.actors.say(Speech(person, group, text, reply_to=reply_to))
        await self.handle_all()
        return said.message_id


@asynccontextmanager
async def stage(
    database_url: str, *, vectors: bool = False, **settings: object
) -> AsyncIterator[Stage]:
    """A worker's services, as `bot.worker` has them, with a model that prints its prompt.
    `settings` are those of the memory, if it is elsewhere. With `vectors` it finds by meaning too,
    and meaning alone orders what it finds."""
    town, model, endpoint = Town(), Printing(), ModelServer()
    if vectors:
        await endpoint.start()
        settings |= {
            "embedding_model": "stand-in",
            "embedding_base_url": endpoint.base_url,
        }
    settings = {"summary_after_messages": 2, "history_messages": 4} | settings
    given = Settings(
        feishu_app_id=town.config.app_id,
        feishu_app_secret=town.config.app_secret,
        feishu_domain=town.url,
        database_url=database_url,
        stream_replies=False,
        **settings,
    )
    async with AsyncExitStack() as stack:
        stack.callback(town.close)
        if vectors:
            stack.push_async_callback(endpoint.stop)
        pool = await stack.enter_async_context(connection_pool(database_url, size=4))
        services = await stack.enter_async_context(
            open_services(given, database_url, pool, SharedPace(NoWaiting()))
        )
        if services.embedder:
            services.embedder.weight = 1.0
        table = JobTable(pool)
        of_real: Stores = services.manager._stores  # type: ignore[assignment]
        services = replace(
            services,
            manager=Manager(model, stores=of_real, tools=TOOLS),
            queue_tending=table.queue_tending,
            run_on_queue=table.run,
        )
        database = stack.enter_context(psycopg.connect(database_url, autocommit=True))
        database.execute("set search_path = public, feishu_bot")
        yield Stage(town, services, model, database)


@dataclass(frozen=True, slots=True)
class Place:
    """A chat, or what one person alone sees. `person`: the only reader; "": a group."""

    chat_id: str
    person: str = ""


@dataclass(slots=True)
class Played:
    """One history. Appearances are (place, step)."""

    stage: Stage
    dice: random.Random
    mark: str
    people: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    members: dict[str, dict[str, int]] = field(default_factory=dict)
    appeared: dict[str, list[tuple[Place, int]]] = field(default_factory=lambda: defaultdict(list))
    tag_of: dict[str, str] = field(default_factory=dict)  # message_id → what it says
    gone: set[str] = field(default_factory=set)
    shared: set[str] = field(default_factory=set)
    looked_at: dict[str, int] = field(default_factory=dict)  # message_id → version
    history: list[str] = field(default_factory=list)
    clock: int = 0

    # Who may read what

    def place_of(self, message: SandboxMessage) -> Place:
        if message.visible_to:
            return Place(message.visible_to, message.visible_to)
        return self.place(message.chat_id)

    def place(self, chat_id: str) -> Place:
        if chat_id in self.groups:
            return Place(chat_id)
        chat = self.stage.town.platform.world.chats[chat_id]
        return Place(chat_id, next(one for one in chat.members if one in self.people))

    def may(self, audience: Place, tag: str) -> bool:
        return tag not in self.gone and any(
            self._reads(audience, place, at) for place, at in self.appeared.get(tag, ())
        )

    def _reads(self, audience: Place, place: Place, at: int) -> bool:
        if not audience.person or place.person:
            return place in (audience, Place(place.chat_id, audience.person))
        joined = self.members[place.chat_id].get(audience.person)
        return joined is not None and at >= joined

    def check(self, audience: Place, what: str, text: str) -> set[str]:
        found = set(_TAG.findall(text))
        for tag in sorted(found):
            SEEN[what] += 1
            if not tag.startswith(self.mark) or not self.may(audience, tag):
                why = "it was taken back" if tag in self.gone else self.appeared.get(tag)
                story = "\n".join([*self.history, f"{audience} is shown {tag} in a {what}: {why}"])
                raise Leak(f"{story}\n{_around(text, tag)}")
        return found

    # What happens

    async def begin(self) -> None:
        platform = self.stage.town.platform
        self.people = [platform.actors.add_person(name).open_id for name in NAMES]
        for name in ("Garden", "House"):
            first = self.dice.choice(self.people)
            group = platform.groups.add(name, []).chat_id
            self.groups.append(group)
            self.members[group] = {}
            self._set_member(group, first, member=True)
            for other in self.people:
                if other != first and self.dice.random() < 0.5:
                    self._set_member(group, other, member=True)
        await self.work()

    def _set_member(self, group: str, person: str, *, member: bool) -> None:
        self.stage.town.platform.groups.set_membership(group, person, member=member)
        if member:
            self.members[group].setdefault(person, self.clock)
        else:
            self.members[group].pop(person, None)

    async def live(self) -> None:
        """A history of steps that ends in a question."""
        await self.begin()
        for _ in range(self.dice.randint(2, STEPS - 1)):
            await self.step(self.dice.choice(_STEPS))
        await self.step(Played.ask)

    async def step(self, step: Callable[[Played], None]) -> None:
        self.clock += 1
        self.history.append(f"{self.clock} {step.__name__}")
        step(self)
        await self.work()
        time.sleep(0.002)  # joining is known to the millisecond  # noqa: ASYNC251

    def _somebody(self) -> tuple[str, str]:
        """A person and a chat they are in."""
        person = self.dice.choice(self.people)
        groups = [group for group in self.groups if person in self.members[group]]
        if not groups or self.dice.random() < 0.4:
            return person, self.stage.town.platform.world.p2p_chat(person).chat_id
        return person, self.dice.choice(groups)

    def _say(self, text: str, *, addressed: bool = True, parent: str = "") -> None:
        person, chat = self._somebody()
        world = self.stage.town.platform.world
        tag = f"{self.mark}{len(self.appeared):03d}"
        said = text.format(tag=f"banana zq{tag}zq")
        if chat in self.groups and addressed:
            others = [one for one in self.members[chat] if one != person]
            if others and self.dice.random() < 0.3:
                said = f"@{world.people[self.dice.choice(others)].name} {said}"
            said = f"@{world.bot.name} {said}"
        quote = bool(parent) and self.dice.random() < 0.5
        speech = Speech(person, chat, said, reply_to=parent, quote=quote)
        message = self.stage.town.platform.actors.say(speech)
        if "{tag}" in text:
            self.tag_of[message.message_id] = tag
            self.appeared[tag].append((self.place(chat), self.clock))
        self.history[-1] += f": {person[-4:]} in {chat[-4:]}: {said}"

    def ask(self) -> None:
        acts = [("recall", {"query": "banana", "scope": self.dice.choice(["chat", "everywhere"])})]
        acts += [("search_notes", {"query": "banana"}), ("read_working_memory", {})]
        self.stage.model.acts = acts if self.dice.random() < 0.7 else []
        self._say("{tag}" if self.dice.random() < 0.8 else "what about the {tag}?")

    def keep(self) -> None:
        tag = f"banana zq{self.mark}{len(self.appeared):03d}zq"
        scope = self.dice.choice(_SCOPES)
        key = f"k{self.dice.randrange(2)}"
        self.stage.model.acts = [("update_working_memory", {"scope": scope, "patch": {key: tag}})]
        self._say("{tag}")

    def note(self) -> None:
        tag = f"banana zq{self.mark}{len(self.appeared):03d}zq"
        self.stage.model.acts = [("create_note", {"title": "fruit", "body": tag, "tags": ["a"]})]
        self._say("{tag}")

    def hearsay(self) -> None:
        """The model keeps what stands in its prompt, whoever said it."""
        kind, scope = self.dice.choice(["fact", "note", "reminder"]), self.dice.choice(_SCOPES)

        def acts(prompt: str) -> Acts:
            tags = [f"banana zq{tag}zq" for tag in dict.fromkeys(_TAG.findall(prompt))]
            if not tags:
                return []
            told = " and ".join(tags[-3:])
            day = f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%d}T10:00"
            kept = {"scope": scope, "patch": {"k0": told}}
            calls: dict[str, Acts] = {
                "fact": [("update_working_memory", kept)],
                "note": [("create_note", {"title": "fruit", "body": told, "tags": ["a"]})],
                "reminder": [("set_reminder", {"text": told, "at": day, "for_whom": ["us"]})],
            }
            return calls[kind]

        self.stage.model.acts = acts
        self._say("what was said?")

    def talk(self) -> None:
        self._say("{tag}", addressed=False)

    def quote(self) -> None:
        """An answer to any message, of another chat even, as nobody could in Feishu."""
        world = self.stage.town.platform.world
        known = [one for one in self.looked_at if not world.messages[one].deleted]
        if known:
            self._say("{tag}", parent=self.dice.choice(known))

    def command(self) -> None:
        self._say(self.dice.choice(["/memory", "/notes", "/new"]))

    def join(self) -> None:
        group, person = self.dice.choice(self.groups), self.dice.choice(self.people)
        if person not in self.members[group]:
            self._set_member(group, person, member=True)

    def leave(self) -> None:
        group, person = self.dice.choice(self.groups), self.dice.choice(self.people)
        if person in self.members[group]:
            self._set_member(group, person, member=False)

    def take_back(self) -> None:
        platform = self.stage.town.platform
        known = [one for one in self.tag_of if self.tag_of[one] not in self.gone]
        if known:
            message = platform.world.messages[self.dice.choice(known)]
            platform.actors.recall(message.message_id, message.sender)
            self.gone.add(self.tag_of[message.message_id])
            self.history[-1] += f": {self.tag_of[message.message_id]}"

    def press(self) -> None:
        """A button of any card, by somebody who sees it."""
        platform = self.stage.town.platform
        cards = []
        for message_id in self.looked_at:
            message = platform.world.messages[message_id]
            card = None if message.deleted else card_of(platform.world, message)
            if card and (found := list(buttons(card))):
                cards.append((message, card, len(found)))
        if not cards:
            return
        message, card, count = self.dice.choice(cards)
        place = self.place_of(message)
        readers = [place.person] if place.person else sorted(self.members[message.chat_id])
        if not readers:
            return
        index = self.dice.randrange(count)
        label = list(buttons(card))[index]["text"]["content"]
        if label.startswith("Share"):  # their own decision
            self.shared = set(_TAG.findall(json.dumps(card, ensure_ascii=False)))
        self.history[-1] += f": {label}"
        platform.clicks.click(
            self.dice.choice(readers), message.message_id, value=None, index=index
        )

    def forge(self) -> None:
        """A press on a card, of a button that stood on any, by somebody who sees the card."""
        platform = self.stage.town.platform
        cards = [
            (message, card)
            for message in (platform.world.messages[one] for one in self.looked_at)
            if message.sender == platform.world.bot.open_id
            and (card := card_of(platform.world, message))
        ]
        values = [
            done["value"]
            for _, card in cards
            for button in buttons(card)
            for done in button.get("behaviors", ())
            if done["type"] == "callback"
        ]
        there = [message for message, _ in cards if not message.deleted]
        if values and there:
            message, value = self.dice.choice(there), self.dice.choice(values)
            place = self.place_of(message)
            if readers := [place.person] if place.person else [*self.members[message.chat_id]]:
                who = self.dice.choice(readers)
                platform.clicks.click(who, message.message_id, value=value, index=None)

    # What the worker does of it

    async def work(self) -> None:
        """Events, then what they queued, until nothing is left; everything shown is looked at."""
        events = self.stage.town.events
        while events or (jobs := self._jobs()):
            if events:
                await self._handle(events.pop(0))
            else:
                for task, args in jobs:
                    await self._after(task, args)
            self._look_at_cards()
        self._look_for_what_is_gone()
        self.shared.clear()
        self.stage.model.acts = []

    def _jobs(self) -> list[tuple[str, dict[str, Any]]]:
        return self.stage.database.execute(
            "delete from feishu_bot.jobs returning task, args"
        ).fetchall()

    async def _handle(self, event: dict[str, Any]) -> None:
        self.stage.model.look = self._look_at_prompt(event)
        await handle_pushed(self.stage.services, event)

    def _look_at_prompt(self, event: dict[str, Any]) -> Callable[[str], None]:
        body = event["event"]
        message, operator = body.get("message"), body.get("operator")
        if message:
            place = self.place(message["chat_id"])
        elif body.get("context"):
            card = self.stage.town.platform.world.messages[body["context"]["open_message_id"]]
            place = self.place_of(card)
            if operator:  # a press on what one person sees is answered to that person
                place = Place(place.chat_id, place.person and operator["open_id"])
        else:
            place = Place("")
        return lambda prompt: void(self.check(place, "prompt", prompt))

    async def _after(self, task: str, args: dict[str, Any]) -> None:
        if task == PRIVATE_TASK:
            try:
                await handle_look_up(self.stage.services, OfferJob.of_job(args), 1)
            except Later:  # the memory was slow: as the queue does it
                await handle_look_up(self.stage.services, OfferJob.of_job(args), 2)
        else:
            context = own_context(args["conversation_id"], args["user_id"], args["tenant_key"])
            await handle_tending(self.stage.services, context, 1)

    def _look_at_cards(self) -> None:
        world = self.stage.town.platform.world
        chats = [*self.groups, *(world.p2p_chat(one).chat_id for one in self.people)]
        for message_id in [one for chat in chats for one in world.by_chat.get(chat, [])]:
            message = world.messages[message_id]
            if self.looked_at.get(message_id) == message.version:
                continue
            self.looked_at[message_id] = message.version
            if message.sender != world.bot.open_id or message.deleted:
                continue
            place = self.place_of(message)
            for tag in self.shared:
                self.appeared[tag].append((place, self.clock))
            text = json.dumps(card_of(world, message) or message.content, ensure_ascii=False)
            for tag in self.check(place, "card", text):
                self.appeared[tag].append((place, self.clock))

    def _look_for_what_is_gone(self) -> None:
        """Neither a card that is there nor a table holds what was taken back."""
        world = self.stage.town.platform.world
        for tag in sorted(self.gone):
            words = f"zq{tag}zq"
            for message_id in self.looked_at:
                message = world.messages[message_id]
                if message.sender == world.bot.open_id and not message.deleted:
                    card = json.dumps(card_of(world, message) or message.content)
                    if words in card:
                        raise Leak("\n".join([*self.history, f"{tag} is still shown: {card}"]))
            for table in _WHOLE_TABLES:
                query = f"select t::text from {table} t where t::text like '%{words}%'"
                if row := self.stage.database.execute(query.encode()).fetchone():
                    raise Leak("\n".join([*self.history, f"{tag} is still in {table}: {row[0]}"]))
            SEEN["gone"] += 1
        kept = """select e.id from agent_embeddings e left join agent_messages m using (id)
                  where m.status is null or m.status = 'failed'"""
        if row := self.stage.database.execute(kept.encode()).fetchone():
            raise Leak("\n".join([*self.history, f"a vector of message {row[0]} is still there"]))


def void(_: object) -> None:
    """Nothing."""


async def play(stage: Stage, seed: int) -> None:
    """One history; an error carries its seed."""
    played = Played(stage, random.Random(seed), f"{seed:013d}")
    try:
        await played.live()
    except Exception as exc:
        exc.add_note(f"AUDIENCE_SEED={seed}")
        raise
    finally:
        stage.town.events.clear()
        await asyncio.sleep(0)


_STEPS: list[Callable[[Played], None]] = [
    Played.ask, Played.ask, Played.ask, Played.keep, Played.keep, Played.note, Played.talk,
    Played.quote, Played.command, Played.join, Played.leave, Played.take_back, Played.take_back,
    Played.press, Played.press, Played.hearsay, Played.forge,
]  # fmt: skip


def _around(text: str, tag: str) -> str:
    at = text.find(tag)
    return text[max(0, at - 1500) : at + 300]
