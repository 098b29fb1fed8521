"""What a prompt becomes as the messages of a request."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from bot.agents.llm.model import Message, Request, call_entry, result_message
from bot.agents.llm.requests import fields_of, manager_messages, sent_features
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


def test_lines_of_people_that_follow_each_other_are_one_message() -> None:
    history = (
        PromptMessage("user", "Alice: the offsite is in May", author="Alice"),
        PromptMessage("user", "Bob: no,\n  in June", author="Bob", at="2026-11-20 10:00"),
        PromptMessage("assistant", "Noted."),
        PromptMessage("user", "Alice: fine", author="Alice"),
    )
    messages = manager_messages(replace(PROMPT, history=history), with_tools=True)
    assert [(one["role"], one["content"]) for one in messages[1:-1]] == [
        ("user", "Alice: the offsite is in May\n[2026-11-20 10:00] Bob: no,\n  in June"),
        ("assistant", "Noted."),
        ("user", "Alice: fine"),
    ]


def test_words_without_labels_stay_apart() -> None:
    """In a private chat nothing would show where one message ends."""
    history = (PromptMessage("user", "one"), PromptMessage("user", "two"))
    messages = manager_messages(replace(PROMPT, history=history), with_tools=True)
    assert [one["content"] for one in messages[1:-1]] == ["one", "two"]


def test_thoughts_among_the_content_of_an_answer_are_no_pictures() -> None:
    """An endpoint that then refuses pictures, or calls, is asked in words."""
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    called: Message = {"role": "assistant", "tool_calls": [call_entry("c1", "look", "{}")]}
    called["content"] = [thought, {"type": "text", "text": "On it."}]
    dialogue: list[Message] = [
        {"role": "user", "content": "when?"},
        called,
        result_message("c1", "at nine"),
    ]
    request = Request(dialogue)

    assert "images" not in sent_features(request, fields_of(request, ()))
    assert fields_of(request, {"images"})["messages"] == dialogue
    _, said, results = fields_of(request, {"calls"})["messages"]
    assert said == {"role": "assistant", "content": "On it."}
    assert "at nine" in results["content"]
