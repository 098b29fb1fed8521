"""Random groups with a past, and what the bot reads of it. Who could read what is known here.

A group lives for a hundred steps of five minutes, so that every membership is fresh. The bot comes
in the middle, an import reads what was said, and people go on joining and leaving.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import psycopg

from tests.support.actors import Actor, become

CHAT, TENANT = "oc_past", "tenant"
_STEPS, _STEP = 100, timedelta(minutes=5)
_NAMES = ("Li Wei", "Ann", "Bob", "王芳")


@dataclass
class Person:
    open_id: str
    name: str
    joined: int | None = None  # the step of the last joining; None: not in the group


@dataclass
class PastGroup:
    """Plays a history from `rng`. `said` tells when each message was sent."""

    connection: psycopg.Connection
    rng: random.Random
    end: datetime = field(default_factory=lambda: datetime.now(UTC))
    said: dict[str, int] = field(default_factory=dict)
    people: list[Person] = field(default_factory=list)
    history: str = ""
    _messages: list[dict[str, object]] = field(default_factory=list)
    _system: list[tuple[int, str, bool]] = field(default_factory=list)
    _names: int = 0
    _import: int = 0

    def play(self) -> None:
        """From the group's beginning to an import that is done, or to one that is under way."""
        comes = self.rng.randint(20, 60)
        asks = self.rng.randint(comes + 5, 80)
        self.people = [
            Person(f"ou_{n}", self.rng.choice(_NAMES)) for n in range(self.rng.randint(2, 6))
        ]
        for step in range(_STEPS):
            self._live(step, known=step > comes)
            if step == comes:
                self._bot_comes(step)
            if step == asks:
                self._begin(step)
            if step == asks + 3:
                self._read()
            if step == asks + 6 and self.rng.random() < 0.9:
                self._finish(step)
        self.history = self.rng.choice(["", "", "hidden", "shown"])
        self.connection.execute(
            "insert into chat_rules (tenant_key, chat_id, history) values (%s, %s, %s)",
            [TENANT, CHAT, self.history or None],
        )

    def remove(self) -> None:
        self.connection.execute("select set_import_state(%s, %s, 'removing')", [CHAT, TENANT])

    def members(self) -> list[Person]:
        return [person for person in self.people if person.joined is not None]

    def could_read(self, message: str, readers: list[Person]) -> bool:
        """Whether all of `readers` were there, or the owner says that this does not matter."""
        if self.history == "shown":
            return True
        sent = self.said[message]
        return all(person.joined is not None and person.joined <= sent for person in readers)

    def read(self, person: Person, *, privately: bool) -> tuple[set[str], set[str]]:
        """What the token of a turn reads, and what recall finds with it."""
        chat, kind = (f"oc_p2p_{person.open_id}", "p2p") if privately else (CHAT, "group")
        claims = {
            "sub": person.open_id, "actor": person.open_id, "chat_id": chat, "chat_type": kind,
            "tenant_key": TENANT, "role": "authenticated",
        }  # fmt: skip
        with self.connection.transaction(force_rollback=True):
            become(self.connection, Actor("authenticated", claims))
            seen = self.connection.execute("select message_id from imported_messages").fetchall()
            [found] = self.connection.execute(
                "select recall(%s, %s, %s, %s, %s, 'walrus', 'everywhere', 200)",
                [f"feishu:{chat}:main", person.open_id, person.open_id, chat, TENANT],
            ).fetchone() or [[]]
        return {name for (name,) in seen}, {one["feishu_id"] for one in found}

    def _live(self, step: int, *, known: bool) -> None:
        for person in self.people:
            there = person.joined is not None
            if not there and self.rng.random() < (0.3 if step == 0 else 0.02):
                person.joined = step
                self._system.append((step, person.name, True))
                if known:
                    self._tell("add_chat_members", person, step)
            elif there and self.rng.random() < 0.01:
                person.joined = None
                if self.rng.random() < 0.7:
                    self._system.append((step, person.name, False))
                if known and self.rng.random() < 0.8:
                    self._tell("remove_chat_members", person, step)
            elif there and self.rng.random() < 0.15:
                self._say(person, step)
            elif self.rng.random() < 0.01:
                self._names += 1
                person.name = f"New {self._names}"

    def _say(self, person: Person, step: int) -> None:
        message_id = f"om_{len(self.said)}"
        self.said[message_id] = step
        self._messages.append({
            "message_id": message_id, "root_id": "", "author_id": person.open_id,
            "author_name": "", "sent_ms": self._ms(step), "content": f"walrus {message_id}",
        })  # fmt: skip

    def _bot_comes(self, step: int) -> None:
        self.connection.execute(
            "select enter_chat(%s, %s, 'Past', %s)", [TENANT, CHAT, self._ms(step)]
        )
        self.connection.execute(
            "select save_chat_members(%s, %s, %s)",
            [CHAT, self._rows(*self.members()), self._ms(step)],
        )

    def _begin(self, step: int) -> None:
        since = self._ms(self.rng.randint(0, step)) if self.rng.random() < 0.5 else None
        [row] = self.connection.execute(
            "select start_import(%s, %s, 'group', %s, %s)", [CHAT, TENANT, since, self._ms(step)]
        ).fetchone() or [{}]
        self._import = row["id"]
        self._since = since or 0

    def _read(self) -> None:
        """All pages, some of them twice, as Feishu lists them now."""
        names = {person.open_id: person.name for person in self.people}
        told = [{**one, "author_name": names[str(one["author_id"])]} for one in self._messages]
        joins = [
            {"name": name, "at_ms": self._ms(at), "joined": joined}
            for at, name, joined in self._system
            if self._ms(at) >= self._since
        ]
        size = max(1, len(told) // 3)
        pages = [told[start : start + size] for start in range(0, len(told), size)] or [[]]
        for number, page in enumerate(pages):
            last = number == len(pages) - 1
            body = {
                "messages": page, "threads": [], "counts": {},
                "memberships": joins if last else [],
                "next_position": "" if last else str(number + 1),
            }  # fmt: skip
            for _ in range(self.rng.choice([1, 1, 2])):
                self.connection.execute(
                    "select store_import_page(%s, 'chat', %s, %s)",
                    [self._import, str(number or ""), json.dumps(body)],
                )

    def _finish(self, step: int) -> None:
        self.connection.execute("select next_import_thread(%s)", [self._import])
        held = {person.open_id: [person.name] for person in self.members()}
        self.connection.execute("select finish_import(%s, %s)", [self._import, json.dumps(held)])

    def _tell(self, function: str, person: Person, step: int) -> None:
        self.connection.execute(
            f"select {function}(%s, %s, %s, %s)".encode(),
            [TENANT, CHAT, self._rows(person), self._ms(step)],
        )

    def _rows(self, *people: Person) -> str:
        return json.dumps([{"tenant_key": TENANT, "open_id": one.open_id} for one in people])

    def _ms(self, step: int) -> int:
        return int((self.end - (_STEPS - step) * _STEP).timestamp() * 1000)
