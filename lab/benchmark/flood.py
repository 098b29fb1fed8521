"""What twenty people notice of one who floods the bot: the same load without and with them."""

from __future__ import annotations

import asyncio
import time

from lab.benchmark.bot_processes import bot
from lab.benchmark.checkouts import Checkout
from lab.benchmark.figures import Figure
from lab.benchmark.load import Askers, Seen, conversation
from lab.benchmark.setting import Setting
from lab.doubles.feishu_events import TalkLine, delivery

_OTHERS = 20
_PAUSE_S = 1.5  # of a person between two questions
_FLOOD_PER_S = 20
_FLOODER = "ou_bench_flooder"
_LIMIT = 60
_BAR = 1.5


async def measure_flood(setting: Setting, checkout: Checkout) -> list[Figure]:
    """What people wait for beside a flooder, over what they wait for alone."""
    folder = setting.folder / "flood"
    async with bot(setting, checkout, folder, REQUESTS_PER_MINUTE=str(_LIMIT)) as started:
        people = Askers(setting.platform, started.port, pause_s=_PAUSE_S)
        await people.talk(_OTHERS, 3.0)
        alone = await people.talk(_OTHERS, 2 * setting.seconds)
        flood = asyncio.create_task(_flood(started.port, 2 * setting.seconds))
        beside = await people.talk(_OTHERS, 2 * setting.seconds)
        sent = await flood
    return [_waited("20 people alone", alone), *_beside(alone, beside, sent)]


def _beside(alone: Seen, beside: Seen, sent: int) -> list[Figure]:
    waited = _waited(f"20 people beside {_FLOOD_PER_S} mentions a second of one", beside)
    ratio = _p95_s(beside) / _p95_s(alone)
    note = f"{sent} sent, {_LIMIT} a minute allowed"
    return [waited, Figure("their p95 ÷ p95 without the flooder", ratio, "", _BAR, note=note)]


def _waited(name: str, seen: Seen) -> Figure:
    note = f"{len(seen.replies)} answers, {seen.unanswered} missing"
    return Figure(f"{name}: question → reply p95", _p95_s(seen) * 1000, "ms", note=note)


def _p95_s(seen: Seen) -> float:
    """With the model's time, which people wait for too."""
    return seen.overhead_ms(0.95) / 1000 + seen.model_s


async def _flood(port: int, seconds: float) -> int:
    """Mentions the bot again and again and waits for nothing; how many times."""
    line, sent = TalkLine(port), 0
    until = time.perf_counter() + seconds
    for mention in conversation(_FLOODER):
        if time.perf_counter() >= until:
            break
        await line.send(delivery(mention))
        sent += 1
        await asyncio.sleep(1 / _FLOOD_PER_S)
    line.close()
    return sent
