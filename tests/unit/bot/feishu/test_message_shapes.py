"""Messages in the shapes that clients and other bots' test suites send, row by row: what a person
sees of each is read, whether it is pushed or fetched as a quotation or a part of a forward.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.feishu.content import render_content
from bot.feishu.fields import Attachment
from bot.feishu.models import message_text, raw_message

DATA = Path(__file__).parents[3] / "data"
LINES = (DATA / "message_shapes.jsonl").read_text("utf-8").splitlines()


def keys(attachments: tuple[Attachment, ...], kind: str) -> list[str]:
    return [one.key for one in attachments if one.kind == kind]


@pytest.mark.parametrize("line", LINES, ids=lambda line: json.loads(line)["name"])
def test_what_a_person_sees_is_read(line: str) -> None:
    row: dict[str, Any] = json.loads(line)
    content = json.dumps(row["content"], ensure_ascii=False)
    pushed = render_content(row["type"], content)
    fetched = raw_message(
        {
            "message_id": "om_1",
            "msg_type": row["type"],
            "body": {"content": content},
            "sender": {"id": "ou_a"},
        }
    )

    for text in (pushed.template, message_text(fetched, {})):
        assert [one for one in row.get("says", []) if one not in text] == []
    assert keys(pushed.attachments, "image") == row.get("pictures", [])
    assert keys(pushed.attachments, "file") == row.get("files", [])
