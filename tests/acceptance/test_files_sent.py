"""The bot answers with files: sent after the card, once, stored as what they are."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
import requests

from lab.doubles.processes import eventually
from tests.acceptance.conftest import World, markdown

pytestmark = pytest.mark.slow

CONTENT = "name,formula\n苹果,=1+1\npear,-5\n"


def sending(world: World, *calls: dict[str, str]) -> None:
    """The model sends these files and then says so."""
    made = [{"name": "send_file", "arguments": call} for call in calls]
    rules = [
        {"when": {"contains": "report"}, "reply": {"tool_calls": made}, "times": 1},
        {"reply": {"text": "Here it is."}, "after_tool": True},
        {"reply": {"text": "Here it is."}},
    ]
    world.model.control("script", {"rules": rules})


def table(name: str = "../report\u202e.csv", content: str = CONTENT) -> dict[str, str]:
    return {"name": name, "kind": "table", "content": content}


def under(world: World, question: str, count: int) -> list[dict[str, Any]]:
    def found() -> list[dict[str, Any]]:
        said = world.under(question)
        return said if len(said) >= count else []

    return eventually(found, what=f"{count} messages")


def loaded(world: World, message: dict[str, Any]) -> requests.Response:
    content = json.loads(message["content"])
    key = content.get("file_key") or content["image_key"]
    return requests.get(f"{world.platform.url}/sandbox/api/resources/{key}", timeout=10)


def test_a_table_comes_after_the_answer_that_names_it(world: World) -> None:
    sending(world, table())
    question, _ = world.ask("Alice", "the report please")
    card, file = under(world, question, 2)

    assert markdown(card).endswith("Here it is.\n\n📎 report.csv")
    assert file["msg_type"] == "file"
    answer = loaded(world, file)
    assert answer.headers["Content-Disposition"].startswith("attachment; ")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    rows = list(csv.reader(io.StringIO(answer.content.decode("utf-8-sig"))))
    assert rows == [["name", "formula"], ["苹果", "'=1+1"], ["pear", "-5"]]

    stored = world.settled(question)
    assert [row["content"] for row in stored][1:] == ["[file: report.csv]"]
    assert stored[1]["file"] == {"name": "report.csv", "kind": "table"}
    assert stored[1]["message_id"] == file["message_id"]


def test_a_picture_is_sent_as_one(world: World) -> None:
    sending(world, {"name": "code", "kind": "qr_code", "content": "https://example.com"})
    question, _ = world.ask("Alice", "the report as a code")
    _, image = under(world, question, 2)

    assert image["msg_type"] == "image"
    assert loaded(world, image).content.startswith(b"\x89PNG")


def test_a_file_is_sent_once_whenever_the_worker_dies(world: World) -> None:
    sending(world, table())
    world.platform.post("/faults", path_prefix="/open-apis/im/v1/messages", method="POST",
                        delay_s=2, times=3)  # fmt: skip
    question = world.say("Alice", f"@{world.bot_name} the report please")
    eventually(lambda: world.under(question), what="the card")
    world.bot.workers[-1].popen.kill()
    world.bot.start_worker()

    stored = world.settled(question)
    assert [row["status"] for row in stored] == ["sent", "sent"]
    said = world.under(question)
    assert [message["msg_type"] for message in said] == ["interactive", "file"]


def test_a_file_goes_when_the_question_is_taken_back(world: World) -> None:
    sending(world, table())
    question, _ = world.ask("Alice", "the report please")
    under(world, question, 2)
    world.settled(question)
    world.platform.post("/recall", message_id=question, **{"as": world.people["Alice"]})

    def gone() -> bool:
        return all(m["deleted"] for m in world.under(question))

    eventually(gone, what="card and file are withdrawn")
    assert world.stored(question) == []


def test_a_file_that_feishu_refuses_is_a_sentence(world: World) -> None:
    sending(world, table())
    world.platform.post("/faults", path_prefix="/open-apis/im/v1/files", method="POST",
                        status=400, code=99991672, times=0)  # fmt: skip
    question, _ = world.ask("Alice", "the report please")
    _, said = under(world, question, 2)

    assert "I couldn't send the file “report.csv”." in said["text"]
    assert world.settled(question)[1]["content"] == said["text"]


def test_what_cannot_be_sent_is_told_to_the_model(world: World) -> None:
    sending(world, table(content=" "), table("a.csv"), table("a.csv"))
    question, _ = world.ask("Alice", "the report please")
    world.settled(question)
    results = [
        message["content"]
        for message in world.model.requests()[-1]["body"]["messages"]
        if message["role"] == "tool"
    ]
    assert "The content is empty" in results[0]
    assert "will be sent after your answer" in results[1]
    assert "is sent already" in results[2]
