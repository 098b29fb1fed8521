"""Experiments on what others do to the bot: a hostile MCP server, one who floods, topic groups."""

from __future__ import annotations

import json
import sys
import threading
import time

from lab.benchmark.checkouts import ROOT
from lab.faults.counting import Count, CountedQuestion
from lab.faults.processes_and_networks import kill_one
from lab.faults.scene import FaultScene

_HOSTILE = ROOT / "tests" / "data" / "mcp" / "hostile_server.py"
_MANNERS = (
    "a line without end", "a hundred megabytes", "many messages without end",
    "lines that are no messages", "drop by drop", "another id", "deep text", "a long result",
    "a pattern that takes for ever", "a long error", "tools that change without end",
    "it asks in turn", "ten thousand tools", "large schemas", "names with markup",
    "another tool at each look",
)  # fmt: skip
_FLOOD_PER_S = 20
_FLOOD_S = 10.0
_LIMIT = 60


def mcp(scene: FaultScene, count: Count, rounds: int) -> None:
    """A server of each ill manner, all at once; a question uses it, others ask meanwhile."""
    manners = _MANNERS[:rounds]
    servers = {
        f"evil{n}": {"command": sys.executable, "args": [str(_HOSTILE), manner]}
        for n, manner in enumerate(manners)
    }
    config = scene.folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    use = [
        {"when": {"contains": f"use tool {n}."},
         "reply": {"tool_calls": [{"name": f"evil{n}__harmless", "arguments": {}}]}}
        for n in range(len(manners))
    ]  # fmt: skip
    told = {"when": {"in": "last", "regex": "(?s).*"}, "after_tool": True, "reply": {"text": "ok"}}
    scene.model.control("script", {"rules": [told, *use, {"reply": {"text": "fine"}}]})
    scene.model.control("mode", {"mode": "rules"})
    scene.start(MCP_CONFIG=str(config))
    asked: list[CountedQuestion] = []
    with scene.asking(asked, per_s=3):
        time.sleep(3)  # the servers connect
        for number in range(len(manners)):
            asked.append(scene.ask(f"use tool {number}.", scene.new_chat()))
            time.sleep(0.5)
            count.rounds += 1
    scene.count(count, asked)
    called = scene.rows(
        "select count(*) from agent_messages where strpos(tool_calls::text, 'evil') > 0"
    )
    count.notes.append(f"{called[0][0]} answers used one")


def flooding(scene: FaultScene, count: Count, rounds: int) -> None:
    """One person sends twenty mentions a second beside others. Each of theirs is answered or
    skipped, with one notice; everybody else is answered."""
    scene.model.control("mode", {"mode": "echo", "delay_s": 0.3})
    scene.start(REQUESTS_PER_MINUTE=str(_LIMIT))
    flood: list[CountedQuestion] = []
    others: list[CountedQuestion] = []
    for _ in range(rounds):
        over, chat = threading.Event(), scene.new_chat()
        flooder = threading.Thread(target=_flood, args=(scene, chat, flood, over))
        flooder.start()
        with scene.asking(others, per_s=0.8 * _LIMIT / 60):  # all of them are one person, too
            time.sleep(_FLOOD_S)
        over.set()
        flooder.join()
        count.rounds += 1
    scene.count(count, others)
    scene.count(count, flood)
    query = "select count(*) from agent_decisions where not respond and message_id = any(%s)"
    [[skipped]] = scene.rows(query, [one.message_id for one in flood])
    count.notes.append(f"{len(flood)} of one person, {skipped} skipped")
    neither = count.ended - skipped  # the notice stands below one that was skipped
    if not skipped or neither > 0:
        count.lost += 1
        count.details.append(f"{neither} of the flood neither skipped nor answered")


def _flood(
    scene: FaultScene, chat: str, flood: list[CountedQuestion], over: threading.Event
) -> None:
    while not over.wait(1 / _FLOOD_PER_S):
        said = scene.ask(f"flood {len(flood)}", chat, who=scene.people[1], may_end=True)
        flood.append(said)


def topics(scene: FaultScene, count: Count, rounds: int) -> None:
    """Questions that open topics, and more in them, in groups of both kinds, while workers are
    killed: each is answered once, in its topic, and remembered as its conversation."""
    scene.model.control("mode", {"mode": "echo", "delay_s": 0.5})
    scene.start()
    for number in range(rounds):
        kind = ({"topics": True}, {"group_message_type": "thread"})[number % 2]
        chat = scene.new_chat(**kind)
        opened = [scene.ask(f"topic {n}", chat, in_topic=True) for n in range(3)]
        scene.count(Count("opened", scene.bot_id), opened)
        further = [scene.ask_in(chat, one.message_id, "and then?") for one in opened]
        kill_one(scene)
        scene.count(count, [*opened, *further])
        conversations = scene.rows(
            "select count(distinct conversation_id), count(*) from agent_turns where chat_id = %s",
            chat,
        )
        if conversations != [(len(opened), 2 * len(opened))]:
            count.mismatched += 1
            count.details.append(f"{chat}: {conversations} conversations and turns")
        count.rounds += 1
