"""People who mention the bot, wait for its reply and ask again: the load, and what they saw."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from lab.benchmark.figures import percentile
from lab.doubles.feishu_events import TalkLine, TalkMention, delivery
from lab.doubles.minimal_feishu import StandIn

MODEL_S = 0.3
PIECE = "a dozen chr "  # the stand-in model streams twelve characters at a time
_QUESTIONS = (
    "what did we decide about the launch?",
    "and who takes care of the press release, as far as you know?",
    "please remember that the demo moves to Thursday",
    "sum it up in one sentence",
)
_GIVE_UP_S = 30.0
_numbers = itertools.count(1)


@dataclass
class Seen:
    """What a number of people saw; times in seconds. The model alone took `model_s`."""

    acks: list[float] = field(default_factory=list)
    replies: list[float] = field(default_factory=list)
    unanswered: int = 0
    took: float = 0.0
    model_s: float = MODEL_S

    def overhead_ms(self, share: float) -> float:
        """Event sent → reply at Feishu, beyond the model's own time."""
        return percentile([(s - self.model_s) * 1000 for s in self.replies], share)

    def ack_ms(self, share: float) -> float:
        return percentile([s * 1000 for s in self.acks], share)

    @property
    def rate(self) -> float:
        """Answered mentions a second."""
        return len(self.replies) / self.took if self.took else 0.0

    def per_mention(self, amount: float) -> float:
        return amount / max(len(self.replies), 1)


@dataclass(frozen=True, slots=True)
class Load:
    """What a number of people saw and what it took; CPU in seconds by part."""

    seen: Seen
    cpu: Mapping[str, float]

    def cpu_ms(self, part: str) -> float:
        """Of one part, per answered mention."""
        return self.seen.per_mention(1000 * self.cpu.get(part, 0.0))

    @property
    def total_cpu_ms(self) -> float:
        """Of all processes, per answered mention."""
        return self.seen.per_mention(1000 * sum(self.cpu.values()))


@dataclass(frozen=True, slots=True)
class Askers:
    """Those who talk to the bot at `port`; their replies arrive at `platform`, and take the model
    `model_s` each. A person waits for `pause_s` before the next question; `questions` has those of
    one person, by the open_id."""

    platform: StandIn
    port: int
    model_s: float = MODEL_S
    pause_s: float = 0.0
    questions: Callable[[str], Iterator[TalkMention]] = lambda person: conversation(person)

    async def talk(self, people: int, seconds: float) -> Seen:
        """Each asks, waits for the reply and asks again, for `seconds`."""
        seen = Seen(model_s=self.model_s)
        started = time.perf_counter()
        async with asyncio.TaskGroup() as tasks:
            for number in range(people):
                tasks.create_task(self._person(number, seen, started + seconds))
        seen.took = time.perf_counter() - started
        return seen

    async def _person(self, number: int, seen: Seen, until: float) -> None:
        line = TalkLine(self.port)
        asked = self.questions(f"ou_bench_person_{number:04}")
        try:
            while time.perf_counter() < until:
                await self._ask(line, next(asked), seen)
                await asyncio.sleep(self.pause_s)
        finally:
            line.close()

    async def _ask(self, line: TalkLine, mention: TalkMention, seen: Seen) -> None:
        reply = self.platform.expect(mention.message_id)
        started = time.perf_counter()
        seen.acks.append(await line.send(delivery(mention)))
        try:
            async with asyncio.timeout(_GIVE_UP_S):
                seen.replies.append(await reply - started)
        except TimeoutError:
            seen.unanswered += 1
        finally:
            self.platform.forget(mention.message_id)


def conversation(person: str) -> Iterator[TalkMention]:
    """Four questions in a thread, then a new thread in another group, and so on."""
    while True:
        number = next(_numbers)
        root = f"om_bench_{number}_0"
        for turn, question in enumerate(_QUESTIONS):
            yield TalkMention(
                message_id=f"om_bench_{number}_{turn}",
                chat_id=f"oc_bench_{number}",
                person=person,
                question=question,
                root_id=root if turn else "",
            )
