"""A comment in a document that mentions the bot: answered in its thread by the real processes."""

from __future__ import annotations

import json
import re
from typing import Any

import psycopg
import pytest

from lab.doubles.processes import clean_environment, eventually
from tests.acceptance.conftest import World, prompt_of
from tests.acceptance.test_connect import connected
from tests.acceptance.test_crashes import kill_and_replace, waiting
from tests.support import depth, profiles
from tests.support.forking import run_script

SECRET, ELSEWHERE = "Quillfeather seventy-seven", "hunter2"


KILLS = depth.count("COMMENT_KILLS", short=3, deep=12)  # a third of each kind


@pytest.fixture(scope="module")
def bot_options() -> dict[str, str]:
    return profiles.CONNECTED


class Commented:
    """A document of Alice's in which people comment."""

    def __init__(self, world: World) -> None:
        self.world = world
        blocks = [
            {"kind": "heading", "level": 1, "text": "Launch"},
            {"kind": "text", "text": f"The launch code is {SECRET}."},
        ]
        body = {"as": world.people["Alice"], "title": "Launch plan", "blocks": blocks}
        made = world.platform.post("/documents", link="tenant_readable", **body)
        self.token = str(made["token"])

    def say(self, who: str, text: str, **more: Any) -> dict[str, Any]:
        person = self.world.people.get(who, who)
        body = {"as": person, "token": self.token, "text": text, **more}
        return dict(self.world.platform.post("/documents/comment", **body))

    def thread(self, comment_id: str) -> list[dict[str, Any]]:
        items = self.world.platform.get("/documents")["items"]
        (plan,) = [one for one in items if one["token"] == self.token]
        return next(
            (one["replies"] for one in plan["comments"] if one["comment_id"] == comment_id), []
        )

    def ours(self, comment_id: str) -> list[str]:
        bot = self.world.platform.state()["bot"]["open_id"]
        return [one["text"] for one in self.thread(comment_id) if one["open_id"] == bot]

    def asked(self, who: str, text: str, **more: Any) -> tuple[str, str]:
        """The thread, and the answer there."""
        before = len(self.ours(more.get("comment_id", "")))
        comment_id = self.say(who, text, **more)["comment_id"]
        eventually(lambda: len(self.ours(comment_id)) > before, what="an answer in the thread")
        return comment_id, self.ours(comment_id)[-1]

    def rows(self, comment_id: str) -> list[dict[str, Any]]:
        return self.world.rows(
            "select m.*, t.state from agent_messages m join agent_turns t on t.id = m.turn_id"
            " where m.conversation_id = %s order by m.id",
            f"feishu:doc:{self.token}:{comment_id}",
        )


@pytest.fixture
def plan(world: World) -> Commented:
    world.model.forget()
    return Commented(world)


def scripted(world: World, *rules: dict[str, Any]) -> None:
    world.model.control("mode", {"mode": "rules"})
    world.model.control("script", {"rules": list(rules)})


def checked(world: World, conversation: str) -> list[Any]:
    """What the operators' check finds in a conversation, compared with what Feishu shows."""
    command = ("check_memory", "--verify-sent", "--json", "--conversation", conversation)
    environment = {**clean_environment(), **world.bot.environment}
    found = json.loads(run_script(*command, env=environment).stdout)
    assert len(found["conversations"]) == 2
    assert "sent text" not in found["skipped"]
    return list(found["findings"])


def handled(world: World, reply_id: str) -> None:
    """Once its event was accepted and no job is left of it."""
    key, job = f"comment:%:{reply_id}", f"%{reply_id}%"
    accepted = "select from feishu_bot.inbox where key like %s"
    eventually(lambda: world.rows(accepted, key), what="the event")
    jobs = "select from feishu_bot.jobs where args::text like %s"
    eventually(lambda: not world.rows(jobs, job), what="the end of its job")


def told(world: World) -> str:
    """All that the model was told for the last answer."""
    return json.dumps(prompt_of(world.model.requests()[-1]), ensure_ascii=False)


def test_a_comment_is_answered_from_its_document_and_its_thread_and_from_nothing_else(
    world: World, plan: Commented
) -> None:
    scripted(world, {"reply": {"text": "**It** is Quillfeather."}})
    p2p = next(c["chat_id"] for c in world.platform.state()["chats"]
               if c["mode"] == "p2p" and world.people["Bob"] in c["members"])  # fmt: skip
    world.settled(world.platform.say(world.people["Bob"], p2p, f"remember the wifi is {ELSEWHERE}"))
    world.ask("Bob", f"the group's word is {ELSEWHERE}-group")
    world.model.forget()
    mention = f"@{world.bot_name}"
    thread, said = plan.asked("Bob", f"{mention} what is the code?", quote="The launch code")
    assert said == "@Bob It is Quillfeather."
    prompt = told(world)
    assert SECRET in prompt
    assert "The launch code" in prompt
    assert ELSEWHERE not in prompt
    tools = {one["function"]["name"] for one in world.model.requests()[-1]["body"]["tools"]}
    assert tools <= {"read_working_memory", "update_working_memory", "forget_fact", "read_document"}

    (question, answer) = plan.rows(thread)
    assert question["content"] == "what is the code?"
    assert re.sub(r"<at id=\w+></at>", "@Bob", answer["content"]) == said
    assert (answer["status"], answer["state"]) == ("sent", "sent")
    assert answer["message_id"].endswith(plan.thread(thread)[-1]["reply_id"])

    plan.say("Alice", "so what", comment_id=thread)
    plan.say("Alice", "@Bob can you check the sum?", comment_id=thread)
    _, said = plan.asked("Alice", f"{mention} and who says so?", comment_id=thread)
    assert said.startswith("@Alice ")
    assert "Bob: @" in told(world)
    assert "so what" in told(world)
    both = plan.say("Alice", f"@Bob and {mention}, is it right?", comment_id=thread)
    handled(world, both["reply_id"])
    assert len(plan.ours(thread)) == 3, "what does not mention the bot starts nothing"
    assert checked(world, f"feishu:doc:{plan.token}:{thread}") == []


