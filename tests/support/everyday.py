"""Ordinary use of the bot, at random, with a real worker of the queue in this process.

People write, press, react, edit and take back on the simulated platform, and time passes.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg

from bot.agents.llm.model import OnText, Request, Response
from bot.agents.manager import Manager
from bot.agents.offline.model import OfflineModel
from bot.answering.unfinished_turns import give_up, send_pending_replies
from bot.features.registry import TOOLS
from bot.features.timers import queue_due
from bot.feishu.transport import SharedPace
from bot.intake.acceptance import Intake, Presses
from bot.outbox.retractions import withdraw_cards
from bot.process.concurrency import cancel_tasks
from bot.queue.connections import open_rpc
from bot.queue.consumer import Consumer, Handlers
from bot.queue.inbox import Inbox
from bot.queue.operator_actions import QueueOperations
from bot.queue.table import JobTable
from bot.services import Services
from bot.settings import Settings
from bot.text.slash_commands import COMMAND_WORDS, STOP_WORDS
from bot.wiring import open_services
from bot.worker import handle_job
from memory.backends.postgres import connection_pool
from sandbox.faults import PreparedFault
from sandbox.world.actors import ControlRefused, Speech
from sandbox.world.clicks import buttons
from sandbox.world.push import Attempt
from sandbox.world.wire import card_of
from tests.support.models import calling
from tests.support.whole_turns import NoWaiting, Town

STEPS = 14
NAMES = ("Ann", "Bob", "陈晨", "Eve")

# What was done how often: a generator that does nothing finds nothing.
DONE: Counter[str] = Counter()

_ARGUMENTS = (
    "", "", "", "all", "this thread", "everything", "全部", "这个话题", "on", "off", "开", "关",
    "daily 18:00", "weekdays", "weekly mon 9:00", "zh", "en", "auto", "中文", "follow", "mention",
    "threads", "all", "default", "Answer briefly.", "回答要简短。", "today", "nonsense",
)  # fmt: skip
_SAYINGS = (
    "our launch is on 3 March", "remember that our launch is on 3 March", "forget our launch",
    "when is our launch?", "我们的发布会在三月三日", "忘记我们的发布会", "我们什么时候发布？",
    "my name is Ann", "I like green tea", "what do I like?", "forget that I like green tea",
    "no, our launch is on 4 March", "create a note: groceries, milk and eggs", "list my notes",
    "add the tag home to that note", "delete that note", "记个笔记：买牛奶", "删除那个笔记",
    "remind me in 2 minutes to stretch", "remind us tomorrow at 9: standup",
    "remind Bob every Monday at 9 to call the bank", "明天早上九点提醒我开会",
    "what reminders are there?", "cancel the reminder", "hello", "thanks", "你好", "谢谢",
    "👍", "??",
    "what can you do?", "what did we say about the launch?", "summarise this thread",
    "resume", "继续", "quiet", "安静", "help", "帮助", "新对话",
)  # fmt: skip
_EMOJIS = ("THUMBSUP", "ThumbsDown", "OK", "DONE", "HEART", "CrossMark")
_FILES = {"prices.csv": "item,price\ntea,3\n", "plan.md": "# Plan\nLaunch on 3 March.\n"}
_UNFINISHED = "select count(*) from feishu_bot.jobs where status in ('waiting', 'running')"
_TIMERS_DUE = "update agent_timers set due_at = now() - interval '1 second' where state = 'active'"
_FOR_GOOD = 230002  # the bot is not in the chat


class Everyday:
    """The offline model, which first does `acts`, and waits for `goes_on` where that is given."""

    def __init__(self) -> None:
        self.acts: list[tuple[str, dict[str, Any]]] = []
        self.goes_on: asyncio.Event | None = None
        self.is_asked = asyncio.Event()
        self._offline = OfflineModel()

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        if (goes_on := self.goes_on) is not None:
            self.is_asked.set()
            await goes_on.wait()
        if self.acts and request.tools:
            acts, self.acts = self.acts, []
            return calling(*acts)
        return await self._offline.respond(request, on_text)


@dataclass
class Street:
    """Where histories happen: the platform, the bot's intake and worker, its model and database."""

    town: Town
    services: Services
    table: JobTable
    model: Everyday
    database: psycopg.Connection
    queue: QueueOperations
    settings: Settings


