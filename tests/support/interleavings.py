"""Random histories of people, groups and p2p chats, and what a read of the memory may then give.

One interleaving is a history of up to `STEPS` steps that ends in a read: somebody asks, in a group
or alone with the bot, and everything that the database would give to that turn is collected. Each
thing said carries a tag; who may be shown it is stated here a second time, in Python.

The tenant of a row is that of the bot that heard it: eve's is another one. In some histories bob is
a guest, of a third company but with the same bot; in others cid is one whose open_id is ann's. In
some the group g tells nothing from before its newest member joined.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg

STEPS = 12
PEOPLE, GROUPS = ("ann", "bob", "cid", "eve"), ("g", "h")
TENANT_OF = {"ann": "t0", "bob": "t0", "cid": "t0", "eve": "t1"}
GUESTS = ("", "bob", "cid")  # of which kind a history is; cid's open_id is ann's then
GUESTS_TENANT = "t2"

_TAG = re.compile(r"⟦(\w+):(\d+)⟧")
_AS = "set local role authenticated; select set_config('request.jwt.claims', %s, true); "

TABLES = {
    "agent_messages": "*",
    "agent_turns": "*",
    "agent_chats": "id, user_id, chat_id",
    "agent_working_memory": "*",
    "agent_notes": "*",
    "agent_summaries": "*",
    "chat_transcript": "*",
    "agent_turn_texts": "*",
}

# What stands in a test's database besides: `attempt` gives the result of a call as text, null where
# the database refuses, so that many go in one message; `tables` all rows that the token reads.
TOOLS = f"""
  create function public.attempt(p_call text) returns text language plpgsql as $$
  declare v_result text;
  begin
    execute p_call into v_result;
    return v_result;
  exception when others then
    if sqlstate like 'PT%' or sqlstate = '42501' then return null; end if;
    raise;
  end $$;
  create function public.tables() returns text[] language plpgsql as $$
  begin
    return array[{
    ", ".join(
        f"(select jsonb_agg(to_jsonb(r))::text from (select {columns} from public.{table}) r)"
        for table, columns in TABLES.items()
    )
}];
  end $$;
  grant execute on function public.attempt, public.tables to authenticated"""


@dataclass(frozen=True, slots=True)
class Place:
    """A group, or one person alone with the bot."""

    name: str
    is_group: bool


@dataclass(slots=True)
class Said:
    """Something that was said or kept, in place and time (steps)."""

    author: str
    subject: str
    place: Place
    at: int
    message_id: str
    gone: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A turn: who asks about whom and where; `sharing` narrows what it may draw on."""

    place: Place
    actor: str
    subject: str
    thread: str
    sharing: str = "chat"


class Leak(AssertionError):
    """A read gave what its audience could not read."""