def test_what_is_kept_in_a_thread_is_used_there_and_nowhere_else(
    world: World, plan: Commented
) -> None:
    patch = {"scope": "person", "patch": {"colour": "teal-of-the-thread"}}
    keep = {"tool_calls": [{"name": "update_working_memory", "arguments": patch}]}
    scripted(world, {"reply": keep, "after_tool": False}, {"reply": {"text": "Kept."}})
    mention = f"@{world.bot_name}"
    thread, said = plan.asked(
        "Bob", f"{mention} remember the colour teal-of-the-thread", quote="Launch"
    )
    assert said == "@Bob Kept."
    (row,) = world.rows("select scope, conversation_id from agent_working_memory"
                        " where content::text like '%%teal-of-the-thread%%'")  # fmt: skip
    assert row == {"scope": "chat", "conversation_id": f"feishu:doc:{plan.token}:{thread}"}
    scripted(world, {"reply": {"text": "Well."}})
    plan.asked("Bob", f"{mention} which colour?", comment_id=thread)
    assert "teal-of-the-thread" in told(world)
    plan.asked("Bob", f"{mention} which one?", quote="code")
    assert "teal-of-the-thread" not in told(world)
    world.ask("Bob", "which one?")
    assert "teal-of-the-thread" not in told(world)

    forget = {"tool_calls": [{"name": "forget_fact", "arguments": {"key": "colour"}}]}
    scripted(world, {"reply": forget, "after_tool": False}, {"reply": {"text": "Forgotten."}})
    plan.say("Bob", f"{mention} forget the colour", comment_id=thread)
    eventually(lambda: not any("Kept." in one for one in plan.ours(thread)), what="it is withdrawn")
    assert not world.rows("select from agent_working_memory"
                          " where content::text like '%%teal-of-the-thread%%'")  # fmt: skip


def test_a_correction_in_a_thread_of_comments_reaches_whoever_asks_there_next(
    world: World, plan: Commented
) -> None:
    scripted(world, {"reply": {"text": "Noted."}})
    mention = f"@{world.bot_name}"
    thread, _ = plan.asked("Alice", f"{mention} the venue is the old granary", quote="Launch")
    plan.asked("Bob", f"{mention} where is it?", comment_id=thread)
    plan.asked("Alice", f"{mention} the venue moved to the town library", comment_id=thread)

    plan.asked("陈晨", f"{mention} where is the venue?", comment_id=thread)

    assert told(world).rfind("town library") > told(world).rfind("old granary") > 0


def test_another_document_is_not_told_of_in_a_comment(world: World, plan: Commented) -> None:
    other = Commented(world)
    url = f"https://{world.platform.get('/documents')['items'][-1]['url'].split('/')[2]}"
    read = {"name": "read_document", "arguments": {"url": f"{url}/docx/{other.token}"}}
    scripted(world, {"reply": {"tool_calls": [read]}, "after_tool": False},
             {"reply": {"text": "There is none."}})  # fmt: skip
    plan.asked(
        "Alice", f"@{world.bot_name} what does {url}/docx/{other.token} say?", quote="Launch"
    )
    results = [text for role, text in prompt_of(world.model.requests()[-1]) if role == "tool"]
    assert results
    assert SECRET not in results[-1]


def test_a_document_that_shows_each_reader_something_else_is_not_told_of_in_a_comment(
    world: World, plan: Commented
) -> None:
    blocks = [{"kind": "reference", "source": "x" * 27, "text": f"The code is {SECRET}."}]
    world.platform.post("/documents/change", token=plan.token, blocks=blocks)
    scripted(world, {"when": {"in": "prompt", "regex": SECRET}, "reply": {"text": SECRET}})
    _, said = plan.asked("Bob", f"@{world.bot_name} what is the code?", quote="The code")
    assert SECRET not in said
    assert "could not be read" in json.dumps(world.model.requests()[-1])


