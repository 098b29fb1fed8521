"""Groups of the simulated tenant: who comes and goes, and the events it makes.

Feishu tells an app of a group that its bot is in, and of the bot's own coming and going.
"""

from collections.abc import Iterable
from dataclasses import replace

from sandbox.world import events
from sandbox.world.actors import Actors, ControlRefused
from sandbox.world.entities import GROUP, TOPIC, USER, Chat, Entity, SandboxMessage, new_id
from sandbox.world.events import Envelope
from sandbox.world.push import Pusher
from sandbox.world.state import World, new_message_id
from sandbox.world.system_messages import INVITED, LEFT, system_content

MOST_KEY_CHARS = 30


class Groups:
    """The groups, as remote-controlled by the page or a test."""

    def __init__(self, world: World, pusher: Pusher, actors: Actors) -> None:
        self._world = world
        self._pusher = pusher
        self._actors = actors
        self._told: dict[tuple[str, str], Envelope] = {}

    def add(
        self,
        name: str,
        members: list[str],
        *,
        with_bot: bool = True,
        topics: bool = False,
        form: str = "chat",
        silently: bool = False,
    ) -> Chat:
        """A new group of a message form, or topic group; the app hears that its bot was added,
        unless `silently`: the event is lost."""
        with self._world.lock:
            people = [self._actors.person(one) for one in members]
            ids = [one.open_id for one in people if one != self._world.bot]
            if with_bot:
                ids.append(self._world.bot.open_id)
            mode = TOPIC if topics else GROUP
            since = self._world.now_ms() if with_bot else 0
            members_there = tuple(dict.fromkeys(ids))
            chat = Chat(new_id("oc_"), name, mode, members_there, form=form, bot_since_ms=since)
            self._world.put(chat)
            operator = people[0] if people else self._world.bot
            envelope = events.bot_membership(self._world, chat, operator, added=True)
        if with_bot and not silently:
            self._tell(envelope)
        return chat

    def take_in(self, chat: Chat, past: Iterable[Entity]) -> Chat:
        """A group with what was said in it before; the page hears of the group and its people."""
        with self._world.lock:
            if chat.chat_id in self._world.chats:
                raise ControlRefused("that past is here already; name another seed")
            self._world.take_in(past)
            for one in self._world.member_names(chat):
                self._world.put(one)
            self._world.put(chat)
        return chat

    def enter(self, open_id: str) -> Chat:
        """Somebody opens their chat with the bot; the app hears of it every time."""
        with self._world.lock:
            person = self._actors.person(open_id)
            chat = self._world.p2p_chat(person.open_id)
            envelope = events.p2p_entered(self._world, chat, person)
        self._tell(envelope)
        return chat

    def press_menu(
        self, open_id: str, event_key: str, times: int = 1, *, new_event_ids: bool = False
    ) -> None:
        """Somebody presses an item of the menu in their chat with the bot, once; the app is told
        so often."""
        if not 1 <= len(event_key) <= MOST_KEY_CHARS:
            raise ControlRefused(f"an event key has 1 to {MOST_KEY_CHARS} characters")
        with self._world.lock:
            person = self._actors.person(open_id)
            if person.kind != USER:
                raise ControlRefused("only a person has a menu")
            envelope = events.menu_pressed(self._world, person, event_key)
        for number in range(times):
            again = events.with_new_event_id(envelope) if number and new_event_ids else envelope
            self._pusher.push(again)

    def tell_again(
        self, chat_id: str, event_type: str, times: int, *, new_event_id: bool = False
    ) -> None:
        """The last event of that type about a chat is pushed again, as Feishu sometimes does."""
        told = self._told.get((event_type, chat_id))
        if told is None:
            raise ControlRefused(f"nothing of the type {event_type!r} was told of that chat")
        for _ in range(times):
            self._pusher.push(events.with_new_event_id(told) if new_event_id else told)

    def set_membership(
        self, chat_id: str, open_id: str, *, member: bool, silently: bool = False
    ) -> Chat:
        """Somebody (or the bot) joins or leaves; `silently`: the event is lost."""
        with self._world.lock:
            before, person = self._group(chat_id), self._actors.person(open_id)
            others = tuple(one for one in before.members if one != open_id)
            chat = replace(before, members=(*others, open_id) if member else others)
            if open_id == self._world.bot.open_id:
                chat = replace(chat, bot_since_ms=self._world.now_ms())
                envelope = events.bot_membership(self._world, chat, person, added=member)
            else:
                what = "added" if member else "deleted"
                envelope = events.user_membership(self._world, chat, person, what)
            if (open_id in before.members) is not member:
                self._write(chat, INVITED if member else LEFT, person.name)
        return self._changed(before, chat, None if silently else envelope)

    def withdraw(self, chat_id: str, open_id: str) -> Chat:
        """Somebody's invitation is taken back: they are out again."""
        with self._world.lock:
            before, person = self._group(chat_id), self._actors.person(open_id)
            others = tuple(one for one in before.members if one != open_id)
            chat = replace(before, members=others)
            envelope = events.user_membership(self._world, chat, person, "withdrawn")
        return self._changed(before, chat, envelope)

    def rename(self, chat_id: str, name: str) -> Chat:
        """The group gets another name."""
        if not name:
            raise ControlRefused("a group needs a name")
        with self._world.lock:
            before = self._group(chat_id)
            chat = replace(before, name=name)
            envelope = events.renamed(self._world, before, chat)
        return self._changed(before, chat, envelope)

    def dissolve(self, chat_id: str) -> Chat:
        """The group is dissolved; nobody can write in it any more."""
        with self._world.lock:
            before = self._group(chat_id)
            event = {
                "chat_id": before.chat_id,
                **events.operator(self._world, before),
                "external": self._world.is_external(before),
                "name": before.name,
                "i18n_names": {"zh_cn": before.name, "en_us": before.name},
            }
            envelope = events.envelope(self._world, "im.chat.disbanded_v1", event)
        return self._changed(before, replace(before, dissolved=True), envelope)

    def _write(self, chat: Chat, what: str, name: str) -> None:
        """Who came or went is a message in the group, too; no event tells of it."""
        here = chat.members[0] if chat.members else ""
        by = self._world.people[here].name if what == INVITED and here else name
        content = system_content(what, [by], [name] if what == INVITED else [])
        now, position = self._world.now_ms(), len(self._world.messages) + 1
        self._world.put(
            SandboxMessage(
                new_message_id(), chat.chat_id, "", "system", content, now, now, position=position
            )
        )

    def _group(self, chat_id: str) -> Chat:
        chat = self._actors.chat(chat_id)
        if chat.mode not in (GROUP, TOPIC):
            raise ControlRefused("a p2p chat stays as it is")
        return chat

    def _changed(self, before: Chat, chat: Chat, envelope: Envelope | None) -> Chat:
        """Stores the group, and tells the app if its bot is there, or just was."""
        self._world.put(chat)
        if envelope and self._world.bot.open_id in (*before.members, *chat.members):
            self._tell(envelope)
        return chat

    def _tell(self, envelope: Envelope) -> None:
        self._told[envelope["header"]["event_type"], envelope["event"]["chat_id"]] = envelope
        self._pusher.push(envelope)
