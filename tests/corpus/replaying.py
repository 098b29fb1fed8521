"""Plays scenes: a bot for each profile and memory, all at the same time, scenes one by one."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from tests.corpus.bots import Memory, Town
from tests.corpus.observing import play
from tests.corpus.recordings import Step
from tests.corpus.scene import Language, Scene
from tests.corpus.scenes import MEMORIES, SCENES, profile_of

LANGUAGES: tuple[Language, ...] = ("en", "zh")


@dataclass(frozen=True, order=True)
class Task:
    """A scene in a language, over a memory."""

    scene: str
    language: Language
    memory: Memory

    @property
    def name(self) -> str:
        """Of the recording, which holds for every memory."""
        return f"{self.scene}.{self.language}"

    @property
    def memories(self) -> Sequence[Memory]:
        return MEMORIES[profile_of(self.scene)]

    def __str__(self) -> str:
        return f"{self.name} over {self.memory}"


def tasks(only: Sequence[str], memories: Sequence[Memory]) -> list[Task]:
    """Those to play: all, or those of the scenes or recordings that are named."""
    every = (
        Task(scene, language, memory)
        for scene in SCENES
        for language in LANGUAGES
        for memory in MEMORIES[profile_of(scene)]
        if memory in memories
    )
    return [one for one in every if not only or one.scene in only or one.name in only]


def replay(town: Town, wanted: Iterable[Task]) -> dict[Task, list[Step] | Exception]:
    """The steps of each task, or what went wrong."""
    by_bot: dict[tuple[str, Memory], list[Task]] = defaultdict(list)
    for task in wanted:
        by_bot[profile_of(task.scene), task.memory].append(task)
    with ThreadPoolExecutor(len(by_bot)) as pool:
        groups = [pool.submit(_of_bot, town, *bot, own) for bot, own in by_bot.items()]
        return {task: steps for one in groups for task, steps in one.result().items()}


def _of_bot(
    town: Town, profile: str, memory: Memory, own: Sequence[Task]
) -> dict[Task, list[Step] | Exception]:
    played: dict[Task, list[Step] | Exception] = {}
    with town.bot(profile, memory) as bot:
        for number, task in enumerate(own):
            try:
                scene = Scene(task.scene, task.language, bot, number)
                played[task] = play(scene, SCENES[task.scene])
            except Exception as exc:  # noqa: BLE001 (the other scenes are played all the same)
                sys.stderr.write(f"{task}: {exc!r}\n")
                played[task] = exc
    return played
