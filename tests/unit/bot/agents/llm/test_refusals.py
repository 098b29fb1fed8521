"""What endpoints refuse: each server's own words, and what becomes of the question all the same."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.agents.configured_models import Fallback
from bot.agents.llm.chat_completions import ChatModel
from bot.agents.llm.endpoint import Endpoint
from bot.agents.llm.model import (
    Feature,
    ModelFailed,
    Request,
    ToolsRefused,
    call_entry,
    refused_feature,
    refused_tools,
    result_message,
)
from bot.agents.llm.requests import FORGOTTEN_AFTER_S, Abilities
from bot.agents.manager import Manager, ModelUnavailable, Stores
from bot.agents.prompts.prompt import AgentAnswer, Image, Prompt
from bot.agents.running_turns import Progress
from bot.agents.tool_types import Toolbox, tool
from bot.agents.tools.tool_calls import response_message
from memory.context import PromptMessage
from memory.models import WorkingMemory
from memory.scope import memory_context
from memory.store import MemoryStore
from memory.tables.notes import NoteStore
from sandbox.model.model import ModelServer
from sandbox.model.model_script import ScriptedReply
from tests.support.raw_endpoint import Wire, delta, events, serving, whole
from tests.support.rows import every_row

pytestmark = pytest.mark.anyio

DATA = Path(__file__).parents[4] / "data"
OWN = memory_context(chat_id="oc_1", root="om_1", subject="ou_a", actor="ou_a")
PICTURE = [
    {"type": "text", "text": "what is it?"},
    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
]
MESSAGES = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "one"},
    {"role": "user", "content": "two"},
    {"role": "assistant", "content": "three"},
    {"role": "user", "content": PICTURE},
]


async def look_up(deps: Any, word: str) -> str:
    """Looks a word up.

    Args:
        word: What.
    """
    return word


TOOLS = Toolbox([tool(look_up)])
EVERYTHING = Request(MESSAGES, max_tokens=9, temperature=0)
# What servers really say; `feature` is null for fields that we do not send.
MESSAGES_OF_SERVERS = json.loads((DATA / "model_refusals.json").read_text("utf-8"))
REFUSING = [one for one in MESSAGES_OF_SERVERS if one["feature"]]
ONE_EACH = list({one["feature"]: one for one in REFUSING}.values())


def body(refusal: Mapping[str, Any]) -> dict[str, Any]:
    return {"error": {"message": refusal["message"], "type": "invalid_request_error"}}


def name(refusal: Mapping[str, Any]) -> str:
    return f"{refusal['server']}: {refusal['feature'] or refusal['message'][-40:]}"


@asynccontextmanager
async def asking(
    refuses: list[Mapping[str, Any]],
) -> AsyncIterator[tuple[ModelServer, ChatModel]]:
    server = ModelServer()
    await server.start()
    server.refusals = type(server.refusals)(refuses)
    endpoint = Endpoint("k", server.base_url, retries=0)
    try:
        yield server, ChatModel(endpoint, "m")
    finally:
        await endpoint.close()
        await server.stop()


async def unread(_: str) -> None: ...


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("refusal", ONE_EACH, ids=name)
async def test_the_question_is_asked_again_without_what_was_refused(
    refusal: Mapping[str, Any], streamed: bool
) -> None:
    feature = refusal["feature"]
    refuses = [{"feature": feature, "status": refusal["status"], "body": body(refusal)}]
    if feature == "max_tokens":  # is sent only where its new name is refused
        refuses.append({"feature": "max_completion_tokens", "body": body(by_example("body.max_"))})
    request = Request(MESSAGES, TOOLS) if feature == "tools" else EVERYTHING
    async with asking(refuses) as (server, model):
        for _ in range(2):
            if feature == "tools":
                with pytest.raises(ToolsRefused) as refused:
                    await model.respond(request, unread if streamed else None)
                assert refused.value.sure
            else:
                assert (await model.respond(request, unread if streamed else None)).text
    refused_once = [not server.refusals.reply_to(one["body"]) for one in server.received]
    if feature != "tools":
        assert refused_once[-2:] == [True, True], "it is remembered"
    assert refused_once.count(False) <= len(refuses)


def by_example(part: str) -> Mapping[str, Any]:
    return next(one for one in MESSAGES_OF_SERVERS if part in one["message"])


@pytest.mark.parametrize("refusal", MESSAGES_OF_SERVERS, ids=name)
def test_a_message_is_told_from_other_troubles(refusal: Mapping[str, Any]) -> None:
    sent: Any = get_args(Feature)
    said = json.dumps(body(refusal)).encode()
    assert refused_feature(refusal["status"], said, sent) == refusal["feature"]
    for status in (401, 402, 429, 502, 503):
        assert refused_feature(status, said, sent) is None
    assert refused_feature(refusal["status"], said, ()) is None, "it was not sent"


FORMS = [
    lambda text: {"error": {"message": text}},
    lambda text: {"error": text},
    lambda text: {"object": "error", "message": text, "code": 400},
    lambda text: {"detail": text},
    lambda text: {"detail": [{"loc": ["body", "tools"], "msg": text, "input": "x"}]},
    lambda text: {"error": {"message": "Provider returned error", "metadata": {"raw": text}}},
]


@every_row("form", FORMS)
def test_the_message_is_read_wherever_a_server_puts_it(form: Any) -> None:
    said = json.dumps(form("gemma3:270m does not support tools")).encode()
    assert refused_feature(400, said, {"tools"}) == "tools"
    assert refused_feature(400, b"gemma3:270m does not support tools", {"tools"}) == "tools"


@pytest.mark.parametrize("refusal", REFUSING, ids=name)
def test_what_people_wrote_switches_nothing_off(refusal: Mapping[str, Any]) -> None:
    """FastAPI repeats the request in its errors."""
    echoed = {"detail": [{"loc": ["body", "seed"], "msg": "no", "input": refusal["message"]}]}
    assert refused_feature(422, json.dumps(echoed).encode(), {"tools", "images"}) is None


@given(st.binary(max_size=300))
def test_any_body_is_read(said: bytes) -> None:
    assert refused_feature(400, said, ()) is None


async def test_what_was_learned_is_forgotten_after_an_hour() -> None:
    now = 100.0
    abilities = Abilities(lambda: now)
    abilities.learn("tools")
    now += FORGOTTEN_AFTER_S - 1
    assert abilities.lacking() == {"tools"}
    now += 2
    assert abilities.lacking() == frozenset()


async def test_models_of_one_endpoint_are_told_apart() -> None:
    ollama = body(by_example("gemma3:4b"))
    async with asking([{"feature": "tools", "body": ollama}]) as (_, model):
        with pytest.raises(ToolsRefused):
            await model.respond(Request(MESSAGES, TOOLS))
        endpoint = model._endpoint
        assert endpoint.abilities("m").lacking() == {"tools"}
        assert endpoint.abilities("other").lacking() == frozenset()


# Refusals that say nothing of their reason

ZHIPU = {"error": {"code": "1210", "message": "API 调用参数有误，请检查文档。"}}


async def test_tools_are_given_up_only_after_several_refusals_in_a_row() -> None:
    async with asking([{"feature": "tools", "body": ZHIPU}]) as (server, model):
        for number in range(4):
            with pytest.raises(ToolsRefused) as refused:
                await model.respond(Request(MESSAGES, TOOLS))
            assert refused.value.sure is (number == 3)
        assert len(server.received) == 3


async def test_a_prompt_that_is_refused_without_tools_too_is_no_reason_to_give_them_up() -> None:
    async with asking([{"feature": "messages", "body": ZHIPU}]) as (_, model):
        for _ in range(4):
            with pytest.raises(ToolsRefused) as refused:
                await model.respond(Request(MESSAGES, TOOLS))
            assert not refused.value.sure
            with pytest.raises(ModelFailed, match="status_400"):
                await model.respond(Request(MESSAGES))


async def test_an_endpoint_in_trouble_loses_no_tools() -> None:
    async with asking([{"feature": "messages", "status": 500}]) as (_, model):
        for _ in range(4):
            with pytest.raises(ToolsRefused) as refused:
                await model.respond(Request(MESSAGES, TOOLS))
            assert not refused.value.sure
            with pytest.raises(ModelFailed, match="status_500"):
                await model.respond(Request(MESSAGES))


async def test_a_fallback_with_tools_comes_before_the_first_model_without_them() -> None:
    async with (
        asking([{"feature": "tools", "body": ZHIPU}]) as (_, first),
        asking([]) as (second_server, second),
    ):
        model = Fallback(first, second)
        assert (await model.respond(Request(MESSAGES, TOOLS))).text
        assert second_server.received[0]["body"]["tools"]


# One tool that an endpoint does not take


def tools_named(*names: str) -> Toolbox:
    return Toolbox(tool(look_up, name=name) for name in names)


@every_row(
    ("message", "param", "refused"),
    [
        ("Invalid schema for function 'desk__bad': array schema missing items.", None, "desk__bad"),
        ("tools.1.custom.input_schema: JSON schema is invalid.", None, "desk__bad"),
        ("Invalid value.", "tools[1].function.parameters", "desk__bad"),
        (
            "* GenerateContentRequest.tools[0].function_declarations[1].parameters.properties[a]."
            "items: missing field.",
            None,
            "desk__bad",
        ),
        ("'loc': ('body', 'tools', 1, 'function', 'parameters')", None, "desk__bad"),
        (
            "Unknown name \"type\" at 'tools[0].function_declarations[2].parameters': a list."
            "\nUnknown name \"type\" at 'tools[0].function_declarations[1].parameters.items'.",
            None,
            "desk__bad desk__worse",
        ),
        ("Invalid schema for function 'desk__bad': in ('properties', 'good')", None, "desk__bad"),
        ("Invalid schema for function 'another': no type.", None, ""),
        ("tools[9].function.parameters: invalid", None, ""),
        ("The question asks for 'desk__bad'.", None, ""),
    ],
)
def test_the_tools_that_an_error_is_about_are_found(
    message: str, param: str | None, refused: str
) -> None:
    error = {"error": {"message": message, "param": param, "code": 400}}
    names = ("good", "desk__bad", "desk__worse")
    assert refused_tools(400, json.dumps(error).encode(), names) == refused.split()
    assert refused_tools(500, json.dumps(error).encode(), names) == []


async def test_a_tool_that_is_refused_by_name_costs_itself_only() -> None:
    error = {"error": {"message": "Invalid schema for function 'desk__bad'.", "code": "x"}}
    refusal = Wire([json.dumps(error).encode()], "application/json", 400)
    answers = [refusal, whole(content="Turku."), whole(content="Turku.")]
    async with serving(*answers) as server:
        endpoint = Endpoint("k", server.base_url, retries=0)
        model = ChatModel(endpoint, "m")
        request = Request(MESSAGES[:2], tools_named("good", "desk__bad"))
        said = [(await model.respond(request)).text for _ in range(2)]
        await endpoint.close()

    offered = [[one["function"]["name"] for one in sent["tools"]] for sent in server.bodies]
    assert said == ["Turku.", "Turku."]
    assert offered == [["good", "desk__bad"], ["good"], ["good"]]


# Earlier calls that an endpoint does not take

SIGNATURE = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
CALL_REFUSED = {"error": {"message": "The request is invalid."}}


def pair(id: str, extra: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    return [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [call_entry(id, "look_up", "{}", extra)],
        },
        result_message(id, f"found {id}"),
    ]


@asynccontextmanager
async def asked_with_calls(accepts: Callable[[Any], bool]) -> AsyncIterator[Any]:
    """Asks an endpoint that gives 400 where `accepts` one of the earlier calls is false."""
    async with asking([]) as (server, model):

        def refusal(request: Mapping[str, Any]) -> ScriptedReply | None:
            calls = [call for one in request["messages"] for call in one.get("tool_calls", ())]
            return (
                None if all(map(accepts, calls)) else ScriptedReply(status=400, body=CALL_REFUSED)
            )

        server.refusals.reply_to = refusal  # type: ignore[method-assign]

        async def ask(*messages: dict[str, Any]) -> list[dict[str, Any]]:
            asked = [*messages, {"role": "user", "content": "and now?"}]
            assert (await model.respond(Request(asked, TOOLS))).text
            return [one["body"] for one in server.received]

        yield ask


async def test_calls_of_another_form_are_told_in_words_and_tools_stay() -> None:
    async with asked_with_calls(lambda call: len(call["id"]) == 9) as ask:
        _, taken = await ask(*pair("call_long_id"))
        assert taken["tools"]
        assert "found call_long_id" in taken["messages"][0]["content"]
        assert not any("tool_calls" in one or one["role"] == "tool" for one in taken["messages"])
        assert len(await ask(*pair("call_long_id"))) == 3, "it is remembered"


async def test_signed_calls_stay_as_they_are_beside_unsigned_ones() -> None:
    async with asked_with_calls(lambda call: "extra_content" in call) as ask:
        _, taken = await ask(*pair("old"), *pair("new", SIGNATURE))
        [told, call, result, _] = taken["messages"]
        assert "found old" in told["content"]
        assert (call["tool_calls"][0]["id"], result["content"]) == ("new", "found new")


async def test_signatures_of_another_model_are_left_out() -> None:
    async with asked_with_calls(lambda call: "extra_content" not in call) as ask:
        bodies = await ask(*pair("old"), *pair("new", SIGNATURE))
        assert len(bodies) == 3
        assert "found new" in bodies[-1]["messages"][-2]["content"]


async def test_who_signs_its_calls_is_given_those_of_earlier_turns_in_words_at_once() -> None:
    signed = delta(tool_calls=[{"index": 0, **call_entry("c", "look_up", "{}", SIGNATURE)}])
    async with serving(Wire([events(signed)]), whole(content="ok")) as endpoint:
        opened = Endpoint("k", endpoint.base_url, retries=0)
        model = ChatModel(opened, "m")
        response = await model.respond(Request(MESSAGES[:2], TOOLS), unread)
        this_turn = [response_message(response), result_message("c", "found"), *pair("unsigned")]
        await model.respond(Request([*pair("old"), MESSAGES[1], *this_turn], TOOLS))
        await opened.close()
    told, _, *sent = endpoint.bodies[1]["messages"]
    assert "found old" in told["content"]
    assert sent == this_turn


# What people see

TOOLS_REFUSED = [
    {"feature": "tools", "body": body(by_example("gemma3:4b"))},
    {"feature": "tools", "status": 400, "body": ZHIPU},
    {"feature": "tools", "status": 200, "body": {"error": {"message": "does not support tools"}}},
    {"feature": "tools", "status": 500, "body": {"error": {"message": "Value is not callable"}}},
    {"feature": "tools", "status": 422, "body": "Unprocessable"},
]


class Rpc:
    """Answers each SQL function with a fixed value; keeps the calls."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Mapping[str, object]]] = []

    async def call(self, function: str, params: Mapping[str, object], _: object) -> Any:
        self.calls.append((function, params))
        return {"launch": "the launch is on 3 March"}

    async def close(self) -> None: ...


