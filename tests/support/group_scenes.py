"""Scenes with several people in one group, played through the worker's own handlers.

A scene is a JSON object: `steps`, then `ask`. The model answers each step with the step's `answer`;
the last prompt is kept. A step without an answer is talk that does not mention the bot.

`place` is “main”, “thread N” (its first message is a mention in the main chat, the bot answers
under it), “topic N” (its root is talk without the bot), “p2p”, or “other” for another group. Other
keys of a step: `about` (a colleague who is mentioned), `late` (Feishu delivers the event only
before the question), `withdrawn`, `silence_s` (seconds of silence before it), `noise` (so many
lines of other people, `answer` as for a step), `joins`, `quotes` (it quotes the message that was
said so many lines before it) and `tools` (calls of the model). Ticker is another bot, Grace is a
guest.
`answer` of a scene: what an answer must hold, where that is less than the prompt must.
`setup` of a scene: `mentions_only`, `topics`, `hidden` (newcomers do not see earlier messages).
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bot.agents.llm.model import OnText, Request, Response
from bot.answering.between_turns import handle_tending
from memory.context import estimate_tokens
from memory.scope import own_context
from sandbox.world.actors import Speech
from tests.support.models import calling
from tests.support.whole_turns import Stage, handle_pushed

DATA = Path(__file__).parents[1] / "data" / "group_scenes.jsonl"

_WITHDRAWN = "(this message is then withdrawn)"
_TIME = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d)?")
_CITED_TIME = re.compile(r"\d{1,2} [A-Z][a-z]{2} at \d\d:\d\d|\d{1,2}月\d{1,2}日 \d\d:\d\d")
_PEOPLE = ("Alice", "Bob", "陈晨", "Dana", "李雷", "Emil", "王芳", "Greta")
_OTHERS: Mapping[str, dict[str, str]] = {
    "Ticker": {"kind": "bot"},
    "Grace": {"tenant_key": "guests"},
}
_NOISE = {
    "en": (
        "the coffee machine is broken again", "who took the red umbrella?",
        "I am in a call until later", "the printer on the second floor works now",
        "lunch was too salty", "can somebody open the window?", "the tram is late",
        "my plant needs water", "please close the fridge", "see you after the break",
    ),
    "zh": (
        "咖啡机又坏了", "谁拿走了红雨伞？", "我先开个会", "二楼的打印机好了", "午饭有点咸",
        "谁能开一下窗？", "电车晚点了", "我的花要浇水", "请把冰箱关上", "休息以后见",
    ),
}  # fmt: skip

Scene = Mapping[str, Any]


def scenes(path: Path = DATA) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line]


class Answering:
    """A model that says what the scene has it say, and keeps its last prompt."""

    def __init__(self) -> None:
        self.says = "Noted."
        self.tools: list[tuple[str, dict[str, Any]]] = []
        self.messages: list[Mapping[str, Any]] = []

    async def respond(self, request: Request, on_text: OnText | None = None) -> Response:
        self.messages = list(request.messages)
        if self.tools and request.tools:
            calls, self.tools = self.tools, []
            return calling(*calls)
        return Response(self.says)

    @property
    def prompt(self) -> str:
        """All that was sent besides the rules, in order."""
        return "\n".join(str(one.get("content") or "") for one in self.messages[1:])

    @property
    def tokens(self) -> int:
        return sum(estimate_tokens(str(one.get("content") or "")) + 4 for one in self.messages)


@dataclass
class Played:
    """One scene on the stage, in a group and with people of its own."""

    stage: Stage
    scene: Scene
    people: dict[str, str] = field(default_factory=dict)
    chats: dict[str, str] = field(default_factory=dict)
    roots: dict[str, str] = field(default_factory=dict)
    held: list[dict[str, Any]] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    @property
    def _model(self) -> Answering:
        return self.stage.model  # type: ignore[return-value]

    async def prompt(self) -> str:
        """The prompt of the question at the end."""
        await self._begin()
        for step in self.scene["steps"]:
            await self._step(step)
        self.stage.town.events += self.held
        await self._work()
        self._model.messages = []
        await self._step({**self.scene["ask"], "answer": "…"})
        assert self._model.messages, f"{self.scene['id']}: the question was not answered"
        return self._model.prompt

    async def _begin(self) -> None:
        platform, setup = self.stage.town.platform, self.scene.get("setup", {})
        joining = {step["joins"] for step in self.scene["steps"] if "joins" in step}
        lines = (*self.scene["steps"], self.scene["ask"])
        others = _OTHERS.keys() & {line.get("who") for line in lines}
        add = platform.actors.add_person
        self.people = {
            name: add(name, **_OTHERS.get(name, {})).open_id for name in (*_PEOPLE, *others)
        }
        there = [id for name, id in self.people.items() if name not in joining]
        for name in ("main", "other"):
            topics = bool(setup.get("topics")) and name == "main"
            group = platform.groups.add(name, there, topics=topics).chat_id
            self.chats[name] = group
        await self._work()
        if setup.get("hidden"):
            self.stage.database.execute(
                "insert into chat_rules (tenant_key, chat_id, history) values (%s, %s, 'hidden')"
                " on conflict (tenant_key, chat_id) do update set history = 'hidden'",
                [self.stage.town.config.tenant_key, self.chats["main"]],
            )
            self.stage.database.execute(
                "update chats set members_read_at = now() where chat_id = %s", [self.chats["main"]]
            )

    async def _step(self, step: Mapping[str, Any]) -> None:
        if "silence_s" in step:
            self._fall_silent(step["silence_s"])
        if "joins" in step:
            person = self.people[step["joins"]]
            self.stage.town.platform.groups.set_membership(self.chats["main"], person, member=True)
            await self._work()
        for line in self._lines(step):
            await self._say(line)

    def _lines(self, step: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        """What is said in a step: a line, or as many lines of noise."""
        if "text" in step:
            yield step
        words = _NOISE[self.scene["lang"]]
        for number in range(step.get("noise", 0)):
            who = _PEOPLE[number % len(_PEOPLE)]
            yield {"text": f"{words[number % len(words)]} ({number + 1})", **step, "who": who}

    async def _say(self, step: Mapping[str, Any]) -> None:
        platform = self.stage.town.platform
        answer = step.get("answer")
        text = step["text"].replace(_WITHDRAWN, "").strip()
        before = len(self.stage.town.events)
        self._model.says, self._model.tools = (
            answer or "Noted.",
            [(name, dict(arguments)) for name, arguments in step.get("tools", ())],
        )
        message = platform.actors.say(self._speech(step, text, mention=answer is not None))
        self.said.append(message.message_id)
        place = step.get("place", "main")
        if place.startswith(("thread", "topic")):
            self.roots.setdefault(place, message.message_id)
        if step.get("late"):
            self.held += self.stage.town.events[before:]
            del self.stage.town.events[before:]
        if self.scene.get("setup", {}).get("mentions_only") and answer is None:
            del self.stage.town.events[before:]
        await self._work()
        time.sleep(0.002)  # times are known to the millisecond  # noqa: ASYNC251
        if step.get("withdrawn") or _WITHDRAWN in step["text"]:
            platform.actors.recall(message.message_id, message.sender)
            await self._work()

    def _speech(self, step: Mapping[str, Any], text: str, *, mention: bool) -> Speech:
        world, place, who = self.stage.town.platform.world, step.get("place", "main"), step["who"]
        if place == "p2p":
            return Speech(self.people[who], world.p2p_chat(self.people[who]).chat_id, text)
        if "about" in step:
            text = f"@{step['about']} {text}"
        if mention:
            text = f"@{world.bot.name} {text}"
        chat = self.chats["other" if place == "other" else "main"]
        if "quotes" in step:
            quoted = self.said[-step["quotes"]]
            return Speech(self.people[who], chat, text, reply_to=quoted, quote=True)
        return Speech(self.people[who], chat, text, reply_to=self.roots.get(place, ""))

    def _fall_silent(self, seconds: int) -> None:
        """So much time goes by: whatever is stored was said that much earlier."""
        chats = list(self.chats.values())
        execute = self.stage.database.execute
        span = [f"{seconds} s", chats]
        execute(
            "update agent_messages set created_at = created_at - %s::interval"
            " where chat_id = any (%s)", span,
        )  # fmt: skip
        execute(
            "update agent_turns set created_at = created_at - %s::interval"
            " where chat_id = any (%s)", span,
        )  # fmt: skip
        execute(
            "update bot_private.turn_words set asked_at = asked_at - %s::interval where first_id in"
            " (select id from agent_messages where chat_id = any (%s))", span,
        )  # fmt: skip
        ms = [seconds * 1000, chats]
        execute(
            'update chat_transcript set "timestamp" = "timestamp" - %s where chat_id = any (%s)', ms
        )
        execute(
            "update chat_conversations set last_activity = last_activity - %s"
            " where chat_id = any (%s)", ms,
        )  # fmt: skip
        self.stage.services.transcripts.drop(self.chats["main"])

    async def _work(self) -> None:
        """Events, then what they queued, until nothing is left."""
        events = self.stage.town.events
        while events or (jobs := self._jobs()):
            if events:
                await handle_pushed(self.stage.services, events.pop(0))
                continue
            for args in jobs:
                context = own_context(args["conversation_id"], args["user_id"], args["tenant_key"])
                await handle_tending(self.stage.services, context, 1)

    def _jobs(self) -> list[dict[str, Any]]:
        rows = self.stage.database.execute("delete from feishu_bot.jobs returning args").fetchall()
        return [args for (args,) in rows if "conversation_id" in args]


def wrong(scene: Scene, prompt: str) -> str:
    """Why the prompt does not serve: "" if it does."""
    prompt = _TIME.sub("", prompt)
    wanted = _several(scene["want"])
    if why := _wrong_words(prompt, wanted, _several(scene.get("never"))):
        return why
    stale, last = scene.get("stale"), wanted[-1]
    if stale and last and (old := _places(stale, prompt)) and old[-1] > _places(last, prompt)[-1]:
        return f"{stale!r} comes after {last!r}"
    return ""


def wrong_answer(scene: Scene, answer: str) -> str:
    """Why the answer is not right: "" if it is. It may tell what was replaced, with its author and
    time on a line of its own, below what holds."""
    lines = _CITED_TIME.sub("", answer).splitlines()
    wanted = _several(scene.get("answer", scene["want"]))
    if why := _wrong_words("\n".join(lines), wanted, _several(scene.get("never"))):
        return why
    stale, last = scene.get("stale"), wanted[-1]
    holds = last and next(n for n, line in enumerate(lines) if _places(last, line))
    if stale and last and any(_places(stale, line) for line in lines[:holds]):
        return f"{stale!r} comes before {last!r}"
    return ""


def _wrong_words(text: str, wanted: Sequence[str], unwanted: Sequence[str]) -> str:
    for word in wanted:
        if word and not _places(word, text):
            return f"{word!r} is missing"
    for word in unwanted:
        if word and _places(word, text):
            return f"{word!r} is there"
    return ""


def _several(words: str | Sequence[str] | None) -> Sequence[str]:
    return [words or ""] if isinstance(words, str | None) else words


def _places(words: str, text: str) -> Sequence[int]:
    """Where `words` stand as a token: “3 March” is not in “13 March”."""
    edge = r"[0-9A-Za-z]"
    before = rf"(?<!{edge})" if re.match(edge, words) else ""
    after = rf"(?!{edge})" if re.match(edge, words[-1]) else ""
    return [one.start() for one in re.finditer(before + re.escape(words) + after, text)]
