"""What people do in a scene. Each call is one step; the recorder looks at the bot after each.

A scene is a function of a `Scene`. It has a group `Launch` of its people Ann, Bob and 陈晨, each of
whom has a chat alone with the bot. Texts come in both languages: `s.t(en, zh)`.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal

from lab.doubles.processes import eventually
from sandbox.cards.forms import tagged
from tests.acceptance.conftest import World
from tests.corpus.bots import Bot

Language = Literal["en", "zh"]
Reply = dict[str, Any] | str
_LINK = re.compile(r"\((http[^)]+user_code=[^)]+)\)")
_JUDGE = {"in": "system", "contains": "Answer with exactly one word: YES or NO"}
_SUMMARY = {"in": "system", "contains": "You keep the running summary"}
_NOT_YET = "That's not possible right now"
_FIRST_NAMES = re.compile(r"Ann\b|Bob\b|Dora\b|Gus\b|Robo\b|陈晨")


def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
    """The model calls this tool."""
    return {"tool_calls": [{"name": tool, "arguments": arguments}]}


@dataclass(frozen=True)
class Act:
    """One step as the recording names it, and what it returned."""

    title: str
    outcome: Any = None


@dataclass
class Scene:
    """A group of its own, and the steps so far. `look` is called after each of them."""

    name: str
    language: Language
    bot: Bot
    number: int = 0  # among the scenes that the bot plays
    calm_s: float = 0.0  # how long nothing is to be done before a step is over
    look: Callable[[Act], None] = lambda _: None
    people: dict[str, str] = field(default_factory=dict)
    chats: dict[str, str] = field(default_factory=dict)

    @property
    def world(self) -> World:
        return self.bot.world

    @property
    def platform(self) -> Any:
        return self.world.platform

    def begin(self) -> None:
        """Brings the people and their group into the world."""
        for name in ("Ann", "Bob", "陈晨"):
            self._person(name)
        self.group("Launch")

    def t(self, en: str, zh: str) -> str:
        """The text in the language of the scene."""
        return zh if self.language == "zh" else en

    def named(self, text: str) -> str:
        """The text with the full names of people, which no other scene has."""
        return _FIRST_NAMES.sub(lambda found: self.full_name(found[0]), text)

    def full_name(self, name: str) -> str:
        """`Ann` is `Annbc` in this scene."""
        tens, ones = divmod(self.number, 26)
        if name.isascii():
            return name + chr(97 + tens) + chr(97 + ones)
        return name + chr(0x5B50 + self.number)

    def day(self, ahead: int) -> str:
        """A date in the bot's zone, ISO 8601."""
        return f"{datetime.now(self.bot.zone) + timedelta(days=ahead):%Y-%m-%d}"

    def next_wednesday(self) -> str:
        """The Wednesday of next week."""
        return self.day(9 - datetime.now(self.bot.zone).weekday())

    # People and places

    def _person(self, name: str, **more: str) -> str:
        made = self.platform.post("/people", name=self.full_name(name), **more)["open_id"]
        self.people[name] = made
        chats = self.platform.state()["chats"]
        mine = (c["chat_id"] for c in chats if c["mode"] == "p2p" and made in c["members"])
        self.chats |= {f"p2p {name}": one for one in mine}
        return str(made)

    def newcomer(self, name: str, **more: str) -> None:
        """Somebody new in the tenant, or of another one."""
        self._person(name, **more)
        self._step(f"{name} is new in the tenant")

    def group(self, name: str, *, members: Sequence[str] = (), **more: Any) -> None:
        """A new group; the first member owns it."""
        ids = [self.people[one] for one in members or self.people]
        body = {"members": ids, **more}
        self.chats[name] = self.platform.post("/chats", name=name, **body)["chat_id"]
        if more.get("with_bot", True):
            self._await_members(name)
        self._step(f"group {name} of {', '.join(members or self.people)} {more or ''}".strip())

    def join(self, who: str, chat: str = "Launch") -> None:
        self._member("join", who, chat)

    def leave(self, who: str, chat: str = "Launch") -> None:
        self._member("leave", who, chat)

    def _member(self, way: str, who: str, chat: str) -> None:
        open_id = self.world.bot_id if who == "Memo" else self.people[who]
        self.platform.post(f"/{way}", chat_id=self.chats[chat], open_id=open_id)
        if (way, who) == ("join", "Memo"):
            self._await_members(chat)
        self._step(f"{who}: {way} {chat}")

    def _await_members(self, chat: str) -> None:
        """The bot has read who is in a group that it was added to."""
        query = "select 1 from chat_members where chat_id = %s limit 1"
        eventually(lambda: self.world.rows(query, self.chats[chat]), what=f"members of {chat}")

    def enter(self, who: str) -> None:
        """Opens the chat with the bot."""
        self.platform.post("/enter", **{"as": self.people[who]})
        self._step(f"{who} opens the chat with the bot")

    def menu(self, who: str, key: str) -> None:
        self.platform.post("/menu", **{"as": self.people[who]}, event_key=key)
        self._step(f"{who} presses the menu's {key}")

    # Messages

    def ask(self, who: str, text: str, *, chat: str = "Launch", **more: Any) -> str:
        """Says it to the bot: with a mention in a group."""
        if chat == "p2p":
            chat = f"p2p {who}"
        at = "" if chat.startswith("p2p ") else "@Memo "
        return self.say(who, at + text, chat=chat, **more)

    def say(
        self,
        who: str,
        text: str,
        *,
        chat: str = "Launch",
        model: Sequence[Reply] | Reply = (),
        judge: str = "NO",
        under: str = "",
        quote: str = "",
        **more: Any,
    ) -> str:
        """Says it; `under`: in the thread of that message. Returns the message_id."""
        self.script(model, judge)
        if under or quote:
            more |= {"reply_to": under or quote, "quote": bool(quote)}
        how = "in the thread" if under else "quoting" if quote else ""
        named = self.named(text)
        sent = self.world.platform.say(self.people[who], self.chats[chat], named, **more)
        kind = f" ({more['message_type']})" if "message_type" in more else ""
        self._step(f"{who} in {chat} {how}".strip() + f"{kind}: {text}", sent)
        return sent

    def file(self, who: str, name: str, text: str | bytes, **more: Any) -> str:
        data = text.encode() if isinstance(text, str) else text
        encoded = base64.b64encode(data).decode()
        return self.say(who, "", message_type="file", file_name=name, file_base64=encoded, **more)

    def edit(self, who: str, message: str, text: str) -> None:
        self.platform.post(
            "/edit", **{"as": self.people[who]}, message_id=message, text=self.named(text)
        )
        self._step(f"{who} edits: {text}", message)

    def recall(self, who: str, message: str) -> None:
        self.platform.post("/recall", **{"as": self.people[who]}, message_id=message)
        self._step(f"{who} takes a message back", message)

    def react(self, who: str, message: str, emoji: str) -> None:
        body = {"as": self.people[who], "message_id": message, "emoji_type": emoji}
        self.platform.post("/reactions", **body)
        self._step(f"{who} reacts {emoji}")

    def forward(self, who: str, messages: Sequence[str], chat: str) -> str:
        body = {"as": self.people[who], "chat_id": self.chats[chat], "message_ids": [*messages]}
        sent = str(self.platform.post("/forward", **body)["message_id"])
        self._step(f"{who} forwards {len(messages)} to {chat}", sent)
        return sent

    def again(self, message: str) -> None:
        """The platform delivers the event twice more."""
        self.platform.post("/redeliver", message_id=message, times=2, new_event_id=True)
        self._step("the event is delivered twice more", message)

    # Cards

    def cards(self) -> list[dict[str, Any]]:
        """The bot's cards in all chats of the scene, oldest first."""
        found = [one for chat in self.chats.values() for one in self.platform.messages(chat)]
        ours = [one for one in found if one["sender"]["open_id"] == self.world.bot_id]
        return sorted((o for o in ours if not o["deleted"]), key=lambda one: one["position"])

    def press(
        self,
        who: str,
        label: str,
        *,
        model: Sequence[Reply] | Reply = (),
        form: dict[str, Any] | None = None,
        nth: int = 0,
    ) -> None:
        """Presses the `nth` button of that label, on the newest card that has one and that the
        person sees."""
        self.script(model)
        message, index = next(self._buttons(who, label, nth))
        body: dict[str, Any] = {"as": self.people[who], "message_id": message, "index": index}
        answer = eventually(lambda: self._click({**body, **({"form": form} if form else {})}))
        self._step(f"{who} presses {label!r} {form or ''}".strip(), answer)

    def _click(self, body: dict[str, Any]) -> dict[str, Any]:
        """What the press returns; nothing while the web process has not yet reached Supabase."""
        answer = dict(self.platform.post("/click", **body))
        del answer["latency_ms"]
        return {} if _NOT_YET in json.dumps(answer) else answer

    def _buttons(self, who: str, label: str, nth: int) -> Iterator[tuple[str, int]]:
        for message in reversed(self.cards()):
            if message["visible_to"] not in ("", self.people[who]) or not message["card"]:
                continue
            found = tagged(message["card"]["body"]["elements"])
            labels = [one["text"]["content"] for one in found if one["tag"] == "button"]
            fits = [n for n, one in enumerate(labels) if one == label]
            if len(fits) > nth:
                yield message["message_id"], fits[nth]
        raise AssertionError(f"{self.name}: {who} sees no button {label!r}")

    def answer(self) -> str:
        """The newest message of the bot."""
        return str(self.cards()[-1]["message_id"])

    def follow_link(self, who: str, *, approve: bool = True) -> None:
        """Decides at the newest link to connect an account."""
        link = eventually(self._links, what="a link")[0]
        self.platform.post("/grants", **{"as": self.people[who]}, link=link, approve=approve)
        self._step(f"{who} {'approves' if approve else 'declines'} at the link", "connected")

    def _links(self) -> list[str]:
        """Newest first."""
        texts = (json.dumps(one["card"], ensure_ascii=False) for one in reversed(self.cards()))
        return [found[1] for text in texts if (found := _LINK.search(text))]

    # The rest of the world

    def document(self, who: str, title: str, text: str, **more: Any) -> dict[str, Any]:
        blocks = [{"kind": "text", "text": text}]
        body = {"as": self.people[who], "title": title, "blocks": blocks, **more}
        return dict(self.platform.post("/documents", **body))

    def comment(
        self, who: str, token: str, text: str, *, model: Sequence[Reply] | Reply = (), **more: str
    ) -> str:
        """Comments in a document; returns the id of the thread."""
        self.script(model)
        body = {"as": self.people[who], "token": token, "text": self.named(text), **more}
        made = self.platform.post("/documents/comment", **body)
        self._step(f"{who} comments: {text}", token)
        return str(made["comment_id"])

    def event(self, who: str, summary: str, day: str, start: str, end: str) -> None:
        body = {"as": self.people[who], "summary": summary, "zone": self.bot.zone.key}
        self.platform.post("/agendas/events", **body, start=f"{day}T{start}", end=f"{day}T{end}")

    def task(self, who: str, summary: str, day: str) -> None:
        body = {"as": self.people[who], "summary": summary, "due": day}
        self.platform.post("/agendas/tasks", **body)

    def newest(self, table: str) -> str:
        """The id of the newest row of the scene's people."""
        query = f"select id from {table} where user_id = any(%s) order by created_at desc limit 1"
        return str(self.world.rows(query, [*self.people.values()])[0]["id"])

    def come_due(self) -> None:
        """The time of the scene's timers comes, one after the other."""
        query = "select id from agent_timers where state = 'active' and chat_id = any(%s)"
        due = (
            "update agent_timers set due_at = date_trunc('milliseconds', now()),"
            " queued_until = null where id = %s returning id"
        )
        for one in self.world.rows(f"{query} order by created_at", [*self.chats.values()]):
            self._step(
                "a timer comes due", ("due", [r["id"] for r in self.world.rows(due, one["id"])])
            )

    def switch(self, **on: bool) -> None:
        """Grants or revokes scopes of the app."""
        self.platform.post("/switches", **on)

    def fault(self, path_prefix: str, **fault: Any) -> None:
        self.platform.post("/faults", path_prefix=path_prefix, **fault)

    def script(self, model: Sequence[Reply] | Reply = (), judge: str = "NO") -> None:
        """What the model replies to the next requests, in order; after that it echoes."""
        replies = [model] if isinstance(model, str | dict) else [*model]
        rules: list[dict[str, Any]] = [
            {"when": _JUDGE, "reply": {"text": judge}},
            {"when": _SUMMARY, "reply": {"text": "- They talk about the launch."}},
        ]
        after_tool: bool | None = False
        for one in replies:
            reply = {"text": one} if isinstance(one, str) else one
            if "reply" in reply:  # a rule of its own
                rules.append(reply)
                continue
            calls = bool(reply.get("tool_calls"))
            rules.append(
                {"reply": reply, "times": 1, **({"after_tool": after_tool} if calls else {})}
            )
            after_tool = calls
        rules.append({"reply": {"text": "echo: {{last_user}}"}})
        named = json.loads(self.named(json.dumps({"rules": rules}, ensure_ascii=False)))
        self.world.model.control("script", named)

    def _step(self, title: str, outcome: Any = None) -> None:
        self.look(Act(title, outcome))