async def asked(
    refuses: list[Mapping[str, Any]], question: str, *, images: tuple[Image, ...] = (),
    steps: list[Any] | None = None, **fields: Any,
) -> tuple[AgentAnswer, Rpc, ModelServer]:  # fmt: skip
    rpc = Rpc()
    async with asking(refuses) as (server, model):
        if steps:
            server.playbook.load(steps)
        stores = Stores(MemoryStore(rpc), NoteStore(rpc))
        prompt = Prompt(
            bot_name="Bot", question=question, history=(PromptMessage("user", "hello"),),
            subject="Alice", working_memory=fields.pop("memory", WorkingMemory()), images=images,
            now=datetime(2026, 11, 20, 9, 30, tzinfo=UTC), context=OWN, **fields,
        )  # fmt: skip

        async def on_progress(_: object) -> None: ...

        answer = await Manager(model, stores=stores).answer(
            prompt, timeout_s=20, on_progress=on_progress
        )
        return answer, rpc, server


@pytest.mark.parametrize("refusal", TOOLS_REFUSED, ids=lambda one: json.dumps(one["body"])[:60])
async def test_without_tools_people_get_an_answer_and_the_bot_remembers(
    refusal: Mapping[str, Any],
) -> None:
    answer, _, server = await asked([refusal], "when is the launch?")
    assert answer.text == "echo: when is the launch?"
    assert "Working with tools" not in str(server.received[-1]["body"])
    assert len(server.received) == 2

    answer, rpc, server = await asked([refusal], "remember that the launch is on 3 March")
    assert answer.text == "Got it, I'll remember: “the launch is on 3 March”"
    assert [function for function, _ in rpc.calls] == ["merge_working_memory"]
    assert [call["name"] for call in answer.tool_calls] == ["update_working_memory"]


