"""The agent loop: what is called, in which order, what the model is told, and when it ends."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from bot.agents.llm.model import ModelFailed, Response, next_step
from bot.agents.llm.requests import plain_messages
from bot.agents.loop import AgentWords, run_agent
from bot.agents.running_turns import LimitReached, Limits, Progress, Spent
from bot.agents.tool_types import Tool, Toolbox, ToolCall, ToolFailed, tool
from bot.agents.tools.deps import ToolDeps
from bot.agents.tools.tool_calls import ToolSession
from bot.answering.texts import apology
from bot.text.languages import Language
from tests.support.models import Scripted, calling

pytestmark = pytest.mark.anyio


class Kitchen:
    """Tools that keep what was done, and when."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.begun = 0
        self.all_begun = asyncio.Event()

    def box(self) -> Toolbox:
        alone: list[Tool] = [tool(self.salt, sequential=True)]
        return Toolbox([tool(self.boil), tool(self.burn), *alone])

    async def boil(self, deps: ToolDeps, what: str, minutes: int = 3) -> Any:
        """Boils something.

        Args:
            what: An ingredient.
            minutes: How long.
        """
        self.log.append(f"boil {what}")
        self.begun += 1
        if self.begun == 2:
            self.all_begun.set()
        if what == "until both":
            await self.all_begun.wait()
        self.log.append(f"boiled {what}")
        return {"boiled": what, "minutes": minutes}

    async def burn(self, deps: ToolDeps) -> str:
        """Fails."""
        raise ToolFailed("It is burnt.")

    async def salt(self, deps: ToolDeps, what: str) -> str:
        """Salts something, never beside another call.

        Args:
            what: An ingredient.
        """
        self.log.append(f"salt {what}")
        await asyncio.sleep(0)
        self.log.append(f"salted {what}")
        return f"salted {what}"


def deps(**fields: Any) -> ToolDeps:
    nobody: Any = None
    return ToolDeps(nobody, nobody, nobody, nobody, **fields)


async def ran(model: Scripted, kitchen: Kitchen | None = None, **options: Any) -> AgentWords:
    hands = ToolSession(kitchen.box(), deps()) if kitchen else None
    spent = options.pop("spent", Spent())
    async with asyncio.timeout(60):
        return await run_agent(
            model, plain_messages("", "cook"), usage=spent, hands=hands, **options
        )


def raw(name: str, arguments: str) -> Response:
    return Response(calls=(ToolCall("c", name, arguments),))


async def test_a_call_and_its_result_stand_in_the_next_request() -> None:
    model = Scripted(calling(("boil", {"what": "意面"})), "Done.")
    assert await ran(model, Kitchen()) == AgentWords("Done.")

    *_, asked, told = model.requests[-1].messages
    [call] = asked["tool_calls"]
    assert (asked["role"], asked["content"], call["type"]) == ("assistant", None, "function")
    assert call["function"] == {"name": "boil", "arguments": '{"what":"意面"}'}
    assert told == {
        "role": "tool", "tool_call_id": call["id"], "content": '{"boiled":"意面","minutes":3}'
    }  # fmt: skip


async def test_calls_run_side_by_side_and_their_results_keep_the_order() -> None:
    both = [("boil", {"what": "until both"}), ("boil", {"what": "rice"})]
    model, kitchen = Scripted(both, "Done."), Kitchen()
    await ran(model, kitchen)

    assert kitchen.log == ["boil until both", "boil rice", "boiled rice", "boiled until both"]
    assert ["until both" in result for result in model.results()] == [True, False]


async def test_a_sequential_tool_runs_alone() -> None:
    calls = [("salt", {"what": "a"}), ("salt", {"what": "b"}), ("boil", {"what": "c"})]
    kitchen = Kitchen()
    await ran(Scripted(calls, "Done."), kitchen)

    assert kitchen.log == ["salt a", "salted a", "salt b", "salted b", "boil c", "boiled c"]


async def test_a_failure_is_told_as_one() -> None:
    model = Scripted([("burn", {})], "Sorry.")
    assert (await ran(model, Kitchen())).text == "Sorry."
    assert model.results() == ["Error: It is burnt."]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ('{"what": "rice", "minu', "not a JSON object"),
        ("rice", "not a JSON object"),
        ('["rice"]', "not a JSON object"),
        ("7", "not a JSON object"),
        ("", "what: it has to be given"),
        ("null", "what: it has to be given"),
        ('{"what": 7}', 'what: it has to fit {"type":"string"}'),
        ('{"what": "rice", "minutes": "long"}', 'minutes: it has to fit {"type":"integer"}'),
        ('{"what": 7, "minutes": "SECRET"}', 'string"}; minutes: it has to fit {"type":"integer"}'),
        ('{"what": "rice", "secret": "SECRET"}', "secret: there is no such argument"),
    ],
)
async def test_arguments_that_do_not_fit_are_told_and_may_be_mended(
    arguments: str, told: str
) -> None:
    model = Scripted(raw("boil", arguments), [("boil", {"what": "rice"})], "Done.")
    kitchen = Kitchen()

    assert (await ran(model, kitchen)).text == "Done."
    first, _ = model.results()
    assert first.startswith("Error: ")
    assert told in first
    assert "Nothing was done." in first
    assert "SECRET" not in first
    assert kitchen.log == ["boil rice", "boiled rice"]
    for message in model.requests[-1].messages:
        for call in message.get("tool_calls", ()):  # endpoints refuse a history with broken JSON
            assert isinstance(json.loads(call["function"]["arguments"]), dict)


