"""A random walk of people and documents: they are shared, closed and deleted, people join, leave,
connect and revoke, ask, press and take back; the worker's own handlers answer over a real database
and the simulated platform, and the model prints every word of a document that stands in its prompt.

A minute passes at each step. What is shown then, and what the model is given for it, everybody who
reads it can open, says the platform; else it is a disclosure.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.features.documents import check_source_documents
from bot.features.private_answers.offering import OfferJob, handle_look_up
from bot.queue.jobs import PRIVATE_TASK, Later
from memory.scope import FeishuPerson
from memory.tables.user_tokens import AskPlace, DeviceCode, TokenPair
from sandbox.world import events
from sandbox.world.actors import Speech
from sandbox.world.clicks import buttons
from sandbox.world.entities import SandboxDocument, SandboxMessage
from sandbox.world.library import LINKS, MANAGERS, new_token
from sandbox.world.user_scopes import USER_SCOPES
from sandbox.world.user_tokens import APPROVED, BOTH
from sandbox.world.wire import card_of
from tests.support.whole_turns import Acts, Stage, handle_pushed

NAMES = ("Ann", "Bea", "Cem", "Eve")  # Eve is of another tenant
_TAG = re.compile(r"banana zq(\d+)zq")
_ATTEMPTS = 4
_NEWEST = 12


class Disclosure(AssertionError):
    """Somebody was shown what they cannot open."""


@dataclass
class DocumentWalk:
    """`seen` counts what happened: a walk in which nothing is told proves nothing."""

    stage: Stage
    dice: random.Random
    people: list[str] = field(default_factory=list)
    group: str = ""
    other: str = ""  # another group, of everybody but the guest
    documents: dict[str, str] = field(default_factory=dict)  # tag → token
    looked_at: dict[str, int] = field(default_factory=dict)  # message_id → version
    shown: dict[str, set[str]] = field(default_factory=dict)  # message_id → tags
    questions: list[SandboxMessage] = field(default_factory=list)
    history: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)

    @property
    def platform(self) -> Any:
        return self.stage.town.platform

    @property
    def world(self) -> Any:
        return self.platform.world

    async def begin(self) -> None:
        for name in NAMES:
            tenant_key = "another" if name == "Eve" else ""
            self.people.append(self.platform.actors.add_person(name, tenant_key=tenant_key).open_id)
        self.group = self.platform.groups.add("Garden", []).chat_id
        self.other = self.platform.groups.add("House", []).chat_id
        for person in self.people[:3]:
            self.platform.groups.set_membership(self.other, person, member=True)
        for person in self.people[:2]:
            self.platform.groups.set_membership(self.group, person, member=True)
            await self._connected(person)
        for _ in range(3):
            self._add()
        await self.work()

    async def step(self) -> None:
        """Something happens, a minute after the last."""
        happens = self.dice.choice(_STEPS)
        self.history.append(happens.__name__)
        self.seen[happens.__name__] += 1
        self.stage.database.execute(
            "update bot_private.told_documents set open_at = open_at - interval '61 seconds'"
        )
        made = happens(self)
        if made is not None:
            await made
        await self.work()

    # Who can open what

    def readers(self, message: SandboxMessage) -> list[str]:
        if message.visible_to:
            return [message.visible_to]
        return [one for one in self.world.chats[message.chat_id].members if one in self.people]

    def check(self, readers: list[str], what: str, text: str) -> None:
        for tag in sorted(set(_TAG.findall(text))):
            self.seen[what] += 1
            document = self.world.documents[self.documents[tag]]
            for reader in readers:
                if document.deleted or not self.platform.library.may(document, reader):
                    story = "\n".join(self.history[-40:])
                    where = text.find(tag)
                    around = text[max(0, where - 600) : where + 200]
                    name = self.world.people[reader].name
                    raise Disclosure(f"{story}\n{name} is shown {tag} in a {what}:\n{around}")

    # What happens

    def share(self) -> None:
        kind, member_id = self.dice.choice(
            [("openchat", one) for one in (self.group, self.other)]
            + [("openid", one) for one in self.people]
        )
        member = {"member_type": kind, "member_id": member_id, "perm": "view"}
        document = self._document()
        self._change(document, members=(*document.members, member)[-4:])

    def unshare(self) -> None:
        document = self._document()
        self._change(document, members=document.members[1:])

    def link(self) -> None:
        manage = self.dice.choice(sorted(MANAGERS))
        likely = (*LINKS, "tenant_readable", "closed")
        self._change(self._document(), link=self.dice.choice(likely), manage=manage)

    def delete(self) -> None:
        self._change(self._document(), deleted=True)
        self._add()

    def join(self) -> None:
        self.platform.groups.set_membership(self.group, self.dice.choice(self.people), member=True)

    def leave(self) -> None:
        person, group = self.dice.choice(self.people), self.dice.choice([self.group, self.other])
        if person in self.world.chats[group].members:
            self.platform.groups.set_membership(group, person, member=False)

    async def connect(self) -> None:
        await self._connected(self.dice.choice(self.people))

    async def revoke(self) -> None:
        """At Feishu, with or without an event, or here."""
        person, how = self.dice.choice(self.people), self.dice.randrange(3)
        if how == 2:
            await self._tokens().disconnect(self._known(person))
            return
        with self.world.lock:
            self.platform.user_tokens.revoke(person)
            revoked = events.token_revoked(self.world, self.world.people[person], BOTH, "x")
        if how:
            self.stage.town.events.append(revoked)

    def ask(self) -> None:
        """About a document; what it says may be kept."""
        document = self._document()
        url = self.platform.library.url(document)
        kept = self.dice.choice(["", "", "", "fact", "note", "reminder"])

        def read(_: str) -> Acts:
            self.stage.model.acts = self._keep(kept)
            return [("read_document", {"url": url})]

        self.stage.model.acts = read
        self._say(f"please note what {url} says")

    def ask_again(self) -> None:
        """About what was said before, in whatever place."""
        acts: Acts = [("recall", {"query": "banana code", "scope": "chat"})]
        acts += [("search_notes", {"query": "banana"}), ("read_working_memory", {})]
        self.stage.model.acts = acts if self.dice.random() < 0.5 else []
        self._say("which banana code was it before?")

    def press(self) -> None:
        """A button of one of the newest cards, mostly the first one, by somebody who sees it."""
        cards = []
        for message_id in list(self.looked_at)[-_NEWEST:]:
            message = self.world.messages[message_id]
            card = None if message.deleted else card_of(self.world, message)
            if card and (found := list(buttons(card))) and (readers := self.readers(message)):
                cards.append((message, len(found), readers))
        alone = [one for one in cards if one[0].visible_to]
        if cards:
            message, count, readers = self.dice.choice(alone or cards)
            index = 0 if self.dice.random() < 0.7 else self.dice.randrange(count)
            who = self.dice.choice(readers)
            self.platform.clicks.click(who, message.message_id, value=None, index=index)

    def take_back(self) -> None:
        if self.questions:
            message = self.questions.pop(self.dice.randrange(len(self.questions)))
            self.platform.actors.recall(message.message_id, message.sender)

    async def look(self) -> None:
        """An hour has passed."""
        await check_source_documents(self.stage.services, after_s=-1)

    def _add(self) -> None:
        """Another document, mostly one that the group can open."""
        tag = f"{time.time_ns()}"
        owner, now = self.dice.choice(self.people[:2]), self.world.now_ms()
        link = self.dice.choice(["tenant_readable", "anyone_readable", "closed"])
        text = f"The banana zq{tag}zq is the code."
        document = SandboxDocument(
            new_token(),
            "docx",
            f"Plan banana zq{tag}zq",
            owner,
            {"blocks": [{"kind": "text", "text": text}]},
            link=link,
            create_ms=now,
        )
        with self.world.lock:
            self.platform.library.put(document)
        self.documents[tag] = document.token

    def _document(self) -> SandboxDocument:
        living = [one for one in self.world.documents.values() if not one.deleted]
        return self.dice.choice(living)

    def _change(self, document: SandboxDocument, **changes: object) -> None:
        with self.world.lock:
            self.platform.library.put(document, **changes)
        self.history[-1] += f": {document.title[-8:]} {changes}"

    def _keep(self, kind: str) -> Callable[[str], Acts] | Acts:
        """The model keeps what stands in its prompt."""

        def acts(prompt: str) -> Acts:
            told = " and ".join(f"banana zq{tag}zq" for tag in dict.fromkeys(_TAG.findall(prompt)))
            day = f"{datetime.now(UTC) + timedelta(days=30):%Y-%m-%d}T10:00"
            calls: dict[str, Acts] = {
                "fact": [("update_working_memory", {"scope": "thread", "patch": {"k": told}})],
                "note": [("create_note", {"title": "fruit", "body": told, "tags": ["a"]})],
                "reminder": [("set_reminder", {"text": told, "at": day, "for_whom": ["us"]})],
            }
            return calls[kind] if told else []

        return acts if kind else []

    def _say(self, text: str) -> None:
        members = [one for one in self.world.chats[self.group].members if one in self.people]
        if members and self.dice.random() < 0.65:
            person, chat = self.dice.choice(members), self.group
            text = f"@{self.world.bot.name} {text}"
        else:
            person = self.dice.choice(self.people)
            chat = self.world.p2p_chat(person).chat_id
        message = self.platform.actors.say(Speech(person, chat, text))
        self.questions = [*self.questions[-5:], message]
        self.history[-1] += f": {self.world.people[person].name} in {chat[-4:]}: {text[-40:]}"

    def _known(self, person: str) -> FeishuPerson:
        tenant_key = self.world.tenant_of(self.world.people[person])
        return FeishuPerson(tenant_key, person)

    def _tokens(self) -> Any:
        access = self.stage.services.access
        assert access
        return access.store

    async def _connected(self, person: str) -> None:
        tokens, known, scopes = self._tokens(), self._known(person), tuple(USER_SCOPES)
        with self.world.lock:
            asked = self.platform.user_tokens.begin(" ".join(scopes))
            asked.open_id, asked.outcome = person, APPROVED
            given = self.platform.user_tokens.poll(asked.device_code)
        pair = TokenPair(
            given.access_token,
            given.expires_in,
            given.refresh_token,
            given.refresh_expires_in,
            given.scopes,
        )
        ask, place = new_token(), AskPlace(self.group, "group", "en", self.group)
        device = DeviceCode(asked.device_code, "https://accounts.feishu.cn/x")
        await tokens.ask(
            known, ask, scopes=scopes, device=device, life_s=600, interval_s=5, place=place
        )
        await tokens.connect(known, ask, pair)
        await tokens.close_ask(known, ask)

    # What the worker does of it

    async def work(self) -> None:
        """Events, then what they queued, until nothing is left; everything shown is looked at."""
        arrived = self.stage.town.events
        while arrived or (jobs := self._jobs()):
            if arrived:
                await self._handle(arrived.pop(0))
            else:
                for task, args in jobs:
                    if task == PRIVATE_TASK:
                        await _tried(lambda attempt, args=args: self._looked_up(args, attempt))
            self._look_at_cards()
        self.stage.model.acts = []

    def _jobs(self) -> list[tuple[str, dict[str, Any]]]:
        return self.stage.database.execute(
            "delete from feishu_bot.jobs returning task, args"
        ).fetchall()

    async def _looked_up(self, args: dict[str, Any], attempt: int) -> None:
        await handle_look_up(self.stage.services, OfferJob.of_job(args), attempt)

    async def _handle(self, event: dict[str, Any]) -> None:
        readers = self._readers_of_answer(event["event"])
        self.stage.model.look = lambda prompt: self.check(readers, "prompt", prompt)
        acts = self.stage.model.acts

        async def handled(attempt: int) -> None:
            self.stage.model.acts = acts
            await handle_pushed(self.stage.services, event, attempt=attempt)

        await _tried(handled)

    def _readers_of_answer(self, event: dict[str, Any]) -> list[str]:
        if message := event.get("message"):
            return self.readers(self.world.messages[message["message_id"]])
        if context := event.get("context"):
            card = self.world.messages[context["open_message_id"]]
            alone = card.visible_to or self.world.chats[card.chat_id].mode == "p2p"
            return [event["operator"]["open_id"]] if alone else self.readers(card)
        return []

    def _look_at_cards(self) -> None:
        chats = [self.group, self.other, *(self.world.p2p_chat(one).chat_id for one in self.people)]
        for message_id in [one for chat in chats for one in self.world.by_chat.get(chat, [])]:
            message = self.world.messages[message_id]
            if self.looked_at.get(message_id) == message.version:
                continue
            self.looked_at[message_id] = message.version
            if message.sender != self.world.bot.open_id:
                continue
            if message.deleted:
                self.seen["withdrawn"] += 1
                continue
            card = card_of(self.world, message)
            alone = "to one" if message.visible_to or message.chat_id != self.group else "to all"
            text = json.dumps(card or message.content)
            for tag in self.shown.get(message_id, ()):  # drawn anew, it tells nothing new
                text = text.replace(tag, "")
            self.check(self.readers(message), alone, text)
            self.shown.setdefault(message_id, set()).update(_TAG.findall(text))


async def _tried(handle: Callable[[int], Any]) -> Any:
    """As the queue does it."""
    for attempt in range(1, _ATTEMPTS):
        try:
            return await handle(attempt)
        except Later:
            continue
    return await handle(_ATTEMPTS)


async def walk(stage: Stage, seed: int, steps: int) -> Counter[str]:
    """So many steps; an error carries its seed."""
    made = DocumentWalk(replace(stage), random.Random(seed))
    try:
        await made.begin()
        for _ in range(steps):
            await made.step()
    except Exception as exc:
        exc.add_note(f"DOCUMENT_WALK_SEED={seed}, after {len(made.history)} steps")
        raise
    finally:
        stage.town.events.clear()
    return made.seen


_STEPS: list[Callable[[DocumentWalk], Any]] = [
    DocumentWalk.ask, DocumentWalk.ask, DocumentWalk.ask, DocumentWalk.ask, DocumentWalk.ask_again,
    DocumentWalk.ask_again, DocumentWalk.ask_again, DocumentWalk.press, DocumentWalk.press,
    DocumentWalk.press, DocumentWalk.share, DocumentWalk.share, DocumentWalk.unshare,
    DocumentWalk.link, DocumentWalk.link, DocumentWalk.join, DocumentWalk.leave,
    DocumentWalk.connect, DocumentWalk.connect, DocumentWalk.revoke, DocumentWalk.delete,
    DocumentWalk.take_back, DocumentWalk.look,
]  # fmt: skip