async def test_an_endpoint_that_answers_nothing_at_all_is_still_no_answer() -> None:
    with pytest.raises(ModelUnavailable, match="status_400"):
        await asked([{"feature": "messages", "body": ZHIPU}], "when?")


async def test_a_picture_that_the_model_cannot_see_is_said_to_be_there() -> None:
    refusal = {"feature": "images", "body": body(by_example("unknown variant"))}
    _, _, server = await asked([refusal], "what is it?", images=(Image(b"x", "image/png"),))
    (question,) = [m for m in server.received[-1]["body"]["messages"] if "what is" in str(m)]
    assert "You cannot see pictures" in question["content"]


async def test_a_doubtful_wish_is_offered_beside_the_answer() -> None:
    refusal = {"feature": "tools", "body": body(by_example("gemma3:4b"))}
    memory = WorkingMemory({"launch": "the launch is on 3 March"}, {})
    answer, rpc, _ = await asked([refusal], "no, it is now 4 March", memory=memory)

    assert rpc.calls == []
    assert answer.text == "echo: no, it is now 4 March"
    (action,) = answer.pending_actions
    assert action.tool == "update_working_memory"
    assert "4 March" in action.question


@pytest.mark.parametrize(
    "question",
    ["forget it, tell me about the launch", "forget the weather", "what did we decide?", "hello"],
)
async def test_nothing_is_done_that_nobody_asked_for(question: str) -> None:
    refusal = {"feature": "tools", "body": body(by_example("gemma3:4b"))}
    memory = WorkingMemory({"launch": "the launch is on 3 March"}, {})
    answer, rpc, _ = await asked([refusal], question, memory=memory)
    assert rpc.calls == []
    assert answer.text == f"echo: {question}"