def test_a_comment_on_the_whole_document_and_a_long_answer(world: World, plan: Commented) -> None:
    scripted(world, {"reply": {"text": "A sentence of words. " * 1500}})
    before = len(world.platform.get("/documents")["items"][-1]["comments"])
    thread = plan.say("Bob", f"@{world.bot_name} summarise it")["comment_id"]
    eventually(lambda: {one["status"] for one in plan.rows(thread)} == {"received", "sent"},
               what="three comments")  # fmt: skip
    items = world.platform.get("/documents")["items"]
    (now,) = [one for one in items if one["token"] == plan.token]
    assert len(now["comments"]) == 4 + (before and 0)
    assert "left out" in now["comments"][-1]["replies"][0]["text"]


def test_a_comment_of_which_the_document_is_gone_is_given_up_with_a_log_line(
    world: World, plan: Commented
) -> None:
    scripted(world, {"reply": {"text": "Late.", "delay_s": 1.5}})
    thread = plan.say("Bob", f"@{world.bot_name} what is the code?", quote="Launch")["comment_id"]
    eventually(lambda: len(plan.rows(thread)) == 1, what="the question")
    world.platform.post("/documents/change", token=plan.token, deleted=True)
    eventually(lambda: [one["state"] for one in plan.rows(thread)] == ["failed"] * 2,
               what="it is given up")  # fmt: skip
    gone = plan.say("Bob", f"@{world.bot_name} and now?", comment_id=thread)["reply_id"]
    handled(world, gone)
    assert plan.ours(thread) == []


def test_what_the_app_cannot_read_is_read_as_the_commenter_who_is_connected(
    world: World, plan: Commented
) -> None:
    scripted(world, {"reply": {"text": "Well."}})
    chats = world.platform.state()["chats"]
    alice = world.people["Alice"]
    p2p = next(c["chat_id"] for c in chats if c["mode"] == "p2p" and alice in c["members"])
    connected(world, p2p, "Alice")
    own = ("docs:document.content:read", "docx:document:readonly")
    with world.without_scopes(*own):
        plan.asked("Bob", f"@{world.bot_name} what is the code?", quote="Launch")
        assert SECRET not in told(world)
        assert "could not be read" in told(world)
        plan.asked("Alice", f"@{world.bot_name} what is the code?", quote="Launch")
        assert SECRET in told(world)


@pytest.mark.slow
def test_a_comment_is_answered_once_however_often_the_worker_is_killed(
    world: World, plan: Commented
) -> None:
    mention, path = f"@{world.bot_name}", "/open-apis/drive/v1/files/"
    for number in range(KILLS):
        scripted(world, {"reply": {"text": f"Answer {number}.", "delay_s": 1.0}})
        world.model.forget()
        if number % 3 == 1:
            world.platform.post("/faults", path_prefix=path, path_suffix="/replies", method="POST",
                                delay_s=3, times=1)  # fmt: skip
        thread = plan.say("Bob", f"{mention} question {number}?", quote="Launch")["comment_id"]
        eventually(world.model.requests, what="the model is asked")
        if number % 3 == 0:
            kill_and_replace(world)
        elif number % 3 == 1:
            eventually(lambda: len(plan.rows(thread)) == 2, what="the answer is stored")  # noqa: B023
            kill_and_replace(world)
        else:
            killed_while_it_is_marked(world, plan, thread)
        eventually(lambda: settled(world, plan, thread), what="one answer")  # noqa: B023
        assert plan.ours(thread) == [f"@Bob Answer {number}."]


def killed_while_it_is_marked(world: World, plan: Commented, thread: str) -> None:
    """The answer stands in the thread, and the memory does not know it yet."""
    eventually(lambda: len(plan.rows(thread)) == 2, what="the answer is stored")
    with psycopg.connect(world.database_url) as blocker:
        turn = plan.rows(thread)[0]["turn_id"]
        blocker.execute("select 1 from agent_messages where turn_id = %s for update", [turn])
        eventually(lambda: plan.ours(thread), what="the answer is said")
        if plan.rows(thread)[1]["status"] == "pending":
            eventually(lambda: waiting(world, "mark_sent"), what="it is being marked")
        kill_and_replace(world)


def settled(world: World, plan: Commented, thread: str) -> bool:
    """Whether the turn is over, and its job with it."""
    unfinished = "select from feishu_bot.jobs where status in ('running', 'waiting')"
    return [one["state"] for one in plan.rows(thread)] == ["sent"] * 2 and not world.rows(
        unfinished
    )


def test_two_commenting_bots_stop(world: World, plan: Commented) -> None:
    robot = world.platform.post("/people", name="Robo", kind="bot")["open_id"]
    scripted(world, {"reply": {"text": "Interesting, what do you think?"}})
    mention = f"@{world.bot_name}"
    thread, _ = plan.asked("Alice", f"{mention} what about it?", quote="Launch")
    for _ in range(8):
        before = len(plan.thread(thread))
        said = plan.say(robot, f"{mention} why is that so?", comment_id=thread)["reply_id"]
        handled(world, said)
        assert len(plan.thread(thread)) <= before + 2
    assert len(plan.ours(thread)) <= 3
    plan.asked("Alice", f"{mention} go on", comment_id=thread)
