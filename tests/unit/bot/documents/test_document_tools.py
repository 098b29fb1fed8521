"""What a model is given of a document that was read."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from bot.documents.document import Comment, ReadDocument, Section
from bot.features.documents import read_document
from bot.text.roster import Person, Roster

pytestmark = pytest.mark.anyio

COMMENTS = (
    Comment("Why March?", "3 March", "ou_bob"),
    Comment("Good", "", "ou_gone", is_solved=True),
)
PLAN = ReadDocument(
    "https://acme.feishu.cn/docx/x", "x", "docx", "Plan", (Section("", 0, "Launch"),), COMMENTS
)


class Documents:
    async def read(self, _: str) -> ReadDocument:
        return PLAN

    async def give(self, _: ReadDocument, text: str) -> bool:
        return bool(text)


async def test_whoever_wrote_a_comment_is_named_where_the_chat_knows_them() -> None:
    prompt = SimpleNamespace(people=Roster((Person("ou_bob", "Bob\nBuilder"),)))
    deps = cast(Any, SimpleNamespace(opened_sources={"documents": Documents()}, prompt=prompt))
    text = await read_document(deps, PLAN.url)
    assert "- on “3 March”, Bob Builder: Why March?" in text
    assert "- someone: Good (solved)" in text
