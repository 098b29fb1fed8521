"""What a prompt becomes as the messages of a request."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from bot.agents.llm.requests import manager_messages
from bot.agents.prompts.prompt import Prompt, without_knowledge
from memory.context import PromptMessage
from memory.models import WorkingMemory
from tests.support.rows import every_row

PROMPT = Prompt("Bot", "when?", (), "Alice", WorkingMemory(), datetime(2026, 11, 20, tzinfo=UTC))


@every_row("with_tools", [True, False])
def test_no_message_of_a_request_is_empty(with_tools: bool) -> None:
    """Many endpoints refuse one; a kind of message that has no text would silence a chat."""
    prompt = replace(
        PROMPT, history=(PromptMessage("user", ""), PromptMessage("assistant", "I cannot"))
    )
    messages = manager_messages(prompt, with_tools=with_tools)
    *before, question = (one["content"] for one in messages[1:])
    assert before == ["[a message without text]", "I cannot"]
    assert without_knowledge(question)[1] == "when?"
