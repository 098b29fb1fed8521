"""The others' waiting time while one person asks for far too much.

Four floods, each beside people who ask one thing: twenty mentions a second, fifteen questions about
documents, a hundred comments, and a run of hostile lines. Web process and worker keep to the
product's own limits, the strict stand-in for Feishu to Feishu's. The longest block of an event loop
is the time between two looks at its sockets (`probe/sitecustomize.py`).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import re
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.bench.hostile_lines import COUNT, say_all
from lab.bench.processes import MODEL_S
from lab.doubles.processes import (
    ModelDouble,
    PlatformDouble,
    eventually,
    free_port,
    postmaster,
    running_bot,
    running_model,
    running_platform,
    stop_server,
)
from lab.figures import Figure
from memory import migrations
from memory.backends import embedded

_QUESTIONS, _COMMENTS = 15, 100
_MENTIONS_PER_S, _MENTIONS_S = 20, 10
_ASKED_AFTER_S = (0.3, 1.0, 2.5, 5.0)
_REST_S = 7.0  # no window of Feishu's limits still holds a call from before
_DOCUMENT = "a document question"
_BAR_S, _BLOCK_BAR_S = 1.0, 0.1
_FIRST_REPLY = 7_000_000_000_000_000_000  # of the stand-in: its reply ids count on from here
_LINK = re.compile(r"\((http[^)\s]+user_code=[^)\s]+)\)")
_PROBE = Path(__file__).parent / "probe"
_ENVIRONMENT = {
    "USER_TOKEN_KEY": "dGVzdHMtb25seS1rZXktb2YtMzItYnl0ZXMtMDAwMDA=",
    "STREAM_REPLIES": "false",
    "OPENAI_API_KEY": "bench",
}
_READS = {"tool_calls": [{"name": "read_document", "arguments": {"url": "{{url}}"}}]}
_RULES = [
    {"when": {"regex": r"(?P<url>https?://\S+/docx/\w+)"}, "reply": _READS, "after_tool": False},
    {"reply": {"text": "That is all I know."}},
]

Ask = Callable[[str], float]
"""Asks one thing as somebody and waits for the answer. Returns the seconds."""


@dataclass
class Neighbourhood:
    """A group of Ann, who asks for too much, and of others who ask one thing at a time."""

    platform: PlatformDouble
    model: ModelDouble
    people: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        state = self.platform.state()
        self.bot_id, self.bot_name = state["bot"]["open_id"], state["bot"]["name"]
        self._scripted: list[dict[str, Any]] = []
        self.model.control("mode", {"mode": "rules"})
        self.model.control("script", {"rules": _RULES})
        made = self.platform.post("/chats", name="Neighbours", members=[self.bot_id])
        self.group = str(made["chat_id"])
        for name in ("Ann", *itertools.chain(*map(_askers, self.asks()))):
            self.add_person(name)
            if name.startswith(("Ann", _DOCUMENT)):
                self._connect(name)
        self.mine, self.own = self.document("Ann"), self.document(_askers(_DOCUMENT)[0])

    def add_person(self, name: str) -> None:
        """Adds somebody to the group."""
        self.people[name] = str(self.platform.post("/people", name=name)["open_id"])
        self.platform.post("/join", chat_id=self.group, open_id=self.people[name])

    def script(self, text: str) -> int:
        """Scripts the model to answer `answer N.` with the text. Returns N."""
        number = len(self._scripted)
        rule = {"when": {"regex": rf"answer {number}\."}, "reply": {"text": text}}
        self._scripted.append(rule)
        self.model.control("script", {"rules": [*self._scripted, *_RULES]})
        return number

    def p2p(self, name: str) -> str:
        """Returns the person's chat with the bot."""
        chats = (one for one in self.platform.state()["chats"] if one["mode"] == "p2p")
        return str(next(c["chat_id"] for c in chats if self.people[name] in c["members"]))

    def document(self, owner: str, title: str = "Plan", text: str = "Friday.") -> dict[str, Any]:
        """Makes a document that the company can open."""
        blocks = [{"kind": "text", "text": text}]
        body = {"as": self.people[owner], "title": title, "blocks": blocks}
        return dict(self.platform.post("/documents", link="tenant_readable", **body))

    def mention(self, name: str, text: str) -> str:
        """Asks in the group. Returns the message id."""
        return self.platform.say(self.people[name], self.group, f"@{self.bot_name} {text}")

    def comment(self, name: str, document: dict[str, Any], text: str) -> str:
        """Mentions the bot in a comment. Returns the id of its thread."""
        body = {"as": self.people[name], "token": document["token"], "quote": "Friday"}
        said = self.platform.post("/documents/comment", text=f"@{self.bot_name} {text}", **body)
        return str(said["comment_id"])

    def answer_s(self, question: str) -> float:
        """Returns the seconds until the answer to a message of the group."""

        def answered() -> float | None:
            said = self.platform.messages(self.group)
            asked = next(one for one in said if one["message_id"] == question)
            mine = (one for one in said if one["sender"]["open_id"] == self.bot_id)
            at = [
                one["create_ms"] for one in mine if question in (one["root_id"], one["parent_id"])
            ]
            return (min(at) - asked["create_ms"]) / 1000 if at else None

        return eventually(answered, what="an answer") or 0.0

    def reply_s(self, comment_id: str, document: dict[str, Any]) -> float:
        """Returns the seconds until the reply to a comment."""

        def answered() -> float | None:
            items = self.platform.get("/documents")["items"]
            [found] = [one for one in items if one["token"] == document["token"]]
            said = next(c["replies"] for c in found["comments"] if c["comment_id"] == comment_id)
            mine = [one["reply_id"] for one in said if one["open_id"] == self.bot_id]
            times = [(int(one) - _FIRST_REPLY) / 1e6 for one in (comment_id, *mine)]
            return times[1] - times[0] if mine else None

        return eventually(answered, what="a reply") or 0.0

    def asks(self) -> dict[str, Ask]:
        """Lists what the others ask."""
        return {
            "a mention": lambda name: self.answer_s(self.mention(name, "when is it?")),
            _DOCUMENT: lambda name: self.answer_s(self.mention(name, f"when? {self.own['url']}")),
            "a comment": lambda name: self.reply_s(self.comment(name, self.own, "when?"), self.own),
        }

    def _connect(self, name: str) -> None:
        chat = self.p2p(name)
        self.platform.say(self.people[name], chat, "/connect")

        def shown(pattern: str) -> list[str]:
            return re.findall(pattern, json.dumps(self.platform.messages(chat)))

        [link, *_] = eventually(lambda: shown(_LINK.pattern), what="a link")
        self.platform.post("/grants", **{"as": self.people[name]}, link=link, approve=True)
        eventually(lambda: shown("account is connected"), what="the account is connected")


