"""The webhook by itself: how fast an event is acknowledged when nothing else runs."""

from __future__ import annotations

from lab.benchmark.checkouts import Checkout
from lab.benchmark.figures import Figure
from lab.benchmark.load import Askers
from lab.benchmark.processes import WEB, free_port, running, until_ready
from lab.benchmark.setting import Setting

_WARM_UP_S = 1.0
_SATURATED_MS = 50


async def measure_ack(setting: Setting, checkout: Checkout) -> list[Figure]:
    """Requests one after the other, then from twenty connections at once."""
    port = free_port()
    people = Askers(setting.platform, port)
    with setting.database("bench_ack") as url:
        environment = setting.environment(port, DATABASE_URL=url, INLINE_WORKER="0")
        async with running("web", WEB, setting.folder, environment, checkout) as web:
            await until_ready(web, port)
            await people.push(20, _WARM_UP_S)  # warms up every thread
            alone = await people.push(1, setting.seconds / 2)
            together = await people.push(20, setting.seconds / 2)
    rate = f"{len(together.acks) / together.took:.0f} events/s"
    full = "edge saturated"
    return [
        Figure("ack, one at a time, p50", alone.ack_ms(0.5), "ms"),
        Figure("ack, one at a time, p99", alone.ack_ms(0.99), "ms"),
        Figure("ack, 20 at once, p50", together.ack_ms(0.5), "ms", note=rate),
        Figure("ack, 20 at once, p99", together.ack_ms(0.99), "ms", _SATURATED_MS, note=full),
    ]