@dataclass
class World:
    """One interleaving. `mark` keeps it apart from the others in the database."""

    database: psycopg.Connection
    dice: random.Random
    mark: str
    said: dict[int, Said] = field(default_factory=dict)
    members: dict[str, dict[str, int | None]] = field(default_factory=dict)
    turns: list[tuple[Asked, str]] = field(default_factory=list)
    notes: list[tuple[Asked, str, int]] = field(default_factory=list)
    shared: dict[int, str] = field(default_factory=dict)
    history: list[str] = field(default_factory=list)
    clock: int = 0

    def __post_init__(self) -> None:
        if self.hides:
            group = self.chat(Place("g", is_group=True))
            self.database.execute(
                "insert into chats (chat_id, members_read_at) values (%s, now())", [group]
            )
            self.database.execute(
                "insert into chat_rules (chat_id, tenant_key, history)"
                " select %s, t, 'hidden' from unnest(%s::text[]) t",
                [group, sorted(set(TENANT_OF.values()))],
            )

    # Names

    def id(self, kind: str, name: str) -> str:
        return f"{kind}_{name}_{self.mark}"

    def person(self, name: str) -> str:
        """An open_id."""
        return self.id("ou", "ann" if name == self.guest == "cid" else name)

    @property
    def guest(self) -> str:
        """Who of the people is of another company than the bot, "" for nobody."""
        return GUESTS[int(self.mark, 16) % len(GUESTS)]

    @property
    def hides(self) -> bool:
        """Whether the group g is told nothing from before its newest member joined."""
        return int(self.mark, 16) // len(GUESTS) % 4 == 0

    def own_tenant(self, name: str) -> str:
        return GUESTS_TENANT if name == self.guest else TENANT_OF[name]

    def chat(self, place: Place) -> str:
        return self.id("oc", place.name if place.is_group else f"p2p{place.name}")

    def conversation(self, asked: Asked) -> str:
        return f"feishu:{self.chat(asked.place)}:{self.root(asked)}"

    def root(self, asked: Asked) -> str:
        return self.id("om", asked.thread) if asked.place.is_group else "main"

    def identity(self, asked: Asked) -> dict[str, str]:
        return {
            "p_conversation_id": self.conversation(asked),
            "p_user_id": self.person(asked.subject),
            "p_actor_id": self.person(asked.actor),
        }

    def claims(self, asked: Asked) -> str:
        claims = {
            "sub": self.person(asked.subject),
            "actor": self.person(asked.actor),
            "chat_id": self.chat(asked.place),
            "chat_type": "group" if asked.place.is_group else "p2p",
            "tenant_key": TENANT_OF[asked.actor],
            "role": "authenticated",
        }
        narrowed = {"sharing": "person"} if asked.sharing == "person" else {}
        own = {"actor_tenant": GUESTS_TENANT} if asked.actor == self.guest else {}
        return json.dumps(claims | narrowed | own)

    def new(self, asked: Asked, message_id: str) -> str:
        """A tag for what is said in a turn."""
        number = len(self.said) + 1
        self.said[number] = Said(asked.actor, asked.subject, asked.place, self.clock, message_id)
        return f"banana ⟦{self.mark}:{number}⟧"

    # Calls

    def call(self, asked: Asked, function: str, params: Mapping[str, object]) -> Any:
        """The function's result with the turn's token; None where the database refuses."""
        statement = f"{_AS}{_query(function, params)}"
        try:
            cursor = self.database.execute(
                statement.encode(), [self.claims(asked), *params.values()]
            )
        except psycopg.Error as exc:
            if (exc.sqlstate or "").startswith("PT") or exc.sqlstate == "42501":
                return None
            raise
        cursor.nextset()
        cursor.nextset()
        row = cursor.fetchone()
        return row[0] if row else None

    def collect(self, asked: Asked, calls: Sequence[tuple[str, str, Sequence[object]]]) -> None:
        """Looks at what all `calls` give to that turn, (what is read, a query, its parameters), and
        at the rows of the tables."""
        queries = [psycopg.ClientCursor(self.database).mogrify(q, p) for _, q, p in calls]  # type: ignore[arg-type]
        attempts = ", ".join(["attempt(%s)"] * len(queries))
        cursor = self.database.execute(
            f"{_AS}select public.tables(), {attempts}".encode(), [self.claims(asked), *queries]
        )
        cursor.nextset()
        cursor.nextset()
        rows, *results = cursor.fetchone() or ()
        found = [*zip(TABLES, rows, strict=True)]
        found += zip((what for what, _, _ in calls), results, strict=True)
        for what, result in found:
            self.check(asked, what, result)

    # Who asks where

    def anybody(self) -> Asked:
        dice = self.dice
        actor = dice.choice(PEOPLE)
        if dice.random() < 0.35:
            return Asked(Place(actor, is_group=False), actor, actor, "main")
        subject = dice.choice(PEOPLE) if dice.random() < 0.35 else actor
        group = Place(dice.choice(GROUPS), is_group=True)
        return Asked(group, actor, subject, f"{group.name}{dice.randrange(2)}")

    # Steps

    def ask(self) -> None:
        asked = self.anybody()
        turn = self.id("om", f"q{self.clock}")
        where = {"p_chat_id": self.chat(asked.place), "p_tenant_key": TENANT_OF[asked.actor]}
        opened = self.call(asked, "begin_turn", {
            "p_turn_id": turn, **self.identity(asked), **where, "p_root_id": self.root(asked),
            "p_actor_name": asked.actor, "p_content": self.new(asked, turn),
            "p_history_limit": 10, "p_fold_after": 2, "p_heard": None, "p_decision": None,
        })  # fmt: skip
        assert opened["state"] == "open", opened
        self.check(asked, "begin_turn", opened)
        card = self.new(asked, turn)
        mine = {"p_turn_id": turn, **self.identity(asked)}
        self.call(asked, "record_reply", {**mine, "p_cards": json.dumps([card]),
                                          "p_tool_calls": "[]"})  # fmt: skip
        sent = {"p_chunk": 0, "p_content": card, "p_message_id": self.id("om", f"a{self.clock}")}
        assert self.call(asked, "mark_sent", {**mine, **sent}) == {"state": "sent"}
        self.turns.append((asked, turn))

    def anything_asked(self) -> tuple[Asked, str | None]:
        """A turn that was asked, with the id of its message; now and then one that is not known."""
        if self.turns and self.dice.random() < 0.6:
            asked, turn = self.dice.choice(self.turns)
            return asked, turn
        return self.anybody(), None

    def keep(self) -> None:
        asked, turn = self.anything_asked()
        scope = "user" if asked.actor == asked.subject and self.dice.random() < 0.5 else "chat"
        kept = self.call(asked, "merge_working_memory", {
            **self.identity(asked), "p_chat_id": self.chat(asked.place),
            "p_tenant_key": TENANT_OF[asked.actor], "p_scope": scope,
            "p_patch": json.dumps({f"k{self.dice.randrange(3)}": self.new(asked, turn or "")}),
            "p_turn_id": turn,
        })  # fmt: skip
        if kept is None:  # the message was taken back
            self.said[len(self.said)].gone = True

    def note(self) -> None:
        asked, turn = self.anything_asked()
        tag = self.new(asked, turn or "")
        # a note is its author's, whomever the turn is about
        self.said[len(self.said)].subject = asked.actor
        note = f"note_{len(self.notes)}_{self.mark}"
        made = self.call(asked, "create_note", {
            **self._noting(asked), "p_note_id": note, "p_title": f"banana {self.clock}",
            "p_body": tag, "p_tags": "[]", "p_turn_id": turn,
        })  # fmt: skip
        if made is None:  # the message was taken back
            self.said[len(self.said)].gone = True
            return
        assert made["id"] == note
        self.notes.append((asked, note, len(self.said)))

    def share(self) -> None:
        """Somebody shares a note of theirs in the chat they are in."""
        if not self.notes:
            return
        made, note, number = self.dice.choice(self.notes)
        asked = self.anybody()
        done = self.call(asked, "share_note", {**self._noting(asked), "p_note_id": note,
                                               "p_share": True})  # fmt: skip
        if done is not None:
            assert self.person(asked.actor) == self.person(made.actor), "somebody else's note"
            self.shared[number] = self.chat(asked.place)

    def _noting(self, asked: Asked) -> dict[str, str]:
        where = {"p_tenant_key": TENANT_OF[asked.actor], "p_chat_id": self.chat(asked.place)}
        return {**self.identity(asked), **where}

    def talk(self) -> None:
        """People talk in a group, and the conversation there is kept."""
        asked = self.anybody()
        if not asked.place.is_group:
            return
        message = self.id("om", f"t{self.clock}")
        record = {"message_id": message, "root_id": None, "author": asked.actor,
                  "author_id": self.person(asked.actor), "content": self.new(asked, message),
                  "timestamp": self.clock, "is_bot": False, "ours": False}  # fmt: skip
        self.call(asked, "continue_conversation", {
            "p_chat_id": self.chat(asked.place), "p_tenant_key": TENANT_OF[asked.actor],
            "p_records": json.dumps([record]), "p_now": self.clock, "p_active_since": 0,
            "p_keep": 50,
        })  # fmt: skip

    def fold(self) -> None:
        """A summary is made of what the thread holds."""
        if not self.turns:
            return
        asked, _ = self.dice.choice(self.turns)
        own = Asked(asked.place, asked.subject, asked.subject, asked.thread)
        if TENANT_OF[own.actor] != TENANT_OF[asked.actor]:
            return
        found = self.call(own, "open_fold", {**self.identity(own), "p_window": 0, "p_least": 1,
                                             "p_limit": 20})  # fmt: skip
        self.check(own, "open_fold", found)
        if found is None or not found["messages"]:
            return
        words = " ".join([found["content"], *(one["content"] for one in found["messages"])])
        rows = [row for one in found["messages"] for row in one["rows"]]
        self.call(own, "save_summary", {
            **self.identity(own), "p_summary_id": found["id"],
            "p_expected_version": found["version"], "p_content": words, "p_verbatim": "[]",
            "p_rows": json.dumps(rows), "p_messages": len(rows),
        })  # fmt: skip

    def join(self) -> None:
        group, who = self.dice.choice(GROUPS), self.dice.choice(PEOPLE)
        known = self.dice.random() < 0.5
        self.members.setdefault(group, {})[who] = self.clock if known else None
        self._membership(group, who, f"{'clock_timestamp()' if known else 'null'}, now(), null")

    def leave(self) -> None:
        group, who = self.dice.choice(GROUPS), self.dice.choice(PEOPLE)
        if self.members.get(group, {}).pop(who, "none") != "none":
            self._membership(group, who, "null, now(), now()")

    def lapse(self) -> None:
        """Nobody has confirmed a membership for more than a day."""
        group, who = self.dice.choice(GROUPS), self.dice.choice(PEOPLE)
        if self.members.get(group, {}).pop(who, "none") != "none":
            self._membership(group, who, "null, now() - interval '25 hours', null")

    def _membership(self, group: str, who: str, values: str) -> None:
        chat = self.chat(Place(group, is_group=True))
        self.database.execute(
            f"insert into chat_members (tenant_key, chat_id, open_id, joined_at, seen_at, left_at)"
            f" values (%s, %s, %s, {values}) on conflict (tenant_key, chat_id, open_id) do update"
            f" set joined_at = excluded.joined_at, seen_at = excluded.seen_at,"
            f" left_at = excluded.left_at".encode(),
            [self.own_tenant(who), chat, self.person(who)],
        )

    def take_back(self) -> None:
        """A question is taken back: it is gone, with what was made of it."""
        if not self.turns:
            return
        asked, turn = self.dice.choice(self.turns)
        self.database.execute(
            "select public.recall_message(%s, %s)", [turn, self.chat(asked.place)]
        )
        for said in self.said.values():
            said.gone = said.gone or said.message_id == turn

    # Reading

    def read(self) -> None:
        """Somebody asks, and everything that could come into the answer is looked at."""
        asked = self.anybody()
        if self.dice.random() < 0.25:
            asked = Asked(asked.place, asked.actor, asked.subject, asked.thread, "person")
        place = {"p_tenant_key": TENANT_OF[asked.actor], "p_chat_id": self.chat(asked.place)}
        who = self.identity(asked)
        turn = self.id("om", "read")
        self.check(asked, "begin_turn", self.call(asked, "begin_turn", {
            "p_turn_id": turn, **who, **place, "p_root_id": self.root(asked), "p_actor_name": "",
            "p_content": "banana?", "p_history_limit": 20, "p_fold_after": 1, "p_heard": None,
            "p_decision": None, "p_recent_s": 3600,
        }))  # fmt: skip
        reads: list[tuple[str, dict[str, object]]] = [
            ("get_working_memory", {**who, "p_tenant_key": TENANT_OF[asked.actor]}),
            ("list_notes", {**who, **place, "p_tags": "[]", "p_limit": 200}),
            ("search_notes", {**who, **place, "p_terms": '["banana"]', "p_limit": 50}),
            ("note_registry", {**who, **place}),
            ("memory_overview", {**who, "p_tenant_key": TENANT_OF[asked.actor]}),
            ("load_conversation", {"p_chat_id": self.chat(asked.place)}),
            ("open_fold", {**who, "p_window": 0, "p_least": 1, "p_limit": 50}),
        ]
        for scope in ("thread", "chat", "everywhere"):
            found = {"p_query": "banana", "p_scope": scope, "p_k": 50}
            reads.append(("recall", {**who, **place, **found}))
        for _, note, _ in self.notes:
            reads.append(("get_note", {**who, **place, "p_note_id": note}))
        for _, other in self.turns:
            reads.append(("said_message", {**who, **place, "p_message_id": other}))
            reads.append(("bot_private.turn_reply", {"p_turn_id": other}))
        calls: list[tuple[str, str, Sequence[object]]] = [
            (function.removeprefix("bot_private."), _query(function, params), [*params.values()])
            for function, params in reads
        ]
        self.collect(asked, calls)

    def check(self, asked: Asked, what: str, result: object) -> None:
        for mark, number in _TAG.findall(str(result)):
            SEEN[what] += 1
            if mark != self.mark or not self.may(asked, int(number)):
                said = self.said[int(number)] if mark == self.mark else "another history"
                story = "\n".join([*self.history, f"{asked} reads {what}"])
                raise Leak(f"{said} (⟦{number}⟧) was given to {asked}\n{story}")

    def may(self, asked: Asked, number: int) -> bool:
        """Whether everybody who reads the answer could read this."""
        said = self.said[number]
        if said.gone or TENANT_OF[said.author] != TENANT_OF[asked.actor]:
            return False
        if self.hides and asked.place.name == "g" and said.at < self.newest_of("g"):
            return False
        # within one group nothing tells two people of one open_id apart
        own = {self.person(said.author), self.person(said.subject)}
        narrow = asked.sharing == "chat" or self.person(asked.actor) in own
        if self.shared.get(number) == self.chat(asked.place):
            return True
        if said.place == asked.place:
            return narrow
        if asked.place.is_group or not said.place.is_group:
            return False
        members = self.members.get(said.place.name, {})
        joined = members.get(asked.actor)
        is_member = asked.actor in members and (joined is None or said.at >= joined)
        return is_member and narrow

    def newest_of(self, group: str) -> int:
        return max((at or 0 for at in self.members.get(group, {}).values()), default=0)

    def live(self) -> None:
        """A history of steps, then a read."""
        for _ in range(self.dice.randint(2, STEPS - 1)):
            self.clock += 1
            step = self.dice.choice(_STEPS)
            step(self)
            self.history.append(f"{self.clock} {step.__name__}")
        self.clock += 1
        self.read()


def _query(function: str, params: Mapping[str, object]) -> str:
    """A call of a function with named parameters."""
    given = ", ".join(f"{name} => %s" for name in params)
    return f"select {function if '.' in function else f'public.{function}'}({given})"


def empty(database: psycopg.Connection) -> None:
    """A database without the histories so far: reading all of a table takes as long as at first."""
    tables = database.execute(
        "select string_agg(format('%I.%I', schemaname, tablename), ', ') from pg_tables"
        " where schemaname = 'public'"
    ).fetchone()
    database.execute(f"truncate {tables[0]} cascade".encode())  # type: ignore[index]


# What was seen by which reader: a test that reads nothing proves nothing.
SEEN: Counter[str] = Counter()

_STEPS: list[Callable[[World], None]] = [
    World.ask, World.ask, World.ask, World.ask, World.keep, World.keep, World.note, World.share,
    World.talk, World.fold, World.join, World.join, World.join, World.leave, World.lapse,
    World.take_back,
]  # fmt: skip