def _askers(kind: str) -> list[str]:
    """Names those who ask that, each at another time."""
    return [f"{kind} {number}" for number in range(len(_ASKED_AFTER_S))]


def measure_neighbours(folder: Path, log: Callable[[str], None]) -> list[Figure]:
    """Returns the figures of all floods."""
    figures: list[Figure] = []
    for name, flood, limit in (
        (f"{_MENTIONS_PER_S} mentions a second", _mention_often, "60"),
        (f"{_QUESTIONS} document questions", _ask_of_documents, "60"),
        (f"{_COMMENTS} comments", _comment_often, "60"),
        (f"{COUNT} hostile lines", say_all, "0"),
    ):
        log(f"measuring neighbours: {name}")
        with _neighbourhood(folder / name.replace(" ", "-"), limit) as (there, blocks):
            figures += _beside(there, name, flood, blocks)
    return figures


@contextlib.contextmanager
def _neighbourhood(
    folder: Path, limit: str
) -> Iterator[tuple[Neighbourhood, Callable[[float], list[dict[str, float]]]]]:
    """Yields the people, and a function that lists the blocks of event loops since a time."""
    folder.mkdir()
    url = embedded.start_embedded(folder)
    migrations.apply_migrations(url)
    port = free_port()
    hook = f"http://127.0.0.1:{port}/webhook/event"
    with (
        running_model(folder, "--delay", str(MODEL_S)) as model,
        running_platform(folder, hook) as platform,
    ):
        environment = {
            **_ENVIRONMENT,
            "DATABASE_URL": url,
            "FEISHU_DOMAIN": platform.url,
            "OPENAI_BASE_URL": model.base_url,
            "REQUESTS_PER_MINUTE": limit,
            "PYTHONPATH": str(_PROBE),
            "LOOP_PROBE": str(folder),
        }
        try:
            with running_bot(folder, port, environment):
                yield Neighbourhood(platform, model), lambda since: _blocks(folder, since)
        finally:
            stop_server(postmaster(folder))