async def test_an_answer_that_may_change_nothing_grants_no_wish() -> None:
    refusal = {"feature": "tools", "body": body(by_example("gemma3:4b"))}
    answer, rpc, _ = await asked([refusal], "remember that I like tea", reads_only=True)
    assert (rpc.calls, answer.pending_actions) == ([], ())


# Calls in the text

ZONE = '{"timezone": "Asia/Shanghai"}'
READS = f'<tool_call>{{"name": "current_time", "arguments": {ZONE}}}</tool_call>'
WRITES = '<tool_call>{"name": "create_note", "arguments": {"title": "Tea"}}</tool_call>'
UNKNOWN = '<tool_call>{"name": "launch_rocket", "arguments": {}}</tool_call>'
WRONG = '<tool_call>{"name": "create_note", "arguments": {"titel": "Tea"}}</tool_call>'


@pytest.mark.parametrize("refuses", [[], TOOLS_REFUSED[:1]], ids=["with tools", "without"])
async def test_a_call_in_the_text_that_only_reads_is_made(refuses: list[Any]) -> None:
    steps = [{"text": f"Let me look.\n{READS}"}, {"text": "It is half past five."}]
    answer, _, server = await asked(refuses, "what time is it?", steps=steps)

    assert answer.text == "It is half past five."
    assert [call["name"] for call in answer.tool_calls] == ["current_time"]
    last = server.received[-1]["body"]["messages"][-1]
    assert last["role"] == "user"
    assert "2026-11-20 17:30" in last["content"]


