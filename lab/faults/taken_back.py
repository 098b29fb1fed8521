"""Experiments on what has to be gone: taken back while the memory is away, before it is told by
itself, or forgotten with its author. What still holds the word is counted as shown."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from lab.benchmark.checkouts import ROOT
from lab.doubles.processes import eventually
from lab.faults.counting import Count, CountedQuestion
from lab.faults.scene import FaultScene
from lab.faults.supabase import FAULTS, scene_of_supabase, unstored

_GONE_WITHIN_S = 120.0
_FORGETTING_DIES_WITHIN_S = 3.0
_DUE = "update agent_timers set due_at = now(), queued_until = null where id = %s returning id"
_TELLING_EVERYTHING = {
    "PROACTIVE_HOURS": "0-24",
    "PROACTIVE_PER_DAY": "100",
    "FOLLOWUP_WINDOW_SECONDS": "0",
    "OPENAI_API_KEY": "",  # the offline model sets reminders
}


def memory_away(scene: FaultScene, count: Count, rounds: int) -> None:
    """Supabase fails in every way that is known. Meanwhile a question of before is taken back,
    which was told again since, and one that was asked in the outage."""
    with scene_of_supabase(scene, count) as api:
        if api is None:
            return
        for number, name in enumerate(list(FAULTS)[:rounds]):
            words = [f"zarf{number}", f"quux{number}"]
            _repeat(scene, words)
            chat = scene.new_chat()
            before = [scene.ask(f"the code is {words[0]}", chat, in_topic=True)]
            scene.count(Count(name, scene.bot_id), before)
            before.append(scene.ask_in(chat, before[0].message_id, "and again?"))
            scene.count(count, before)
            api.fault = FAULTS[name]
            meanwhile = scene.ask(f"the code is {words[1]}", chat, unstored=True)
            scene.count(count, [meanwhile])
            for word in words:
                _require_told(scene, word, [chat])
            for message in (before[0], meanwhile):
                scene.take_back(message)
            api.fault = None
            eventually(lambda: unstored(scene) == 0, what="all of it is written")
            _gone(scene, count, words, [chat])
            count.rounds += 1


def grounds(scene: FaultScene, count: Count, rounds: int) -> None:
    """A reminder, and an answer nobody asked for, come due as the message that they are made of is
    taken back: before, at the same time, or just after."""
    scene.start(None, **_TELLING_EVERYTHING)
    for number in range(rounds):
        chat, word = scene.new_chat(), f"zarf{number}"
        ground, told_by = (_remind, _ask_nobody)[number % 2](scene, count, chat, word)
        timer = _timer(scene, told_by)
        _require_told(scene, word, [])
        when = ("before", "together", "after")[number // 2 % 3]
        if when != "after":
            scene.take_back(ground)
        if when == "before":
            eventually(partial(_is_known, scene, ground), what="it is known as taken back")
        scene.rows(_DUE, timer)
        if when == "after":
            time.sleep(random.uniform(0.0, 1.0))  # noqa: S311
            scene.take_back(ground)
        _gone(scene, count, [word], [chat])
        count.rounds += 1


def _remind(
    scene: FaultScene, count: Count, chat: str, word: str
) -> tuple[CountedQuestion, CountedQuestion]:
    """The message that a reminder is made of, and which the timer is of."""
    ground = scene.ask(f"remind me in 2 hours to water the {word}", chat)
    scene.count(count, [ground])
    return ground, ground


def _ask_nobody(
    scene: FaultScene, count: Count, chat: str, word: str
) -> tuple[CountedQuestion, CountedQuestion]:
    """The same of an answer that nobody asks the bot for."""
    wanted = scene.ask("/proactive on", chat)
    ground = scene.ask(f"remember that the quince launch is on {word}", chat)
    scene.count(count, [wanted, ground])
    question = scene.platform.say(scene.people[1], chat, "When is the quince launch?")
    return ground, CountedQuestion(question, chat)


def _timer(scene: FaultScene, one: CountedQuestion) -> str:
    """The timer that came of a message, once there is one."""
    query = "select id from agent_timers where turn_id = %s"
    rows = eventually(lambda: scene.rows(query, one.message_id), what="a timer")
    return str(rows[0][0])


def _is_known(scene: FaultScene, one: CountedQuestion) -> bool:
    query = "select 1 from recalled_messages where message_id = %s"
    return bool(scene.rows(query, one.message_id))


def forgetting(scene: FaultScene, count: Count, rounds: int) -> None:
    """Somebody who told things in many chats, which others had told again, is forgotten while
    people ask. The command is killed on the way, and run again. What others said stays."""
    scene.model.control("mode", {"mode": "echo"})
    scene.start()
    asked: list[CountedQuestion] = []
    theirs, others = [], []
    for number in range(rounds):
        chat = scene.chats[number % len(scene.chats)]
        theirs.append(f"zarf{number}")
        others.append(f"quux{number}")
        first = scene.ask(f"the code is {theirs[-1]}", chat, who=scene.people[1])
        asked += [first, scene.ask(f"mine is {others[-1]}", chat)]
        scene.count(Count("told", scene.bot_id), asked[-2:])
        _repeat(scene, [theirs[-1]])
        again = scene.ask_in(chat, first.message_id, "and again?")
        scene.count(count, [again])
        _require_told(scene, theirs[-1], [])
        count.rounds += 1
    scene.model.control("mode", {"mode": "echo"})
    meanwhile: list[CountedQuestion] = []
    with scene.asking(meanwhile, per_s=3):
        for wait_s in (random.uniform(0.5, _FORGETTING_DIES_WITHIN_S), 120.0):  # noqa: S311
            command = _forgets(scene)
            with suppress(subprocess.TimeoutExpired):
                command.wait(wait_s)
            command.kill()
            if command.wait() == 0:
                break  # it was over before it was to be killed
    if command.returncode and _is_kept(scene, scene.people[1]):
        said = _log_of(scene).read_text(encoding="utf-8")
        raise AssertionError(f"the command ended with {command.returncode}: {said}")
    scene.count(count, meanwhile)
    kept = [word for word in others if not scene.stores(word)]
    count.lost += len(kept)
    count.details += [f"{word} was not to be forgotten" for word in kept]
    _gone(scene, count, theirs, [])


def _forgets(scene: FaultScene) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "scripts.memory", "forget"]
    with _log_of(scene).open("wb") as log:
        return subprocess.Popen(
            [*command, "--person", scene.people[1], "--yes"],
            cwd=ROOT,
            env=scene.variables(),
            stdout=log,
            stderr=log,
        )


def _is_kept(scene: FaultScene, person: str) -> bool:
    return bool(scene.rows("select 1 from agent_turns where actor_id = %s limit 1", person))


def _log_of(scene: FaultScene) -> Path:
    return scene.folder / "forget.log"


def _require_told(scene: FaultScene, word: str, chats: list[str]) -> None:
    """What was never there cannot be gone."""
    if not scene.remains(word, chats):
        raise AssertionError(f"{word} was not told")


def _repeat(scene: FaultScene, words: list[str]) -> None:
    """The model tells of a word whatever is asked where it sees it."""
    rules = [
        {"when": {"contains": word, "in": "prompt"}, "reply": {"text": f"Kept: {word}"}}
        for word in words
    ]
    scene.model.control("script", {"rules": [*rules, {"reply": {"text": "fine"}}]})
    scene.model.control("mode", {"mode": "rules"})


def _gone(scene: FaultScene, count: Count, words: list[str], chats: list[str]) -> None:
    """Counts the words that stay, in the tables or in messages of the bot that people see."""
    with suppress(AssertionError):
        eventually(
            lambda: not any(scene.remains(word, chats) for word in words), within_s=_GONE_WITHIN_S
        )
    for word in words:
        if found := scene.remains(word, chats):
            count.shown += 1
            count.details.append(f"{word} stays in {', '.join(found)}")
