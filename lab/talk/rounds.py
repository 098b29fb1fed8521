"""Rounds of bare Flask and each version in turn, with the stand-ins that they all talk to."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from lab.benchmark.checkouts import Checkout
from lab.benchmark.figures import FailedMeasure, Figure, combined
from lab.benchmark.processes import EXPECTED, free_port, running, until_said
from lab.benchmark.setting import Setting
from lab.doubles.minimal_feishu import StandIn
from lab.talk.runs import Crowds, TalkPlan, run_echo, run_version
from lab.talk.targets import figures


@dataclass
class Rounds:
    """All runs of all versions: their figures by label, and what could not be measured."""

    setting: Setting
    plan: TalkPlan
    progress: Callable[[str], object]
    figures: dict[str, list[Figure]] = field(default_factory=dict)
    failed: list[FailedMeasure] = field(default_factory=list)

    def of(self, label: str) -> list[Figure]:
        """The medians of a version's runs."""
        return combined(self.figures.get(label, []))

    async def take(self, versions: list[Checkout], title: str, modes: tuple[bool, ...]) -> None:
        """One round: every version in each mode (answers streamed or not)."""
        for streaming in modes:
            self.progress(f"{title}: bare Flask")
            try:
                echo = await run_echo(self.setting, versions[-1])
            except EXPECTED as exc:
                self.failed.append(FailedMeasure.by(f"{title}: bare Flask", exc))
                continue
            for version in versions:
                rows = await self._run(version, title, echo, streaming)
                marked = streaming and len(modes) > 1
                kept = self.figures.setdefault(version.label, [])
                kept += [replace(row, streaming=marked) for row in rows]

    async def _run(
        self, version: Checkout, title: str, echo: Crowds, streaming: bool
    ) -> list[Figure]:
        name = f"{title}: {version.title}"
        try:
            run = await run_version(
                *(self.setting, version, self.plan),
                lambda what: self.progress(f"{name}: {what}"),
                streaming=streaming,
            )
        except EXPECTED as exc:
            self.failed.append(FailedMeasure.by(name, exc))
            return []
        self.failed += [FailedMeasure(name, reason) for reason in run.skipped]
        return figures(run, echo)


@asynccontextmanager
async def stand_ins(
    options: argparse.Namespace, this: Checkout, folder: Path
) -> AsyncIterator[Setting]:
    """Feishu, answered by this process, and the model, a process of its own."""
    platform, port = StandIn(), free_port()
    await platform.start()
    command = ("sandbox.model.model", "--port", str(port))
    async with running("model", command, folder, {}, this) as model:
        await until_said(model, "Chat Completions at")
        yield Setting(
            folder=folder,
            platform=platform,
            model_url=f"http://127.0.0.1:{port}/v1",
            model_pid=model.popen.pid,
            seconds=options.seconds,
            workers=options.workers,
            places=options.places,
        )
    await platform.stop()