@asynccontextmanager
async def street(database_url: str) -> AsyncIterator[Street]:
    """The whole bot over a database, in this process, until the end of the body."""
    town, model = Town(), Everyday()
    settings = Settings(
        feishu_app_id=town.config.app_id,
        feishu_app_secret=town.config.app_secret,
        feishu_domain=town.url,
        database_url=database_url,
        summary_after_messages=2,
        history_messages=4,
        requests_per_minute=0,
    )
    async with AsyncExitStack() as stack:
        stack.callback(town.close)
        pool = await stack.enter_async_context(connection_pool(database_url, size=6))
        services = await stack.enter_async_context(
            open_services(settings, database_url, pool, SharedPace(NoWaiting()))
        )
        table, stores = JobTable(pool), services.manager._stores
        services = replace(
            services,
            manager=Manager(model, stores=stores, tools=TOOLS),
            queue_tending=table.queue_tending,
            run_on_queue=table.run,
            is_stopped=table.is_stopped,
        )
        _take_deliveries(stack, town, settings)
        await stack.enter_async_context(_worker(services, table, database_url))
        database = stack.enter_context(psycopg.connect(database_url, autocommit=True))
        queue = QueueOperations(database_url)
        yield Street(town, services, table, model, database, queue, settings)


def _take_deliveries(stack: AsyncExitStack, town: Town, settings: Settings) -> None:
    """What the platform pushes reaches the bot's intake, as from the webhook."""
    inbox = Inbox(settings.database_url)
    stack.callback(inbox.close)
    presses = Presses(lambda: open_rpc(settings, settings.database_url, size=2), limit_s=30)
    stack.callback(presses.close)
    intake = Intake(inbox, presses, app_id=settings.feishu_app_id)

    def ask(event: dict[str, Any]) -> tuple[Attempt, bytes]:
        return Attempt(0, 200, 0.0), json.dumps(intake.accept(event).answer).encode()

    town.platform.pusher.push = lambda event, **_: void(intake.accept(event))
    town.platform.pusher.ask = ask


@asynccontextmanager
async def _worker(services: Services, table: JobTable, url: str) -> AsyncIterator[None]:
    stop = asyncio.Event()
    handlers = Handlers(
        handle=partial(handle_job, services),
        give_up=partial(give_up, services),
        stop_turns=services.stops.ask,
    )
    consumer = Consumer(table, url, handlers, concurrency=16, grace_s=1.0)
    work = asyncio.create_task(consumer.work(stop))
    try:
        yield
    finally:
        stop.set()
        await asyncio.wait({work}, timeout=10)
        await cancel_tasks([work])


async def _until(condition: Callable[[], bool]) -> None:
    for _ in range(20_000):
        if condition():
            return
        await asyncio.sleep(0.004)
    raise AssertionError("the worker does not come to an end")


def void(_: object) -> None:
    """Nothing."""


