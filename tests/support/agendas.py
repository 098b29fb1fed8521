"""A person's calendar and tasks on the stand-in platform, without processes: the bot's own calls
go into it with people's tokens, and presses are those of a real feature turn."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from bot.agents.prompts.prompt import Prompt
from bot.agents.tool_types import ToolOutcome
from bot.agents.tools.deps import ToolDeps
from bot.features.calendar.feature import agenda_for
from bot.features.calendar.tools import calendar_tools
from bot.features.registry import HOOKS
from bot.feishu.calendars import CalendarCalls
from bot.feishu.caller import Caller
from bot.feishu.transport import ApiRequest, ApiResponse, SharedPace
from bot.hooks import PressTurn
from bot.outbox.buttons import Reply
from bot.people.personal_access import NotConnected, UserToken
from bot.services import Services
from bot.text.roster import Person, Roster
from memory.models import WorkingMemory
from memory.scope import AgentMemoryContext, FeishuPerson, memory_context
from memory.tables.cards import NewButton, PressResult
from sandbox.world.user_scopes import USER_SCOPES
from tests.unit.sandbox.conftest import Tenant
from tests.unit.sandbox.test_sandbox_grants import Grants

TENANT = "tenant"
EVERYTHING = " ".join(USER_SCOPES)
TOOLS = {one.name: one for one in calendar_tools()}


class Killed(BaseException):
    """The worker died: before a call to Feishu left, or after Feishu did what it says."""


@dataclass
class InProcess:
    """Carries calls into the platform. `dies`: how many calls are still made, and whether the last
    one reaches Feishu."""

    tenant: Tenant
    dies: tuple[int, bool] | None = None
    sent: list[ApiRequest] = field(default_factory=list)

    async def send(self, request: ApiRequest, token: str) -> ApiResponse:
        if self.dies and self.dies[0] == 0 and not self.dies[1]:
            raise Killed
        self.tenant.clock.now += 1  # no call is too fast
        path = f"/open-apis{request.path.removeprefix('/open-apis')}"
        answer = self.tenant.http.open(
            f"{path}?{urlencode(request.query)}",
            method=request.method,
            json=request.body,
            headers={"Authorization": f"Bearer {token}"},
        )
        self.sent.append(request)
        if self.dies and self.dies[0] == 0:
            raise Killed
        if self.dies:
            self.dies = (self.dies[0] - 1, self.dies[1])
        return ApiResponse(answer.status_code, dict(answer.headers), answer.data)


@dataclass
class AccessDouble:
    """Hands out the tokens of who has connected."""

    tokens: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    async def call(
        self, person: FeishuPerson, make: Callable[[UserToken], Awaitable[object]]
    ) -> object:
        if person.open_id not in self.tokens:
            raise NotConnected
        token, scopes = self.tokens[person.open_id]
        return await make(UserToken(person.open_id, token, scopes))


class AgendaScene:
    """Alice, Bob and 陈晨 with their calendars, and what the bot does there for them."""

    def __init__(self, **options: Any) -> None:
        self.tenant = Tenant(**options)
        self.people = self.tenant.people
        self.transport = InProcess(self.tenant)
        self.access = AccessDouble()
        self.outside: set[str] = set()
        caller = Caller(cast(Any, self.transport), "cli", "secret", sleep=_at_once)
        calls = CalendarCalls(caller, SharedPace(), sleep=_at_once)
        feishu = SimpleNamespace(calendars=calls, member_names=self._members)
        self.services = cast(
            Services,
            SimpleNamespace(
                access=self.access,
                feishu=feishu,
                store=SimpleNamespace(shared_groups=self._shared_groups),
                settings=SimpleNamespace(zone=ZoneInfo("Asia/Shanghai")),
                now=self.now,
                clock=lambda: self.tenant.clock.now,
            ),
        )

    async def _shared_groups(self, _: AgentMemoryContext, *, most: int) -> tuple[str, ...]:
        return ("oc_shared",)[:most]

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.tenant.clock.now, ZoneInfo("Asia/Shanghai"))

    def connect(self, who: str, scope: str = EVERYTHING) -> None:
        """They have allowed these scopes."""
        self.tenant.clock.now += 1
        issued = Grants(self.tenant).connect(who, scope)
        self.access.tokens[self.people[who]] = (
            issued["access_token"],
            tuple(issued["scope"].split()),
        )

    def add(self, who: str, title: str, start: str, end: str, **more: Any) -> dict[str, Any]:
        """Somebody writes an event into their calendar themselves."""
        body = {"as": self.people[who], "summary": title, "start": start, "end": end, **more}
        return dict(self.tenant.control("POST", "agendas/events", body))

    def written(self, kind: str = "events") -> list[dict[str, Any]]:
        """What stands in anybody's calendar or tasks, once each."""
        found = {
            one.get("event_id") or one["guid"]: one
            for person in self.tenant.control("GET", "agendas")["items"]
            for one in person[kind]
            if not one["deleted"]
        }
        return list(found.values())

    def context(self, who: str = "Alice", chat_type: str = "group") -> AgentMemoryContext:
        return memory_context(
            chat_id="oc_here",
            root="om_root",
            subject=self.people[who],
            actor=self.people[who],
            tenant_key=TENANT,
            chat_type=cast(Any, chat_type),
        )

    def deps(self, who: str = "Alice", *, alone: bool = False, **more: Any) -> ToolDeps:
        """The tools' surroundings in a turn of theirs."""
        context = self.context(who, "p2p" if alone else "group")
        roster = Roster(tuple(Person(id, name) for name, id in self.people.items()))
        prompt = Prompt(
            bot_name="Bot",
            question="when is Bob free?",
            history=(),
            subject=who,
            working_memory=WorkingMemory(),
            now=self.now(),
            context=context,
            people=roster,
            language="en",
        )
        agenda = agenda_for(self.services, context, is_alone=alone)
        store = cast(Any, None)
        return ToolDeps(
            context,
            store,
            store,
            prompt,
            opened_sources={"calendar": agenda} if agenda else {},
            **more,
        )

    async def call(self, deps: ToolDeps, name: str, **arguments: Any) -> ToolOutcome:
        """What a tool gives. Raises `ToolFailed`."""
        one = TOOLS[name]
        outcome = await one.call(deps, one.valid(arguments))
        assert isinstance(outcome, ToolOutcome)
        return outcome

    async def press(self, payload: Mapping[str, Any], who: str = "Alice", **more: Any) -> Reply:
        """What a press that counts does."""
        pressed = PressResult("accepted", "confirm", "Confirm", payload, actor_id=self.people[who])
        here = PressTurn(
            self.context(who),
            "group",
            "en",
            "om_pressed",
            press=pressed,
            **{"pressed_ms": int(self.tenant.clock.now * 1000), **more},
        )
        return await HOOKS.cards.presses[payload["tool"]](self.services, here)

    async def _members(self, chat_id: str) -> dict[FeishuPerson, str]:
        return {
            FeishuPerson("another" if name in self.outside else TENANT, open_id): name
            for name, open_id in self.people.items()
        }


def offered_payload(deps: ToolDeps) -> dict[str, Any]:
    """What the button of the only offer carries."""
    (action,) = deps.pending
    return {
        "id": action.id,
        "tool": action.tool,
        "arguments": dict(action.arguments),
        "description": action.description,
        "decision": "confirm",
        "language": "en",
    }


def undo_of(reply: Reply) -> NewButton:
    """The button under what was written."""
    (button,) = reply.buttons
    return button


def random_events(scene: AgendaScene, chance: random.Random, titles: list[str]) -> None:
    """Events of everybody on the next days, each with a title and a place of its own."""
    for title in titles:
        owner = chance.choice(["Alice", "Bob", "陈晨"])
        day = scene.now().date().toordinal() + chance.randrange(0, 4)
        hour = chance.randrange(0, 22)
        date = datetime.fromordinal(day).replace(tzinfo=UTC).date()
        scene.add(
            owner,
            title,
            f"{date}T{hour:02}:{chance.choice(['00', '30'])}:00",
            f"{date}T{hour + 1:02}:45:00",
            location=f"room {title}",
            attendees=[scene.people[chance.choice(["Alice", "Bob", "陈晨"])]],
            free=chance.random() < 0.2,
        )


async def _at_once(seconds: float) -> None:
    return None