async def test_a_call_in_the_text_that_changes_something_waits_for_a_button() -> None:
    answer, rpc, _ = await asked([], "a note, please", steps=[{"text": WRITES}])
    assert (rpc.calls, answer.tool_calls) == ([], ())
    assert answer.text == "Please confirm this first:"
    assert [one.tool for one in answer.pending_actions] == ["create_note"]


@pytest.mark.parametrize("call", [UNKNOWN, WRONG])
async def test_a_call_that_cannot_be_made_is_never_shown(call: str) -> None:
    answer, _, _ = await asked([], "go", steps=[{"text": f"Here you are.\n{call}"}])
    assert (answer.text, answer.pending_actions) == ("Here you are.", ())


async def test_inner_marks_reach_nobody_whole_or_while_they_are_written() -> None:
    said = f"<think>SECRET</think>Memo: It is half past five.{READS}<|im_end|>\n<|im_start|>user"
    frames: list[str] = []

    async def on_progress(progress: Progress) -> None:
        frames.append(progress.text)

    async with asking([]) as (server, model):
        server.playbook.load([{"text": said, "chunk_delay_s": 0.001}, {"text": "Half past five."}])
        stores = Stores(MemoryStore(Rpc()), NoteStore(Rpc()))
        prompt = Prompt(
            bot_name="Memo", question="what time is it?", history=(), subject="Alice",
            working_memory=WorkingMemory(), now=datetime(2026, 11, 20, tzinfo=UTC), context=OWN,
        )  # fmt: skip
        answer = await Manager(model, stores=stores).answer(
            prompt, timeout_s=20, on_progress=on_progress
        )
    assert answer.text == "Half past five."
    assert [call["name"] for call in answer.tool_calls] == ["current_time"]
    assert any("It is half" in frame for frame in frames)
    assert not any(mark in "".join(frames) for mark in ("SECRET", "Memo:", "<", "current_time"))
