"""The people of the groups: they speak when the schedule says, and note when answers came."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from lab.benchmark.figures import percentile
from lab.benchmark.pushing import EventPusher
from lab.doubles.feishu_events import TalkMention
from lab.doubles.minimal_feishu import StandIn
from lab.talk.schedule import Utterance
from lab.talk.speech import Group

LATE_S = 0.05


@dataclass
class TalkOutcome:
    """What people saw; times in seconds, those of answers since the question was due. `missing`:
    how long each question without an answer has waited in the end. `lates`: of arrivals that were
    sent more than `LATE_S` after they were due. The model alone takes `model_s`."""

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
        """Question due → answer at Feishu, beyond the model's own time. What has no answer counts
        with the time that it has waited, the least that it would have been."""
        return percentile([(s - self.model_s) * 1000 for s in self.answers + self.missing], share)

    def ack_ms(self, share: float) -> float:
        return percentile([s * 1000 for s in self.acks], share)

    @property
    def turns(self) -> int:
        """Answers of the bot, those to lines included that it took for its own."""
        return len(self.answers) + self.answered_lines

    @property
    def heard_lines(self) -> int:
        """Lines that the bot did not answer."""
        return self.lines - self.answered_lines


class OpenLoop:
    """Says what is due, whether earlier questions are answered or not. `port` is the bot's, replies
    arrive at `platform`."""

    def __init__(
        self, platform: StandIn, port: int, groups: Sequence[Group], model_s: float
    ) -> None:
        self.heard = TalkOutcome(model_s)
        self._platform, self._groups = platform, groups
        self._pusher = EventPusher([port])
        self._tasks: list[asyncio.Task[None]] = []
        self._lines: dict[str, asyncio.Future[float]] = {}

    @property
    def waiting(self) -> int:
        """Questions without an answer yet."""
        return self.heard.mentions - len(self.heard.answers) - len(self.heard.missing)

    async def speak(self, schedule: Sequence[Utterance]) -> None:
        """Returns when the last has been sent, whatever is answered."""
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

    async def finish(self, patience_s: float) -> None:
        """Returns when all is acknowledged and answered, or notes after a while what is missing."""
        if self._tasks:
            _, pending = await asyncio.wait(self._tasks, timeout=patience_s)
            for task in pending:
                task.cancel()
            await asyncio.gather(*pending, return_exceptions=True)
        for task in self._tasks:
            if not task.cancelled():
                task.result()

    def close(self) -> TalkOutcome:
        """Everything that was seen; what the bot answers from now on is not."""
        self.heard.answered_lines = sum(answer.done() for answer in self._lines.values())
        for line in self._lines:
            self._platform.forget(line)
        self.heard.acks, self.heard.again = self._pusher.acks, self._pusher.again
        self._pusher.close()
        return self.heard

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


def going_on(groups: Sequence[Group]) -> Callable[[str], Iterator[TalkMention]]:
    """The questions of a person by their open_id, who asks in one of the groups and waits for each
    answer."""

    def questions(person: str) -> Iterator[TalkMention]:
        group = groups[int(person[-4:]) % len(groups)]
        while True:
            question = group.question()
            yield question
            group.answered(question)

    return questions
