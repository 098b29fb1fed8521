"""A prompt as the messages of a request. Pure."""

from __future__ import annotations

import base64
from typing import Any

from bot.agents.model import Message
from bot.agents.prompt import Image, Prompt, manager_instructions, specialist_instructions

_TASK = "Task: {task}\n\nThe person's message:\n{question}"


def manager_messages(prompt: Prompt, *, with_tools: bool) -> list[Message]:
    """What the manager is told: instructions, history, and the question with its pictures."""
    return _messages(manager_instructions(prompt, with_tools=with_tools), prompt, _asked(prompt))


def specialist_messages(instructions: str, task: str, prompt: Prompt) -> list[Message]:
    """What a specialist is told: its own instructions, the same history, and the task."""
    asked = _TASK.format(task=task, question=prompt.question)
    return _messages(specialist_instructions(instructions, prompt), prompt, asked)


def plain_messages(instructions: str, question: str) -> list[Message]:
    """One question, without a conversation."""
    return [{"role": "system", "content": instructions}, {"role": "user", "content": question}]


def _messages(instructions: str, prompt: Prompt, asked: Any) -> list[Message]:
    history = [{"role": one.role, "content": one.content} for one in prompt.history]
    return [
        {"role": "system", "content": instructions},
        *history,
        {"role": "user", "content": asked},
    ]


def _asked(prompt: Prompt) -> str | list[dict[str, Any]]:
    if not prompt.images:
        return prompt.question
    return [{"type": "text", "text": prompt.question}, *map(_picture, prompt.images)]


def _picture(image: Image) -> dict[str, Any]:
    data = base64.b64encode(image.data).decode("ascii")
    return {"type": "image_url", "image_url": {"url": f"data:{image.media_type};base64,{data}"}}
