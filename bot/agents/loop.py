"""Runs the agent loop of the manager and of every specialist: ask the model, run the tools it
calls, repeat until it answers.

messages ──> model ──> words ─────────────────────────────────> the answer
        ^          └─────> calls ──> tools (or a specialist) ──┐
        └──────────────── results ─────────────────────────────┘

The manager and every specialist run through here, streaming or not, with pictures or without. What
a turn may spend is shared between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.agents.llm.model import (
    Declined,
    Message,
    Model,
    ModelFailed,
    OnText,
    Request,
    Response,
    ToolsRefused,
)
from bot.agents.llm.requests import reader_of, specialist_messages
from bot.agents.model_text.cleaner import AnswerReader, Cleaner
from bot.agents.prompts.prompt import Ended
from bot.agents.prompts.tool_context import enrich
from bot.agents.running_turns import OnProgress, Progress, Spent
from bot.agents.specialists import Specialist
from bot.agents.tool_types import NO_TOOLS, FinalAnswer, Tool, ToolFailed, ToolOutcome, tool
from bot.agents.tools.deps import ToolDeps
from bot.agents.tools.tool_calls import (
    ToolCallResult,
    Toolkit,
    ToolSession,
    offer_for_confirmation,
    perform_calls,
    read_only_calls,
    response_message,
    results_as_text,
)
from bot.text.languages import Catalogue, Language
from bot.text.roster import AutoMention
from memory.text import quoted_text, storable

# So often in a row a model may say nothing, or call only what cannot be called.
RETRIES = 2

_ABOUT = "Hand a task to a specialist, who sees the same conversation and memory:\n"

say = Catalogue(__file__).say


@dataclass(frozen=True, slots=True)
class AgentWords:
    """The words of an agent. `end_reason`: why they are not all that its model wanted to say."""

    text: str
    end_reason: Ended = ""


async def run_agent(
    model: Model,
    messages: Sequence[Message],
    *,
    usage: Spent,
    hands: ToolSession | None = None,
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
    tools = hands.toolbox if hands and offers_tools else NO_TOOLS
    while True:
        usage.ask()
        response = await model.respond(Request(dialogue, tools, outcomes=outcomes), on_text)
        usage.count(response.input_tokens, response.output_tokens)
        if response.calls:
            step = await _run_calls(response, hands, usage)
        else:
            step = await _read_words(response, hands, usage, reader)
        if isinstance(step, AgentWords):
            return step
        dialogue += step.messages
        outcomes |= step.outcomes
        failures = failures + 1 if step.is_useless else 0
        if failures > RETRIES:
            raise ModelFailed(_useless(response))


def _useless(response: Response) -> str:
    """Why a response is of no use."""
    if response.calls:
        return "unusable_calls"
    return "only_thoughts" if response.thoughts and not response.cut_off else "empty"


@dataclass(frozen=True, slots=True)
class _Step:
    """What is added to the conversation; `is_useless`: the model gave nothing of use."""

    messages: Sequence[Message] = ()
    is_useless: bool = True
    outcomes: Mapping[str, ToolOutcome] = field(default_factory=dict)


async def _run_calls(
    response: Response, hands: ToolSession | None, usage: Spent
) -> AgentWords | _Step:
    """Does what the model calls for."""
    usage.call(len(response.calls))
    results = await perform_calls(response.calls, hands)
    if final := _final(results, hands):
        return final
    messages = [response_message(response), *(result.message for result in results)]
    outcomes = {one.message["tool_call_id"]: one.outcome for one in results}
    return _Step(messages, not any(result.was_called for result in results), outcomes)


async def _read_words(
    response: Response, hands: ToolSession | None, usage: Spent, reader: AnswerReader
) -> AgentWords | _Step:
    """The model's words. Calls among them are made where they only read, else offered."""
    ending: Ended = response.break_reason or ("length" if response.cut_off else "")
    answer = reader.read(response.text, complete=not ending)
    reading = read_only_calls(answer.calls, hands) if hands else []
    if hands and reading:
        usage.call(len(reading))
        results = await perform_calls(reading, hands)
        return _final(results, hands) or _Step(
            results_as_text(response.text, reading, results), is_useless=False
        )
    has_offered = bool(hands and await offer_for_confirmation(answer.calls, hands))
    words = storable_words(answer.text)
    if hands and has_offered and not words:
        words = confirm_sentence(hands.deps.prompt.reply_language)
    return AgentWords(words, ending) if words else _Step()


def _final(results: Sequence[ToolCallResult], hands: ToolSession | None) -> AgentWords | None:
    """The result that is the answer of the whole run, if it is one."""
    if hands and len(results) == 1:
        result = results[0].outcome.result
        return (
            AgentWords(result, hands.deps.end_reason) if isinstance(result, FinalAnswer) else None
        )
    return None


