"""The agent loop: ask, do what the model calls for, tell it the results, until it answers in words.

    messages ──> model ──> words ─────────────────────────────────> the answer
        ^          └─────> calls ──> tools (or a specialist) ──┐
        └──────────────── results ─────────────────────────────┘

The manager and every specialist run through here, streaming or not, with pictures or without. What
a turn may spend is shared between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bot.agents.llm.limits import Spent
from bot.agents.llm.model import Message, Model, ModelFailed, OnText, Request, Response
from bot.agents.model_text.cleaner import AnswerReader
from bot.agents.progress import OnProgress, Progress
from bot.agents.prompts.prompt import Ended
from bot.agents.prompts.sentences import confirm_below
from bot.agents.tool_types.outcomes import ToolOutcome
from bot.agents.tool_types.tool import NO_TOOLS, FinalAnswer
from bot.agents.tools.tool_calls import (
    Hands,
    Result,
    as_message,
    as_text,
    offered,
    performed,
    readable,
)
from memory.text import storable

# So often in a row a model may say nothing, or call only what cannot be called.
RETRIES = 2


@dataclass(frozen=True, slots=True)
class AgentWords:
    """The words of an agent. `ended`: why they are not all that its model wanted to say."""

    text: str
    ended: Ended = ""


async def run(
    model: Model,
    messages: Sequence[Message],
    *,
    usage: Spent,
    hands: Hands | None = None,
    on_progress: OnProgress | None = None,
    offers_tools: bool = True,
    reader: AnswerReader | None = None,
) -> AgentWords:
    """The model's answer to `messages`. Without `hands` it has no tools; without `offers_tools` it
    is not told of them, and only what it calls in its text is called. `reader` takes what is not
    for people out of its text.

    Raises `ModelFailed`, `ToolsRefused`, `Declined` and `LimitReached`.
    """
    reader = reader or AnswerReader()
    dialogue, on_text, failures = list(messages), _on_text(on_progress, reader), 0
    outcomes: dict[str, ToolOutcome] = {}
    tools = hands.offered if hands and offers_tools else NO_TOOLS
    while True:
        usage.ask()
        response = await model.respond(Request(dialogue, tools, outcomes=outcomes), on_text)
        usage.count(response.input_tokens, response.output_tokens)
        if response.calls:
            step = await _called(response, hands, usage)
        else:
            step = await _written(response, hands, usage, reader)
        if isinstance(step, AgentWords):
            return step
        dialogue += step.messages
        outcomes |= step.outcomes
        failures = failures + 1 if step.failed else 0
        if failures > RETRIES:
            raise ModelFailed(_useless(response))


def _useless(response: Response) -> str:
    """Why a response is of no use."""
    if response.calls:
        return "unusable_calls"
    return "only_thoughts" if response.thoughts and not response.cut_off else "empty"


@dataclass(frozen=True, slots=True)
class _Step:
    """What is added to the conversation; `failed`: the model gave nothing of use."""

    messages: Sequence[Message] = ()
    failed: bool = True
    outcomes: Mapping[str, ToolOutcome] = field(default_factory=dict)


async def _called(response: Response, hands: Hands | None, usage: Spent) -> AgentWords | _Step:
    """Does what the model calls for."""
    usage.call(len(response.calls))
    results = await performed(response.calls, hands)
    if final := _final(results, hands):
        return final
    messages = [as_message(response), *(result.message for result in results)]
    outcomes = {one.message["tool_call_id"]: one.outcome for one in results}
    return _Step(messages, not any(result.called for result in results), outcomes)


async def _written(
    response: Response, hands: Hands | None, usage: Spent, reader: AnswerReader
) -> AgentWords | _Step:
    """The model's words. Calls among them are made where they only read, else offered."""
    ending: Ended = response.broken or ("length" if response.cut_off else "")
    answer = reader.read(response.text, complete=not ending)
    reading = readable(answer.calls, hands) if hands else []
    if hands and reading:
        usage.call(len(reading))
        results = await performed(reading, hands)
        return _final(results, hands) or _Step(
            as_text(response.text, reading, results), failed=False
        )
    has_offered = bool(hands and await offered(answer.calls, hands))
    words = words_of(answer.text)
    if hands and has_offered and not words:
        words = confirm_below(hands.deps.prompt.spoken)
    return AgentWords(words, ending) if words else _Step()


def _final(results: Sequence[Result], hands: Hands | None) -> AgentWords | None:
    """The result that is the answer of the whole run, if it is one."""
    if hands and len(results) == 1:
        result = results[0].outcome.result
        return AgentWords(result, hands.deps.ended) if isinstance(result, FinalAnswer) else None
    return None


def _on_text(on_progress: OnProgress | None, reader: AnswerReader) -> OnText:
    """Reports the text of a response; when it goes on to call tools, the next report drops it.

    Where nobody watches the model streams too: then only a pause ends it, not its length.
    """

    async def report(text: str) -> None:
        if on_progress:
            await on_progress(Progress(text=reader.read(text, complete=False).text))

    return report


def words_of(text: str) -> str:
    """`text` as it can be stored; "" where nothing is said."""
    words = storable(text)
    return words if words.strip() else ""