@pytest.mark.parametrize(
    "arguments",
    [
        '{"what": "rice"}',
        '"{\\"what\\": \\"rice\\"}"',
        ' {"what": "rice", "minutes": "3"} ',
        '{"what": "rice", "minutes": 3.0}',
    ],
)
async def test_arguments_are_taken_as_they_are_meant(arguments: str) -> None:
    kitchen = Kitchen()
    model = Scripted(raw("boil", arguments), "Done.")
    await ran(model, kitchen)
    assert model.results() == ['{"boiled":"rice","minutes":3}']


async def test_a_line_break_inside_a_string_does_not_matter() -> None:
    model = Scripted(raw("salt", '{"what": "a\nb"}'), "Done.")
    await ran(model, Kitchen())
    assert model.results() == ["salted a\n    b"]


async def test_an_unknown_tool_is_answered_with_the_known_ones() -> None:
    model = Scripted([("fry", {})], "Sorry.")
    await ran(model, Kitchen())
    assert model.results() == [
        "Error: there is no tool 'fry'; there are: boil, burn, salt. Nothing was done."
    ]


async def test_a_model_without_tools_that_calls_one_is_told_so() -> None:
    model = Scripted([("fry", {})], "Sorry.")
    assert (await ran(model)).text == "Sorry."
    assert model.results() == ["Error: there are no tools. Nothing was done."]


async def test_a_model_that_only_calls_what_cannot_be_called_is_given_up() -> None:
    model = Scripted(*[[("fry", {})]] * 3, "never")
    with pytest.raises(ModelFailed, match="unusable_calls"):
        await ran(model, Kitchen())
    assert len(model.requests) == 3


async def test_one_call_that_works_gives_a_model_its_patience_back() -> None:
    bad, good = [("fry", {})], [("salt", {"what": "a"})]
    assert (await ran(Scripted(bad, bad, [*bad, *good], bad, bad, "Done."), Kitchen())).text


@pytest.mark.parametrize("nothing", ["", " \n", "<think>SECRET", "<think>a</think> \n"])
async def test_nothing_said_is_asked_for_again_and_then_given_up(nothing: str) -> None:
    assert (await ran(Scripted(nothing, nothing, "Done."))).text == "Done."
    with pytest.raises(ModelFailed, match="empty"):
        await ran(Scripted(*[nothing] * 3, "never"))


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_an_answer_that_comes_only_as_thoughts_is_called_that(language: Language) -> None:
    hidden = Response(thoughts={"reasoning_content": "SECRET"})
    assert (await ran(Scripted(hidden, hidden, "Done."))).text == "Done."
    with pytest.raises(ModelFailed) as failed:
        await ran(Scripted(*[hidden] * 3, "never"))
    assert failed.value.reason == "only_thoughts"
    assert "reasoning-parser" in str(next_step("only_thoughts"))
    assert {"en": "reasoning text", "zh": "思考"}[language] in apology("only_thoughts", language)


async def test_thoughts_go_back_with_the_results_of_the_calls_they_led_to() -> None:
    thinking = Response(
        calls=(ToolCall("c", "salt", '{"what": "a"}'),), thoughts={"reasoning_content": "Salt."}
    )
    model = Scripted(thinking, "Done.")
    await ran(model, Kitchen())
    assert model.requests[-1].messages[-2]["reasoning_content"] == "Salt."


async def test_the_text_beside_calls_is_reported_and_is_no_answer() -> None:
    reports: list[Progress] = []

    async def on_progress(progress: Progress) -> None:
        reports.append(progress)

    first = Response("Let me see.", (ToolCall("c", "salt", '{"what": "a"}'),))
    hands = ToolSession(Kitchen().box(), deps(on_progress=on_progress))
    said = await run_agent(
        Scripted(first, "Done."),
        plain_messages("", "cook"),
        usage=Spent(),
        hands=hands,
        on_progress=on_progress,
    )

    assert said.text == "Done."
    assert reports == [Progress("Let me see."), Progress(tool="salt"), Progress("Done.")]


@pytest.mark.parametrize(
    ("limits", "steps", "reason"),
    [
        (Limits(requests=2), 3, "limit_requests"),
        (Limits(tool_calls=1), 2, "limit_tool_calls"),
        (Limits(tokens=100), 3, "limit_tokens"),
    ],
)
async def test_what_is_spent_is_limited(limits: Limits, steps: int, reason: str) -> None:
    model = Scripted(*[[("salt", {"what": "a"})]] * steps)
    with pytest.raises(LimitReached, match=reason):
        await ran(model, Kitchen(), spent=Spent(limits))


async def test_an_answer_that_uses_the_last_tokens_is_still_given() -> None:
    assert (await ran(Scripted("Done."), spent=Spent(Limits(tokens=10)))).text == "Done."


async def test_when_a_call_breaks_those_beside_it_are_cancelled() -> None:
    kitchen = Kitchen()

    async def broken(deps: ToolDeps) -> str:
        """Has a fault."""
        raise RuntimeError("a fault of ours")

    box = Toolbox([tool(broken), tool(kitchen.boil)])
    calls = [("boil", {"what": "until both"}), ("broken", {})]
    with pytest.raises(RuntimeError, match="a fault of ours"):
        await run_agent(
            Scripted(calls), plain_messages("", "x"), usage=Spent(), hands=ToolSession(box, deps())
        )
    assert kitchen.log == ["boil until both"]


async def test_a_long_result_is_cut_as_it_is_stored() -> None:
    async def long(deps: ToolDeps) -> str:
        """Says a lot."""
        return "x" * 100_000

    working = deps()
    model = Scripted([("long", {})], "Done.")
    hands = ToolSession(Toolbox([tool(long)]), working)
    await run_agent(model, plain_messages("", "x"), usage=Spent(), hands=hands)
    assert model.results() == [working.calls[0]["result"]]
    assert len(model.results()[0]) < 30_000