def _blocks(folder: Path, since: float) -> list[dict[str, float]]:
    lines = [file.read_text(encoding="utf-8").splitlines() for file in folder.glob("blocks-*")]
    return [one for one in map(json.loads, itertools.chain(*lines)) if one["at"] > since]


def _beside(
    there: Neighbourhood,
    name: str,
    flood: Callable[[Neighbourhood], None],
    blocks: Callable[[float], list[dict[str, float]]],
) -> list[Figure]:
    asks = there.asks()
    alone = {kind: [ask(name) for name in _askers(kind)] for kind, ask in asks.items()}
    time.sleep(_REST_S)
    began, flooding = time.time(), threading.Thread(target=flood, args=(there,))
    flooding.start()
    beside = _asked_meanwhile(asks)
    flooding.join()
    figures = [_waited(name, kind, alone[kind], beside[kind]) for kind in asks]
    return [*figures, _longest_block(name, blocks(began))]


def _asked_meanwhile(asks: dict[str, Ask]) -> dict[str, list[float]]:
    """Each of the others asks at a time of their own after the flood began."""
    waits: dict[str, list[float]] = {kind: [] for kind in asks}

    def one(kind: str, name: str, after_s: float) -> None:
        time.sleep(after_s)
        waits[kind].append(asks[kind](name))

    everybody = [
        threading.Thread(target=one, args=(kind, name, after_s))
        for kind in asks
        for name, after_s in zip(_askers(kind), _ASKED_AFTER_S, strict=True)
    ]
    for thread in everybody:
        thread.start()
    for thread in everybody:
        thread.join()
    return waits


def _waited(name: str, kind: str, alone: list[float], beside: list[float]) -> Figure:
    usual = statistics.median(alone)
    note = f"alone {usual:.1f} s; beside {', '.join(f'{one:.1f}' for one in beside)} s"
    return Figure(
        f"{kind} beside {name}: longest more", max(beside) - usual, "s", _BAR_S, note=note
    )


def _longest_block(name: str, blocks: list[dict[str, float]]) -> Figure:
    cpu_s = max((one["cpu_s"] for one in blocks), default=0.0)
    wall_s = max((one["wall_s"] for one in blocks), default=0.0)
    note = f"processor time of its thread; {wall_s:.2f} s by the clock"
    return Figure(f"longest block of an event loop, {name}", cpu_s, "s", _BLOCK_BAR_S, note=note)


def _mention_often(there: Neighbourhood) -> None:
    for number in range(_MENTIONS_PER_S * _MENTIONS_S):
        there.mention("Ann", f"and what about point {number}?")
        time.sleep(1 / _MENTIONS_PER_S)


def _ask_of_documents(there: Neighbourhood) -> None:
    """Asks all at once, each time with another link to the same document."""
    for number in range(_QUESTIONS):
        there.mention("Ann", f"when is the launch? {there.mine['url']}?x={number}")


def _comment_often(there: Neighbourhood) -> None:
    for number in range(_COMMENTS):
        there.comment("Ann", there.mine, f"question {number}?")
