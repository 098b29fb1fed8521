"""The agent loop: ask, do what the model calls for, tell it the results, until it answers in words.

    messages ──> model ──> words ─────────────────────────────────> the answer
        ^          └─────> calls ──> tools (or a specialist) ──┐
        └──────────────── results ─────────────────────────────┘

The manager and every specialist run through here, streaming or not, with pictures or without. What
a turn may spend is shared between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.agents.calling import Hands, as_message, performed
from bot.agents.limits import Spent
from bot.agents.model import Message, Model, ModelFailed, OnText, Request
from bot.agents.progress import OnProgress, Progress, said_so_far, without_thoughts
from bot.agents.tool_context import without_context
from bot.agents.tools.tool import NO_TOOLS, FinalAnswer
from memory.text import storable

# So often in a row a model may say nothing, or call only what cannot be called.
RETRIES = 2


@dataclass(frozen=True, slots=True)
class Said:
    """The words of an agent. `cut_off`: its model reached its own length limit."""

    text: str
    cut_off: bool = False


async def run(
    model: Model,
    messages: Sequence[Message],
    *,
    spent: Spent,
    hands: Hands | None = None,
    on_progress: OnProgress | None = None,
) -> Said:
    """The model's answer to `messages`. Without `hands` it has no tools.

    Raises `ModelFailed`, `Declined` and `LimitReached`.
    """
    said, on_text, failures = list(messages), _on_text(on_progress), 0
    tools = hands.tools if hands else NO_TOOLS
    while True:
        spent.ask()
        response = await model.respond(Request(said, tools), on_text)
        spent.count(response.input_tokens, response.output_tokens)
        if response.calls:
            spent.call(len(response.calls))
            results = await performed(response.calls, hands)
            if len(results) == 1 and isinstance(results[0].value, FinalAnswer):
                return Said(results[0].value)
            said += [as_message(response), *(result.message for result in results)]
            failed = not any(result.called for result in results)
        elif text := _words(response.text):
            return Said(text, response.cut_off)
        else:
            failed = True
        failures = failures + 1 if failed else 0
        if failures > RETRIES:
            raise ModelFailed("unusable_calls" if response.calls else "empty")


def _on_text(on_progress: OnProgress | None) -> OnText | None:
    """Reports the text of a response; when it goes on to call tools, the next report drops it."""
    if on_progress is None:
        return None

    async def report(text: str) -> None:
        await on_progress(Progress(text=said_so_far([text])))

    return report


def _words(text: str) -> str:
    """What of a response is an answer to people."""
    words = storable(without_context(without_thoughts(text)))
    return words if words.strip() else ""