@dataclass
class History:
    """One history, of people and groups of its own; `said` are the messages of people."""

    street: Street
    dice: random.Random
    people: list[str] = field(default_factory=list)
    groups: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    story: list[str] = field(default_factory=list)

    @property
    def world(self) -> Any:
        return self.street.town.platform.world

    async def live(self) -> None:
        self._begin()
        await self.settled()
        for _ in range(self.dice.randint(4, STEPS)):
            step = self.dice.choice(STEP_KINDS)
            self.story.append(step.__name__)
            try:
                if waiting := step(self):
                    await waiting
            except ControlRefused as exc:  # such as a message that is gone
                self.story[-1] += f": {exc}"
            await self.settled()
            DONE[step.__name__] += 1

    async def settled(self) -> None:
        """Returns when the worker has nothing to do."""
        await _until(self._is_settled)
        await withdraw_cards(self.street.services)
        await send_pending_replies(self.street.services, self.street.table)
        self.street.model.acts = []

    def _is_settled(self) -> bool:
        return self.street.database.execute(_UNFINISHED).fetchone() == (0,)

    def _begin(self) -> None:
        platform = self.street.town.platform
        self.people = [platform.actors.add_person(name).open_id for name in NAMES]
        for name in ("Garden", "House"):
            members = [one for one in self.people if self.dice.random() < 0.8] or self.people
            self.groups.append(platform.groups.add(name, members).chat_id)

    # What people do

    def _somebody(self) -> tuple[str, str]:
        """A person and a chat they are in."""
        chat = self.dice.choice(self.groups) if self.dice.random() < 0.65 else ""
        if chat:
            members = [one for one in self.world.chats[chat].members if one in self.people]
            if members:
                return self.dice.choice(members), chat
        person = self.dice.choice(self.people)
        return person, self.world.p2p_chat(person).chat_id

    def _say(self, text: str, *, addressed: bool = True, **how: Any) -> str:
        person, chat = self._somebody()
        if parent := how.get("reply_to"):
            chat = self.world.messages[parent].chat_id
            members = [one for one in self.world.chats[chat].members if one in self.people]
            person = self.dice.choice(members) if members else person
        if chat in self.groups and addressed:
            others = [one for one in self.people if one in self.world.chats[chat].members]
            if others and self.dice.random() < 0.2:
                text = f"@{self.world.people[self.dice.choice(others)].name} {text}"
            text = f"@{self.world.bot.name} {text}"
        message = self.street.town.platform.actors.say(Speech(person, chat, text, **how))
        self.said.append(message.message_id)
        self.story[-1] += f": {person[-4:]} in {chat[-4:]}: {text}"
        return str(message.message_id)

    def _known(self) -> str:
        """A message that is there, of people or of the bot."""
        chats = [*self.groups, *(self.world.p2p_chat(one).chat_id for one in self.people)]
        found = [
            one
            for chat in chats
            for one in self.world.by_chat.get(chat, [])
            if not self.world.messages[one].deleted
        ]
        return self.dice.choice(found) if found else ""

    def ask(self) -> None:
        self._say(self.dice.choice(_SAYINGS))

    def talk(self) -> None:
        self._say(self.dice.choice(_SAYINGS), addressed=False)

    def command(self) -> None:
        words = f"/{self.dice.choice(sorted(COMMAND_WORDS))} {self.dice.choice(_ARGUMENTS)}"
        self._say(words.strip())

    def command_in_thread(self) -> None:
        if parent := self._known():
            words = f"/{self.dice.choice(sorted(COMMAND_WORDS))} {self.dice.choice(_ARGUMENTS)}"
            self._say(words.strip(), reply_to=parent)

    def plain_stop(self) -> None:
        self._say(self.dice.choice(STOP_WORDS), addressed=self.dice.random() < 0.5)

    def answer(self) -> None:
        """In the thread of any message, or as a quotation of it."""
        if parent := self._known():
            quote, addressed = self.dice.random() < 0.4, self.dice.random() < 0.7
            text = self.dice.choice((*_SAYINGS, "stop", "停"))
            self._say(text, addressed=addressed, reply_to=parent, quote=quote)

    def use_tools(self) -> None:
        """The model does what tools there are, asked for or not."""
        self.street.model.acts = [self._act() for _ in range(self.dice.randint(1, 3))]
        self._say(self.dice.choice(_SAYINGS))

    def _act(self) -> tuple[str, dict[str, Any]]:
        soon = f"{datetime.now(UTC) + timedelta(days=1):%Y-%m-%dT10:00}"
        patch = {"our_launch": self.dice.choice(["3 March", "4 March", None])}
        at = {"text": "stretch", "at": soon, "repeats": self.dice.choice(["once", "daily"])}
        note = {"title": "groceries", "body": "milk", "tags": ["home"]}
        scope = self.dice.choice(["thread", "person"])
        acts: list[tuple[str, dict[str, Any]]] = [
            ("update_working_memory", {"scope": scope, "patch": patch}),
            ("forget_fact", {"key": "our_launch"}),
            ("create_note", note),
            ("update_note", {"note_id": self._one_of("agent_notes"), "add_tags": ["x"]}),
            ("share_note", {"note_id": self._one_of("agent_notes")}),
            ("delete_note", {"note_id": self._one_of("agent_notes")}),
            ("set_reminder", {**at, "for_whom": [self.dice.choice(["me", "us", "Bob"])]}),
            ("change_reminder", {"reminder_id": self._one_of("agent_timers"), "text": "walk"}),
            ("cancel_reminder", {"reminder_id": self._one_of("agent_timers")}),
            ("recall", {"query": "launch", "scope": self.dice.choice(["chat", "everywhere"])}),
            ("suggest_follow_ups", {"questions": ["When is our launch?", "我们什么时候发布？"]}),
            ("send_file", {"name": "a.csv", "kind": "table", "content": "a,b\n1,2\n"}),
            ("search_notes", {"query": "milk"}),
        ]
        return self.dice.choice(acts)

    def _one_of(self, table: str) -> str:
        query = f"select id from {table} where user_id = any (%s) order by id"
        found = self.street.database.execute(query.encode(), [self.people]).fetchall()
        return self.dice.choice(found)[0] if found else "none"

    def file(self) -> None:
        name, text = self.dice.choice(sorted(_FILES.items()))
        content = base64.b64encode(text.encode()).decode()
        how = {"msg_type": "file", "file_base64": content, "file_name": name}
        self._say("", addressed=False, **how, mime="text/plain")
        if self.dice.random() < 0.6:
            self._say("what does this file say?")

    def press(self) -> None:
        """Any button of any card, by anybody who is there."""
        cards = [
            (message, count)
            for chat in (*self.groups, *(self.world.p2p_chat(one).chat_id for one in self.people))
            for message in (self.world.messages[one] for one in self.world.by_chat.get(chat, []))
            if not message.deleted and message.sender == self.world.bot.open_id
            and (card := card_of(self.world, message)) and (count := len(list(buttons(card))))
        ]  # fmt: skip
        if cards:
            message, count = self.dice.choice(cards)
            members = [one for one in self.world.chats[message.chat_id].members
                       if one in self.people]  # fmt: skip
            who = message.visible_to or self.dice.choice(members or self.people)
            index = self.dice.randrange(count)
            label = list(buttons(card_of(self.world, message)))[index]["text"]["content"]
            self.story[-1] += f": {who[-4:]}: {label}"
            self.street.town.platform.clicks.click(who, message.message_id, value=None, index=index)

    def react(self) -> None:
        if message := self._known():
            emoji = self.dice.choice(_EMOJIS)
            self.street.town.platform.actors.react(message, self.dice.choice(self.people), emoji)
            self.story[-1] += f": {emoji}"

    def edit(self) -> None:
        if self.said:
            message = self.world.messages[self.dice.choice(self.said)]
            text = self.dice.choice(_SAYINGS)
            self.street.town.platform.actors.edit(message.message_id, message.sender, text)

    def take_back(self) -> None:
        if self.said:
            message = self.world.messages[self.dice.choice(self.said)]
            self.street.town.platform.actors.recall(message.message_id, message.sender)
            self.story[-1] += f": {self.said.index(message.message_id)}"

    def deliver_again(self) -> None:
        if self.said:
            fresh = self.dice.random() < 0.5
            self.street.town.platform.actors.redeliver(
                self.dice.choice(self.said), 2, new_event_id=fresh
            )

    def join_or_leave(self) -> None:
        group, person = self.dice.choice(self.groups), self.dice.choice(self.people)
        member = person not in self.world.chats[group].members
        self.street.town.platform.groups.set_membership(group, person, member=member)

    async def time_passes(self) -> None:
        """Reminders, digests and unasked answers come."""
        self.street.database.execute(_TIMERS_DUE)
        await queue_due(self.street.services, self.street.table)

    async def while_it_answers(self) -> None:
        """Somebody stops an answer, or takes back its question, or goes on, while it is made."""
        model = self.street.model
        model.goes_on, model.is_asked = asyncio.Event(), asyncio.Event()
        question = self._say("what is a plum, at length?")
        await _until(lambda: model.is_asked.is_set() or self._is_settled())
        kind = self.dice.choice(("stop", "command", "recall", "more", "press", "react", "time"))
        self.story[-1] += f" {kind}"
        if kind == "recall":
            message = self.world.messages[question]
            self.street.town.platform.actors.recall(question, message.sender)
        elif kind == "press":
            self.press()
        elif kind == "react":
            self.react()
        elif kind == "time":
            await self.time_passes()
        else:
            text = {"stop": "stop", "command": "/stop", "more": "and a pear?"}[kind]
            self._say(text, addressed=kind != "stop", reply_to=question)
        await asyncio.sleep(0.03)  # either way is good: it is stopped, or goes on
        model.goes_on.set()
        model.goes_on = None

    async def undeliverable(self) -> None:
        """Feishu takes no answer for good; an operator has it tried again."""
        faults = self.street.town.platform.switchboard
        faults.add(PreparedFault("/open-apis/im/v1/messages", method="POST", code=_FOR_GOOD))
        self._say(self.dice.choice(_SAYINGS))
        await self.settled()
        faults.clear()
        self.retry_or_drop()

    def retry_or_drop(self) -> None:
        for one in self.street.queue.failed():
            act = self.dice.choice((self.street.queue.retry, self.street.queue.drop))
            act(one.reference)
            DONE[f"operator {act.__name__}"] += 1


Step = Callable[[History], Awaitable[None] | None]
STEP_KINDS: list[Step] = [
    History.ask, History.ask, History.ask, History.talk, History.command, History.command,
    History.command_in_thread, History.plain_stop, History.answer, History.answer, History.answer,
    History.use_tools, History.use_tools, History.file, History.press, History.press, History.press,
    History.react, History.edit, History.take_back, History.deliver_again, History.join_or_leave,
    History.time_passes, History.while_it_answers, History.undeliverable,
]  # fmt: skip
