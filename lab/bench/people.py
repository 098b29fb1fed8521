"""The people of the groups: they speak on schedule or in turn, and time the bot's answers."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from lab.bench.speech import Group, Utterance
from lab.doubles.feishu_events import TalkLine, TalkMention, delivery
from lab.doubles.minimal_feishu import StandIn
from lab.figures import percentile

LATE_S = 0.05
_FEISHU_WAITS_S = 3.0
_AGAIN_S = 15.0  # Feishu's own first pause
_GIVE_UP_S = 30.0


@dataclass
class EventPusher:
    """Pushes as Feishu does: over kept connections, and again if nobody acknowledged.

    `acks` are seconds until each acknowledgement; `again` counts the repeated deliveries.
    """

    port: int
    acks: list[float] = field(default_factory=list)
    again: int = 0
    _lines: list[TalkLine] = field(default_factory=list)

    async def push(self, said: TalkMention) -> None:
        """Returns once the event is acknowledged, however often it has to be pushed."""
        while not await self._is_taken(said):
            self.again += 1
            await asyncio.sleep(_AGAIN_S)

    def close(self) -> None:
        for line in self._lines:
            line.close()
        self._lines.clear()

    async def _is_taken(self, said: TalkMention) -> bool:
        """Returns whether it was acknowledged within the time that Feishu allows."""
        line = self._lines.pop() if self._lines else TalkLine(self.port)
        try:
            async with asyncio.timeout(_FEISHU_WAITS_S):
                self.acks.append(await line.send(delivery(said)))
        except (TimeoutError, OSError, EOFError):
            line.close()
            return False
        self._lines.append(line)
        return True


@dataclass
class TalkHeard:
    """The people's side of a phase; times in seconds, those of answers since the question was due.

    The model alone takes `model_s`. `missing` is how long each unanswered question has waited.
    `lates` are the delays of messages that were sent more than `LATE_S` after they were due.
    """

    model_s: float
    mentions: int = 0
    lines: int = 0
    in_threads: int = 0
    answers: list[float] = field(default_factory=list)
    missing: list[float] = field(default_factory=list)
    answered_lines: int = 0
    acks: list[float] = field(default_factory=list)
    again: int = 0
    lates: list[float] = field(default_factory=list)

    def over_model_ms(self, share: float) -> float:
        """Returns a percentile of question due → answer at Feishu, less the model's own time. A
        missing answer counts with the time it has waited so far."""
        return percentile([(s - self.model_s) * 1000 for s in self.answers + self.missing], share)

    def ack_ms(self, share: float) -> float:
        return percentile([s * 1000 for s in self.acks], share)

    @property
    def turns(self) -> int:
        """Counts the bot's answers, including those to lines that it took for questions."""
        return len(self.answers) + self.answered_lines

    @property
    def heard_lines(self) -> int:
        """Counts the lines that the bot did not answer."""
        return self.lines - self.answered_lines


class GroupPeople:
    """Everybody in the groups. `port` is the bot's; its replies arrive at `platform`."""

    def __init__(
        self, platform: StandIn, port: int, groups: Sequence[Group], model_s: float
    ) -> None:
        self.heard = TalkHeard(model_s)
        self._platform, self._groups = platform, groups
        self._pusher = EventPusher(port)
        self._tasks: list[asyncio.Task[None]] = []
        self._lines: dict[str, asyncio.Future[float]] = {}

    @property
    def waiting(self) -> int:
        """Counts the questions without an answer yet."""
        return self.heard.mentions - len(self.heard.answers) - len(self.heard.missing)

    async def speak(self, schedule: Sequence[Utterance]) -> None:
        """Says everything when it is due, whatever is answered. Returns after the last message."""
        began = time.perf_counter()
        for arrival in schedule:
            due = began + arrival.at_s
            await asyncio.sleep(due - time.perf_counter())
            if (late := time.perf_counter() - due) > LATE_S:
                self.heard.lates.append(late)
            group = self._groups[arrival.chat]
            said = self._ask(group, due) if arrival.to_bot else self._say(group.line())
            self.heard.mentions += arrival.to_bot
            self.heard.lines += not arrival.to_bot
            self._tasks.append(asyncio.create_task(said))

    async def ask_in_turn(self, people: int, seconds: float) -> None:
        """So many people each ask, wait for the answer, and ask again."""
        until = time.perf_counter() + seconds
        async with asyncio.TaskGroup() as tasks:
            for group in itertools.islice(itertools.cycle(self._groups), people):
                tasks.create_task(self._ask_until(group, until))

    async def finish(self, patience_s: float) -> None:
        """Waits until all is acknowledged and answered, then counts the rest as missing."""
        if self._tasks:
            _, pending = await asyncio.wait(self._tasks, timeout=patience_s)
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
        for task in self._tasks:
            if not task.cancelled():
                task.result()

    def close(self) -> TalkHeard:
        """Returns everything that was heard, and listens no more."""
        self.heard.answered_lines = sum(answer.done() for answer in self._lines.values())
        for line in self._lines:
            self._platform.forget(line)
        self.heard.acks, self.heard.again = self._pusher.acks, self._pusher.again
        self._pusher.close()
        return self.heard

    async def _ask_until(self, group: Group, until: float) -> None:
        while time.perf_counter() < until:
            self.heard.mentions += 1
            asking = asyncio.create_task(self._ask(group, time.perf_counter()))
            if not (await asyncio.wait([asking], timeout=_GIVE_UP_S))[0]:
                asking.cancel()
                await asyncio.wait([asking])
            elif asking.exception():
                await asking

    async def _say(self, line: TalkMention) -> None:
        self._lines[line.message_id] = self._platform.expect(line.message_id)
        await self._pusher.push(line)

    async def _ask(self, group: Group, due: float) -> None:
        question = group.question()
        self.heard.in_threads += bool(question.root_id)
        answer = self._platform.expect(question.message_id)
        try:
            await self._pusher.push(question)
            self.heard.answers.append(await answer - due)
            group.answered(question)
        except asyncio.CancelledError:
            self.heard.missing.append(time.perf_counter() - due)
            raise
        finally:
            self._platform.forget(question.message_id)
