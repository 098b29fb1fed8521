"""Looks at the bot from outside after each step: prompts, cards, comments, rows that changed."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from requests import get

from tests.corpus.normalising import Placeholders
from tests.corpus.recordings import Step
from tests.corpus.scene import Act, Scene

Row = dict[str, Any]

# Recorded tables, and what is left out of each: bookkeeping that nobody outside notices.
TABLES: Mapping[str, frozenset[str]] = {
    "agent_decisions": frozenset({"judge_ms", "since_bot_ms", "request_ms"}),
    "agent_turns": frozenset(
        {"attempts", "shown", "given", "given_messages", "cause", "done", "intended", "drawn_on"}
    ),
    "agent_chats": frozenset({"history_from"}),
    "agent_messages": frozenset(),
    "agent_working_memory": frozenset({"sources"}),
    "agent_working_memory_history": frozenset({"working_memory_id"}),
    "agent_notes": frozenset(),
    "agent_note_changes": frozenset(),
    "agent_summaries": frozenset({"from_message_id", "until_message_id"}),
    "agent_timers": frozenset({"queued_until"}),
    "agent_buttons": frozenset({"group_id"}),
    "agent_feedback": frozenset(),
    "chat_conversations": frozenset({"asked_ms", "bot_talk", "last_activity", "started_at"}),
    "chat_transcript": frozenset({"number"}),
    "chat_rules": frozenset(),
    "chat_managers": frozenset(),
    "chat_imports": frozenset(),
    "user_tokens": frozenset({"ask", "sealed_with", "ask_sealed_with"}),
}
_NOWHERE = frozenset({"thread", "tenant_key", "created_at", "updated_at", "user_token"})
_PATIENCE_S = 30
_OWNERS = ("chat_id", "user_id", "actor_id", "open_id", "conversation_id", "message_id")
_ORDER = ("timestamp", "created_at", "chunk", "ordinal", "id")
_UNFINISHED = (
    "select 1 from feishu_bot.jobs where status in ('waiting', 'running')"
    " and coalesce(scheduled_at, now()) < now() + interval '1 minute'"
    " and not (task = 'feishu.connect' and coalesce(scheduled_at, now()) > now())"  # asks later
)
_COLUMNS = (
    "select c.table_name, c.column_name, k.column_name is not null as is_key"
    " from information_schema.columns c"
    " left join (information_schema.table_constraints t join information_schema.key_column_usage k"
    "   using (constraint_schema, constraint_name)) on t.constraint_type = 'PRIMARY KEY'"
    "   and t.table_schema = c.table_schema and t.table_name = c.table_name"
    "   and k.column_name = c.column_name"
    " where c.table_schema = 'public' and c.table_name = any(%s)"
)


@dataclass
class Observer:
    """What is new since it last looked, as text with placeholders."""

    scene: Scene
    shown: Placeholders
    steps: list[Step] = field(default_factory=list)
    _messages: dict[str, str] = field(default_factory=dict)
    _rows: dict[tuple[str, str], Row] = field(default_factory=dict)
    asked: int = 0

    def __post_init__(self) -> None:
        self._known: dict[str, None] = {}
        self._columns = _columns(self.scene)

    def look(self, act: Act) -> None:
        """Waits until the bot has done all it does, then describes the step."""
        self._settle(act)
        self.shown.step = len(self.steps) + 1
        for name, id in {**self.scene.people, **self.scene.chats}.items():
            self.shown.know(id, f"<{name}>")
        for name in self.scene.people:
            self.shown.call(self.scene.full_name(name), name)
        lines = [*self._outcome(act), *self._prompts(), *self._cards(), *self._changes()]
        title = self.shown.of(act.title).replace("\n", "\\n")
        self.steps.append(Step(title, [self.shown.of(line) for line in lines]))

    def _settle(self, act: Act) -> None:
        world = self.scene.world
        narrow = {"message_id": act.outcome} if str(act.outcome).startswith("om_") else {}
        self._until(lambda: _delivered(world.platform.get("/deliveries", **narrow)["items"]))
        self._until_empty(_UNFINISHED)
        if act.outcome == "connected":
            query = "select 1 from user_tokens where ask <> '' and open_id = any(%s)"
            self._until_empty(query, [*self.scene.people.values()])
        if isinstance(act.outcome, tuple):
            query = (
                "select 1 from agent_timers where id = any(%s) and state = 'active'"
                " and due_at <= now()"
            )
            self._until_empty(query, act.outcome[1])
        withdrawals = "select 1 from agent_withdrawals where chat_id = any(%s)"
        self._until_empty(withdrawals, [*self.scene.chats.values()])
        asks = "select 1 from user_tokens where open_id = any(%s) and ask <> '' and ask_card = ''"
        self._until_empty(asks, [*self.scene.people.values()])
        time.sleep(self.scene.calm_s)  # a turn that is over may still queue what comes after it
        self._until_empty(_UNFINISHED)

    def _until_empty(self, query: str, *params: Any) -> None:
        self._until(lambda: not self.scene.world.rows(query, *params))

    def _until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not done():
            if time.monotonic() > deadline:
                raise AssertionError(f"{self.scene.name}: the bot does not come to rest")
            time.sleep(0.01)

    def _outcome(self, act: Act) -> Iterator[str]:
        if isinstance(act.outcome, dict):
            yield f"answer {_json(act.outcome)}"

    # What the model was sent

    def _prompts(self) -> Iterator[str]:
        url = f"{self.scene.world.model.url}/control/requests"
        requests = get(url, {"since": self.asked}, timeout=30).json()["requests"]
        before: list[Any] = []
        for one in requests:
            self.asked = max(self.asked, one["number"])
            body = one["body"]
            yield f"prompt to {body['model']}"
            yield f"  tools: {_tools(body)}"
            same = _common(before, body["messages"])
            if same:
                yield f"  (the first {same} messages as before)"
            for message in body["messages"][same:]:
                yield from _message(message)
            before = body["messages"]

    # What people see

    def _cards(self) -> Iterator[str]:
        platform, bot = self.scene.platform, self.scene.world.bot_id
        found = [one for chat in self.scene.chats.values() for one in platform.messages(chat)]
        for one in sorted(found, key=lambda one: one["position"]):
            state = _json({k: one[k] for k in ("content", "card", "deleted", "reactions")})
            if self._messages.get(one["message_id"]) == state:
                continue
            is_new = one["message_id"] not in self._messages
            self._messages[one["message_id"]] = state
            if one["sender"]["open_id"] == bot:
                yield from _card(one, is_new=is_new)
            elif one["reactions"]:
                yield f"reactions to {one['message_id']}: {_json(one['reactions'])}"
        yield from self._comments()

    def _comments(self) -> Iterator[str]:
        people = set(self.scene.people.values())
        for document in self.scene.platform.get("/documents")["items"]:
            if document["owner"] not in people:
                continue
            for reply in (r for one in document["comments"] for r in one["replies"]):
                if reply["open_id"] == self.scene.world.bot_id:
                    key = f"{document['token']} {reply['reply_id']}"
                    if self._messages.get(key) != reply["text"]:
                        self._messages[key] = reply["text"]
                        yield f"comment {reply['reply_id']}"
                        yield from _text(reply["text"])

    # What was written

    def _changes(self) -> Iterator[str]:
        before, now = self._rows, self._read()
        for key, row in now.items():
            table, known = key[0], before.get(key)
            if known is None:
                yield f"+ {table} {_json(row)}"
            elif known != row:
                changed = {k: row.get(k) for k in {**known, **row} if known.get(k) != row.get(k)}
                yield f"~ {table} {_name(row)} {_json(changed)}"
        for key, row in before.items():
            if key not in now:
                yield f"- {key[0]} {_name(row)}"
        self._rows = now

    def _read(self) -> dict[tuple[str, str], Row]:
        scene, found = self.scene, {}
        ids = [*scene.people.values(), *scene.chats.values()]
        for table, columns in self._columns.items():
            owners = [one for one in _OWNERS[:4] if one in columns]
            where = " or ".join(f"{one} = any(%s)" for one in owners)
            params: list[Any] = [ids] * len(owners)
            if not where:  # of messages
                where, params = "message_id = any(%s)", [[*self._messages]]
            order = [one for one in _ORDER if one in columns]
            query = f"select to_jsonb(t) as row from {table} t where {where} order by "
            for one in scene.world.rows(query + ", ".join([*order, "1"]), *params):
                row = one["row"]
                key = _json([row[name] for name, is_key in columns.items() if is_key])
                left_out = TABLES[table] | _NOWHERE
                found[table, key] = {
                    k: v for k, v in row.items() if k not in left_out and not _empty(k, v)
                }
        return found


def _delivered(deliveries: list[Row]) -> bool:
    return all(one["done"] for one in deliveries)


def _columns(scene: Scene) -> dict[str, dict[str, bool]]:
    found: dict[str, dict[str, bool]] = {table: {} for table in TABLES}
    for one in scene.world.rows(_COLUMNS, [*TABLES]):
        found[one["table_name"]][one["column_name"]] = one["is_key"]
    return {table: columns for table, columns in found.items() if columns}


def _empty(name: str, value: Any) -> bool:
    """Nothing to tell: no value, or a number that only counts rows."""
    return value in (None, "", False, 0, [], {}) or (name == "id" and isinstance(value, int))


def _name(row: Row) -> str:
    """The row in few words."""
    names = ("id", "message_id", "turn_id", "role", "conversation_id", "chat_id", "user_id", "key")
    return " ".join(str(row[one]) for one in names if one in row)


def _json(value: Any) -> str:
    return json.dumps(_untimed(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _untimed(value: Any) -> Any:
    """The value without how long a call took."""
    if isinstance(value, dict):
        return {k: _untimed(v) for k, v in value.items() if k != "ms"}
    return [*map(_untimed, value)] if isinstance(value, list) else value


def _text(text: str, indent: str = "  ") -> Iterator[str]:
    for line in text.split("\n"):
        yield f"{indent}| {line}".rstrip()


def _tools(body: Row) -> str:
    """The names of the tools, each with a digest of its description and schema."""
    tools = [one["function"] for one in body.get("tools", ())]
    named = (f"{o['name']}#{hashlib.sha256(_json(o).encode()).hexdigest()[:6]}" for o in tools)
    return " ".join(named) or "none"


def _message(message: Row) -> Iterator[str]:
    yield f"  {message['role']}:"
    content = message.get("content") or ""
    pieces = [content] if isinstance(content, str) else content
    for piece in pieces:
        if isinstance(piece, str) and message["role"] == "system":
            for paragraph in piece.split("\n\n"):
                yield "\n".join(_text(paragraph.strip(), "    "))
        elif isinstance(piece, str) or "text" in piece:
            yield from _text(piece if isinstance(piece, str) else piece["text"], "    ")
        else:
            digest = hashlib.sha256(_json(piece).encode()).hexdigest()[:6]
            yield f"    {piece.get('type')}#{digest}"
    for one in message.get("tool_calls") or ():
        yield f"    calls {one['function']['name']} {one['function']['arguments']}"


def _common(before: list[Any], now: list[Any]) -> int:
    """How many messages are the same from the first on."""
    pairs = zip(before, now, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(before), len(now)))


def _card(message: Row, *, is_new: bool) -> Iterator[str]:
    if message["deleted"]:
        yield f"taken back {message['message_id']}"
        return
    where = f" in {message['chat_id']}"
    where += f" under {message['parent_id']}" if message["parent_id"] else ""
    where += " in a thread" if message["thread_id"] else ""
    where += f" for {message['visible_to']} alone" if message["visible_to"] else ""
    kind = "card" if message["card"] else message["msg_type"]
    yield f"{kind if is_new else 'changed'} {message['message_id']}{where if is_new else ''}"
    if message["reactions"]:
        yield f"  reactions {_json(message['reactions'])}"
    if not message["card"]:
        yield from _text(message["content"])
        return
    card = message["card"]
    rest = {k: v for k, v in card.items() if k not in ("body", "schema")}
    yield f"  {_json(rest)}"
    for element in card["body"]["elements"]:
        if element["tag"] == "markdown" and element.keys() <= {"tag", "content", "element_id"}:
            yield from _text(element["content"])
        else:
            yield f"  {_json(element)}"


def play(scene: Scene, acts: Callable[[Scene], None]) -> list[Step]:
    """Plays the scene; returns its steps."""
    world = scene.world
    known = {world.bot_id: "<Memo>", "sandbox00tenant1": "<tenant>"}
    observer = Observer(scene, Placeholders(scene.bot.zone, known))
    world.model.forget()
    scene.begin()
    scene.look = observer.look
    observer.look(Act("the scene begins"))
    acts(scene)
    world.platform.forget_faults()
    return observer.steps
