"""The simulated tenant in memory: who is there, and what was said.

One lock guards everything; entities are frozen, so readers may keep what they were given.
Every change goes through `World.put`, which the journal and the live feed listen to.
"""

import hashlib
import threading
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

from sandbox.config import SandboxConfig
from sandbox.world.app_console import AppConsole
from sandbox.world.entities import (
    BOT,
    P2P,
    USER,
    Card,
    Chat,
    Entity,
    Resource,
    SandboxDocument,
    SandboxEvent,
    SandboxMessage,
    SandboxPerson,
    SandboxTask,
    new_id,
)
from sandbox.world.history import Container
from sandbox.world.scopes import ALL_GROUP_MESSAGES, suffice
from sandbox.world.switches import Switches

Listener = Callable[[Entity], None]


def stable_id(prefix: str, seed: str, length: int = 32) -> str:
    """An id that is the same in every run."""
    return prefix + hashlib.sha256(f"sandbox:{seed}".encode()).hexdigest()[:length]


class World:
    """People, chats, messages, cards and resources of one tenant."""

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.switches = Switches(rate_limits=config.rate_limits, minute_limits=config.rate_limits)
        self.console = AppConsole()
        if not config.all_group_messages:
            self.console.granted.discard(ALL_GROUP_MESSAGES)
        self.people: dict[str, SandboxPerson] = {}
        self.chats: dict[str, Chat] = {}
        self.messages: dict[str, SandboxMessage] = {}
        self.cards: dict[str, Card] = {}
        self.resources: dict[str, Resource] = {}
        self.documents: dict[str, SandboxDocument] = {}
        self.events: dict[str, SandboxEvent] = {}
        self.tasks: dict[str, SandboxTask] = {}
        self.by_chat: dict[str, list[str]] = {}
        self.containers: dict[str, Container] = {}  # what is listed, by chat and by thread
        self._listeners: list[Listener] = []
        self._keepers: list[Listener] = []
        self.bot = SandboxPerson(stable_id("ou_", config.app_id), config.bot_name, BOT)
        self._populate()

    def may(self, any_of: Collection[str]) -> bool:
        """Whether the app is granted one of the scopes."""
        return suffice(self.console.granted, any_of)

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return int(self.config.clock() * 1000)

    def listen(self, listener: Listener, *, to_the_past: bool = False) -> None:
        """Call `listener` with every entity that changes from now on, under the lock; also with
        those of a past that is taken in, if it is `to_the_past`."""
        self._listeners.append(listener)
        if to_the_past:
            self._keepers.append(listener)

    def put(self, entity: Entity) -> None:
        """Add or replace an entity, and tell everybody who waits or listens."""
        with self.lock:
            self.restore(entity)
            for listener in self._listeners:
                listener(entity)
            self.changed.notify_all()

    def take_in(self, past: Iterable[Entity]) -> None:
        """Add what was there before: nobody is told, it is only kept. Messages come in order of
        their time and get their places after all others; who is known already stays."""
        with self.lock:
            for entity in past:
                if isinstance(entity, SandboxPerson) and entity.open_id in self.people:
                    continue
                if isinstance(entity, SandboxMessage):
                    entity = replace(entity, position=len(self.messages) + 1)
                self.restore(entity)
                for keep in self._keepers:
                    keep(entity)

    def restore(self, entity: Entity) -> None:
        """Add or replace an entity silently, as the journal does."""
        if isinstance(entity, SandboxPerson):
            self.people[entity.open_id] = entity
        elif isinstance(entity, Chat):
            self.chats[entity.chat_id] = entity
        elif isinstance(entity, Card):
            self.cards[entity.card_id] = entity
        elif isinstance(entity, Resource):
            self.resources[entity.key] = entity
        elif isinstance(entity, SandboxDocument):
            self.documents[entity.token] = entity
        elif isinstance(entity, SandboxEvent):
            self.events[entity.event_id] = entity
        elif isinstance(entity, SandboxTask):
            self.tasks[entity.guid] = entity
        else:
            self._index(entity)

    def entities(self) -> list[Entity]:
        """Everything but the app's own bot, which the configuration describes."""
        people = [one for one in self.people.values() if one != self.bot]
        things: list[Entity] = [*people, *self.chats.values(), *self.resources.values()]
        things += [*self.documents.values(), *self.events.values(), *self.tasks.values()]
        return [*things, *self.cards.values(), *self.messages.values()]

    def change(self, message: SandboxMessage, **changes: object) -> SandboxMessage:
        """The message with `changes`, stored, with its version counted up."""
        changed = replace(message, version=message.version + 1, **changes)  # type: ignore[arg-type]
        self.put(changed)
        return changed

    def shared(self, message_id: str) -> SandboxMessage | None:
        """The message, unless one person alone sees it: the message API knows no such cards."""
        message = self.messages.get(message_id)
        return None if message is None or message.visible_to else message

    def p2p_chat(self, open_id: str) -> Chat:
        """The chat of that person with the bot; made on first use."""
        for chat in self.chats.values():
            if chat.mode == P2P and open_id in chat.members:
                return chat
        members = (open_id, self.bot.open_id)
        chat = Chat(stable_id("oc_", f"p2p:{open_id}"), self.people[open_id].name, P2P, members)
        self.put(chat)
        return chat

    def tenant_of(self, person: SandboxPerson) -> str:
        """The person's own tenant."""
        return person.tenant_key or self.config.tenant_key

    def is_external(self, chat: Chat) -> bool:
        """Whether somebody of another tenant is in the chat."""
        home = self.config.tenant_key
        return any(self.tenant_of(one) != home for one in self.member_names(chat))

    def member_names(self, chat: Chat) -> list[SandboxPerson]:
        """The members of a chat, bots included."""
        return [self.people[one] for one in chat.members if one in self.people]

    def _index(self, message: SandboxMessage) -> None:
        known = self.messages.get(message.message_id)
        self.messages[message.message_id] = message
        if known is None:
            self.by_chat.setdefault(message.chat_id, []).append(message.message_id)
            # a chat holds the first messages of its threads, not the replies in them
            if not message.visible_to and root_of_thread(self, message) is message:
                self.containers.setdefault(message.chat_id, Container()).add(message)
        if message.thread_id and (known is None or not known.thread_id):
            self.containers.setdefault(message.thread_id, Container()).add(message)

    def _populate(self) -> None:
        people = [
            SandboxPerson(stable_id("ou_", name), name, USER, en_name, stable_id("on_", name))
            for name, en_name in (("Alice", "Alice"), ("Bob", "Bob"), ("陈晨", "Chen Chen"))
        ]
        for person in (self.bot, *people):
            self.restore(person)
        everyone = tuple(one.open_id for one in (*people, self.bot))
        for name in ("Launch team", "Kitchen"):
            self.restore(Chat(stable_id("oc_", name), name, members=everyone))
        for person in people:
            self.p2p_chat(person.open_id)


def root_of_thread(world: World, message: SandboxMessage) -> SandboxMessage:
    """The first message of its thread; one that quotes another may be the first of its own."""
    above = world.messages.get(message.root_id) if message.thread_id else None
    return above if above and above.thread_id == message.thread_id else message


def new_message_id() -> str:
    """A fresh `om_` id."""
    return new_id("om_")