def _on_text(on_progress: OnProgress | None, reader: AnswerReader) -> OnText:
    """Reports the text of a response; when it goes on to call tools, the next report drops it.

    Where nobody watches the model streams too: then only a pause ends it, not its length.
    """

    def read(text: str) -> str:
        return reader.read(text, complete=False).text

    async def report(text: str) -> None:
        if on_progress:
            await on_progress(Progress(text, read=read))

    return report


def storable_words(text: str) -> str:
    """`text` as it can be stored; "" where nothing is said."""
    words = storable(text)
    return words if words.strip() else ""


class Delegation:
    """The specialists of a manager and the tool by which it asks them.

    They share the turn's memory, limits and time with the manager.
    """

    def __init__(
        self,
        specialists: Sequence[Specialist],
        *,
        model: Model,
        model_named: Callable[[str], Model] | None,
        tools: Sequence[Tool],
        cleaner: Cleaner,
    ) -> None:
        self._cleaner = cleaner
        self._specialists = {one.name: one for one in specialists}
        self._tools = {one.name: Toolkit(tools, allowed=one.may_use) for one in specialists}
        self._models = {
            one.name: model_named(one.model) if one.model and model_named else model
            for one in specialists
        }

    @property
    def names(self) -> Collection[str]:
        return self._specialists.keys()

    def tool(self) -> Tool:
        """`ask_specialist`; its description lists who there is."""
        listing = "\n".join(
            f"- {one.name}: {one.description}" for one in self._specialists.values()
        )
        description = _ABOUT + listing
        # What a specialist calls for is called, and held up, like the manager's own calls.
        return tool(
            self.ask, name="ask_specialist", description=description, sequential=True, reads=True
        )

    def auto_mention(self, consulted_names: Sequence[str]) -> AutoMention | None:
        """Whom the answer addresses: as the specialist asked last has it; None: as usual."""
        return self._specialists[consulted_names[-1]].auto_mention if consulted_names else None

    async def ask(
        self, deps: ToolDeps, name: str, task: str, answers_the_person: bool = True
    ) -> str:
        """Hands `task` to the specialist `name`.

        Args:
            name: Whom.
            task: What to do, complete and in the person's language.
            answers_the_person: Their answer goes to the person and ends your turn; False gives it
                to you.
        """
        if name not in self._specialists:
            known_names = ", ".join(self._specialists)
            raise ToolFailed(f"There is no specialist {name!r}; ask {known_names}.")
        on_progress = deps.on_progress if answers_the_person else None
        before = len(deps.calls)
        try:
            answer = await self._run(deps, name, task, on_progress)
        except (Declined, ModelFailed) as exc:
            why = (
                "declined to do this. Say so."
                if isinstance(exc, Declined)
                else "could not be reached. Answer yourself as well as you can."
            )
            refusal = f"The specialist {name} {why}"
            raise ToolFailed(enrich(refusal, deps.calls[before:])) from exc
        deps.specialists.append(name)
        if not answers_the_person:
            return answer.text
        deps.end_reason = answer.end_reason
        return FinalAnswer(answer.text)

    async def _run(
        self, deps: ToolDeps, name: str, task: str, on_progress: OnProgress | None
    ) -> AgentWords:
        """What the specialist says, without tools where its model takes none."""
        hands = ToolSession(self._tools[name].with_outside(deps.outside), deps)
        own, before = self._specialists[name].instructions, len(deps.calls)

        async def ask(*, with_tools: bool) -> AgentWords:
            return await run_agent(
                self._models[name],
                specialist_messages(
                    own,
                    task,
                    deps.prompt,
                    with_tools=with_tools,
                    done_calls=deps.calls[before:],
                ),
                usage=deps.usage,
                hands=hands,
                on_progress=on_progress,
                offers_tools=with_tools,
                reader=reader_of(deps.prompt, hands.tools, self._cleaner),
            )

        if not hands.tools:
            return await ask(with_tools=False)
        try:
            return await ask(with_tools=True)
        except ToolsRefused:
            return await ask(with_tools=False)


def cut_short_sentence(calls: Sequence[Mapping[str, Any]], language: Language) -> str:
    """An honest sentence, with the names of the steps that were done."""
    done_names = [call["name"] for call in calls if call["ok"]]
    return "\n\n".join([say("cut-short", language), *_steps(done_names, language)])


def stopped_sentence(done_names: Sequence[str], language: Language) -> str:
    """That it was stopped before there was an answer, and the steps done, by name."""
    return "\n\n".join([say("stopped-first", language), *_steps(done_names, language)])


def _steps(done_names: Sequence[str], language: Language) -> list[str]:
    return (
        [say("steps-done", language, steps=", ".join(dict.fromkeys(done_names)))]
        if done_names
        else []
    )


def declined_sentence(model_words: str, language: Language) -> str:
    """That the model declined, and what it said about it, if anything."""
    sentence = say("declined", language)
    return f"{sentence}\n\n{quoted_text(model_words)}" if model_words else sentence


def confirm_sentence(language: Language) -> str:
    """What is said where the model only wants something done."""
    return say("confirm-below", language)
